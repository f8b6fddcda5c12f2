"""Kernel matrices of a sample and their slopes, for the parameters that evidence tunes.

theta is t_j = log of the length scale of every input and, for `Additive`, the log of share / (1 - share). For a symmetric W

    contract(W)_j = sum_ab W_ab dR_ab / dtheta_j,      slopes(V)_j = dR/dtheta_j V

For k = f(q) the d of them are two products of an n x n matrix with an n x d one, because
sum_ab M_ab (u_aj - u_bj)^2 = 2 (M1)' u_j^2 - 2 u_j' M u_j for M = W o (-f') and inputs u in length scales.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lawful.kernels import Additive, Stationary, Trend

__all__ = ["AdditiveGeometry", "Geometry", "TrendGeometry", "geometry"]

KEPT = 2e7  # numbers: one kernel matrix for every input is kept up to here, else computed again


def geometry(kernel: Stationary, X: np.ndarray, theta: np.ndarray) -> Geometry:
    """The one that suits a kernel."""
    if isinstance(kernel, Trend):
        return TrendGeometry(kernel, X, theta)
    return (AdditiveGeometry if isinstance(kernel, Additive) else Geometry)(kernel, X, theta)


class Geometry:
    """k = f(q) between the inputs: what tasks on the same inputs share."""

    def __init__(self, kernel: Stationary, X: np.ndarray, theta: np.ndarray) -> None:
        self.power = kernel.power
        self.U = (X - X.mean(axis=0)) / np.exp(theta[: X.shape[1]])
        if kernel.power == 2 and kernel.smooth:
            square = np.einsum("ij,ij->i", self.U, self.U)
            q = self.U @ self.U.T
            q *= -2
            q += square[:, None]
            q += square[None, :]
            np.maximum(q, 0.0, out=q)
            np.fill_diagonal(q, 0.0)
        else:
            q = type(kernel)(**(kernel.get_params() | {"sigma": 1.0})).distance(self.U, self.U)
        self.R, self.decay = kernel.profile_and_decay(q)

    def contract(self, W: np.ndarray) -> np.ndarray:
        """sum_ab W_ab dR_ab / dtheta_j for a symmetric W."""
        M = W * self.decay
        if self.power == 2:
            return 4 * (M.sum(axis=1) @ self.U**2 - np.einsum("ij,ij->j", self.U, M @ self.U))
        return np.array([float(np.sum(M * np.abs(u[:, None] - u[None, :]))) for u in self.U.T])

    def slopes(self, V: np.ndarray) -> list[np.ndarray]:
        """dR/dtheta_j V for every j."""
        if self.power != 2:
            return [(self.decay * np.abs(u[:, None] - u[None, :])) @ V for u in self.U.T]
        k = V.shape[1]
        stacked = np.concatenate([V] + [u[:, None] * V for u in self.U.T] + [(u**2)[:, None] * V for u in self.U.T], axis=1)
        parts = np.split(self.decay @ stacked, stacked.shape[1] // k, axis=1)
        d = self.U.shape[1]
        return [
            2 * ((u**2)[:, None] * parts[0] - 2 * u[:, None] * parts[1 + j] + parts[1 + d + j]) for j, u in enumerate(self.U.T)
        ]


class AdditiveGeometry(Geometry):
    """R = (1 - share) product + share mean_j E_j, E_j = exp(-(u_j - u_j')^2)."""

    def __init__(self, kernel: Additive, X: np.ndarray, theta: np.ndarray) -> None:
        super().__init__(kernel, X, theta)
        n, d = X.shape
        self.share = float(1 / (1 + np.exp(-theta[d])))
        self.kept: list[np.ndarray] | None = None
        if d * n * n <= KEPT:
            self.kept = [self._alone(u) for u in self.U.T]
        self.apart = self.R  # the product
        self.alone = sum(self._each()) / d
        self.R = (1 - self.share) * self.apart + self.share * self.alone
        self.decay = self.decay * (1 - self.share)

    @staticmethod
    def _alone(u: np.ndarray) -> np.ndarray:
        E = np.subtract.outer(u, u)
        E *= E
        np.negative(E, out=E)
        return np.exp(E, out=E)

    def _each(self) -> Iterator[np.ndarray]:
        yield from self.kept if self.kept is not None else (self._alone(u) for u in self.U.T)

    @property
    def _bend(self) -> float:
        """dshare / dlogit."""
        return self.share * (1 - self.share)

    def contract(self, W: np.ndarray) -> np.ndarray:
        out, each = super().contract(W), 4 * self.share / self.U.shape[1]
        for j, (u, E) in enumerate(zip(self.U.T, self._each())):
            M = W * E
            out[j] += each * float(M.sum(axis=1) @ u**2 - u @ M @ u)
        return np.append(out, self._bend * (np.vdot(W, self.alone) - np.vdot(W, self.apart)))

    def slopes(self, V: np.ndarray) -> list[np.ndarray]:
        out, k, each = super().slopes(V), V.shape[1], 2 * self.share / self.U.shape[1]
        for j, (u, E) in enumerate(zip(self.U.T, self._each())):
            v = u[:, None]
            got = E @ np.concatenate([V, v * V, v**2 * V], axis=1)
            out[j] = out[j] + each * (v**2 * got[:, :k] - 2 * v * got[:, k : 2 * k] + got[:, 2 * k :])
        return [*out, self._bend * (self.alone @ V - self.apart @ V)]


class TrendGeometry(Geometry):
    """R = 2 U U'."""

    def __init__(self, kernel: Trend, X: np.ndarray, theta: np.ndarray) -> None:
        self.U = (X - X.mean(axis=0)) / np.exp(theta)
        self.R = 2 * self.U @ self.U.T

    def contract(self, W: np.ndarray) -> np.ndarray:
        return -4 * np.einsum("ij,ij->j", self.U, W @ self.U)

    def slopes(self, V: np.ndarray) -> list[np.ndarray]:
        return [-4 * np.outer(u, u @ V) for u in self.U.T]
