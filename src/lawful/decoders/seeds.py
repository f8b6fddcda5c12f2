"""Where to start: a local method finds the global minimum over C only from the right basin.

For a set of at most three outputs that does not depend on x, a pool of well-spread points of C is kept, with a neighbour
graph. For each row the starts are the *local minima of the cost over that graph*: one per basin, and near a crossing of two
branches one per branch, because only points of one branch are neighbours. For a set that depends on x
there is no common pool, and one of many outputs no pool covers: the starts are the
 unconstrained prediction and the cheapest training outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.spatial import cKDTree

from lawful._array import Array, array_namespace, device_of, in_host_memory, like, take_rows, to_numpy
from lawful.losses.quadratic import Quadratic
from lawful.sets.restore import constraints, restore, roundoff

MORE = 8  # starts, for rows that failed, and where the weights of the outputs differ much
UNEVEN = 30.0
SIZES = {0: 64, 1: 160, 2: 320}  # points in the pool by the dimension of C; beyond: LARGE
NEIGHBOURS = {0: 4, 1: 2, 2: 8}
LARGE, LARGEST, DENSE = 512, 2048, 8192
POOLED = 3  # outputs; beyond, points around the prediction say more
TURN = 0.1  # squared sine of the angle by which C may turn between neighbours; a crossing may be that acute
FEW = 8
AWAY = 1e3  # times the size of the outputs
PROBES = 12  # training outputs that are moved onto C(x) where C depends on x
CHUNK, GPU_CHUNK = 512, 2**19  # rows at a time: the table of costs stays in the cache; a GPU is slow where rows are few


@dataclass
class Pool:
    points: np.ndarray  # (P, T) points of C, none singular
    unit: np.ndarray  # (T,) units in which they are evenly spread
    neighbours: np.ndarray  # (P, k) indices; a missing neighbour is the point itself
    dimension: int  # of C near the points


# What is known about a fitted set, by its version: a set that is fitted again, or forgotten, is forgotten here too.
_known: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def known(C: Any, what: str, make: Callable[[Any], Any]) -> Any:
    """make(C), made once for every fit of C."""
    kept = _known.setdefault(getattr(C, "version_", C), {})
    if what not in kept:
        with np.errstate(all="ignore"):
            kept[what] = make(C)
    return kept[what]


def pooled(C: Any) -> bool:
    """Whether a pool of seeds can cover C: a fixed set of few outputs."""
    return not C.depends_on_x and C.n_tasks_ <= POOLED


def pool_of(C: Any) -> Pool | None:
    """The pool of a set that does not depend on x, built once; None when it cannot be sampled."""
    return known(C, "pool", _build)


def _build(C: Any) -> Pool | None:
    """Candidates around the training outputs and at all scales, since data may sit in one corner of C; then evenly thinned.

    The pool grows until the graph is faithful: nearly every point of a curve has a neighbour on either side, every point
    of a surface several.
    """
    cloud = _cloud(C, 4 * LARGEST)
    different = np.unique(np.round(cloud.points / cloud.unit, 9), axis=0, return_index=True)[1]
    if 0 < len(different) <= FEW:  # a law that leaves only a few points: all of them
        return Pool(cloud.points[different], cloud.unit, np.arange(len(different))[:, None], 0)
    if len(cloud.points) < 8:
        return None
    dimension = int(C.n_tasks_ - round(float(np.median(np.trace(cloud.normals, axis1=1, axis2=2)))))
    n, k = SIZES.get(dimension, LARGE), NEIGHBOURS.get(dimension, 12)
    while True:
        chosen = _spread_out(cloud.chart, n)  # a larger n only adds points
        points = cloud.points[chosen]
        near = _neighbours(points / cloud.unit, cloud.normals[chosen], k)
        lonely = np.mean(np.sum(near == np.arange(len(points))[:, None], axis=1) > (0 if k == 2 else k // 2))
        if lonely < 0.02 or n >= min(LARGEST, len(cloud.points)):
            return Pool(points, cloud.unit, near, dimension)
        n *= 2


@dataclass
class _Cloud:
    points: np.ndarray
    normals: np.ndarray
    unit: np.ndarray
    chart: np.ndarray  # coordinates in which points are to be spread evenly


def _cloud(C: Any, n: int) -> _Cloud:
    """Many points of C: n/2 random ones in a box around the data, n/2 ever farther out, and the training outputs."""
    T = C.n_tasks_
    location, spread = C.location_, C.spread_
    size = np.maximum(spread, np.abs(location) / 2)
    unit = np.maximum(size, 0.1 * size.max())
    rng = np.random.default_rng(0)
    near = location + spread * rng.uniform(-2.5, 2.5, (n // 4, T))
    wide = location + unit * rng.uniform(-3, 3, (n // 4, T))
    far = location + unit * 10 ** rng.uniform(0, 1, (n // 2, 1)) * rng.uniform(-1, 1, (n // 2, T))
    points = np.concatenate([_onto(C, np.concatenate([near, C.starts_]), spread), _onto(C, np.concatenate([wide, far]), unit)])
    # What a wild step threw far away is no place to start, unless all of C is there.
    near = np.abs(points - location).max(axis=1, initial=0.0) <= AWAY * unit.max()
    points = points[near] if near.sum() >= 8 else points
    normals = _normals(C, points, unit)[0] if len(points) else np.zeros((0, T, T))
    # An unbounded set reaches far: asinh keeps its ends from taking the whole pool.
    return _Cloud(points, normals, unit, np.arcsinh((points - location) / unit))


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
    agree = (np.maximum(*off) < TURN) & (overlap > (1 - TURN) * np.maximum(codimension[:, None], codimension[near]))
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
    points, _ = restore(C, cloud, unit, max_iter=80)
    points = points[np.isfinite(points).all(axis=1)]
    points = points[to_numpy(C.contains(points, 1e-7))]
    if not len(points):
        return points
    points = points[np.isfinite(constraints(C, points)[1]).all(axis=(1, 2))]
    if not len(points):
        return points
    _, strength = _normals(C, points, unit)
    return points[strength > 1e-3 * np.median(strength)]


def _normals(C: Any, points: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Projectors on the normal spaces of the active functions, and the size of the smallest normal."""
    g, A, n_equal = constraints(C, points)
    active = (np.arange(g.shape[1]) < n_equal) | (g > -1e-9 * roundoff(A, points))
    A = np.where(active[:, :, None], A * scale, 0.0)
    _, s, V = np.linalg.svd(A, full_matrices=False)
    keep = s > 1e-7 * s.max(axis=1, initial=1e-300, keepdims=True)
    V = np.where(keep[:, :, None], V, 0.0)
    return np.swapaxes(V, 1, 2) @ V, s[:, 0] if n_equal else np.ones(len(points))


def _spread_out(points: np.ndarray, n: int) -> np.ndarray:
    """Farthest-point thinning: the indices of n points that cover the cloud evenly."""
    if len(points) <= n:
        return np.arange(len(points))
    from lawful.decoders._seeding import spread_out  # compiled, and most sets need no pool

    return spread_out(np.ascontiguousarray(points), n)


def local_minima(F: Any, cloud: Array, near: Array, count: int) -> tuple[Array, Array]:
    """The cheapest local minima of the cost over the neighbour graph: (rows, points), at most `count` a row."""
    xp = array_namespace(cloud)
    if isinstance(F, Quadratic) and isinstance(cloud, np.ndarray):
        from lawful.decoders._seeding import graph_minima

        rows, columns = graph_minima(F.a, F.b, cloud, near, count)
        return rows, cloud[columns]
    cost = F.costs(cloud)
    lowest = cost
    for j in range(near.shape[1]):
        lowest = xp.minimum(lowest, xp.take(cost, near[:, j], axis=1))
    rows, columns = xp.nonzero(cost <= lowest)
    value = xp.take(xp.reshape(cost, (-1,)), rows * cost.shape[1] + columns)
    order = xp.argsort(value, stable=True)
    order = take_rows(order, xp.argsort(take_rows(rows, order), stable=True))
    rows, columns = take_rows(rows, order), take_rows(columns, order)
    kept = rank_in_group(rows) < count
    return rows[kept], take_rows(cloud, columns[kept])


def rank_in_group(ordered: Array) -> Array:
    """0, 1, 2, ... within each run of equal numbers."""
    xp = array_namespace(ordered)
    return xp.arange(ordered.shape[0], device=device_of(ordered)) - xp.searchsorted(ordered, ordered)


def starts(F: Any, C: Any, scale: Array, n_starts: int) -> tuple[Array, Array]:
    """Starts for every row of F: (rows, points), rows repeated once per start."""
    pool = pool_of(C) if pooled(C) else None
    center = F.center
    xp = array_namespace(center)
    everyone = xp.arange(F.shape[0], device=device_of(center))
    rows, points = [], []
    if pool is not None:
        cloud, near = like(pool.points, center), xp.asarray(pool.neighbours, device=device_of(center))
        # The cost of a pool point says little about its basin when the weights, in the pool's units, are very uneven.
        weight = F.curvature(center) * like(pool.unit, center) ** 2
        uneven = xp.max(weight, axis=1) > UNEVEN * xp.min(weight, axis=1)
        chunk = CHUNK if in_host_memory(center) else GPU_CHUNK
        for some, count in ((everyone[uneven], max(MORE, n_starts)), (everyone[~uneven], n_starts)):
            for begin in range(0, some.shape[0], chunk):
                idx = some[begin : min(begin + chunk, some.shape[0])]
                found_rows, found_points = local_minima(F.rows(idx), cloud, near, count)
                rows.append(take_rows(idx, found_rows))
                points.append(found_points)
    # A pool covers a curve or a surface; beyond that, or without one, the prediction itself is the best start.
    guesses = [center] if pool is None or pool.dimension > 1 else []
    if pool is None and len(C.starts_):
        guesses += cheapest(F, like(C.starts_, center), min(2, len(C.starts_)))
        found_rows, found_points = _probe(F, C, scale, n_starts)
        rows.append(found_rows)
        points.append(found_points)
    for guess in guesses:
        # These are not on C: a first descent to it saves the local search from far-off linearisations.
        rows.append(everyone)
        points.append(restore(C, guess, scale, tol=1e-6, max_iter=12)[0])
    return xp.concat(rows), xp.concat(points)


def _probe(F: Any, C: Any, scale: Array, n_starts: int) -> tuple[Array, Array]:
    """For a set that depends on x: a few training outputs that are far from each other, moved onto C(x); the cheapest of them.

    At most n_starts a row, none of them near another.
    """
    center = F.center
    xp = array_namespace(center)
    m = F.shape[0]
    few = known(C, "probes", lambda C: C.starts_[_spread_out((C.starts_ - C.location_) / C.spread_, PROBES)])
    cloud = like(few, center)
    k = cloud.shape[0]
    again = xp.asarray(np.repeat(np.arange(m), k), device=device_of(center))
    many, some = C.rows(again), take_rows(scale, again)
    points, _ = restore(many, xp.tile(cloud, (m, 1)), some, tol=1e-6, max_iter=12)
    cost = F.rows(again).value(points)
    cost = xp.where(many.contains(points, 1e-3) & xp.isfinite(cost), cost, xp.full_like(cost, xp.inf))
    cost, points = xp.reshape(cost, (m, k)), xp.reshape(points, (m, k, -1))
    apart = like(C.spread_, center) / 4
    everyone, rows, found = xp.arange(m, device=device_of(center)), [], []
    for _ in range(n_starts):
        best = xp.argmin(cost, axis=1)
        good = xp.isfinite(xp.min(cost, axis=1))
        point = take_rows(xp.reshape(points, (m * k, -1)), everyone * k + best)
        rows.append(everyone[good])
        found.append(point[good])
        near = xp.all(abs(points - point[:, None, :]) <= apart, axis=2)
        cost = xp.where(near, xp.full_like(cost, xp.inf), cost)
    return xp.concat(rows), xp.concat(found)


def more_starts(F: Any, C: Any, scale: Array) -> tuple[Array, Array]:
    """Starts for the rows that failed: the cheapest of a dense cloud of C, or of the training outputs."""
    center = F.center
    xp = array_namespace(center)
    cloud = C.starts_ if C.depends_on_x else known(C, "dense", lambda C: _cloud(C, DENSE if pooled(C) else LARGE).points)
    if not len(cloud):
        return xp.arange(F.shape[0], device=device_of(center)), center
    guesses = cheapest(F, like(cloud, center), min(MORE, len(cloud)))
    everyone = xp.arange(F.shape[0], device=device_of(center))
    return xp.concat([everyone] * len(guesses)), xp.concat(guesses)


def cheapest(F: Any, cloud: Array, k: int) -> list[Array]:
    """For every row the k cheapest points of the cloud."""
    xp = array_namespace(cloud)
    cost = F.costs(cloud)
    columns = xp.arange(cost.shape[1], device=device_of(cost))[None, :]
    found = []
    for _ in range(k):
        best = xp.argmin(cost, axis=1)
        found.append(take_rows(cloud, best))
        cost = xp.where(columns == best[:, None], xp.full_like(cost, xp.inf), cost)
    return found
