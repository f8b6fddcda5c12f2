"""Compiled inner loops of `seeds`, for NumPy arrays: what would otherwise be most of the time of a decode."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def spread_out(points: np.ndarray, n: int) -> np.ndarray:
    """Farthest-point thinning: the indices of n points that cover the cloud evenly, the first point first."""
    count, T = points.shape
    chosen = np.zeros(n, dtype=np.int64)
    distance = np.full(count, np.inf)
    last = 0
    for k in range(1, n):
        far, farthest = -1.0, 0
        for i in range(count):
            d = 0.0
            for t in range(T):
                d += (points[i, t] - points[last, t]) ** 2
            if d < distance[i]:
                distance[i] = d
            if distance[i] > far:
                far, farthest = distance[i], i
        chosen[k] = last = farthest
    return chosen


@njit(cache=True, nogil=True, error_model="numpy")
def graph_minima(a: np.ndarray, b: np.ndarray, points: np.ndarray, near: np.ndarray, count: int) -> tuple:
    """For each row the cheapest local minima of sum_t a_t c_t^2 - 2 b_t c_t over a graph of points: (rows, columns).

    A point is a local minimum when none of its neighbours costs less. At most `count` a row, cheapest first, ties by index.
    """
    m, T = a.shape
    P, k = near.shape
    rows = np.empty(m * count, dtype=np.int64)
    columns = np.empty(m * count, dtype=np.int64)
    across = np.ascontiguousarray(points.T)
    cost = np.empty(P)
    best = np.empty(count)
    which = np.empty(count, dtype=np.int64)
    total = 0
    for i in range(m):
        cost[:] = 0.0
        for t in range(T):  # the inner loop runs over contiguous points: vector instructions
            quadratic, linear = a[i, t], 2.0 * b[i, t]
            for p in range(P):
                c = across[t, p]
                cost[p] += (quadratic * c - linear) * c
        found = 0
        for p in range(P):
            s = cost[p]
            around = s
            for j in range(k):
                around = min(around, cost[near[p, j]])
            if around < s or s != s or (found == count and not s < best[count - 1]):
                continue
            at = found if found < count else count - 1
            while at > 0 and s < best[at - 1]:
                best[at], which[at] = best[at - 1], which[at - 1]
                at -= 1
            best[at], which[at] = s, p
            if found < count:
                found += 1
        for j in range(found):
            rows[total], columns[total] = i, which[j]
            total += 1
    return rows[:total], columns[:total]
