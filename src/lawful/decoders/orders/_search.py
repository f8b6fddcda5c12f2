"""Memetic search for orders within a time limit: a population of local optima, recombined and polished on all cores.

A child takes half of its places from one parent and fills the rest in the other parent's order; iterated local search
polishes it; it replaces the parent to which it is nearer if it is better than that one (deterministic crowding keeps the
population diverse). A thread is given a child only if the time that the last ones took says that it will be done in time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any

import numpy as np

from lawful._threads import n_threads
from lawful.decoders.orders._insertion import insertion_order
from lawful.decoders.orders._moves import breed, distance, polish, scatter, seed, violated

# Members and kicks per child for a budget of B kicks: about B^0.21 and sqrt(B), within these limits. Tuned on linear-ordering
# instances of 150 items, for 0.05 to 8 s of processor time.
MEMBERS, KICKS = (6, 20), (0.8, 2.0)  # KICKS: per item
SHARE = 0.4  # of the time, the most that the first population may take
FEWEST = 4  # kicks per child below which there is no time for a population
QUEUE = 2  # children in the making for each thread, so that none waits for the one that hands them out
STALE = 10  # children per member that may fail before the population is drawn anew around the best order
THREADS = 8  # at most
ROUND = 0.02  # seconds between two looks at the clock
SETTLED = 500  # more items take so long to come to their first local optimum that the clock is looked at on the way
SMALLEST = 4  # below this many items every order is a neighbour of every other


class Search:
    """The state of one search: A (D, D) skew float64, the best order so far, the population, the pace.

    Threads of the pool get copies and a generator of their own; what they share is A, which no one writes.
    """

    def __init__(self, A: np.ndarray, start: np.ndarray, tol: float, random_state: np.random.RandomState, threads: int) -> None:
        self.A, self.tol, self.random_state, self.threads = A, tol, random_state, threads
        self.best = start.astype(np.uint32)
        self.cost = violated(A, self.best)
        self.kicks = 1  # per child
        self.pace, self.fastest = 0.0, np.inf  # seconds a kick takes: lately, and at best
        self.pop = np.empty((0, len(start)), np.uint32)
        self.costs = np.empty(0)
        self.stale = 0

    def note(self, order: np.ndarray, cost: float) -> None:
        if cost < self.cost - self.tol:
            self.best, self.cost = order.copy(), cost

    def work(self, state: np.ndarray, kicks: int, how: str, given: np.ndarray) -> tuple[np.ndarray, float, float]:
        """(order, its cost, seconds per kick): an order kicked on, a random one, or the child of two. Runs on any thread."""
        begin = time.perf_counter()
        order = given.copy() if how == "kick" else np.empty(self.A.shape[0], np.uint32)
        if how == "kick":
            polish(self.A, order, state, kicks, self.tol)
        elif how == "scatter":
            scatter(self.A, order, state, kicks, self.tol)
        else:
            breed(self.A, given, order, state, kicks, self.tol)
        return order, violated(self.A, order), (time.perf_counter() - begin) / kicks

    def start(self, pool: ThreadPoolExecutor, kicks: int, how: str, given: np.ndarray) -> Future:
        state = np.zeros(1, np.uint64)
        seed(state, self.random_state.randint(2**31 - 1))
        return pool.submit(self.work, state, kicks, how, given)

    def finish(self, future: Future) -> tuple[np.ndarray, float]:
        order, cost, pace = future.result()
        self.note(order, cost)
        self.pace = 0.7 * self.pace + 0.3 * pace if self.pace else pace
        self.fastest = min(pace, self.fastest)  # to plan with: one stall of a busy machine should not change the method
        return order, cost

    def time_for(self, kicks: int, end: float) -> bool:
        return self.cost > 0 and end - time.perf_counter() > 1.2 * kicks * self.pace

    def admit(self, parents: np.ndarray, child: np.ndarray, cost: float) -> None:
        """The child takes the place of the nearer parent if it is better."""
        self.stale += 1
        same = np.flatnonzero(np.abs(self.costs - cost) <= self.tol)
        if len(same):  # as good as one that is there: most likely the same one, up to ties
            self.pop[same[0]] = child
            return
        i, j = parents
        nearer = i if distance(self.pop[i], child) < distance(self.pop[j], child) else j
        if cost < self.costs[nearer]:
            self.pop[nearer], self.costs[nearer], self.stale = child, cost, 0


def search(
    A: np.ndarray,
    start: np.ndarray,
    tol: float,
    time_limit: float,
    random_state: np.random.RandomState,
    threads: int | None = None,
) -> np.ndarray:
    """The best order found from `start` in `time_limit` seconds (time to compile not counted)."""
    A = np.ascontiguousarray(A, np.float64)
    if len(start) < SMALLEST:
        return insertion_order(A, start, len(start), tol)[0]
    _compile()
    end = time.perf_counter() + time_limit
    found = Search(A, start, tol, random_state, threads or min(n_threads(None), THREADS))
    with ThreadPoolExecutor(found.threads) as pool:
        _settle(found, end)
        _kick(found, pool, min(end, time.perf_counter() + 0.02 * time_limit))  # measures the pace
        _evolve(found, pool, end)
        _kick(found, pool, end)
    return found.best.astype(np.int64)


def improve(
    A: np.ndarray, start: np.ndarray, tol: float, kicks: int, random_state: np.random.RandomState, end: float = np.inf
) -> np.ndarray:
    """`start` after so many kicks of iterated local search by one thread: the same answer on every machine.

    It may stop at `end` (of `time.perf_counter`, time to compile not counted); kicks are then made in lots, with a look at the
    clock after each. A lot goes on where the last one ended, so that the answer is the same when time suffices.
    """
    if len(start) < SMALLEST:
        return start
    found = Search(np.ascontiguousarray(A, np.float64), start, tol, random_state, 1)
    if end < np.inf:
        begin = time.perf_counter()
        _compile()
        end += time.perf_counter() - begin
        if len(start) > SETTLED:
            _settle(found, end)
    state = np.zeros(1, np.uint64)
    seed(state, random_state.randint(2**31 - 1))
    left, lot, order = max(kicks, 1), max(kicks, 1) if end == np.inf else 1, found.best
    while left > 0 and (end == np.inf or time.perf_counter() < end):
        order, cost, pace = found.work(state, min(lot, left), "kick", order)
        found.note(order, cost)
        left, lot = left - lot, max(1, int(ROUND / max(pace, 1e-9)))
    return found.best.astype(np.int64)


def _settle(found: Search, end: float) -> None:
    """Sweeps until none gains: the first local optimum, with a look at the clock after each sweep."""
    while time.perf_counter() < end:
        order, saved, _ = insertion_order(found.A, found.best, 1, found.tol)
        found.best = order.astype(np.uint32)
        if saved <= found.tol:
            break
    found.cost = violated(found.A, found.best)


def _kick(found: Search, pool: ThreadPoolExecutor, end: float) -> None:
    """Iterated local search around the best order until the end."""
    while found.cost > 0:
        left = end - time.perf_counter()
        if left <= max(found.pace, 1e-4):
            return
        n = max(1, int(min(ROUND, 0.8 * left) / found.pace)) if found.pace else 1
        for future in [found.start(pool, n, "kick", found.best) for _ in range(found.threads)]:
            found.finish(future)


def _evolve(found: Search, pool: ThreadPoolExecutor, end: float) -> None:
    """Populations, one after the other, for as long as there is time for one more child per thread."""
    D, budget = len(found.best), max(end - time.perf_counter(), 0.0) * found.threads / max(found.fastest, 1e-9)
    members = int(np.clip(budget**0.21, *MEMBERS))
    found.kicks = int(np.clip(budget**0.5, KICKS[0] * D, KICKS[1] * D))
    found.kicks = min(found.kicks, int(SHARE * budget / members))
    if found.kicks < FEWEST:
        return
    while found.time_for(found.kicks, end):
        _populate(found, pool, members, end)
        if len(found.pop) < 2:
            return
        _breed(found, pool, end)


def _breed(found: Search, pool: ThreadPoolExecutor, end: float) -> None:
    """Children of one population until it has lost its variety or time is up."""
    making: dict[Future, np.ndarray] = {}
    _stream(found, pool, end, lambda: _conceive(found, pool, making), lambda f: found.admit(making.pop(f), *found.finish(f)))


def _populate(found: Search, pool: ThreadPoolExecutor, members: int, end: float) -> None:
    """The best order and polished random ones, as many as the time allows."""
    orders, costs, asked = [found.best], [found.cost], 1

    def ask() -> Future | None:
        nonlocal asked
        asked += 1
        return found.start(pool, found.kicks, "scatter", found.best) if asked <= members else None

    def take(future: Future) -> None:
        order, cost = found.finish(future)
        orders.append(order)
        costs.append(cost)

    _stream(found, pool, end, ask, take)
    found.pop, found.costs, found.stale = np.stack(orders), np.array(costs), 0


def _conceive(found: Search, pool: ThreadPoolExecutor, making: dict[Future, np.ndarray]) -> Future | None:
    """A child of two random members; none when the population has grown stale."""
    if found.stale > STALE * len(found.pop):
        return None
    parents = found.random_state.choice(len(found.pop), 2, replace=False)
    future = found.start(pool, found.kicks, "breed", found.pop[parents])
    making[future] = parents
    return future


def _stream(
    found: Search, pool: ThreadPoolExecutor, end: float, ask: Callable[[], Future | None], take: Callable[[Future], Any]
) -> None:
    """Keep the threads busy: ask for tasks while there is time for them, take what is done, until nothing is under way."""
    busy: set[Future] = set()
    while True:
        while len(busy) < QUEUE * found.threads:
            ahead = 1 + len(busy) // found.threads  # how many tasks a thread has to do until this one is done
            future = ask() if found.time_for(ahead * found.kicks, end) else None
            if future is None:
                break
            busy.add(future)
        if not busy:
            return
        done, busy = wait(busy, return_when=FIRST_COMPLETED)
        for future in done:
            take(future)


@cache
def _compile() -> None:
    """Run every kernel once on a toy, so that compiling does not eat anyone's time limit."""
    A = np.zeros((SMALLEST, SMALLEST))
    A[0, 1], A[1, 0] = 1.0, -1.0
    state, pair = np.zeros(1, np.uint64), np.empty((2, SMALLEST), np.uint32)
    seed(state, 0)
    for order in pair:
        scatter(A, order, state, 1, 0.0)
    breed(A, pair, pair[0].copy(), state, 1, 0.0)
    polish(A, pair[0], state, 1, 0.0)
    distance(pair[0], pair[1])
    violated(A, insertion_order(A, pair[0], 1, 0.0)[0])
