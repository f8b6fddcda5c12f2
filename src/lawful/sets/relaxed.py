"""Soft versions of a set: C_delta, everything within delta of C, and l_mu, a price on the distance from C."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from lawful._array import Array, array_namespace, like, take_rows
from lawful.sets.base import ROUNDING, ConstraintSet, fraction, tolerance
from lawful.sets.elementary import take_columns
from lawful.sets.restore import settle


class _Relaxed(ConstraintSet):
    """A set built around another one."""

    base: ConstraintSet
    relaxed = True

    def fit(
        self, Y: Array, X: Array | None = None, *, outputs: list[str] | None = None, inputs: list[str] | None = None
    ) -> Self:
        self._look(Y)
        self.__dict__.pop("metric_", None)  # of an earlier fit
        self._check()
        self.base_ = clone(self.base).fit(Y, X, outputs=outputs, inputs=inputs)
        return self

    def _check(self) -> None:
        raise NotImplementedError

    @property
    def depends_on_x(self) -> bool:  # type: ignore[override]
        return bool(getattr(self.base_, "depends_on_x", False))

    def in_metric(self, metric: np.ndarray | None) -> Self:
        self.metric_ = metric
        self.base_.in_metric(metric)
        return self

    @property
    def weighed(self) -> bool:  # type: ignore[override]
        return getattr(self, "norm", None) == "objective" or bool(self.base_.weighed)

    def law_residual(self, c: Array) -> Array:
        """Of the exact law, which the relaxation lets go."""
        return self.base_.law_residual(c)

    def around(self, base: ConstraintSet) -> Self:
        """This relaxation of a set that is fitted already, and bound to its inputs if it needs them: instead of `fit`."""
        self._check()
        self.base_ = base
        for known in ("n_tasks_", "version_", "location_", "spread_", "starts_"):
            setattr(self, known, getattr(base, known))
        return self

    def _around(self, base: ConstraintSet) -> Self:
        if base is self.base_:
            return self
        bound = copy.copy(self)
        bound.base_ = base
        return bound

    def at(self, X: Array) -> Self:
        return self._around(self.base_.at(X))

    def rows(self, idx: Array) -> Self:
        return self._around(self.base_.rows(idx))


class Inflated(_Relaxed):
    """C_delta = {c + r : c in C, |r| <= delta} (eq:ball), from C (delta = 0) to everything (delta = inf).

    Parameters
    ----------
    base : ConstraintSet
    delta : float, default 0.1
        Radius: in the units of the outputs, or, with norm="objective", in those of sqrt(F); with the default metric of
        `Square` these are leave-one-out errors, so that delta = 1 lets one output miss by its usual error.
    norm : {"euclidean", "objective"}, default "euclidean"
        "euclidean" is the paper's tube, decoded exactly also when the tasks have different weights. "objective" measures
        |r| in the row's own weights (the square root of the loss), where clipping the residual is exact and a whole path of
        delta costs one projection (`decoders.relaxation_path`).

    Examples
    --------
    >>> from lawful import Inflated, Sphere, project
    >>> project([[3.0, 4.0]], Inflated(Sphere(), delta=0.5))
    array([[0.9, 1.2]])
    """

    def __init__(self, base: ConstraintSet, delta: float = 0.1, norm: str = "euclidean") -> None:
        self.base = base
        self.delta = delta
        self.norm = norm

    def _check(self) -> None:
        if not self.delta >= 0:
            raise ValueError(f"Inflated needs delta >= 0, got {self.delta!r}; 0 is the exact constraint")
        if self.norm not in ("euclidean", "objective"):
            raise ValueError(f"Inflated: unknown norm {self.norm!r}; choose 'euclidean' or 'objective'")

    @property
    def unbounded(self) -> bool:  # type: ignore[override]
        return self.delta == np.inf or bool(self.base_.unbounded)

    def residual(self, c: Array) -> Array:
        """Distance beyond delta, in the units of delta.

        With norm="objective" it is measured in the output metric of the estimator, which is the row's own as long as confidence
        does not change with x; the decoder, which knows the row's weights, measures in those.
        """
        return self._beyond(c)[1]

    def relative(self, c: Array) -> Array:
        """The distance beyond delta, as a fraction of delta; points of the base set are inside."""
        xp = array_namespace(c)
        return xp.minimum(self._beyond(c)[0], self.base_.relative(c))

    def _beyond(self, c: Array) -> tuple[Array, Array]:
        if self.delta == np.inf:
            return everywhere(c), everywhere(c)
        metric = getattr(self, "metric_", None) if self.norm == "objective" else None
        xp = array_namespace(c)
        finite = xp.all(xp.isfinite(c), axis=1)
        c = xp.where(finite[:, None], c, xp.zeros_like(c))
        near = near_point(self.base_, c, metric)
        # A search that found no point of the base set has not found a distance to it either.
        found = self.base_.relative(near) <= tolerance(near)
        distance = length(c - near, metric)
        distance = xp.where(found, distance, xp.full_like(distance, xp.inf))
        return self.measure(xp.where(finite, distance, xp.full_like(distance, xp.inf)), length(c, metric))

    def measure(self, distance: Array, size: Array) -> tuple[Array, Array]:
        """`relative` and `residual` of points of length `size` that are so far from the base set; rounding is no violation."""
        xp = array_namespace(distance)
        size = self.delta + ROUNDING * size
        # Not a number is no distance: infinitely far.
        distance = xp.where(xp.isnan(distance), xp.full_like(distance, xp.inf), distance)
        beyond = xp.where(distance > self.delta, distance - self.delta, xp.zeros_like(distance))
        off = fraction(beyond, size)
        return xp.where(xp.isnan(off), xp.full_like(off, xp.inf), off), xp.where(
            off <= tolerance(off), xp.zeros_like(beyond), beyond
        )

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        if not np.isfinite(self.delta):
            raise ValueError("Inflated(delta=inf) is everything and cannot be sampled; give a finite delta")
        rng = check_random_state(random_state)
        c = self.base_.sample(n, rng)
        r = rng.standard_normal(c.shape)
        radius = self.delta * rng.uniform(size=(n, 1)) ** (1 / c.shape[1])
        return c + r / np.linalg.norm(r, axis=1, keepdims=True) * radius


class Penalized(_Relaxed):
    """The loss l_mu: every task's loss plus |z - Pi_C(z)|^2 / mu (eq:loss, arguments swapped as erratum E5 says).

    The decoder minimises sum_t a_t (z_t - w_t)^2 + (sum_t a_t) |z - Pi_C(z)|^2 / mu over all z. This is the scale of mu
    used everywhere: with equal weights the residual shrinks by mu / (T + mu) (erratum E3). With an output metric both terms
    are measured in it. mu = 0 is the exact constraint, mu = inf none at all. `residual` is the violation of the base set,
    which is what is being traded, so it need not be 0.

    >>> from lawful import Penalized, Sphere, project
    >>> project([[3.0, 4.0]], Penalized(Sphere(), mu=2.0))  # half of the way: mu / (T + mu) of the distance is left
    array([[1.8, 2.4]])
    """

    def __init__(self, base: ConstraintSet, mu: float = 1.0) -> None:
        self.base = base
        self.mu = mu

    def _check(self) -> None:
        if not self.mu >= 0:
            raise ValueError(f"Penalized needs mu >= 0, got {self.mu!r}; 0 is the exact constraint, inf none at all")

    def residual(self, c: Array) -> Array:
        return self.base_.residual(c)

    def relative(self, c: Array) -> Array:
        """Every output is allowed, at a price; with mu = 0 only those of the base set."""
        if self.mu == 0:
            return self.base_.relative(c)
        return everywhere(c)

    @property
    def unbounded(self) -> bool:  # type: ignore[override]
        return self.mu > 0 or bool(self.base_.unbounded)

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        return self.base_.sample(n, random_state)


def everywhere(c: Array) -> Array:
    """(m,) the violation of a law that allows every output: 0, or infinite where an output is not finite."""
    xp = array_namespace(c)
    return xp.where(xp.all(xp.isfinite(c), axis=1), xp.zeros_like(c[:, 0]), xp.full_like(c[:, 0], xp.inf))


def length(r: Array, metric: Any = None) -> Array:
    """(m,) |r|, Euclidean or in an output metric (T,) or (T, T)."""
    xp = array_namespace(r)
    if metric is None:
        return xp.sqrt(xp.sum(r**2, axis=1))
    M = like(metric, r)
    square = xp.sum(r * (r * M if M.ndim == 1 else r @ M), axis=1)
    return xp.sqrt(xp.where(square > 0, square, xp.zeros_like(square)))


def near_point(C: Any, c: Array, metric: Any = None) -> Array:
    """The point of C nearest to c, Euclidean or in an output metric; for sets known by functions a locally nearest one."""
    xp = array_namespace(c)
    diagonal = xp.ones_like(c) if metric is None else like(metric if np.ndim(metric) == 1 else np.diag(metric), c) + 0 * c
    full = metric is not None and np.ndim(metric) == 2
    if isinstance(C, Inflated):  # a tube around a tube
        near = near_point(C.base_, c, metric)
        away = length(c - near, metric)
        share = xp.where(away > C.delta, C.delta / xp.where(away > 0, away, xp.ones_like(away)), xp.ones_like(away))
        return near + share[:, None] * (c - near)
    if isinstance(C, Penalized) and C.mu > 0:
        return c
    if hasattr(C, "blocks_") and not full:
        parts = [near_point(p, take_columns(c, i), None if metric is None else np.asarray(metric)[i]) for p, i in C.blocks_]
        order = np.argsort([t for _, idx in C.blocks_ for t in idx])
        return take_columns(xp.concat(parts, axis=1), order)
    if hasattr(C, "is_union"):
        return _closest([near_point(member, c, metric) for member in C.members_], c, metric)
    if hasattr(C, "points_"):
        points = like(C.points_, c)
        M = np.eye(c.shape[1]) if metric is None else np.asarray(metric)
        root = like(np.sqrt(M) if M.ndim == 1 else np.linalg.cholesky(M), c)
        image, target = (points * root, c * root) if root.ndim == 1 else (points @ root, c @ root)
        apart = xp.sum(image**2, axis=1)[None, :] - 2 * (target @ xp.matrix_transpose(image))
        return take_rows(points, xp.argmin(apart, axis=1))
    if hasattr(C, "project") and not full:
        return C.project(diagonal * c, diagonal)
    if hasattr(C, "project_form"):
        return C.project_form(like(np.diag(metric) if np.ndim(metric) == 1 else metric, c) + 0 * c[:, :, None], c)
    candidates = []
    if hasattr(C, "nearest"):
        candidates.append(C.nearest(c))
    if hasattr(C, "equality") or hasattr(C, "inequality"):
        candidates.append(settle(C, c, 1 / xp.sqrt(diagonal)))
    if not candidates:
        raise TypeError(f"{type(C).__name__} offers no projection; Inflated needs one to measure the distance")
    return _closest(candidates, c, metric)


def _closest(candidates: list[Array], c: Array, metric: Any) -> Array:
    xp = array_namespace(c)
    best = candidates[0]
    for other in candidates[1:]:
        best = xp.where((length(c - other, metric) < length(c - best, metric))[:, None], other, best)
    return best
