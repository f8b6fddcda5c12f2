"""Separable sets and separable objectives: T one-dimensional problems.

    min over lo <= v <= hi of sum_k s_k l(v, y_k),     for each task and row

A table of costs on a common grid finds the valleys; golden section finds their floors, all rows at once. The grid
holds the loss's own `breakpoints(atoms)` where it has them, so a piecewise linear loss is solved exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, like, take_rows, to_numpy
from lawful.decoders.base import Decode, Decoder, Decoding, finish
from lawful.decoders.enumeration import row_chunks

GRID, VALLEYS, GOLDEN_STEPS = 257, 3, 36
SHRINK = (5**0.5 - 1) / 2
TIE = 1e-12  # relative to the largest cost in the row


class Coordinate(Decoder):
    """Task-by-task minimisation over `C.interval(t)`.

    An infinite end is replaced by the range of the atoms widened by its own width: with non-negative scores every
    usual loss grows beyond the atoms. Negative scores may leave F unbounded below; an answer on such an artificial
    end is reported as not_converged. Among equal minimisers (a plateau) the one nearest to the centre is taken.

    >>> import numpy as np
    >>> from lawful import Absolute, Box
    >>> from lawful.decoders import Coordinate, decode
    >>> from lawful.losses import Objective
    >>> F = Objective([Absolute()], [np.array([[0.2, 0.5, 0.3]])], [np.array([1.0, 2.0, 9.0])])
    >>> decode(F, Box(0.0, 5.0).fit(np.ones((1, 1))), Coordinate()).c  # the weighted median
    array([[2.]])
    """

    needs_objective = ("table", "tasks", "atoms")
    needs_set = ("interval",)

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        center = F.center
        xp = array_namespace(center)
        columns, lost, gaps = [], [], []
        for t in range(F.shape[1]):
            grid, ends = self._grid(F, C, t)
            single, near = F.tasks([t]), center[:, t]
            parts = [
                _minimise(single.rows(rows), take_rows(near, rows), grid) for rows in row_chunks(F.shape[0], len(grid), center)
            ]
            v, gap = (xp.concat([part[k] for part in parts], axis=0) for k in range(2))
            columns.append(v)
            gaps.append(gap)
            lost.append((v <= ends[0]) | (v >= ends[1]))
        stuck = xp.any(xp.stack(lost, axis=1), axis=1)
        margin = xp.min(xp.stack(gaps, axis=1), axis=1)
        return finish(F, C, xp.stack(columns, axis=1), proven=~stuck, margin=margin)

    def _grid(self, F: Any, C: Any, t: int) -> tuple[np.ndarray, tuple[float, float]]:
        """Candidate values, and the artificial ends (infinite where the interval itself ends)."""
        lower, upper = C.interval(t)
        atoms = to_numpy(F.atoms[t]).astype(np.float64)
        special = atoms
        if hasattr(F.losses[t], "breakpoints"):
            special = np.concatenate([atoms, to_numpy(F.losses[t].breakpoints(F.atoms[t])).reshape(-1)])
        low, high = special.min(), special.max()
        width = high - low if high > low else 1 + abs(high)
        # A finite end may lie beyond all atoms: the search then goes on from there, never outside.
        low_end = min(low, upper) - width if np.isinf(lower) else lower
        high_end = max(high, lower) + width if np.isinf(upper) else upper
        grid = np.concatenate([np.linspace(low_end, high_end, GRID), np.clip(special, low_end, high_end)])
        artificial = (low_end if np.isinf(lower) else -np.inf, high_end if np.isinf(upper) else np.inf)
        return np.unique(grid), artificial


def _minimise(F: Any, near: Array, grid: np.ndarray) -> tuple[Array, Array]:
    """The minimiser of a one-task objective and its gap to the second valley, for each row."""
    xp = array_namespace(near)
    v = like(grid, near)
    table = F.table(0, v)
    lowest = xp.min(table, axis=1, keepdims=True)
    tie = TIE * xp.max(xp.abs(table), axis=1, keepdims=True)
    far = xp.abs(v[None, :] - near[:, None])
    pick = xp.argmin(xp.where(table <= lowest + tie, far, xp.full_like(far, xp.inf)), axis=1)
    best = take_rows(v, pick)
    best_value = F.value(best[:, None])
    if len(grid) == 1:
        return best, xp.full_like(near, xp.inf)
    # Valleys of the table; a plateau counts once, at its left end.
    wall = xp.full_like(table[:, :1], xp.inf)
    left = xp.concat([wall, table[:, :-1]], axis=1)
    right = xp.concat([table[:, 1:], wall], axis=1)
    valley = xp.where((table < left - tie) & (table <= right + tie), table, xp.full_like(table, xp.inf))
    order = xp.argsort(valley, axis=1)
    floors = []
    for k in range(min(VALLEYS, len(grid))):
        j = order[:, k]
        real = xp.take_along_axis(valley, j[:, None], axis=1)[:, 0] < xp.inf
        if not bool(xp.any(real)):
            break
        low = take_rows(v, xp.where(j > 0, j - 1, j))
        high = take_rows(v, xp.where(j < len(grid) - 1, j + 1, j))
        x, value = _golden(F, low, high)
        at_grid = F.value(take_rows(v, j)[:, None])
        floors.append(xp.where(real, xp.minimum(value, at_grid), wall[:, 0]))
        deeper = real & (value < best_value - 4e-16 * xp.abs(best_value))
        best, best_value = xp.where(deeper, x, best), xp.where(deeper, value, best_value)
    ranked = xp.sort(xp.stack(floors, axis=1), axis=1)
    gap = ranked[:, 1] - ranked[:, 0] if len(floors) > 1 else xp.full_like(near, xp.inf)
    return best, gap


def _golden(F: Any, low: Array, high: Array) -> tuple[Array, Array]:
    """Golden section on each row's own bracket, to the accuracy function values allow (about 1e-8)."""
    xp = array_namespace(low)
    x1, x2 = high - SHRINK * (high - low), low + SHRINK * (high - low)
    f1, f2 = F.value(x1[:, None]), F.value(x2[:, None])
    for _ in range(GOLDEN_STEPS):
        left = f1 <= f2  # the minimum is in [low, x2]; one of the two inner points is kept
        low, high = xp.where(left, low, x1), xp.where(left, x2, high)
        fresh = xp.where(left, high - SHRINK * (high - low), low + SHRINK * (high - low))
        value = F.value(fresh[:, None])
        x1, x2 = xp.where(left, fresh, x2), xp.where(left, x1, fresh)
        f1, f2 = xp.where(left, value, f2), xp.where(left, f1, value)
    return xp.where(f1 <= f2, x1, x2), xp.minimum(f1, f2)
