"""What a ranker minimises: the weight of the pairs that an order puts the wrong way round.

    F_x(c) = sum over pairs of |S_pq(x)| 1{c_pq != sign S_pq(x)}

The skew matrices S(x) of many queries are made one after the other in buffers that are used again: never m x D x D numbers, and
never one object for each of a million pairs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from lawful._threads import Threads
from lawful.surrogates.pairs._table import PairTable
from lawful.surrogates.pairs.compiled import LANES, TILE, assemble

__all__ = ["EachObjective", "MixedObjective", "PairObjective"]

BATCH = 2 * LANES  # queries whose scores are held at once
SCORE_BYTES = 2**28  # above this only one group of lanes is held
DOUBLE_ITEMS = 512  # S of more items is held in single precision: it is the largest array of a decode, and read many times
SMALL = 20_000  # with less to do threads cost more than they give
LARGEST = 2**34  # bytes of one S

Block = tuple[Sequence[int], Callable[[int], np.ndarray]]


class PairObjective:
    """F of m queries, from the tasks in a table, kernel rows k (m, n) and prior means f (m, d).

    items   (d,) the items that are ordered, sorted item numbers; `n_items` is d
    shape   (m, d(d-1)/2)
    """

    def __init__(
        self, table: PairTable, k: np.ndarray, f: np.ndarray, items: np.ndarray, by_count: bool, n_threads: int, memory: float
    ) -> None:
        self.table, self.k, self.f, self.items = table, k, f, items
        self.by_count, self.memory = by_count, memory
        self.n_items = D = table.n_items
        self.shape = len(k), D * (D - 1) // 2
        self.n_threads = n_threads if table.n_observations + D * D > SMALL else 1
        self.dtype = np.float64 if D <= DOUBLE_ITEMS else np.float32
        if D * D * np.dtype(self.dtype).itemsize > LARGEST:
            raise ValueError(
                f"PairwiseRidge: the comparisons of {D} items are too many to be held at once; name candidates (items=), about "
                f"{int((LARGEST / 4) ** 0.5)} at most"
            )

    def __len__(self) -> int:
        return self.shape[0]

    def threads(self) -> Threads:
        """Threads for as much work as there is."""
        return Threads(self.n_threads)

    def skews(self, threads: Threads) -> Iterator[Block]:
        """Blocks of queries, and a function that gives S(x_i) of a query i of the block, in a buffer of the calling thread.

        The next call on the same thread overwrites it.
        """
        m = len(self)
        if m == 1:
            S = self._single(threads)
            yield range(1), lambda i: S
        elif m:
            table, D, buffers = self.table, self.n_items, threading.local()
            size = min(self._batch_size(), -(-m // LANES) * LANES)
            scores = np.empty((size, table.n_tasks))
            for start in range(0, m, size):
                table.scores(self.k[start : start + size], threads, scores)

                def skew(i: int, start: int = start) -> np.ndarray:
                    if not hasattr(buffers, "S"):
                        buffers.S = np.empty((D, D), self.dtype)
                    self._assemble(scores[i - start], self.f[i], 0, D, buffers.S)
                    return buffers.S

                yield range(start, min(start + size, m)), skew

    def _single(self, threads: Threads) -> np.ndarray:
        """S of a single query, its rows spread over the threads."""
        v, D = self.table.scores(self.k, threads)[0], self.n_items
        S = np.empty((D, D), self.dtype)
        step = max(1, D // (4 * TILE * threads.n_threads)) * TILE
        threads.map(lambda first: self._assemble(v, self.f[0], first, min(first + step, D), S), range(0, D, step))
        return S

    def _assemble(self, v: np.ndarray, f: np.ndarray, first: int, last: int, S: np.ndarray) -> None:
        table = self.table
        assemble(table.pair_start, table.partner, table.ptr, v, f, self.by_count, first, last, S)

    def _batch_size(self) -> int:
        """How many queries to score at once. Where tasks are solved again each time, as many as memory allows."""
        n_tasks = self.table.n_tasks
        size = BATCH if 8 * BATCH * n_tasks <= SCORE_BYTES else LANES
        if self.table.streamed:
            size = max(size, int(self.memory / (8 * max(n_tasks, 1))) // LANES * LANES)
        return size


class MixedObjective:
    """F of queries that different fits speak for: parts (which queries, as booleans; their objective), over the same items."""

    def __init__(self, parts: Sequence[tuple[np.ndarray, PairObjective]]) -> None:
        self.parts = [(np.flatnonzero(rows), F) for rows, F in parts]
        first = self.parts[0][1]
        self.items, self.n_items = first.items, first.n_items
        self.shape = sum(len(F) for _, F in self.parts), first.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def threads(self) -> Threads:
        return Threads(max(F.n_threads for _, F in self.parts))

    def skews(self, threads: Threads) -> Iterator[Block]:
        """As those of the parts, under the numbers that their queries have here."""
        for numbers, F in self.parts:
            place = {int(i): j for j, i in enumerate(numbers)}
            for rows, skew in F.skews(threads):
                yield numbers[list(rows)], lambda i, skew=skew, place=place: skew(place[int(i)])  # type: ignore[misc]


class EachObjective:
    """F over candidates of each query, (m, c) sorted and padded by -1, from an objective over all that are any query's."""

    def __init__(self, F: PairObjective | MixedObjective, items: np.ndarray) -> None:
        self.whole, self.items = F, items
        self.n_items = items.shape[1]
        self.shape = len(F), self.n_items * (self.n_items - 1) // 2

    def __len__(self) -> int:
        return self.shape[0]

    def candidates(self, i: int) -> np.ndarray:
        """The candidates of query i."""
        return self.items[i][self.items[i] >= 0]

    def tail(self, i: int) -> np.ndarray:
        """None: what is no candidate has no place."""
        return np.empty(0, dtype=np.int64)

    def threads(self) -> Threads:
        return self.whole.threads()

    def skews(self, threads: Threads) -> Iterator[Block]:
        for rows, skew in self.whole.skews(threads):

            def part(i: int, skew: Callable[[int], np.ndarray] = skew) -> np.ndarray:
                at = np.searchsorted(self.whole.items, self.candidates(i))
                return np.ascontiguousarray(skew(i)[np.ix_(at, at)])

            yield rows, part
