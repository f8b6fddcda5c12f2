"""Logistic regression of every label on standardised inputs, kept as arrays: one matrix product predicts all labels.

    s_t(x) = w_t' (x - mean) / scale + b_t,      w_t of largest penalised likelihood (scikit-learn's LogisticRegression),

or, where held-out rows are clearly likelier so, the same and sum_j a_tj k(x, c_j), in a tuned kernel (`label_kernel`). Then,
where a logic ties the labels together, all of them are learned at once (`joint`): separate fits with a larger penalty, which
are moved by what the labels say together; a kernel must be the better choice there too. `thresholds_` (T,) are then the
probabilities at which labels are predicted as often as by linear scores of their own (with a kernel, on held-out rows: it is
surer of the rows that it has seen). Equal rows are merged and sorted for the separate fits, so that they do not depend on the
order of rows. Inputs that never vary are left as they are. Classes of a single column have log p_k, the log of the softmax of
their scores.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from lawful._checks import number
from lawful._threads import on_one_thread
from lawful.kernels import Gaussian
from lawful.surrogates.joint import as_often, refine, surprise
from lawful.surrogates.label_kernel import Choice, Counts, Span, chosen, scores_of, span
from lawful.surrogates.labels import constant_log_odds
from lawful.tasks import Tasks

__all__ = ["LabelLogistic"]

MAX_ITER = 1000
# times the penalty of labels by themselves: 10 lost .010 on emotions (benchmarks/labels.py), 3 is too sure of digits (logic.py)
TOGETHER = 5.0
FOLDS, ROWS = 3, 600  # distinct inputs on which a kernel and linear scores are compared under a law
BLOCK = 4096  # rows whose kernels with all centres are in memory at once


class LabelLogistic(BaseEstimator):
    """`C` as in scikit-learn: the inverse of the penalty of a label by itself. `strength`: the penalty for labels together,
    on the separate fits from which they start, and then on the distance from these (of linear scores).

    `coef_` (T, d) are the linear coefficients, of standardised inputs. `kernel_` is None, or a Gaussian on these: `dual_coef_`
    (T, M) times its values at `centers_` (M, d) are then added.
    """

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

    @on_one_thread
    def fit_labels(self, tasks: Tasks, law: Any = None) -> Self:
        """Each label by itself, and then, where a law ties them together and its sums are exact, all of them under the law."""
        C, strength = number(self, "C"), number(self, "strength", zero=True)
        law = law if law is not None and law.exact_ and law.size_ > len(tasks) else None
        U, places = self._standardise(tasks.X, tasks.weight.sum(axis=1))
        found, held = chosen(_counts(tasks, U, places), (1 / C,) if law is None else (1 / C, strength)), None
        if found is not None and law is not None:
            held = self._held_out(tasks, places, law, found)
            found = None if held is None else found
        return self._fit(tasks, law, found, held)

    def _held_out(self, tasks: Tasks, places: np.ndarray, law: Any, found: Choice) -> tuple[np.ndarray, np.ndarray] | None:
        """Some rows and their log-odds in a kernel, if they are likelier so, under the law, than by linear scores."""
        some = np.random.default_rng(0).permutation(places.max() + 1)[:ROWS]
        tests = [np.flatnonzero(np.isin(places, some[k::FOLDS])) for k in range(FOLDS)]
        rows = np.concatenate(tests)
        parts = [tasks.take(np.setdiff1d(rows, test)) for test in tests]
        if not all(len(y) for part in parts for y in part.y):
            return None
        linear, bent = (
            np.concatenate([clone(self)._fit(part, law, one).log_odds(tasks.X[test]) for part, test in zip(parts, tests)])
            for one in (None, found)
        )
        gain = surprise(linear, tasks.Y[rows], law) - surprise(bent, tasks.Y[rows], law)
        return (rows, bent) if gain @ tasks.weight[rows].sum(axis=1) > 0 else None

    def _fit(self, tasks: Tasks, law: Any, found: Choice | None, held: tuple[np.ndarray, np.ndarray] | None = None) -> Self:
        """With the kernel that was found, or linear; held: rows and log-odds that show how often labels are predicted."""
        U, places = self._standardise(tasks.X, tasks.weight.sum(axis=1))
        counts, self.thresholds_ = _counts(tasks, U, places), np.full(len(tasks), 0.5)
        basis = None if found is None else span(counts, *found)
        if law is None and basis is not None:
            self._keep(scores_of(basis.features(U), basis.price, counts), basis)
            return self
        self._keep(self._separately(tasks, U, places, self.C))
        if law is None:
            return self
        inputs, weight = (tasks.X - self.mean_) / self.scale_, tasks.weight
        each = weight.sum(axis=1) / np.maximum((weight > 0).sum(axis=1), 1)
        said = self.log_odds(tasks.X) > 0
        if basis is None:
            near = self._separately(tasks, U, places, 1 / self.strength if self.strength else self.C)
            self._keep(refine(near, inputs, tasks.Y, each, law, self.strength))
        else:
            price = TOGETHER * basis.price
            near = scores_of(basis.features(U), price, counts)
            self._keep(refine(near, basis.features(inputs), tasks.Y, each, law, price), basis)
        rows, s = held or (slice(None), self.log_odds(tasks.X))
        self.thresholds_ = as_often(s, said[rows], each[rows], law)
        return self

    def _separately(self, tasks: Tasks, U: np.ndarray, places: np.ndarray, C: float) -> np.ndarray:
        """(T, d + 1) coefficients of each label by itself, intercept last."""
        found = Parallel(n_jobs=self.n_jobs)(
            delayed(_coefficients)(U, places[rows], y, w, C) for rows, y, w in zip(tasks.rows, tasks.y, tasks.weights)
        )
        return np.concatenate([np.hstack([coef, intercept[:, None]]) for coef, intercept in found])

    def _keep(self, W: np.ndarray, basis: Span | None = None) -> None:
        self.coef_, self.intercept_ = W[:, :-1], W[:, -1]
        self.kernel_: Gaussian | None = None
        if basis is not None:
            self.kernel_, self.centers_ = basis.kernel, basis.centers
            self.dual_coef_ = self.coef_ @ basis.back.T
            self.coef_ = basis.linear(self.dual_coef_)

    @on_one_thread
    def fit_classes(self, X: Any, y: np.ndarray, weights: np.ndarray) -> Self:
        C, K = number(self, "C"), int(y.max()) + 1
        U, places = self._standardise(np.asarray(X, float), weights)
        true = np.stack([np.bincount(places, weights * (y == k), minlength=len(U)) for k in range(K)], axis=1)
        counts = Counts(U, true, np.tile(true.sum(axis=1, keepdims=True), K), exclusive=True)
        found = chosen(counts, (1 / C,)) if K > 1 else None
        if found is not None:
            basis = span(counts, *found)
            self._keep(scores_of(basis.features(U), basis.price, counts), basis)
            return self
        coef, intercept = _coefficients(U, places, y, weights, C)
        if len(coef) == 1 and K == 2:  # two classes have one score between them
            coef, intercept = np.concatenate([0 * coef, coef]), np.concatenate([[0.0], intercept])
        self._keep(np.hstack([coef, intercept[:, None]]))
        return self

    def log_odds(self, X: np.ndarray) -> np.ndarray:
        """(m, T)."""
        U = (X - self.mean_) / self.scale_
        out = U @ self.coef_.T + self.intercept_
        kernel = getattr(self, "kernel_", None)  # models that earlier versions saved have no such attribute
        if kernel is not None:
            for i in range(0, len(U), BLOCK):
                out[i : i + BLOCK] += np.asarray(kernel(U[i : i + BLOCK], self.centers_)) @ self.dual_coef_.T
        return out

    def log_classes(self, X: np.ndarray) -> np.ndarray:
        """(m, K)."""
        return np.asarray(log_softmax(self.log_odds(X), axis=1))


def _counts(tasks: Tasks, U: np.ndarray, places: np.ndarray) -> Counts:
    true, known = np.zeros((2, len(U), len(tasks)))
    for t, (rows, y, w) in enumerate(zip(tasks.rows, tasks.y, tasks.weights)):
        known[:, t] = np.bincount(places[rows], w, len(U))
        true[:, t] = np.bincount(places[rows], w * y, len(U))
    return Counts(U, true, known)


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
