"""Ridges on M centres from their statistics, for any number of lambdas.

With K_MM = L L' the features phi(x) = L^-1 k(x) are those of the Nystrom approximation, |f|^2 = |c|^2 for f = c.phi, and

    minimise (1/n) sum_i w_i (z_i - c.phi(x_i) - beta)^2 + lambda |c|^2
    (A + n lambda I) c = r,      A = sum_i w_i phi_c phi_c',   r = sum_i w_i phi_c z_i,   phi_c = phi less its weighted mean

(without intercept nothing is centred). A and r follow from the statistics of psi = T^-1 k (see `blocks`): L = T D with
D = diag(I, L_rr), so phi = D^-1 psi. Every lambda is one Cholesky factorisation of A + n lambda I, a third of M^3, beside the
n M^2 of the statistics. From the same factor

    residual sum of squares     z_c'z_c - r.c - n lambda |c|^2
    degrees of freedom          df = M - n lambda tr (A + n lambda I)^-1
    variance of f(x)            k(x,x) - |phi|^2 + n lambda phi_c' (A + n lambda I)^-1 phi_c (+ lambda for the constant)

in units of the variance s2 of the Gaussian process whose posterior mean the ridge is. Leave-one-out residuals are those of the
fit over 1 - h_ii; with the average of h_ii, df / n, they have s2 = RSS / ((n - df) n lambda), which is generalised
cross-validation. At M = n all of it is the exact ridge.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from lawful._array import Array, array_namespace, device_of, eigh, is_numpy_namespace, solve_lower, to_numpy
from lawful.surrogates.blocks import Host, Pivots, Torch
from lawful.surrogates.statistics import Cell

__all__ = ["Normal", "Solved", "Whitening"]

EPS = float(np.finfo(float).eps)
JITTER = 4.0  # times M eps times the largest k(c, c): what rounding leaves of directions that K_MM does not have


class Whitening:
    """L of K_MM: what turns sums of psi, and coefficients of k, into those of phi."""

    def __init__(self, K: Array, found: Pivots, lam: float, where: Host | Torch) -> None:
        """K (M, M), centres in the order of `found`; `lam` is about the smallest that will be asked for.

        Directions that rounding of the sums, eps n left^2, would fill with more than n lambda are given that size instead:
        beside M lambda they are nothing.
        """
        xp = array_namespace(K)
        p, M = found.p, K.shape[0]
        self.p, self.M = p, M
        self.head = where.array(found.L, True)  # [L_pp; L_rp]
        rest = K[p:, p:] - self.head[p:] @ self.head[p:].T
        top = float(xp.max(xp.linalg.diagonal(K))) if M else 1.0
        jitter = M * EPS * top * min(JITTER + 10 * found.left**2 * top / lam, 1e-6 / (M * EPS))
        self.D: Array = None
        for _ in range(12):
            self.D = cholesky(rest, jitter)
            if self.D is not None:
                break
            jitter *= 10
        if self.D is None:
            raise ValueError(
                "NystromRidge: the kernel matrix of the centres is not positive semidefinite; "
                "a kernel such as Gaussian() would do"
            )

    def features(self, sums: Array) -> Array:
        """D^-1 S for rows S of psi: those of phi."""
        xp = array_namespace(sums)
        return xp.concat([sums[: self.p], solve_lower(self.D, sums[self.p :])], axis=0)

    def from_kernel(self, k: Array) -> Array:
        """L^-1 k, (M, m)."""
        xp = array_namespace(k)
        top = solve_lower(self.head[: self.p], k[: self.p]) if self.p else k[:0]
        return xp.concat([top, solve_lower(self.D, k[self.p :] - self.head[self.p :] @ top)], axis=0)

    def to_kernel(self, c: Array) -> Array:
        """L^-T c: coefficients of k from those of phi."""
        xp = array_namespace(c)
        rest = solve_lower(self.D, c[self.p :], transpose=True)
        if not self.p:
            return rest
        top = solve_lower(self.head[: self.p], c[: self.p] - self.head[self.p :].T @ rest, transpose=True)
        return xp.concat([top, rest], axis=0)

    def product(self) -> Array:
        """L' L, which is L^-1 K_MM^2 L^-T: what A looks like where centres are drawn from the rows."""
        xp = array_namespace(self.D)
        left = xp.concat([self.head, xp.concat([_zeros(self.D, self.p, self.M - self.p), self.D], axis=0)], axis=1)
        return left.T @ left

    def small(self, tau: float) -> Array:
        """(M, M): tau (D'D + tau I)^-1, near 1 for directions of K_MM that are small beside tau, and 0 for pivots."""
        xp = array_namespace(self.D)
        C = cholesky(self.D.T @ self.D, tau)
        eye = xp.eye(self.M - self.p, dtype=self.D.dtype, device=device_of(self.D))
        inner = tau * solve_lower(C, solve_lower(C, eye), transpose=True)
        rest = xp.concat([_zeros(self.D, self.M - self.p, self.p), inner], axis=1)
        return xp.concat([_zeros(self.D, self.p, self.M), rest], axis=0)


class Solved(NamedTuple):
    """For one lambda: c (M, k), and the factor's degrees of freedom."""

    c: Array
    df: float


class Normal:
    """The normal equations of tasks on the same rows. `intercept`: whether there is a free constant."""

    def __init__(self, cell: Cell, whitening: Whitening, intercept: bool, where: Host | Torch) -> None:
        self.whitening, self.intercept = whitening, intercept
        own = np.asarray(cell.own, dtype=float)
        self.n = float(own[0, 0])
        self.z_mean = own[0, 1:] / self.n if intercept else np.zeros(own.shape[0] - 1)
        self.z_square = np.maximum(np.diagonal(own)[1:] - self.n * self.z_mean**2, 0.0)
        mean = whitening.features(cell.cross[:, :1])[:, 0] / self.n
        self.mean = mean if intercept else 0 * mean  # of phi
        half = whitening.features(where.symmetric(cell.gram))
        A = whitening.features(half.T)
        A = A - self.n * self.mean[:, None] * self.mean[None, :]
        self.A = (A + A.T) / 2
        right = whitening.features(cell.cross[:, 1:])
        self.R = right - self.n * self.mean[:, None] * where.array(self.z_mean, True)[None, :]
        self._spectrum: tuple[Array, Array] | None = None

    @property
    def spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues (what rounding made negative is zero) and vectors of A: all lambdas at once, for variances."""
        if self._spectrum is None:
            xp = array_namespace(self.A)
            s, V = eigh(self.A + 0)
            self._spectrum = xp.where(s > 0, s, xp.zeros_like(s)), V
        return self._spectrum

    def solve(self, lam: float, columns: Any = slice(None), df: bool = True) -> Solved:
        """One lambda for the chosen columns of Z."""
        nu, R = self.n * lam, self.R[:, columns]
        C = cholesky(self.A, nu)
        if C is None:  # rounding has made A indefinite beyond n lambda
            s, V = self.spectrum
            return Solved(V @ ((V.T @ R) / (s + nu)[:, None]), float(array_namespace(s).sum(s / (s + nu))))
        c = solve_lower(C, solve_lower(C, R), transpose=True)
        return Solved(c, self.A.shape[0] - nu * inverse_trace(C) if df else np.nan)

    def left(self, lam: float, c: Array, columns: Any = slice(None)) -> np.ndarray:
        """Residual sums of squares, from the statistics alone; never below what rounding leaves of them."""
        xp = array_namespace(c)
        fitted = to_numpy(xp.sum(self.R[:, columns] * c, axis=0) + self.n * lam * xp.sum(c * c, axis=0))
        return np.maximum(self.z_square[columns] - fitted, EPS * self.z_square[columns])

    def beta(self, c: Array, columns: Any = slice(None)) -> np.ndarray:
        """Constants: f(x) = c.phi(x) + beta."""
        return self.z_mean[columns] - to_numpy(self.mean @ c)

    def variance(self, phi: Array, lam: np.ndarray) -> Array:
        """n lambda phi_c' (A + n lambda I)^-1 phi_c (m, number of lambdas) of features phi (M, m)."""
        s, V = self.spectrum
        xp = array_namespace(phi)
        inside = (V.T @ (phi - self.mean[:, None])) ** 2
        nu = xp.asarray(self.n * lam, dtype=phi.dtype, device=device_of(phi))
        return inside.T @ (nu[None, :] / (s[:, None] + nu[None, :]))

    def leverages(self, phi: Array, lam: float) -> np.ndarray:
        """h_ii of rows with features phi (M, m), for weight 1."""
        s, V = self.spectrum
        inside = (V.T @ (phi - self.mean[:, None])) ** 2
        return to_numpy(inside.T @ (1 / (s + self.n * lam))) + (1 / self.n if self.intercept else 0.0)


def cholesky(A: Array, shift: float) -> Array | None:
    """The lower factor of A + shift I, None where there is none."""
    xp = array_namespace(A)
    M = A.shape[0]
    if M == 0:
        return A
    if is_numpy_namespace(xp):
        work = np.array(A.T, order="F")  # A is symmetric, and this way round a plain copy
        work[np.arange(M), np.arange(M)] += shift
        L, failed = dpotrf(work, lower=1, clean=1, overwrite_a=1)
        return None if failed or not np.isfinite(L[-1, -1]) else L
    shifted = xp.asarray(A, copy=True)
    shifted.diagonal().add_(shift)
    L, failed = xp.linalg.cholesky_ex(shifted)  # torch: does not raise
    return None if int(failed) else L


def inverse_trace(C: Array) -> float:
    """tr (C C')^-1 for a lower factor C."""
    xp = array_namespace(C)
    if C.shape[0] == 0:
        return 0.0
    if is_numpy_namespace(xp):
        inverse, _ = dtrtri(C, lower=1)
        return float(np.einsum("ij,ij->", inverse, inverse))
    inverse = solve_lower(C, xp.eye(C.shape[0], dtype=C.dtype, device=device_of(C)))
    return float(xp.sum(inverse * inverse))


def _zeros(like: Array, n: int, m: int) -> Array:
    return array_namespace(like).zeros((n, m), dtype=like.dtype, device=device_of(like))
