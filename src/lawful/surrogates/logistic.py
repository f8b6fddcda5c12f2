"""Logistic regression of every label on standardised inputs, kept as arrays: one matrix product predicts all labels.

    s_t(x) = w_t' (x - mean) / scale + b_t,      w_t of largest penalised likelihood (scikit-learn's LogisticRegression),

and then, where a logic ties the labels together, of all labels at once (`joint`): separate fits with a larger penalty, which
are moved by what the labels say together. `thresholds_` (T,) are the probabilities at which labels are then predicted as
often as by the first fits. Equal rows are merged and sorted for the separate fits, so that they do not depend on the order of
rows. Inputs that never vary are left as they are. Classes of a single column have log p_k, the log of the softmax of their
scores.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from scipy.special import log_softmax
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from lawful._checks import number
from lawful.surrogates.joint import as_often, refine
from lawful.surrogates.labels import constant_log_odds
from lawful.tasks import Tasks

__all__ = ["LabelLogistic"]

MAX_ITER = 1000


class LabelLogistic(BaseEstimator):
    """`C` as in scikit-learn: the inverse of the penalty of a label by itself. `strength`: the penalty for labels together,
    on the separate fits from which they start, and then on the distance from these."""

    probabilistic = True
    raw = allow_nan = False

    def __init__(self, C: float = 1.0, strength: float = 10.0, n_jobs: int | None = None) -> None:
        self.C = C
        self.strength = strength
        self.n_jobs = n_jobs

    def _standardise(self, X: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The distinct rows of positive weight, standardised, and which of them each row is (-1: none)."""
        seen = weights > 0
        U, which = np.unique(X[seen], axis=0, return_inverse=True)
        share = np.bincount(which.ravel(), weights[seen])
        share = share / share.sum()
        self.mean_ = share @ U
        spread = np.sqrt(share @ (U - self.mean_) ** 2)
        self.scale_ = np.where(spread > 1e-12 * np.maximum(np.abs(self.mean_), 1e-300), spread, 1.0)
        places = np.full(len(X), -1)
        places[seen] = which.ravel()
        return (U - self.mean_) / self.scale_, places

    def fit_labels(self, tasks: Tasks, law: Any = None) -> Self:
        """Each label by itself, and then, where a law ties them together and its sums are exact, all of them under the law."""
        number(self, "C")
        U, places = self._standardise(tasks.X, tasks.weight.sum(axis=1))
        self._keep(self._separately(tasks, U, places, self.C))
        self.thresholds_ = np.full(len(tasks), 0.5)
        if law is not None and law.exact_ and law.size_ > len(tasks):
            self._learn_together(tasks, U, places, law, number(self, "strength", zero=True))
        return self

    def _learn_together(self, tasks: Tasks, U: np.ndarray, places: np.ndarray, law: Any, strength: float) -> None:
        inputs, weight = (tasks.X - self.mean_) / self.scale_, tasks.weight
        each = weight.sum(axis=1) / np.maximum((weight > 0).sum(axis=1), 1)
        said = self.log_odds(tasks.X) > 0
        near = self._separately(tasks, U, places, 1 / strength if strength else self.C)
        self._keep(refine(near, inputs, tasks.Y, each, law, strength))
        self.thresholds_ = as_often(self.log_odds(tasks.X), said, each, law)

    def _separately(self, tasks: Tasks, U: np.ndarray, places: np.ndarray, C: float) -> np.ndarray:
        """(T, d + 1) coefficients of each label by itself, intercept last."""
        found = Parallel(n_jobs=self.n_jobs)(
            delayed(_coefficients)(U, places[rows], y, w, C) for rows, y, w in zip(tasks.rows, tasks.y, tasks.weights)
        )
        return np.concatenate([np.hstack([coef, intercept[:, None]]) for coef, intercept in found])

    def _keep(self, W: np.ndarray) -> None:
        self.coef_, self.intercept_ = W[:, :-1], W[:, -1]

    def fit_classes(self, X: Any, y: np.ndarray, weights: np.ndarray) -> Self:
        number(self, "C")
        coef, intercept = _coefficients(*self._standardise(np.asarray(X, float), weights), y, weights, self.C)
        if len(coef) == 1 and y.max() == 1:  # two classes have one score between them
            coef, intercept = np.concatenate([0 * coef, coef]), np.concatenate([[0.0], intercept])
        self.coef_, self.intercept_ = coef, intercept
        return self

    def log_odds(self, X: np.ndarray) -> np.ndarray:
        """(m, T)."""
        return ((X - self.mean_) / self.scale_) @ self.coef_.T + self.intercept_

    def log_classes(self, X: np.ndarray) -> np.ndarray:
        """(m, K)."""
        return np.asarray(log_softmax(self.log_odds(X), axis=1))


def _coefficients(
    U: np.ndarray, places: np.ndarray, y: np.ndarray, weights: np.ndarray, C: float
) -> tuple[np.ndarray, np.ndarray]:
    if y.min() == y.max():
        return np.zeros((1, U.shape[1])), np.array([constant_log_odds(y, weights)])
    mass = [np.bincount(places, weights * (y == k), minlength=len(U)) for k in np.unique(y)]
    rows = [np.flatnonzero(w) for w in mass]
    target = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
    merged, total = np.concatenate(rows), np.concatenate([w[r] for w, r in zip(mass, rows)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the last digits of a score decide nothing
        model = LogisticRegression(C=C, max_iter=MAX_ITER).fit(U[merged], target, sample_weight=total)
    return model.coef_, model.intercept_
