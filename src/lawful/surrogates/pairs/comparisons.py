"""What queries say about pairs of items, checked: a table of ratings, or comparisons one by one.

    ratings        y_pq,u = r_up - r_uq                              a query that rated both says something about the pair
    comparisons    y_pq,u = sum of weights (+ if p won, - if q won)  one entry per query and pair; cycles are allowed

`potentials` turns comparisons into ratings where a method needs some: for each query the r of least squares,

    min_r sum_{pq} (y_pq,u - (r_p - r_q))^2,

of mean zero over every set of items that the comparisons of the query connect. If the comparisons came from ratings of items
that are all connected, these are the ratings less their mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lawful._checks import check_count
from lawful.ratings import as_ratings, check_n_items, check_training
from lawful.tasks import check_size

__all__ = ["Comparisons", "PairTasks", "compared", "potentials", "read_comparisons"]


@dataclass(eq=False)
class PairTasks:
    """The D(D-1)/2 comparisons of D items as tasks on the rows of X, kept as they were told: a million tasks need no lists.

    X (n, d) or None; either `ratings` (n, D) or `comparisons`.
    """

    X: np.ndarray | None
    n_queries: int
    n_items: int
    ratings: sparse.csr_array | None = None
    comparisons: Comparisons | None = None

    @classmethod
    def read(cls, X: Any, R: Any = None, comparisons: Any = None, n_items: int | None = None) -> PairTasks:
        """The data of `fit(X, R, comparisons=, n_items=)`, checked; X itself is checked already."""
        if (R is None) == (comparisons is None):
            raise ValueError("PairwiseRidge: give either ratings R or comparisons, one of the two")
        if R is None:
            if X is None:
                raise ValueError("PairwiseRidge: comparisons need X, one row per query; a column of zeros would do")
            seen, D = read_comparisons(comparisons, len(X), n_items)
            check_size(X, "PairwiseRidge: X")
            return cls(X, len(X), D, comparisons=seen)
        ratings = as_ratings(R)
        n, D = ratings.shape
        if X is not None and len(X) != n:
            raise ValueError(f"X has {len(X)} rows and the ratings have {n}: inconsistent numbers of queries")
        if n == 0 or D == 0:
            raise ValueError(f"the ratings have shape {ratings.shape}; at least one query and one item are needed")
        if ratings.nnz == 0:
            raise ValueError("the ratings are empty: nothing is rated; at least one query must rate two items")
        check_training("PairwiseRidge", X, ratings)
        return cls(X, n, D, ratings=ratings)

    def table(self, values: bool) -> sparse.csr_array:
        """(n, D) the ratings; of comparisons the ratings of least squares, or (without `values`) only which items they name."""
        if self.ratings is not None:
            return self.ratings
        assert self.comparisons is not None
        return (potentials if values else compared)(self.comparisons, self.n_queries, self.n_items)


class Comparisons(NamedTuple):
    """Distinct (query, pair) with low < high; y > 0 says that low was preferred."""

    users: np.ndarray
    low: np.ndarray
    high: np.ndarray
    y: np.ndarray


def read_comparisons(comparisons: Any, n: int, n_items: int | None = None) -> tuple[Comparisons, int]:
    """(query, winner, loser[, weight]) rows, checked and added up, and the number of items."""
    try:
        table = np.asarray(comparisons, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "comparisons are not a table of numbers; give rows (query, winner, loser) or (query, winner, loser, weight)"
        ) from error
    if table.size == 0:
        raise ValueError("the list of comparisons is empty; at least one (query, winner, loser) is needed")
    if table.ndim != 2 or table.shape[1] not in (3, 4):
        raise ValueError(
            f"comparisons have shape {table.shape}; give rows (query, winner, loser) or (query, winner, loser, weight)"
        )
    weight = table[:, 3] if table.shape[1] == 4 else np.ones(len(table))
    if not np.isfinite(table).all():
        raise ValueError("comparisons contain NaN or infinities; leave out what is not known")
    if (weight < 0).any():
        row = int(np.flatnonzero(weight < 0)[0])
        raise ValueError(f"comparison {row} has the weight {weight[row]}; swap winner and loser instead of a negative weight")
    if (table[:, :3] != np.floor(table[:, :3])).any():
        raise ValueError("queries and items of comparisons must be whole numbers: row numbers of X and item numbers from 0")
    D = max(int(table[:, 1:3].max()) + 1, 1) if n_items is None else check_count("PairwiseRidge", "n_items", n_items)
    check_n_items("PairwiseRidge", D)
    for name, column, stop in (("query", 0, n), ("winner", 1, D), ("loser", 2, D)):
        wrong = np.flatnonzero((table[:, column] < 0) | (table[:, column] >= stop))
        if len(wrong):
            raise ValueError(f"comparison {wrong[0]} has {name} {table[wrong[0], column]:.0f}; it must be in 0 .. {stop - 1}")
    users, winner, loser = table[:, :3].astype(np.int64).T
    same = np.flatnonzero(winner == loser)
    if len(same):
        raise ValueError(f"comparison {same[0]} compares item {winner[same[0]]} with itself; drop it (a tie has weight 0)")
    check_size(weight, "PairwiseRidge: the weight of comparisons")
    low, high = np.minimum(winner, loser), np.maximum(winner, loser)
    y = np.where(winner < loser, weight, -weight)
    order = np.lexsort((users, high, low))
    new = np.ones(len(order), dtype=bool)
    keys = np.stack([low[order], high[order], users[order]], axis=1)
    new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    y = np.add.reduceat(y[order], np.flatnonzero(new))
    first = order[new]
    return Comparisons(users[first], low[first], high[first], y), D


def compared(seen: Comparisons, n: int, n_items: int) -> sparse.csr_array:
    """(n, D) the items that each query compared, without values: for those who need no ratings."""
    entries = np.unique(np.concatenate([seen.users * n_items + seen.low, seen.users * n_items + seen.high]))
    users, items = np.divmod(entries, n_items)
    return sparse.csr_array((np.zeros(len(entries)), (users, items)), shape=(n, n_items))


def potentials(seen: Comparisons, n: int, n_items: int) -> sparse.csr_array:
    """(n, D) ratings of least squares, stored for the items that a query compared."""
    order = np.argsort(seen.users, kind="stable")
    bounds = np.searchsorted(seen.users[order], np.arange(n + 1))
    indices, data, indptr = [], [], [0]
    for u in range(n):
        at = order[bounds[u] : bounds[u + 1]]
        items, ends = np.unique(np.concatenate([seen.low[at], seen.high[at]]), return_inverse=True)
        if len(at):
            k, p, q = len(items), ends[: len(at)], ends[len(at) :]
            link = sparse.coo_array((np.ones(len(at)), (p, q)), shape=(k, k))
            _, part = connected_components(link, directed=False)
            same = part[:, None] == part[None, :]
            both = (link + link.T).toarray()
            # the projection onto the means makes the Laplacian invertible and keeps every mean at zero
            laplacian = np.diag(both.sum(axis=1)) - both + same / same.sum(axis=1)
            flow = np.bincount(p, seen.y[at], k) - np.bincount(q, seen.y[at], k)
            data.append(np.linalg.solve(laplacian, flow))
        indices.append(items)
        indptr.append(indptr[-1] + len(items))
    return sparse.csr_array(
        (np.concatenate(data), np.concatenate(indices).astype(np.int32), np.asarray(indptr)), shape=(n, n_items)
    )
