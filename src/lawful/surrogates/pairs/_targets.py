"""What the pair tasks are fitted to, the slope of a prior in it, and how strongly they are regularised.

kappa="auto" is the ridge common to all pairs with the least leave-one-out error, measured on a sample of pairs. For a pair with
kernel matrix K_t = U diag(s) U' and targets y the error of leaving each query out is

    r_i = (y - U h U'y)_i / (1 - (U h U')_ii),    h = s / (s + kappa),

for every kappa from one decomposition, which pairs on the same queries share. A linear kernel has few s above 0, and a
singular value decomposition of the features finds them for any number of queries; other kernels are looked at on some of the
queries only. Pairs are drawn by drawing two ratings of a query, so that a pair counts by how often it was compared.

None of this is honest when the kernel compares the ratings themselves (similarity > 0): queries that
agree on the pair are then similar for that very reason. There the ridge is `FIXED`, which measured well on MovieLens.

Priors are compared by their rank loss: that of the prior alone on all ratings, plus what the ridges add to it on the sample.
The first is where priors differ most, and a sample of pairs alone is too noisy to see it. Where every query rated every item no
sample is needed: one smoother serves all pairs, and the loss of all of them follows from the items (`choose_complete`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from lawful.ratings import centred, users_of, within_variance
from lawful.surrogates.pairs.compiled import pair_losses

GRID = 10.0 ** np.arange(-2, 4.01, 0.25)  # in units of the mean of k(x, x)
FIXED = 100.0
PAIRS, DRAWS, LARGEST = 150, 1200, 150  # pairs looked at, ratings drawn to find them, queries of a pair at most
MOST = 300  # queries of pairs that share them
MORE_PAIRS = 300  # where priors are compared
QUERIES = 2000  # whose ratings show the loss of a prior
ERRORS = 2.0  # standard errors; leave-one-out flatters tuned length scales: 1 lost .015 on wine (benchmarks/labels.py)
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


class Sample(NamedTuple):
    """What queries say of some pairs: y = r_p - r_q (or its sign), f what the prior says of it."""

    users: np.ndarray
    low: np.ndarray
    high: np.ndarray
    y: np.ndarray
    f: np.ndarray


def choose_kappa(
    sample: Sample,
    K: np.ndarray | None,
    features: np.ndarray | None = None,
    grid: np.ndarray | None = None,
) -> tuple[float, float]:
    """kappa from a sample of observations, and what it adds to the rank loss of the prior alone: the share of the weight |y|
    that the predictions without the query at hand put the wrong way round, less that of the prior.

    K: the Gram matrix of all queries; features: Z with K = Z Z', and K is then not needed; grid: the kappas to choose from.
    Ties go to the larger kappa. With nothing to measure it is the size of the kernel.
    """
    unit = kernel_size(K, features)
    grid = unit * GRID if grid is None else grid
    pair = sample.low * (int(sample.high.max(initial=0)) + 1) + sample.high
    order = np.argsort(pair, kind="stable")
    alike: dict[bytes, list[np.ndarray]] = {}
    for rows in np.split(order, np.flatnonzero(np.diff(pair[order])) + 1):
        if rows.size:
            alike.setdefault(sample.users[rows].tobytes(), []).append(rows)
    parts, squares = [], np.zeros(len(grid))
    for tasks in alike.values():
        # g pairs on the same queries cost no more than one by one when they take g^(1/3) times as many
        most = np.inf if features is not None else min(int(LARGEST * len(tasks) ** (1 / 3)), MOST)
        at = np.stack(tasks)[:, thinned(tasks[0].size, most)]
        s, U = decompose(K, features, sample.users[at[0]])
        left = (sample.y - sample.f)[at].T
        parts.append((s, U, sample.y[at].T, left))
        squares += [np.sum(e**2) / len(e) for e in without_each(s, U, left, grid)]
    if not squares.any():
        return (float(grid[0]) if len(grid) == 1 else unit), 0.0
    best = least(squares)
    lost, weight = 0.0, 0.0
    for s, U, y, left in parts:
        (e,) = without_each(s, U, left, grid[best : best + 1])
        lost += np.sum(np.mean(np.abs(y) * (np.sign(y * (y - left)) - np.sign(y * (y - e))), axis=0)) / 2
        weight += np.sum(np.mean(np.abs(y), axis=0))
    return float(grid[best]), float(lost) / (float(weight) or 1.0)


def choose_complete(
    V: np.ndarray, F: np.ndarray, K: np.ndarray | None, features: np.ndarray | None, grid: np.ndarray | None
) -> tuple[float, np.ndarray, np.ndarray]:
    """kappa where every query has a value V (n, D) for every item, and the prior says F; all pairs are looked at.

    Pairs on the same queries have one smoother, and errors of differences are differences of errors: with e_ip that of leaving
    query i out of the ridge of V_p - F_p, the squared errors of all pairs of query i sum to D sum_p e_ip^2 - (sum_p e_ip)^2.
    Also returns the queries that were looked at (all of them where there are features) and what is predicted for them.
    """
    unit = kernel_size(K, features)
    grid = unit * GRID if grid is None else grid
    rows = thinned(len(V), np.inf if features is not None else MOST)
    s, U = decompose(K, features, rows)
    left = (V - F)[rows]
    squares = [V.shape[1] * np.sum(e**2) - np.sum(e.sum(axis=1) ** 2) for e in without_each(s, U, left, grid)]
    best = least(np.array(squares))
    (e,) = without_each(s, U, left, grid[best : best + 1])
    return float(grid[best]), rows, V[rows] - e


def kernel_size(K: np.ndarray | None, features: np.ndarray | None) -> float:
    """The mean of k(x, x), by which kappa is measured."""
    sizes = np.sum(features**2, axis=1) if features is not None else np.diagonal(K)  # type: ignore[arg-type]
    return float(np.mean(sizes)) or 1.0


def without_each(s: np.ndarray, U: np.ndarray, left: np.ndarray, grid: np.ndarray) -> Iterator[np.ndarray]:
    """For every kappa the leave-one-out errors r (n, T) of the formula above."""
    rotated = U.T @ left
    for kappa in grid:
        h = s / (s + kappa)
        yield (left - U @ (h[:, None] * rotated)) / (1 - U**2 @ h)[:, None]


def least(errors: np.ndarray) -> int:
    """Where the least error is; ties go to the larger kappa."""
    return len(errors) - 1 - int(np.argmax((errors <= errors.min() * (1 + 1e-9))[::-1]))


def prior_loss(R: sparse.csr_array, g: np.ndarray) -> np.ndarray:
    """The rank loss of the prior alone, g out of sample, at the ratings of each of (at most `QUERIES`) queries."""
    some = thinned(R.shape[0], QUERIES)
    part, said = R[some], sparse.csr_array((g, R.indices, R.indptr), shape=R.shape)[some]
    lost, total = np.zeros(len(some)), np.zeros(len(some))
    pair_losses(part.indptr, part.data, said.data, lost, total)
    return lost[total > 0] / total[total > 0] if (total > 0).any() else np.zeros(1)


def least_clearly(losses: list[np.ndarray], plain: int) -> int:
    """Which loss, query by query, has the least mean; that of a tuned prior (from `plain` on) must be clearly less."""
    best = int(np.argmin([loss.mean() for loss in losses]))
    if best < plain:
        return best
    other = least_clearly(losses[:plain], plain)
    gain = losses[other] - losses[best]
    return best if gain.mean() > ERRORS * gain.std() / np.sqrt(len(gain)) else other


def thinned(n: int, most: float) -> np.ndarray:
    """At most so many of n rows, evenly spread."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, int(most)).astype(np.int64)


def decompose(K: np.ndarray | None, features: np.ndarray | None, users: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(s, U) of the kernel matrix between these queries, without those s that are known to be 0."""
    if features is not None and (K is None or features.shape[1] < users.size):
        U, root, _ = np.linalg.svd(features[users], full_matrices=False)
        return root**2, U
    s, U = np.linalg.eigh(K[np.ix_(users, users)])  # type: ignore[index]
    return np.maximum(s, 0.0), U


def sample_pairs(indptr: np.ndarray, indices: np.ndarray, n_items: int, pairs: int, rng: np.random.Generator) -> np.ndarray:
    """(P, 2) pairs of items, low first, drawn as two ratings of a random query: as the score of a ranker weighs them."""
    length = np.diff(indptr)
    able = np.flatnonzero(length > 1)
    if not able.size:
        return np.empty((0, 2), dtype=np.int64)
    draws = DRAWS * pairs // PAIRS
    at = able[rng.integers(able.size, size=draws)]
    first = (rng.uniform(size=draws) * length[at]).astype(np.int64)
    second = (first + 1 + (rng.uniform(size=draws) * (length[at] - 1)).astype(np.int64)) % length[at]
    pair = np.sort(np.stack([indices[indptr[at] + first], indices[indptr[at] + second]], axis=1).astype(np.int64), axis=1)
    kinds = np.unique(pair[:, 0] * n_items + pair[:, 1])
    kinds = rng.permutation(kinds)[:pairs]
    return np.stack([kinds // n_items, kinds % n_items], axis=1)


def shared(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The numbers that are in both of two ascending lists, and their places in each."""
    i = np.searchsorted(a, b)
    j = np.flatnonzero(a[np.minimum(i, a.size - 1)] == b) if a.size else i[:0]
    return b[j], i[j], j


def observations(R: sparse.csr_array, g: np.ndarray, sign: bool, pairs: int = PAIRS, seed: int = 0) -> Sample:
    """All observations of a sample of the pairs of columns of R; g holds what the prior says of each rating."""
    chosen = sample_pairs(R.indptr, R.indices, R.shape[1], pairs, np.random.default_rng(seed))
    columns = R.tocsc()
    offsets = sparse.csr_array((g, R.indices, R.indptr), shape=R.shape).tocsc()
    none = np.empty(0, dtype=np.int64)
    parts = [(none, none, none, np.empty(0), np.empty(0))]
    for p, q in chosen:
        a, b = slice(columns.indptr[p], columns.indptr[p + 1]), slice(columns.indptr[q], columns.indptr[q + 1])
        users, i, j = shared(columns.indices[a], columns.indices[b])
        y = columns.data[a][i] - columns.data[b][j]
        f = offsets.data[a][i] - offsets.data[b][j]
        parts.append((users, np.full(users.size, p), np.full(users.size, q), np.sign(y) if sign else y, f))
    return Sample(*(np.concatenate(columns_of) for columns_of in zip(*parts)))
