"""Equations and inequalities: the best of several local solutions (`sqp`), put on C to rounding, with a margin.

Each row is solved from several starts (`seeds`), every solution is put on C by `restore`, and the cheapest is returned with
its distance in F to the second-best distinct local solution. Where no start reaches C the row is `infeasible` and carries
the smallest violation that was found.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lawful._array import Array, array_namespace, put_rows, take_rows
from lawful._small import peak
from lawful.decoders.base import INFEASIBLE, NOT_CONVERGED, OK, Decode, Decoder, Decoding, finish, stack
from lawful.decoders.seeds import prepare, starts
from lawful.decoders.sqp import sequential_quadratic
from lawful.sets.restore import constraints, restore, roundoff, violation

FEASIBLE = 1e-8  # relative to the size of the terms of each equation


class Newton(Decoder):
    """See the module's docstring. Rows are solved in chunks, on `n_jobs` threads (None: one per core)."""

    needs_objective = ("gradient", "curvature", "costs", "center")

    def __init__(self, max_iter: int = 60, chunk: int = 8192, n_jobs: int | None = None) -> None:
        self.max_iter, self.chunk, self.n_jobs = max_iter, chunk, n_jobs

    def missing(self, F: Any, C: Any) -> list[str]:
        lacks = super().missing(F, C)
        if not (hasattr(C, "equality") or hasattr(C, "inequality")):
            lacks.append(f"{type(C).__name__}.equality")
        return lacks

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        xp = array_namespace(F.center)
        m = F.shape[0]
        if m == 0:
            return finish(F, C, F.center)
        chunks = [xp.arange(begin, min(begin + self.chunk, m)) for begin in range(0, m, self.chunk)]
        if len(chunks) == 1:
            return self._solve(F, C)
        prepare(C)
        # Long array operations let go of the interpreter lock, so threads are enough to use every core.
        with ThreadPoolExecutor(self.n_jobs or os.cpu_count()) as pool:
            return stack(list(pool.map(lambda idx: self._solve(F.rows(idx), C.rows(idx)), chunks)))

    def _solve(self, F: Any, C: Any) -> Decoding:
        scale = units(F)
        rows, c = starts(F, C, scale)
        part_F, part_C, part_scale = F.rows(rows), C.rows(rows), take_rows(scale, rows)
        c, converged, iterations = sequential_quadratic(part_F, part_C, c, part_scale, self.max_iter)
        c, extra = restore(part_C, c, part_scale)
        return best_of(F, C, scale, rows, c, converged, iterations + extra)


def units(F: Any) -> Array:
    """(m, T) natural units of the outputs: where the curvature is not positive, the row's typical unit stands in."""
    center = F.center
    xp = array_namespace(center)
    h = F.curvature(center)
    positive = h > 0
    count = xp.sum(xp.astype(positive, h.dtype), axis=1, keepdims=True)
    log_h = xp.log(xp.where(positive, h, xp.ones_like(h)))
    typical = xp.exp(xp.sum(log_h, axis=1, keepdims=True) / xp.where(count > 0, count, xp.ones_like(count)))
    return xp.sqrt(2 / xp.where(positive, h, typical))


def best_of(F: Any, C: Any, scale: Array, rows: Array, c: Array, converged: Array, iterations: Array) -> Decoding:
    """The cheapest feasible solution of every row, and its distance to the runner-up."""
    xp = array_namespace(c)
    m, T = F.shape
    part = C.rows(rows)
    g, A, _ = constraints(part, c)
    relative = peak(violation(part, c) / (1 + roundoff(g, A, c)))
    relative = xp.where(xp.all(xp.isfinite(c), axis=1), relative, xp.full_like(relative, xp.inf))
    feasible = relative <= FEASIBLE
    value = F.rows(rows).value(c)
    value = xp.where(feasible & ~xp.isnan(value), value, xp.full_like(value, xp.inf))

    best = xp.zeros((m, T), dtype=c.dtype)
    best_value = xp.full((m,), xp.inf, dtype=c.dtype)
    second = xp.full((m,), xp.inf, dtype=c.dtype)
    least = xp.full((m,), xp.inf, dtype=c.dtype)
    code = xp.full((m,), INFEASIBLE, dtype=xp.int64)
    total = xp.zeros(m, dtype=xp.int64)
    for group in _rounds(rows):
        at = take_rows(rows, group)
        new, new_value, off = take_rows(c, group), take_rows(value, group), take_rows(relative, group)
        old, old_value = take_rows(best, at), take_rows(best_value, at)
        old_off = take_rows(least, at)
        finite = xp.isfinite(new_value)
        wins = xp.where(finite, new_value < old_value, ~xp.isfinite(old_value) & (off < old_off))
        unit = take_rows(scale, at)
        apart = peak((new - old) / unit) > 1e-5 * (1 + peak(new / unit))
        proven = take_rows(converged, group)
        reached = xp.where(proven, xp.full_like(at, OK), xp.full_like(at, NOT_CONVERGED))
        reached = xp.where(finite, reached, xp.full_like(at, INFEASIBLE))
        old_code = take_rows(code, at)
        # Two copies of one solution are one solution: no margin between them, and one proof serves both.
        loser = xp.where(wins, old_value, new_value)
        local = xp.where(wins, old_code == OK, proven)
        runner = take_rows(second, at)
        second = put_rows(second, at, xp.where(apart & local & (loser < runner), loser, runner))
        best = put_rows(best, at, xp.where(wins[:, None], new, old))
        best_value = put_rows(best_value, at, xp.where(wins, new_value, old_value))
        least = put_rows(least, at, xp.where(wins, off, old_off))
        reached = xp.where(apart | ~finite | (reached < old_code), reached, old_code)
        code = put_rows(code, at, xp.where(wins | ~apart & finite, reached, old_code))
        total = put_rows(total, at, xp.maximum(take_rows(total, at), take_rows(iterations, group)))
    gap = xp.where(xp.isfinite(second), second - best_value, xp.full_like(second, xp.inf))
    return finish(F, C, best, code=code, iterations=total, margin=gap)


def _rounds(rows: Array) -> list[Array]:
    """Positions of the starts, split so that each row occurs at most once in a group."""
    xp = array_namespace(rows)
    order = xp.argsort(rows, stable=True)
    ordered = take_rows(rows, order)
    n = rows.shape[0]
    position = xp.arange(n)
    first = xp.concat([xp.ones(min(n, 1), dtype=xp.bool), ordered[1:] != ordered[:-1]])
    starts_at = xp.where(first, position, xp.zeros_like(position))
    # running maximum of the group's first position = rank inside the group
    rank = position - xp.cumulative_max(starts_at) if hasattr(xp, "cumulative_max") else position - _cummax(starts_at)
    groups, k = [], 0
    while bool(xp.any(rank == k)):
        groups.append(order[rank == k])
        k += 1
    return groups


def _cummax(x: Array) -> Array:
    """Running maximum (not in the standard) by doubling."""
    xp = array_namespace(x)
    shift = 1
    while shift < x.shape[0]:
        x = xp.concat([x[:shift], xp.maximum(x[shift:], x[:-shift])])
        shift *= 2
    return x
