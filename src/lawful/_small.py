"""Batched algebra for tiny dimensions: thousands of rows, a handful of outputs and equations.

Reductions over an axis of length 2 cost far more than the same sum written out, and a batched LAPACK call more still;
so up to `UNROLL` terms are written out, and beyond that the array library does the work.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from lawful._array import Array, array_namespace, device_of, put_rows

UNROLL = 4
WIDE = 128
SINGULAR = (np.linalg.LinAlgError, RuntimeError)  # torch's own error is a RuntimeError


def dot(a: Array, b: Array) -> Array:
    """sum_k a_ik b_ik: (m, k), (m, k) -> (m,)."""
    k = a.shape[1]
    if 0 < k <= UNROLL:
        return reduce(lambda x, y: x + y, (a[:, t] * b[:, t] for t in range(k)))
    return array_namespace(a).sum(a * b, axis=1)


def total(a: Array) -> Array:
    """sum_k a_ik: (m, k) -> (m,)."""
    k = a.shape[1]
    if 0 < k <= UNROLL:
        return reduce(lambda x, y: x + y, (a[:, t] for t in range(k)))
    return array_namespace(a).sum(a, axis=1)


def squares(A: Array) -> Array:
    """sum_t A_ipt^2: (m, R, T) -> (m, R)."""
    xp = array_namespace(A)
    if 0 < A.shape[1] <= UNROLL:
        return xp.stack([dot(A[:, p, :], A[:, p, :]) for p in range(A.shape[1])], axis=1)
    return xp.sum(A * A, axis=2)


def peak(a: Array) -> Array:
    """max_k |a_ik|: (m, k) -> (m,)."""
    xp = array_namespace(a)
    k = a.shape[1]
    if 0 < k <= UNROLL:
        return reduce(xp.maximum, (abs(a[:, t]) for t in range(k)))
    a = abs(a)
    if UNROLL < k <= WIDE:  # one half against the other: the array library's loop is then the long one
        while a.shape[1] > 1:
            half = (a.shape[1] + 1) // 2
            a = xp.maximum(a[:, :half], a[:, a.shape[1] - half :])
        return a[:, 0]
    return xp.max(a, axis=1)


def largest(A: Array) -> Array:
    """max |A_ipt|: (m, R, T) -> (m,)."""
    xp = array_namespace(A)
    if A.shape[1] * A.shape[2] <= 2 * UNROLL:
        return reduce(xp.maximum, (peak(A[:, p, :]) for p in range(A.shape[1])))
    return xp.max(abs(A), axis=(1, 2))


def mat_vec(A: Array, v: Array) -> Array:
    """A_i v_i: (m, R, T), (m, T) -> (m, R)."""
    if 0 < A.shape[1] * A.shape[2] <= 2 * UNROLL:
        return array_namespace(A).stack([dot(A[:, p, :], v) for p in range(A.shape[1])], axis=1)
    return (A @ v[:, :, None])[:, :, 0]


def vec_mat(nu: Array, A: Array) -> Array:
    """nu_i' A_i: (m, R), (m, R, T) -> (m, T)."""
    if 0 < A.shape[1] <= UNROLL:
        return reduce(lambda x, y: x + y, (nu[:, p, None] * A[:, p, :] for p in range(A.shape[1])))
    return (nu[:, None, :] @ A)[:, 0, :]


def product(A: Array, B: Array) -> Array:
    """A_i B_i': (m, R, T), (m, S, T) -> (m, R, S)."""
    xp = array_namespace(A)
    R, S, T = A.shape[1], B.shape[1], A.shape[2]
    if R * S <= UNROLL and T <= UNROLL:
        rows = [xp.stack([dot(A[:, p, :], B[:, q, :]) for q in range(S)], axis=1) for p in range(R)]
        return xp.stack(rows, axis=1)
    return A @ xp.matrix_transpose(B)


def solve_small(A: Array, b: Array) -> Array:
    """A_i^{-1} b_i: (m, k, k), (m, k) -> (m, k). Closed forms for k <= 2, LAPACK beyond."""
    xp = array_namespace(A, b)
    k = A.shape[-1]
    if k == 1:
        return b / A[:, 0, :]
    if k == 2:
        # Elimination, not Cramer's rule: with nearly dependent rows (redundant equations) the residual stays small.
        swap = abs(A[:, 1, 0]) > abs(A[:, 0, 0])
        (p, q, r), (u, v, w) = (
            [xp.where(swap, two, one) for one, two in ((A[:, i, 0], A[:, j, 0]), (A[:, i, 1], A[:, j, 1]), (b[:, i], b[:, j]))]
            for i, j in ((0, 1), (1, 0))
        )
        z1 = (w - u / p * r) / (v - u / p * q)
        return xp.stack([(r - q * z1) / p, z1], axis=1)
    return solve_many(A, b[:, :, None])[:, :, 0]


def solve_many(A: Array, B: Array) -> Array:
    """A_i^{-1} B_i: (m, k, k), (m, k, n) -> (m, k, n); a singular A_i gets a ridge at rounding level, its neighbours do not."""
    xp = array_namespace(A, B)
    try:
        return xp.linalg.solve(A, B)
    except SINGULAR:
        pass
    singular = ~(abs(xp.linalg.det(A)) > 0)
    size = xp.max(abs(A), axis=(1, 2))
    size = xp.where((size > 0) & xp.isfinite(size), size, xp.ones_like(size))
    for ridge in (1e-14, 1e-10, 1e-6):
        try:
            return xp.linalg.solve(add_diagonal(A, xp.where(singular, ridge * size, xp.zeros_like(size))[:, None]), B)
        except SINGULAR:
            singular = xp.ones_like(singular)  # a determinant that is only nearly 0
    return xp.full_like(B, xp.nan)


def positive_definite(A: Array) -> Array:
    """(m,) whether the symmetric A_i are positive definite: (m, k, k)."""
    xp = array_namespace(A)
    diagonal = xp.linalg.diagonal(A)
    # Gershgorin's discs settle most; then all the others at once, and one by one only if one of them is not.
    beside = xp.sum(abs(A), axis=2) - abs(diagonal)
    found = xp.all(diagonal > beside, axis=1)
    rows = xp.nonzero(~found & xp.all(diagonal > 0, axis=1) & xp.all(xp.isfinite(diagonal + beside), axis=1))[0]
    if rows.shape[0] == 0:
        return found
    rest = xp.take(A, rows, axis=0)
    try:
        xp.linalg.cholesky(rest)
        good = xp.ones(rows.shape[0], dtype=xp.bool, device=device_of(A))
    except SINGULAR:
        good = xp.linalg.eigvalsh(rest)[:, 0] > 0
    return put_rows(found, rows, good)


def graded_eigh(H: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of (m, T, T) positive semidefinite matrices, each eigenvalue to its own size.

    A precise output beside noisy ones makes a metric graded over many orders of magnitude. LAPACK's reduction loses the small
    eigenvalues of such a matrix, unless its diagonal falls: then, in practice, they keep all their digits.
    """
    xp = array_namespace(H)
    H = (H + xp.matrix_transpose(H)) / 2
    order = xp.argsort(-xp.linalg.diagonal(H), axis=1, stable=True)
    pick = xp.astype(order[:, :, None] == xp.arange(H.shape[1], device=device_of(H))[None, None, :], H.dtype)
    values, V = xp.linalg.eigh(pick @ H @ xp.matrix_transpose(pick))
    return values, xp.matrix_transpose(pick) @ V


def solve_rows(A: Array, B: Array) -> Array:
    """A_i^{-1} applied to each row of B_i, A symmetric: (m, k, k), (m, R, k) -> (m, R, k)."""
    xp = array_namespace(A, B)
    if A.shape[-1] <= 2:
        return xp.stack([solve_small(A, B[:, p, :]) for p in range(B.shape[1])], axis=1)
    return xp.matrix_transpose(solve_many(A, xp.matrix_transpose(B)))


def add_diagonal(A: Array, d: Array) -> Array:
    """A_i + diag(d_i): (m, k, k), (m, k) or (m, 1)."""
    return A + d[:, :, None] * array_namespace(A).eye(A.shape[-1], dtype=A.dtype, device=device_of(A))
