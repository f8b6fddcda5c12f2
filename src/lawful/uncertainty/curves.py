r"""Walking along curves: sets C(x) of dimension 1, followed from a point in both directions with a step for each row.

    z_{j+1} = back(z_j + h t_j),    t_j the unit tangent at z_j, turned to go on in the direction of the last step

A step over which the tangent turns by more than `TURN` is halved and taken again; crossings (the tangent is undefined there) are
passed straight through. A row ends where `leaves` says so, where the law's inequalities end it, or where the curve closes.
Lengths are in the outputs' own units, each chord with the correction theta^2/24 for the angle theta that the curve turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lawful.uncertainty.geometry import Surface

TURN = 0.2
MOST = 4000


@dataclass
class Arc:
    """Nodes (J, T) in units of the surface, arc length (J,) from the first in the outputs' own units, and whether it is closed."""

    row: int
    z: np.ndarray
    s: np.ndarray
    closed: bool

    @property
    def length(self) -> float:
        return float(self.s[-1])


Leaves = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (rows, points) -> bool: the row ends before this point


def follow(surface: Surface, z0: np.ndarray, step: np.ndarray, leaves: Leaves, refine: int = 14) -> list[Arc]:
    """One arc for each row of z0 (m, T), points of the curves; the end of an arc is bisected `refine` times."""
    m = len(z0)
    tangent = surface.bases(z0)[0][:, :, 0]
    forth, closed = _march(surface, z0, tangent, step, leaves, np.arange(m), refine)
    open_rows = np.flatnonzero(~closed)
    back: list[Any] = [[] for _ in range(m)]
    if len(open_rows):
        part = surface.rows(open_rows)
        found, _ = _march(part, z0[open_rows], -tangent[open_rows], step[open_rows], leaves, open_rows, refine)
        for i, row in enumerate(open_rows):
            back[row] = found[i]
    arcs = []
    for i in range(m):
        nodes = [*reversed(back[i]), z0[i], *forth[i]]
        if closed[i]:
            nodes.append(z0[i])
        z = np.array(nodes)
        arcs.append(Arc(i, z, _lengths(z * surface.scale), bool(closed[i])))
    return arcs


def _lengths(c: np.ndarray) -> np.ndarray:
    chords = np.diff(c, axis=0)
    size = np.sqrt((chords**2).sum(axis=1))
    if len(size) > 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            cosine = (chords[1:] * chords[:-1]).sum(axis=1) / (size[1:] * size[:-1])
        turn = np.arccos(np.clip(np.where(np.isfinite(cosine), cosine, 1.0), -1, 1))
        theta = np.interp(np.arange(len(size)), np.arange(len(turn)) + 0.5, turn)
        size = size * (1 + np.minimum(theta, 1.0) ** 2 / 24)
    return np.concatenate([[0.0], np.cumsum(size)])


def _march(
    surface: Surface, z0: np.ndarray, t0: np.ndarray, step: np.ndarray, leaves: Leaves, names: np.ndarray, refine: int
) -> tuple[list[list[np.ndarray]], np.ndarray]:
    m = len(z0)
    nodes: list[list[np.ndarray]] = [[] for _ in range(m)]
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
        for i in np.flatnonzero(go):
            nodes[active[i]].append(new[i])
        rows = active[go]
        z[rows], t[rows] = new[go], B[go]
        bend = straight[go] > np.cos(TURN / 4)
        h[rows] = np.where(bend, np.minimum(1.5 * h[rows], step[rows]), h[rows])
        again = ~good & ~tiny
        h[active[again]] *= 0.5
        active = active[~(ended | closing)]
    _ends(surface, z, t, last, leaves, names, nodes, refine)
    return nodes, closed


def _ends(
    surface: Surface,
    z: np.ndarray,
    t: np.ndarray,
    last: np.ndarray,
    leaves: Leaves,
    names: np.ndarray,
    nodes: list[list[np.ndarray]],
    refine: int,
) -> None:
    """The last point of every row that is still inside, by halving the step that left."""
    rows = np.flatnonzero(np.isfinite(last))
    if not len(rows) or refine == 0:
        return
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
    for i, row in enumerate(rows):
        if low[i] > 0:
            nodes[row].append(best[i])
