"""F_x(c), the function of the candidate c that the decoder minimises, for a batch of m inputs.

    F_x(c) = sum_t sum_k s_tk(x) l_t(c_t, y_tk)          (eq:estimator-multitask, atoms y_tk, scores s_tk)

Its shapes:

* `Objective` (and `SmoothObjective`): any loss, through its table of scores.
* `Quadratic`: the square loss, diagonal metric (ex:ls-and-mtl): sum_t a_t c_t^2 - 2 b_t c_t.
* `QuadraticForm`: the square loss with a full output metric: (c - w)^T Q (c - w).

Every one offers `shape`, `doubtful`, `center`, `value`, `costs`, `tasks`, `rows`; separable ones add `table`, smooth
ones (`SmoothObjective` and the quadratic two) `gradient` and `curvature`, the quadratic two `hessian`, the output metric
`unit` that is already inside them and `mass` = sum_t a_t(x) before it was. `doubtful` marks the rows whose scores carry
no usable confidence (some a_t(x) <= 0).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from lawful._array import Array, array_namespace, device_of, take_rows
from lawful._small import dot, total

TINY = 1e-8  # a_t(x) is about 1 near the data; below this b_t(x)/a_t(x) is rounding noise


def positive_part_center(a: Array, b: Array) -> Array:
    """b/a where a > 0 and 0 elsewhere, without ever dividing by a non-positive number."""
    xp = array_namespace(a, b)
    safe = xp.where(a > 0, a, xp.ones_like(a))
    return xp.where(a > 0, b / safe, xp.zeros_like(b))


def _terms(a: Array, b: Array, c: Array) -> Array:
    """a c^2 - 2 b c, plus the constant b^2/a where a > 0."""
    xp = array_namespace(c)
    return xp.where(a > 0, a * (c - positive_part_center(a, b)) ** 2, a * c**2 - 2 * b * c)


class Quadratic:
    """sum_t a_t c_t^2 - 2 b_t c_t up to a constant of the row (`ex:ls-and-mtl`); any sign of a_t.

    The constant is chosen so that the value is the weighted squared distance to the unconstrained prediction
    w = b/a on the tasks with a_t > 0.
    """

    def __init__(self, a: Array, b: Array, doubtful: Array | None = None, unit: Array | None = None) -> None:
        xp = array_namespace(a, b)
        self.a, self.b = a, b
        self.shape: tuple[int, int] = a.shape
        self.doubtful = xp.any(a <= 0, axis=1) if doubtful is None else doubtful
        self.unit = xp.ones(a.shape[1], dtype=a.dtype, device=device_of(a)) if unit is None else unit

    @property
    def mass(self) -> Array:
        return array_namespace(self.a).sum(self.a / self.unit, axis=1)

    @cached_property
    def center(self) -> Array:
        """The unconstrained minimiser b/a where a > 0, and 0 where no minimiser exists."""
        return positive_part_center(self.a, self.b)

    @cached_property
    def _convex(self) -> bool:
        return bool(array_namespace(self.a).all(self.a > 0))

    def value(self, c: Array) -> Array:
        a, b = self.a, self.b
        if self._convex:
            return dot(a * (c - self.center), c - self.center)
        return total(_terms(a, b, c))

    def gradient(self, c: Array) -> Array:
        return 2 * (self.a * c - self.b)

    def curvature(self, c: Array) -> Array:
        return 2 * self.a

    def hessian(self, c: Array) -> Array:
        xp = array_namespace(c)
        return 2 * self.a[:, :, None] * xp.eye(self.shape[1], dtype=c.dtype, device=device_of(c))[None, :, :]

    def table(self, t: int, v: Array) -> Array:
        return _terms(self.a[:, t, None], self.b[:, t, None], v[None, :])

    def costs(self, points: Array) -> Array:
        xp = array_namespace(points)
        a, b = self.a, self.b
        constant = xp.sum(xp.where(a > 0, b * positive_part_center(a, b), xp.zeros_like(b)), axis=1)
        return a @ xp.matrix_transpose(points**2) - 2 * (b @ xp.matrix_transpose(points)) + constant[:, None]

    def tasks(self, idx: list[int]) -> Quadratic:
        xp = array_namespace(self.a)
        at = xp.asarray(idx, device=device_of(self.a))
        return Quadratic(xp.take(self.a, at, axis=1), xp.take(self.b, at, axis=1), self.doubtful, xp.take(self.unit, at))

    def rows(self, idx: Array) -> Quadratic:
        part = Quadratic(take_rows(self.a, idx), take_rows(self.b, idx), take_rows(self.doubtful, idx), self.unit)
        if "center" in self.__dict__:
            part.__dict__["center"] = take_rows(self.center, idx)
        if self.__dict__.get("_convex"):
            part.__dict__["_convex"] = True
        return part


class QuadraticForm:
    """(c - w)^T Q (c - w), Q (m, T, T) positive semidefinite: the square loss with a full output metric."""

    def __init__(
        self, Q: Array, w: Array, doubtful: Array | None = None, unit: Array | None = None, mass: Array | None = None
    ) -> None:
        xp = array_namespace(Q, w)
        self.Q, self.w = Q, w
        self.unit = xp.eye(w.shape[1], dtype=w.dtype, device=device_of(w)) if unit is None else unit
        self.mass = xp.full((w.shape[0],), float(w.shape[1]), dtype=w.dtype, device=device_of(w)) if mass is None else mass
        self.shape: tuple[int, int] = w.shape
        self.doubtful = xp.zeros(w.shape[0], dtype=xp.bool, device=device_of(w)) if doubtful is None else doubtful

    @property
    def center(self) -> Array:
        return self.w

    def _apply(self, r: Array) -> Array:
        return (self.Q @ r[:, :, None])[:, :, 0]

    def value(self, c: Array) -> Array:
        r = c - self.w
        return array_namespace(c).sum(r * self._apply(r), axis=1)

    def gradient(self, c: Array) -> Array:
        return 2 * self._apply(c - self.w)

    def curvature(self, c: Array) -> Array:
        """A diagonal bound: Gershgorin's, of the correlation matrix, so that it does not depend on units of the outputs."""
        xp = array_namespace(c)
        spread = xp.sqrt(xp.linalg.diagonal(self.Q))
        spread = xp.where(spread > 0, spread, xp.ones_like(spread))
        correlation = self.Q / (spread[:, :, None] * spread[:, None, :])
        return 2 * spread**2 * xp.sum(xp.abs(correlation), axis=2)

    def hessian(self, c: Array) -> Array:
        return 2 * self.Q

    def costs(self, points: Array) -> Array:
        xp = array_namespace(points)
        P = xp.matrix_transpose(points)  # (T, P)
        quadratic = xp.sum(P[None, :, :] * (self.Q @ P), axis=1)
        Qw = self._apply(self.w)
        return quadratic - 2 * (Qw @ P) + xp.sum(self.w * Qw, axis=1)[:, None]

    def couples(self, idx: list[int]) -> bool:
        """Whether the metric ties these tasks to others, so that they cannot be decoded alone."""
        xp = array_namespace(self.unit)
        others = [t for t in range(self.shape[1]) if t not in set(idx)]
        if not others:
            return False
        mine, theirs = xp.asarray(idx, device=device_of(self.unit)), xp.asarray(others, device=device_of(self.unit))
        of_metric = xp.take(xp.take(self.unit, mine, axis=0), theirs, axis=1)
        of_rows = xp.take(xp.take(self.Q, mine, axis=1), theirs, axis=2)
        return bool(xp.any(of_metric != 0)) or bool(xp.any(of_rows != 0))

    def tasks(self, idx: list[int]) -> QuadraticForm:
        """Only when the chosen tasks do not interact with the others (see `couples`)."""
        if self.couples(idx):
            raise TypeError("QuadraticForm: the output metric couples these tasks with others; use a diagonal metric")
        xp = array_namespace(self.Q)
        at = xp.asarray(idx, device=device_of(self.Q))
        square = xp.take(xp.take(self.Q, at, axis=1), at, axis=2)
        unit = xp.take(xp.take(self.unit, at, axis=0), at, axis=1)
        return QuadraticForm(square, xp.take(self.w, at, axis=1), self.doubtful, unit, self.mass)

    def rows(self, idx: Array) -> QuadraticForm:
        parts = (take_rows(self.Q, idx), take_rows(self.w, idx), take_rows(self.doubtful, idx))
        return QuadraticForm(*parts, self.unit, take_rows(self.mass, idx))


class Objective:
    """sum_t sum_k s_tk(x) l_t(c_t, y_tk): scores[t] (m, k_t), atoms[t] (k_t,), one loss per task."""

    def __init__(self, losses: list[Any], scores: list[Array], atoms: list[Array], doubtful: Array | None = None) -> None:
        self.losses, self.scores, self.atoms = losses, scores, atoms
        self.shape: tuple[int, int] = (scores[0].shape[0], len(scores))
        if doubtful is None:
            xp = array_namespace(scores[0])
            low = xp.stack([xp.sum(s, axis=1) <= TINY for s in scores], axis=1)
            doubtful = xp.any(low, axis=1)
        self.doubtful = doubtful

    @property
    def center(self) -> Array:
        """A start for local search: the score-weighted mean of the atoms."""
        xp = array_namespace(self.scores[0])
        a = xp.stack([xp.sum(s, axis=1) for s in self.scores], axis=1)
        b = xp.stack([s @ y for s, y in zip(self.scores, self.atoms)], axis=1)
        return positive_part_center(a, b)

    def _columns(self, c: Array, what: str) -> list[Array]:
        xp = array_namespace(c)
        return [
            xp.sum(s * getattr(loss, what)(c[:, t, None], y[None, :]), axis=1)
            for t, (loss, s, y) in enumerate(zip(self.losses, self.scores, self.atoms))
        ]

    def value(self, c: Array) -> Array:
        columns = self._columns(c, "__call__")
        return sum(columns[1:], start=columns[0])

    def table(self, t: int, v: Array) -> Array:
        """(m, len(v)): the cost of each value v for task t."""
        xp = array_namespace(v)
        return self.scores[t] @ xp.matrix_transpose(self.losses[t](v[:, None], self.atoms[t][None, :]))

    def costs(self, points: Array) -> Array:
        """(m, P): the cost of each candidate point."""
        columns = [self.table(t, points[:, t]) for t in range(self.shape[1])]
        return sum(columns[1:], start=columns[0])

    def tasks(self, idx: list[int]) -> Objective:
        losses, scores, atoms = ([xs[t] for t in idx] for xs in (self.losses, self.scores, self.atoms))
        return type(self)(losses, scores, atoms, self.doubtful)

    def rows(self, idx: Array) -> Objective:
        scores = [take_rows(s, idx) for s in self.scores]
        return type(self)(self.losses, scores, self.atoms, take_rows(self.doubtful, idx))


class SmoothObjective(Objective):
    """An `Objective` all of whose losses have a derivative and a quadratic majoriser."""

    def gradient(self, c: Array) -> Array:
        return array_namespace(c).stack(self._columns(c, "derivative"), axis=1)

    def curvature(self, c: Array) -> Array:
        """Diagonal of a quadratic that touches F at c and lies above it (majorise-minimise).

        Terms with a positive score use the loss's own majoriser; terms with a negative score are concave or flat
        beside it and are bounded by their tangent, which adds no curvature.
        """
        xp = array_namespace(c)
        columns = [
            xp.sum(xp.where(s > 0, s, xp.zeros_like(s)) * loss.curvature(c[:, t, None], y[None, :]), axis=1)
            for t, (loss, s, y) in enumerate(zip(self.losses, self.scores, self.atoms))
        ]
        return xp.stack(columns, axis=1)
