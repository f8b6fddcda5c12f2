"""Spheres, balls and ellipsoids: one secular equation solves them all.

After the change of variables c = center + axes * u every problem here is

    min  sum_t a_t u_t^2 - 2 b_t u_t     subject to |u| = 1 (or <= 1),     a of any sign (erratum E4).

Stationarity reads (d_t + sigma) u_t = b_t with d_t = a_t - min a >= 0, and the *global* minimiser is the one with
sigma >= 0: sum_t b_t^2 / (d_t + sigma)^2 = 1, a trust-region subproblem. If b vanishes wherever d does (the hard
case) the equation may have no root; then sigma = 0 and the missing length goes to a coordinate of smallest a.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from lawful._array import Array, array_namespace, device_of, like
from lawful._small import graded_eigh
from lawful.sets.base import ROUNDING, ConstraintSet
from lawful.sets.cones import Cone
from lawful.sets.elementary import per_task

MAX_ITERATIONS = 200


def on_unit_sphere(a: Array, b: Array) -> Array:
    """argmin over |u| = 1 of sum_t a_t u_t^2 - 2 b_t u_t, row by row, to rounding error."""
    xp = array_namespace(a, b)
    size = xp.max(xp.maximum(xp.abs(a), xp.abs(b)), axis=1, keepdims=True)
    size = xp.where(size > 0, size, xp.ones_like(size))
    a, b = a / size, b / size
    d = a - xp.min(a, axis=1, keepdims=True)

    def point(sigma: Array) -> tuple[Array, Array]:
        total = d + sigma
        total = xp.where(total > 0, total, xp.ones_like(total))  # total = 0 only where b = 0: the hard case
        return b / total, total

    # |b_t| <= d_t + sigma bounds sigma below. 1/|u(sigma)| is concave and increasing, so Newton on it rises
    # monotonically from that bound to the root.
    sigma = xp.clip(xp.max(xp.abs(b) - d, axis=1, keepdims=True), 0.0, None)
    for _ in range(MAX_ITERATIONS):
        u, total = point(sigma)
        norm2 = xp.sum(u**2, axis=1, keepdims=True)
        slope = xp.sum(u**2 / total, axis=1, keepdims=True)
        ahead = (norm2 > 1) & (slope > 0)
        step = (xp.sqrt(norm2) - 1) * norm2 / xp.where(ahead, slope, xp.ones_like(slope))
        step = xp.where(ahead, step, xp.zeros_like(step))
        if not bool(xp.any(sigma + step > sigma)):
            break
        sigma = sigma + step
    u, _ = point(sigma)
    missing = xp.sqrt(xp.clip(1 - xp.sum(u**2, axis=1, keepdims=True), 0.0, None))
    # The hard case: b is zero on the flattest coordinate, so either sign of it is optimal; + is taken.
    flattest = xp.argmin(d, axis=1)[:, None] == xp.arange(d.shape[1], device=device_of(d))[None, :]
    u = xp.where(flattest & (sigma == 0) & (b == 0), u + missing, u)
    return u / xp.sqrt(xp.sum(u**2, axis=1, keepdims=True))


def in_unit_ball(a: Array, b: Array) -> Array:
    """argmin over |u| <= 1: the unconstrained minimiser where it exists and is inside, else on the sphere."""
    xp = array_namespace(a, b)
    bounded = (xp.abs(b) <= a) & (a > 0)  # |b/a| <= 1, asked without dividing
    u = xp.where(bounded, b / xp.where(bounded, a, xp.ones_like(a)), xp.zeros_like(b))
    solvable = xp.all(bounded | ((a == 0) & (b == 0)), axis=1, keepdims=True)
    inside = solvable & (xp.sum(u**2, axis=1, keepdims=True) <= 1)
    return xp.where(inside, u, on_unit_sphere(a, b))


def _surface(round_set: _Round) -> bool:
    return not round_set.solid


def _solid(round_set: _Round) -> bool:
    return bool(round_set.solid)


class _Round(ConstraintSet):
    """{center + axes * u}, |u| = 1 or (solid) |u| <= 1; level_ * (|u|^2 - 1) is its equation or inequality."""

    solid: bool = False
    axes_: np.ndarray
    center_: np.ndarray
    level_: float

    quadratic = True

    def _set_geometry(self, axes: Any, center: Any, level: float) -> None:
        name = type(self).__name__
        self.axes_ = per_task(name, "axes", axes, self.n_tasks_)
        self.center_ = per_task(name, "center", center, self.n_tasks_)
        self.level_ = level
        if not (np.isfinite(self.axes_).all() and (self.axes_ > 0).all()):
            raise ValueError(f"{name}: radius and axes must be positive and finite; got {axes!r}")
        if not np.isfinite(self.center_).all():
            raise ValueError(f"{name}: center must be finite; got {center!r}")

    @property
    def convex(self) -> bool:  # type: ignore[override]
        return bool(self.solid)

    def _unit(self, c: Array) -> Array:
        return (c - like(self.center_, c)) / like(self.axes_, c)

    def _level(self, c: Array) -> Array:
        return self.level_ * (array_namespace(c).sum(self._unit(c) ** 2, axis=1) - 1)[:, None]

    def _normal(self, c: Array) -> Array:
        return 2 * self.level_ * self._unit(c) / like(self.axes_, c)

    def project(self, b: Array, a: Array) -> Array:
        axes, center = like(self.axes_, a), like(self.center_, a)
        solve = in_unit_ball if self.solid else on_unit_sphere
        return center + axes * solve(a * axes**2, (b - a * center) * axes)

    def project_form(self, Q: Array, w: Array) -> Array:
        """argmin of (c - w)' Q (c - w): rotate to the eigenvectors of diag(axes) Q diag(axes), then as above."""
        xp = array_namespace(Q, w)
        axes, center = like(self.axes_, w), like(self.center_, w)
        H, u = axes[:, None] * Q * axes[None, :], (w - center) / axes
        solve = in_unit_ball if self.solid else on_unit_sphere
        # V'H u = values * V'u: a product with H would put the rounding of its stiffest direction into the softest one.
        if Q.ndim == 2:  # one for all rows
            values, V = (x[0, ...] for x in graded_eigh(H[None, :, :]))
            return center + axes * (solve(values + 0 * u, values * (u @ V)) @ xp.matrix_transpose(V))
        values, V = graded_eigh(H)
        z = solve(values, values * (xp.matrix_transpose(V) @ u[:, :, None])[:, :, 0])
        return center + axes * (V @ z[:, :, None])[:, :, 0]

    def nearest(self, c: Array) -> Array:
        return self.project(c, array_namespace(c).ones_like(c))

    @available_if(_surface)
    def equality(self, c: Array) -> Array:
        return self._level(c)

    @available_if(_surface)
    def equality_jacobian(self, c: Array) -> Array:
        return self._normal(c)[:, None, :]

    def curvature(self, c: Array, nu: Array) -> Array:
        """nu times the Hessian of the equation or inequality: a constant diagonal matrix."""
        return nu[:, :, None] * like(np.diag(2 * self.level_ / self.axes_**2), c)[None, :, :]

    @available_if(_surface)
    def tangent(self, c: Array, v: Array) -> Array:
        xp = array_namespace(c, v)
        normal = self._normal(c)
        along = xp.sum(v * normal, axis=1, keepdims=True) / xp.sum(normal**2, axis=1, keepdims=True)
        return v - along * normal

    @available_if(_surface)
    def retract(self, c: Array, v: Array) -> Array:
        """Back to the surface along the ray from the center."""
        xp = array_namespace(c, v)
        u = self._unit(c + v)
        u = u / xp.sqrt(xp.sum(u**2, axis=1, keepdims=True))
        return like(self.center_, c) + like(self.axes_, c) * u

    def scales(self, c: Array) -> Array:
        """|u|^2 + 1, and what rounding makes of it when the set is far from 0 for its size."""
        xp = array_namespace(c)
        u, center, axes = self._unit(c), like(np.abs(self.center_), c), like(self.axes_, c)
        lost = xp.sum(abs(u) * (abs(c) + center) / axes, axis=1)
        return self.level_ * (xp.sum(u**2, axis=1) + 1 + ROUNDING * lost)[:, None]

    @available_if(_solid)
    def cones(self) -> list[Cone]:
        """(1, u) in the second-order cone."""
        scaled = np.diag(1 / self.axes_)
        matrix = np.concatenate([np.zeros((1, self.n_tasks_)), -scaled])
        return [Cone("second_order", matrix, np.concatenate([[1.0], -self.center_ / self.axes_]))]

    @available_if(_solid)
    def inequality(self, c: Array) -> Array:
        return self._level(c)

    @available_if(_solid)
    def inequality_jacobian(self, c: Array) -> Array:
        return self._normal(c)[:, None, :]

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Uniform on the sphere and in the ball; their image under the axes for an ellipsoid."""
        rng = check_random_state(random_state)
        u = rng.standard_normal((n, self.n_tasks_))
        u /= np.sqrt((u**2).sum(axis=1, keepdims=True))
        if self.solid:
            u *= rng.random((n, 1)) ** (1 / self.n_tasks_)
        return self.center_ + self.axes_ * u


class Sphere(_Round):
    """{c : |c - center|^2 = radius^2}.

    >>> from lawful import Sphere, project
    >>> project([[3.0, 4.0]], Sphere(radius=2.0))
    array([[1.2, 1.6]])
    """

    def __init__(self, radius: float = 1.0, center: Any = 0.0) -> None:
        self.radius, self.center = radius, center

    def _learn(self, Y: Array) -> None:
        self._set_geometry(float(self.radius), self.center, float(self.radius) ** 2)


class Ball(_Round):
    """{c : |c - center|^2 <= radius^2}.

    >>> from lawful import Ball, project
    >>> project([[3.0, 4.0], [0.3, 0.4]], Ball())
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """

    solid = True

    def __init__(self, radius: float = 1.0, center: Any = 0.0) -> None:
        self.radius, self.center = radius, center

    def _learn(self, Y: Array) -> None:
        self._set_geometry(float(self.radius), self.center, float(self.radius) ** 2)


class Ellipsoid(_Round):
    """{c : sum_t ((c_t - center_t) / axes_t)^2 = 1}, or <= 1 when `solid`.

    >>> from lawful import Ellipsoid, project
    >>> project([[9.0, 0.0]], Ellipsoid([3.0, 1.0]))
    array([[3., 0.]])
    """

    def __init__(self, axes: Any, center: Any = 0.0, solid: bool = False) -> None:
        self.axes, self.center, self.solid = axes, center, solid

    def _learn(self, Y: Array) -> None:
        self._set_geometry(self.axes, self.center, 1.0)
