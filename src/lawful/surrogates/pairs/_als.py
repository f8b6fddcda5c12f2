"""Kernels of alternating least squares on plain arrays. They hold no lock, so several models fit on threads at once.

Rows that follow each other with the same columns (complete tables have no others) share one matrix and its factorisation.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FAST = {"reassoc", "contract", "nsz"}  # sums may be reordered; NaN and infinity keep their meaning


@njit(cache=True, nogil=True)
def same(a, b):
    """Whether two rows have the same columns."""
    e = 0
    while e < min(a.size, b.size) and a[e] == b[e]:
        e += 1
    return e == a.size and e == b.size


@njit(cache=True, nogil=True, fastmath=FAST)
def normal_matrix(columns, F, ridge, power, damping, A):
    """A = Z'Z + ridge (lower half) for the rows z = (F[column], 1) of one user (or item) with n entries.

    The ridge is ridge[c] n^power[c] on column c of F and `damping` on the constant.
    """
    k, n = F.shape[1], columns.size
    A[:, :] = 0.0
    e = 0
    while e + 4 <= n:  # four at a time: a quarter of the trips of A through memory
        f0, f1, f2, f3 = F[columns[e]], F[columns[e + 1]], F[columns[e + 2]], F[columns[e + 3]]
        for a in range(k):
            a0, a1, a2, a3 = f0[a], f1[a], f2[a], f3[a]
            for c in range(a + 1):
                A[a, c] += a0 * f0[c] + a1 * f1[c] + a2 * f2[c] + a3 * f3[c]
            A[k, a] += a0 + a1 + a2 + a3
        e += 4
    for rest in range(e, n):
        f = F[columns[rest]]
        for a in range(k):
            for c in range(a + 1):
                A[a, c] += f[a] * f[c]
            A[k, a] += f[a]
    for a in range(k):
        A[a, a] += ridge[a] * n ** power[a]
    A[k, k] += n + damping


@njit(cache=True, nogil=True, fastmath=FAST)
def right_side(columns, targets, F, b):
    """b = Z'y for the same rows."""
    k = F.shape[1]
    b[:] = 0.0
    for e in range(columns.size):
        f = F[columns[e]]
        y = targets[e]
        for a in range(k):
            b[a] += f[a] * y
        b[k] += y


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
    factored = indices[:0]  # the columns whose factorisation A holds
    for u in range(indptr.size - 1):
        lo, hi = indptr[u], indptr[u + 1]
        if lo == hi:
            out[u] = 0.0
            bias[u] = 0.0
            continue
        right_side(indices[lo:hi], y[lo:hi], F, b)
        if not same(factored, indices[lo:hi]):
            normal_matrix(indices[lo:hi], F, ridge, power, damping, A)
            cholesky(A)
            factored = indices[lo:hi]
        forward(A, b)
        backward(A, b)
        out[u] = b[:k]
        bias[u] = b[k]


@njit(cache=True, nogil=True, fastmath=FAST)
def leave_one_out(indptr, indices, y, Q, ridge, power, damping, whole, out):
    """out[e] = q_i . p_u(-i) for every entry e = (u, i): the fold-in of u without that entry; `whole` adds its constant.

    With G = (Z'Z + ridge)^-1, w = G Z'y and h = z'Gz, the solution without the row z is w - G z (y - z'w) / (1 - h). The
    ridge stays that of all the user's ratings; it depends on how many they are, not on their values.
    """
    k = Q.shape[1]
    A, w, g = np.empty((k + 1, k + 1)), np.empty(k + 1), np.empty(k + 1)
    factored = indices[:0]
    longest = 0
    for u in range(indptr.size - 1):
        longest = max(longest, indptr[u + 1] - indptr[u])
    gain, hat = np.empty(longest), np.empty(longest)  # q'Gz and z'Gz of the entries of the row that is factored
    for u in range(indptr.size - 1):
        lo, hi = indptr[u], indptr[u + 1]
        if lo == hi:
            continue
        right_side(indices[lo:hi], y[lo:hi], Q, w)
        if not same(factored, indices[lo:hi]):
            normal_matrix(indices[lo:hi], Q, ridge, power, damping, A)
            cholesky(A)
            factored = indices[lo:hi]
            for e in range(lo, hi):
                q = Q[indices[e]]
                g[:k] = q
                g[k] = 1.0
                forward(A, g)
                backward(A, g)
                s = 0.0
                for c in range(k):
                    s += q[c] * g[c]
                gain[e - lo], hat[e - lo] = s, s + g[k]
        forward(A, w)
        backward(A, w)
        for e in range(lo, hi):
            q = Q[indices[e]]
            qw = 0.0
            for c in range(k):
                qw += q[c] * w[c]
            step = (y[e] - qw - w[k]) / (1.0 - hat[e - lo])
            out[e] = qw - gain[e - lo] * step
            if whole:
                out[e] += w[k] - (hat[e - lo] - gain[e - lo]) * step
