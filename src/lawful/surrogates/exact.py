"""Kernel ridge regression with an intercept, sample weights and exact leave-one-out, from one factorisation.

    minimise (1/n) sum_i w_i (z_i - f(x_i) - beta)^2 + lambda |f|^2          n = sum_i w_i

has f(x) = sum_i k(x, x_i) c_i with, for G = K + n lambda W^-1 (the paper's K + n lambda I when w = 1),

    c = P z,    P = G^-1                                      without intercept
                P = G^-1 - G^-1 1 1' G^-1 / (1' G^-1 1)       with: P 1 = 0, and the scores alpha(x) sum to one
    beta = sum_i w_i (z - K c)_i / n
    leave-one-out residual   r_i = (P z)_i / P_ii             (n lambda held fixed)
    scores                   alpha(x) = omega + P k_c(x),     omega = w / n, k_c(x) = k(x) - K omega
    kriging variance         k(x,x) - 2 alpha.k(x) + alpha' G alpha = c(x,x) + lambda - k_c(x)' P k_c(x)

c(x,x) is the kernel centred with omega (without intercept omega = 0 and the `+ lambda`, which is the variance of
beta, is absent). All is symmetric in D = W^1/2: P = D Q (Q' D K D Q + n lambda I)^-1 Q' D where the columns of Q
span the complement of D 1. Q is taken from the Householder reflector that sends D 1 to the first axis, so the
intercept is removed exactly and no eigenvalue has to be recognised as "the zero one". `SpectralFactor` holds the
eigenvectors of the block and so serves every lambda with matrix products; `CholeskyFactor` serves one.

Equal inputs are merged first: weights add, labels average; the ridge solution is the same. Leave-one-out then
leaves out an *input*: the residual of row i is z_i minus the prediction at x_i without any row at x_i. So weight 2
is a row repeated twice, in the fit and in the tuning. The merged inputs are sorted, so that no result depends on
the order of the rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lawful._array import (
    Array,
    array_namespace,
    cholesky_in_place,
    device_of,
    eigh,
    is_numpy_namespace,
    like,
    solve_lower,
    to_numpy,
)
from lawful._threads import blas_threads
from lawful.kernels import Kernel, Precomputed
from lawful.surrogates.samples import Sample, distinct

__all__ = ["CholeskyFactor", "Factor", "Sample", "Solution", "SpectralFactor", "distinct"]


EPS = float(np.finfo(float).eps)
VANISHING = 1e-280  # k(x, x) below this is zero: the smallest lambda beside it could not be represented
LOST = 1e-20  # of the largest eigenvalue
MANY = 1000  # inputs beyond which the diagonal of an inverse is computed piece by piece
LARGE = 3000  # inputs beyond which matrices are computed in place
PIECE = 512  # of their rows or columns at once
INDEFINITE = 1e-5  # of the largest eigenvalue: what a kernel computed in single precision may have below zero
NOT_POSITIVE = (
    "{kernel!r} is not positive semidefinite: its matrix has eigenvalues from {lowest:.1e} to {highest:.1e}; a kernel such as "
    "Gaussian(), or the matrix with its negative eigenvalues removed, would do"
)
TOO_SMALL = (
    "lam = {lam:.1e} is lost beside the kernel matrix, which is singular in double precision; lam of at least {least:.1e}, or "
    "lam='auto', would do"
)


class Solution(NamedTuple):
    """Coefficients (p or number of features, k) and intercepts (k,) of k regressions."""

    coef: Array
    beta: Array


class Factor:
    """All that depends on the inputs alone. `lam` is one number or one per column of Z.

    Subclasses give `code(Z)`, `apply(code, nu)` = P Z and `diagonal(nu)` = P_ii with nu = n lambda, one per column.

    >>> from lawful.surrogates import CholeskyFactor, Factor, SpectralFactor
    >>> issubclass(CholeskyFactor, Factor), issubclass(SpectralFactor, Factor)
    (True, True)
    """

    level: float  # mean of k(x_i, x_i): the scale of lambda
    computed: tuple[str, ...] = ()  # attributes that can be computed again from the others
    kept = True  # whether they are there, after `slim`

    def __init__(self, kernel: Kernel, sample: Sample, intercept: bool = True) -> None:
        xp = array_namespace(sample.weights)
        self.kernel, self.sample, self.intercept = kernel, sample, intercept
        self.w = sample.weights
        self.n = float(xp.sum(self.w))
        self.p = int(self.w.shape[0])
        self.root = xp.sqrt(self.w)  # the diagonal of D
        self.omega = self.w / self.n if intercept else xp.zeros_like(self.w)

    def _level(self, mean: float) -> float:
        """The mean of k(x_i, x_i), or 1 where the kernel is zero: lambda then has no scale, and nothing is learned."""
        if not np.isfinite(mean):
            raise ValueError(
                f"{self.kernel!r} is infinite at these inputs: their products leave double precision; rescale the inputs, for "
                "example with scikit-learn's StandardScaler"
            )
        return mean if mean > VANISHING else 1.0

    def nu(self, lam: Any, k: int) -> Array:
        """n lambda, one for each of k columns."""
        return like(np.broadcast_to(self.n * np.asarray(lam, dtype=float), (k,)).copy(), self.w)

    def code(self, Z: Array) -> Array:
        raise NotImplementedError

    def apply(self, code: Array, nu: Array) -> Array:
        raise NotImplementedError

    def diagonal(self, nu: Array) -> Array:
        raise NotImplementedError

    def solve(self, Z: Array, lam: Any) -> Solution:
        raise NotImplementedError

    def predict(self, X: Array, solution: Solution) -> Array:
        raise NotImplementedError

    def scores(self, X: Array, lam: float) -> Array:
        """alpha(x), (m, n): the weight of every training row; one lambda."""
        raise NotImplementedError

    def variance(self, X: Array, lam: Any) -> Array:
        """Kriging variance, (m, number of lambdas)."""
        raise NotImplementedError

    def _residuals(self, code: Array, nu: Array) -> Array:
        """(P Z)_i / P_ii for the merged inputs; 0 where nothing is left (one input, with intercept)."""
        xp = array_namespace(nu)
        diagonal = self.diagonal(nu)
        alone = diagonal <= 0
        return xp.where(alone, xp.zeros_like(diagonal), self.apply(code, nu) / (diagonal + like(alone, diagonal)))

    def left_out(self, means: Array, lam: Any) -> Array:
        """The prediction at every input without the rows that have it, (p, k), from the means of the labels."""
        return means - self._residuals(self.code(means), self.nu(lam, means.shape[1]))

    def loo(self, Z: Array, lam: Any) -> Array:
        """Out-of-sample residuals (n, k); with one input and an intercept, Z minus its mean."""
        means = self.sample.average(Z)
        residuals = self._residuals(self.code(means), self.nu(lam, Z.shape[1]))
        return Z - self.sample.spread(means - residuals)

    def loo_mse(self, Y: Array, lam: np.ndarray) -> np.ndarray:
        """Weighted mean squared leave-one-out residual for lam (L, k): L lambdas for each of the k columns."""
        xp = array_namespace(Y)
        L, k = np.broadcast_shapes(lam.shape, (1, Y.shape[1]))
        means = self.sample.average(Y)
        code = self.code(means)
        if L > 1:
            columns = xp.asarray(np.tile(np.arange(k), L), device=device_of(Y))
            code = xp.take(code, columns, axis=1)
        nu = self.nu(np.broadcast_to(lam, (L, k)).reshape(-1), L * k)
        between = xp.sum(self.w[:, None] * self._residuals(code, nu) ** 2, axis=0)
        return (to_numpy(between).reshape(L, k) + self.within(Y)) / self.n

    def within(self, Y: Array) -> np.ndarray:
        """Weighted sum of squares of each column around the means of equal inputs."""
        xp = array_namespace(Y)
        if self.p == Y.shape[0]:
            return np.zeros(Y.shape[1])
        squares = (Y - self.sample.spread(self.sample.average(Y))) ** 2
        weights = self.sample.share * self.sample.spread(self.w)
        return to_numpy(xp.sum(weights[:, None] * squares, axis=0))

    def slim(self, keep: bool = True) -> None:
        """Forget what only fitting needs: `predict` still works and, with `keep`, `scores` and `variance`."""

    def again(self) -> Factor:
        """A new factor like this one."""
        raise NotImplementedError

    def compute_again(self, names: list[str]) -> None:
        """What a state left out."""
        if self.kept:
            with blas_threads(1):
                new = self.again()
            self.__dict__.update((name, getattr(new, name)) for name in names)

    def spread_of_loo(self, lam: Any, k: int) -> Array:
        """(k,): mean over the inputs of 1 / P_ii, the leave-one-out predictive variance of a Gaussian process."""
        return array_namespace(self.w).mean(1 / self.diagonal(self.nu(lam, k)), axis=0)


class DualFactor(Factor):
    """A `Factor` through the kernel matrix."""

    def __init__(self, kernel: Kernel, sample: Sample, intercept: bool = True) -> None:
        super().__init__(kernel, sample, intercept)
        xp = array_namespace(self.w)
        with np.errstate(over="ignore", invalid="ignore"):
            self.K = kernel.gram(sample.X, sample.rows)
            self.level = self._level(float(xp.sum(self.w * xp.linalg.diagonal(self.K))) / self.n)
        self.mean_map = self.K @ self.omega  # k(x_i, .) averaged over the inputs
        if self.p > LARGE and is_numpy_namespace(xp):  # in the place of K
            block, self.K = self.K, None
            for i in range(0, self.p, PIECE):
                block[i : i + PIECE] *= self.root[i : i + PIECE, None]
                block[i : i + PIECE] *= self.root[None, :]
        else:
            block = self.root[:, None] * self.K * self.root[None, :]
        if intercept:
            v = self.root / float(xp.sum(self.w)) ** 0.5
            mirror = xp.concat([v[:1] + 1, v[1:]])  # v >= 0, so v + e1 does not cancel
            self.mirror = mirror / float(xp.sum(mirror**2)) ** 0.5
            t = block @ self.mirror
            t = 2 * (t - float(xp.sum(self.mirror * t)) * self.mirror)
            if self.K is None:
                for i in range(0, self.p, PIECE):
                    block[i : i + PIECE] -= self.mirror[i : i + PIECE, None] * t[None, :]
                    block[i : i + PIECE] -= t[i : i + PIECE, None] * self.mirror[None, :]
                block = block[1:, 1:]
            else:
                block = (block - self.mirror[:, None] * t[None, :] - t[:, None] * self.mirror[None, :])[1:, 1:]
        self.block = block  # Q' D K D Q

    def _check_positive(self, s: Array) -> None:
        """Eigenvalues of the block far below zero: k is no kernel."""
        xp = array_namespace(s)
        if s.shape[0] and float(xp.min(s)) < -INDEFINITE * max(float(xp.max(s)), self.n * self.level):
            lowest, highest = float(xp.min(s)), float(xp.max(s))
            raise ValueError(NOT_POSITIVE.format(kernel=self.kernel, lowest=lowest, highest=highest))

    def _reduce(self, Z: Array) -> Array:
        """Q' Z."""
        return (Z - 2 * self.mirror[:, None] * (self.mirror @ Z)[None, :])[1:, :] if self.intercept else Z

    def _expand(self, A: Array) -> Array:
        """Q A."""
        if not self.intercept:
            return A
        xp = array_namespace(A)
        Z = xp.concat([xp.zeros((1, A.shape[1]), dtype=A.dtype, device=device_of(A)), A], axis=0)
        return Z - 2 * self.mirror[:, None] * (self.mirror @ Z)[None, :]

    def solve(self, Z: Array, lam: Any) -> Solution:
        means = self.sample.average(Z)
        coef = self.apply(self.code(means), self.nu(lam, Z.shape[1]))
        if self.K is None:
            return Solution(coef, self.omega @ means - self.mean_map @ coef)
        return Solution(coef, self.omega @ (means - self.K @ coef))

    def cross(self, X: Array) -> Array:
        return self.kernel.cross(X, self.sample.X, self.sample.rows)

    def predict(self, X: Array, solution: Solution) -> Array:
        return self.cross(X) @ solution.coef + solution.beta[None, :]

    def slim(self, keep: bool = True) -> None:
        del self.K

    def _centred(self, X: Array) -> Array:
        return self.cross(X) - self.mean_map[None, :]

    def scores(self, X: Array, lam: float) -> Array:
        k = self._centred(X).T
        merged = self.omega[:, None] + self.apply(self.code(k), self.nu(lam, k.shape[1]))
        return (self.sample.spread(merged) * self.sample.share[:, None]).T

    def _explained(self, k: Array, nu: Array) -> Array:
        """k' P k, (m, len(nu))."""
        raise NotImplementedError

    def variance(self, X: Array, lam: Any, cross: Array = None) -> Array:
        """`cross`: k between X and the sample, by who has it already."""
        xp = array_namespace(X)
        lam = np.atleast_1d(lam)
        cross = self.cross(X) if cross is None else cross
        prior = self.kernel.diag(X) - 2 * (cross @ self.omega) + self.omega @ self.mean_map
        k = cross - self.mean_map[None, :]
        variance = prior[:, None] - self._explained(k.T, self.nu(lam, lam.shape[0]))
        variance = variance + (like(lam, X)[None, :] if self.intercept else 0.0)
        return xp.where(variance > 0, variance, xp.zeros_like(variance))


class SpectralFactor(DualFactor):
    """Eigenvectors of the block: P = D U (s + n lambda)^-1 U' D for every lambda.

    >>> import numpy as np
    >>> from lawful.kernels import Gaussian
    >>> from lawful.surrogates import SpectralFactor, samples
    >>> k, X = Gaussian(1.0), np.linspace(0, 1, 9)[:, None]
    >>> factor = SpectralFactor(k, samples.distinct(X, np.arange(9), np.ones(9), k))
    >>> factor.predict(X[4:5], factor.solve(2 * X, 1e-6)).round(3)
    array([[1.]])
    """

    def __init__(self, kernel: Kernel, sample: Sample, intercept: bool = True) -> None:
        super().__init__(kernel, sample, intercept)
        xp = array_namespace(self.w)
        s, E = eigh(self.block)
        self._check_positive(s)
        self.s = xp.where(s > 0, s, xp.zeros_like(s))
        # n lambda below this is lost beside eigenvalues that are zero but for rounding
        self.least = LOST * float(xp.max(self.s)) - float(xp.min(self.s)) if s.shape[0] else 0.0
        self.U = self._expand(E)
        self.U2 = self.U**2
        del self.block

    def nu(self, lam: Any, k: int) -> Array:
        if self.n * float(np.min(lam)) < self.least:
            raise ValueError(TOO_SMALL.format(lam=float(np.min(lam)), least=EPS * self.level))
        return super().nu(lam, k)

    computed: tuple[str, ...] = ("U",)

    def again(self) -> Factor:
        return SpectralFactor(self.kernel, self.sample, self.intercept)

    def slim(self, keep: bool = True) -> None:
        super().slim(keep)
        del self.U2
        self.kept = keep
        if isinstance(self.kernel, Precomputed):
            self.computed = ()
        if not keep:
            del self.U

    def code(self, Z: Array) -> Array:
        return self.U.T @ (self.root[:, None] * Z)

    def apply(self, code: Array, nu: Array) -> Array:
        return self.root[:, None] * (self.U @ (code / (self.s[:, None] + nu[None, :])))

    def diagonal(self, nu: Array) -> Array:
        # a path asks for the same lambda for every task: compute each once
        xp = array_namespace(nu)
        values, inverse = np.unique(to_numpy(nu), return_inverse=True)
        once = self.w[:, None] * (self.U2 @ (1 / (self.s[:, None] + like(values, nu)[None, :])))
        return xp.take(once, xp.asarray(inverse, device=device_of(nu)), axis=1)

    def _explained(self, k: Array, nu: Array) -> Array:
        return (self.code(k) ** 2).T @ (1 / (self.s[:, None] + nu[None, :]))


class CholeskyFactor(DualFactor):
    """One lambda: L L' = Q' D K D Q + n lambda I.

    >>> import numpy as np
    >>> from lawful.kernels import Gaussian
    >>> from lawful.surrogates import CholeskyFactor, samples
    >>> k, X = Gaussian(1.0), np.linspace(0, 1, 9)[:, None]
    >>> factor = CholeskyFactor(k, samples.distinct(X, np.arange(9), np.ones(9), k), 1e-6)
    >>> factor.predict(X[4:5], factor.solve(2 * X, 1e-6)).round(3)
    array([[1.]])
    """

    def __init__(self, kernel: Kernel, sample: Sample, lam: float, intercept: bool = True, highest: float = 0.0) -> None:
        super().__init__(kernel, sample, intercept)
        self._diagonal: Array = None  # of P over w, once it was asked for
        self.L, self.lam = self._cholesky(float(lam), highest)
        del self.block

    def _cholesky(self, lam: float, highest: float) -> tuple[Array, float]:
        """L and its lambda, which is raised (up to `highest`) where rounding has made the matrix singular."""
        xp = array_namespace(self.w)
        try:
            if self.K is None:
                return cholesky_in_place(self.block, self.n * lam), lam
            eye = xp.eye(self.block.shape[0], dtype=self.w.dtype, device=device_of(self.w))
            return xp.linalg.cholesky(self.block + self.n * lam * eye), lam
        except Exception as error:  # each library has its own
            if not self.kernel.trusted:
                self._check_positive(eigh(self.block)[0])
            if lam > highest:
                raise ValueError(TOO_SMALL.format(lam=lam, least=EPS * self.level)) from error
        return self._cholesky(3 * lam, highest)

    computed: tuple[str, ...] = ("L",)

    def again(self) -> Factor:
        return CholeskyFactor(self.kernel, self.sample, self.lam, self.intercept)

    def slim(self, keep: bool = True) -> None:
        super().slim(keep)
        self._diagonal, self.kept = None, keep
        if isinstance(self.kernel, Precomputed):
            self.computed = ()
        if not keep:
            del self.L

    def code(self, Z: Array) -> Array:
        return solve_lower(self.L, self._reduce(self.root[:, None] * Z))

    def apply(self, code: Array, nu: Array) -> Array:
        return self.root[:, None] * self._expand(solve_lower(self.L, code, transpose=True))

    def diagonal(self, nu: Array) -> Array:
        xp = array_namespace(nu)
        if self._diagonal is None and self.p > MANY and is_numpy_namespace(xp):
            self._diagonal = self.w * self._inverse_squares()
        elif self._diagonal is None:
            eye = xp.eye(self.p, dtype=nu.dtype, device=device_of(nu))
            self._diagonal = self.w * xp.sum(solve_lower(self.L, self._reduce(eye)) ** 2, axis=0)
        return xp.broadcast_to(self._diagonal[:, None], (self.p, nu.shape[0]))

    def _inverse_squares(self) -> np.ndarray:
        """The squared columns of L^-1 Q', summed: column j of L^-1 is zero above row j, so a third of a full inverse."""
        first = int(self.intercept)
        lean = solve_lower(self.L, self.mirror[1:, None])[:, 0] if self.intercept else None
        out = np.empty(self.p)
        for i in range(0, self.p, PIECE):
            top = max(i - first, 0)
            stop = min(i + PIECE, self.p)
            columns = np.zeros((self.L.shape[0] - top, stop - i))
            at = np.arange(max(i, first), stop)
            columns[at - first - top, at - i] = 1.0
            found = solve_lower(self.L[top:, top:], columns)
            out[i:stop] = np.sum(found**2, axis=0)
            if lean is not None:  # |a - 2 m_i c|^2 with a = 0 above `top`
                m, c = self.mirror[i:stop], lean[top:]
                found -= 2 * c[:, None] * m[None, :]
                out[i:stop] = np.sum(found**2, axis=0) + 4 * m**2 * float(np.sum(lean[:top] ** 2))
        return out

    def _explained(self, k: Array, nu: Array) -> Array:
        explained = array_namespace(k).sum(self.code(k) ** 2, axis=0)
        return array_namespace(k).broadcast_to(explained[:, None], (k.shape[1], nu.shape[0]))
