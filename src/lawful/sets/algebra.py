"""Sets made of sets: products over disjoint blocks of outputs, unions, intersections.

    Product        C = {c : c_B in C_B for each block B}        decoded block by block
    Union          C = C_1 u C_2 u ...                          decoded member by member, the best kept
    Intersection   C = C_1 n C_2 n ...                          decoded through stacked equations and inequalities

A composed set knows what all its parts know. `at` and `rows` return shallow copies; nothing is bound in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from lawful._array import Array, array_namespace, like, to_numpy
from lawful.sets.base import TOL, ConstraintSet
from lawful.sets.cloud import PointCloud
from lawful.sets.cones import Cone
from lawful.sets.elementary import Box, Reals, take_columns
from lawful.sets.names import names_of_block

# What a fitted set can do does not change, and is asked thousands of times: parts of parts would be asked each time.
_capabilities: WeakKeyDictionary[Any, dict[Any, bool]] = WeakKeyDictionary()


def _described(part: Any) -> bool:
    """Whether equations and inequalities say all there is to say about the set."""
    free = isinstance(part, Reals) or (isinstance(part, Box) and not hasattr(part, "inequality"))
    return hasattr(part, "equality") or hasattr(part, "inequality") or free


def _parts(composed: Any) -> list[Any]:
    if isinstance(composed, Product):
        pairs = getattr(composed, "blocks_", None) or composed.blocks
        return [part for part, _ in pairs]
    return getattr(composed, "members_", None) or list(composed.members)


def _by_equations(name: str, *kinds: str) -> Callable[[Any], bool]:
    """For stacked capabilities: parts of these kinds exist and all have it, and the other parts do not need it."""

    def check(composed: Any) -> bool:
        version = getattr(composed, "version_", None)
        if version is None or not (hasattr(composed, "blocks_") or hasattr(composed, "members_")):
            return look(composed)
        known = _capabilities.setdefault(version, {})
        key = (type(composed), name)
        if key not in known:
            known[key] = look(composed)
        return known[key]

    def look(composed: Any) -> bool:
        parts = _parts(composed)
        having = [p for p in parts if any(hasattr(p, kind) for kind in kinds)]
        return bool(having) and all(map(_described, parts)) and all(hasattr(p, name) for p in having)

    return check


def _by_all(name: str) -> Callable[[Any], bool]:
    return lambda composed: all(hasattr(part, name) for part in _parts(composed))


class _OfParts(ConstraintSet):
    @property
    def depends_on_x(self) -> bool:  # type: ignore[override]
        return any(getattr(part, "depends_on_x", False) for part in _parts(self))

    @property
    def unbounded(self) -> bool:  # type: ignore[override]
        return any(getattr(part, "unbounded", False) for part in _parts(self))

    @property
    def relaxed(self) -> bool:  # type: ignore[override]
        return any(getattr(part, "relaxed", False) for part in _parts(self))

    @property
    def weighed(self) -> bool:  # type: ignore[override]
        return any(getattr(part, "weighed", False) for part in _parts(self))

    def _views(self) -> list[tuple[Any, list[int]]]:
        """The parts, each with its columns."""
        raise NotImplementedError

    def in_metric(self, metric: np.ndarray | None) -> Self:
        for part, idx in self._views():
            part.in_metric(None if metric is None else metric[idx] if metric.ndim == 1 else metric[np.ix_(idx, idx)])
        return self


class _Stacked(_OfParts):
    """Equations and inequalities of Product and Intersection."""

    def _stack(self, name: str, c: Array) -> Array:
        views = [(part, idx) for part, idx in self._views() if hasattr(part, name)]
        found = [getattr(part, name)(take_columns(c, idx)) for part, idx in views]
        if found[0].ndim == 3:  # Jacobians: put each block's columns in their places
            found = [J @ self._embedding(idx, c) for J, (_, idx) in zip(found, views)]
        return array_namespace(c).concat(found, axis=1)

    def _embedding(self, idx: list[int], c: Array) -> Array:
        """(len(idx), T): the 0/1 matrix that puts a block's coordinates in their places."""
        return like(np.eye(self.n_tasks_)[idx], c)

    @available_if(_by_equations("equality", "equality"))
    def equality(self, c: Array) -> Array:
        return self._stack("equality", c)

    @available_if(_by_equations("equality_jacobian", "equality"))
    def equality_jacobian(self, c: Array) -> Array:
        return self._stack("equality_jacobian", c)

    @available_if(_by_equations("inequality", "inequality"))
    def inequality(self, c: Array) -> Array:
        return self._stack("inequality", c)

    @available_if(_by_equations("inequality_jacobian", "inequality"))
    def inequality_jacobian(self, c: Array) -> Array:
        return self._stack("inequality_jacobian", c)

    @available_if(_by_equations("curvature", "equality", "inequality"))
    def curvature(self, c: Array, nu: Array) -> Array:
        """sum_p nu_p times the Hessian of function p: all equalities first, then all inequalities."""
        xp = array_namespace(c)
        shares: list[list[Array]] = [[] for _ in self._views()]
        seen = 0
        for kind in ("equality", "inequality"):
            for share, (part, idx) in zip(shares, self._views()):
                if hasattr(part, kind):
                    width = getattr(part, kind)(take_columns(c, idx)).shape[1]
                    share.append(nu[:, seen : seen + width])
                    seen += width
        total = xp.zeros_like(c)[:, :, None] * xp.zeros_like(c)[:, None, :]
        for share, (part, idx) in zip(shares, self._views()):
            if share:
                E = self._embedding(idx, c)
                inner = part.curvature(take_columns(c, idx), xp.concat(share, axis=1))
                total = total + xp.matrix_transpose(E) @ (inner @ E)
        return total

    @property
    def polyhedral(self) -> bool:  # type: ignore[override]
        return all(part.polyhedral for part in _parts(self))

    @property
    def quadratic(self) -> bool:  # type: ignore[override]
        return all(part.quadratic for part in _parts(self))

    def _worst(self, measure: str, c: Array) -> Array:
        xp = array_namespace(c)
        worst = [getattr(part, measure)(take_columns(c, idx)) for part, idx in self._views()]
        return xp.max(xp.stack(worst, axis=1), axis=1)

    def residual(self, c: Array) -> Array:
        """The worst part's."""
        return self._worst("residual", c)

    def relative(self, c: Array) -> Array:
        """The worst part's, each on its own scale."""
        return self._worst("relative", c)

    def law_residual(self, c: Array) -> Array:
        return self._worst("law_residual", c)

    @available_if(_by_all("cones"))
    def cones(self) -> list[Cone]:
        return [cone.of_columns(idx, self.n_tasks_) for part, idx in self._views() for cone in part.cones()]


class Product(_Stacked):
    """{c : c_B in C_B for each block B}; outputs in no block are free.

    blocks: list of (set, outputs), outputs being column numbers or names given to `fit`.
    """

    blocks_: list[tuple[Any, list[int]]]

    def __init__(self, blocks: Sequence[tuple[ConstraintSet, Sequence[int | str]]]) -> None:
        self.blocks = blocks

    def fit(
        self, Y: Array, X: Array | None = None, *, outputs: list[str] | None = None, inputs: list[str] | None = None
    ) -> Self:
        self._look(Y)
        Y = to_numpy(Y)
        blocks = [(part, [self._number(i, outputs) for i in idx]) for part, idx in map(self._pair, self.blocks)]
        used = [i for _, idx in blocks for i in idx]
        if repeated := sorted({i for i in used if used.count(i) > 1}):
            raise ValueError(
                f"Product: outputs {repeated} are in more than one place; blocks must be disjoint (Intersection "
                f"puts two laws on the same outputs)"
            )
        if any(not idx for _, idx in blocks):
            raise ValueError("Product: a block has no outputs; list its column numbers or names")
        if free := [i for i in range(self.n_tasks_) if i not in set(used)]:
            blocks.append((Reals(), free))
        self.blocks_ = [
            (clone(part).fit(Y[:, idx], X, outputs=names_of_block(outputs, idx), inputs=inputs), idx) for part, idx in blocks
        ]
        return self

    @staticmethod
    def _pair(block: Any) -> tuple[Any, Any]:
        pair = isinstance(block, tuple | list) and len(block) == 2 and isinstance(block[0], ConstraintSet)
        if pair and isinstance(block[1], Iterable) and not isinstance(block[1], str):
            return block[0], block[1]
        raise ValueError(
            f"Product takes pairs of a set and its outputs, and got {block!r}; (Sphere(), [0, 1, 2]) or "
            "(Simplex(), range(3, 6)) would do"
        )

    def _number(self, output: int | str, outputs: list[str] | None) -> int:
        if isinstance(output, str):
            if output not in (outputs or []):
                known = f"the outputs are {list(outputs)}" if outputs else "fit got no names; use column numbers"
                raise ValueError(f"Product: no output is called {output!r}; {known}")
            return list(outputs or []).index(output)
        if not 0 <= int(output) < self.n_tasks_:
            raise ValueError(f"Product: there is no output {output}, Y has {self.n_tasks_} columns; count from 0")
        return int(output)

    def _views(self) -> list[tuple[Any, list[int]]]:
        return self.blocks_

    def _bind(self, how: str, arg: Array) -> Self:
        bound = [(getattr(part, how)(arg), idx) for part, idx in self.blocks_]
        if all(new is part for (new, _), (part, _) in zip(bound, self.blocks_)):
            return self
        other = copy(self)
        other.blocks_ = bound
        return other

    def at(self, X: Array) -> Self:
        return self._bind("at", X)

    def rows(self, idx: Array) -> Self:
        return self._bind("rows", idx)

    @property
    def convex(self) -> bool:  # type: ignore[override]
        return all(part.convex for part in _parts(self))

    def _blockwise(self, name: str, *arrays: Array) -> Array:
        xp = array_namespace(*arrays)
        done = [getattr(part, name)(*(take_columns(x, idx) for x in arrays)) for part, idx in self.blocks_]
        order = np.argsort([i for _, idx in self.blocks_ for i in idx])
        return take_columns(xp.concat(done, axis=1), order)

    @available_if(_by_all("project"))
    def project(self, b: Array, a: Array) -> Array:
        """The quadratic separates over blocks, and so does its minimum."""
        return self._blockwise("project", b, a)

    @available_if(_by_all("nearest"))
    def nearest(self, c: Array) -> Array:
        return self._blockwise("nearest", c)

    @available_if(_by_all("tangent"))
    def tangent(self, c: Array, v: Array) -> Array:
        return self._blockwise("tangent", c, v)

    @available_if(_by_all("retract"))
    def retract(self, c: Array, v: Array) -> Array:
        return self._blockwise("retract", c, v)

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        rng = check_random_state(random_state)
        out = np.empty((n, self.n_tasks_))
        for part, idx in self.blocks_:
            out[:, idx] = part.sample(n, rng)
        return out


class _Members(_OfParts):
    """Fitting and binding of sets that all speak about the same outputs."""

    members_: list[Any]

    def __init__(self, members: Sequence[ConstraintSet]) -> None:
        self.members = members

    def fit(
        self, Y: Array, X: Array | None = None, *, outputs: list[str] | None = None, inputs: list[str] | None = None
    ) -> Self:
        if not len(self.members):
            raise ValueError(f"{type(self).__name__} has no members; give a list of sets")
        self._look(Y)
        self.members_ = [clone(member).fit(Y, X, outputs=outputs, inputs=inputs) for member in self.members]
        self._learn(Y)
        return self

    def _views(self) -> list[tuple[Any, list[int]]]:
        everything = list(range(self.n_tasks_))
        return [(member, everything) for member in self.members_]

    def _bind(self, how: str, arg: Array) -> Self:
        bound = [getattr(member, how)(arg) for member in self.members_]
        if all(new is member for new, member in zip(bound, self.members_)):
            return self
        other = copy(self)
        other.members_ = bound
        return other

    def at(self, X: Array) -> Self:
        return self._bind("at", X)

    def rows(self, idx: Array) -> Self:
        return self._bind("rows", idx)


class Union(_Members):
    """{c : c in at least one member}."""

    is_union = True

    def _least(self, measure: str, c: Array) -> Array:
        xp = array_namespace(c)
        return xp.min(xp.stack([getattr(member, measure)(c) for member in self.members_], axis=1), axis=1)

    def residual(self, c: Array) -> Array:
        """That of the member which c violates least."""
        return self._least("residual", c)

    def relative(self, c: Array) -> Array:
        return self._least("relative", c)

    def law_residual(self, c: Array) -> Array:
        return self._least("law_residual", c)

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Each point from a member drawn at random."""
        rng = check_random_state(random_state)
        which = rng.randint(len(self.members_), size=n)
        out = np.empty((n, self.n_tasks_))
        for k, member in enumerate(self.members_):
            out[which == k] = member.sample(int(np.sum(which == k)), rng)
        return out


class Intersection(_Stacked, _Members):
    """{c : c in every member}. With a finite member it is finite: the points of it that the others admit."""

    def _learn(self, Y: Array) -> None:
        for stale in ("cloud_", "points_"):  # of an earlier fit
            self.__dict__.pop(stale, None)
        finite = next((member for member in self.members_ if hasattr(member, "points_")), None)
        if finite is None:
            return
        if self.depends_on_x:
            raise TypeError(
                "Intersection: a finite member and one that depends on x leave a different finite set for every "
                "input, which it cannot list; intersect sets given by equations instead"
            )
        inside = np.ones(len(finite.points_), dtype=bool)
        for member in self.members_:
            inside &= np.asarray(member.contains(finite.points_))
        if not inside.any():
            raise ValueError(
                f"Intersection is an empty set: no point of {type(finite).__name__} satisfies the other members "
                f"to {TOL}; relax them or give points that do"
            )
        self.cloud_ = PointCloud(finite.points_[inside]).fit(Y)
        self.points_ = self.cloud_.points_

    @property
    def convex(self) -> bool:  # type: ignore[override]
        return all(member.convex for member in _parts(self))

    @property
    def unbounded(self) -> bool:  # type: ignore[override]
        return all(getattr(member, "unbounded", False) for member in _parts(self))

    def _worst(self, measure: str, c: Array) -> Array:
        """The worst member's; that of the finite set when there is one."""
        return getattr(self.cloud_, measure)(c) if hasattr(self, "cloud_") else super()._worst(measure, c)

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        return self.cloud_.sample(n, random_state) if hasattr(self, "cloud_") else super().sample(n, random_state)
