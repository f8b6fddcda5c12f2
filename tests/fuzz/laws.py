"""Every law once more, in plain numpy: how far off a point is, and a way to points of the law.

`off(c, X)` is the violation relative to the law's own scale: the radius of a sphere, the terms of an equation, the entries of a
matrix. A row that the library calls ok must be off by at most 1e-6. `snap(z, X, rng)` moves points onto the law, or near it, by
whatever is simplest; it serves to make points on the law and to look for better answers, and nothing is concluded from its
failing. Rounding of c itself (a few eps of its size and of the law's constants) is always forgiven.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .expressions import Relation
from .source import New

EPS = np.finfo(float).eps
ROUNDING = 256 * EPS  # of the sizes involved: what storing a point in float64 may cost
WITHIN = 1e-6  # the promise, relative to the law's scale
Off = Callable[[np.ndarray], np.ndarray]
Snap = Callable[[np.ndarray], np.ndarray]


@dataclass
class Evidence:
    """What helps to judge a tube: points of the base set (to be checked), and the objective's weights (m, T) or (m, T, T)."""

    points: list[np.ndarray] = field(default_factory=list)
    weights: np.ndarray | None = None

    def columns(self, idx: list[int]) -> Evidence:
        weights = self.weights
        if weights is not None:
            weights = weights[:, idx] if weights.ndim == 2 else weights[:, idx][:, :, idx]
        return Evidence([p[:, idx] for p in self.points], weights)


@dataclass
class Law:
    """A law over T outputs: `new` makes the library's object, `peeled(k)` the same without its k outermost relaxations."""

    new: New
    T: int
    middle: np.ndarray
    size: np.ndarray
    name: str = ""

    uses_x: bool = False
    tube: bool = False  # has an Inflated part somewhere
    free: bool = False  # a Penalized part somewhere: not every output is bound
    finite: bool = False
    ambiguous: bool = False  # a name in it could mean two variables: an error is the right answer

    @property
    def depth(self) -> int:
        """How many relaxations lie inside each other."""
        return 0

    def peeled(self, k: int) -> New:
        return self.new

    def off(self, c: np.ndarray, X: np.ndarray | None = None, evidence: Evidence | None = None) -> np.ndarray:
        raise NotImplementedError

    def snap(self, z: np.ndarray, X: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
        raise NotImplementedError


def beyond(amount: np.ndarray, scale: Any, rounding: Any) -> np.ndarray:
    """max(amount - rounding, 0) / scale; infinite where it is not a number."""
    with np.errstate(all="ignore"):
        excess = np.maximum(amount - rounding, 0)
        ratio = np.where(excess > 0, excess / scale, 0.0)
    return np.where(np.isnan(amount) | np.isnan(ratio), np.inf, ratio)


@dataclass
class Named(Law):
    """A set with a formula of its own."""

    rule: Off = lambda c: np.zeros(len(c))
    way: Snap = lambda z: z

    def off(self, c, X=None, evidence=None):
        return self.rule(np.asarray(c, float))

    def snap(self, z, X, rng):
        with np.errstate(all="ignore"):
            return self.way(z)


def norm(v: np.ndarray) -> np.ndarray:
    """Euclidean lengths of rows, safe from over- and underflow."""
    top = np.max(np.abs(v), axis=1, initial=0.0)
    safe = np.where((top > 0) & np.isfinite(top), top, 1.0)
    return safe * np.sqrt(np.sum((v / safe[:, None]) ** 2, axis=1))


def round_set(kind: str, axes: Any, center: Any, T: int, solid: bool = False) -> Named:
    """Sphere, Ball, Ellipsoid: | |u| - 1 | with u = (c - center) / axes, relative to 1."""
    ax, mid = np.broadcast_to(np.asarray(axes, float), T), np.broadcast_to(np.asarray(center, float), T)
    solid = solid or kind == "Ball"
    if kind == "Ellipsoid":
        new = New("lawful.Ellipsoid", axes, center=center, solid=solid)
    else:
        new = New(f"lawful.{kind}", axes, center=center)

    def rule(c):
        length = norm((c - mid) / ax)
        amount = np.maximum(length - 1, 0) if solid else np.abs(length - 1)
        return beyond(amount, 1.0, ROUNDING * np.max((np.abs(c) + np.abs(mid)) / ax, axis=1))

    def way(z):
        u = (z - mid) / ax
        length = norm(u)[:, None]
        u = np.where(length > 0, u / np.where(length > 0, length, 1), np.eye(T)[0])
        return mid + ax * (u * np.minimum(length, 1) if solid else u)

    return Named(new, T, mid.copy(), ax.copy(), kind, rule=rule, way=way)


def box(lower: Any, upper: Any, T: int) -> Named:
    low, high = (np.broadcast_to(np.asarray(v, float), T) for v in (lower, upper))
    ends = np.where(np.isfinite(low), np.abs(low), 0) + np.where(np.isfinite(high), np.abs(high), 0)
    both = np.isfinite(low) & np.isfinite(high)
    middle = np.where(
        both, low / 2 + np.where(both, high, 0) / 2, np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0))
    )
    size = np.where(both & (high > low), high - low, np.where(ends > 0, ends, 1.0))

    def rule(c):
        scale = np.maximum(ends, np.abs(c))
        return np.max(
            [beyond(np.maximum(low - c, c - high)[:, t], scale[:, t] + (scale[:, t] == 0), 0.0) for t in range(T)], axis=0
        )

    return Named(New("lawful.Box", lower, upper), T, middle, size, "Box", rule=rule, way=lambda z: np.clip(z, low, high))


def affine(A: np.ndarray, b: np.ndarray, T: int) -> Named:
    pinv = np.linalg.pinv(A)
    origin = pinv @ b

    def rule(c):
        wrong = np.abs(c.astype(np.longdouble) @ A.T.astype(np.longdouble) - b)
        scale = np.abs(c) @ np.abs(A).T + np.abs(b)
        return np.max(beyond(wrong, np.where(scale > 0, scale, 1.0), 0.0), axis=1).astype(float)

    size = np.full(T, max(float(np.abs(origin).max()), 1.0 if not origin.any() else 0.0))
    return Named(New("lawful.Affine", A, b), T, origin, size, "Affine", rule=rule, way=lambda z: z - (z @ A.T - b) @ pinv.T)


def simplex(total: float, T: int) -> Named:
    def rule(c):
        negative = beyond(np.max(-c, axis=1), total, 0.0)
        return np.maximum(negative, beyond(np.abs(c.sum(axis=1) - total), total, ROUNDING * np.abs(c).sum(axis=1)))

    def way(z):
        top = -np.sort(-z / total, axis=1)
        excess = (np.cumsum(top, axis=1) - 1) / np.arange(1, T + 1)
        last = np.sum(top > excess, axis=1) - 1
        return total * np.maximum(z / total - excess[np.arange(len(z)), np.maximum(last, 0)][:, None], 0)

    return Named(New("lawful.Simplex", total), T, np.full(T, total / T), np.full(T, total), "Simplex", rule=rule, way=way)


def frames(n: int, p: int, rotations: bool) -> Named:
    def rule(c):
        R = c.reshape(-1, n, p)
        with np.errstate(all="ignore"):
            wrong = np.abs(R.transpose(0, 2, 1) @ R - np.eye(p)).max(axis=(1, 2))
        wrong = np.where(np.isnan(wrong), np.inf, wrong)
        sane = np.where(np.isfinite(R), R, 0.0)
        return np.where(np.linalg.det(sane) > 0, wrong, np.inf) if rotations else wrong

    def way(z):
        size = np.abs(z).max(axis=1, keepdims=True)
        U, _, V = np.linalg.svd((z / np.where(size > 0, size, 1)).reshape(-1, n, p), full_matrices=False)
        if rotations:
            U[:, :, -1] *= np.sign(np.linalg.det(U @ V))[:, None]
        return (U @ V).reshape(len(z), n * p)

    new = New("lawful.Rotations", n) if rotations else New("lawful.Stiefel", n, p)
    return Named(new, n * p, np.zeros(n * p), np.ones(n * p), "Rotations" if rotations else "Stiefel", rule=rule, way=way)


def semidefinite(n: int, packed: bool, floor: float) -> Named:
    i, j = np.triu_indices(n)

    def matrix(c):
        if not packed:
            return c.reshape(-1, n, n)
        M = np.zeros((len(c), n, n))
        M[:, i, j] = c
        M[:, j, i] = c
        return M

    def rule(c):
        M = matrix(c)
        sane = np.where(np.isfinite(M), M, 0.0)
        size = np.abs(sane).max(axis=(1, 2)) + abs(floor)
        size = np.where(size > 0, size, 1.0)
        skew = np.abs(sane - sane.transpose(0, 2, 1)).max(axis=(1, 2))
        low = floor - np.linalg.eigvalsh((sane + sane.transpose(0, 2, 1)) / 2)[:, 0]
        off = np.maximum(skew, np.maximum(low, 0)) / size
        return np.where(np.isfinite(c).all(axis=1), off, np.inf)

    def way(z):
        M = matrix(z)
        values, V = np.linalg.eigh((M + M.transpose(0, 2, 1)) / 2)
        S = (V * np.maximum(values, floor)[:, None, :]) @ V.transpose(0, 2, 1)
        S = (S + S.transpose(0, 2, 1)) / 2
        return S[:, i, j] if packed else S.reshape(len(z), n * n)

    T = n * (n + 1) // 2 if packed else n * n
    size = np.full(T, abs(floor) if floor else 1.0)
    new = New("lawful.PositiveSemidefinite", n, packed=packed, floor=floor)
    return Named(new, T, np.zeros(T), size, "PositiveSemidefinite", rule=rule, way=way)


def cloud(points: np.ndarray) -> Named:
    T = points.shape[1]

    def rule(c):
        apart = np.abs(c[:, None, :] - points[None])
        scale = np.abs(points)[None] + EPS * np.abs(points).max()
        scale = np.where(scale > 0, scale, 1.0)
        return np.where(np.isfinite(c).all(axis=1), (apart / scale).max(axis=2).min(axis=1), np.inf)

    def way(z):
        scale = np.abs(points).max() or 1.0
        return points[(((z[:, None, :] - points[None]) / scale) ** 2).sum(axis=2).argmin(axis=1)]

    size = np.maximum(points.std(axis=0), np.abs(points).max(axis=0) * 1e-3)
    size = np.where(size > 0, size, 1.0)
    return Named(New("lawful.PointCloud", points), T, points.mean(axis=0), size, "PointCloud", finite=True, rule=rule, way=way)


def rankings(items: int, ties: bool) -> Named:
    p, q = np.triu_indices(items, 1)

    def cyclic(row):
        """Take away the items that nobody precedes until none is left; a rest is a cycle."""
        arcs = [(a, b) if v > 0 else (b, a) for a, b, v in zip(p, q, row) if v]
        left = set(range(items))
        while free := left - {b for a, b in arcs if a in left}:
            left -= free
        return bool(left)

    def rule(c):
        bad = ~np.isin(c, (-1, 0, 1) if ties else (-1, 1)).all(axis=1)
        return np.where(bad | [cyclic(row) for row in c], np.inf, 0.0)

    def way(z):
        score = np.zeros((len(z), items))
        for k, (a, b) in enumerate(zip(p, q)):
            score[:, a] += z[:, k]
            score[:, b] -= z[:, k]
        return np.where(score[:, p] >= score[:, q], 1.0, -1.0)

    T = len(p)
    return Named(New("lawful.Rankings", ties=ties), T, np.zeros(T), np.ones(T), "Rankings", finite=True, rule=rule, way=way)


def reals(T: int) -> Named:
    rule = lambda c: np.where(np.isfinite(c).all(axis=1), 0.0, np.inf)  # noqa: E731
    return Named(New("lawful.Reals"), T, np.zeros(T), np.ones(T), "Reals", rule=rule)


@dataclass
class Formulas(Law):
    """Equations: relations over the outputs in their own columns, and the inputs."""

    relations: list[Relation] = field(default_factory=list)
    unit: np.ndarray = field(default_factory=lambda: np.ones(1))

    def off(self, c, X=None, evidence=None):
        c = np.asarray(c, float)
        worst = np.max([r.off(c, X) for r in self.relations], axis=0)
        return np.where(np.isfinite(c).all(axis=1), worst, np.inf)

    def snap(self, z, X, rng):
        """Gauss-Newton on the violated relations, in the units of the outputs."""
        c = np.array(z, float)
        for _ in range(25):
            found = [r.at(c, X, np.float64) for r in self.relations]
            v = np.stack([np.where((f.v > 0) | (not r.inequality), f.v, 0) for f, r in zip(found, self.relations)], axis=1)
            J = np.stack([f.g for f in found], axis=1) * self.unit
            J = np.where(v[:, :, None] != 0, J, 0)
            with np.errstate(all="ignore"):
                length = np.sqrt((J**2).sum(axis=2))
                length = np.where((length > 0) & np.isfinite(length), length, 1)
                J, v = J / length[:, :, None], v / length
                J, v = np.nan_to_num(J, posinf=0, neginf=0), np.nan_to_num(v, posinf=0, neginf=0)
                S = J @ J.transpose(0, 2, 1) + 1e-12 * np.eye(J.shape[1])
                d = (np.linalg.solve(S, v[:, :, None])[:, :, 0][:, None, :] @ J)[:, 0] * self.unit
            step = np.abs(d / self.unit).max(axis=1, keepdims=True)
            c = c - np.where(np.isfinite(d), d, 0) * np.minimum(1, 10 / np.where(step > 0, step, 1))
        return c
