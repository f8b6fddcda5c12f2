"""Matrix sets: rotations, orthonormal frames, positive semidefinite matrices; outputs are entries, row by row.

The Euclidean projection is closed form (`nearest`: polar factor, spectral clipping), which is all the square loss
needs when the weights a_t(x) of a row are equal. With unequal weights there is no closed form: `tangent` and
`retract` serve the Riemannian decoder, and `nearest` with `convex` the projected gradient.

    Stiefel         {R (n, p) : R'R = I}           nearest(M) = U V',            M = U S V'
    Rotations       {R (n, n) : R'R = I, det 1}    nearest(M) = U diag(1, .., 1, det UV') V'
    Semidefinite    {S = S' : S >= floor I}        nearest(M) = V max(D, floor) V',   (M + M')/2 = V D V'
"""

from __future__ import annotations

from itertools import product
from math import isqrt
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lawful._array import Array, array_namespace, like
from lawful.sets.base import ConstraintSet, check_width, fraction
from lawful.sets.cones import Cone
from lawful.sets.elementary import take_columns


def _symmetric(M: Array) -> Array:
    return (M + array_namespace(M).matrix_transpose(M)) / 2


class Stiefel(ConstraintSet):
    """n x p matrices with orthonormal columns, T = n p, row-major; p = n gives all orthogonal matrices.

    >>> from lawful import Stiefel, project
    >>> c = project([[2.0, 0.0, 0.0, 3.0, 0.0, 0.0]], Stiefel(3, 2))
    >>> c + 0.0
    array([[1., 0., 0., 1., 0., 0.]])
    """

    constant_norm = True  # |c|^2 = p on the set, so equal weights of *any* sign give nearest(b)
    n: Any
    n_: int
    p_: int

    def __init__(self, n: int, p: int) -> None:
        self.n, self.p = n, p

    def _learn(self, Y: Array) -> None:
        if not 1 <= self.p <= self.n:
            raise ValueError(f"Stiefel: n={self.n} rows cannot hold p={self.p} columns; give 1 <= p <= n")
        check_width(f"Stiefel({self.n}, {self.p})", self.n * self.p, self.n_tasks_)
        self.n_, self.p_ = int(self.n), int(self.p)

    def _matrix(self, c: Array) -> Array:
        return array_namespace(c).reshape(c, (c.shape[0], self.n_, self.p_))

    def _flat(self, M: Array) -> Array:
        return array_namespace(M).reshape(M, (M.shape[0], self.n_ * self.p_))

    def nearest(self, c: Array) -> Array:
        U, _, Vh = array_namespace(c).linalg.svd(self._matrix(c), full_matrices=False)
        return self._flat(U @ Vh)

    def equality(self, c: Array) -> Array:
        """The upper triangle of R'R - I."""
        xp = array_namespace(c)
        R = self._matrix(c)
        gram = xp.matrix_transpose(R) @ R - like(np.eye(self.p_), c)
        i, j = np.triu_indices(self.p_)
        return take_columns(xp.reshape(gram, (c.shape[0], self.p_**2)), i * self.p_ + j)

    def equality_jacobian(self, c: Array) -> Array:
        """d (R'R)_ij / d R_kl = R_ki [l = j] + R_kj [l = i]."""
        xp = array_namespace(c)
        i, j = np.triu_indices(self.p_)
        columns = xp.matrix_transpose(self._matrix(c))  # (m, p, n)
        eye = np.eye(self.p_)
        left, right = take_columns(columns, i)[:, :, :, None], take_columns(columns, j)[:, :, :, None]
        J = left * like(eye[j], c)[None, :, None, :] + right * like(eye[i], c)[None, :, None, :]
        return xp.reshape(J, (c.shape[0], len(i), self.n_ * self.p_))

    def curvature(self, c: Array, nu: Array) -> Array:
        """sum_p nu_p Hess equality_p = I_n (x) (N + N'), N the upper triangular matrix of the multipliers."""
        xp = array_namespace(c)
        n, p = self.n_, self.p_
        i, j = np.triu_indices(p)
        place = np.zeros((len(i), p * p))
        place[np.arange(len(i)), i * p + j] = 1.0
        N = xp.reshape(nu @ like(place, c), (c.shape[0], p, p))
        inner = (N + xp.matrix_transpose(N))[:, None, :, None, :]
        return xp.reshape(like(np.eye(n), c)[None, :, None, :, None] * inner, (c.shape[0], n * p, n * p))

    def scales(self, c: Array) -> Array:
        """Columns have length 1."""
        return array_namespace(c).ones_like(self.equality(c))

    def tangent(self, c: Array, v: Array) -> Array:
        """v - R sym(R'v)."""
        R, V = self._matrix(c), self._matrix(v)
        return self._flat(V - R @ _symmetric(array_namespace(c).matrix_transpose(R) @ V))

    def retract(self, c: Array, v: Array) -> Array:
        """The polar retraction: it stays in the component of R, since R + v has the orientation of R."""
        return self.nearest(c + v)

    def turned(self, c: Array) -> list[Array]:
        """nearest(c) with pairs of its singular directions turned round: U D V', D = diag(+-1) with two entries -1."""
        U, _, Vh = array_namespace(c).linalg.svd(self._matrix(c), full_matrices=False)
        pairs = [(i, j) for j in range(self.p_) for i in range(j)]
        signs = [np.where(np.isin(np.arange(self.p_), pair), -1.0, 1.0) for pair in pairs]
        return [self.nearest(self._flat((U * like(d, c)[None, None, :]) @ Vh)) for d in signs]

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Uniform (Haar): the polar factor of a Gaussian matrix."""
        return self.nearest(check_random_state(random_state).standard_normal((n, self.n_ * self.p_)))


class Rotations(Stiefel):
    """n x n rotation matrices, T = n^2, row-major; n = None is read from the data.

    >>> from lawful import Rotations, project
    >>> project([[0.0, -2.0, 3.0, 0.0]], Rotations()) + 0.0
    array([[ 0., -1.,  1.,  0.]])
    """

    def __init__(self, n: int | None = None) -> None:
        self.n = n

    def _learn(self, Y: Array) -> None:
        n = isqrt(self.n_tasks_) if self.n is None else int(self.n)
        check_width(f"Rotations({n})", n * n, self.n_tasks_)
        self.n_ = self.p_ = n

    def residual(self, c: Array) -> Array:
        """max |R'R - I|, and |det R - 1|: reflections satisfy the equations but are not rotations."""
        xp = array_namespace(c)
        return xp.maximum(xp.max(xp.abs(self.equality(c)), axis=1), xp.abs(xp.linalg.det(self._matrix(c)) - 1))

    def inequality(self, c: Array) -> Array:
        """1/2 - det R: det R = 1 would repeat what R'R = I says already, but must not be -1."""
        return 0.5 - array_namespace(c).linalg.det(self._matrix(c))[:, None]

    def inequality_jacobian(self, c: Array) -> Array:
        """Minus the matrix of cofactors."""
        xp = array_namespace(c)
        R, n = self._matrix(c), self.n_
        keep = [[k for k in range(n) if k != i] for i in range(n)]
        cofactors = [
            (-1.0) ** (i + j) * xp.linalg.det(take_columns(xp.matrix_transpose(take_columns(R, keep[i])), keep[j]))
            if n > 1
            else xp.ones_like(c[:, 0])
            for i in range(n)
            for j in range(n)
        ]
        return -xp.stack(cofactors, axis=1)[:, None, :]

    def curvature(self, c: Array, nu: Array) -> Array:
        """That of the equations, minus nu_last times the Hessian of the determinant: its minors of order n - 2."""
        xp = array_namespace(c)
        R, n = self._matrix(c), self.n_
        total = super().curvature(c, nu[:, :-1])
        if n == 1 or not bool(xp.any(nu[:, -1] != 0)):
            return total
        columns = [xp.zeros_like(c[:, 0])] * n**4
        for i, k, j, l in product(range(n), repeat=4):
            if i == k or j == l:
                continue
            sign = (-1.0) ** (i + j + (k - (k > i)) + (l - (l > j)))
            rows, cols = ([t for t in range(n) if t not in pair] for pair in ((i, k), (j, l)))
            minor = take_columns(xp.matrix_transpose(take_columns(R, rows)), cols)
            columns[((i * n + j) * n + k) * n + l] = sign * (xp.linalg.det(minor) if rows else xp.ones_like(c[:, 0]))
        return total - nu[:, -1, None, None] * xp.reshape(xp.stack(columns, axis=1), (c.shape[0], n * n, n * n))

    def scales(self, c: Array) -> Array:
        xp = array_namespace(c)
        return xp.concat([super().scales(c), xp.ones_like(c[:, :1])], axis=1)

    def nearest(self, c: Array) -> Array:
        xp = array_namespace(c)
        U, _, Vh = xp.linalg.svd(self._matrix(c), full_matrices=False)
        last = like(np.arange(self.n_) == self.n_ - 1, c)
        flip = xp.linalg.det(U @ Vh)[:, None] < 0
        signs = xp.where(flip, 1 - 2 * last, xp.ones_like(last))
        return self._flat((U * signs[:, None, :]) @ Vh)


class PositiveSemidefinite(ConstraintSet):
    """Symmetric n x n matrices with eigenvalues >= floor.

    T = n^2 entries (row-major) or, with `packed`, the n(n+1)/2 entries of the upper triangle, row by row.
    n = None is read from the data.

    >>> from lawful import PositiveSemidefinite, project
    >>> project([[1.0, 2.0, 2.0, 1.0]], PositiveSemidefinite()).round(6)
    array([[1.5, 1.5, 1.5, 1.5]])
    """

    convex = True
    unbounded = True

    def __init__(self, n: int | None = None, packed: bool = False, floor: float = 0.0) -> None:
        self.n, self.packed, self.floor = n, packed, floor

    def _learn(self, Y: Array) -> None:
        T = self.n_tasks_
        inferred = (isqrt(8 * T + 1) - 1) // 2 if self.packed else isqrt(T)
        n = inferred if self.n is None else int(self.n)
        expected = n * (n + 1) // 2 if self.packed else n * n
        check_width(f"PositiveSemidefinite(n={n}, packed={self.packed})", expected, T)
        if not np.isfinite(self.floor):
            raise ValueError(f"PositiveSemidefinite: floor must be finite, got {self.floor!r}; 0.0 is usual")
        self.n_ = n

    def _matrix(self, c: Array) -> Array:
        n = self.n_
        if self.packed:
            c = take_columns(c, self._flat_places().reshape(-1))
        return array_namespace(c).reshape(c, (c.shape[0], n, n))

    def _flat(self, M: Array) -> Array:
        n = self.n_
        full = array_namespace(M).reshape(M, (M.shape[0], n * n))
        if not self.packed:
            return full
        i, j = np.triu_indices(n)
        return take_columns(full, i * n + j)

    def _clip(self, M: Array) -> Array:
        xp = array_namespace(M)
        values, V = xp.linalg.eigh(_symmetric(M))
        return _symmetric((V * xp.clip(values, self.floor, None)[:, None, :]) @ xp.matrix_transpose(V))

    @property
    def natural(self) -> np.ndarray:
        """(T,) weights in which the projection is one step, `naturally_nearest`: the Frobenius norm counts both triangles."""
        if not self.packed:
            return np.ones(self.n_tasks_)
        i, j = np.triu_indices(self.n_)
        return np.where(i == j, 1.0, 2.0)

    def naturally_nearest(self, c: Array) -> Array:
        return self._flat(self._clip(self._matrix(c)))

    def nearest(self, c: Array) -> Array:
        """Spectral clipping; packed entries need a short iteration on top.

        The packed distance counts an off-diagonal entry once, the Frobenius norm twice, so clipping is not the
        projection. Its gradient in the Frobenius metric is H * (S - M), H = 1 on the diagonal and 1/2 off it: a
        condition number of 2, and accelerated projected gradient gains a digit every two steps.
        """
        M = self._matrix(c)
        S = self._clip(M)
        if not self.packed or c.shape[0] == 0:
            return self._flat(S)
        xp = array_namespace(c)
        H = like((np.ones((self.n_, self.n_)) + np.eye(self.n_)) / 2, c)
        momentum = (2**0.5 - 1) / (2**0.5 + 1)
        ahead, size = S, xp.max(xp.abs(M), axis=(1, 2)) + abs(self.floor)
        moving = xp.ones_like(size, dtype=xp.bool)
        for _ in range(100):
            new = xp.where(moving[:, None, None], self._clip(ahead - H * (ahead - M)), S)
            change = xp.max(xp.abs(new - S), axis=(1, 2))
            ahead, S = new + momentum * (new - S), new
            moving = moving & (change > 1e-15 * size)  # a row goes on for its own sake, never for that of its neighbours
            if not bool(xp.any(moving)):
                break
        return self._flat(S)

    def residual(self, c: Array) -> Array:
        """The larger of the asymmetry and of floor - lambda_min; infinite where c is not finite."""
        xp = array_namespace(c)
        finite = xp.all(xp.isfinite(c), axis=1)
        M = self._matrix(xp.where(finite[:, None], c, xp.zeros_like(c)))
        skew = xp.max(xp.abs(M - xp.matrix_transpose(M)), axis=(1, 2))
        off = xp.maximum(skew, self.floor - xp.min(xp.linalg.eigvalsh(_symmetric(M)), axis=1))
        return xp.where(finite, xp.where(off > 0, off, xp.zeros_like(off)), xp.full_like(off, xp.inf))

    def relative(self, c: Array) -> Array:
        """As a fraction of the largest entry."""
        xp = array_namespace(c)
        off, size = self.residual(c), xp.maximum(xp.max(abs(c), axis=1), xp.full_like(c[:, 0], abs(self.floor)))
        return xp.where(xp.isfinite(off), fraction(off, size), off)

    def cones(self) -> list[Cone]:
        """S - floor I in the semidefinite cone, and S = S' where both triangles are outputs."""
        n, T = self.n_, self.n_tasks_
        places = self._flat_places()
        rows, offset = [], []
        for j in range(n):
            for i in range(j + 1):
                row = np.zeros(T)
                for entry in (places[i, j], places[j, i]):
                    row[entry] += 0.5 * (1.0 if i == j else 2**0.5)
                rows.append(-row)
                offset.append(-float(self.floor) if i == j else 0.0)
        cones = [Cone("semidefinite", np.array(rows), np.array(offset))]
        if not self.packed and n > 1:
            above, below = np.triu_indices(n, 1)
            skew, each = np.zeros((len(above), T)), np.arange(len(above))
            skew[each, places[above, below]], skew[each, places[below, above]] = 1.0, -1.0
            cones.append(Cone("zero", skew, np.zeros(len(above))))
        return cones

    def _flat_places(self) -> np.ndarray:
        """(n, n) which output holds each entry."""
        if not self.packed:
            return np.arange(self.n_**2).reshape(self.n_, self.n_)
        where = np.zeros((self.n_, self.n_), dtype=np.int64)
        where[np.triu_indices(self.n_)] = np.arange(self.n_ * (self.n_ + 1) // 2)
        return np.maximum(where, where.T)

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """floor I plus a Wishart matrix of random rank, so that the boundary is visited."""
        rng = check_random_state(random_state)
        B = rng.standard_normal((n, self.n_, self.n_))
        B *= np.arange(self.n_) < rng.randint(1, self.n_ + 1, (n, 1, 1))
        return self._flat(B @ B.transpose(0, 2, 1) / self.n_ + self.floor * np.eye(self.n_))
