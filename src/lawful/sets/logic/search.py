"""Parts that are neither few assignments nor like a tree: a search for each row, which proves its answer or says how far it is.

Rows whose labels, each at its cheapest value, obey the part need no search. Equal rows are searched once. Branch and bound
(`_branch`) repairs the others, which is quick where predictions violate little; rows on which it gives up go to integer
programming (`linear`), which stops after `time_limit` seconds with a lower bound.

Marginals over such a part are means over random assignments that obey: `SWEEPS` sweeps of Gibbs sampling (`_chain`) from each
of `STARTS` starts. One start is the best assignment, and the others are the best ones for log-odds with logistic noise
("perturb and MAP"), which are draws from the right distribution where nothing binds and an approximation elsewhere; the walks
then correct them as far as steps of one to three labels lead. Their price is bounded: a start is what branch and bound finds,
for most in `EASY` nodes, and never waits for integer programming.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from lawful.sets.logic.linear import Linear
from lawful.sets.logic.parts import Part
from lawful.sets.logic.table import holds

__all__ = ["Search"]

NODES = 20_000  # of branch and bound, a row
STARTS, SWEEPS, SEED = 20, 20, 0  # random walks a row, and their length, for marginals
EASY = 100  # nodes of branch and bound, a start


class Search:
    """`best` of a part with a gap for each row; `sums` are approximate."""

    exact, size = False, 0

    def __init__(self, part: Part, time_limit: float = 10.0, nodes: int = NODES) -> None:
        self.part, self.linear, self.time_limit, self.nodes = part, Linear(part), time_limit, nodes
        node = self.linear.literal >> 1
        self._row = np.repeat(np.arange(len(self.linear.bound)), np.diff(self.linear.start))
        self._place = np.argsort(node, kind="stable")
        self._occurs = np.concatenate([[0], np.cumsum(np.bincount(node, minlength=self.linear.n))])
        self._some: np.ndarray | None = None
        self._decided = False

    def any(self) -> np.ndarray | None:
        """(n,) one assignment, None where there is none."""
        if not self._decided:
            values = np.zeros((1, self.part.n), bool)
            found, paid, proven = self._branch(values, np.zeros(values.shape))
            if np.isfinite(paid[0]) or proven[0]:
                self._some = found[0] if np.isfinite(paid[0]) else None
            else:
                outcome = self.linear.minimise(np.zeros(self.part.n), self.time_limit)
                if outcome.values is None and not outcome.proven:
                    raise ValueError(
                        f"Logic: no assignment of {self.part.n} labels that hang together was found in {self.time_limit:g} s, "
                        "and none was ruled out; give more time_limit, or fewer formulas"
                    )
                self._some = outcome.values
            self._decided = True
        return self._some

    def _branch(
        self, values: np.ndarray, prices: np.ndarray, nodes: int | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        from lawful.sets.logic._branch import search_rows

        L, m = self.linear, len(values)
        start = np.zeros((m, L.n), np.int64)
        start[:, : self.part.n] = values
        for i, (lo, hi, literals) in enumerate(self.part.gates):
            number = sum(start[:, lit >> 1] ^ (lit & 1) for lit in literals)
            start[:, self.part.n + i] = (lo <= number) & (number <= hi)
        price = np.zeros((m, L.n))
        price[:, : self.part.n] = prices
        out, paid, proven = np.empty_like(start), np.empty(m), np.zeros(m, bool)
        index = (L.start, L.literal, L.weight, L.bound, self._row, self._occurs, self._place)
        search_rows(*index, start, price, nodes or self.nodes, out, paid, proven)
        return out[:, : self.part.n].astype(bool), paid, proven

    def best(self, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For costs (m, n) of being true: assignments (m, n), margins (m,), not known, and gaps (m,), 0 where proven."""
        found, gap = costs < 0, np.zeros(len(costs))
        open_rows = np.flatnonzero(~holds(self.part, self.part.asserted, found))
        if len(open_rows):
            distinct, which = np.unique(costs[open_rows], axis=0, return_inverse=True)
            values, gaps = self._repair(distinct)
            found[open_rows], gap[open_rows] = values[which.ravel()], gaps[which.ravel()]
        return found, np.full(len(costs), np.inf), gap

    def _repair(self, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, paid, proven = self._branch(costs < 0, np.abs(costs))
        gaps = np.zeros(len(costs))
        for i in np.flatnonzero(~proven):
            least = np.minimum(costs[i], 0.0).sum()
            outcome = self.linear.minimise(costs[i], self.time_limit)
            options = [values[i]] if np.isfinite(paid[i]) else []
            options += [outcome.values] if outcome.values is not None else []
            options = [v for v in options if holds(self.part, self.part.asserted, v[None])[0]] or [self.any()]
            values[i] = min(options, key=lambda v: float(costs[i] @ v))
            gaps[i] = 0.0 if outcome.proven else max(float(costs[i] @ values[i]) - max(outcome.bound, least), 0.0)
        return values, gaps

    def sums(self, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(m,) NaN, as the sum is not known, and (m, n) how often each label is true on random walks."""
        from lawful.sets.logic._chain import walk_rows

        rng = np.random.default_rng(SEED)  # the same for every row: a row's answer is its own affair
        noise = rng.logistic(size=(STARTS - 1, 1, self.part.n))
        likeliest = self._draw(logits, self.nodes)  # its weight is to be among those that are summed
        starts = np.stack([likeliest, *(self._draw(logits + one, EASY) for one in noise)], axis=1)
        chance, keys = rng.random((STARTS, SWEEPS, self.part.n, 4)), rng.integers(0, 2**63 - 1, self.part.n)
        out = np.empty(logits.shape)
        given = (*self._walks, starts, logits, chance, keys, out)
        walk_rows(*given)
        return np.full(len(logits), np.nan), np.clip(out, 0.0, 1.0)

    @cached_property
    def _walks(self) -> tuple[Any, ...]:
        """The gates by node, and the labels that share a gate, as `walk_rows` takes them."""
        part = self.part
        gates = [*part.gates, *part.asserted]
        below: list[set[int]] = [{t} for t in range(part.n)]
        listed: list[list[tuple[int, int]]] = [[] for _ in range(part.n + len(part.gates))]
        near: list[set[int]] = [set() for _ in range(part.n)]
        for g, (_, _, literals) in enumerate(gates):
            labels = set().union(*(below[lit >> 1] for lit in literals))
            below.append(labels)
            for t in labels:
                near[t] |= labels
            for lit in literals:
                listed[lit >> 1].append((g, lit & 1))
        flat = np.array([pair for pairs in listed for pair in pairs], np.int64).reshape(-1, 2)
        others = [sorted(found - {t}) for t, found in enumerate(near)]
        return (
            len(gates),
            *(np.array([gate[i] for gate in gates], np.int64) for i in (0, 1)),
            len(part.gates),
            np.cumsum([0] + [len(pairs) for pairs in listed]),
            *(np.ascontiguousarray(flat[:, i]) for i in (0, 1)),
            np.array([u for found in others for u in found], np.int64),
            np.cumsum([0] + [len(found) for found in others]),
        )

    def _draw(self, logits: np.ndarray, nodes: int) -> np.ndarray:
        """(m, n) an assignment that obeys, the best one or nearly."""
        found = logits > 0
        rows = np.flatnonzero(~holds(self.part, self.part.asserted, found))
        if len(rows):
            values, paid, _ = self._branch(found[rows], np.abs(logits[rows]), nodes)
            lost = ~np.isfinite(paid)
            values[lost] = self.any() if lost.any() else False
            found[rows] = values
        return found
