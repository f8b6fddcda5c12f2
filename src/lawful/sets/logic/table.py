"""All assignments of a part that obey it, where there are few: costs are one matrix product, sums one more.

Labels are added one at a time, and partial assignments are dropped as soon as a count over labels has become impossible.
"""

from __future__ import annotations

import numpy as np

from lawful.sets.logic.graph import Gate
from lawful.sets.logic.parts import Part

__all__ = ["Table", "holds"]

CELLS = 2**22  # numbers in one table of costs


def holds(part: Part, gates: list[Gate], values: np.ndarray) -> np.ndarray:
    """(m,) whether all these gates of a part hold for truth values (m, n) of its labels."""
    known = [values[:, t] for t in range(values.shape[1])]

    def outcome(gate: Gate) -> np.ndarray:
        lo, hi, literals = gate
        number = np.zeros(len(values), np.int32)
        for lit in literals:
            number += known[lit >> 1] ^ bool(lit & 1)
        return (lo <= number) & (number <= hi)

    for gate in part.gates:
        known.append(outcome(gate))
    out = np.ones(len(values), bool)
    for gate in gates:
        out &= outcome(gate)
    return out


class Table:
    """`points` (P, n): every assignment of the part's labels that obeys it. `best` and `sums` are exact."""

    exact = True

    def __init__(self, points: np.ndarray) -> None:
        self.points = points
        self._floats = points.astype(float)

    @classmethod
    def of(cls, part: Part, limit: int) -> Table | None:
        """None when there are more than `limit` assignments, or partial ones on the way."""
        flat = [gate for gate in part.asserted if all(lit >> 1 < part.n for lit in gate[2])]
        nested = [gate for gate in part.asserted if any(lit >> 1 >= part.n for lit in gate[2])]
        points = np.zeros((1, 0), bool)
        left = [len(gate[2]) for gate in flat]
        counts = np.zeros((1, len(flat)), np.int32)
        sides = [{lit >> 1: not lit & 1 for lit in gate[2]} for gate in flat]
        for t in range(part.n):
            points, counts = np.repeat(points, 2, axis=0), np.repeat(counts, 2, axis=0)
            new = np.arange(len(points)) % 2 == 1
            points = np.column_stack([points, new])
            keep = np.ones(len(points), bool)
            for g, (lo, hi, _) in enumerate(flat):
                if t in sides[g]:
                    counts[:, g] += new == sides[g][t]
                    left[g] -= 1
                    keep &= (counts[:, g] <= hi) & (counts[:, g] + left[g] >= lo)
            points, counts = points[keep], counts[keep]
            if len(points) > limit:
                return None
        points = points[holds(part, nested, points)] if nested else points
        few_first = np.lexsort((*(~points[:, t] for t in reversed(range(part.n))), points.sum(axis=1)))
        return cls(points[few_first])  # of equal costs the first is taken: with few labels, the first ones

    @property
    def size(self) -> int:
        """How many numbers a row's sums take."""
        return len(self.points)

    def any(self) -> np.ndarray | None:
        """(n,) one assignment, None where there is none."""
        return self.points[0] if len(self.points) else None

    def _rows(self, m: int) -> list[slice]:
        step = max(1, CELLS // max(len(self.points), 1))
        return [slice(i, min(i + step, m)) for i in range(0, m, step)]

    def best(self, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For costs (m, n) of being true: the cheapest assignments (m, n), margins (m,) and gaps (m,), which are 0."""
        m = len(costs)
        index, margin = np.zeros(m, int), np.full(m, np.inf)
        for rows in self._rows(m):
            total = costs[rows] @ self._floats.T
            index[rows] = first = total.argmin(axis=1)
            if len(self.points) > 1:
                line = np.arange(len(total))
                least = total[line, first]
                total[line, first] = np.inf
                margin[rows] = total.min(axis=1) - least
        return self.points[index], np.maximum(margin, 0.0), np.zeros(m)

    def sums(self, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(m,) log of the sum of prod_t exp(logits_t c_t) over the assignments, (m, n) the share of those with each label."""
        out, total = np.empty(logits.shape), np.empty(len(logits))
        for rows in self._rows(len(logits)):
            weight = logits[rows] @ self._floats.T
            top = weight.max(axis=1, keepdims=True)
            weight -= top
            np.exp(weight, out=weight)
            scale = weight.sum(axis=1, keepdims=True)
            weight /= scale
            out[rows], total[rows] = weight @ self._floats, (top + np.log(scale))[:, 0]
        return total, np.clip(out, 0.0, 1.0)
