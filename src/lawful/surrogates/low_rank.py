"""A smooth kernel on many rows has few directions above rounding: a pivoted Cholesky factor finds them.

    K = L L' + E,    trace(E) <= p eps max k(x, x),    L (p, r)

Then phi(x) = L_11^-1 k(pivots, x) are r features with phi(x).phi(x') = k(x, x') to that accuracy, and the ridge can go through
them (`primal`): O(p r^2) instead of the O(p^3) of eigenvectors. E disturbs a solution by E / (n lambda), which for lambda at
least 1e-10 of k(x, x) is what the rounding of K itself does.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from lawful.kernels import Kernel, Precomputed
from lawful.surrogates.exact import Sample

ROWS = 256  # fewer are decomposed as fast as they are examined
SHARE = 1.5  # worth it when there are so many times fewer features than rows
SMALLEST = 1e-10  # lambda relative to k(x, x)


class LowRank(Kernel):
    """The kernel through its values at some of the training rows; `known` are the features of all of them."""

    def __init__(self, kernel: Kernel, X: np.ndarray, pivots: np.ndarray, L: np.ndarray, known: np.ndarray) -> None:
        self.kernel, self.X, self.pivots, self.L, self.known = kernel, X, pivots, L, known

    def features(self, X: np.ndarray) -> np.ndarray:
        return solve_triangular(self.L, self.kernel.cross(X, self.X, self.pivots).T, lower=True, check_finite=False).T


def low_rank(kernel: Kernel, sample: Sample, smallest: float) -> LowRank | None:
    """The kernel with as few features as its matrix on the sample has directions; None where that does not pay or not hold.

    `smallest` is the least lambda that will be used.
    """
    p = sample.points.shape[0]
    if p < ROWS or isinstance(kernel, Precomputed) or not isinstance(sample.X, np.ndarray):
        return None
    K = kernel.gram(sample.X, sample.rows)
    top = float(K.diagonal().max())
    if smallest < SMALLEST * top:
        return None
    L, order, rank, _ = dpstrf(K, tol=p * float(np.finfo(float).eps) * top, lower=1)
    if rank * SHARE > p:
        return None
    known = np.empty((p, rank))
    known[order - 1] = np.tril(L[:, :rank])
    return LowRank(kernel, sample.X, sample.points[order[:rank] - 1], known[order[:rank] - 1], known)
