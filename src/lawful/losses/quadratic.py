"""F_x(c) of the square loss: a quadratic in the candidate c, for a batch of m inputs.

* `Quadratic`: a diagonal output metric (ex:ls-and-mtl): sum_t a_t c_t^2 - 2 b_t c_t.
* `QuadraticForm`: a full one: (c - w)^T Q (c - w).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, device_of, take_rows
from lawful._small import dot, graded_eigh, mat_vec, solve_many, total

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


Softened = tuple[Any, Callable[[Array], Array], Array]

SAME = 1e-13  # relative spread below which weights count as equal


class Quadratic:
    """sum_t a_t c_t^2 - 2 b_t c_t up to a constant of the row (`ex:ls-and-mtl`); any sign of a_t.

    The constant is chosen so that the value is the weighted squared distance to the unconstrained prediction
    w = b/a on the tasks with a_t > 0.

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic(np.array([[1.0, 2.0]]), np.array([[3.0, 8.0]]))
    >>> F.center, F.value(np.array([[3.0, 4.0]]))
    (array([[3., 4.]]), array([0.]))
    """

    def __init__(self, a: Array, b: Array, doubtful: Array | None = None, unit: Array | None = None) -> None:
        xp = array_namespace(a, b)
        self.a, self.b = a, b
        self.shape: tuple[int, int] = a.shape
        self.doubtful = xp.any(a <= 0, axis=1) if doubtful is None else doubtful
        self.unit = xp.ones(a.shape[1], dtype=a.dtype, device=device_of(a)) if unit is None else unit

    @classmethod
    def around(cls, w: Array, a: Array | None = None) -> Quadratic:
        """sum_t a_t (c_t - w_t)^2 for positive weights, or equal ones: w is then known exactly, not as b/a."""
        xp = array_namespace(w)
        sure = xp.zeros(w.shape[0], dtype=xp.bool, device=device_of(w))
        if a is None:
            a, b = xp.broadcast_to(xp.ones(w.shape[1], dtype=w.dtype, device=device_of(w)), w.shape), w
        else:
            b = a * w
        F = cls(a, b, sure)
        F.__dict__.update(center=w, _convex=True)
        return F

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
            r = c - self.center
            if type(r) is np.ndarray:  # in one pass
                return np.einsum("it,it,it->i", a, r, r)
            return dot(a * r, r)
        return total(_terms(a, b, c))

    def weigh(self, r: Array) -> Array:
        """a r: |r|^2 in the norm of the objective is r . weigh(r)."""
        return self.a * r

    def gradient(self, c: Array) -> Array:
        return 2 * (self.a * c - self.b)

    def curvature(self, c: Array) -> Array:
        return 2 * self.a

    def hessian(self, c: Array) -> Array:
        xp = array_namespace(c)
        return 2 * self.a[:, :, None] * xp.eye(self.shape[1], dtype=c.dtype, device=device_of(c))[None, :, :]

    def softened(self, K: Array) -> Softened:
        r"""min over r of F(c + r) + r'K r as an objective in c, the way from c to c + r, and where there is a minimiser.

        With F = (z - w)'A(z - w) it is (c - w)' (A^{-1} + K^{-1})^{-1} (c - w), and z = (A + K)^{-1}(A w + K c) (erratum E2:
        with A = diag(a), A w = b, never b/a). A minimiser exists where A + K is positive. K (m, T) positive.
        """
        xp = array_namespace(K)
        total = self.a + K
        exists = xp.all(total > 0, axis=1)
        total = xp.where(total > 0, total, xp.ones_like(total))
        soft = Quadratic(self.a * K / total, self.b * K / total, self.doubtful, self.unit)
        return soft, lambda c: (self.b + K * c) / total, exists

    def price(self, mu: float) -> Array:
        """K of the penalty l_mu: (sum_t a_t / mu) times the output metric."""
        return (self.mass / mu)[:, None] * self.unit[None, :]

    def shifted(self, r: Array) -> Quadratic:
        """F(c + r) as an objective in c."""
        return Quadratic(self.a, self.b - self.a * r, self.doubtful, self.unit)

    def recentred(self, w: Array) -> Quadratic:
        """The same weights around another unconstrained prediction."""
        return Quadratic(self.a, self.a * w, self.doubtful, self.unit)

    def over(self, C: Any) -> Array:
        """argmin over a set with the closed form for it."""
        return C.project(self.b, self.a)

    def isotropic(self, any_sign: bool = False) -> Array:
        """(m,) rows where F(c) = q |c - center|^2 + const with q > 0, so that its minimiser is `C.nearest(center)`.

        This is the vector-valued setting, a_t(x) = a(x) for all t. With `any_sign` q may be anything.
        """
        xp = array_namespace(self.a)
        q = self.a[:, 0]
        spread = xp.max(self.a, axis=1) - xp.min(self.a, axis=1)
        return (spread <= SAME * xp.abs(q)) & ((q > 0) | any_sign)

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
    """(c - w)^T Q (c - w), Q (m, T, T) positive semidefinite: the square loss with a full output metric.

    Or Q (T, T), `shared` by all rows: one factorisation then serves them, and Q is m matrices only for those who ask for it.

    >>> import numpy as np
    >>> from lawful.losses import QuadraticForm
    >>> F = QuadraticForm(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[0.0, 0.0]]))
    >>> F.value(np.array([[1.0, 1.0]]))
    array([6.])
    """

    def __init__(
        self, Q: Array, w: Array, doubtful: Array | None = None, unit: Array | None = None, weights: Array | None = None
    ) -> None:
        xp = array_namespace(Q, w)
        self.w, self.shared = w, Q if Q.ndim == 2 else None
        if self.shared is None:
            self.Q = Q
        self.unit = xp.eye(w.shape[1], dtype=w.dtype, device=device_of(w)) if unit is None else unit
        self.weights = xp.ones_like(w) if weights is None else weights  # a_t(x), before the metric
        self.shape: tuple[int, int] = w.shape
        self.doubtful = xp.zeros(w.shape[0], dtype=xp.bool, device=device_of(w)) if doubtful is None else doubtful

    @cached_property
    def Q(self) -> Array:
        xp = array_namespace(self.w)
        return self.shared + xp.zeros((self.shape[0], 1, 1), dtype=self.w.dtype, device=device_of(self.w))

    @property
    def form(self) -> Array:
        """Q as it was given, (m, T, T) or (T, T)."""
        return self.Q if self.shared is None else self.shared

    @property
    def center(self) -> Array:
        return self.w

    @property
    def mass(self) -> Array:
        return array_namespace(self.w).sum(self.weights, axis=1)

    def weigh(self, r: Array) -> Array:
        """Q r."""
        if self.shared is not None:
            return r @ self.shared
        return (self.Q @ r[:, :, None])[:, :, 0]

    def value(self, c: Array) -> Array:
        r = c - self.w
        return dot(r, self.weigh(r))

    def gradient(self, c: Array) -> Array:
        return 2 * self.weigh(c - self.w)

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
        Qw = self.weigh(self.w)
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
        w, weights = (xp.take(v, at, axis=1) for v in (self.w, self.weights))
        return QuadraticForm(square, w, self.doubtful, unit, weights)

    def rows(self, idx: Array) -> QuadraticForm:
        Q = take_rows(self.Q, idx) if self.shared is None else self.shared
        w, doubtful, weights = (take_rows(v, idx) for v in (self.w, self.doubtful, self.weights))
        chosen = QuadraticForm(Q, w, doubtful, self.unit, weights)
        if "_spectrum" in self.__dict__:
            chosen.__dict__["_spectrum"] = tuple(take_rows(v, idx) for v in self._spectrum)
        return chosen

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        values, V = graded_eigh(self.Q)
        return array_namespace(values).clip(values, 0.0, None), V

    def softened(self, K: Array) -> Softened:
        """As for `Quadratic`; K (m, T) or (m, T, T) positive definite."""
        xp = array_namespace(K)
        if K.ndim == 2 and bool(xp.all(K[:, :1] == K)):
            return self._equally_softened(K[:, :1])
        full = K if K.ndim == 3 else K[:, :, None] * xp.eye(self.shape[1], dtype=self.w.dtype, device=device_of(self.w))
        total = self.Q + full
        soft = QuadraticForm(self.Q @ solve_many(total, full), self.w, self.doubtful, self.unit, self.weights)

        def back(c: Array) -> Array:
            rhs = self.weigh(self.w)[:, :, None] + full @ c[:, :, None]
            return solve_many(total, rhs)[:, :, 0]

        return soft, back, xp.ones(self.shape[0], dtype=xp.bool, device=device_of(self.w))

    def _equally_softened(self, k: Array) -> Softened:
        """K = k I, by the eigenvectors of Q: what a singular Q leaves free stays so, however small k is beside it."""
        xp = array_namespace(k)
        values, V = self._spectrum
        transposed = xp.matrix_transpose(V)
        soft = QuadraticForm(
            V @ ((values * (k / (values + k)))[:, :, None] * transposed), self.w, self.doubtful, self.unit, self.weights
        )

        def back(c: Array) -> Array:
            mixed = (values * mat_vec(transposed, self.w) + k * mat_vec(transposed, c)) / (values + k)
            return mat_vec(V, mixed)

        return soft, back, xp.ones(self.shape[0], dtype=xp.bool, device=device_of(self.w))

    def price(self, mu: float) -> Array:
        return (self.mass / mu)[:, None, None] * self.unit[None, :, :]

    def shifted(self, r: Array) -> QuadraticForm:
        return self.recentred(self.w - r)

    def recentred(self, w: Array) -> QuadraticForm:
        return QuadraticForm(self.form, w, self.doubtful, self.unit, self.weights)

    def over(self, C: Any) -> Array:
        return C.project_form(self.form, self.w)

    def isotropic(self, any_sign: bool = False) -> Array:
        xp = array_namespace(self.Q)
        q = self.Q[:, 0, 0]
        eye = xp.eye(self.shape[1], dtype=self.Q.dtype, device=device_of(self.Q))
        spread = xp.max(xp.abs(self.Q - q[:, None, None] * eye[None, :, :]), axis=(1, 2))
        return (spread <= SAME * xp.abs(q)) & ((q > 0) | any_sign)
