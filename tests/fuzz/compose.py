"""Laws made of laws: products, unions, intersections, tubes and penalties."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .laws import WITHIN, Evidence, Law, norm
from .source import New


@dataclass
class ProductOf(Law):
    blocks: list[tuple[Law, list[int]]] = field(default_factory=list)

    @property
    def depth(self):
        return max(part.depth for part, _ in self.blocks)

    def peeled(self, k):
        written = [idx for _, idx in self.new.args[0]]
        return New("lawful.Product", [(part.peeled(k), idx) for (part, _), idx in zip(self.blocks, written)])

    def off(self, c, X=None, evidence=None):
        c = np.asarray(c, float)
        parts = [part.off(c[:, idx], X, evidence and evidence.columns(idx)) for part, idx in self.blocks]
        return np.where(np.isfinite(c).all(axis=1), np.max(parts, axis=0), np.inf)

    def snap(self, z, X, rng):
        z = np.array(z, float)
        for part, idx in self.blocks:
            z[:, idx] = part.snap(z[:, idx], X, rng)
        return z


@dataclass
class UnionOf(Law):
    members: list[Law] = field(default_factory=list)

    @property
    def depth(self):
        return max(m.depth for m in self.members)

    def peeled(self, k):
        return New("lawful.Union", [m.peeled(k) for m in self.members])

    def off(self, c, X=None, evidence=None):
        return np.min([m.off(c, X, evidence) for m in self.members], axis=0)

    def snap(self, z, X, rng):
        return self.members[rng.integers(len(self.members))].snap(z, X, rng)


@dataclass
class IntersectionOf(Law):
    members: list[Law] = field(default_factory=list)

    @property
    def depth(self):
        return max(m.depth for m in self.members)

    def peeled(self, k):
        return New("lawful.Intersection", [m.peeled(k) for m in self.members])

    def off(self, c, X=None, evidence=None):
        return np.max([m.off(c, X, evidence) for m in self.members], axis=0)

    def snap(self, z, X, rng):
        for _ in range(8):
            for member in self.members:
                z = member.snap(z, X, rng)
        return z


@dataclass
class TubeOf(Law):
    base: Law | None = None
    delta: float = 0.0
    norm: str = "euclidean"

    @property
    def depth(self):
        return 1 + self.base.depth

    def peeled(self, k):
        return self.new if k == 0 else self.base.peeled(k - 1)

    def off(self, c, X=None, evidence=None):
        """How far beyond delta the nearest known point of the base is; known points are checked before they count."""
        c = np.asarray(c, float)
        inside = self.base.off(c, X, evidence)
        if self.delta == np.inf:
            return np.where(np.isfinite(c).all(axis=1), 0.0, np.inf)
        objective = self.norm == "objective"
        if self.delta == 0:
            return inside
        if objective and (evidence is None or evidence.weights is None):
            return np.where(np.isfinite(c).all(axis=1), 0.0, np.inf)
        near = np.where(inside <= WITHIN, 0.0, np.inf)
        sane = np.where(np.isfinite(c), c, 0.0)
        known = [self.base.snap(sane, X, np.random.default_rng(0)), *(evidence.points if evidence else [])]
        for point in known:
            held = self.base.off(point, X, evidence) <= WITHIN / 10
            near = np.minimum(near, np.where(held, self._length(c - point, evidence), np.inf))
        if not objective:
            near = np.where(self._crossed(sane, X), np.minimum(near, self.delta), near)
        scale = np.max(np.abs(self.base.middle) + self.base.size)
        spare = 0.01 * scale if not objective else 0.01 * self._length(np.full_like(c, scale), evidence)
        rounding = self._length(1e-15 * np.abs(sane), evidence)  # the point of the base beside c may lie between two numbers
        over = np.maximum(near - self.delta - rounding, 0) / (self.delta + spare)
        return np.where(np.isfinite(c).all(axis=1), over, np.inf)

    def _crossed(self, c, X):
        """(m,) whether one equation changes its sign when a single output moves by delta: a point of it is that near."""
        relations = getattr(self.base, "relations", [])
        if len(relations) != 1 or relations[0].inequality:
            return np.zeros(len(c), bool)
        crossed = np.zeros(len(c), bool)
        for t in range(c.shape[1]):
            step = self.delta * (np.arange(c.shape[1]) == t)
            ends = [
                np.asarray(relations[0].at(c + side * step, X).v, float) for side in (-1 - WITHIN, -0.5, 0, 0.5, 1 + WITHIN)
            ]
            crossed |= np.isfinite(ends).all(axis=0) & (np.min(ends, axis=0) <= 0) & (np.max(ends, axis=0) >= 0)
        return crossed

    def _length(self, r, evidence):
        if self.norm != "objective":
            return norm(r)
        w = evidence.weights
        with np.errstate(all="ignore"):
            square = np.sum(w * r**2, axis=1) if w.ndim == 2 else np.einsum("mt,mts,ms->m", r, w, r)
            return np.sqrt(np.maximum(square, 0))

    def snap(self, z, X, rng):
        if self.delta == np.inf:
            return z
        near = self.base.snap(z, X, rng)
        length = norm(z - near)[:, None]
        if self.norm == "objective":
            return near
        return near + (z - near) * np.minimum(1, self.delta / np.where(length > 0, length, 1))


@dataclass
class PenaltyOf(Law):
    base: Law | None = None
    mu: float = 1.0

    @property
    def depth(self):
        return 1 + self.base.depth

    def peeled(self, k):
        return self.new if k == 0 else self.base.peeled(k - 1)

    def off(self, c, X=None, evidence=None):
        if self.mu == 0:
            return self.base.off(c, X, evidence)
        return np.where(np.isfinite(c).all(axis=1), 0.0, np.inf)

    def snap(self, z, X, rng):
        return self.base.snap(z, X, rng)


def _of(parts: list[Law]) -> dict[str, bool]:
    return {flag: any(getattr(p, flag) for p in parts) for flag in ("uses_x", "tube", "free", "ambiguous")}


def product(blocks: list[tuple[Law, list[int]]], T: int, written: list[list[int | str]]) -> ProductOf:
    """`written`: the outputs of each block as the user lists them, numbers or names."""
    middle, size = np.zeros(T), np.ones(T)
    for part, idx in blocks:
        middle[idx], size[idx] = part.middle, part.size
    new = New("lawful.Product", [(part.new, w) for (part, _), w in zip(blocks, written)])
    name = f"Product[{', '.join(sorted({p.name for p, _ in blocks}))}]"
    finite = any(p.finite for p, _ in blocks)
    return ProductOf(new, T, middle, size, name, finite=finite, blocks=blocks, **_of([p for p, _ in blocks]))


def union(members: list[Law]) -> UnionOf:
    new = New("lawful.Union", [m.new for m in members])
    first = members[0]
    name = f"Union[{', '.join(sorted({m.name for m in members}))}]"
    return UnionOf(new, first.T, first.middle, first.size, name, members=members, **_of(members))


def intersection(members: list[Law]) -> IntersectionOf:
    new = New("lawful.Intersection", [m.new for m in members])
    first = members[0]
    name = f"Intersection[{', '.join(sorted({m.name for m in members}))}]"
    finite = any(m.finite for m in members)
    return IntersectionOf(new, first.T, first.middle, first.size, name, finite=finite, members=members, **_of(members))


def inflated(base: Law, delta: float, kind: str) -> TubeOf:
    new = New("lawful.Inflated", base.new, delta, norm=kind)
    flags = {**_of([base]), "tube": True}
    return TubeOf(new, base.T, base.middle, base.size, f"Inflated[{base.name}]", base=base, delta=delta, norm=kind, **flags)


def penalized(base: Law, mu: float) -> PenaltyOf:
    flags = {**_of([base]), "free": True}
    return PenaltyOf(
        New("lawful.Penalized", base.new, mu),
        base.T,
        base.middle,
        base.size,
        f"Penalized[{base.name}]",
        base=base,
        mu=mu,
        **flags,
    )


__all__ = ["Evidence", "inflated", "intersection", "penalized", "product", "union"]
