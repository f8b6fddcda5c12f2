"""What all rankers share: how they read queries and ratings, who is a candidate, recommendations and the score.

A ranker has `fit(X, R)` with X (n, d), one row per query, or None, and ratings R (n, D), NaN or not stored where unrated, and
`predict(X, ratings)`, the positions (m, D) of the items, 0 = best, from what the new queries have rated already, if anything.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from lawful.metrics import rank_loss
from lawful.ratings import as_ratings, check_training, count_queries
from lawful.tasks import check_inputs

__all__ = ["Ranker", "check_items", "new_queries", "training_queries", "training_ratings"]

AT_ONCE = 2**25  # places in orders that `recommend` holds


class Ranker:
    """A mixin. Subclasses offer `predict(X, ratings)` and `_best(X, ratings, items)`, the candidates of each query in order."""

    n_items_: int

    def predict(self, X: Any, ratings: Any = None) -> np.ndarray:
        raise NotImplementedError

    def _best(self, X: Any, ratings: Any, items: Any) -> np.ndarray:
        raise NotImplementedError

    def recommend(self, X: Any, k: int = 10, ratings: Any = None, *, exclude: Any = None, items: Any = None) -> np.ndarray:
        """(m, k) the best items for each query, best first; -1 where fewer than k are left.

        exclude: (m, D) ratings of items not to be recommended (every rating counts, whatever its value), or booleans.
        items: candidates, item numbers, for all queries or a row for each, padded by -1; None: all.
        """
        name = type(self).__name__
        if not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"{name}: k={k!r} items cannot be recommended; k must be 1 or more")
        check_is_fitted(self, "n_items_")
        parts = [X, None if ratings is None else as_ratings(ratings, self.n_items_), items]
        parts[2] = None if items is None or np.ndim(items) == 1 else np.asarray(items)
        m = max((part.shape[0] if hasattr(part, "shape") else len(part) for part in parts if part is not None), default=0)
        gone = None if exclude is None else seen_items(exclude, (m, self.n_items_))
        out = np.full((m, k), -1, dtype=np.int64)
        step = max(AT_ONCE // self.n_items_, 1)
        for start in range(0, max(m, 1), step):
            rows = slice(start, min(start + step, m))
            some = parts if m <= step else [None if part is None else part[rows] for part in parts]
            best = self._best(some[0], some[1], items if parts[2] is None else some[2])
            for i, row in enumerate(best, start):
                left = row[row >= 0] if gone is None else row[(row >= 0) & ~np.isin(row, gone[i])]
                out[i, : min(k, len(left))] = left[:k]
        return out

    def score(self, X: Any, R: Any, ratings: Any = None) -> float:
        """1 - normalised rank loss: the mean over queries of the share of the weight |r_p - r_q| that is ordered rightly.

        Queries whose ratings in R are all equal, or fewer than two, have nothing to order and are left out; it is an error if
        that leaves none.
        """
        check_is_fitted(self, "n_items_")
        truth = as_ratings(R, self.n_items_)
        positions = self.predict(X, ratings)
        if truth.shape[0] != len(positions):
            raise ValueError(f"X has {len(positions)} rows and R has {truth.shape[0]}: inconsistent numbers of queries")
        return 1.0 - rank_loss(truth, positions)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def training_queries(estimator: Any, X: Any) -> np.ndarray | None:
    """X (n, d) for `fit`, checked by scikit-learn's rules; None where the ratings are all there is."""
    if X is not None:
        return check_inputs(estimator, X, reset=True)
    for field in ("n_features_in_", "feature_names_in_"):  # of an earlier fit
        estimator.__dict__.pop(field, None)
    return None


def training_ratings(estimator: Any, X: Any, R: Any) -> tuple[np.ndarray | None, sparse.csr_array]:
    """X and R for `fit`, checked; the estimator then knows `n_items_` and `item_names_`."""
    name = type(estimator).__name__
    if R is None:
        raise ValueError(f"{name}: requires y to be passed, but the target y is None; give ratings (queries, items)")
    X = training_queries(estimator, X)
    names = item_names(R)
    R = as_ratings(R)
    if X is not None and len(X) != R.shape[0]:
        raise ValueError(f"X has {len(X)} rows and R has {R.shape[0]}: inconsistent numbers of queries")
    if R.nnz == 0:
        raise ValueError(f"{name}: the ratings are empty; at least one query must have rated something")
    check_training(name, X, R)
    estimator.n_items_, estimator.item_names_ = R.shape[1], names
    return X, R


def item_names(R: Any) -> tuple[Any, ...] | None:
    """The names of the columns of a table that has any."""
    columns = getattr(R, "columns", None)
    return None if columns is None else tuple(columns)


def new_queries(estimator: Any, X: Any, ratings: Any) -> tuple[np.ndarray | None, sparse.csr_array | None, int]:
    """X and the ratings of new queries, checked against the fit, and how many queries there are."""
    name = type(estimator).__name__
    if X is not None:
        if not hasattr(estimator, "n_features_in_"):
            raise ValueError(f"{name} was fitted without X, so it cannot use X; pass ratings of the new queries")
        X = check_inputs(estimator, X)
    profile = None if ratings is None else as_ratings(ratings, estimator.n_items_)
    return X, profile, count_queries(name, X, profile)


def check_items(items: Any, n_items: int, m: int | None = None) -> np.ndarray:
    """Candidates, sorted, each once: (d,) for all queries, or (m, c), a row for each, with -1 after the last."""
    chosen = np.asarray(items)
    whole = chosen.size > 0 and np.issubdtype(chosen.dtype, np.integer)
    if not whole or not (chosen.ndim == 1 or (chosen.ndim == 2 and m is not None and len(chosen) == m)):
        raise ValueError(
            f"items have shape {chosen.shape} and type {chosen.dtype}; give a list of item numbers, or a row of them for each "
            "query, padded by -1"
        )
    if chosen.min() < (0 if chosen.ndim == 1 else -1) or chosen.max() >= n_items:
        raise ValueError(f"items name numbers outside 0 .. {n_items - 1}; give some of these")
    if chosen.ndim == 1:
        return np.unique(chosen).astype(np.int64)
    none = np.iinfo(np.int64).max
    ordered = np.sort(np.where(chosen < 0, none, chosen.astype(np.int64)), axis=1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = none
    ordered.sort(axis=1)
    if (ordered[:, 0] == none).any():
        raise ValueError(f"items name no candidate for query {int(np.argmax(ordered[:, 0] == none))}; give one at least")
    return np.where(ordered == none, -1, ordered)


def seen_items(exclude: Any, shape: tuple[int, int]) -> list[np.ndarray]:
    """The excluded items of every query."""
    if not sparse.issparse(exclude) and np.asarray(exclude).dtype == bool:
        exclude = np.where(np.asarray(exclude), 1.0, np.nan)
    seen = as_ratings(exclude, shape[1])
    if seen.shape[0] != shape[0]:
        raise ValueError(f"exclude has {seen.shape[0]} rows for {shape[0]} queries; one row for each is needed")
    return np.split(seen.indices, seen.indptr[1:-1])
