"""Kernels of alternating least squares on plain arrays. They hold no lock, so several models fit on threads at once."""

from __future__ import annotations

import numpy as np
from numba import njit

FAST = {"reassoc", "contract", "nsz"}  # sums may be reordered; NaN and infinity keep their meaning


@njit(cache=True, nogil=True, fastmath=FAST)
def normal_equations(columns, targets, F, ridge, power, damping, A, b):
    """A = Z'Z + ridge (lower half), b = Z'y, for the rows z = (F[column], 1) of one user (or item) with n entries.

    The ridge is ridge[c] n^power[c] on column c of F and `damping` on the constant.
    """
    k, n = F.shape[1], columns.size
    A[:, :] = 0.0
    b[:] = 0.0
    for e in range(n):
        f = F[columns[e]]
        y = targets[e]
        for a in range(k):
            fa = f[a]
            b[a] += fa * y
            for c in range(a + 1):
                A[a, c] += fa * f[c]
            A[k, a] += fa
        b[k] += y
    for a in range(k):
        A[a, a] += ridge[a] * n ** power[a]
    A[k, k] += n + damping


@njit(cache=True, nogil=True, fastmath=FAST)
def cholesky(A):
    """The lower Cholesky factor of A, in place."""
    for j in range(A.shape[0]):
        for i in range(j):  # row j of the factor, left to right
            s = A[j, i]
            for c in range(i):
                s -= A[j, c] * A[i, c]
            A[j, i] = s / A[i, i]
        s = A[j, j]
        for c in range(j):
            s -= A[j, c] * A[j, c]
        A[j, j] = np.sqrt(s)


@njit(cache=True, nogil=True, fastmath=FAST)
def forward(L, x):
    """x <- L^-1 x."""
    for i in range(x.size):
        s = x[i]
        for c in range(i):
            s -= L[i, c] * x[c]
        x[i] = s / L[i, i]


@njit(cache=True, nogil=True, fastmath=FAST)
def backward(L, x):
    """x <- L^-T x."""
    for i in range(x.size - 1, -1, -1):
        x[i] /= L[i, i]
        xi = x[i]
        for c in range(i):
            x[c] -= xi * L[i, c]


@njit(cache=True, nogil=True, fastmath=FAST)
def half_step(indptr, indices, y, F, ridge, power, damping, out, bias):
    """For every row, the ridge regression of its entries y on the rows of F and a constant: out (n, k), bias (n,).

    A row without entries gets zeros.
    """
    k = F.shape[1]
    A, b = np.empty((k + 1, k + 1)), np.empty(k + 1)
    for u in range(indptr.size - 1):
        lo, hi = indptr[u], indptr[u + 1]
        if lo == hi:
            out[u] = 0.0
            bias[u] = 0.0
            continue
        normal_equations(indices[lo:hi], y[lo:hi], F, ridge, power, damping, A, b)
        cholesky(A)
        forward(A, b)
        backward(A, b)
        out[u] = b[:k]
        bias[u] = b[k]


@njit(cache=True, nogil=True, fastmath=FAST)
def leave_one_out(indptr, indices, y, Q, ridge, power, damping, out):
    """out[e] = q_i . p_u(-i) for every entry e = (u, i): the fold-in of u without that entry.

    With G = (Z'Z + ridge)^-1, w = G Z'y and h = z'Gz, the solution without the row z is w - G z (y - z'w) / (1 - h). The
    ridge stays that of all the user's ratings; it depends on how many they are, not on their values.
    """
    k = Q.shape[1]
    A, w, g = np.empty((k + 1, k + 1)), np.empty(k + 1), np.empty(k + 1)
    for u in range(indptr.size - 1):
        lo, hi = indptr[u], indptr[u + 1]
        if lo == hi:
            continue
        normal_equations(indices[lo:hi], y[lo:hi], Q, ridge, power, damping, A, w)
        cholesky(A)
        forward(A, w)
        backward(A, w)
        for e in range(lo, hi):
            q = Q[indices[e]]
            g[:k] = q
            g[k] = 1.0
            forward(A, g)
            backward(A, g)
            qw, qg = 0.0, 0.0
            for c in range(k):
                qw += q[c] * w[c]
                qg += q[c] * g[c]
            out[e] = qw - qg * (y[e] - qw - w[k]) / (1.0 - qg - g[k])
