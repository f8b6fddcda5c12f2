"""The kernel between queries: a constant, what X says, and how alike the queries' ratings are.

    k(u, v) = constant + k_X(x_u, x_v) + similarity phi_u . phi_v
    phi_u   = (r_u - mean of r_u) / sqrt(|r_u - mean|^2 + 10 s^2)      over the items that u rated, 0 elsewhere

s^2 is the variance of a rating within its query: a profile must be longer than ten ratings to count more than half. Without the
constant a linear kernel cannot say that everyone prefers p to q. A query without ratings has phi = 0.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse

from lawful.kernels import as_kernel
from lawful.ratings import DAMPING, profile_features, within_variance

FEW = 64  # features: fewer than queries, as a rule
DENSE = 0.3  # of the ratings are there: a dense product is faster


class Standardized:
    """z.z' with the columns of X centred and scaled on the training queries, so that k(x, x) is 1 on average.

    Columns with many values get unit variance; those with two become 0 and 1, for unit variance would make the rarest of a
    variable's indicators its loudest.
    """

    def fit(self, X: np.ndarray) -> Self:
        self.mean_ = X.mean(axis=0)
        low, high = X.min(axis=0), X.max(axis=0)
        binary = ((low == X) | (high == X)).all(axis=0)
        scale = np.where(binary, high - low, X.std(axis=0))
        self.scale_ = np.where(scale > 1e-12 * (1 + np.abs(self.mean_)), scale, np.inf)
        size = np.sqrt(np.mean(np.sum(self.features(X) ** 2, axis=1)))
        self.scale_ = self.scale_ * (size if size > 0 else 1.0)
        return self

    def features(self, X: np.ndarray) -> np.ndarray:
        return (X - self.mean_) / self.scale_


class QueryKernel:
    """The sum above, fitted to the training queries. X or the ratings may be None."""

    def __init__(self, kernel: Any, constant: float, similarity: float) -> None:
        self.kernel, self.constant, self.similarity = kernel, constant, similarity

    def fit(self, X: np.ndarray | None, R: sparse.csr_array) -> Self:
        self.n_, self.X_ = R.shape[0], X
        if X is not None and self.kernel is None:
            self.base_: Any = Standardized().fit(X)
            self.X_ = self.base_.features(X)
        elif X is not None:
            self.base_ = as_kernel(self.kernel)
        self.damping_ = DAMPING * within_variance(R)
        self.phi_ = profile_features(R, self.damping_) if self.similarity else None
        return self

    def features(self) -> np.ndarray | None:
        """Z (n, r) with gram() = Z Z', where the kernel is linear in X and r is small; else None."""
        if self.phi_ is not None or (self.X_ is not None and (self.kernel is not None or self.X_.shape[1] >= FEW)):
            return None
        one = np.full((self.n_, 1), float(np.sqrt(self.constant)))
        return one if self.X_ is None else np.hstack([one, self.X_])

    def gram(self) -> np.ndarray:
        """(n, n)."""
        if self.X_ is None:
            K = np.zeros((self.n_, self.n_))
        elif self.kernel is None:
            K = self.X_ @ self.X_.T
        else:
            K = np.array(self.base_.gram(self.X_, np.arange(self.n_)), dtype=np.float64)
        return self._finish(K, self.phi_)

    def cross(self, X: np.ndarray | None, ratings: sparse.csr_array | None, m: int) -> np.ndarray:
        """(m, n) between new queries and the training queries."""
        if self.X_ is None or X is None:
            K = np.zeros((m, self.n_))
        elif self.kernel is None:
            K = self.base_.features(X) @ self.X_.T
        else:
            K = np.array(self.base_.cross(X, self.X_, np.arange(self.n_)), dtype=np.float64)
        return self._finish(K, None if ratings is None or self.phi_ is None else profile_features(ratings, self.damping_))

    def _finish(self, K: np.ndarray, phi: sparse.csr_array | None) -> np.ndarray:
        if not np.isfinite(K).all():
            raise ValueError("PairwiseRidge: the kernel returned NaN or infinities; check its parameters and the inputs")
        K += self.constant
        if phi is not None and self.phi_ is not None:
            if self.phi_.nnz > DENSE * self.phi_.shape[0] * self.phi_.shape[1]:
                product = phi.toarray() @ self.phi_.toarray().T
            else:
                product = (phi @ self.phi_.T).toarray()
            K += self.similarity * product
        return np.ascontiguousarray(K)
