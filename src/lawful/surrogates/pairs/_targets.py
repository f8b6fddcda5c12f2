"""What the pair tasks are fitted to, the slope of a prior in it, and how strongly they are regularised.

kappa="auto" is the ridge common to all pairs with the least leave-one-out error, measured on a sample of pairs. For a pair with
kernel matrix K_t = U diag(s) U' and targets y the error of leaving each query out is

    r_i = (P y)_i / P_ii,    P = U (s + kappa)^-1 U',

for every kappa from one eigendecomposition. Pairs are drawn by drawing two ratings of one query, so that a pair counts by how
often it was compared. None of this is honest when the kernel compares the ratings themselves (similarity > 0): queries that
agree on the pair are then similar for that very reason. There the ridge is `FIXED`, which measured well on MovieLens.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from lawful.ratings import centred, users_of, within_variance

GRID = 10.0 ** np.arange(-2, 4.01, 0.25)  # in units of the mean of k(x, x)
FIXED = 100.0
PAIRS, DRAWS, LARGEST = 150, 1200, 150  # pairs looked at, ratings drawn to find them, queries of a pair at most
DAMPING = 10.0  # a query's own spread counts as much as everyone's when it has this many ratings


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


def choose_kappa(sample: tuple[np.ndarray, ...], K: np.ndarray) -> float:
    """kappa from a sample (users, low, high, y): what the queries `users`, K their Gram matrix, say of the pairs (low, high).

    Ties go to the larger. With nothing to measure (no pair compared three times) it is the size of the kernel.
    """
    users, low, high, y = sample
    unit = float(np.mean(np.diagonal(K))) or 1.0
    total = np.zeros(len(GRID))
    kinds, which = np.unique(low * (int(high.max(initial=0)) + 1) + high, return_inverse=True)
    order = np.argsort(which, kind="stable")
    for rows in np.split(order, np.searchsorted(which[order], np.arange(1, len(kinds)))):
        if rows.size < 3:
            continue
        rows = rows[:LARGEST]
        s, U = np.linalg.eigh(K[np.ix_(users[rows], users[rows])])
        shrunk = 1 / (np.maximum(s, 0.0)[:, None] + unit * GRID[None, :])
        residual = (U @ (shrunk * (U.T @ y[rows])[:, None])) / (U**2 @ shrunk)
        total += np.sum(residual**2, axis=0)
    if not total.any():
        return unit
    best = len(GRID) - 1 - int(np.argmax((total <= total.min() * (1 + 1e-9))[::-1]))
    return float(unit * GRID[best])


def sample_pairs(indptr: np.ndarray, indices: np.ndarray, n_items: int, rng: np.random.Generator) -> np.ndarray:
    """(P, 2) pairs of items, low first, drawn as two ratings of one query."""
    length = np.diff(indptr)
    chance = length * (length - 1.0)
    if not chance.any():
        return np.empty((0, 2), dtype=np.int64)
    at = rng.choice(len(length), DRAWS, p=chance / chance.sum())
    first = (rng.uniform(size=DRAWS) * length[at]).astype(np.int64)
    second = (first + 1 + (rng.uniform(size=DRAWS) * (length[at] - 1)).astype(np.int64)) % length[at]
    pair = np.sort(np.stack([indices[indptr[at] + first], indices[indptr[at] + second]], axis=1).astype(np.int64), axis=1)
    kinds = np.unique(pair[:, 0] * n_items + pair[:, 1])
    kinds = rng.permutation(kinds)[:PAIRS]
    return np.stack([kinds // n_items, kinds % n_items], axis=1)


def observations(R: sparse.csr_array, g: np.ndarray, sign: bool, seed: int = 0) -> tuple[np.ndarray, ...]:
    """(users, low, high, y): all observations of a sample of the pairs of columns of R; g is subtracted as in `_pairs`."""
    pairs = sample_pairs(R.indptr, R.indices, R.shape[1], np.random.default_rng(seed))
    columns = R.tocsc()
    offsets = sparse.csr_array((g, R.indices, R.indptr), shape=R.shape).tocsc()
    none = np.empty(0, dtype=np.int64)
    parts = [(none, none, none, np.empty(0))]
    for p, q in pairs:
        a, b = slice(columns.indptr[p], columns.indptr[p + 1]), slice(columns.indptr[q], columns.indptr[q + 1])
        users, i, j = np.intersect1d(columns.indices[a], columns.indices[b], assume_unique=True, return_indices=True)
        y = columns.data[a][i] - columns.data[b][j]
        y = (np.sign(y) if sign else y) - (offsets.data[a][i] - offsets.data[b][j])
        parts.append((users, np.full(users.size, p), np.full(users.size, q), y))
    users, low, high, y = (np.concatenate(columns_of) for columns_of in zip(*parts))
    return users, low, high, y
