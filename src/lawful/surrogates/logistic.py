"""Logistic regression of every label on standardised inputs, kept as arrays: one matrix product predicts all labels.

    s_t(x) = w_t' (x - mean) / scale + b_t,      w_t of largest penalised likelihood (scikit-learn's LogisticRegression),

and then, where a logic ties the labels together, of all labels at once (`joint`). Equal rows are merged and sorted for the
separate fits, so that they do not depend on the order of rows. Inputs that never vary are left as they are. Classes of a
single column have log p_k, the log of the softmax of their scores.
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
from lawful.surrogates.joint import refine
from lawful.surrogates.labels import constant_log_odds
from lawful.tasks import Tasks

__all__ = ["LabelLogistic"]

MAX_ITER = 1000


class LabelLogistic(BaseEstimator):
    """`C` as in scikit-learn: the inverse of the penalty; `strength`: how much the logic has to say to move a coefficient."""

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
        found = Parallel(n_jobs=self.n_jobs)(
            delayed(_coefficients)(U, places[rows], y, w, self.C) for rows, y, w in zip(tasks.rows, tasks.y, tasks.weights)
        )
        self.coef_ = np.concatenate([coef for coef, _ in found])
        self.intercept_ = np.concatenate([intercept for _, intercept in found])
        if law is not None and law.exact_ and law.size_ > len(tasks):
            weight = tasks.weight
            each = weight.sum(axis=1) / np.maximum((weight > 0).sum(axis=1), 1)
            W = np.hstack([self.coef_, self.intercept_[:, None]])
            inputs = (tasks.X - self.mean_) / self.scale_
            W = refine(W, inputs, tasks.Y, each, law, number(self, "strength", zero=True))
            self.coef_, self.intercept_ = W[:, :-1], W[:, -1]
        return self

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
