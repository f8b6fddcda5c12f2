r"""Walking along curves: sets C(x) of dimension 1, followed from a point in both directions with a step for each row.

    z_{j+1} = back(z_j + h t_j),    t_j the unit tangent at z_j, turned to go on in the direction of the last step

A step over which the tangent turns by more than `TURN` is halved and taken again; crossings, where there is no tangent, are
passed straight through. A row ends where `leaves` says so, where the law's inequalities end it, or where the curve closes.
Lengths are in the outputs' own units, each chord with the correction theta^2/24 for the angle theta that the curve turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lawful.uncertainty.geometry import Surface

TURN = 0.2
MOST = 4000


@dataclass
class Arc:
    """Nodes (J, T) in units of the surface, arc length (J,) from the first in the outputs' own units, whether it is closed."""

    row: int
    z: np.ndarray
    s: np.ndarray
    closed: bool

    @property
    def length(self) -> float:
        return float(self.s[-1])


Leaves = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (rows, points) -> bool: the row ends before this point


Steps = list[tuple[np.ndarray, np.ndarray]]  # what each step of a march has found: rows, points


def follow(surface: Surface, z0: np.ndarray, step: np.ndarray, leaves: Leaves, refine: int = 14) -> list[Arc]:
    """One arc for each row of z0 (m, T), points of the curves; the end of an arc is bisected `refine` times."""
    m = len(z0)
    tangent = surface.bases(z0)[0][:, :, 0]
    everyone = np.arange(m)
    forth, closed = _march(surface, z0, tangent, step, leaves, everyone, refine)
    steps = [(everyone, np.zeros(m), z0), *((rows, np.full(len(rows), j + 1.0), z) for j, (rows, z) in enumerate(forth))]
    steps.append((everyone[closed], np.full(closed.sum(), np.inf), z0[closed]))  # home again
    rest = everyone[~closed]
    if len(rest):
        back, _ = _march(surface.rows(rest), z0[rest], -tangent[rest], step[rest], leaves, rest, refine)
        steps += [(rest[rows], np.full(len(rows), -j - 1.0), z) for j, (rows, z) in enumerate(back)]
    rows, place, z = (np.concatenate(parts) for parts in zip(*steps))
    order = np.lexsort((place, rows))
    rows, z = rows[order], z[order]
    ends = np.searchsorted(rows, np.arange(m + 1))
    s = _lengths(z * surface.scale, rows)
    return [Arc(i, z[a:b], s[a:b] - s[a], bool(closed[i])) for i, (a, b) in enumerate(pairwise(ends))]


def _lengths(c: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Arc length along nodes of many rows, one after the other; only differences inside a row mean anything."""
    chords = np.diff(c, axis=0)
    size = np.where(rows[1:] == rows[:-1], np.sqrt((chords**2).sum(axis=1)), 0.0)
    theta, count = np.zeros(len(size)), np.zeros(len(size))
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = (chords[1:] * chords[:-1]).sum(axis=1) / (size[1:] * size[:-1])
    inner = np.isfinite(cosine)
    turn = np.where(inner, np.arccos(np.clip(np.where(inner, cosine, 1.0), -1, 1)), 0.0)
    for part in (slice(None, -1), slice(1, None)):  # the curve turns over a chord as it does at its two ends, on the average
        theta[part] += turn
        count[part] += inner
    theta = np.minimum(theta / np.maximum(count, 1), 1.0)
    return np.concatenate([[0.0], np.cumsum(size * (1 + theta**2 / 24))])


def hulls(arcs: list[Arc], scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N, T), (N, T) the smallest and largest value of each output on each arc.

    Between nodes the extreme value is that of the parabola through the three nodes around it.
    """
    z, s = np.concatenate([arc.z for arc in arcs]) * scale, np.concatenate([arc.s for arc in arcs])
    sizes = np.array([len(arc.z) for arc in arcs])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    of = np.repeat(np.arange(len(arcs)), sizes)
    out = []
    for sign in (-1.0, 1.0):
        v = sign * z
        top = v.copy()
        with np.errstate(divide="ignore", invalid="ignore"):
            left, right = (s[1:-1] - s[:-2])[:, None], (s[2:] - s[1:-1])[:, None]
            rise, fall = (v[1:-1] - v[:-2]) / left, (v[2:] - v[1:-1]) / right
            bend, slope = 2 * (fall - rise) / (left + right), (rise * right + fall * left) / (left + right)
            vertex = v[1:-1] - slope**2 / (2 * bend)
        inside = ((of[2:] == of[:-2])[:, None]) & (rise >= 0) & (fall <= 0) & (bend < 0) & np.isfinite(vertex)
        top[1:-1] = np.where(inside, vertex, v[1:-1])
        out.append(sign * np.maximum.reduceat(top, starts, axis=0))
    return out[0], out[1]


def _march(
    surface: Surface, z0: np.ndarray, t0: np.ndarray, step: np.ndarray, leaves: Leaves, names: np.ndarray, refine: int
) -> tuple[Steps, np.ndarray]:
    m = len(z0)
    nodes: Steps = []
    closed = np.zeros(m, bool)
    z, t, h = z0.copy(), t0.copy(), step.astype(float).copy()
    active = np.arange(m)
    last = np.full(m, np.nan)  # of rows that have ended: how long the step was that led outside
    for j in range(MOST):
        if not len(active):
            break
        part = surface.rows(active)
        _, N = part.bases(z[active])
        new, found = part.back(z[active] + h[active, None] * t[active], N)
        B = part.bases(new)[0][:, :, 0]
        B = np.where((B * t[active]).sum(axis=1, keepdims=True) < 0, -B, B)
        straight = (B * t[active]).sum(axis=1)
        moved = np.sqrt(((new - z[active]) ** 2).sum(axis=1))
        tiny = h[active] < 1e-3 * step[active]  # a corner or a crossing: go on as one can
        good = found & ((straight > np.cos(TURN)) | tiny) & (moved > 0.3 * h[active]) & (moved < 3 * h[active])
        ended = (~good & tiny) | (good & (leaves(names[active], new) | ~part.allowed(new)))
        last[active[ended]] = h[active[ended]]
        go = good & ~ended
        home = z0[active] - z[active]
        if j > 2:  # home lies between the last node and this one
            ahead = (home * (new - z[active])).sum(axis=1)
            near = np.sqrt((home**2).sum(axis=1))
            off = np.sqrt(np.maximum(near**2 - (ahead / np.where(moved > 0, moved, 1.0)) ** 2, 0.0))
            same = (B * t0[active]).sum(axis=1) > 0.9
            closing = go & (ahead > 0) & (ahead <= moved**2 * 1.0001) & (off <= 0.2 * moved) & same
            closed[active[closing]] = True
            go &= ~closing
        else:
            closing = np.zeros(len(active), bool)
        rows = active[go]
        nodes.append((rows, new[go]))
        z[rows], t[rows] = new[go], B[go]
        bend = straight[go] > np.cos(TURN / 4)
        h[rows] = np.where(bend, np.minimum(1.5 * h[rows], step[rows]), h[rows])
        again = ~good & ~tiny
        h[active[again]] *= 0.5
        active = active[~(ended | closing)]
    nodes.append(_ends(surface, z, t, last, leaves, names, refine))
    return nodes, closed


def _ends(
    surface: Surface, z: np.ndarray, t: np.ndarray, last: np.ndarray, leaves: Leaves, names: np.ndarray, refine: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows that have ended and their last point inside, by halving the step that left."""
    rows = np.flatnonzero(np.isfinite(last)) if refine else np.empty(0, int)
    if not len(rows):
        return rows, z[rows]
    part = surface.rows(rows)
    _, N = part.bases(z[rows])
    low, high = np.zeros(len(rows)), last[rows].copy()
    best = z[rows].copy()
    for _ in range(refine):
        middle = (low + high) / 2
        new, found = part.back(z[rows] + middle[:, None] * t[rows], N)
        inside = found & ~leaves(names[rows], new) & part.allowed(new)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        best = np.where(inside[:, None], new, best)
    return rows[low > 0], best[low > 0]
