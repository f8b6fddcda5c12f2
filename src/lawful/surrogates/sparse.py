"""Ridges of more inputs than can be solved exactly: what M centres share, and noise that says what each input has beside that.

With the features F = L^-1 k_M, L L' = K_MM, of M centres among the inputs, the kernel matrix is replaced by

    F F' + Lambda,    Lambda = diag(K - F F') + n lambda W^-1,    P = its inverse less the constant's share, as in `large`,

so that every input keeps its own variance (the fully independent conditional of Snelson and Ghahramani 2006). All follows from
H = I + F' Lambda^-1 F, summed over blocks of inputs: 2 n M^2 operations, M^2 numbers. So M is what a fixed number of
operations allows: all inputs where these are few, and the fewer the more they are, without a step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk

from lawful._array import Array, array_namespace, device_of, is_numpy_namespace, solve_lower
from lawful.kernels import Kernel
from lawful.surrogates.exact import Sample, Solution
from lawful.surrogates.large import JUDGED, Condensed
from lawful.surrogates.products import times, values

__all__ = ["SparseFactor", "affordable_centres"]

WORK, DEVICE_WORK = 1.8e12, 3e13  # operations for each kernel: 3000 centres among 100,000 inputs; benchmarks/sizes.py
FEWEST, MOST = 2000, 12_000  # centres
BLOCK = 4096
JITTER = 1e-14  # times M k(x, x), the least that is added to K_MM
LEAST = 1e-9  # of k(x, x): noise below it is lost in sums of so many


def affordable_centres(p: int, host: bool) -> int:
    return min(p, int(np.clip(((WORK if host else DEVICE_WORK) / (2 * p)) ** 0.5, FEWEST, MOST)))


class SparseFactor(Condensed):
    """One kernel and one lambda, for any number of inputs; on NumPy or torch.

    >>> import numpy as np
    >>> from lawful.kernels import Gaussian
    >>> from lawful.surrogates import samples
    >>> k, X = Gaussian(1.0), np.linspace(0, 1, 9)[:, None]
    >>> factor = SparseFactor(k, samples.distinct(X, np.arange(9), np.ones(9), k), 1e-6)
    >>> factor.predict(X[4:5], factor.solve(2 * X, 1e-6)).round(3)
    array([[1.]])
    """

    def __init__(self, kernel: Kernel, sample: Sample, lam: float, intercept: bool = True) -> None:
        super().__init__(kernel, sample, intercept)
        self._start()
        xp = array_namespace(self.w)
        host = is_numpy_namespace(xp)
        self.lam, self.noise = lam, self._noise_of(lam)
        M = affordable_centres(self.p, host)
        self.centers = self.inputs[:M]
        self.root = self._root()
        H = np.zeros((M, M), order="F") if host else xp.zeros_like(self.root)
        Lambda = []
        for i in range(0, self.p, BLOCK):
            part = slice(i, i + BLOCK)
            F, rest = self._features(self.inputs[part])
            Lambda.append(xp.maximum(self.noise[part], LEAST * self.level + 0 * rest) + rest)
            F = F / Lambda[-1][None, :] ** 0.5
            H = dsyrk(1.0, F, beta=1.0, c=H, overwrite_c=1, lower=1) if host else H + F @ F.T
        self.Lambda = xp.concat(Lambda)
        H = np.tril(H) + np.tril(H, -1).T if host else H
        self.H = xp.linalg.cholesky(H + xp.eye(M, dtype=H.dtype, device=device_of(H)))
        self.u = self._inverse(xp.ones((self.p, 1), dtype=self.w.dtype, device=device_of(self.w)))
        judged = slice(self.p - min(JUDGED, self.p), self.p)
        a, rest = solve_lower(self.H, self._features(self.inputs[judged])[0]), self.Lambda[judged]
        self._measure((1 - xp.sum(a * a, axis=0) / rest) / rest)

    def _root(self) -> Array:
        xp, M = array_namespace(self.centers), self.centers.shape[0]
        K, jitter = values(self.kernel, self.centers, self.centers), JITTER * self.level * M
        eye = xp.eye(M, dtype=K.dtype, device=device_of(K))
        while True:
            try:
                return xp.linalg.cholesky(K + jitter * eye)
            except Exception:  # each library has its own
                if jitter > self.level:
                    raise
                jitter *= 10

    def _features(self, X: Array) -> tuple[Array, Array]:
        """F' at some inputs, and what is left there of k(x, x)."""
        F = solve_lower(self.root, values(self.kernel, self.centers, X))
        xp = array_namespace(F)
        rest = self.kernel.diag(X) - xp.sum(F * F, axis=0)
        return F, xp.where(rest > 0, rest, xp.zeros_like(rest))

    def _inverse(self, B: Array) -> Array:
        """(F F' + Lambda)^-1 B; products with F are those of the kernel."""
        scaled = B / self.Lambda[:, None]
        inner = solve_lower(self.root, times(self.kernel, self.centers, self.inputs, scaled))
        inner = solve_lower(self.H, solve_lower(self.H, inner), transpose=True)
        inner = solve_lower(self.root, inner, transpose=True)
        return scaled - times(self.kernel, self.inputs, self.centers, inner) / self.Lambda[:, None]

    def solve(self, Z: Array, lam: Any) -> Solution:
        """Coefficients of the centres."""
        means = self.sample.average(Z)
        c = self._ordered(self.apply(means, None), self.order)
        inner = solve_lower(self.root, times(self.kernel, self.centers, self.inputs, c))
        return Solution(solve_lower(self.root, inner, transpose=True), self._constants(means))

    def predict(self, X: Array, solution: Solution) -> Array:
        return times(self.kernel, X, self.centers, solution.coef) + solution.beta[None, :]
