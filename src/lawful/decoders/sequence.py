r"""Rows in order: one branch of C is followed, not the best point of each row.

Where several branches of C fit a row about equally well (an elbow up or down), noise decides row by row, and the answers jump.
Here every row gets several local solutions: its own best one, and what those of the row before and after become on it (warm
starts, in two sweeps). Of all sequences with one solution for each row, the one with the fewest jumps is taken, and of those
the one of least total objective, by dynamic programming. A jump is a step to another solution than the nearest (one more than
REACH times as far), or one much longer than usual: a branch has ended. Each output is measured by its usual step.

Every row is certified as usual: it obeys the law and is a local optimum. Its margin may be negative, where another solution
fits that row better but does not go with its neighbours.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from lawful._array import to_numpy
from lawful.decoders.base import Decoder, Decoding, certified, finish, in_law
from lawful.decoders.dispatch import choose, decode
from lawful.decoders.nearby import QUICK, put_back, quickest
from lawful.decoders.newton import Newton, units

REACH = 5.0  # times as far as the nearest solution: another branch
FAR = 50.0  # usual steps
STILL = 1e-3  # of the usual step: a sequence that stands still may tremble by so much
MOST = 16  # solutions of a row that are followed
SAME = 1e-5  # in units of the objective: two solutions are one


class Branches(NamedTuple):
    """Local solutions of one row: points (k, T), objective, whether each is proven, steps."""

    c: np.ndarray
    value: np.ndarray
    proven: np.ndarray
    steps: np.ndarray

    def joined(self, other: Branches, unit: np.ndarray) -> Branches:
        """Both, each solution once, the best ones where there are many."""
        near = SAME * (unit + np.abs(self.c))
        new = [k for k, c in enumerate(other.c) if not (np.abs(self.c - c) <= near).all(axis=1).any()]
        both = Branches(*(np.concatenate([a, b[new]]) for a, b in zip(self, other)))
        if len(both.c) <= MOST:
            return both
        keep = np.sort(np.argsort(both.value, kind="stable")[:MOST])
        return Branches(*(a[keep] for a in both))


def decode_sequence(F: Any, C: Any, decoder: Decoder | str | None = None) -> Decoding:
    """As `decode`, for rows that follow each other; a law with one local solution for each row is decoded as always.

    >>> import numpy as np
    >>> from lawful import Equations
    >>> from lawful.decoders import decode_sequence
    >>> from lawful.losses import Quadratic
    >>> C = Equations("y1**2 + y2**2 = 1").fit(np.ones((1, 2)))
    >>> decode_sequence(Quadratic.around(np.array([[3.0, 4.0], [4.0, 3.0]])), C).c.round(6)
    array([[0.6, 0.8],
           [0.8, 0.6]])
    """
    first = decode(F, C, decoder)
    solver = choose(F, C, decoder)
    plain = type(F.center) is np.ndarray and F.center.dtype == np.float64 and not getattr(F, "kinked", False)
    if F.shape[0] < 2 or not plain or C.convex or not _searched(F, C, solver):
        return first
    with np.errstate(all="ignore"):
        return _followed(F, C, first)


def _searched(F: Any, C: Any, solver: Decoder) -> bool:
    """Whether the answer comes from a search for local solutions over equations, alone or part by part."""
    return not Newton().missing(F, C) and type(solver).__name__ in ("Newton", "NewtonConic", "LawBlocks")


def _followed(F: Any, C: Any, first: Decoding) -> Decoding:
    scale, newton = units(F), Newton()
    good, proven = to_numpy(in_law(first)), to_numpy(certified(first))
    own = [
        Branches(*(np.asarray(v)[i : i + 1][good[i : i + 1]] for v in (first.c, first.value, proven, first.iterations)))
        for i in range(len(first.c))
    ]

    def arrive(i: int, begin: np.ndarray) -> Branches:
        """Local solutions of row i from these starts."""
        rows = np.full(len(begin), i)
        part_F, part_C, unit = F.rows(rows), C.rows(rows), scale[rows]
        c, converged, steps, _, _ = quickest(part_F, part_C, begin, unit, newton.tol, QUICK, newton.max_iter)
        c, extra, _, _ = put_back(part_C, c, unit)
        value = part_F.value(c)
        keep = np.asarray(part_C.contains(c)) & np.isfinite(value)
        return Branches(c[keep], value[keep], converged[keep], (steps + extra)[keep])

    branches = list(own)
    n = len(branches)
    for order in (range(1, n), range(n - 2, -1, -1)):
        step = 1 if order.step == 1 else -1
        for i in order:
            before = branches[i - step].c
            if len(before):
                branches[i] = branches[i].joined(arrive(i, before), scale[i])
    path = _fewest_jumps(branches, np.asarray(C.spread_))
    empty = np.array([not len(b.c) for b in branches])
    chosen = [Branches(*(a[k] for a in b)) if len(b.c) else None for b, k in zip(branches, path)]
    c = np.stack([first.c[i] if b is None else b.c for i, b in enumerate(chosen)])
    sure = np.array([False if b is None else bool(b.proven) for b in chosen])
    steps = np.array([int(first.iterations[i]) if b is None else int(b.steps) for i, b in enumerate(chosen)])
    margin = np.array([_margin(b, k) for b, k in zip(branches, path)])
    return finish(F, C, c, proven=sure & ~empty, iterations=steps, margin=margin)


def _margin(row: Branches, k: int) -> float:
    others = np.delete(row.value, k)[np.delete(row.proven, k)] if len(row.c) else np.zeros(0)
    return float(others.min() - row.value[k]) if len(others) else np.inf


def _jumps(branches: list[Branches], spread: np.ndarray) -> list[np.ndarray]:
    """For each row but the first, which steps from the solutions of the row before (axis 0) to its own (axis 1) are jumps."""
    moves = [np.abs(b.c[None] - a.c[:, None]) for a, b in pairwise(branches)]
    onward = [m[np.arange(len(m)), (m / spread).max(axis=2).argmin(axis=1)] for m in moves if m.size]  # to the nearest
    usual = np.maximum(np.median(np.concatenate(onward), axis=0), STILL * spread) if onward else spread
    out = []
    for m in moves:
        step = (m / usual).max(axis=2) if m.size else np.zeros(m.shape[:2])
        nearest = step.min(axis=1, keepdims=True, initial=np.inf)
        out.append((step > REACH * np.maximum(nearest, STILL)) | (step > FAR))
    return out


def _fewest_jumps(branches: list[Branches], spread: np.ndarray) -> list[int]:
    """For each row the number of its solution (0 where it has none)."""
    n = len(branches)
    jumps = _jumps(branches, spread)
    range_ = sum(float(np.ptp(b.value)) for b in branches if len(b.c))
    dear = 1.0 + 2.0 * range_  # a jump costs more than all objectives together
    cost, back = branches[0].value if len(branches[0].c) else np.zeros(1), []
    for i in range(1, n):
        value = branches[i].value if len(branches[i].c) else np.zeros(1)
        jump = jumps[i - 1] if jumps[i - 1].size else np.zeros((len(cost), len(value)), bool)
        total = cost[:, None] + dear * jump
        back.append(np.argmin(total, axis=0))
        cost = total[back[-1], np.arange(len(value))] + value
    path = [int(np.argmin(cost))]
    for come_from in reversed(back):
        path.append(int(come_from[path[-1]]))
    return path[::-1]
