r"""The best order, proven: an integer programme over x_ij = 1 if i precedes j (i < j), 3-cycles excluded as they appear.

    min  sum of |A_ij| over violated pairs     subject to   0 <= x_ij + x_jk - x_ik <= 1   for i < j < k,   x in {0, 1}

Strongly connected components of the arcs A_ij > 0 are ordered on their own: between them nothing need be violated. A few items
are solved by dynamic programming. For the rest the linear relaxation is solved by cutting planes; where it is not already
integral, what its reduced costs do not decide goes to HiGHS, cycles of its answer are cut, and so on until there are none.
"""

from __future__ import annotations

import time
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from lawful.decoders.orders._bounds import packed_triangles, subset_order, violated_triangles
from lawful.decoders.orders._insertion import weights

SUBSETS = 13  # up to here 2^D D steps are cheaper than one linear programme
SCALE = 1e3  # the largest weight in the programme: HiGHS stops at absolute gaps of 1e-6
INTEGRAL, CUT = 1e-6, 1e-6  # distance from integers that counts as none, violation that counts as one
ROUND = 20  # at most so many cuts per item in one round
NEVER = 1e9  # seconds
VISITS, PACE = 10**9, 2e8  # of the packing of triangles: at most, and per second
SET_UP = 1e-6  # seconds that it takes to set up a linear programme, per pair: without them it is not begun


class Proven(NamedTuple):
    """An order, a lower bound of the violated weight of every order, and whether the two meet."""

    order: np.ndarray
    bound: float
    optimal: bool


def components(A: np.ndarray) -> list[np.ndarray]:
    """Strongly connected components of the arcs A > 0, each sorted, in an order that violates no arc between them."""
    count, label = connected_components(csr_array(A > 0), directed=True, connection="strong")
    groups = [np.flatnonzero(label == c) for c in range(count)]
    p, q = np.nonzero(A > 0)
    arcs = np.zeros((count, count), bool)
    arcs[label[p], label[q]] = True
    np.fill_diagonal(arcs, False)
    entering, sequence = arcs.sum(axis=0), []
    ready = [(groups[c][0], c) for c in np.flatnonzero(entering == 0)]
    heapify(ready)
    while ready:  # of those that may come next, the one with the lowest item number
        c = heappop(ready)[1]
        sequence.append(groups[c])
        for d in np.flatnonzero(arcs[c]):
            entering[d] -= 1
            if entering[d] == 0:
                heappush(ready, (groups[d][0], d))
    return sequence


def exact_order(A: np.ndarray, start: np.ndarray, time_limit: float | None = None, relaxed: bool = False) -> Proven:
    """The best order of the skew matrix A; when the time ends before the proof, the better of it and `start`, and a bound.

    relaxed: only the linear relaxation, which gives a bound; the order is then optimal only where it happens to be integral.
    """
    end = time.perf_counter() + (NEVER if time_limit is None else min(time_limit, NEVER))
    A = np.asarray(A, np.float64)
    place = np.empty(len(start), np.int64)
    place[start] = np.arange(len(start))
    parts, bound, optimal = [], 0.0, True
    for items in components(A):
        B = np.ascontiguousarray(A[np.ix_(items, items)])
        guess = np.argsort(place[items])
        if len(items) <= 2:
            found = Proven(guess if len(items) == 1 or B[0, 1] == 0 else np.argsort([-B[0, 1], B[0, 1]]), 0.0, True)
        elif len(items) <= SUBSETS:
            order, cost = subset_order(B)
            found = Proven(order, cost, True)
        elif (left := end - time.perf_counter()) < SET_UP * len(items) ** 2:
            found = Proven(guess, packed(B, guess, left), False)
        else:
            found = _Programme(B, guess, end).solve(relaxed)
        parts.append(items[found.order])
        bound, optimal = bound + found.bound, optimal and found.optimal
    return Proven(np.concatenate(parts), bound, optimal)


def packed(A: np.ndarray, guess: np.ndarray, time_limit: float) -> float:
    """The bound of as many packed triangles as there is time for."""
    visits = int(min(VISITS, max(PACE * time_limit, len(A) ** 2)))
    return packed_triangles(A, guess, np.abs(A).max(), visits)


def violated(A: np.ndarray, order: np.ndarray) -> float:
    positions = np.empty(len(order), np.uint32)
    positions[order] = np.arange(len(order))
    return weights(A, positions)[1]


def strongest(table: np.ndarray, most: int) -> np.ndarray:
    """The rows with the largest first column, largest first; of equals the first ones."""
    return table[np.argsort(-table[:, 0], kind="stable")[:most]]


class _Programme:
    """One strongly connected component."""

    def __init__(self, A: np.ndarray, guess: np.ndarray, end: float) -> None:
        self.A, self.end, self.n = A, end, len(A)
        self.i, self.j = np.triu_indices(self.n, 1)
        self.column = np.zeros((self.n, self.n), np.int64)
        self.column[self.i, self.j] = np.arange(len(self.i))
        self.unit = SCALE / np.abs(A).max()
        a = A[self.i, self.j] * self.unit
        self.cost, self.constant = -a, a[a > 0].sum()  # violated weight = constant + cost . x
        self.rows = np.empty((0, 3), np.int64)  # triples i < j < k in use, and the side of their inequality
        self.side = np.empty(0, bool)
        self.lower, self.upper = np.zeros(len(a)), np.ones(len(a))
        self.order, self.best = guess, violated(A, guess) * self.unit
        self.bound = packed(A, guess, self.remaining()) * self.unit

    def solve(self, relaxed: bool) -> Proven:
        x = self.cutting_planes()
        if x is not None and not relaxed and not self.closed:
            self.branch()
        bound = self.best if self.closed else self.bound
        return Proven(self.order, bound / self.unit, self.closed)

    @property
    def closed(self) -> bool:
        return self.best - self.bound <= 1e-9 * max(self.constant, SCALE)

    def matrix(self) -> tuple[csr_array, np.ndarray]:
        """x_ij + x_jk - x_ik <= 1, or its negative <= 0."""
        i, j, k = self.rows.T
        sign = np.where(self.side, 1.0, -1.0)
        columns = np.stack([self.column[i, j], self.column[j, k], self.column[i, k]], axis=1).ravel()
        values = np.stack([sign, sign, -sign], axis=1).ravel()
        pointer = np.arange(0, 3 * len(sign) + 1, 3)
        return csr_array((values, columns, pointer), shape=(len(sign), len(self.cost))), np.where(self.side, 1.0, 0.0)

    def cut(self, x: np.ndarray) -> int:
        """Add the most violated triangles at x; returns how many. Those found by the end of the time will do."""
        X, most = np.zeros((self.n, self.n)), ROUND * self.n
        X[self.i, self.j] = x
        size = (self.n - 1) * (self.n - 2)
        room = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, bool)
        table, least = np.empty((0, 5)), CUT
        for i in range(self.n - 2):
            found = violated_triangles(X, i, least, *room)
            excess, j, k, side = (values[:found] for values in room)
            table = np.concatenate([table, np.stack([excess, np.full(found, i), j, k, side], axis=1)])
            if len(table) > 4 * most:
                table = strongest(table, most)
                least = table[-1, 0]  # of equals the first ones stay
            if self.remaining() == 0:
                break
        table = strongest(table, most)
        self.rows = np.concatenate([self.rows, table[:, 1:4].astype(np.int64)])
        self.side = np.concatenate([self.side, table[:, 4].astype(bool)])
        return len(table)

    def improve(self, x: np.ndarray) -> None:
        """An order from a point of the relaxation: by the number of items that each one precedes."""
        X = np.zeros((self.n, self.n))
        X[self.i, self.j], X[self.j, self.i] = x, 1 - x
        order = np.argsort(-X.sum(axis=1), kind="stable")
        cost = violated(self.A, order) * self.unit
        if cost < self.best:
            self.order, self.best = order, cost

    def remaining(self) -> float:
        return max(self.end - time.perf_counter(), 0.0)

    def cutting_planes(self) -> np.ndarray | None:
        """The optimum of the triangle relaxation, or None when the time ends or bound and order meet before."""
        self.cut((self.cost < 0).astype(float))
        last = -np.inf
        while self.remaining() > 0:
            M, right = self.matrix()
            limits = np.stack([self.lower, self.upper], axis=1)
            options = {"time_limit": min(self.remaining(), NEVER)}
            found = linprog(self.cost, A_ub=M, b_ub=right, bounds=limits, method="highs", options=options)
            if found.status != 0:
                return None
            self.bound = max(self.bound, found.fun + self.constant)
            self.improve(found.x)
            if self.closed:
                return None
            self.fix(found)
            if found.fun > last + 1e-6 * SCALE:
                # Cuts that do not bind would only slow the next programme; they come back if needed. Only after a gain: at
                # a degenerate optimum the same ones would come and go for ever.
                tight = right - M @ found.x < 1e-6
                self.rows, self.side, last = self.rows[tight], self.side[tight], found.fun
            if self.cut(found.x) == 0:
                return found.x
        return None

    def fix(self, found: Any) -> None:
        """What a reduced cost larger than the gap forbids is forbidden for good."""
        gap = self.best - (found.fun + self.constant) + 1e-7 * SCALE
        self.upper = np.where(found.lower.marginals > gap, self.lower, self.upper)
        self.lower = np.where(-found.upper.marginals > gap, self.upper, self.lower)

    def branch(self) -> None:
        """Integer solutions of the cuts so far bound the optimum from below; one without cycles is optimal."""
        while self.remaining() > 0 and not self.closed:
            M, right = self.matrix()
            found = milp(
                self.cost,
                integrality=np.ones(len(self.cost)),
                bounds=Bounds(self.lower, self.upper),
                constraints=LinearConstraint(M, -np.inf, right),
                options={"time_limit": min(self.remaining(), NEVER), "mip_rel_gap": 0.0},
            )
            if found.status == 2:  # nothing is left beside what was fixed away: the order at hand is optimal
                self.bound = self.best
                return
            if found.mip_dual_bound is not None and np.isfinite(found.mip_dual_bound):
                self.bound = max(self.bound, min(found.mip_dual_bound + self.constant, self.best))
            if found.x is None:
                return
            x = np.round(found.x)
            self.improve(x)
            if self.cut(x) == 0:
                return
