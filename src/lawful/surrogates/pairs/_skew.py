"""The skew matrices S(x) of many queries, one after the other in buffers that are used again: never m x D x D numbers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from lawful._threads import Threads
from lawful.surrogates.pairs._scores import LANES, TILE, assemble
from lawful.surrogates.pairs._table import PairTable

BATCH = 2 * LANES  # queries whose scores are held at once
SCORE_BYTES = 2**28  # above this only one group of lanes is held
DOUBLE_ITEMS = 512  # S of more items is held in single precision: it is the largest array of a decode, and read many times
SMALL = 20_000  # with less to do threads cost more than they give


def each_skew(
    function: Callable[[int, np.ndarray], Any],
    table: PairTable,
    k: np.ndarray,
    f: np.ndarray,
    by_count: bool,
    n_threads: int,
    max_memory: float,
) -> list[Any]:
    """[function(i, S(x_i))] for the kernel rows k (m, n) and the prior means f (m, D)."""
    m, D = len(k), table.n_items
    if m == 0:
        return []
    n_threads = n_threads if table.n_observations + D * D > SMALL else 1
    with Threads(n_threads) as threads:
        if m == 1:
            return [function(0, one_skew(table, k, f[0], by_count, threads))]
        buffers = threading.local()

        def work(task: tuple[int, np.ndarray]) -> Any:
            i, v = task
            if not hasattr(buffers, "S"):
                buffers.S = empty_skew(D)
            assemble(table.pair_start, table.partner, table.ptr, v, f[i], by_count, 0, D, buffers.S)
            return function(i, buffers.S)

        size = min(batch_size(table, max_memory), -(-m // LANES) * LANES)
        scores = np.empty((size, table.n_tasks))
        out: list[Any] = []
        for start in range(0, m, size):
            table.scores(k[start : start + size], threads, scores)
            out += threads.map(work, [(i, scores[i - start]) for i in range(start, min(start + size, m))])
        return out


def one_skew(table: PairTable, k: np.ndarray, f: np.ndarray, by_count: bool, threads: Threads) -> np.ndarray:
    """S of a single query, its rows spread over the threads."""
    v = table.scores(k, threads)[0]
    D = table.n_items
    S = empty_skew(D)
    step = max(1, D // (4 * TILE * threads.n_threads)) * TILE

    def work(first: int) -> None:
        assemble(table.pair_start, table.partner, table.ptr, v, f, by_count, first, min(first + step, D), S)

    threads.map(work, range(0, D, step))
    return S


def empty_skew(D: int) -> np.ndarray:
    return np.empty((D, D), dtype=np.float64 if D <= DOUBLE_ITEMS else np.float32)


def batch_size(table: PairTable, max_memory: float) -> int:
    """How many queries to score at once. Where tasks are solved again each time, as many as memory allows."""
    size = BATCH if 8 * BATCH * table.n_tasks <= SCORE_BYTES else LANES
    if table.streamed:
        size = max(size, int(max_memory / (8 * max(table.n_tasks, 1))) // LANES * LANES)
    return size
