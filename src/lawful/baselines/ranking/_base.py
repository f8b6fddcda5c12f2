"""What all ranking baselines share: scores (m, D) sorted into orders, with the interface of `ConstrainedRanker`."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from lawful.baselines.ranking._newton import Solution
from lawful.baselines.ranking._pairs import Pairs, make_pairs
from lawful.baselines.ranking.features import evaluate, make_features, training_features
from lawful.estimators.ranker import check_items, seen_items
from lawful.metrics import rank_loss
from lawful.ratings import as_ratings

__all__ = ["JointScorer", "ScoreRanker"]

ENTRIES = 2**18  # features of this many (query, item) pairs are held at once in predict


class ScoreRanker(BaseEstimator):
    """Rank items by scores: a total order for every query, ties in the order of the items' numbers."""

    n_items_: int

    def _scores(self, X: Any, ratings: Any, m: int) -> np.ndarray:
        raise NotImplementedError

    # ------------------------------------------------------------------ data

    def _training(self, X: Any, R: Any) -> tuple[np.ndarray | None, sparse.csr_array]:
        name = type(self).__name__
        if R is None:
            raise ValueError(f"{name}: requires y to be passed, but the target y is None; give ratings (queries, items)")
        if X is not None:
            X = validate_data(self, X, dtype=np.float64)
        else:
            for field in ("n_features_in_", "feature_names_in_"):  # of an earlier fit
                self.__dict__.pop(field, None)
        columns = getattr(R, "columns", None)
        R = as_ratings(R)
        if X is not None and len(X) != R.shape[0]:
            raise ValueError(f"X has {len(X)} rows and R has {R.shape[0]}: inconsistent numbers of queries")
        if R.nnz == 0:
            raise ValueError(f"{name}: the ratings are empty; at least one query must have rated something")
        self.n_items_ = R.shape[1]
        self.item_names_ = tuple(columns) if columns is not None else None
        return X, R

    def _number(self, name: str, zero: bool = False, whole: bool = False) -> Any:
        value, kind = getattr(self, name), int | np.integer if whole else int | float | np.integer | np.floating
        good = isinstance(value, kind) and not isinstance(value, bool) and np.isfinite(value)
        if not (good and (value >= 0 if zero else value > 0)):
            what = ("whole " if whole else "") + ("number, 0 or above" if zero else "number above 0")
            raise ValueError(f"{type(self).__name__}({name}={value!r}) will not do; give a {what}")
        return int(value) if whole else float(value)

    # ------------------------------------------------------------------ predict

    def scores(self, X: Any, ratings: Any = None) -> np.ndarray:
        """(m, D) scores, larger is better; only differences within a query mean something.

        X        (m, d) as in `fit`; None when it was fitted without
        ratings  (m, D) what the new queries have already rated, if anything
        """
        check_is_fitted(self, "n_items_")
        name = type(self).__name__
        if X is not None:
            if not hasattr(self, "n_features_in_"):
                raise ValueError(f"{name} was fitted without X, so it cannot use X; pass ratings of the new queries")
            X = validate_data(self, X, dtype=np.float64, reset=False)
        if ratings is not None:
            ratings = as_ratings(ratings, self.n_items_)
            if X is not None and ratings.shape[0] != len(X):
                raise ValueError(f"X has {len(X)} rows and ratings have {ratings.shape[0]}: inconsistent numbers of queries")
        elif X is None:
            raise ValueError(f"{name}: neither X nor ratings are given; one of them must say which queries to rank for")
        m = len(X) if X is not None else ratings.shape[0]
        found = self._scores(X, ratings, m)
        if not np.isfinite(found).all():
            raise ValueError(f"{name}: scores are not finite; the inputs are too large to be computed with, scale them")
        return found

    def predict(self, X: Any, ratings: Any = None) -> np.ndarray:
        """(m, D) rank positions, 0 = best: a total order for every query."""
        best = np.argsort(-self.scores(X, ratings), axis=1, kind="stable")
        positions = np.empty(best.shape, dtype=np.int64)
        np.put_along_axis(positions, best, np.broadcast_to(np.arange(best.shape[1]), best.shape), axis=1)
        return positions

    def recommend(self, X: Any, k: int = 10, ratings: Any = None, *, exclude: Any = None, items: Any = None) -> np.ndarray:
        """(m, k) the best items for each query, best first; -1 where fewer than k are left.

        exclude: (m, D) ratings of items not to be recommended (every rating counts, whatever its value), or booleans.
        items: candidates, item numbers; None: all.
        """
        if k < 1:
            raise ValueError(f"{type(self).__name__}: k={k!r} items cannot be recommended; k must be 1 or more")
        found = self.scores(X, ratings)
        chosen = np.arange(self.n_items_) if items is None else check_items(items, self.n_items_)
        best = chosen[np.argsort(-found[:, chosen], axis=1, kind="stable")]
        gone = None if exclude is None else seen_items(exclude, found.shape)
        out = np.full((len(best), k), -1, dtype=np.int64)
        for i, row in enumerate(best):
            left = row if gone is None else row[~np.isin(row, gone[i])]
            out[i, : min(k, len(left))] = left[:k]
        return out

    def score(self, X: Any, R: Any, ratings: Any = None) -> float:
        """1 - normalised rank loss: the mean over queries of the share of the weight |r_p - r_q| that is ordered rightly."""
        truth = as_ratings(R, self.n_items_ if hasattr(self, "n_items_") else None)
        positions = self.predict(X, ratings)
        if truth.shape[0] != len(positions):
            raise ValueError(f"X has {len(positions)} rows and R has {truth.shape[0]}: inconsistent numbers of queries")
        return 1.0 - rank_loss(truth, positions)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


class JointScorer(ScoreRanker):
    """f(u, i) = w . phi(u, i): features of query and item together, standardised on the training ratings."""

    features: Any
    scale: bool
    weights: str
    n_parts: int
    random_state: Any

    def _design(self, X: Any, R: Any, item_features: Any) -> tuple[np.ndarray, Pairs]:
        """Features of the training ratings, in the order of the pairs."""
        name = type(self).__name__
        n_parts = self._number("n_parts", whole=True)
        X, R = self._training(X, R)
        self.features_ = make_features(self.features, name).fit(X, R, item_features)
        Phi, query = training_features(self.features_, X, R, n_parts, self.random_state)
        hint = (
            f"; only ratings of the same of n_parts={n_parts} parts are compared, n_parts=1 compares all" if n_parts > 1 else ""
        )
        pairs = make_pairs(query, R.data, self.weights, name, hint)
        Phi = Phi[pairs.entries]
        self.center_, self.spread_ = np.zeros(Phi.shape[1]), np.ones(Phi.shape[1])
        if self.scale:
            self.center_, spread = Phi.mean(axis=0), Phi.std(axis=0)
            flat = spread <= 1e-12 * (np.abs(self.center_) + 1e-300)
            self.spread_ = np.where(flat, np.inf, spread)  # a column that never changes says nothing
        self.n_pairs_ = pairs.n_pairs
        return (Phi - self.center_) / self.spread_, pairs

    def _start(self, coef_init: Any, d: int) -> np.ndarray:
        if coef_init is None:
            return np.zeros(d)
        w = np.array(coef_init, dtype=float)
        if w.shape != (d,) or not np.isfinite(w).all():
            raise ValueError(f"coef_init has shape {w.shape}; {d} finite numbers are needed, one for each feature")
        return w

    def _keep(self, found: Solution, tol: float) -> Self:
        self.coef_, self.objective_, self.gap_ = found.w, float(found.objective), float(found.gap)
        self.gradient_norm_, self.n_iter_ = float(found.gradient_norm), int(found.n_iter)
        if not found.gap <= tol * abs(found.objective):
            warnings.warn(
                f"{type(self).__name__} stopped after {found.n_iter} iterations with a gap of {found.gap:.2e} "
                f"({found.gap / max(abs(found.objective), 1e-300):.1e} of the objective); raise max_iter, tol or lam",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _scores(self, X: Any, ratings: Any, m: int) -> np.ndarray:
        D = self.n_items_
        profile = sparse.csr_array((m, D)) if ratings is None else ratings
        out, size = np.empty((m, D)), max(1, ENTRIES // D)
        for lo in range(0, m, size):
            hi = min(lo + size, m)
            rows, items = np.divmod(np.arange((hi - lo) * D), D)
            Phi = evaluate(self.features_, None if X is None else X[lo:hi], profile[lo:hi], rows, items)
            out[lo:hi] = (((Phi - self.center_) / self.spread_) @ self.coef_).reshape(hi - lo, D)
        return out
