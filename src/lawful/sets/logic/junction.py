r"""Dynamic programming over all rows at once, for parts whose labels hang together like a tree.

Every gate becomes factors over few variables: a short gate is one table, a long one a chain of counters
s_i = min(s_{i-1} + literal_i, cap), each with one value per assignment, so that sums over counters change nothing. Variables
are eliminated one after the other, the cheapest first; eliminating v from the factors that mention it,

    tab_v(v, sep) = factors + messages,      message_v(sep) = max_v tab_v   or   log sum_v exp tab_v,

makes a tree of tables (Dechter's buckets, a junction tree). Up the tree and back down: the best assignment by max, and by sums
the marginals of prod_t exp(logit_t c_t) on the assignments that obey. In a hierarchy this is the usual recursion from the
leaves to the root; the price is the largest table, exponential in the width of the graph and not in the number of labels.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from math import prod

import numpy as np

from lawful.sets.logic.graph import Gate
from lawful.sets.logic.parts import Part

__all__ = ["Junction"]

SHORT = 4  # gates with so many literals are one table
CLIQUE, TOTAL = 2**12, 2**19  # states in the largest table, and in all
CELLS = 2**22  # numbers in the tables of one batch of rows


@dataclass
class Bucket:
    """The table of one variable: axes `scope` = (variable, then those that are eliminated later, in order)."""

    variable: int
    scope: tuple[int, ...]
    static: np.ndarray  # log of the factors, 0 or -inf, with an axis for the rows
    parent: int = -1
    children: list[int] = field(default_factory=list)


class Junction:
    """`best` and `sums` of a part, exactly."""

    exact = True

    def __init__(self, n: int, buckets: list[Bucket], sizes: list[int]) -> None:
        self.n, self.buckets, self.sizes = n, buckets, sizes
        self.size = sum(prod(sizes[v] for v in b.scope) for b in buckets)

    # ------------------------------------------------------------------ the tree of tables

    @classmethod
    def of(cls, part: Part) -> Junction | None:
        """None when the tables would be too large."""
        sizes = [2] * (part.n + len(part.gates))
        factors: list[tuple[tuple[int, ...], np.ndarray]] = []
        place = _order(part)
        for i, gate in enumerate(part.gates):
            _factors(gate, part.n + i, place, sizes, factors)
        for gate in part.asserted:
            _factors(gate, None, place, sizes, factors)
        order = _elimination(sizes, [scope for scope, _ in factors])
        if order is None:
            return None
        turn = {v: i for i, (v, _) in enumerate(order)}
        buckets = []
        for v, around in order:
            scope = (v, *sorted(around, key=turn.__getitem__))
            buckets.append(Bucket(v, scope, np.zeros([sizes[u] for u in scope] + [1])))
        for i, bucket in enumerate(buckets):
            if len(bucket.scope) > 1:
                bucket.parent = turn[bucket.scope[1]]
                buckets[bucket.parent].children.append(i)
        for scope, allowed in factors:
            bucket = buckets[min(turn[v] for v in scope)]
            axes = np.argsort([turn[v] for v in scope])
            table = np.where(allowed.transpose(axes), 0.0, -np.inf)
            bucket.static += _spread(table[..., None], [scope[a] for a in axes], bucket.scope)
        return cls(part.n, buckets, sizes)

    def any(self) -> np.ndarray | None:
        """(n,) one assignment, None where there is none."""
        tables, _, total = self._up(np.zeros((1, self.n)), _best)
        return self._choose(tables)[0] if np.isfinite(total[0]) else None

    # ------------------------------------------------------------------ up and down

    def _up(self, logits: np.ndarray, reduce: Reduce) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
        """Tables and messages of all buckets for rows (m, n), and the total of each row."""
        tables: list[np.ndarray] = []
        messages: list[np.ndarray] = []
        columns = np.ascontiguousarray(logits.T)
        total = np.zeros(len(logits))
        for bucket in self.buckets:
            shape = [self.sizes[v] for v in bucket.scope]
            table = np.empty([*shape, len(logits)])
            table[...] = bucket.static
            if bucket.variable < self.n:
                table[1] += columns[bucket.variable]
            for child in bucket.children:
                table += _spread(messages[child], self.buckets[child].scope[1:], bucket.scope)
            message = reduce(table, (0,))
            if bucket.parent < 0:
                total = total + message
            tables.append(table)
            messages.append(message)
        return tables, messages, total

    def _down(self, tables: list[np.ndarray], messages: list[np.ndarray], reduce: Reduce) -> np.ndarray:
        """(2, n, m): for each label and value the total over all assignments with that value, relative to each other."""
        out = np.empty((2, self.n, tables[0].shape[-1]))
        for i in range(len(self.buckets) - 1, -1, -1):
            bucket, table = self.buckets[i], tables[i]
            if bucket.parent >= 0:
                parent = self.buckets[bucket.parent]
                own = _spread(messages[i], bucket.scope[1:], parent.scope)
                with np.errstate(invalid="ignore"):
                    rest = np.where(np.isneginf(own), -np.inf, tables[bucket.parent] - own)
                gone = tuple(a for a, v in enumerate(parent.scope) if v not in bucket.scope)
                table += reduce(rest, gone)[None] if gone else rest[None]
            if bucket.variable < self.n:
                others = tuple(range(1, len(bucket.scope)))
                out[:, bucket.variable] = reduce(table, others) if others else table
        return out

    def _choose(self, tables: list[np.ndarray]) -> np.ndarray:
        """(m, n) the best assignment, from the last eliminated variable back to the first."""
        m = tables[0].shape[-1]
        rows = np.arange(m)
        chosen: dict[int, np.ndarray] = {}
        for bucket, table in zip(reversed(self.buckets), reversed(tables)):
            here = table[(slice(None), *(chosen[v] for v in bucket.scope[1:]), rows)]
            chosen[bucket.variable] = here.argmax(axis=0)
        return np.stack([chosen[t] for t in range(self.n)], axis=1).astype(bool)

    def _rows(self, m: int) -> list[slice]:
        step = max(16, CELLS // self.size)
        return [slice(i, min(i + step, m)) for i in range(0, m, step)]

    def best(self, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For costs (m, n) of being true: the cheapest assignments (m, n), margins (m,) and gaps (m,), which are 0.

        The second-best assignment differs somewhere: it is the best of those in which some label is the other way round.
        """
        m = len(costs)
        found, margin = np.empty(costs.shape, bool), np.empty(m)
        for rows in self._rows(m):
            tables, messages, total = self._up(-costs[rows], _best)
            found[rows] = self._choose(tables)
            other = np.where(found[rows].T, *self._down(tables, messages, _best))
            margin[rows] = (total - other).min(axis=0)
        return found, np.maximum(margin, 0.0), np.zeros(m)

    def sums(self, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(m,) log of the sum of prod_t exp(logits_t c_t) over the assignments, (m, n) the share of those with each label."""
        out, total = np.empty(logits.shape), np.empty(len(logits))
        for rows in self._rows(len(logits)):
            tables, messages, total[rows] = self._up(logits[rows], _sum)
            off, on = self._down(tables, messages, _sum)
            top = np.maximum(off, on)
            off, on = np.exp(off - top), np.exp(on - top)
            out[rows] = (on / (off + on)).T
        return total, out


class Reduce:
    """max, or log of the sum of exp, over some axes."""

    def __init__(self, sums: bool) -> None:
        self.sums = sums

    def __call__(self, table: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        top = table.max(axis=axes, keepdims=True)
        if not self.sums:
            return top.squeeze(axes)
        top[np.isneginf(top)] = 0.0
        with np.errstate(divide="ignore"):
            return (top + np.log(np.exp(table - top).sum(axis=axes, keepdims=True))).squeeze(axes)


_best, _sum = Reduce(False), Reduce(True)


def _spread(table: np.ndarray, scope: tuple[int, ...] | list[int], wide: tuple[int, ...]) -> np.ndarray:
    """A table over `scope` (and rows, last) with axes for all of `wide`; both are in the same order."""
    index = [slice(None) if v in scope else None for v in wide]
    return table[(*index, slice(None))]


def _order(part: Part) -> dict[int, int]:
    """Places of the nodes along the short gates, depth first: counters then follow the branches of a hierarchy."""
    near: dict[int, list[int]] = {}
    for i, (_, _, literals) in enumerate(part.gates):
        if len(literals) <= SHORT:
            for lit in literals:
                near.setdefault(lit >> 1, []).append(part.n + i)
                near.setdefault(part.n + i, []).append(lit >> 1)
    for _, _, literals in part.asserted:
        if len(literals) <= SHORT:
            for lit in literals:
                near.setdefault(lit >> 1, []).extend(other >> 1 for other in literals if other != lit)
    place: dict[int, int] = {}
    for start in range(part.n + len(part.gates)):
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if node not in place:
                place[node] = len(place)
                waiting += [v for v in reversed(near.get(node, [])) if v not in place]
    return place


def _factors(
    gate: Gate,
    outcome: int | None,
    place: dict[int, int],
    sizes: list[int],
    factors: list[tuple[tuple[int, ...], np.ndarray]],
) -> None:
    """Tables that tie a gate to its node `outcome`, or make it hold (None)."""
    lo, hi, literals = gate
    n = len(literals)
    literals = tuple(sorted(literals, key=lambda lit: place[lit >> 1]))
    cap = lo if hi == n else hi + 1
    if n <= SHORT:
        grid = np.indices([2] * n)
        count = sum(grid[i] ^ (lit & 1) for i, lit in enumerate(literals))
        _close(count, lo, hi, [lit >> 1 for lit in literals], outcome, factors)
        return
    previous, count = literals[0] >> 1, np.arange(2) ^ (literals[0] & 1)  # the count that each state of `previous` stands for
    for i, lit in enumerate(literals[1:], start=1):
        now = np.minimum(count[:, None] + (np.arange(2) ^ (lit & 1))[None, :], cap)
        if i == n - 1:
            _close(now, lo, hi, [previous, lit >> 1], outcome, factors)
            return
        values = np.unique(now)
        if outcome is None:  # counts from which the gate can no longer hold lead nowhere
            values = values[(values <= hi) & (values + (n - 1 - i) >= lo)]
        sizes.append(len(values))
        factors.append(((previous, lit >> 1, len(sizes) - 1), now[:, :, None] == values[None, None, :]))
        previous, count = len(sizes) - 1, values


def _close(
    count: np.ndarray,
    lo: int,
    hi: int,
    scope: list[int],
    outcome: int | None,
    factors: list[tuple[tuple[int, ...], np.ndarray]],
) -> None:
    true = (lo <= count) & (count <= hi)
    if outcome is None:
        factors.append((tuple(scope), true))
    else:
        factors.append(((*scope, outcome), np.stack([~true, true], axis=-1)))


def _elimination(sizes: list[int], scopes: list[tuple[int, ...]]) -> list[tuple[int, set[int]]] | None:
    """(variable, its neighbours when it goes), the smallest table first; None when tables grow too large."""
    near: list[set[int]] = [set() for _ in sizes]
    for scope in scopes:
        for v in scope:
            near[v].update(u for u in scope if u != v)

    def weight(v: int) -> int:
        return prod(sizes[u] for u in near[v]) * sizes[v]

    weights = [weight(v) for v in range(len(sizes))]
    heap = [(w, v) for v, w in enumerate(weights)]
    heapq.heapify(heap)
    gone: set[int] = set()
    order: list[tuple[int, set[int]]] = []
    total = 0
    while heap:
        w, v = heapq.heappop(heap)
        if v in gone or w != weights[v]:
            continue
        total += w
        if w > CLIQUE or total > TOTAL:
            return None
        gone.add(v)
        around = near[v]
        order.append((v, around))
        for u in around:
            near[u].discard(v)
            near[u] |= around - {u}
        for u in around:
            weights[u] = weight(u)
            heapq.heappush(heap, (weights[u], u))
    return order
