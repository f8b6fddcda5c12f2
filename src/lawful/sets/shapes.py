r"""Shapes across ordered outputs: rising, falling, convex, concave.

    Monotone       c_{t+1} - c_t >= gap                                    quantiles, survival curves, dose and response
    ConvexShape    c_t <= its chord, (h_t c_{t-1} + h_{t-1} c_{t+1}) / (h_{t-1} + h_t),  h_t = x_{t+1} - x_t     cost curves

The nearest monotone outputs in a metric of weights are an isotonic regression of c_t - gap t: neighbours in the wrong order are
pooled, in one pass over each row; with losses that have corners, such as `Pinball`, `decoders.chain` finds the best chain. All
else, a full metric among it, is a polyhedron like any other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lawful._array import Array, array_namespace, like, to_numpy
from lawful.sets.base import check_width
from lawful.sets.polyhedra import Polyhedron


class Monotone(Polyhedron):
    """Outputs in order: each at least `gap` above the one before it or, where `increasing` is False, below it.

    Quantiles of one variable do not cross in it: with `Mixed([Pinball(0.1), ..., Pinball(0.9)])` they are learned together.
    Quantiles that were found one by one and cross are better sorted than projected, which pools them.

    >>> from lawful import Monotone, project
    >>> project([[1.0, 3.0, 2.0]], Monotone())
    array([[1. , 2.5, 2.5]])
    >>> project([[1.0, 3.0, 2.0]], Monotone(), weights=[1.0, 3.0, 1.0])
    array([[1.  , 2.75, 2.75]])
    """

    unbounded = True

    def __init__(self, increasing: bool = True, gap: float = 0.0) -> None:
        self.increasing, self.gap = increasing, gap

    def _learn(self, Y: Array) -> None:
        if not (np.isfinite(self.gap) and self.gap >= 0):
            raise ValueError(
                f"Monotone: gap must be finite and not negative, got {self.gap!r}; increasing=False turns the order"
            )
        T = self.n_tasks_
        self.A_, self.b_ = np.zeros((0, T)), np.zeros(0)
        self.G_ = self._sign * (np.eye(T)[:-1] - np.eye(T)[1:])
        self.h_ = np.full(T - 1, -float(self.gap))

    @property
    def _sign(self) -> float:
        return 1.0 if self.increasing else -1.0

    def chain(self) -> tuple[float, np.ndarray]:
        """sign and steps (T,): the set is where sign (c - steps) rises."""
        return self._sign, self._sign * float(self.gap) * np.arange(self.n_tasks_)

    def project_convex(self, b: Array, a: Array) -> Array:
        """argmin of sum_t a_t c_t^2 - 2 b_t c_t for positive a."""
        from lawful.sets._isotonic import pooled  # compiled

        w = b / a
        sign, steps = self.chain()
        found = pooled(*(np.ascontiguousarray(x, dtype=np.float64) for x in (sign * (to_numpy(w) - steps), to_numpy(a))))
        return like(sign * found + steps, w)

    def nearest(self, c: Array) -> Array:
        return self.project_convex(c, array_namespace(c).ones_like(c))

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Sorted normal numbers."""
        steps = np.sort(check_random_state(random_state).standard_normal((n, self.n_tasks_)), axis=1)
        return self._sign * (steps + float(self.gap) * np.arange(self.n_tasks_))


class ConvexShape(Polyhedron):
    """Outputs that are the values of a convex function (or, with `concave`, of a concave one) at growing `positions`.

    Parameters
    ----------
    positions : T growing numbers, None for 0, 1, 2, ...
    concave : turn the shape round

    Notes
    -----
    Intersection([ConvexShape(), Monotone()]) is convex and rising.

    Examples
    --------
    >>> from lawful import ConvexShape, project
    >>> project([[0.0, 1.0, 0.0]], ConvexShape()).round(6)
    array([[0.333333, 0.333333, 0.333333]])
    """

    unbounded = True

    def __init__(self, positions: Any = None, concave: bool = False) -> None:
        self.positions, self.concave = positions, concave

    def _learn(self, Y: Array) -> None:
        T = self.n_tasks_
        x = np.arange(float(T)) if self.positions is None else np.asarray(self.positions, dtype=np.float64)
        if x.ndim != 1 or not np.isfinite(x).all() or (np.diff(x) <= 0).any():
            raise ValueError(
                f"ConvexShape: positions must be finite and growing, got {self.positions!r}; sort the outputs by them"
            )
        check_width("ConvexShape", len(x), T)
        if T < 3:
            raise ValueError(f"ConvexShape: {T} outputs have no shape; give three at least, or Monotone()")
        self.positions_ = x
        h = np.diff(x)
        left = h[1:] / (h[:-1] + h[1:])
        eye = np.eye(T)
        self.A_, self.b_ = np.zeros((0, T)), np.zeros(0)
        self.G_ = self._sign * (eye[1:-1] - left[:, None] * eye[:-2] - (1 - left)[:, None] * eye[2:])
        self.h_ = np.zeros(T - 2)

    @property
    def _sign(self) -> float:
        return -1.0 if self.concave else 1.0

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Values of functions whose slopes are sorted normal numbers."""
        rng = check_random_state(random_state)
        slopes = np.sort(rng.standard_normal((n, self.n_tasks_ - 1)), axis=1)
        rise = np.cumsum(slopes * np.diff(self.positions_), axis=1)
        return self._sign * (rng.standard_normal((n, 1)) + np.concatenate([np.zeros((n, 1)), rise], axis=1))
