"""Orders of many queries, and the comparisons behind one of them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from lawful.plots.canvas import DIVERGING, SEQUENTIAL, Display, need, short

__all__ = ["RankingDisplay"]

TICKS = 30  # labels that fit along an axis


class RankingDisplay(Display):
    """Heat maps of rankings.

    Positions (m, D): one row for each query, items from the best on average to the worst; a clear order has clear columns.
    Pair scores (D, D) of one query, in the decoded order: what stands above the diagonal agrees with the order, and what is
    below it, or has the other colour, was overruled.

    Parameters
    ----------
    matrix : (m, D) positions, 0 = best, or (D, D) skew-symmetric scores
    items : names of the columns, in their order
    pairs : whether `matrix` holds pair scores

    Examples
    --------
    >>> import numpy as np
    >>> from lawful import ConstrainedRanker
    >>> from lawful.plots import RankingDisplay
    >>> X = np.random.default_rng(0).standard_normal((40, 2))
    >>> ranker = ConstrainedRanker().fit(X, X @ np.random.default_rng(1).standard_normal((2, 5)))
    >>> RankingDisplay.from_estimator(ranker, X[:10]).matrix.shape
    (10, 5)
    >>> RankingDisplay.from_estimator(ranker, X[:10], query=3).matrix.shape
    (5, 5)
    """

    def __init__(self, matrix: Any, items: Any = None, pairs: bool = False) -> None:
        self.matrix, self.pairs = np.asarray(matrix, dtype=float), pairs
        self.items = [str(i) for i in (range(self.matrix.shape[1]) if items is None else items)]

    @classmethod
    def from_estimator(cls, ranker: Any, X: Any, *, ratings: Any = None, query: int | None = None, ax: Any = None) -> Self:
        """Positions for all rows of X, or with `query` the pair scores of one row."""
        need(cls.__name__)
        names = getattr(ranker, "item_names_", None)
        d = ranker.decode(X, ratings, bound=False)
        if query is None:
            return cls.from_predictions(d.positions, names, ax=ax)
        order = d.order[query]
        p, q = np.triu_indices(len(order), 1)
        rows = slice(query, query + 1) if query != -1 else slice(-1, None)
        given = None if ratings is None else ratings[rows]
        scores = ranker.pair_scores(X.iloc[rows] if hasattr(X, "iloc") else X[rows], np.c_[order[p], order[q]], given)[0]
        S = np.zeros((len(order), len(order)))
        S[p, q], S[q, p] = scores, -scores
        return cls(S, order if names is None else np.asarray(names, dtype=object)[order], pairs=True).plot(ax=ax)

    @classmethod
    def from_predictions(cls, positions: Any, names: Any = None, *, ax: Any = None) -> Self:
        """Positions (m, D) of any ranker; -1: not a candidate."""
        need(cls.__name__)
        positions = np.asarray(positions, dtype=float)
        positions = np.where(positions < 0, np.nan, positions)
        seen = ~np.isnan(positions)
        mean = np.nansum(positions, axis=0) / np.maximum(seen.sum(axis=0), 1)
        best = np.argsort(np.where(seen.any(axis=0), mean, np.inf), kind="stable")
        items = best if names is None else np.asarray(names, dtype=object)[best]
        return cls(positions[:, best], items).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        ax = self._axes(ax, (5.4, 4.6))
        D = self.matrix.shape[1]
        size = np.abs(self.matrix).max(initial=1e-300) if self.pairs else None
        style = {"cmap": DIVERGING, "vmin": -size, "vmax": size} if self.pairs and size else {"cmap": f"{SEQUENTIAL}_r"}
        image = ax.imshow(self.matrix, aspect="equal" if self.pairs else "auto", interpolation="nearest", **style)
        self.figure_.colorbar(image, ax=ax, label="row item before column item" if self.pairs else "position (0 = best)")
        step = -(-D // TICKS)
        names = [short(name, 16) for name in self.items]
        ax.set_xticks(range(0, D, step), names[::step], rotation=90, fontsize="small")
        if self.pairs:
            ax.set_yticks(range(0, D, step), names[::step], fontsize="small")
        else:
            ax.set(ylabel="query")
        return self
