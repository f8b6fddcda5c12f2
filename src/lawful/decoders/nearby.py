r"""Local solutions from the prediction, and from points around it that could be better.

One start is enough where the first solution c, found from the prediction w with multipliers nu, leaves no room for another.
With L = F + nu . g, every point z of C that is better than c has L(z) <= F(z) < F(c) = L(c) and lies no farther from w than c
does (in the norm of F). If L is convex there, its stationary point c is its minimum, and no such z exists. For functions g of
degree 2 the Hessian of L is constant, and this is a proof; for others it is looked at in some points of that ball, and must be
clearly positive along the law, and much the same, in all of them.

Rows without such a proof are solved again from points spread over that ball, in rounds, for as long as a round finds
something new.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lawful._array import Array, array_namespace, device_of, like, put_rows, take_rows, to_numpy
from lawful._small import add_diagonal, peak, positive_definite, total
from lawful.decoders.lagrange import Plan, plan_of, solve
from lawful.decoders.sqp import sequential_quadratic
from lawful.losses.quadratic import Quadratic, QuadraticForm
from lawful.sets.base import tolerance
from lawful.sets.equations import Equations
from lawful.sets.restore import restore, snapped
from lawful.sets.systems import CompiledSystem

PATIENT = 25  # patient steps before a search is compared with others of its row
QUICK = 20  # steps from one start: whoever needs more gets others
ROUNDED = 1e-12  # of the scale of a law: no need to go back any closer
AROUND, ROUNDS = 8, 6  # starts in a round
SLOW = 2  # rounds, where there is no compiled code
LANDING = 4  # first steps from such a start, which only go to the law
ENOUGH = 12  # starts that came to an end without finding anything new
CLEAR = 0.5  # of the curvature of F must be left in L, where it is only looked at in some points


class Candidates(NamedTuple):
    """Local solutions: the row each belongs to, the point, whether its search converged, its iterations, C.relative."""

    rows: Array
    c: Array
    converged: Array
    iterations: Array
    off: Array


def join(*found: Candidates) -> Candidates:
    xp = array_namespace(found[0].c)
    return Candidates(*(xp.concat(parts) for parts in zip(*found)))


def nearby(F: Any, C: Any, scale: Array, tol: float) -> tuple[Candidates, Array]:
    """Local solutions of every row, the first of each in the order of the rows, and whether more starts are not worth it."""
    w = F.center
    xp = array_namespace(w)
    m, T = w.shape
    everyone = xp.arange(m, device=device_of(w))
    found, single = descend(F, C, everyone, w, scale, tol)
    good = found.converged & (found.off <= tolerance(w))
    best, value = found.c, xp.where(good, F.value(found.c), xp.full_like(found.off, xp.inf))
    settled = good & single
    hits = xp.astype(good, xp.int64)
    open_ = everyone[~settled]
    everything = [found]
    # Without compiled code a start costs a hundred times as much.
    directions = np.random.default_rng(0).standard_normal((ROUNDS if plan_for(F, C, w) else SLOW, AROUND, T))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    directions *= ((0.5 + np.arange(AROUND)) / AROUND)[:, None] ** (1 / T)  # all over the ball, not on its border alone
    for ahead in directions:
        if open_.shape[0] == 0:
            break
        k = open_.shape[0]
        rows = xp.reshape(xp.broadcast_to(open_[:, None], (k, AROUND)), (-1,))
        unit = take_rows(scale, rows)
        reach = xp.sqrt(total(((take_rows(best, rows) - take_rows(w, rows)) / unit) ** 2))
        reach = xp.where(xp.isfinite(reach), reach, xp.ones_like(reach))
        begin = take_rows(w, rows) + reach[:, None] * unit * like(np.tile(ahead, (k, 1)), w)
        found, single = descend(F.rows(rows), C.rows(rows), rows, begin, unit, tol, landing=LANDING)
        everything.append(found)
        hit = found.converged & (found.off <= tolerance(w))
        worth = xp.where(hit, F.rows(rows).value(found.c), xp.full_like(found.off, xp.inf))
        new = xp.zeros(k, dtype=xp.bool, device=device_of(w))
        sure = xp.zeros(k, dtype=xp.bool, device=device_of(w))
        for j in range(AROUND):
            mine = xp.arange(j, k * AROUND, AROUND, device=device_of(w))
            point, cost, proof = take_rows(found.c, mine), take_rows(worth, mine), take_rows(single & hit, mine)
            old, held = take_rows(best, open_), take_rows(value, open_)
            near = take_rows(scale, open_)
            apart = peak((point - old) / near) > 1e-6 * peak(old / near)
            wins = cost < held
            hits = put_rows(hits, open_, take_rows(hits, open_) + xp.astype(xp.isfinite(cost), xp.int64))
            new = new | (xp.isfinite(cost) & (apart | ~xp.isfinite(held)))
            sure = sure | (proof & (cost <= held * (1 + 1e-9)))
            best = put_rows(best, open_, xp.where(wins[:, None], point, old))
            value = put_rows(value, open_, xp.where(wins, cost, held))
        over = sure | (~new & (take_rows(hits, open_) > ENOUGH))
        settled = put_rows(settled, open_, over)
        open_ = open_[~over]
    return join(*everything), settled


def descend(F: Any, C: Any, rows: Array, begin: Array, scale: Array, tol: float, landing: int = 0) -> tuple[Candidates, Array]:
    """Local solutions from one start for each row of F, and whether there can be nothing better."""
    xp = array_namespace(begin)
    # Undamped steps may cycle among inequalities, and a basin must not be lost to that.
    patience = 2 * QUICK if landing and hasattr(C, "inequality") else 0
    c, converged, iterations, nu, single = quickest(F, C, begin, scale, tol, QUICK, patience, landing)
    c, extra, off, _ = put_back(C, c, scale, converged)
    if single is None:
        single = converged & (off <= tolerance(c))
        sure = xp.nonzero(single)[0]
        proof = one_basin(F.rows(sure), C.rows(sure), take_rows(c, sure), take_rows(nu, sure), take_rows(scale, sure))
        single = put_rows(single, sure, proof)
    return Candidates(rows, c, converged, iterations + extra, off), single


def plan_for(F: Any, C: Any, c: Array) -> Plan | None:
    """What compiled code needs to know about C; None where there is no such code for this pair."""
    full = isinstance(F, QuadraticForm)
    compiled = isinstance(C, Equations) and isinstance(C.system_, CompiledSystem) and type(c) is np.ndarray
    convex = full or (isinstance(F, Quadratic) and bool(array_namespace(c).all(F.a > 0)))
    return plan_of(C.system_, full) if compiled and convex and c.dtype == np.float64 else None


def hopeful(value: Array, converged: Array, group: Array) -> Array:
    """Searches that did not converge, and are not yet above what another search of their group (a row) has found."""
    xp = array_namespace(value)
    count = int(xp.max(group)) + 1 if group.shape[0] else 0
    best = np.full(count, np.inf)
    np.minimum.at(best, to_numpy(group), to_numpy(xp.where(converged, value, xp.full_like(value, xp.inf))))
    return ~converged & ~(value > take_rows(like(best, value), group))


def quickest(
    F: Any,
    C: Any,
    begin: Array,
    scale: Array,
    tol: float,
    max_iter: int,
    patience: int,
    landing: int = 0,
    group: Array | None = None,
) -> tuple[Array, Array, Array, Array, Array | None]:
    """(c, converged, iterations, nu, one basin) by compiled code where there is such, which may leave some rows to patience.

    Those it leaves are searched by steps that never go uphill, at most `patience` of them, and only `PATIENT` where another
    search of their `group` has found better than they have by then. One basin is None if not known.
    """
    plan, full = plan_for(F, C, begin), isinstance(F, QuadraticForm)
    if plan is None:
        if landing:
            begin, _ = restore(C, begin, scale, tol=1e-3, max_iter=2 * landing)
        return *sequential_quadratic(F, C, begin, scale, max(max_iter, patience), tol=tol), None
    c, nu, converged, iterations, single = solve(plan, begin, F.center, C._X, F.Q if full else F.a, tol, landing, max_iter)
    lost = np.flatnonzero(~converged)
    at, left = begin, patience
    while left > 0 and len(lost):
        steps = min(left, PATIENT) if group is not None and left == patience else left
        again = sequential_quadratic(F.rows(lost), C.rows(lost), at[lost], scale[lost], steps, tol=tol)
        c[lost], converged[lost] = again.c, again.converged
        iterations[lost] = again.iterations if at is begin else iterations[lost] + again.iterations
        at, left = c, left - steps
        lost = np.flatnonzero(hopeful(F.value(c), converged, group)) if group is not None else lost[:0]
    return c, converged, iterations, nu, single


def put_back(C: Any, c: Array, scale: Array, worth: Array | None = None) -> tuple[Array, Array, Array, Array]:
    """c on C to rounding, where it is worth it: points, steps that were needed, `C.relative` and `C.residual` there."""
    xp = array_namespace(c)
    c = snapped(C, c)
    off, residual = C.measured(c)
    steps = xp.zeros(c.shape[0], dtype=xp.int64, device=device_of(c))
    far = ~(off <= ROUNDED)
    rows = xp.nonzero(far if worth is None else far & worth)[0]
    if rows.shape[0]:
        part = C.rows(rows)
        now, count = restore(part, take_rows(c, rows), take_rows(scale, rows))
        now = snapped(part, now)
        measured = part.measured(now)
        c, steps = put_rows(c, rows, now), put_rows(steps, rows, count)
        off, residual = put_rows(off, rows, measured[0]), put_rows(residual, rows, measured[1])
    return c, steps, off, residual


def one_basin(F: Any, C: Any, c: Array, nu: Array, scale: Array) -> Array:
    """Rows whose Lagrangian is convex wherever something better than c could be (see the module's docstring)."""
    xp = array_namespace(c)
    w = F.center
    good = xp.ones(c.shape[0], dtype=xp.bool, device=device_of(c))
    probes, left = [c], 1.0
    if not C.quadratic:
        reach = xp.sqrt(total(((c - w) / scale) ** 2))[:, None] * scale
        aside = np.random.default_rng(0).standard_normal((2, c.shape[1]))
        aside = like(aside / np.linalg.norm(aside, axis=1, keepdims=True), c)
        probes, left = [c, w, 2 * w - c, w + reach * aside[0, :], w + reach * aside[1, :]], 1 - CLEAR
    for probe in probes:
        rows = xp.nonzero(good)[0]
        if rows.shape[0] == 0:
            break
        s, at, part = take_rows(scale, rows), take_rows(probe, rows), F.rows(rows)
        bend = C.rows(rows).curvature(at, take_rows(nu, rows))
        H = left * part.hessian(at) + bend if isinstance(F, QuadraticForm) else add_diagonal(bend, left * part.curvature(at))
        good = put_rows(good, rows, positive_definite(H * s[:, :, None] * s[:, None, :]))
    return good


def lower(value: Array, than: Array) -> Array:
    """Whether a value is lower by more than rounding."""
    return value < than - 1e-11 * (1e-300 + abs(than))
