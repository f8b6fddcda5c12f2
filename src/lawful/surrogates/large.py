"""Ridges of thousands of inputs: solved exactly, with the variances of a smaller model that exact ones have set right.

    G = K + n lambda W^-1 = L L',    P = G^-1 - u u' / 1'u,    u = G^-1 1,    c = P z,    beta = 1'G^-1 z / 1'u

L is computed in single precision where the noise is far above its rounding, and conjugate gradients on the kernel in double
precision, with L as preconditioner, make up for what that lost. L is then forgotten: M centres among the inputs give

    v(x) = k(x, x) - |C' k_M(x)|^2,    C C' = K_MM^-1 - (K_MM + K_Mn (n lambda W^-1)^-1 K_nM)^-1,

the variance of a process that is conditioned on less. What that exaggerates is measured. In a random order of the inputs the
last `JUDGED` of them have exact leave-one-out variances 1 / P_ii - n lambda / w_i, from the last block of L alone; the odds
v / (k(x, x) - v) are multiplied by the factor rho <= 1 that makes both agree in the mean. Far from all data v stays k(x, x).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import dtrmm, strmm
from scipy.linalg.lapack import dpotrs, dtrtri, spotrs

from lawful._array import Array, array_namespace, device_of, is_numpy_namespace, like, solve_lower, to_numpy
from lawful._lapack import cholesky
from lawful.kernels import Kernel
from lawful.surrogates.exact import EPS, TOO_SMALL, Factor, Sample, Solution
from lawful.surrogates.products import times, values

__all__ = ["Condensed", "LargeFactor", "solvable"]

DOUBLE = 23_000  # inputs: LAPACK as it is often built crashes on matrices of more than 4 GiB
SINGLE = 8000  # inputs from which single precision is worth its refinement
ROUNDING = 1e-6  # times the root of the number of inputs: noise far above what single precision does to K
JUDGED = 1000  # inputs whose leave-one-out variance is exact
CENTRES = 800  # of the variances: benchmarks/sizes.py
UNSEEN = 0.02  # of the residuals: errors of predictions in single precision
TOLERANCE, MOST = 1e-5, 30  # of the refinement: relative residual, and steps before double precision takes its place


class Condensed(Factor):
    """Many inputs: what P z is needed for is remembered, and variances are those of fewer centres, set right.

    Subclasses give `inputs` and `noise` = n lambda / w, in the order of `order`, u = G^-1 1, `_inverse(B)` = G^-1 B, and the
    diagonal of G^-1 for the last `JUDGED` inputs.
    """

    order: np.ndarray
    inputs: Array
    noise: Array
    u: Array
    lam: float
    single = rough = False  # whether systems are solved, and predictions made, in single precision
    computed: tuple[str, ...] = ("C",)

    def _start(self) -> None:
        xp, X = array_namespace(self.w), self.sample.X
        self.order = np.random.default_rng(0).permutation(self.p)
        self._back = np.argsort(self.order)
        self.inputs = xp.take(X, xp.asarray(self.sample.points[self.order], device=device_of(X)), axis=0)
        self.level = self._level(float(xp.mean(self.kernel.diag(self.inputs))))
        self._solved: dict[bytes, Array] = {}  # P z of columns z: the same are asked for several times

    def _ordered(self, Z: Array, order: np.ndarray) -> Array:
        return array_namespace(Z).take(Z, array_namespace(Z).asarray(order, device=device_of(Z)), axis=0)

    def _noise_of(self, lam: float) -> Array:
        return lam * self.n / self._ordered(self.w, self.order)

    def _inverse(self, B: Array) -> Array:
        raise NotImplementedError

    def compute_again(self, names: list[str]) -> None:
        points = array_namespace(self.w).take(self.sample.X, self.sample.rows, axis=0)
        self._condense(points, self.lam * self.n / self.w)

    # ------------------------------------------------------------------ variances

    def _measure(self, exact: Array) -> None:
        """C, rho, and the diagonal of P, from that of G^-1 for the last inputs."""
        xp, p, m = array_namespace(self.w), self.p, exact.shape[0]
        self.few = self.inputs[: min(CENTRES, p)]
        self._condense(self.inputs, self.noise)
        if self.intercept:
            exact = exact - self.u[p - m :, 0] ** 2 / xp.sum(self.u)
        exact, noise = np.maximum(to_numpy(exact), 1e-300), to_numpy(self.noise)
        self.rho, top = 1.0, to_numpy(self.kernel.diag(self.inputs))
        known = to_numpy(self._spread(self.inputs))
        judged, total = slice(p - m, p), float(np.sum(1 / exact - noise[p - m :]))
        low, high = -20.0, 0.0  # of log rho
        for _ in range(40):
            middle = (low + high) / 2
            less = float(np.sum(odds_times(known[judged], top[judged], np.exp(middle)))) < total
            low, high = (middle, high) if less else (low, middle)
        self.rho = float(np.exp(high))
        diagonal = 1 / (noise + odds_times(known, top, self.rho))
        diagonal[judged] = exact
        self._diagonal = like(diagonal[self._back], self.w)

    def _condense(self, inputs: Array, noise: Array) -> None:
        """C, from all inputs in any order."""
        xp, M = array_namespace(self.w), self.few.shape[0]
        K = values(self.kernel, self.few, self.few)
        eye = xp.eye(M, dtype=K.dtype, device=device_of(K))
        jitter = 1e-10 * self.level * M
        root = xp.linalg.cholesky(K + jitter * eye)
        A = xp.zeros_like(K)
        for i in range(0, self.p, 4096):
            F = solve_lower(root, values(self.kernel, self.few, inputs[i : i + 4096]))
            A = A + (F / noise[None, i : i + 4096]) @ F.T
        # K^-1 - (K + ..)^-1 = root^-T (I - (I + A)^-1) root^-1
        s, V = xp.linalg.eigh((A + A.T) / 2)
        s = xp.where(s > 0, s, xp.zeros_like(s))
        keep = int(xp.sum(xp.astype(s > 1e-6, xp.int64) if hasattr(xp, "astype") else (s > 1e-6)))
        some = slice(M - keep, M)
        half = V[:, some] * (s[some] / (1 + s[some]))[None, :] ** 0.5
        C = solve_lower(root, half, transpose=True)
        R = xp.linalg.qr(C.T)[1]
        self.C = xp.concat([R, xp.zeros_like(K[: M - R.shape[0], :])], axis=0).T  # a triangle: products cost half as much

    def _spread(self, X: Array) -> Array:
        """(m,) variance of f(x)."""
        xp = array_namespace(X)
        top = 1.0 * self.kernel.diag(X)
        inside = xp.zeros_like(top)
        dtype = np.float32 if self.single else np.float64
        trmm = strmm if self.single else dtrmm
        R = np.asfortranarray(self.C.T, dtype=dtype) if isinstance(X, np.ndarray) else None
        for i in range(0, X.shape[0], 4096):
            K = values(self.kernel, X[i : i + 4096], self.few, dtype)
            K = K @ self.C if R is None else trmm(1.0, R, K.T, lower=0, overwrite_b=1).T
            inside[i : i + 4096] = xp.sum(K * K, axis=1)
        return odds_times(xp.where(top > inside, top - inside, 1e-12 * top), top, self.rho)

    # ------------------------------------------------------------------ what a factor does

    def slim(self, keep: bool = True) -> None:
        for name in ("L", "H", "root", "Lambda", "u", "noise", "inputs", "order", "_back", "_solved"):
            self.__dict__.pop(name, None)

    def code(self, Z: Array) -> Array:
        return Z

    def apply(self, code: Array, nu: Array) -> Array:
        """P z, for means of labels; nothing for constant ones, where there is a constant."""
        xp = array_namespace(code)
        columns = [to_numpy(code[:, j]) for j in range(code.shape[1])]
        keys = [column.tobytes() for column in columns]
        for key, column in zip(keys, columns):
            if self.intercept and np.all(column == column[0]):
                self._solved[key] = xp.zeros_like(code[:, 0])
        new = [j for j, key in enumerate(keys) if key not in self._solved]
        if new:
            some = code[:, new]
            found = self._inverse(self._ordered(some, self.order))
            if self.intercept:
                found = found - self.u * (xp.sum(found, axis=0) / xp.sum(self.u))[None, :]
            found = self._ordered(found, self._back)
            self._solved.update((keys[j], found[:, i]) for i, j in enumerate(new))
        return xp.stack([self._solved[key] for key in keys], axis=1)

    def _constants(self, means: Array) -> Array:
        if not self.intercept:
            return 0.0 * means[0, :]
        return self._ordered(self.u[:, 0], self._back) @ means / array_namespace(means).sum(self.u)

    def diagonal(self, nu: Array) -> Array:
        return array_namespace(nu).broadcast_to(self._diagonal[:, None], (self.p, nu.shape[0]))

    def variance(self, X: Array, lam: Any, cross: Array = None) -> Array:
        spread = self._spread(X) + (self.lam if self.intercept else 0.0)
        return array_namespace(X).broadcast_to(spread[:, None], (X.shape[0], np.atleast_1d(lam).shape[0]))


class LargeFactor(Condensed):
    """One kernel and one lambda, for thousands of inputs; on NumPy or torch.

    >>> import numpy as np
    >>> from lawful.kernels import Gaussian
    >>> from lawful.surrogates import samples
    >>> k, X = Gaussian(1.0), np.linspace(0, 1, 9)[:, None]
    >>> factor = LargeFactor(k, samples.distinct(X, np.arange(9), np.ones(9), k), 1e-6)
    >>> factor.predict(X[4:5], factor.solve(2 * X, 1e-6)).round(3)
    array([[1.]])
    """

    def __init__(self, kernel: Kernel, sample: Sample, lam: float, intercept: bool = True, highest: float = 0.0) -> None:
        super().__init__(kernel, sample, intercept)
        xp = array_namespace(self.w)
        self._start()
        host = is_numpy_namespace(xp)
        while True:
            self.lam = lam
            self.noise = self._noise_of(lam)
            least = float(xp.min(self.noise)) / self.level
            self.single = bool(host and self.p >= SINGLE and least > ROUNDING * self.p**0.5)
            self.L: Array = self._cholesky(np.float32 if self.single else np.float64)
            if self.L is not None:
                break
            if lam > highest:
                raise ValueError(TOO_SMALL.format(lam=lam, least=EPS * self.level))
            lam *= 3
        self.u = self._inverse(xp.ones((self.p, 1), dtype=self.w.dtype, device=device_of(self.w)))
        self._measure(self._judged())

    # ------------------------------------------------------------------ the factor

    def _cholesky(self, dtype: Any) -> Array:
        """The lower factor of G in the order of `order`, None where rounding has made G singular."""
        xp, p = array_namespace(self.w), self.p
        if not is_numpy_namespace(xp):
            G = values(self.kernel, self.inputs, self.inputs)
            G.diagonal().add_(self.noise)
            L, failed = xp.linalg.cholesky_ex(G)
            return None if int(failed) else L
        G = np.empty((p, p), dtype=dtype)
        for i in range(0, p, 512):  # the lower triangle, which is the upper one of the transpose
            part = slice(i, min(i + 512, p))
            G[part, : part.stop] = values(self.kernel, self.inputs[part], self.inputs[: part.stop], dtype)
        np.einsum("ii->i", G)[...] += self.noise
        return cholesky(G, lower=True)

    def _apply(self, B: Array) -> Array:
        """G^-1 B, as exact as L is."""
        if not isinstance(B, np.ndarray):
            return solve_lower(self.L, solve_lower(self.L, B), transpose=True)
        solve = spotrs if self.L.dtype == np.float32 else dpotrs
        return solve(self.L.T, B.astype(self.L.dtype), lower=0)[0].astype(float)

    def _inverse(self, B: Array) -> Array:
        """G^-1 B in double precision, by conjugate gradients where L is in single precision."""
        x = self._apply(B)
        if not isinstance(x, np.ndarray) or self.L.dtype == np.float64:
            return x
        r = B - self._product(x)
        size = np.maximum(np.linalg.norm(B, axis=0), 1e-300)
        z = self._apply(r)
        d, rz = z, np.sum(r * z, axis=0)
        for _ in range(MOST):
            if np.max(np.linalg.norm(r, axis=0) / size) < TOLERANCE:
                return x
            Gd = self._product(d)
            step = rz / np.maximum(np.sum(d * Gd, axis=0), 1e-300)
            x, r = x + step * d, r - step * Gd
            z = self._apply(r)
            new = np.sum(r * z, axis=0)
            d, rz = z + new / np.maximum(rz, 1e-300) * d, new
        self.L = self._cholesky(np.float64) if self.p <= DOUBLE else None
        if self.L is None:
            raise ValueError(TOO_SMALL.format(lam=self.lam, least=EPS * self.level))
        return self._apply(B)

    def _product(self, B: np.ndarray) -> np.ndarray:
        return times(self.kernel, self.inputs, self.inputs, B) + self.noise[:, None] * B

    def _judged(self) -> Array:
        """The diagonal of G^-1 for the last inputs, from the last block of L."""
        xp, corner = array_namespace(self.w), self.L[self.p - min(JUDGED, self.p) :, self.p - min(JUDGED, self.p) :]
        if isinstance(corner, np.ndarray):
            inverse = np.tril(dtrtri(np.tril(corner).astype(float), lower=1)[0])
        else:
            inverse = solve_lower(corner, xp.eye(corner.shape[0], dtype=corner.dtype, device=device_of(corner)))
        return xp.sum(inverse**2, axis=0)

    def solve(self, Z: Array, lam: Any) -> Solution:
        means = self.sample.average(Z)
        coef = self.apply(means, None)
        if self.single:  # and predictions too, where what that costs is lost in the noise
            C, some = self._ordered(coef, self.order), self.inputs[:JUDGED]
            exact, rough = (times(self.kernel, some, self.inputs, C, dtype) for dtype in (np.float64, np.float32))
            left = self.noise[:, None] * C
            self.rough = bool(np.all(((exact - rough) ** 2).mean(axis=0) <= UNSEEN**2 * (left**2).mean(axis=0)))
        return Solution(coef, self._constants(means))

    def predict(self, X: Array, solution: Solution) -> Array:
        xp = array_namespace(X)
        points, dtype = xp.take(self.sample.X, self.sample.rows, axis=0), np.float32 if self.rough else np.float64
        return times(self.kernel, X, points, solution.coef, dtype) + solution.beta[None, :]


def odds_times(v: Array, top: Array, rho: float) -> Array:
    """Variances whose odds against `top`, the most there can be, are rho times those of v."""
    return rho * v / (1 + (rho - 1) * v / (top + (top == 0)))


def solvable(p: int, noise: float) -> bool:
    """Whether p inputs with n lambda relative to k(x, x) can be solved exactly."""
    return p <= DOUBLE or noise > ROUNDING * p**0.5
