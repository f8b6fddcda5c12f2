"""Soft versions of a set: C_delta, everything within delta of C, and l_mu, a price on the distance from C."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from lawful._array import Array, array_namespace, device_of
from lawful.sets.base import ConstraintSet
from lawful.sets.restore import restore


class _Relaxed(ConstraintSet):
    """A set built around another one."""

    base: ConstraintSet

    def fit(
        self, Y: Array, X: Array | None = None, *, outputs: list[str] | None = None, inputs: list[str] | None = None
    ) -> Self:
        self.n_tasks_ = int(Y.shape[1])
        self._check()
        self.base_ = clone(self.base).fit(Y, X, outputs=outputs, inputs=inputs)
        return self

    def _check(self) -> None:
        raise NotImplementedError

    @property
    def depends_on_x(self) -> bool:
        return bool(getattr(self.base_, "depends_on_x", False))

    def around(self, base: ConstraintSet) -> Self:
        """This relaxation of a set that is fitted already, and bound to its inputs if it needs them: instead of `fit`."""
        self._check()
        self.n_tasks_, self.base_ = base.n_tasks_, base  # type: ignore[attr-defined]
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

    def residual(self, c: Array) -> Array:
        """Distance beyond delta. In the norm of the objective only the decoder knows it; here it is Euclidean."""
        xp = array_namespace(c)
        if self.delta == xp.inf:
            return xp.zeros_like(c[:, 0])
        beyond = distance(self.base_, c) - self.delta
        return xp.where(beyond > 1e-12 * (1 + self.delta), beyond, xp.zeros_like(beyond))

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
    """

    def __init__(self, base: ConstraintSet, mu: float = 1.0) -> None:
        self.base = base
        self.mu = mu

    def _check(self) -> None:
        if not self.mu >= 0:
            raise ValueError(f"Penalized needs mu >= 0, got {self.mu!r}; 0 is the exact constraint, inf none at all")

    def residual(self, c: Array) -> Array:
        return self.base_.residual(c)

    def contains(self, c: Array, tol: float = 1e-8) -> Array:
        """Every output is allowed, at a price; with mu = 0 only those of the base set."""
        xp = array_namespace(c)
        return xp.ones(c.shape[0], dtype=xp.bool, device=device_of(c)) if self.mu > 0 else self.base_.contains(c, tol)

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        return self.base_.sample(n, random_state)


def distance(C: Any, c: Array) -> Array:
    """(m,) Euclidean distance from c to C; for sets known by equations an upper bound (the end of a descent to C)."""
    xp = array_namespace(c)
    if isinstance(C, Inflated):  # a tube around a tube
        beyond = distance(C.base_, c) - C.delta
        return xp.where(beyond > 0, beyond, xp.zeros_like(beyond))
    if hasattr(C, "blocks_"):
        parts = [distance(part, xp.take(c, xp.asarray(idx, device=device_of(c)), axis=1)) ** 2 for part, idx in C.blocks_]
        return xp.sqrt(sum(parts[1:], start=parts[0]))
    if hasattr(C, "is_union"):
        return xp.min(xp.stack([distance(part, c) for part in C.members_]), axis=0)
    if hasattr(C, "points_"):
        return C.residual(c)
    if hasattr(C, "nearest"):
        near = C.nearest(c)
    elif hasattr(C, "project"):
        near = C.project(c, xp.ones_like(c))
    elif hasattr(C, "equality") or hasattr(C, "inequality"):
        near, _ = restore(C, c, xp.ones_like(c))
    else:
        raise TypeError(f"{type(C).__name__} offers no projection; Inflated needs one to measure the distance")
    return xp.sqrt(xp.sum((c - near) ** 2, axis=1))
