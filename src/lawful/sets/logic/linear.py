"""A part as linear inequalities over 0-1 variables, and integer programming (HiGHS) on them.

Every gate that must hold is sum of literals >= lo and sum of their negations >= n - hi. A gate inside another has a variable
z of its own and is tied to it in the directions in which it is used: z -> gate as sum + lo (not z) >= lo, and so on. Whatever
the labels are, there are values of z that go with them, so the minimum over labels is not changed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from lawful.sets.logic.graph import Gate
from lawful.sets.logic.parts import Part

__all__ = ["Linear", "Outcome"]


@dataclass(frozen=True)
class Outcome:
    """What integer programming found: values (n,) or None, a lower bound of the cost, and whether that is proof."""

    values: np.ndarray | None
    bound: float
    proven: bool


class Linear:
    """Rows sum_j weight_j [literal_j] >= bound, in compressed form: `start`, `literal`, `weight`, `bound`."""

    def __init__(self, part: Part) -> None:
        self.n_labels = part.n
        self.n = part.n + len(part.gates)
        self._rows: list[tuple[list[int], list[int], int]] = []
        for lo, hi, literals in part.asserted:
            self._at_least(lo, literals)
            self._at_least(len(literals) - hi, [lit ^ 1 for lit in literals])
        for literal in _used(part):
            self._define(part.gates[(literal >> 1) - part.n], literal)
        self.start = np.cumsum([0] + [len(row[0]) for row in self._rows])
        self.literal = np.array([lit for row in self._rows for lit in row[0]], np.int64)
        self.weight = np.array([w for row in self._rows for w in row[1]], np.int64)
        self.bound = np.array([row[2] for row in self._rows], np.int64)
        del self._rows

    def _at_least(self, k: int, literals: list[int] | tuple[int, ...], unless: int | None = None) -> None:
        """At least k of the literals are true, or `unless` is."""
        if k > 0:
            extra = [] if unless is None else [unless]
            self._rows.append(([*literals, *extra], [1] * len(literals) + [k] * len(extra), k))

    def _define(self, gate: Gate, literal: int) -> None:
        """literal -> gate, or, for a negated literal, literal -> not gate."""
        lo, hi, literals = gate
        n, negated = len(literals), [lit ^ 1 for lit in literals]
        if not literal & 1:
            self._at_least(lo, literals, literal ^ 1)
            self._at_least(n - hi, negated, literal ^ 1)
        elif hi == n:
            self._at_least(n - lo + 1, negated, literal ^ 1)
        else:  # below or above: u says which
            u = 2 * self.n
            self.n += 1
            self._rows.append(([*negated, u, literal ^ 1], [1] * n + [n - lo + 1] * 2, n - lo + 1))
            self._rows.append(([*literals, u ^ 1, literal ^ 1], [1] * n + [hi + 1] * 2, hi + 1))

    def minimise(self, costs: np.ndarray, time_limit: float) -> Outcome:
        """The labels (n_labels,) of least cost; costs (n_labels,) of being true."""
        sign = 1.0 - 2.0 * (self.literal & 1)
        row = np.repeat(np.arange(len(self.bound)), np.diff(self.start))
        A = sparse.csr_array((self.weight * sign, (row, self.literal >> 1)), shape=(len(self.bound), self.n))
        least = self.bound - np.bincount(row, self.weight * (self.literal & 1), minlength=len(self.bound))
        size = max(float(np.abs(costs).max(initial=0.0)), 1e-300)  # costs of a size near 1: tolerances of HiGHS are absolute
        found = milp(
            np.concatenate([costs / size, np.zeros(self.n - self.n_labels)]),
            integrality=np.ones(self.n),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(A, lb=least.astype(float)),
            options={"time_limit": float(time_limit), "mip_rel_gap": 0.0},
        )
        bound = float(getattr(found, "mip_dual_bound", None) or -np.inf) * size if found.status != 0 else -np.inf
        if found.status == 2:
            return Outcome(None, np.inf, True)
        if found.x is None:
            return Outcome(None, bound, False)
        values = found.x[: self.n_labels] > 0.5
        return Outcome(values, float(costs @ values) if found.status == 0 else bound, found.status == 0)


def _used(part: Part) -> list[int]:
    """Literals of inner gates that something relies on: each is reached from what must hold."""
    seen: set[int] = set()
    waiting = [lit for lo, hi, literals in part.asserted for lit in _directions(lo, hi, literals)]
    while waiting:
        literal = waiting.pop()
        if literal >> 1 >= part.n and literal not in seen:
            seen.add(literal)
            lo, hi, literals = part.gates[(literal >> 1) - part.n]
            if literal & 1:  # not the gate: the other way round, or both where it is a range
                both = _directions(lo, hi, literals)
                waiting += both if lo > 0 and hi < len(literals) else [lit ^ 1 for lit in both]
            else:
                waiting += _directions(lo, hi, literals)
    return sorted(seen)


def _directions(lo: int, hi: int, literals: tuple[int, ...]) -> list[int]:
    """The literals that a gate that holds may rely on."""
    return [lit for lit in literals if lo > 0] + [lit ^ 1 for lit in literals if hi < len(literals)]
