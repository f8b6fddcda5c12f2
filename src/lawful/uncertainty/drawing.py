"""n draws from exp(-F/2) on C(x) for each row: the way that suits the set is chosen, as decoders are.

finite sets                      probabilities exp(-F/2) of the points               independent
affine sets                      a Gaussian in fewer dimensions                      independent
polyhedra                        truncated Gaussian, hit and run                     chains
curves (dimension 1)             quadrature along every arc, and its inverse         independent
all others with equations,       random walk on the surface and jumps                chains
inequalities or `contains`
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from lawful._array import to_numpy
from lawful._checks import check_count
from lawful.sets.relaxed import Penalized
from lawful.uncertainty.curves import Arc, follow
from lawful.uncertainty.polyhedra import polyhedral_draws
from lawful.uncertainty.samples import Samples, SamplingWarning
from lawful.uncertainty.target import FAR, Target, modes, scattered
from lawful.uncertainty.walk import walk

CELLS = 2**23  # numbers in the largest array of one batch
STEP = 1 / 20  # of the width of the prediction along a curve, for the quadrature


def draw(F: Any, C: Any, best: Any, n: int, random_state: Any = None, thin: int = 3) -> Samples:
    """(m, n, T) draws for the rows of F on the set C, bound to the same rows; `best` (m, T) are its decoded points.

    random_state : an integer, a `numpy.random.Generator` or None
    thin : steps of a chain from one draw to the next, for sets that need chains

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import Sphere
    >>> from lawful.uncertainty import draw
    >>> C = Sphere().fit(np.ones((1, 2)))
    >>> draws = draw(F, C, np.array([[0.6, 0.8]]), n=5, random_state=0)
    >>> draws.shape, bool(C.contains(np.asarray(draws)[0]).all())
    ((1, 5, 2), True)
    """
    n, thin = check_count("sample", "n", n), check_count("sample", "thin", thin)
    best = np.asarray(to_numpy(best), dtype=float)
    m, T = best.shape
    rng = np.random.default_rng(random_state)
    if isinstance(C, Penalized) or getattr(C, "is_union", False) or hasattr(C, "pairs"):
        raise TypeError(
            f"sample cannot draw from {type(C).__name__}: it has no surface measure of one dimension; give a set of equations, "
            "inequalities or points (a PointCloud), or sample the members one by one"
        )
    if m == 0:
        return Samples.of(np.zeros((0, n, T)))
    bad = ~np.asarray(to_numpy(C.contains(best)))
    if bad.all():
        raise ValueError(
            f"sample: no row has a decoded point on the law ({type(C).__name__}); see decode(X).status for what went wrong"
        )
    size = max(1, CELLS // (n * T * thin))
    with np.errstate(over="ignore", under="ignore"):
        parts = []
        for start in range(0, m, size):
            rows = np.arange(start, min(start + size, m))
            parts.append(_draw(F.rows(rows), C.rows(rows), best[rows], n, rng, thin))
    out = Samples.join(parts)
    if bad.any():  # nothing is known there
        out[bad] = np.nan
        out.acceptance[bad] = out.ess[bad] = out.rhat[bad] = np.nan
    _warn(out, n)
    return out


def _draw(F: Any, C: Any, best: np.ndarray, n: int, rng: np.random.Generator, thin: int) -> Samples:
    if hasattr(C, "points_"):
        return _finite(F, C, n, rng)
    if C.polyhedral and hasattr(C, "cones"):
        return polyhedral_draws(F, C, best, n, rng, thin)
    target = Target.of(F, C, best)
    start = best / target.surface.scale
    if target.surface.dimension == 0:
        return Samples.of(np.repeat(best[:, None, :], n, axis=1))
    if target.surface.dimension == 1 and target.surface.curved:
        return _along_curves(target, start, n, rng)
    return walk(target, start, n, rng, thin)


def _finite(F: Any, C: Any, n: int, rng: np.random.Generator) -> Samples:
    points = np.asarray(to_numpy(C.points_), dtype=float)
    m = F.shape[0]
    out = np.empty((m, n, points.shape[1]))
    size = max(1, CELLS // (len(points) * points.shape[1]))
    for start in range(0, m, size):
        rows = np.arange(start, min(start + size, m))
        cost = np.asarray(to_numpy(F.rows(rows).costs(points)))
        p = np.exp(-(cost - cost.min(axis=1, keepdims=True)) / 2)
        below = np.cumsum(p, axis=1)
        for i, row in enumerate(rows):
            pick = np.searchsorted(below[i] / below[i, -1], rng.random(n), side="right")
            out[row] = points[np.minimum(pick, len(points) - 1)]
    return Samples.of(out)


# ---------------------------------------------------------------------- curves


def arcs_of(target: Target, found: list[np.ndarray], step: np.ndarray, limit: np.ndarray, refine: int) -> list[list[Arc]]:
    """The arcs of {F <= limit} through the points `found` (NaN: none), for each row; none twice."""
    m = len(target.w)

    def leaves(rows: np.ndarray, z: np.ndarray) -> np.ndarray:
        r = z - target.w[rows]
        return np.einsum("it,its,is->i", r, target.P[rows], r) > limit[rows]

    return arcs_through(target, found, step, leaves, refine, m)


def arcs_through(
    target: Target, found: list[np.ndarray], step: np.ndarray, leaves: Any, refine: int, m: int
) -> list[list[Arc]]:
    out: list[list[Arc]] = [[] for _ in range(m)]
    for z in found:
        rows = np.flatnonzero(np.isfinite(z).all(axis=1))
        rows = rows[~leaves(rows, z[rows])] if len(rows) else rows
        rows = np.array([i for i in rows if not any(_on(arc, z[i]) for arc in out[i])], dtype=int)
        if not len(rows):
            continue

        def ends(some: np.ndarray, points: np.ndarray, rows: np.ndarray = rows) -> np.ndarray:
            return leaves(rows[some], points)

        for arc in follow(target.surface.rows(rows), z[rows], step[rows], ends, refine):
            row = int(rows[arc.row])
            out[row].append(Arc(row, arc.z, arc.s, arc.closed))
    return out


def _on(arc: Arc, z: np.ndarray) -> bool:
    """Whether a point lies on an arc, between two of its nodes."""
    gap = np.sqrt(((arc.z - z) ** 2).sum(axis=1))
    k = int(np.argmin(gap))
    beside = [np.sqrt(((arc.z[k] - arc.z[j]) ** 2).sum()) for j in (k - 1, k + 1) if 0 <= j < len(arc.z)]
    return bool(gap[k] <= 1.01 * max(beside, default=0.0) + 1e-9)


def _along_curves(target: Target, best: np.ndarray, n: int, rng: np.random.Generator) -> Samples:
    """Node weights by the trapezoidal rule, a node interval by its mass, a place in it by the linear density, back to C."""
    m, T = best.shape
    found = modes(target, best, scattered(target, best, rng, 8))
    t = target.surface.bases(best)[0][:, :, 0]
    width = 1 / np.sqrt(np.einsum("it,its,is->i", t, target.P, t))
    lowest = target.energy(best)
    arcs = arcs_of(target, found, STEP * width, lowest + FAR, 0)
    start, end, share = (np.empty((m, n, T)), np.empty((m, n, T)), np.empty((m, n)))
    for i in range(m):
        begin, finish, left, right, mass = [], [], [], [], []
        for arc in arcs[i]:
            if len(arc.z) < 2:
                continue
            r = arc.z - target.w[i]
            p = np.exp(-(np.einsum("jt,ts,js->j", r, target.P[i], r) - lowest[i]) / 2)
            begin.append(arc.z[:-1])
            finish.append(arc.z[1:])
            left.append(p[:-1])
            right.append(p[1:])
            mass.append(np.diff(arc.s) * (p[:-1] + p[1:]) / 2)
        if not mass:
            start[i], end[i], share[i] = best[i], best[i], 0.0
            continue
        a, b, below = np.concatenate(left), np.concatenate(right), np.cumsum(np.concatenate(mass))
        pick = np.minimum(np.searchsorted(below / below[-1], rng.random(n), side="right"), len(a) - 1)
        start[i], end[i] = np.concatenate(begin)[pick], np.concatenate(finish)[pick]
        # x with density proportional to a + (b - a) x on [0, 1]
        a, b, v = a[pick], b[pick], rng.random(n)
        share[i] = v * (a + b) / np.maximum(a + np.sqrt(a**2 + v * (b**2 - a**2)), 1e-300)
    z = (start + share[:, :, None] * (end - start)).reshape(-1, T)
    surface = target.surface.rows(np.repeat(np.arange(m), n))
    point, good = surface.back(z, surface.bases(z)[1])
    good &= surface.allowed(point)
    point = np.where(good[:, None], point, start.reshape(-1, T))  # a corner: the node beside it
    return Samples.of(point.reshape(m, n, T) * target.surface.scale)


def _warn(out: Samples, n: int) -> None:
    with np.errstate(invalid="ignore"):
        poor = ~out.exact & ((out.rhat > 1.15) | (out.ess < 0.1 * n) | (out.acceptance < 0.02))
    if poor.any():
        warnings.warn(
            f"{int(poor.sum())} of {len(poor)} rows: the chains have not mixed (largest R-hat "
            f"{np.nanmax(out.rhat):.2f}, smallest effective size {np.nanmin(out.ess):.0f} of {n}); give a larger thin, "
            "and see .rhat, .ess, .acceptance of the draws",
            SamplingWarning,
            stacklevel=4,
        )
