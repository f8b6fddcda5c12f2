"""What the pair tasks are fitted to: from ratings, or from comparisons one by one.

    ratings        y_pq,u = r_up - r_uq                              a query that rated both says something about the pair
    comparisons    y_pq,u = sum of weights (+ if p won, - if q won)  one entry per query and pair; cycles are allowed

`potentials` turns comparisons into ratings where a method needs some: for each query the r of least squares,

    min_r sum_{pq} (y_pq,u - (r_p - r_q))^2,

of mean zero over every set of items that the comparisons of the query connect. If the comparisons came from ratings of items
that are all connected, these are the ratings less their mean.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lawful.ratings import centred, users_of, within_variance

DAMPING = 10.0  # a query's own spread counts as much as everyone's when it has this many ratings


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
    whole = table[:, :3].astype(np.int64)
    if (whole != table[:, :3]).any():
        raise ValueError("queries and items of comparisons must be whole numbers: row numbers of X and item numbers from 0")
    users, winner, loser = whole.T
    D = int(whole[:, 1:].max()) + 1 if n_items is None else n_items
    for name, values, stop in (("query", users, n), ("winner", winner, D), ("loser", loser, D)):
        wrong = np.flatnonzero((values < 0) | (values >= stop))
        if len(wrong):
            raise ValueError(f"comparison {wrong[0]} has {name} {values[wrong[0]]}; it must be in 0 .. {stop - 1}")
    same = np.flatnonzero(winner == loser)
    if len(same):
        raise ValueError(f"comparison {same[0]} compares item {winner[same[0]]} with itself; drop it (a tie has weight 0)")
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


def spread(R: sparse.csr_array) -> np.ndarray:
    """(n,) standard deviation of each query's ratings, pulled towards that of all: u in y / u. 1 where all ratings tie."""
    k = np.diff(R.indptr)
    squares = np.bincount(users_of(R), centred(R) ** 2, R.shape[0])
    overall = within_variance(R)
    u = np.sqrt((squares + DAMPING * overall) / (k + DAMPING))
    return np.where(u > 0, u, 1.0)


def net(R: sparse.csr_array, sign: bool) -> np.ndarray:
    """At each rating (u, p): sum over the other ratings of u of r_up - r_uq, or of its sign."""
    users = users_of(R)
    if not sign:
        k = np.diff(R.indptr)
        return k[users] * R.data - np.bincount(users, R.data, R.shape[0])[users]
    out = np.empty(R.nnz)
    for a, b in zip(R.indptr[:-1], R.indptr[1:]):
        r = np.sort(R.data[a:b])
        out[a:b] = np.searchsorted(r, R.data[a:b]) - (b - a - np.searchsorted(r, R.data[a:b], side="right"))
    return out


def slope_of_ratings(R: sparse.csr_array, f: np.ndarray, sign: bool) -> float:
    """w of least squares in y_pq,u = w (F_p(u) - F_q(u)) over all tasks, in one pass over the ratings."""
    return _ratio(float(f @ net(R, sign)), float(f @ net(sparse.csr_array((f, R.indices, R.indptr), shape=R.shape), False)))


def slope_of_comparisons(y: np.ndarray, df: np.ndarray) -> float:
    """The same for listed comparisons."""
    return _ratio(float(y @ df), float(df @ df))


def _ratio(top: float, bottom: float) -> float:
    return top / bottom if bottom > 0 else 0.0


def lookup(F: sparse.csr_array, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    """F[users, items] at stored entries."""
    keys = users_of(F) * F.shape[1] + F.indices
    return F.data[np.searchsorted(keys, users * F.shape[1] + items)]
