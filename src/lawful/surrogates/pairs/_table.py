"""All pair tasks in flat arrays: a row of tasks per item p, small tasks first, and their coefficients one after the other.

    tasks of item p          pair_start[p] .. pair_start[p + 1]
    task t is the pair       (p, partner[t]),  p < partner[t]
    its queries and duals    users, coef[ptr[t] : ptr[t + 1]]

Memory grows with the number of observations, sum_t n_t, not with the number of items squared times the number of queries. A
table that would not fit (`Streamed`) keeps the ratings instead and solves its tasks again, in blocks, whenever they are read.

Tasks on the same queries (all of them, when everyone ranked everything) share one factorisation of K_t + r I. If moreover their
targets are differences, y_pq = v_p - v_q, so are their duals: the pairs (r, .) of one item r give all others,

    c_pq = c_rq - c_rp        and S_pq(x) is a difference of scores.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg
from scipy import sparse

from lawful._threads import Threads, blas_threads, on_threads
from lawful.surrogates.pairs.compiled import (
    LANES,
    copy_among,
    count_among,
    find_tasks,
    index_rows,
    row_marks,
    row_sizes,
    score_chosen,
    score_lanes,
    score_one,
    solve_tasks,
)

NONE = np.empty(0, dtype=bool)
MANY = 64  # queries of a task from which on it pays to look for others with the same
LARGE = 4000  # queries from which on a factorisation on threads saves more than their waiting for each other costs
BLOCKS = 128  # enough for threads to even out, few enough for their overhead not to matter


def user_type(n: int) -> Any:
    return np.uint16 if n <= np.iinfo(np.uint16).max + 1 else np.int32


def cut(start: np.ndarray, pieces: int, largest: float = np.inf) -> list[tuple[int, int]]:
    """Ranges of rows with about equally many observations (start: cumulated), at most `largest` unless one row has more."""
    total = start[-1]
    size = max(1.0, min(total / pieces, largest))
    stops = np.unique(np.searchsorted(start, np.arange(size, total, size), side="right"))
    edges = [0, *(int(s) for s in stops if 0 < s < len(start) - 1), len(start) - 1]
    return [(a, b) for a, b in pairwise(edges) if b > a]


class PairTable:
    """Tasks with their coefficients in memory."""

    streamed = False

    def __init__(
        self, pair_start: np.ndarray, partner: np.ndarray, ptr: np.ndarray, users: np.ndarray, coef: np.ndarray
    ) -> None:
        self.pair_start, self.partner, self.ptr, self.users, self.coef = pair_start, partner, ptr, users, coef

    def check(self, n_items: int, n_queries: int) -> None:
        """A ValueError where the arrays do not fit each other, so many items and so many queries."""
        tasks, entries = len(self.partner), len(self.coef)
        whole = all(v.ndim == 1 and v.dtype.kind in "iu" for v in (self.pair_start, self.partner, self.ptr, self.users))
        fits = whole and len(self.pair_start) == n_items + 1 and len(self.ptr) == tasks + 1 and len(self.users) == entries
        if fits:
            for start, end in ((self.pair_start, tasks), (self.ptr, entries)):
                fits &= bool(start[0] == 0 and start[-1] == end and (np.diff(start) >= 0).all())
            for numbers, count in ((self.partner, n_items), (self.users, n_queries)):
                fits &= bool(not numbers.size or (numbers.min() >= 0 and numbers.max() < count))
        if not fits or self.coef.dtype != np.float64:
            raise ValueError("the table of pairs does not fit the numbers of items and queries; fit the model again")

    @property
    def n_items(self) -> int:
        return len(self.pair_start) - 1

    @property
    def n_tasks(self) -> int:
        return len(self.partner)

    @property
    def n_observations(self) -> int:
        return int(self.ptr[-1])

    @property
    def nbytes(self) -> int:
        """Memory of the table."""
        return sum(v.nbytes for v in vars(self).values() if isinstance(v, np.ndarray))

    def ranges(self) -> list[tuple[int, int]]:
        """Blocks of items to work on one after the other or side by side."""
        return cut(self.ptr[self.pair_start], BLOCKS)

    def block(self, rows: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, int]:
        """(users, coef, shift) of these items' tasks; the arrays start at observation `shift`."""
        return self.users, self.coef, 0

    def scores(self, k: np.ndarray, threads: Threads, out: np.ndarray | None = None) -> np.ndarray:
        """v (m', T) for the kernel rows k (m, n); m' = m rounded up to lanes when m > 1. `out`: an array to write to."""
        m = len(k)
        if out is None:
            out = np.empty((1 if m == 1 else -(-m // LANES) * LANES, self.n_tasks))
        lanes = [np.zeros((k.shape[1], LANES)) for _ in range(0, m, LANES)]
        for i, row in enumerate(k):
            lanes[i // LANES][:, i % LANES] = row

        def work(rows: tuple[int, int]) -> None:
            users, coef, shift = self.block(rows)
            first, last = self.pair_start[rows[0]], self.pair_start[rows[1]]
            if len(out) == 1:
                score_one(self.ptr, users, coef, first, last, shift, k[0], out[0])
            else:
                for g, lane in enumerate(lanes):
                    score_lanes(self.ptr, users, coef, first, last, shift, lane, out[g * LANES : (g + 1) * LANES])

        threads.map(work, self.ranges())
        return out

    def chosen_scores(self, k: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """v (m, P) of the pairs (low, high), 0 where unobserved, and n_t (P,)."""
        order = np.argsort(low, kind="stable")
        tasks = np.empty(len(low), dtype=np.int64)
        find_tasks(self.pair_start, self.partner, low[order], high[order], tasks)
        out = np.zeros((len(k), len(low)))
        seen = tasks >= 0
        sizes = np.zeros(len(low), dtype=np.int64)
        sizes[order[seen]] = self.ptr[tasks[seen] + 1] - self.ptr[tasks[seen]]
        tasks, at = tasks[seen], order[seen]
        for rows in self.ranges():
            here = (tasks >= self.pair_start[rows[0]]) & (tasks < self.pair_start[rows[1]])
            if here.any():
                users, coef, shift = self.block(rows)
                score_chosen(tasks[here], at[here], self.ptr, users, coef, shift, k, out)
        return out, sizes

    def among(self, items: np.ndarray) -> PairTable:
        """The tasks among these items (sorted), which become items 0, 1, ..."""
        local = np.full(self.n_items, -1, dtype=np.int64)
        local[items] = np.arange(len(items))
        pairs, observations = np.zeros(len(items), dtype=np.int64), np.zeros(len(items), dtype=np.int64)
        count_among(items, local, self.pair_start, self.partner, self.ptr, pairs, observations)
        total = int(observations.sum())
        part = PairTable(
            np.concatenate([[0], np.cumsum(pairs)]),
            np.empty(pairs.sum(), dtype=self.partner.dtype),
            np.empty(pairs.sum() + 1, dtype=np.int64),
            np.empty(total, dtype=self.users.dtype),
            np.empty(total),
        )
        copy_among(
            items, local, self.pair_start, self.partner, self.ptr, self.users, self.coef,
            part.partner, part.ptr, part.users, part.coef,
        )  # fmt: skip
        return part


class Streamed(PairTable):
    """Tasks of a ratings matrix whose coefficients are computed when they are read, one block of items at a time."""

    streamed = True

    def __init__(
        self, R: sparse.csr_array, g: np.ndarray, sign: bool, K: np.ndarray, ridge: np.ndarray, n_threads: int, limit: float
    ) -> None:
        self.R, self.g, self.sign, self.K, self.ridge, self.n_threads, self.limit = R, g, sign, K, ridge, n_threads, limit
        D = R.shape[1]
        entry = sparse.csr_array((np.arange(R.nnz), R.indices, R.indptr), shape=R.shape).tocsc()
        entry.sort_indices()
        self.index = (
            entry.indices.astype(np.int32),
            entry.indptr.astype(np.int64),
            entry.data.astype(np.int64),
            R.indptr.astype(np.int64),
            R.indices.astype(np.int32),
        )
        pairs, observations = np.zeros(D, dtype=np.int64), np.zeros(D, dtype=np.int64)
        ratings = np.concatenate([[0], np.cumsum(np.diff(entry.indptr))])
        on_threads(lambda b: row_sizes(*self.index, b[0], b[1], pairs, observations), cut(ratings, 4 * n_threads), n_threads)
        self.pair_start = np.concatenate([[0], np.cumsum(pairs)])
        self.obs_start = np.concatenate([[0], np.cumsum(observations)])
        self.partner = np.empty(self.pair_start[-1], dtype=np.int32)
        self.ptr = np.empty(self.pair_start[-1] + 1, dtype=np.int64)
        self.ptr[-1] = self.obs_start[-1]

    def ranges(self) -> list[tuple[int, int]]:
        return cut(self.obs_start, BLOCKS, self.limit)

    def fill(self, rows: tuple[int, int], users: np.ndarray, y: np.ndarray, shift: int) -> None:
        """Index the tasks of these items. Partners and offsets come out the same every time."""
        index_rows(
            *rows, self.index, self.R.data, self.g, self.sign,
            self.pair_start, self.obs_start, shift, self.partner, self.ptr, users, y,
        )  # fmt: skip

    def block(self, rows: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, int]:
        shift, users, coef = self._indexed(rows)
        if self.ridge.size:
            first, last = self.pair_start[rows[0]], self.pair_start[rows[1]]
            check_definite(solve_tasks(first, last, self.ptr, users, coef, shift, NONE, self.K, self.ridge))
        return users, coef, shift

    def _indexed(self, rows: tuple[int, int]) -> tuple[int, np.ndarray, np.ndarray]:
        shift = int(self.obs_start[rows[0]])
        size = int(self.obs_start[rows[1]]) - shift
        users, y = np.empty(size, dtype=user_type(self.R.shape[0])), np.empty(size)
        self.fill(rows, users, y, shift)
        return shift, users, y

    def index_only(self) -> Streamed:
        """Partners and sizes of all tasks, without solving any."""
        on_threads(lambda rows: self._indexed(rows)[0], self.ranges(), self.n_threads)
        return self

    def stored(self) -> PairTable:
        """The same with all coefficients in memory."""
        total = int(self.obs_start[-1])
        users, coef = np.empty(total, dtype=user_type(self.R.shape[0])), np.empty(total)
        on_threads(lambda rows: self.fill(rows, users, coef, 0), self.ranges(), self.n_threads)
        table = PairTable(self.pair_start, self.partner, self.ptr, users, coef)
        solve(table, self.K, self.ridge, self.n_threads, additive=not self.sign)
        return table

    def among(self, items: np.ndarray) -> PairTable:
        mark = sparse.csr_array((np.arange(1, self.R.nnz + 1), self.R.indices, self.R.indptr), shape=self.R.shape)
        kept = mark[:, items].tocsr()
        kept.sort_indices()
        entry = kept.data - 1
        R = sparse.csr_array((self.R.data[entry], kept.indices, kept.indptr), shape=kept.shape)
        part = Streamed(R, self.g[entry], self.sign, self.K, self.ridge, self.n_threads, self.limit)
        return part.index_only()


def check_definite(bad: int) -> None:
    if bad:
        raise ValueError(
            f"PairwiseRidge: kernel matrices that are not positive definite ({bad}) cannot be solved; "
            "a positive definite kernel or a larger ridge would do"
        )


def solve(table: PairTable, K: np.ndarray, ridge: np.ndarray, n_threads: int, additive: bool = False) -> None:
    """The duals of all tasks in place of their targets; `additive`: these are differences of one number per item."""
    if not ridge.size:
        return
    done = solve_shared(table, K, ridge, n_threads, additive)
    rows = [(int(table.pair_start[a]), int(table.pair_start[b])) for a, b in table.ranges()]
    bad = on_threads(lambda r: solve_tasks(r[0], r[1], table.ptr, table.users, table.coef, 0, done, K, ridge), rows, n_threads)
    check_definite(sum(bad))


def solve_shared(table: PairTable, K: np.ndarray, ridge: np.ndarray, n_threads: int, additive: bool) -> np.ndarray:
    """Solve the large tasks that have the same queries as another one; returns which those are (none: an empty array)."""
    large = np.flatnonzero(np.diff(table.ptr) >= MANY)
    marks = np.empty(large.size, dtype=np.uint64)
    row_marks(table.ptr, table.users, large, marks)
    done, sizes = NONE, np.diff(table.ptr)
    for group in groups(marks):
        tasks = large[group]
        n = int(sizes[tasks[0]])
        if not (sizes[tasks] == n).all():
            continue  # one mark, different queries: each on its own
        start, whole = table.ptr[tasks], bool((np.diff(tasks) == 1).all())
        at: Any = slice(start[0], start[0] + n * len(tasks)) if whole else (start[:, None] + np.arange(n)).ravel()
        users, y = table.users[at].reshape(-1, n), table.coef[at].reshape(-1, n)
        if not (users == users[0]).all():
            continue
        low, high = np.searchsorted(table.pair_start, tasks, side="right") - 1, table.partner[tasks]
        first = (low == low[0]) & additive
        star = ~first & ~(np.isin(low, high[first]) & np.isin(high, high[first])) | first  # all but what the first item gives
        A = K[np.ix_(users[0], users[0])]
        A[np.diag_indices(n)] += ridge[0] + ridge[1] * n
        try:
            with blas_threads(n_threads if n >= LARGE else 1):
                factor = scipy.linalg.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
                y[star] = scipy.linalg.cho_solve(factor, y[star].T, check_finite=False).T
        except np.linalg.LinAlgError:
            check_definite(1)
        task_of = np.zeros(table.n_items, dtype=np.int64)
        task_of[high[first]] = np.flatnonzero(first)
        for t in np.flatnonzero(~star):
            np.subtract(y[task_of[high[t]]], y[task_of[low[t]]], out=y[t])
        table.coef[at] = y.ravel()
        done = np.zeros(table.n_tasks, dtype=bool) if not done.size else done
        done[tasks] = True
    return done


def groups(marks: np.ndarray) -> list[np.ndarray]:
    """The positions of every number that occurs more than once."""
    order = np.argsort(marks, kind="stable")
    edges = np.flatnonzero(np.diff(marks[order])) + 1
    return [group for group in np.split(order, edges) if len(group) > 1]


def table_of_ratings(
    R: sparse.csr_array, g: np.ndarray, sign: bool, K: np.ndarray, ridge: np.ndarray, n_threads: int, max_memory: float
) -> PairTable:
    """The tasks of all pairs of columns of R; g holds what is subtracted from each rating before the difference is taken."""
    width = 8 + np.dtype(user_type(R.shape[0])).itemsize
    table = Streamed(R, g, sign, K, ridge, n_threads, limit=max(max_memory / (4 * n_threads * width), 1.0))
    needed = int(table.obs_start[-1]) * width + table.n_tasks * 12
    return table.stored() if needed <= max_memory else table.index_only()


def table_of_comparisons(
    n_items: int, low: np.ndarray, high: np.ndarray, users: np.ndarray, y: np.ndarray, n: int, K: np.ndarray, ridge: np.ndarray,
    n_threads: int,
) -> PairTable:  # fmt: skip
    """The tasks of listed observations: query users[i] says y[i] about the pair (low[i], high[i]); no triple twice."""
    pair = low * n_items + high
    kinds, which, sizes = np.unique(pair, return_inverse=True, return_counts=True)
    rank = np.empty(len(kinds), dtype=np.int64)
    rank[np.lexsort((kinds, sizes, kinds // n_items))] = np.arange(len(kinds))  # by p, then size, then q
    order = np.lexsort((users, rank[which]))
    sorted_kinds, sorted_sizes = np.empty_like(kinds), np.empty_like(sizes)
    sorted_kinds[rank], sorted_sizes[rank] = kinds, sizes
    table = PairTable(
        np.searchsorted(sorted_kinds // n_items, np.arange(n_items + 1)),
        (sorted_kinds % n_items).astype(np.int32),
        np.concatenate([[0], np.cumsum(sorted_sizes)]),
        users[order].astype(user_type(n)),
        y[order].astype(float),
    )
    solve(table, K, ridge, n_threads)
    return table
