"""What the attributes of a query say of each item through a tuned kernel: a prior for queries that have rated nothing."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from lawful.kernels import Gaussian
from lawful.ratings import as_ratings, centred, users_of, with_data
from lawful.surrogates.nystrom import NystromRidge
from lawful.surrogates.pairs._targets import spread
from lawful.surrogates.ridge import KernelRidge
from lawful.tasks import Tasks

__all__ = ["KernelPrior"]

EXACT = 1e10  # cubed queries times factorisations of the ridge without centres: 2000 complete rankings in seven seconds
ROWS = 5e4  # queries times factorisations of the ridge on centres


class KernelPrior(BaseEstimator):
    """F_i(x) = g_i(x): the ratings of each item, centred and scaled query by query, regressed on X by a Gaussian kernel.

    It has one length scale per input, by evidence, the same for all items: scales of their own and averages of several kernels
    were no better in `benchmarks/labels.py` and ten times as slow. Training scores leave the query out, in closed form. It
    ignores ratings; items that nobody rated have the score 0.
    """

    @staticmethod
    def affordable(R: sparse.csr_array) -> bool:
        return factorisations(R) * R.shape[0] <= ROWS

    def fit(self, R: Any, X: Any = None) -> Self:
        R = as_ratings(R)
        Y = np.full(R.shape, np.nan)
        Y[users_of(R), R.indices] = centred(R) / spread(R)[users_of(R)]
        self.items_ = np.flatnonzero(~np.isnan(Y).all(axis=0))
        tasks = Tasks.of(np.asarray(X, dtype=float), Y[:, self.items_])
        exact = factorisations(R) * R.shape[0] ** 3 <= EXACT
        self.ridge_ = (KernelRidge(Gaussian(), scales="shared") if exact else NystromRidge(Gaussian())).fit_tasks(tasks)
        for t, (rows, residual) in enumerate(zip(tasks.rows, self.ridge_.residuals())):
            Y[rows, self.items_[t]] -= np.ravel(residual)
        self.n_items_, self.training_scores_ = R.shape[1], with_data(R, Y[users_of(R), R.indices])
        return self

    def training_scores(self) -> sparse.csr_array:
        """The out-of-sample scores at the training ratings."""
        return self.training_scores_

    def scores(self, ratings: Any = None, X: Any = None) -> np.ndarray:
        """(m, D) scores from X."""
        F = np.zeros((len(X), self.n_items_))
        F[:, self.items_] = np.hstack(self.ridge_.predict_tasks(np.asarray(X, dtype=float)))
        return F


def factorisations(R: sparse.csr_array) -> int:
    """One where every query rated every item, else one for each item."""
    return 1 if R.nnz == R.shape[0] * R.shape[1] else R.shape[1]
