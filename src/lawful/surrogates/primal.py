"""The same ridge through explicit features: k(x, x') = phi(x).phi(x') with fewer features than rows.

With A = D (Phi - 1 omega' Phi) (centred when there is an intercept), A'A = V diag(s) V' and nu = n lambda,

    theta = V (s + nu)^-1 V' A' D z            f(x) = phi_c(x).theta + sum_i omega_i z_i
    nu P  = D [I - v v' - A V (s + nu)^-1 V' A'] D              v = D 1 / |D 1| (absent without intercept)
    kriging variance = nu phi_c(x)' V (s + nu)^-1 V' phi_c(x) + lambda

so a fit costs O(n q^2) instead of O(n^3). nu P is one minus the hat matrix, and its nu cancels in the
leave-one-out residual (P z)_i / P_ii. Numbers agree with `exact` to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, eigh, like
from lawful.kernels import Kernel
from lawful.surrogates.exact import Factor, Sample, Solution

__all__ = ["PrimalFactor"]


class PrimalFactor(Factor):
    """A `Factor` for kernels with `features(X)`; coefficients are those of the features.

    >>> import numpy as np
    >>> from lawful.kernels import Linear
    >>> from lawful.surrogates import PrimalFactor
    >>> from lawful.surrogates.samples import distinct
    >>> X = np.linspace(0, 1, 9)[:, None]
    >>> sample = distinct(X, np.arange(9), np.ones(9), Linear())
    >>> factor = PrimalFactor(Linear(), sample)
    >>> factor.predict(X[4:5], factor.solve(2 * X, 1e-6)).round(3)
    array([[1.]])
    """

    def __init__(self, kernel: Kernel, sample: Sample, intercept: bool = True) -> None:
        super().__init__(kernel, sample, intercept)
        xp = array_namespace(self.w)
        known = getattr(kernel, "known", None)  # features of the sample itself, where a kernel had to compute them anyway
        Phi = self._features(xp.take(sample.X, sample.rows, axis=0)) if known is None else known
        with np.errstate(over="ignore"):
            self.level = self._level(float(xp.sum(self.w[:, None] * Phi**2)) / self.n)
        self.center = self.omega @ Phi
        A = self.root[:, None] * (Phi - self.center[None, :])
        s, V = eigh(A.T @ A)
        # A v below rounding carries no signal; dividing by its tiny s would amplify it
        kept = int(xp.sum(xp.astype(s > float(xp.max(s)) * 1e-15, xp.int64)))
        self.V = V[:, V.shape[1] - kept :]
        self.s = s[s.shape[0] - kept :]
        self.B = A @ self.V
        self.v2 = self.omega if intercept else xp.zeros_like(self.omega)

    def _features(self, X: Array) -> Array:
        return self.kernel.features(X)  # type: ignore[attr-defined]

    def code(self, Z: Array) -> Array:
        """[B' D z; D z centred], stacked so that the columns stay one per regression."""
        centred = self.root[:, None] * (Z - (self.omega @ Z)[None, :])
        return array_namespace(Z).concat([self.B.T @ centred, centred], axis=0)

    def _theta(self, code: Array, nu: Array) -> Array:
        return code[: self.s.shape[0], :] / (self.s[:, None] + nu[None, :])

    def apply(self, code: Array, nu: Array) -> Array:
        residual = code[self.s.shape[0] :, :] - self.B @ self._theta(code, nu)
        return self.root[:, None] * residual / nu[None, :]

    def _free(self, nu: Array) -> Array:
        """The diagonal of one minus the hat matrix."""
        return 1 - self.v2[:, None] - self.B**2 @ (1 / (self.s[:, None] + nu[None, :]))

    def diagonal(self, nu: Array) -> Array:
        return self.w[:, None] * self._free(nu) / nu[None, :]

    def _residuals(self, code: Array, nu: Array) -> Array:
        xp = array_namespace(nu)
        free = self._free(nu)  # nu cancels, however small it is
        alone = free <= 0
        left = (code[self.s.shape[0] :, :] - self.B @ self._theta(code, nu)) / self.root[:, None]
        return xp.where(alone, xp.zeros_like(free), left / (free + like(alone, free)))

    def solve(self, Z: Array, lam: Any) -> Solution:
        means = self.sample.average(Z)
        theta = self.V @ self._theta(self.code(means), self.nu(lam, Z.shape[1]))
        return Solution(theta, self.omega @ means - self.center @ theta)

    def predict(self, X: Array, solution: Solution) -> Array:
        return self._features(X) @ solution.coef + solution.beta[None, :]

    def scores(self, X: Array, lam: float) -> Array:
        phi = (self._features(X) - self.center[None, :]) @ self.V
        nu = self.nu(lam, 1)
        merged = self.omega[:, None] + self.root[:, None] * (self.B @ (phi / (self.s + nu)[None, :]).T)
        return (self.sample.spread(merged) * self.sample.share[:, None]).T

    def variance(self, X: Array, lam: Any) -> Array:
        xp = array_namespace(X)
        lam = np.atleast_1d(lam)
        nu = self.nu(lam, lam.shape[0])
        phi = self._features(X) - self.center[None, :]
        inside = phi @ self.V
        outside = xp.sum(phi**2, axis=1) - xp.sum(inside**2, axis=1)  # directions the data never saw
        outside = xp.where(outside > 0, outside, xp.zeros_like(outside))
        variance = inside**2 @ (nu[None, :] / (self.s[:, None] + nu[None, :])) + outside[:, None]
        return variance + (like(lam, X)[None, :] if self.intercept else 0.0)
