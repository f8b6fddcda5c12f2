"""Sets with closed forms: all of R^T, a box, an affine subspace.

`project(b, a)` minimises sum_t a_t c_t^2 - 2 b_t c_t over the set for *any* sign of a_t. With a_t > 0 that is the
weighted projection of b/a (`ex:ls-and-mtl`); with a_t <= 0 it is not a projection of anything, so the quadratic
itself is minimised and b/a is never formed (erratum E4). Where the minimum is -infinity a point of the set is
returned (the row is flagged doubtful by the objective, not here).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from lawful._array import Array, array_namespace, device_of, like, put_rows, take_rows, to_numpy
from lawful._small import solve_small
from lawful.losses.quadratic import positive_part_center
from lawful.sets.base import ConstraintSet, check_width
from lawful.sets.cones import Cone

FLAT = 1e-12  # curvature below this fraction of the largest weight is rounding noise


def per_task(owner: str, name: str, value: Any, n_tasks: int) -> np.ndarray:
    """A parameter given as one number or one number per output, as a vector of T."""
    vector = np.asarray(value, dtype=np.float64)
    if vector.ndim > 1 or np.isnan(vector).any():
        raise ValueError(f"{owner}: {name} must be a number or a vector without NaN; give one number per output")
    if vector.ndim == 1:
        check_width(owner, vector.shape[0], n_tasks)
    return np.array(np.broadcast_to(vector, (n_tasks,)))


class Reals(ConstraintSet):
    """R^T: no law at all. Decoding over it is single-task learning.

    >>> from lawful import Reals, project
    >>> project([[3.0, 4.0]], Reals())
    array([[3., 4.]])
    """

    convex = True
    polyhedral = quadratic = True
    unbounded = True

    def project(self, b: Array, a: Array) -> Array:
        """b/a where a > 0; where a <= 0 there is no minimiser and 0 is returned."""
        return positive_part_center(a, b)

    def nearest(self, c: Array) -> Array:
        return c

    def interval(self, t: int) -> tuple[float, float]:
        return -np.inf, np.inf

    def cones(self) -> list[Cone]:
        return []

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        return check_random_state(random_state).standard_normal((n, self.n_tasks_))


def _bounded(box: Box) -> bool:
    return bool(np.isfinite(box.lower).any() or np.isfinite(box.upper).any())


class Box(ConstraintSet):
    """{c : lower_t <= c_t <= upper_t}; numbers or vectors of T, infinities allowed.

    The quadratic separates: a convex coordinate (a_t > 0) is clipped, a concave or linear one takes the better end.

    >>> from lawful import Box, project
    >>> project([[3.0, -1.0]], Box([0.0, 0.0], [1.0, 1.0]))
    array([[1., 0.]])
    """

    convex = True
    polyhedral = quadratic = True

    def __init__(self, lower: Any = -np.inf, upper: Any = np.inf) -> None:
        self.lower, self.upper = lower, upper

    def _learn(self, Y: Array) -> None:
        self.lower_ = per_task("Box", "lower", self.lower, self.n_tasks_)
        self.upper_ = per_task("Box", "upper", self.upper, self.n_tasks_)
        empty = (self.lower_ > self.upper_) | (self.lower_ == np.inf) | (self.upper_ == -np.inf)
        if empty.any():
            raise ValueError(
                f"Box is an empty set: lower > upper for outputs {np.flatnonzero(empty).tolist()}; swap the bounds"
            )

    def _finite(self) -> tuple[np.ndarray, np.ndarray]:
        return np.flatnonzero(np.isfinite(self.lower_)), np.flatnonzero(np.isfinite(self.upper_))

    @available_if(_bounded)
    def inequality(self, c: Array) -> Array:
        """lower - c and c - upper, finite bounds only."""
        xp = array_namespace(c)
        below, above = self._finite()
        lower, upper = like(self.lower_[below], c), like(self.upper_[above], c)
        return xp.concat(
            [lower - take_columns(c, below), take_columns(c, above) - upper],
            axis=1,
        )

    @available_if(_bounded)
    def inequality_jacobian(self, c: Array) -> Array:
        below, above = self._finite()
        eye = np.eye(self.n_tasks_)
        return constant_rows(np.concatenate([-eye[below], eye[above]]), c)

    def curvature(self, c: Array, nu: Array) -> Array:
        return constant_rows(np.zeros((self.n_tasks_, self.n_tasks_)), c)

    def scales(self, c: Array) -> Array:
        """The larger of an output's finite bounds; where that is 0, the output itself."""
        xp = array_namespace(c)
        bounds = np.abs(np.stack([self.lower_, self.upper_]))
        size = like(np.max(np.where(np.isfinite(bounds), bounds, 0.0), axis=0), c)
        size = xp.where(size > 0, size, abs(c))
        return xp.concat([take_columns(size, which) for which in self._finite()], axis=1)

    def cones(self) -> list[Cone]:
        eye = np.eye(self.n_tasks_)
        below, above = self._finite()
        matrix, offset = np.concatenate([-eye[below], eye[above]]), np.concatenate([-self.lower_[below], self.upper_[above]])
        return [Cone("nonnegative", matrix, offset)] if len(offset) else []

    @property
    def unbounded(self) -> bool:  # type: ignore[override]
        return not (np.isfinite(self.lower_).all() and np.isfinite(self.upper_).all())

    def nearest(self, c: Array) -> Array:
        return array_namespace(c).clip(c, like(self.lower_, c)[None, :], like(self.upper_, c)[None, :])

    def interval(self, t: int) -> tuple[float, float]:
        return float(self.lower_[t]), float(self.upper_[t])

    def project(self, b: Array, a: Array) -> Array:
        xp = array_namespace(a, b)
        # An infinite end is replaced by the finite one (or 0): a concave coordinate then has a minimiser again.
        low = np.where(np.isfinite(self.lower_), self.lower_, np.where(np.isfinite(self.upper_), self.upper_, 0))
        high = np.where(np.isfinite(self.upper_), self.upper_, low)
        low, high = like(low, a)[None, :], like(high, a)[None, :]
        better_end = xp.where(high * (a * high - 2 * b) < low * (a * low - 2 * b), high, low)
        return xp.where(a > 0, self.nearest(positive_part_center(a, b)), better_end)

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Uniform between two finite bounds, exponential from a single one, normal without any."""
        rng = check_random_state(random_state)
        lower, upper, shape = self.lower_, self.upper_, (n, self.n_tasks_)
        has_low, has_high = np.isfinite(lower), np.isfinite(upper)
        low, high = np.where(has_low, lower, 0), np.where(has_high, upper, 0)
        between, tail = low + (high - low) * rng.random(shape), rng.exponential(size=shape)
        one_sided = np.where(has_low, low + tail, np.where(has_high, high - tail, rng.standard_normal(shape)))
        return np.where(has_low & has_high, between, one_sided)


class Affine(ConstraintSet):
    """{c : A c = b}. Redundant equations are dropped in `fit`; contradictory ones are an empty set.

    With W an orthonormal basis of the rows of A (r of them), Z one of its null space and c0 a point of C:
        a > 0:        c = w + D W' lam, (W D W') lam = W (c0 - w), D = diag(1/a), w = b/a     (Schur complement)
        otherwise:    c = c0 + Z z with (Z' diag(a) Z) z = Z'(b - a c0) along its eigenvectors of positive
                      curvature; there is no minimiser along the others, where c0 = nearest(w) is kept.

    >>> from lawful import Affine, project
    >>> project([[1.0, 2.0]], Affine([[1.0, 1.0]], 1.0)).round(6) + 0.0
    array([[0., 1.]])
    """

    convex = True
    polyhedral = quadratic = True

    def __init__(self, A: Any, b: Any = 0.0) -> None:
        self.A, self.b = A, b

    @property
    def unbounded(self) -> bool:  # type: ignore[override]
        return bool(self.null_.shape[1])

    def _learn(self, Y: Array) -> None:
        A = np.atleast_2d(np.asarray(self.A, dtype=np.float64))
        b = np.asarray(self.b, dtype=np.float64)
        check_width("Affine", A.shape[1], self.n_tasks_)
        if b.ndim > 1 or (b.ndim == 1 and b.shape[0] != A.shape[0]):
            raise ValueError(f"Affine: b has shape {b.shape}, A has {A.shape[0]} rows; give one value per row")
        if not (np.isfinite(A).all() and np.isfinite(b).all() and A.any()):
            raise ValueError("Affine: A and b must be finite and A not zero; Reals() has no equations")
        b = np.broadcast_to(b, (A.shape[0],))
        empty = ~A.any(axis=1)
        if (b[empty] != 0).any():
            raise ValueError("Affine is an empty set: a row of A is zero and its b is not; drop that row")
        A, b = A[~empty], b[~empty]
        given, sides = A, b
        length = np.abs(A).max(axis=1)  # equations in grams and in tonnes count alike
        A, b = A / length[:, None], b / length
        U, s, Vt = np.linalg.svd(A)
        rank = int(np.sum(s > max(A.shape) * np.finfo(float).eps * s[0]))
        self.basis_, self.null_ = Vt[:rank], Vt[rank:].T
        self.origin_ = self.basis_.T @ ((U[:, :rank].T @ b) / s[:rank])
        if (np.abs(A @ self.origin_ - b) > 1e-9 * (np.abs(A) @ np.abs(self.origin_) + np.abs(b))).any():
            raise ValueError("Affine is an empty set: its equations contradict each other; drop or relax some")
        # The equations keep the user's own rows and units, but only independent ones: their Jacobian has full rank.
        independent = np.sort(linalg.qr(A.T, mode="r", pivoting=True)[1][:rank])
        self.A_, self.b_ = given[independent], sides[independent]

    def equality(self, c: Array) -> Array:
        return c @ like(self.A_.T, c) - like(self.b_, c)

    def equality_jacobian(self, c: Array) -> Array:
        return constant_rows(self.A_, c)

    def scales(self, c: Array) -> Array:
        return abs(c) @ like(np.abs(self.A_.T), c) + like(np.abs(self.b_), c)

    def cones(self) -> list[Cone]:
        return [Cone("zero", self.A_, self.b_)]

    def curvature(self, c: Array, nu: Array) -> Array:
        return constant_rows(np.zeros((self.n_tasks_, self.n_tasks_)), c)

    def nearest(self, c: Array) -> Array:
        W, origin = like(self.basis_, c), like(self.origin_, c)
        return c - ((c - origin) @ array_namespace(c).matrix_transpose(W)) @ W

    def project(self, b: Array, a: Array) -> Array:
        xp = array_namespace(a, b)
        positive = xp.all(a > 0, axis=1)
        a_safe = xp.where(positive[:, None], a, xp.ones_like(a))
        c = self._schur(a_safe, positive_part_center(a, b))
        rest = xp.nonzero(~positive)[0]
        if rest.shape[0] == 0:
            return c
        a, b = take_rows(a, rest), take_rows(b, rest)
        start = self.nearest(positive_part_center(a, b))
        Z = like(self.null_, a)
        H = xp.matrix_transpose(Z) @ (a[:, :, None] * Z)
        return put_rows(c, rest, self._curved_step(start, H, b - a * start, xp.max(xp.abs(a), axis=1)))

    def project_form(self, Q: Array, w: Array) -> Array:
        """argmin over C of (c - w)' Q (c - w), Q (m, T, T) or (T, T); directions that Q ignores stay at nearest(w)."""
        xp = array_namespace(Q, w)
        start = self.nearest(w)
        Z = like(self.null_, w)
        if Q.ndim == 2:  # one matrix product: c = start + G (w - start), G = Z (Z' Q Z)^+ Z' Q
            G = like(_oblique(self.null_, to_numpy(Q)), w)
            return start + (w - start) @ xp.matrix_transpose(G)
        force = (Q @ (w - start)[:, :, None])[:, :, 0]
        return self._curved_step(start, xp.matrix_transpose(Z) @ (Q @ Z), force, xp.max(xp.abs(Q), axis=(1, 2)))

    def _schur(self, a: Array, w: Array) -> Array:
        xp = array_namespace(a)
        W, origin = like(self.basis_, a), like(self.origin_, a)
        D = xp.clip(xp.min(a, axis=1, keepdims=True) / a, 1e-14, 1.0)
        S = (W[None, :, :] * D[:, None, :]) @ xp.matrix_transpose(W)
        c = w
        for _ in range(2):  # the second pass is iterative refinement
            c = c + D * (solve_small(S, (origin - c) @ xp.matrix_transpose(W)) @ W)
        return self.nearest(c)

    def _curved_step(self, start: Array, H: Array, force: Array, size: Array) -> Array:
        """start + Z z, H z = Z' force, along the eigenvectors of H with positive curvature only."""
        xp = array_namespace(start)
        if self.null_.shape[1] == 0:
            return start
        Z = like(self.null_, start)
        values, V = xp.linalg.eigh((H + xp.matrix_transpose(H)) / 2)
        f = (xp.matrix_transpose(V) @ (force @ Z)[:, :, None])[:, :, 0]
        curved = values > FLAT * size[:, None]
        z = xp.where(curved, f / xp.where(curved, values, xp.ones_like(values)), xp.zeros_like(f))
        return start + ((V @ z[:, :, None])[:, :, 0]) @ xp.matrix_transpose(Z)

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        z = check_random_state(random_state).standard_normal((n, self.null_.shape[1]))
        return self.origin_ + z @ self.null_.T


def _oblique(Z: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Z (Z' Q Z)^+ Z' Q, along eigenvectors of positive curvature only, as `Affine._curved_step`."""
    H = Z.T @ Q @ Z
    values, V = np.linalg.eigh((H + H.T) / 2)
    curved = values > FLAT * np.abs(Q).max()
    V = Z @ V[:, curved]
    return (V / values[curved]) @ (V.T @ Q)


def take_columns(c: Array, idx: Any) -> Array:
    """c[:, idx] for a list of column numbers, in any array library."""
    return array_namespace(c).take(c, like_index(idx, c), axis=1)


def like_index(idx: Any, reference: Array) -> Array:
    """Row or column numbers as an index array that can travel with `reference`."""
    xp = array_namespace(reference)
    return xp.asarray(np.asarray(idx, dtype=np.int64), device=device_of(reference))


def constant_rows(matrix: np.ndarray, c: Array) -> Array:
    """The same matrix (P, T) for each of the m rows of c: (m, P, T)."""
    xp = array_namespace(c)
    return xp.broadcast_to(like(matrix, c)[None, :, :], (c.shape[0], *matrix.shape))
