"""Kernels for orders of D items, on plain arrays. All release the interpreter lock, so threads may run them side by side.

A is skew: A[p, q] = -A[q, p] is what it pays to put p before q rather than q before p. With P_j the sum of A[p, .] over the
first j items of the order, moving item p from place k to the gap j lowers the violated weight by P_k - P_j. So the best
place of p is the lowest prefix sum of its row in the current order: one pass over contiguous memory.
"""

from __future__ import annotations

import numpy as np
from numba import njit

TILE = 32
FAST = {"nnan", "nsz", "reassoc", "contract", "arcp"}  # no NaN comes here; infinities neither


@njit(cache=True, nogil=True, fastmath={"nsz", "reassoc"})
def inspect(S):
    """(exactly skew and finite, largest |entry|), both off the diagonal. NaN is never equal to anything, so it is not skew."""
    D, zero, tile = np.uint64(S.shape[0]), np.uint64(0), np.uint64(TILE)  # unsigned: no test for indices from the end
    bad = 0
    top = abs(S[0, 0]) * 0
    for i0 in range(zero, D, tile):  # type: ignore[call-overload]  # strips of columns: their transposes stay in cache
        i1 = min(i0 + tile, D)
        for j in range(i0, D):
            for i in range(i0, min(i1, j)):  # type: ignore[call-overload]
                a = S[j, i]
                bad += a != -S[i, j]
                a = abs(a)
                top = a if a > top else top
    return bad == 0 and top < np.inf, np.float64(top)


@njit(cache=True, nogil=True)
def skew_part(S):
    """(S - S') / 2 in float64, without overflow."""
    D = S.shape[0]
    A = np.empty((D, D), np.float64)
    for i0 in range(0, D, TILE):
        i1 = min(i0 + TILE, D)
        for j0 in range(i0, D, TILE):
            j1 = min(j0 + TILE, D)
            for i in range(i0, i1):
                for j in range(max(j0, i), j1):
                    a = 0.5 * np.float64(S[i, j]) - 0.5 * np.float64(S[j, i])
                    A[i, j] = a
                    A[j, i] = -a
    return A


@njit(cache=True, nogil=True, fastmath=FAST)
def row_sums(A):
    """Borda scores of a skew matrix; the diagonal does not count."""
    D = A.shape[0]
    total = np.empty(D, np.float64)
    for p in range(D):
        s = 0.0
        for q in range(D):
            s += np.float64(A[p, q])
        total[p] = s - np.float64(A[p, p])
    return total


@njit(cache=True, nogil=True, fastmath=FAST)
def weights(A, positions):
    """(satisfied, violated): sums of |A[p, q]| over the pairs that the order respects, and over the others."""
    D = np.uint64(A.shape[0])
    good, bad = 0.0, 0.0
    for p in range(D):
        k = positions[p]
        g, b = 0.0, 0.0
        for q in range(p + np.uint64(1), D):
            a = np.float64(A[p, q])
            a = a if k < positions[q] else -a
            g += a if a > 0 else 0.0
            b += -a if a < 0 else 0.0
        good += g
        bad += b
    return good, bad


@njit(cache=True, nogil=True, fastmath=FAST)
def prefix_sums(row, order, out):
    """out[j] = sum of row[order[i]] over i < j; returns the lowest. Eight terms at a time, as a tree: adding has latency."""
    D = order.shape[0]
    s = 0.0
    lowest = 0.0
    for b in range(D // 8):
        i = np.uint64(8 * b)
        x0, x1, x2, x3 = row[order[i]], row[order[i + 1]], row[order[i + 2]], row[order[i + 3]]
        x4, x5, x6, x7 = row[order[i + 4]], row[order[i + 5]], row[order[i + 6]], row[order[i + 7]]
        x1, x3, x5, x7 = x1 + x0, x3 + x2, x5 + x4, x7 + x6
        x2, x3, x6, x7 = x2 + x1, x3 + x1, x6 + x5, x7 + x5
        x4, x5, x6, x7 = x4 + x3, x5 + x3, x6 + x3, x7 + x3
        out[i] = s
        out[i + 1] = s + x0
        out[i + 2] = s + x1
        out[i + 3] = s + x2
        out[i + 4] = s + x3
        out[i + 5] = s + x4
        out[i + 6] = s + x5
        out[i + 7] = s + x6
        lowest = min(lowest, s + min(min(min(x0, x1), min(x2, x3)), min(min(x4, x5), min(x6, x7))))
        s += x7
    for rest in range(8 * (D // 8), D):
        out[rest] = s
        s += row[order[rest]]
        lowest = min(lowest, s)
    out[D] = s
    return lowest


@njit(cache=True, nogil=True)
def move(order, k, j):
    """Take the item at place k and put it into the gap j (0 before the first, D after the last) of the same list."""
    p = order[k]
    if j <= k:
        for i in range(k, j, -1):
            order[i] = order[i - 1]
        order[j] = p
        return j
    for i in range(k, j - 1):
        order[i] = order[i + 1]
    order[j - 1] = p
    return j - 1


@njit(cache=True, nogil=True)
def nearest_gap(prefix, k, level, D):
    """The gap nearest to place k whose prefix sum is at most `level`; of two equally near the earlier."""
    for step in range(1, D + 1):
        if k - step >= 0 and prefix[k - step] <= level:
            return k - step
        if k + 1 + step <= D and prefix[k + 1 + step] <= level:
            return k + 1 + step
    return k


@njit(cache=True, nogil=True)
def insertion_order(S_skew, start_order, sweeps, tol):
    """Insertion sweeps over the items, in the order in which they start: (new order, violated weight saved, sweeps made).

    An item moves only if that saves more than `tol`; of several best gaps it takes the nearest. Stops after a sweep without
    a move, or after `sweeps` of them. S_skew: (D, D) skew, any float type; its diagonal must be 0. Changes no input.
    """
    D = start_order.shape[0]
    order = start_order.astype(np.uint32)  # unsigned: no test for indices from the end
    place = np.empty(D, np.int32)
    for k in range(D):
        place[order[k]] = k
    row, prefix = np.empty(D, np.float64), np.empty(D + 1, np.float64)
    saved = 0.0
    made = 0
    for _ in range(sweeps):
        made += 1
        moved = False
        turn = order.copy()
        for p in turn:
            k = place[p]
            for q in range(np.uint64(D)):  # read in memory's own order, then in the order's: twice as fast as at once
                row[q] = S_skew[p, q]
            lowest = prefix_sums(row, order, prefix)
            gain = prefix[k] - lowest
            if gain > tol:
                j = nearest_gap(prefix, k, lowest + 0.5 * tol, D)
                saved += prefix[k] - prefix[j]
                new = move(order, k, j)
                for i in range(min(k, new), max(k, new) + 1):
                    place[order[i]] = i
                moved = True
        if not moved:
            break
    return order.astype(np.int64), saved, made


@njit(cache=True, nogil=True)
def eades_order(A):
    """Eades, Lin and Smyth: sources to the left, sinks to the right, else the largest out - in weight to the left.

    Sources and sinks are judged by the arcs that are left (p -> q where A[p, q] > 0); ties go to the first index.
    """
    D = A.shape[0]
    score = np.zeros(D, np.float64)
    n_out = np.zeros(D, np.int64)
    n_in = np.zeros(D, np.int64)
    for p in range(D):
        for q in range(D):
            a = A[p, q]
            if q != p:
                score[p] += np.float64(a)
                n_out[p] += a > 0
                n_in[p] += a < 0
    left = np.ones(D, np.bool_)
    order = np.empty(D, np.int64)
    lo, hi = 0, D - 1
    while lo <= hi:
        pick, side = -1, 0
        for p in range(D):
            if left[p] and n_in[p] == 0:
                pick = p
                break
        if pick < 0:
            for p in range(D):
                if left[p] and n_out[p] == 0:
                    pick, side = p, 1
                    break
        if pick < 0:
            for p in range(D):
                if left[p] and (pick < 0 or score[p] > score[pick]):
                    pick = p
        left[pick] = False
        if side == 0:
            order[lo] = pick
            lo += 1
        else:
            order[hi] = pick
            hi -= 1
        for q in range(D):
            a = A[pick, q]
            score[q] += np.float64(a)
            n_in[q] -= a > 0
            n_out[q] -= a < 0
    return order
