"""C itself: curves in the plane of two outputs, surfaces over three, regions, and points where nothing else is known.

A curve {f = 0} is the zero level of f on a grid, cut where an inequality forbids it. Where f jumps from minus to plus infinity
a level is found that is none: there |f| at the crossing is larger than at the corners of the cell, and it is left out. A
surface in three outputs is found by marching tetrahedra: each cell of the grid is six tetrahedra, and in each the plane
through the zeros on its edges is one triangle or two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import to_numpy
from lawful.plots.canvas import LAW

__all__ = ["draw_law"]

CELLS = {2: 240, 3: 28}  # of a grid along each axis
POINTS = 1500  # of a set that is drawn by its points
TETRAHEDRA = ((0, 1, 3, 7), (0, 1, 5, 7), (0, 2, 3, 7), (0, 2, 6, 7), (0, 4, 5, 7), (0, 4, 6, 7))


def draw_law(ax: Any, C: Any, limits: np.ndarray, *, x: Any = None, color: str = LAW, label: str | None = "law") -> None:
    """Draw a fitted set of two or three outputs into axes. limits (T, 2): from where to where; x (d,): the inputs of C(x)."""
    drawn = False
    if not hasattr(C, "points_"):
        drawn = (_plane if len(limits) == 2 else _space)(ax, C, np.asarray(limits, dtype=float), x, color, label)
    if not drawn:
        _points(ax, C, np.asarray(limits, dtype=float), x, color, label)
    ax.set_xlim(*limits[0])
    ax.set_ylim(*limits[1])


# ---------------------------------------------------------------------- values


def _at(C: Any, x: Any, count: int) -> Any:
    """C(x) for so many points."""
    return C if x is None else C.at(np.repeat(np.atleast_2d(np.asarray(x, dtype=float)), count, axis=0))


def _values(C: Any, kind: str, points: np.ndarray, x: Any) -> np.ndarray | None:
    """(n, P) the equalities or inequalities of C at some points; None where it has none."""
    bound = _at(C, x, len(points))
    if not hasattr(bound, kind):
        return None
    with np.errstate(all="ignore"):
        found = to_numpy(getattr(bound, kind)(points))
    return None if found.shape[1] == 0 else found


def _level(C: Any, points: np.ndarray, x: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """(n,) a function whose zeros are C, where one is enough, and (n,) one that must not be positive."""
    f, g = _values(C, "equality", points, x), _values(C, "inequality", points, x)
    return (f[:, 0] if f is not None and f.shape[1] == 1 else None), (None if g is None else g.max(axis=1))


def _many(C: Any, points: np.ndarray, x: Any) -> bool:
    f = _values(C, "equality", points[:1], x)
    return f is not None and f.shape[1] > 1


# ---------------------------------------------------------------------- two outputs


def _plane(ax: Any, C: Any, limits: np.ndarray, x: Any, color: str, label: str | None) -> bool:
    across, up = (np.linspace(low, high, CELLS[2] + 1) for low, high in limits)
    A, B = np.meshgrid(across, up)
    points = np.c_[A.ravel(), B.ravel()]
    if _many(C, points, x):  # several equations: points
        return False
    f, g = _level(C, points, x)
    if f is None:
        return False if g is None else _region(ax, A, B, g.reshape(A.shape), color, label)
    if g is not None:
        f = np.where(g <= 1e-9, f, np.nan)
    grid = f.reshape(A.shape)
    if not (np.nanmin(grid, initial=np.inf) < 0 < np.nanmax(grid, initial=-np.inf)):
        return False
    lines = ax.contour(A, B, grid, levels=[0.0], colors=[color])
    segments = [part for segment in lines.allsegs[0] for part in _without_jumps(C, segment, x, grid, limits)]
    lines.remove()
    for k, segment in enumerate(segments):
        ax.plot(*segment.T, color=color, lw=2.4, alpha=0.8, zorder=1, label=label if k == 0 else None)
    return bool(segments)


def _without_jumps(C: Any, segment: np.ndarray, x: Any, grid: np.ndarray, limits: np.ndarray) -> list[np.ndarray]:
    """The parts of a level line at which f really is zero."""
    f = _values(C, "equality", segment, x)
    assert f is not None
    cell = np.clip(((segment - limits[:, 0]) / (limits[:, 1] - limits[:, 0]) * CELLS[2]).astype(int), 0, CELLS[2] - 1)
    i, j = cell[:, 1], cell[:, 0]
    corners = np.abs(np.stack([grid[i, j], grid[i + 1, j], grid[i, j + 1], grid[i + 1, j + 1]]))
    good = np.abs(f[:, 0]) <= 0.5 * np.nanmax(corners, axis=0, initial=0.0) + 1e-12
    runs = np.split(np.arange(len(segment)), np.flatnonzero(~good))
    return [segment[run[good[run]]] for run in runs if good[run].sum() > 1]


def _region(ax: Any, A: np.ndarray, B: np.ndarray, g: np.ndarray, color: str, label: str | None) -> bool:
    if not np.nanmin(g, initial=np.inf) <= 0:
        return False
    ax.contourf(A, B, g, levels=[-np.inf, 0.0], colors=[color], alpha=0.18, zorder=0)
    if np.nanmax(g) > 0:
        ax.contour(A, B, g, levels=[0.0], colors=[color], linewidths=2, zorder=1)
    if label is not None:
        ax.fill([], [], color=color, alpha=0.3, label=label)
    return True


# ---------------------------------------------------------------------- three outputs


def _space(ax: Any, C: Any, limits: np.ndarray, x: Any, color: str, label: str | None) -> bool:
    axes = [np.linspace(low, high, CELLS[3] + 1) for low, high in limits]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    flat = points.reshape(-1, 3)
    if _many(C, flat, x):
        return False
    f, g = _level(C, flat, x)
    f = g if f is None else f
    if f is None:
        return False
    triangles = tetrahedra_crossed(points, f.reshape(points.shape[:3]))
    if f is not g and g is not None and len(triangles):
        allowed = _values(C, "inequality", triangles.mean(axis=1), x)
        assert allowed is not None
        triangles = triangles[allowed.max(axis=1) <= 0]
    if not len(triangles):
        return False
    from matplotlib.colors import to_rgb
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    edges = triangles / (limits[:, 1] - limits[:, 0])  # light from above, in units of the box
    normal = np.cross(edges[:, 1] - edges[:, 0], edges[:, 2] - edges[:, 0])
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    shade = 0.55 + 0.45 * np.abs((normal / np.where(length > 0, length, 1.0)) @ np.array([0.3, 0.2, 0.93]))
    colours = np.c_[shade[:, None] * np.array(to_rgb(color)), np.full(len(shade), 0.25)]
    ax.add_collection3d(Poly3DCollection(triangles, facecolors=colours, edgecolors="none", zorder=0))
    if label is not None:
        ax.plot([], [], [], "s", color=color, alpha=0.4, label=label)
    ax.set_zlim(*limits[2])
    return True


def tetrahedra_crossed(points: np.ndarray, f: np.ndarray) -> np.ndarray:
    """(n, 3, 3) the triangles on which f is zero, from its values (a, b, c) at points (a, b, c, 3) of a grid."""
    corner = [(slice(i, i - 1 or None), slice(j, j - 1 or None), slice(k, k - 1 or None)) for i, j, k in np.ndindex(2, 2, 2)]
    values = np.stack([f[c].ravel() for c in corner], axis=1)
    places = np.stack([points[c].reshape(-1, 3) for c in corner], axis=1)
    low, high = values.min(axis=1), values.max(axis=1)
    crossed = (low < 0) & (high >= 0) & np.isfinite(low) & np.isfinite(high)
    values, places = values[crossed], places[crossed]
    found: list[np.ndarray] = []
    for tetrahedron in TETRAHEDRA:
        v, p = values[:, tetrahedron], places[:, tetrahedron]
        order = np.argsort(v, axis=1)
        v, p = np.take_along_axis(v, order, axis=1), np.take_along_axis(p, order[:, :, None], axis=1)
        negative = (v < 0).sum(axis=1)
        for count, sides in (  # edges with a change of sign: between the lowest `count` corners and the others
            (1, (((0, 1), (0, 2), (0, 3)),)),
            (2, (((0, 2), (0, 3), (1, 3)), ((0, 2), (1, 2), (1, 3)))),
            (3, (((0, 3), (1, 3), (2, 3)),)),
        ):
            rows = negative == count
            for triangle in sides:
                found.append(np.stack([_zero(v[rows], p[rows], a, b) for a, b in triangle], axis=1))
    return np.concatenate(found)


def _zero(v: np.ndarray, p: np.ndarray, a: int, b: int) -> np.ndarray:
    share = (v[:, a] / (v[:, a] - v[:, b]))[:, None]
    return p[:, a] + share * (p[:, b] - p[:, a])


# ---------------------------------------------------------------------- anything else


def _points(ax: Any, C: Any, limits: np.ndarray, x: Any, color: str, label: str | None) -> None:
    points = sampled(C, x)
    if points is not None:
        points = points[((points >= limits[:, 0]) & (points <= limits[:, 1])).all(axis=1)]
        ax.plot(*points.T, ".", color=color, ms=3, alpha=0.6, zorder=1, label=label)


def sampled(C: Any, x: Any = None, n: int = POINTS) -> np.ndarray | None:
    """(n, T) points of C(x), or None where it cannot be sampled."""
    if hasattr(C, "points_"):
        return np.asarray(to_numpy(C.points_), dtype=float)
    if C.unbounded and not (hasattr(C, "equality") or hasattr(C, "inequality")):  # all of space
        return None
    try:
        return np.asarray(to_numpy(_at(C, x, n).sample(n, random_state=0)), dtype=float)
    except (TypeError, ValueError):
        return None
