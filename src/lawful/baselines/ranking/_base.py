"""What all ranking baselines share: scores (m, D) sorted into orders, with the interface of `ConstrainedRanker`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from lawful._ranker import Ranker, check_items, new_queries

__all__ = ["ScoreRanker"]


class ScoreRanker(Ranker, BaseEstimator):
    """Rank items by scores: a total order for every query, ties in the order of the items' numbers."""

    def _scores(self, X: Any, ratings: Any, m: int) -> np.ndarray:
        raise NotImplementedError

    def scores(self, X: Any, ratings: Any = None) -> np.ndarray:
        """(m, D) scores, larger is better; only differences within a query mean something.

        X        (m, d) as in `fit`; None when it was fitted without
        ratings  (m, D) what the new queries have already rated, if anything
        """
        check_is_fitted(self, "n_items_")
        found = self._scores(*new_queries(self, X, ratings))
        if not np.isfinite(found).all():
            raise ValueError(
                f"{type(self).__name__}: scores are not finite; the inputs are too large to be computed with, scale them"
            )
        return found

    def predict(self, X: Any, ratings: Any = None) -> np.ndarray:
        """(m, D) rank positions, 0 = best: a total order for every query."""
        best = np.argsort(-self.scores(X, ratings), axis=1, kind="stable")
        positions = np.empty(best.shape, dtype=np.int64)
        np.put_along_axis(positions, best, np.broadcast_to(np.arange(best.shape[1]), best.shape), axis=1)
        return positions

    def _best(self, X: Any, ratings: Any, items: Any) -> np.ndarray:
        found = self.scores(X, ratings)
        chosen = np.arange(self.n_items_) if items is None else check_items(items, self.n_items_)
        return chosen[np.argsort(-found[:, chosen], axis=1, kind="stable")]
