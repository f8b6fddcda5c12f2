"""Equations and inequalities: the best of several local solutions (`sqp`), put on C to rounding, with a margin.

Each row is solved from several starts (`seeds`), every solution is put on C by `restore`, and the cheapest is returned with
its distance in F to the second-best distinct local solution. Rows that did not converge get a second chance from many more
starts. Where no start reaches C the row is `infeasible` and carries the smallest violation that was found.

Where the law has many outputs the search begins at the prediction, and mostly ends there (`nearby`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, device_of, in_host_memory, like, put_rows, take_rows
from lawful._small import peak
from lawful.decoders.base import (
    FIELDS,
    INFEASIBLE,
    NOT_CONVERGED,
    Decode,
    Decoder,
    Decoding,
    certified,
    finish,
    polish,
    stack,
)
from lawful.decoders.nearby import QUICK, Candidates, descend, hopeful, join, lower, nearby, put_back, quickest
from lawful.decoders.seeds import POOLED, more_starts, rank_in_group, starts
from lawful.decoders.sqp import sequential_quadratic
from lawful.sets.base import tolerance
from lawful.sets.restore import restore

CELLS = 2**21
GPU_CELLS = 2**24  # a GPU is slow where rows are few
WILD = 1e8  # how much larger than predictions and labels an answer may be
NEAR_ENOUGH = 1e-3  # of the law's scale: whether a search came near C at all
WIDTHS = tuple(
    10.0**-k for k in (1, 2.5, 4, 5.5, 7, 8.5)
)  # of the corners of an objective, relative to the range of the labels


class Newton(Decoder):
    """See the module's docstring. Rows are solved in chunks: the larger, the faster, up to memory.

    An objective with corners is followed through rounder versions of itself, each warm-starting the next.

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import Equations
    >>> from lawful.decoders import Newton, decode
    >>> C = Equations("y1 * y2 = 2").fit(np.ones((1, 2)))
    >>> decode(F, C, Newton()).c.round(6)
    array([[0.551283, 3.627902]])
    """

    needs_objective = ("gradient", "curvature", "costs", "center")

    def __init__(self, tol: float = 1e-8, max_iter: int = 60, n_starts: int = 3, chunk: int = 32768) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.n_starts = n_starts
        self.chunk = chunk

    def missing(self, F: Any, C: Any) -> list[str]:
        lacks = super().missing(F, C)
        if not (hasattr(C, "equality") or hasattr(C, "inequality")):
            lacks.append(f"{type(C).__name__}.equality")
        return lacks

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        return self._in_chunks(self._solve, F, C)

    def _in_chunks(self, solve: Callable[[Any, Any], Decoding], F: Any, C: Any) -> Decoding:
        """Matrices of all rows of a chunk stay in the cache; a GPU has none to speak of, and many more hands."""
        xp = array_namespace(F.center)
        m = F.shape[0]
        if m == 0:
            return finish(F, C, F.center)
        chunk = max(16, min(self.chunk, CELLS // F.shape[1] ** 2)) if in_host_memory(F.center) else GPU_CELLS // F.shape[1] ** 2
        chunks = [xp.arange(begin, min(begin + chunk, m), device=device_of(F.center)) for begin in range(0, m, chunk)]
        return stack([solve(F.rows(idx), C.rows(idx)) for idx in chunks])

    def _solve(self, F: Any, C: Any) -> Decoding:
        with np.errstate(all="ignore"):  # a step may leave the domain of an equation; residuals judge what comes of it
            scale = units(F)
            if hasattr(F, "softened") and hasattr(C, "curvature") and C.n_tasks_ > POOLED:
                return self._from_prediction(F, C, scale)
            return self._from_seeds(F, C, scale)

    def once(self, F: Any, C: Any) -> Decoding:
        """From the prediction alone: enough where F and C are convex; unproven where it does not converge."""
        return self._in_chunks(self._once, F, C)

    def _once(self, F: Any, C: Any) -> Decoding:
        everyone = array_namespace(F.center).arange(F.shape[0], device=device_of(F.center))
        with np.errstate(all="ignore"):
            return alone(F, C, descend(F, C, everyone, F.center, units(F), self.tol)[0])

    def _from_prediction(self, F: Any, C: Any, scale: Array) -> Decoding:
        """From the prediction, and around it where that is not enough; what is then still open, from seeds all over C."""
        xp = array_namespace(scale)
        found, settled = nearby(F, C, scale, self.tol)
        d = best_of(F, C, scale, found) if found.rows.shape[0] > F.shape[0] else alone(F, C, found)
        left = ~(settled & certified(d))
        rest = xp.nonzero(left)[0]
        if rest.shape[0] == 0:
            return d
        mine = xp.nonzero(take_rows(left, found.rows) & (found.off <= tolerance(found.c)))[0]
        first = Candidates(*(take_rows(v, mine) for v in found))
        first = first._replace(rows=xp.searchsorted(rest, first.rows))
        more = self._from_seeds(F.rows(rest), C.rows(rest), take_rows(scale, rest), first)
        return d.with_(**{name: put_rows(getattr(d, name), rest, getattr(more, name)) for name in FIELDS})

    def _from_seeds(self, F: Any, C: Any, scale: Array, first: Candidates | None = None) -> Decoding:
        xp = array_namespace(scale)
        found = self._local(F, C, scale, *starts(F, C, scale, self.n_starts))
        if first is not None:
            found = join(first, found)
        d = best_of(F, C, scale, found)
        doubtful = xp.arange(F.shape[0], device=device_of(d.code))[(d.code == NOT_CONVERGED) | (d.code == INFEASIBLE)]
        if doubtful.shape[0] == 0:
            return d
        # A second chance from many more starts for the few rows that need it.
        part_F, part_C, part_scale = F.rows(doubtful), C.rows(doubtful), take_rows(scale, doubtful)
        more = self._local(part_F, part_C, part_scale, *more_starts(part_F, part_C, part_scale))
        more = more._replace(rows=take_rows(doubtful, more.rows))
        return best_of(F, C, scale, join(found, more))

    def _local(self, F: Any, C: Any, scale: Array, rows: Array, begin: Array) -> Candidates:
        """Local solutions from the starts; a start that is on C and better than what became of it stays a candidate."""
        xp = array_namespace(begin)
        part_F, part_C, part_scale = F.rows(rows), C.rows(rows), take_rows(scale, rows)
        if getattr(F, "kinked", False):
            c, converged, iterations = self._descend(part_F, part_C, begin, part_scale)
        else:
            c, converged, iterations, _, _ = quickest(
                part_F, part_C, begin, part_scale, self.tol, QUICK, self.max_iter, group=rows
            )
        c, extra, _, _ = put_back(part_C, c, part_scale)
        iterations = iterations + extra
        # A search that ends higher than it began has left the basin of its start: again, with short steps.
        value = part_F.value(c)
        again = hopeful(value, converged, rows) | lower(part_F.value(begin), value)
        lost = xp.arange(rows.shape[0], device=device_of(c))[again]
        if lost.shape[0]:
            some_F, some_C, some_scale = part_F.rows(lost), part_C.rows(lost), take_rows(part_scale, lost)
            first, _ = restore(some_C, take_rows(begin, lost), some_scale)
            # Short steps keep to C, and must begin there.
            there = xp.nonzero(some_C.contains(first))[0]
            short, proven, count = first, xp.zeros_like(take_rows(converged, lost)), xp.zeros_like(take_rows(iterations, lost))
            if there.shape[0]:
                near = take_rows(some_scale, there)
                walked, held, steps = self._descend(
                    some_F.rows(there), some_C.rows(there), take_rows(first, there), near, reach=0.05
                )
                walked, _ = restore(some_C.rows(there), walked, near)
                short, proven, count = (
                    put_rows(short, there, walked),
                    put_rows(proven, there, held),
                    put_rows(count, there, steps),
                )
            end, held = take_rows(c, lost), take_rows(converged, lost)
            for point, proof in ((short, proven), (first, xp.zeros_like(proven))):
                better = some_C.contains(point) & (~some_C.contains(end) | lower(some_F.value(point), some_F.value(end)))
                end, held = xp.where(better[:, None], point, end), xp.where(better, proof, held)
            c, converged = put_rows(c, lost, end), put_rows(converged, lost, held)
            iterations = put_rows(iterations, lost, take_rows(iterations, lost) + count)
        # An objective that falls for ever (scores may be negative) has no minimum: the place where the search began will do.
        size = peak(part_F.center / part_scale) + peak(like(np.abs(C.location_) + C.spread_, c) / part_scale)
        wild = xp.arange(rows.shape[0], device=device_of(begin))[~(peak(c / part_scale) <= WILD * size)]
        if wild.shape[0]:
            back, _ = restore(part_C.rows(wild), take_rows(begin, wild), take_rows(part_scale, wild))
            c, converged = put_rows(c, wild, back), put_rows(converged, wild, xp.zeros_like(take_rows(converged, wild)))
        c, off, _ = polish(part_F, part_C, c, xp.zeros_like(converged))
        return Candidates(rows, c, converged, iterations, off)

    def _descend(self, F: Any, C: Any, c: Array, scale: Array, reach: float = 4.0) -> tuple[Array, Array, Array]:
        """A local solution from each start: (solutions, converged, iterations)."""
        if not getattr(F, "kinked", False):
            return sequential_quadratic(F, C, c, scale, self.max_iter, reach, self.tol)[:3]
        xp = array_namespace(c)
        total = xp.zeros(c.shape[0], dtype=xp.int64, device=device_of(c))
        converged = xp.zeros(c.shape[0], dtype=xp.bool, device=device_of(c))
        rows = xp.arange(c.shape[0], device=device_of(c))
        for width in WIDTHS:
            part_F, part_C, units = F.rows(rows).rounded(width), C.rows(rows), take_rows(scale, rows)
            new, reached, count, _ = sequential_quadratic(
                part_F, part_C, take_rows(c, rows), units, self.max_iter // 2, reach, self.tol
            )
            c, converged = put_rows(c, rows, new), put_rows(converged, rows, reached)
            total = put_rows(total, rows, take_rows(total, rows) + count)
            # Sharper corners bring nobody to C who did not come near it.
            rows = rows[reached | part_C.contains(restore(part_C, new, units, tol=1e-6, max_iter=12)[0], NEAR_ENOUGH)]
            if rows.shape[0] == 0:
                break
        return c, converged, total


def units(F: Any) -> Array:
    """(m, T) natural units of the outputs: where the curvature is not positive, the row's typical unit stands in."""
    center = F.center
    xp = array_namespace(center)
    h = (F.rounded(WIDTHS[0]) if getattr(F, "kinked", False) else F).curvature(center)
    positive = h > 0
    count = xp.sum(xp.astype(positive, h.dtype), axis=1, keepdims=True)
    log_h = xp.log(xp.where(positive, h, xp.ones_like(h)))
    typical = xp.exp(xp.sum(log_h, axis=1, keepdims=True) / xp.where(count > 0, count, xp.ones_like(count)))
    return xp.sqrt(2 / xp.where(positive, h, typical))


def alone(F: Any, C: Any, found: Candidates) -> Decoding:
    """One candidate for each row, in their order."""
    proven = found.converged & array_namespace(found.c).isfinite(F.value(found.c))
    return finish(F, C, found.c, proven=proven, iterations=found.iterations)


def best_of(F: Any, C: Any, scale: Array, found: Candidates) -> Decoding:
    """The cheapest feasible solution of every row, and its distance to the runner-up."""
    rows, c, converged, iterations, relative = found
    xp = array_namespace(c)
    m, T = F.shape
    value = F.rows(rows).value(c)
    value = xp.where((relative <= tolerance(c)) & ~xp.isnan(value), value, xp.full_like(value, xp.inf))
    far = peak(F.center / scale)
    # Of points that all violate the law, the one that violates it least, in the law's own units.
    some = xp.nonzero(~xp.isfinite(value))[0]
    if some.shape[0]:
        relative = put_rows(relative, some, C.rows(take_rows(rows, some)).residual(take_rows(c, some)))

    best = xp.zeros((m, T), dtype=c.dtype, device=device_of(c))
    best_value = xp.full((m,), xp.inf, dtype=c.dtype, device=device_of(c))
    second = xp.full((m,), xp.inf, dtype=c.dtype, device=device_of(c))
    least = xp.full((m,), xp.inf, dtype=c.dtype, device=device_of(c))
    shown = xp.zeros(m, dtype=xp.bool, device=device_of(c))
    total = xp.zeros(m, dtype=xp.int64, device=device_of(c))
    for group in _rounds(rows):
        at = take_rows(rows, group)
        new, new_value, new_off = take_rows(c, group), take_rows(value, group), take_rows(relative, group)
        old, old_value = take_rows(best, at), take_rows(best_value, at)
        old_off = take_rows(least, at)
        finite = xp.isfinite(new_value)
        wins = xp.where(finite, new_value < old_value, ~xp.isfinite(old_value) & (new_off < old_off))
        unit = take_rows(scale, at)
        apart = peak((new - old) / unit) > 1e-5 * peak(new / unit) + 1e-10 * take_rows(far, at)
        proven, known = finite & take_rows(converged, group), take_rows(shown, at)
        # Two copies of one solution are one solution: no margin between them, and one proof serves both.
        loser = xp.where(wins, old_value, new_value)
        local = xp.where(wins, known, proven)
        runner = take_rows(second, at)
        second = put_rows(second, at, xp.where(apart & local & (loser < runner), loser, runner))
        best = put_rows(best, at, xp.where(wins[:, None], new, old))
        best_value = put_rows(best_value, at, xp.where(wins, new_value, old_value))
        least = put_rows(least, at, xp.where(wins, new_off, old_off))
        shown = put_rows(shown, at, xp.where(wins, proven | (known & ~apart), known | (proven & ~apart)))
        total = put_rows(total, at, xp.maximum(take_rows(total, at), take_rows(iterations, group)))
    floor = xp.where(xp.isfinite(best_value), best_value, xp.zeros_like(best_value))
    gap = second - floor
    return finish(F, C, best, proven=shown, iterations=total, margin=gap)


def _rounds(rows: Array) -> list[Array]:
    """Positions of the starts, split so that each row occurs at most once in a group."""
    xp = array_namespace(rows)
    order = xp.argsort(rows, stable=True)
    rank = rank_in_group(take_rows(rows, order))
    return [order[rank == k] for k in range(int(xp.max(rank)) + 1)]
