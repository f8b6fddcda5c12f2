"""The scaled simplex {c >= 0, sum_t c_t = total}: proportions, budgets, mixtures.

With all a_t > 0 the weighted projection is c_t = max(0, (b_t - lam) / a_t), and lam is found by sorting b.

With some a_t <= 0 the problem is still exact and polynomial: moving mass between two coordinates of non-positive
curvature never has to stop midway, so some minimiser puts mass on at most one of them. For each such k, with
c_k = s, the rest is a simplex of total - s over the convex coordinates, whose optimal value G is C^1 and piecewise
quadratic; the stationary points of a_k s^2 - 2 b_k s + G(total - s) on its at most T pieces, and s in {0, total},
are all the candidates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lawful._array import Array, array_namespace, device_of, like, put_rows, take_rows
from lawful.sets.base import ConstraintSet
from lawful.sets.cones import Cone
from lawful.sets.elementary import constant_rows

FLAT = 1e-14  # weights below this fraction of the problem's size count as "not convex": 1/a would be noise


def _pieces(b: Array, inverse: Array) -> tuple[Array, Array, Array]:
    """b sorted downwards, and the running sums of b/a and 1/a in that order."""
    xp = array_namespace(b, inverse)
    order = xp.argsort(b, axis=1, descending=True)
    key, weight = xp.take_along_axis(b, order, axis=1), xp.take_along_axis(inverse, order, axis=1)
    ratio = xp.where(weight > 0, key * weight, xp.zeros_like(key))
    return key, xp.cumulative_sum(ratio, axis=1), xp.cumulative_sum(weight, axis=1)


def _fill(b: Array, inverse: Array, total: Array) -> Array:
    """argmin of sum a c^2 - 2 b c over {c >= 0, sum c = total}; inverse = 1/a > 0, or 0 for a coordinate held at 0."""
    xp = array_namespace(b, inverse)
    usable = inverse > 0
    low = xp.min(b, axis=1, keepdims=True) - 1  # coordinates held at 0 are sorted last
    key, B, A = _pieces(xp.where(usable, b, low), inverse)
    lam = (B - total) / xp.where(A > 0, A, xp.ones_like(A))
    count = xp.sum(xp.astype(key > lam, xp.int64), axis=1, keepdims=True)
    last = xp.where(count > 0, count - 1, xp.zeros_like(count))
    lam = xp.take_along_axis(lam, last, axis=1)
    c = xp.where(usable & (b > lam), (b - lam) * inverse, xp.zeros_like(b))
    for _ in range(2):  # b - lam cancels when 1/a is large: put the rounding residue back where it costs least
        share = xp.where(c > 0, inverse, xp.zeros_like(c))
        whole = xp.sum(share, axis=1, keepdims=True)
        residue = total - xp.sum(c, axis=1, keepdims=True)
        c = xp.clip(c + share * residue / xp.where(whole > 0, whole, xp.ones_like(whole)), 0.0, None)
    return c


def _fill_mixed(b: Array, a: Array, total: float) -> Array:
    """The minimiser when some weights are not positive: best of the candidates of the module's docstring."""
    xp = array_namespace(a, b)
    m, T = a.shape
    convex = a > FLAT
    inverse = xp.where(convex, 1 / xp.where(convex, a, xp.ones_like(a)), xp.zeros_like(a))
    whole = xp.full((m, 1), total, dtype=a.dtype, device=device_of(a))
    key, B, A = _pieces(xp.where(convex, b, xp.min(b, axis=1, keepdims=True) - 1), inverse)
    # Piece j, the j + 1 largest b active, spends between B - A b_(j) and B - A b_(j+1).
    least, most = B - A * key, xp.concat([(B - A * key)[:, 1:], xp.full_like(whole, xp.inf)], axis=1)
    slope = xp.where(A > 0, A, xp.ones_like(A))
    best = _fill(b, inverse, whole)
    lowest = _value(a, b, best, total)
    for k in range(T):
        ak, bk, unit = a[:, k, None], b[:, k, None], like(np.eye(T)[k], a)[None, :]
        vertex = xp.where(convex[:, k], xp.full_like(lowest, xp.inf), total * (ak * total - 2 * bk)[:, 0])
        best = xp.where((vertex < lowest)[:, None], total * unit, best)
        lowest = xp.minimum(lowest, vertex)
        # F'(s) = 2 a_k s - 2 b_k + 2 lam, lam = (B - total + s) / A: a minimum only if a_k + 1/A > 0.
        bend = ak * slope + 1
        upward = (bend > 0) & (A > 0) & ~convex[:, k, None]
        s = (bk * slope - B + total) / xp.where(upward, bend, xp.ones_like(bend))
        spent, loose = total - s, 1e-6 * total
        upward = upward & (s >= -loose) & (spent >= least - loose) & (spent <= most + loose) & (spent >= -loose)
        for j in range(T):
            rows = xp.nonzero(upward[:, j])[0]
            if rows.shape[0] == 0:
                continue
            at, bt = take_rows(a, rows), take_rows(b, rows)
            st = xp.clip(take_rows(s, rows)[:, j, None], 0.0, total)
            c = st * unit + _fill(bt, take_rows(inverse, rows), total - st)
            value, bound = _value(at, bt, c, total), take_rows(lowest, rows)
            best = put_rows(best, rows, xp.where((value < bound)[:, None], c, take_rows(best, rows)))
            lowest = put_rows(lowest, rows, xp.minimum(value, bound))
    return best


def _value(a: Array, b: Array, c: Array, total: float) -> Array:
    """F(c), or infinity where c failed to spend the total (no convex coordinate to put it on)."""
    xp = array_namespace(a, b, c)
    value = xp.sum(c * (a * c - 2 * b), axis=1)
    return xp.where(xp.abs(xp.sum(c, axis=1) - total) <= 1e-6 * total, value, xp.full_like(value, xp.inf))


class Simplex(ConstraintSet):
    """{c : c_t >= 0, sum_t c_t = total}.

    >>> from lawful import Simplex, project
    >>> project([[0.5, 0.9, -1.0]], Simplex()).round(6)
    array([[0.3, 0.7, 0. ]])
    """

    convex = True
    polyhedral = quadratic = True

    def __init__(self, total: float = 1.0) -> None:
        self.total = total

    def _learn(self, Y: Array) -> None:
        if not (np.isfinite(self.total) and self.total > 0):
            raise ValueError(f"Simplex: total must be positive and finite, got {self.total!r}; 1.0 is usual")

    def project(self, b: Array, a: Array) -> Array:
        xp = array_namespace(a, b)
        total = float(self.total)
        size = xp.max(xp.maximum(xp.abs(a), xp.abs(b) / total), axis=1, keepdims=True)
        size = xp.where(size > 0, size, xp.ones_like(size))
        a, b = a / size, b / size
        positive = xp.all(a > FLAT, axis=1)
        inverse = 1 / xp.where(positive[:, None], a, xp.ones_like(a))
        c = _fill(b, inverse, xp.full_like(size, total))
        rest = xp.nonzero(~positive)[0]
        if rest.shape[0] == 0:
            return c
        return put_rows(c, rest, _fill_mixed(take_rows(b, rest), take_rows(a, rest), total))

    def nearest(self, c: Array) -> Array:
        return self.project(c, array_namespace(c).ones_like(c))

    def equality(self, c: Array) -> Array:
        return array_namespace(c).sum(c, axis=1, keepdims=True) - self.total

    def equality_jacobian(self, c: Array) -> Array:
        return constant_rows(np.ones((1, self.n_tasks_)), c)

    def curvature(self, c: Array, nu: Array) -> Array:
        return constant_rows(np.zeros((self.n_tasks_, self.n_tasks_)), c)

    def inequality(self, c: Array) -> Array:
        return -c

    def inequality_jacobian(self, c: Array) -> Array:
        return constant_rows(-np.eye(self.n_tasks_), c)

    def scales(self, c: Array) -> Array:
        """The total, for the sum and for every part of it."""
        xp = array_namespace(c)
        total = xp.full_like(c, float(self.total))
        return xp.concat([total[:, :1] + xp.sum(abs(c), axis=1, keepdims=True), total], axis=1)

    def cones(self) -> list[Cone]:
        eye = np.eye(self.n_tasks_)
        whole = np.ones((1, self.n_tasks_)), np.array([float(self.total)])
        return [Cone("zero", *whole), Cone("nonnegative", -eye, np.zeros(self.n_tasks_))]

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Uniform."""
        return self.total * check_random_state(random_state).dirichlet(np.ones(self.n_tasks_), n)
