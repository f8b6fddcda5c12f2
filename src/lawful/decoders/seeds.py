"""Where to start: a local method finds the global minimum over C only from the right basin.

For a set that does not depend on x, a pool of well-spread points of C is kept, with a neighbour graph. For
each row the starts are the *local minima of the cost over that graph*: one per basin, and near a crossing of two
branches one per branch, because only points of one branch are neighbours. For a set that depends on x
there is no common pool: the starts are the unconstrained prediction and the cheapest training outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from lawful._array import Array, array_namespace, like, take_rows, to_numpy
from lawful.sets.restore import constraints, restore

STARTS = 3
SIZES = {0: (64, 4), 1: (160, 2), 2: (320, 8)}  # dimension of C -> points in the pool, neighbours; beyond: the last
LARGE = (512, 12)
CHUNK = 512  # rows at a time: the table of costs stays in the cache


@dataclass
class Pool:
    points: np.ndarray  # (P, T) points of C, none singular
    neighbours: np.ndarray  # (P, k) indices; a missing neighbour is the point itself
    dimension: int  # of C near the points


def prepare(C: Any) -> None:
    """Build what the starts need before several threads ask for it at once."""
    if not getattr(C, "depends_on_x", False):
        pool_of(C)


def pool_of(C: Any) -> Pool | None:
    """The pool of a set that does not depend on x, built once; None when it cannot be sampled."""
    if "_seed_pool" not in C.__dict__:
        C.__dict__["_seed_pool"] = _build(C)
    return C.__dict__["_seed_pool"]


def _build(C: Any) -> Pool | None:
    """Candidates around the training outputs and at all scales, since data may sit in one corner of C; then evenly thinned."""
    location = getattr(C, "location_", np.zeros(C.n_tasks_))
    spread = getattr(C, "spread_", np.ones(C.n_tasks_))
    size = np.maximum(spread, np.abs(location) / 2)
    unit = np.maximum(size, 0.1 * size.max())
    rng = np.random.default_rng(0)
    clouds = [location + unit * 10 ** rng.uniform(0, 2, (2048, 1)) * rng.uniform(-1, 1, (2048, C.n_tasks_))]
    clouds[0][:1024] = location + unit * rng.uniform(-3, 3, (1024, C.n_tasks_))
    near = [location + spread * rng.uniform(-2.5, 2.5, (1024, C.n_tasks_))]
    near += [starts] if len(starts := getattr(C, "starts_", np.zeros((0, C.n_tasks_)))) else []
    wide, close = _onto(C, clouds[0], unit), _onto(C, np.concatenate(near), spread)
    both = np.concatenate([close, wide])
    if len(both) < 8:
        return None
    normals, _ = _normals(C, both, unit)
    dimension = int(C.n_tasks_ - round(float(np.median(np.trace(normals, axis1=1, axis2=2)))))
    n, k = SIZES.get(dimension, LARGE)
    # An unbounded set reaches far: asinh keeps its ends from taking the whole pool. Even spacing matters, else the nearest
    # points of some lie all on one side and every slope looks like a minimum.
    chart = np.arcsinh((both - location) / unit)
    chosen = _spread_out(chart, n)
    points, normals = both[chosen], normals[chosen]
    return Pool(points, _neighbours(points / unit, normals, k), dimension)


def _neighbours(points: np.ndarray, normals: np.ndarray, k: int) -> np.ndarray:
    """The k nearest points on the same branch, the point itself where there are fewer.

    Two points are on one branch when their normal spaces agree and the line between them is nearly tangent at both. On a
    curve (k = 2) they are the nearest on either side.
    """
    wide = min(max(4 * k, 16), len(points) - 1)
    _, near = cKDTree(points).query(points, k=wide + 1)
    near = near[:, 1:]
    line = points[near] - points[:, None]
    line = line / np.maximum(np.linalg.norm(line, axis=2, keepdims=True), 1e-300)
    off = [np.sum((N @ line[..., None])[..., 0] ** 2, axis=2) for N in (normals[:, None], normals[near])]
    codimension = np.trace(normals, axis1=1, axis2=2)
    overlap = np.sum(normals[:, None] * normals[near], axis=(2, 3))
    agree = (np.maximum(*off) < 0.5) & (overlap > 0.5 * np.maximum(codimension[:, None], codimension[near]))
    if k == 2:
        side = np.sum(line * np.linalg.eigh(normals)[1][:, None, :, 0], axis=2)
        sides = [agree & (side > 0), agree & (side < 0)]
    else:
        rank = np.cumsum(agree, axis=1)
        sides = [agree & (rank == j + 1) for j in range(k)]
    at = np.arange(len(points))
    return np.stack([np.where(s.any(axis=1), near[at, s.argmax(axis=1)], at) for s in sides], axis=1)


def _onto(C: Any, cloud: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """The points of the cloud moved onto C; those that fail, and singular ones, are dropped.

    Never start on a singular point: there the normal vanishes and no step knows where to go.
    """
    points, _ = restore(C, cloud, unit)
    points = points[np.isfinite(points).all(axis=1)]
    points = points[to_numpy(C.residual(points)) <= 1e-7 * (1 + np.abs(points).max(axis=1, initial=0))]
    if not len(points):
        return points
    _, strength = _normals(C, points, unit)
    return points[strength > 1e-3 * np.median(strength)]


def _normals(C: Any, points: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Projectors on the normal spaces of the active functions, and the size of the smallest normal."""
    g, A, n_equal = constraints(C, points)
    active = (np.arange(g.shape[1]) < n_equal) | (g > -1e-9)
    A = np.where(active[:, :, None], A * scale, 0.0)
    _, s, V = np.linalg.svd(A, full_matrices=False)
    keep = s > 1e-7 * s.max(axis=1, initial=1e-300, keepdims=True)
    V = np.where(keep[:, :, None], V, 0.0)
    return np.swapaxes(V, 1, 2) @ V, s[:, 0] if n_equal else np.ones(len(points))


def _spread_out(points: np.ndarray, n: int) -> np.ndarray:
    """Farthest-point thinning: the indices of n points that cover the cloud evenly."""
    if len(points) <= n:
        return np.arange(len(points))
    chosen = [0]
    distance = np.sum((points - points[0]) ** 2, axis=1)
    for _ in range(n - 1):
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, np.sum((points - points[chosen[-1]]) ** 2, axis=1))
    return np.array(chosen)


def local_minima(F: Any, cloud: Array, near: Array) -> tuple[Array, Array]:
    """The cheapest local minima of the cost over the neighbour graph: (rows, points), at most STARTS a row."""
    xp = array_namespace(cloud)
    cost = F.costs(cloud)
    lowest = cost
    for j in range(near.shape[1]):
        lowest = xp.minimum(lowest, xp.take(cost, near[:, j], axis=1))
    cost = xp.where(cost <= lowest, cost, xp.full_like(cost, xp.inf))
    columns, everyone = xp.arange(cost.shape[1]), xp.arange(cost.shape[0])
    rows, points = [], []
    for _ in range(STARTS):
        best = xp.argmin(cost, axis=1)
        found = xp.isfinite(xp.min(cost, axis=1))
        rows.append(everyone[found])
        points.append(xp.take(cloud, best[found], axis=0))
        cost = xp.where(columns[None, :] == best[:, None], xp.full_like(cost, xp.inf), cost)
    return xp.concat(rows), xp.concat(points)


def starts(F: Any, C: Any, scale: Array) -> tuple[Array, Array]:
    """Starts for every row of F: (rows, points), rows repeated once per start."""
    pool = None if getattr(C, "depends_on_x", False) else pool_of(C)
    center = F.center
    xp = array_namespace(center)
    everyone = xp.arange(F.shape[0])
    rows, points = [], []
    if pool is not None:
        for begin in range(0, F.shape[0], CHUNK):
            idx = everyone[begin : begin + CHUNK]
            found_rows, found_points = local_minima(F.rows(idx), like(pool.points, center), xp.asarray(pool.neighbours))
            rows.append(take_rows(idx, found_rows))
            points.append(found_points)
    # A pool covers a curve or a surface; beyond that, or without one, the prediction itself is the best start.
    guesses = [center] if pool is None or pool.dimension > 1 else []
    cloud = getattr(C, "starts_", None)
    if pool is None and cloud is not None and len(cloud):
        guesses += cheapest(F, like(cloud, center), min(2, len(cloud)))
    for guess in guesses:
        # These are not on C: a first descent to it saves the local search from far-off linearisations.
        rows.append(everyone)
        points.append(restore(C, guess, scale, tol=1e-6, max_iter=12)[0])
    return xp.concat(rows), xp.concat(points)


def cheapest(F: Any, cloud: Array, k: int) -> list[Array]:
    """For every row the k cheapest points of the cloud."""
    xp = array_namespace(cloud)
    cost = F.costs(cloud)
    columns = xp.arange(cost.shape[1])[None, :]
    found = []
    for _ in range(k):
        best = xp.argmin(cost, axis=1)
        found.append(take_rows(cloud, best))
        cost = xp.where(columns == best[:, None], xp.full_like(cost, xp.inf), cost)
    return found
