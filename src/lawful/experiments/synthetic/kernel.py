"""The Gaussian kernel on [-pi, pi] has few directions above rounding: with features for them, n no longer matters.

    k(x, z) = phi(x).phi(z) + E,    |E| about 1e-13,    phi(x) = L^-1 k(pivots, x)

The pivots are those of a pivoted Cholesky factor of the kernel on a fine grid of the interval, so phi depends on sigma alone.
Ridge regressions and MTRL then cost O(n r^2) instead of O(n^3), r = 30 for sigma = 1, and hardly change
(tests/test_reproduce_synthetic.py).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from lawful.kernels import Gaussian

GRID = np.linspace(-np.pi, np.pi, 400)[:, None]
ENOUGH = 250  # of 400 grid points: beyond, the grid is too coarse for the kernel and nothing would be gained


class SmoothGaussian(Gaussian):
    """exp(-(x - z)^2 / sigma^2) for inputs in [-pi, pi], with explicit features."""

    def features(self, X: np.ndarray) -> np.ndarray:
        pivots, L = factor(number(self.sigma))
        return solve_triangular(L, self(X, pivots).T, lower=True, check_finite=False).T


def number(sigma: object) -> float:
    """The one length scale of a kernel on a line."""
    return float(np.asarray(sigma, dtype=float).reshape(-1)[0])


@lru_cache(maxsize=256)
def factor(sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Pivots (r, 1) and the triangle L (r, r)."""
    L, order, rank, _ = dpstrf(Gaussian(sigma)(GRID, GRID), tol=len(GRID) * float(np.finfo(float).eps), lower=1)
    return GRID[order[:rank] - 1], np.tril(L[:rank, :rank])


def gaussian(sigma: object) -> Gaussian:
    """The kernel, with features where it is smooth enough for them."""
    width = number(sigma)
    smooth = len(factor(width)[0]) <= ENOUGH
    return SmoothGaussian(width) if smooth else Gaussian(width)
