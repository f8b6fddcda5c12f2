r"""Correlation matrices, {R = R' : R >= floor I, R_ii = 1}: nearest in the Frobenius norm, by Newton's method on the dual.

The nearest one to M is R = (M + diag y)_+, y the minimum of  1/2 |(M + diag y)_+|^2 - sum_i y_i  (Qi & Sun 2006). Its gradient
is diag R - 1, and with M + diag y = P diag(d) P' its second derivative is

    H_ij = sum_kl Omega_kl P_ik P_il P_jk P_jl,     Omega_kl = (d_k^+ - d_l^+) / (d_k - d_l),

which is regular at the solution: a handful of steps, where alternating projections (Higham 2002) take hundreds. The last step
scales the diagonal to exactly 1. R >= floor I is the same problem for (M - floor I) / (1 - floor).
"""

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lawful._array import Array, array_namespace, like
from lawful._small import add_diagonal, solve_many
from lawful.sets.base import ConstraintSet, check_width
from lawful.sets.cones import Cone
from lawful.sets.elementary import take_columns

STEPS, HALVINGS = 100, 40
ARMIJO = 1e-4


class CorrelationMatrices(ConstraintSet):
    """Symmetric n x n matrices with ones on the diagonal and eigenvalues >= floor, 0 <= floor < 1.

    T = n^2 entries (row-major) or, with `packed`, the n (n - 1) / 2 entries above the diagonal, row by row. n = None is read
    from the data. Both give the same nearest matrix: off the diagonal every entry counts twice or once, but all alike.

    >>> from lawful import CorrelationMatrices, project
    >>> project([[0.9, 0.9, -0.9]], CorrelationMatrices(packed=True)).round(3)
    array([[ 0.5,  0.5, -0.5]])
    """

    convex = True

    def __init__(self, n: int | None = None, packed: bool = False, floor: float = 0.0) -> None:
        self.n, self.packed, self.floor = n, packed, floor

    def _learn(self, Y: Array) -> None:
        T = self.n_tasks_
        inferred = (1 + isqrt(1 + 8 * T)) // 2 if self.packed else isqrt(T)
        n = inferred if self.n is None else int(self.n)
        check_width(f"CorrelationMatrices(n={n}, packed={self.packed})", n * (n - 1) // 2 if self.packed else n * n, T)
        if not 0 <= self.floor < 1:
            raise ValueError(f"CorrelationMatrices: floor must lie in [0, 1), got {self.floor!r}; 0.0 is usual")
        self.n_ = n

    def _matrix(self, c: Array) -> Array:
        """(m, n, n), as it is given: perhaps not symmetric."""
        xp, n = array_namespace(c), self.n_
        if not self.packed:
            return xp.reshape(c, (c.shape[0], n, n))
        place = np.zeros((self.n_tasks_, n, n))
        i, j = np.triu_indices(n, 1)
        place[np.arange(len(i)), i, j] = place[np.arange(len(i)), j, i] = 1.0
        return xp.reshape(c @ like(place.reshape(-1, n * n), c), (c.shape[0], n, n)) + like(np.eye(n), c)[None, :, :]

    def _flat(self, R: Array) -> Array:
        xp, n = array_namespace(R), self.n_
        full = xp.reshape(R, (R.shape[0], n * n))
        if not self.packed:
            return full
        i, j = np.triu_indices(n, 1)
        return take_columns(full, i * n + j)

    def nearest(self, c: Array) -> Array:
        xp = array_namespace(c)
        M = self._matrix(c)
        one = like(np.eye(self.n_), c)[None, :, :]
        floor = float(self.floor)
        M = ((M + xp.matrix_transpose(M)) / 2 - floor * one) / (1 - floor)
        R = _nearest(M)
        return self._flat(floor * one + (1 - floor) * R)

    def residual(self, c: Array) -> Array:
        """The largest of the asymmetry, of |R_ii - 1| and of floor - lambda_min; infinite where c is not finite."""
        xp = array_namespace(c)
        finite = xp.all(xp.isfinite(c), axis=1)
        M = self._matrix(xp.where(finite[:, None], c, xp.zeros_like(c)))
        other = xp.matrix_transpose(M)
        off = float(self.floor) - xp.min(xp.linalg.eigvalsh((M + other) / 2), axis=1)
        for part in (xp.max(xp.abs(M - other), axis=(1, 2)), xp.max(xp.abs(xp.linalg.diagonal(M) - 1), axis=1)):
            off = xp.where(part > off, part, off)
        return xp.where(finite, xp.where(off > 0, off, xp.zeros_like(off)), xp.full_like(off, xp.inf))

    def cones(self) -> list[Cone]:
        """R - floor I in the semidefinite cone; R_ii = 1 and R = R' where these are outputs."""
        n, T = self.n_, self.n_tasks_
        if self.packed:
            rows, level = [], []
            i, j = np.triu_indices(n, 1)
            for col in range(n):
                for row in range(col + 1):
                    rows.append(-(2**0.5) * ((i == row) & (j == col)))
                    level.append(1 - float(self.floor) if row == col else 0.0)
            return [Cone("semidefinite", np.array(rows, dtype=np.float64), np.array(level))]
        eye = np.eye(T).reshape(n, n, T)
        pairs = [(row, col) for col in range(n) for row in range(col + 1)]
        matrix = np.array([-(eye[r, c] if r == c else 2**-0.5 * (eye[r, c] + eye[c, r])) for r, c in pairs])
        offset = np.array([-float(self.floor) if r == c else 0.0 for r, c in pairs])
        ones = np.array([eye[k, k] for k in range(n)])
        skew = np.array([eye[r, c] - eye[c, r] for r, c in pairs if r != c]).reshape(-1, T)
        sides = np.concatenate([np.ones(n), np.zeros(len(skew))])
        return [Cone("semidefinite", matrix, offset), Cone("zero", np.concatenate([ones, skew]), sides)]

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Of Wishart matrices of random rank, so that the boundary is visited."""
        rng = check_random_state(random_state)
        B = rng.standard_normal((n, self.n_, self.n_))
        B *= np.arange(self.n_) < rng.randint(1, self.n_ + 1, (n, 1, 1))
        B /= np.sqrt(np.sum(B**2, axis=2, keepdims=True))
        R = B @ B.transpose(0, 2, 1)
        R[:, np.arange(self.n_), np.arange(self.n_)] = 1.0
        return self._flat(float(self.floor) * np.eye(self.n_) + (1 - float(self.floor)) * R)


def _nearest(M: Array) -> Array:
    """The nearest correlation matrix to each symmetric matrix of M (m, n, n)."""
    xp = array_namespace(M)
    m, n = M.shape[0], M.shape[1]
    y = 1 - xp.linalg.diagonal(M)
    size = 1 + xp.max(xp.abs(M), axis=(1, 2))
    eps = float(xp.finfo(M.dtype).eps)
    moving = size > 0
    d, P, R = _positive(M, y)
    for _ in range(STEPS if m else 0):
        slope = xp.linalg.diagonal(R) - 1
        value = xp.sum(R**2, axis=(1, 2)) / 2 - xp.sum(y, axis=1)
        rounding = 8 * eps * (xp.sum(R**2, axis=(1, 2)) + xp.sum(xp.abs(y), axis=1))
        off = xp.max(xp.abs(slope), axis=1)
        moving = moving & (off > 4 * eps * n * size)
        if not bool(xp.any(moving)):
            break
        # Where one eigenvalue is left H is as small as 1 / size: what makes it regular must be smaller.
        ridge = 1e-15 + 1e-4 * xp.where(off < 1, off, xp.ones_like(off)) / size
        H = add_diagonal(_second(d, P), ridge[:, None] + 0 * slope)
        step = -solve_many(H, slope[:, :, None])[:, :, 0]
        fall = xp.sum(step * slope, axis=1)
        length, open_ = xp.ones_like(off), moving
        new_y, new = y, (d, P, R)
        for _ in range(HALVINGS):
            trial_y = y + length[:, None] * step
            trial = _positive(M, trial_y)
            reached = xp.sum(trial[2] ** 2, axis=(1, 2)) / 2 - xp.sum(trial_y, axis=1)
            good = open_ & (reached <= value + ARMIJO * length * fall + rounding)
            new_y = xp.where(good[:, None], trial_y, new_y)
            new = tuple(xp.where(good[(...,) + (None,) * (a.ndim - 1)], a, b) for a, b in zip(trial, new))
            open_ = open_ & ~good
            if not bool(xp.any(open_)):
                break
            length = xp.where(open_, length / 2, length)
        moving = moving & ~open_  # no step is short enough: rounding is all that is left
        better = xp.max(xp.abs(xp.linalg.diagonal(new[2]) - 1), axis=1) < off
        last = off < 1e-10 * size  # near the end only what lowers the gradient counts: values are equal to rounding
        take = ~last | better
        moving = moving & take
        y = xp.where(take[:, None], new_y, y)
        d, P, R = (xp.where(take[(...,) + (None,) * (a.ndim - 1)], a, b) for a, b in zip(new, (d, P, R)))
    scale = xp.sqrt(xp.linalg.diagonal(R))
    scale = xp.where(scale > 0, scale, xp.ones_like(scale))
    R = R / (scale[:, :, None] * scale[:, None, :])
    one = like(np.eye(n), M)[None, :, :]
    return R * (1 - one) + one


def _positive(M: Array, y: Array) -> tuple[Array, Array, Array]:
    """Eigenvalues, eigenvectors and positive part of M + diag y."""
    xp = array_namespace(M)
    d, P = xp.linalg.eigh(add_diagonal(M, y))
    R = (P * xp.clip(d, 0.0, None)[:, None, :]) @ xp.matrix_transpose(P)
    return d, P, (R + xp.matrix_transpose(R)) / 2


def _second(d: Array, P: Array) -> Array:
    """H of the module's docstring, (m, n, n)."""
    xp = array_namespace(d)
    m, n = d.shape
    up = xp.clip(d, 0.0, None)
    apart = d[:, :, None] - d[:, None, :]
    equal = xp.abs(apart) <= 1e-14 * xp.max(xp.abs(d), axis=1)[:, None, None]
    same = xp.where((d > 0)[:, :, None], xp.ones_like(apart), xp.zeros_like(apart))
    omega = xp.where(equal, same, (up[:, :, None] - up[:, None, :]) / xp.where(equal, xp.ones_like(apart), apart))
    pairs = xp.reshape(P[:, :, None, :] * P[:, None, :, :], (m, n * n, n))
    return xp.reshape(xp.sum((pairs @ omega) * pairs, axis=2), (m, n, n))
