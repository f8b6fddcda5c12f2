"""Ridges of more inputs than can be solved exactly: what M centres share, and noise that says what each input has beside that.

With the features F = L^-1 k_M, L L' = K_MM, of M centres among the inputs, the kernel matrix is replaced by

    F F' + Lambda,    Lambda = diag(K - F F') + n lambda W^-1,    P = its inverse less the constant's share, as in `large`,

so that every input keeps its own variance (the fully independent conditional of Snelson and Ghahramani 2006). All follows from
H = I + F' Lambda^-1 F, which is summed over blocks of inputs: time n M^2, memory M^2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk

from lawful._array import Array, array_namespace, device_of, is_numpy_namespace, like, solve_lower, to_numpy
from lawful.kernels import Kernel
from lawful.surrogates.exact import Factor, Sample, Solution
from lawful.surrogates.products import times, values

__all__ = ["SparseFactor"]

CENTRES = 3000  # benchmarks/sizes.py
BLOCK = 4096
JITTER = 1e-14  # times M k(x, x), the least that is added to K_MM


class SparseFactor(Factor):
    """One kernel and one lambda, for any number of inputs.

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
        xp, p = array_namespace(self.w), self.p
        self.lam = lam
        chosen = np.sort(np.random.default_rng(0).permutation(p)[:CENTRES])
        self.points = xp.take(sample.X, sample.rows, axis=0)
        self.centers = xp.take(self.points, xp.asarray(chosen, device=device_of(self.w)), axis=0)
        self.level = self._level(float(xp.mean(kernel.diag(self.centers))))
        M = self.centers.shape[0]
        self.root = K = self._root()
        self.noise = lam * self.n / self.w
        self.top = kernel.diag(self.points)
        self.spread = xp.zeros_like(self.w)  # Lambda
        host = is_numpy_namespace(xp)
        H = np.zeros((M, M), order="F") if host else 0.0 * K
        for part, F in self._features():
            rest = self.top[part] - xp.sum(F * F, axis=0)
            self.spread[part] = self.noise[part] + xp.where(rest > 0, rest, xp.zeros_like(rest))
            F = F / self.spread[part] ** 0.5
            H = dsyrk(1.0, F, beta=1.0, c=H, overwrite_c=1, lower=1) if host else H + F @ F.T
        H = np.tril(H) + np.tril(H, -1).T if host else H
        self.H = xp.linalg.cholesky(H + xp.eye(M, dtype=K.dtype, device=device_of(K)))
        ones = xp.ones((p, 1), dtype=self.w.dtype, device=device_of(self.w))
        self.u, self._diagonal = self._inverse(ones, diagonal=True)
        if intercept:
            self._diagonal = self._diagonal - self.u[:, 0] ** 2 / xp.sum(self.u)
        self._solved: dict[bytes, tuple[Array, Array]] = {}

    computed: tuple[str, ...] = ("root",)

    def compute_again(self, names: list[str]) -> None:
        self.root = self._root()

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

    def _features(self) -> Any:
        """(inputs, F' of them), block by block."""
        for i in range(0, self.p, BLOCK):
            part = slice(i, min(i + BLOCK, self.p))
            yield part, solve_lower(self.root, values(self.kernel, self.centers, self.points[part]))

    def _inverse(self, B: Array, diagonal: bool = False) -> tuple[Array, Array]:
        """(F F' + Lambda)^-1 B, and its diagonal."""
        xp = array_namespace(B)
        right = 0.0
        for part, F in self._features():
            right = right + F @ (B[part] / self.spread[part][:, None])
        inner = solve_lower(self.H, solve_lower(self.H, right), transpose=True)
        out, diag = xp.zeros_like(B), xp.zeros_like(self.w)
        for part, F in self._features():
            out[part] = (B[part] - F.T @ inner) / self.spread[part][:, None]
            if diagonal:
                a = solve_lower(self.H, F)
                diag[part] = (1 - xp.sum(a * a, axis=0) / self.spread[part]) / self.spread[part]
        return out, diag

    def slim(self, keep: bool = True) -> None:
        for name in ("noise", "spread", "top", "points", "u", "_solved"):
            self.__dict__.pop(name, None)

    def code(self, Z: Array) -> Array:
        return Z

    def apply(self, code: Array, nu: Array) -> Array:
        """P z, for means of labels."""
        xp = array_namespace(code)
        keys = [to_numpy(code[:, j]).tobytes() for j in range(code.shape[1])]
        new = [j for j, key in enumerate(keys) if key not in self._solved]
        if new:
            found = self._inverse(code[:, new])[0]
            if self.intercept:
                found = found - self.u * (xp.sum(found, axis=0) / xp.sum(self.u))[None, :]
            self._solved.update((keys[j], found[:, i]) for i, j in enumerate(new))
        return xp.stack([self._solved[key] for key in keys], axis=1)

    def diagonal(self, nu: Array) -> Array:
        return array_namespace(nu).broadcast_to(self._diagonal[:, None], (self.p, nu.shape[0]))

    def solve(self, Z: Array, lam: Any) -> Solution:
        """Coefficients of the centres."""
        xp = array_namespace(Z)
        means = self.sample.average(Z)
        beta = self.u[:, 0] @ means / xp.sum(self.u) if self.intercept else xp.zeros_like(means[0, :])
        c = self.apply(means, like([0.0], means))
        inner = 0.0
        for part, F in self._features():
            inner = inner + F @ c[part]
        return Solution(solve_lower(self.root, inner, transpose=True), beta)

    def predict(self, X: Array, solution: Solution) -> Array:
        return times(self.kernel, X, self.centers, solution.coef) + solution.beta[None, :]

    def variance(self, X: Array, lam: Any, cross: Array = None) -> Array:
        xp = array_namespace(X)
        out = []
        for i in range(0, max(X.shape[0], 1), BLOCK):
            part = X[i : i + BLOCK]
            F = solve_lower(self.root, values(self.kernel, self.centers, part))
            a = solve_lower(self.H, F)
            rest = self.kernel.diag(part) - xp.sum(F * F, axis=0)
            out.append(xp.where(rest > 0, rest, xp.zeros_like(rest)) + xp.sum(a * a, axis=0))
        spread = xp.concat(out) + (self.lam if self.intercept else 0.0)
        return xp.broadcast_to(spread[:, None], (X.shape[0], np.atleast_1d(lam).shape[0]))
