"""Compiled loops of rankings at scale: which pairs are frequent, their ridges in feature space, the skew matrix of candidates.

Item by item, as in `compiled`: walking the queries that rated p, and in each of them the ratings that follow p, meets every
observation of every pair (p, .) once. Nothing is held but the pairs that are kept.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FAST = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True)
def count_row(p, index, count, touched):
    """count[q] = n_pq for every q > p; the q are listed in `touched`. Returns how many; the caller sets them back to 0."""
    rows_of, col_ptr, position, row_ptr, items = index
    n = 0
    for a in range(col_ptr[p], col_ptr[p + 1]):
        for b in range(position[a] + 1, row_ptr[rows_of[a] + 1]):
            q = items[b]
            if count[q] == 0:
                touched[n] = q
                n += 1
            count[q] += 1
    return n


@njit(nogil=True, cache=True)
def histogram(first, last, index, out):
    """out[s] += the number of pairs (p, .), first <= p < last, with s observations; the last entry counts all larger ones."""
    D, top = index[1].size - 1, out.size - 1
    count, touched = np.zeros(D, np.int32), np.empty(D, np.int32)
    for p in range(first, last):
        for j in range(count_row(p, index, count, touched)):
            q = touched[j]
            out[min(count[q], top)] += 1
            count[q] = 0


@njit(nogil=True, cache=True)
def frequent(first, last, index, least, start, partner, sizes):
    """The partners q > p with n_pq >= least, sorted, and n_pq. With an empty `partner` only their number, in start[p]."""
    D = index[1].size - 1
    count, touched = np.zeros(D, np.int32), np.empty(D, np.int32)
    for p in range(first, last):
        n, kept = count_row(p, index, count, touched), 0
        for j in range(n):
            kept += count[touched[j]] >= least
        if partner.size == 0:
            start[p] = kept
        else:
            at = start[p]
            for q in np.sort(touched[:n]):
                if count[q] >= least:
                    partner[at], sizes[at] = q, count[q]
                    at += 1
        for j in range(n):
            count[touched[j]] = 0


@njit(nogil=True, cache=True, fastmath=FAST)
def fit_frequent(first, last, index, a, g, sign, Z, ridge, start, partner, sizes, coef):
    """beta_t = (Z_t'Z_t + r_t I)^-1 Z_t'y_t of the kept pairs (p, .), first <= p < last; r_t = ridge[0] + ridge[1] n_t."""
    rows_of, col_ptr, position, row_ptr, items = index
    r = Z.shape[1]
    slot = np.full(col_ptr.size - 1, -1, dtype=np.int64)
    outer = np.empty(r * (r + 1) // 2)
    L = np.empty((r, r))
    for p in range(first, last):
        t0, m = start[p], start[p + 1] - start[p]
        if m == 0:
            continue
        A, b = np.zeros((m, outer.size)), coef[t0 : t0 + m]
        b[:, :] = 0.0
        for j in range(m):
            slot[partner[t0 + j]] = j
        for e in range(col_ptr[p], col_ptr[p + 1]):
            u, here = rows_of[e], position[e]
            z = Z[u]
            at = 0
            for i in range(r):
                for j in range(i + 1):
                    outer[at] = z[i] * z[j]
                    at += 1
            for o in range(here + 1, row_ptr[u + 1]):
                j = slot[items[o]]
                if j >= 0:
                    y = a[here] - a[o]
                    if sign:
                        y = np.sign(y)
                    y -= g[here] - g[o]
                    row = A[j]
                    for i in range(outer.size):
                        row[i] += outer[i]
                    for i in range(r):
                        b[j, i] += y * z[i]
        for j in range(m):
            slot[partner[t0 + j]] = -1
            at = 0
            for i in range(r):
                for c in range(i + 1):
                    L[i, c] = A[j, at]
                    at += 1
                L[i, i] += ridge[0] + ridge[1] * sizes[t0 + j]
            solve_small(L, b[j])


@njit(nogil=True, cache=True, fastmath=FAST)
def solve_small(A, x):
    """x <- A^-1 x for a positive definite A given by its lower half, which is overwritten."""
    r = x.size
    for i in range(r):
        for j in range(i + 1):
            s = A[i, j]
            for c in range(j):
                s -= A[i, c] * A[j, c]
            if i == j:
                A[i, i] = np.sqrt(s)
            else:
                A[i, j] = s / A[j, j]
    for i in range(r):
        s = x[i]
        for c in range(i):
            s -= A[i, c] * x[c]
        x[i] = s / A[i, i]
    for i in range(r - 1, -1, -1):
        s = x[i]
        for c in range(i + 1, r):
            s -= A[c, i] * x[c]
        x[i] = s / A[i, i]


@njit(nogil=True, cache=True)
def find_pair(start, partner, p, q):
    """The place of the pair p < q among the kept ones, by bisection; -1 if it is not kept."""
    lo, hi = start[p], start[p + 1]
    end = hi
    while lo < hi:
        mid = (lo + hi) // 2
        if partner[mid] < q:
            lo = mid + 1
        else:
            hi = mid
    return lo if lo < end and partner[lo] == q else -1


@njit(nogil=True, cache=True)
def candidate_skew(items, f, z, start, partner, sizes, coef, rate, by_count, S):
    """S (c, c) of one query over its candidates: f_p - f_q, plus z . beta_pq where the pair is kept.

    `by_count`: times 1 + the number of queries that rated both, for a pair that is not kept the expected one, rate_p rate_q.
    """
    for i in range(items.size):
        S[i, i] = 0.0
        for j in range(i + 1, items.size):
            p, q, turned = items[i], items[j], 1.0
            if p > q:
                p, q, turned = q, p, -1.0
            s = f[i] - f[j]
            t = find_pair(start, partner, p, q)
            if t >= 0:
                v = 0.0
                for c in range(z.size):
                    v += z[c] * coef[t, c]
                s += turned * v
            if by_count:
                s *= 1.0 + (sizes[t] if t >= 0 else rate[p] * rate[q])
            S[i, j], S[j, i] = s, -s


@njit(nogil=True, cache=True)
def listed_scores(left, right, f_left, f_right, Z, start, partner, sizes, coef, rate, by_count, out):
    """out[i, j] = S of the pair (left[j], right[j]) for query i."""
    for j in range(left.size):
        p, q, turned = left[j], right[j], 1.0
        if p > q:
            p, q, turned = q, p, -1.0
        t = -1 if p == q else find_pair(start, partner, p, q)
        for i in range(Z.shape[0]):
            s = f_left[i, j] - f_right[i, j]
            if t >= 0:
                for c in range(Z.shape[1]):
                    s += turned * Z[i, c] * coef[t, c]
            if by_count:
                s *= 1.0 + (sizes[t] if t >= 0 else rate[p] * rate[q])
            out[i, j] = s


@njit(nogil=True, cache=True)
def entry_products(indptr, indices, A, B, out):
    """out[e] = A[u] . B[i] at every entry e = (u, i)."""
    for u in range(indptr.size - 1):
        for e in range(indptr[u], indptr[u + 1]):
            s = 0.0
            for c in range(A.shape[1]):
                s += A[u, c] * B[indices[e], c]
            out[e] = s
