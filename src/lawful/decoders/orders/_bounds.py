"""Kernels behind the lower bounds: packed triangles for any number of items, dynamic programming for a few."""

from __future__ import annotations

import numpy as np
from numba import njit

UNITS = 2.0**30  # weights become integers: their sums are exact, so no rounding can lift the bound above the truth

PATIENCE = 32  # cycles that an arc against the order may try


@njit(cache=True, nogil=True)
def packed_triangles(A, order, top, visits):
    r"""A lower bound of the violated weight: 3-cycles that share no weight.

    Whatever the order, a cycle i -> r -> j -> i has a violated arc. So y units may be charged to it if they are taken from
    each of its arcs, and the units charged to all cycles together are a bound (a feasible dual of the triangle relaxation).
    At an optimum only cycles with one violated arc are charged; so for every arc (j, i) against `order` cycles through r
    between i and j are charged until its weight is spent. About `visits` (arc, r) pairs are looked at.
    """
    D = order.shape[0]
    scale = UNITS / top
    R = np.empty((D, D), np.int32)  # by position; only j > i is used; negative: against the order
    backward = np.empty(D, np.int32)
    for i in range(np.uint64(D)):
        row = A[order[i]]
        for j in range(i + np.uint64(1), np.uint64(D)):
            a = np.float64(row[order[j]]) * scale
            R[i, j] = np.int32(a)  # towards 0
    total = np.int64(0)
    for i in range(D - 2):
        n = 0
        for j in range(i + 1, D):
            backward[n] = j
            n += R[i, j] < 0
        width = D - i - 1
        budget = visits // D + 1
        lightest = np.int32(0)
        while n > 0 and n * PATIENCE > budget:  # too many for the budget: the heavy ones count for more
            mean = np.int64(0)
            for t in range(n):
                mean -= R[i, backward[t]]
            lightest = np.int32(mean // n)
            kept = 0
            for t in range(n):
                backward[kept] = backward[t]
                kept += -R[i, backward[t]] > lightest
            n = kept
        step = max(1, int(0.6180339887 * width))
        while np.gcd(step, width) != 1:
            step += 1
        r = i + 1 + width // 2
        for _ in range(width):
            if n == 0 or budget <= 0:
                break
            r += step
            if r >= D:
                r -= width
            have = R[i, r]
            if have <= lightest:
                budget -= 1
                continue
            budget -= n
            kept = 0
            for t in range(n):
                j = backward[t]
                left = -R[i, j]
                if j > r and have > 0 and R[r, j] > 0:
                    y = min(min(left, have), R[r, j])
                    total += y
                    have -= y
                    left -= y
                    R[r, j] -= y
                    R[i, j] += y
                backward[kept] = j
                kept += left > 0
            R[i, r] = have
            n = kept
    return total / scale


@njit(cache=True, nogil=True)
def violated_triangles(X, i, least, excess, second, third, upper):
    """0 <= X_ij + X_jk - X_ik <= 1 violated by more than `least` for i < j < k, first above, then below; returns how many.

    By how much, j, k and whether it is the upper bound are written to the arrays, which have room for all.
    """
    n, found = X.shape[0], 0
    for above in (True, False):
        for j in range(i + 1, n - 1):
            for k in range(j + 1, n):
                t = X[i, j] + X[j, k] - X[i, k]
                e = t - 1 if above else -t
                if e > least:
                    excess[found] = e
                    second[found] = j
                    third[found] = k
                    upper[found] = above
                    found += 1
    return found


@njit(cache=True, nogil=True)
def subset_order(A):
    """(best order, its violated weight) by dynamic programming over the sets of items that come first: 2^D D steps."""
    D = A.shape[0]
    size = 1 << D
    against = np.zeros((D, size), np.float64)  # against[p, m]: violated when the items of m precede p
    for p in range(D):
        for m in range(1, size):
            low = m & -m
            q = 0
            while (low >> q) != 1:
                q += 1
            a = np.float64(A[p, q])
            against[p, m] = against[p, m ^ low] + (a if a > 0 and q != p else 0.0)
    cost = np.full(size, np.inf)
    last = np.zeros(size, np.int64)
    cost[0] = 0.0
    for m in range(1, size):
        for p in range(D):
            if m >> p & 1:
                before = m ^ (1 << p)
                c = cost[before] + against[p, before]
                if c < cost[m]:
                    cost[m] = c
                    last[m] = p
    order = np.empty(D, np.int64)
    m = size - 1
    for k in range(D - 1, -1, -1):
        order[k] = last[m]
        m ^= 1 << last[m]
    return order, cost[size - 1]
