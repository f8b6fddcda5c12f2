"""Kernels of the search for orders: local search by insertion, iterated local search, crossover. Plain arrays, no lock.

`gains` looks at all D(D-1) insertions at once: it walks down the order and keeps, for every item, its running prefix sum and
the lowest so far. That is one pass over contiguous rows, several times faster than D passes in the order's own sequence, and
most of a local search is finding out that hardly anything can be gained any more.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from lawful.decoders.orders._insertion import FAST, move, nearest_gap, prefix_sums, weights


@njit(cache=True, nogil=True)
def seed(state, number):
    """Start the generator (xorshift64*) of one thread; `state` holds one number."""
    x = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x2545F4914F6CDD1D)
    state[0] = x if x != 0 else np.uint64(88172645463325252)
    for _ in range(8):
        draw(state, 2)


@njit(cache=True, nogil=True)
def draw(state, n):
    """A number from 0 to n - 1."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return np.int64(((x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(33)) % np.uint64(n))


@njit(cache=True, nogil=True)
def shuffle(x, n, state):
    for i in range(n - 1, 0, -1):
        j = draw(state, i + 1)
        t = x[i]
        x[i] = x[j]
        x[j] = t


@njit(cache=True, nogil=True, fastmath=FAST)
def gains(A, order, prefix, lowest, gain):
    """gain[p]: what moving p to its best place would save, for all items at once."""
    D = np.uint64(order.shape[0])
    one, four = np.uint64(1), np.uint64(4)
    for p in range(D):
        prefix[p] = 0.0
        lowest[p] = 0.0
    i = np.uint64(0)
    while i + four <= D:  # four rows at a time, so that the running sums are read and written less often
        a, b, c, d = order[i], order[i + one], order[i + np.uint64(2)], order[i + np.uint64(3)]
        ra, rb, rc, rd = A[a], A[b], A[c], A[d]
        gain[a] = prefix[a]
        gain[b] = prefix[b] - ra[b]
        gain[c] = prefix[c] - ra[c] - rb[c]
        gain[d] = prefix[d] - ra[d] - rb[d] - rc[d]
        for p in range(D):
            s1 = prefix[p] - ra[p]  # A[p, a] = -A[a, p]
            s2 = s1 - rb[p]
            s3 = s2 - rc[p]
            s4 = s3 - rd[p]
            prefix[p] = s4
            lowest[p] = min(lowest[p], min(min(s1, s2), min(s3, s4)))
        i += four
    while i < D:
        a = order[i]
        ra = A[a]
        gain[a] = prefix[a]
        for p in range(D):
            s1 = prefix[p] - ra[p]
            prefix[p] = s1
            lowest[p] = min(lowest[p], s1)
        i += one
    for p in range(D):
        gain[p] -= lowest[p]


@njit(cache=True, nogil=True)
def relocate(order, place, k, j):
    new = move(order, k, j)
    for i in range(min(k, new), max(k, new) + 1):
        place[order[i]] = i
    return new


@njit(cache=True, nogil=True)
def descend(A, order, place, work, todo, state, tol):
    """Insertions until none saves more than `tol`; returns what they saved. work: (3, D + 1) floats, todo: (D,) items."""
    D = order.shape[0]
    saved = 0.0
    while True:
        gains(A, order, work[0], work[1], work[2])
        n = 0
        for p in range(D):
            todo[n] = p
            n += work[2, p] > tol
        if n == 0:
            return saved
        shuffle(todo, n, state)
        step = 0.0
        for t in range(n):
            p = todo[t]
            k = place[p]
            lowest = prefix_sums(A[p], order, work[0])
            if work[0, k] - lowest > tol:
                j = nearest_gap(work[0], k, lowest + 0.5 * tol, D)
                step += work[0, k] - work[0, j]
                relocate(order, place, k, j)
        saved += step
        if step <= tol:  # rounding: two ways of adding disagree
            return saved


@njit(cache=True, nogil=True)
def kick(A, order, place, state):
    """A few random insertions, wide ones or many short ones; returns what they saved (mostly less than nothing)."""
    D = order.shape[0]
    if draw(state, 2) == 0:
        count, reach = 1 + draw(state, 5), D
    else:
        count, reach = 5 + draw(state, 15), max(2, D // 5)
    saved = 0.0
    for _ in range(count):
        k = draw(state, D)
        j = min(max(k - reach + draw(state, 2 * reach + 1), 0), D)
        row = A[order[k]]
        for i in range(j, k):
            saved += row[order[i]]
        for i in range(k + 1, j):
            saved -= row[order[i]]
        relocate(order, place, k, j)
    return saved


@njit(cache=True, nogil=True)
def polish(A, order, state, kicks, tol):
    """Iterated local search in place: kick, descend, keep what is not worse. Returns the violated weight saved."""
    D = order.shape[0]
    work, todo = np.empty((3, D + 1), np.float64), np.empty(D, np.int64)
    place, best = np.empty(D, np.int64), np.empty(D, order.dtype)
    for k in range(D):
        place[order[k]] = k
    saved = descend(A, order, place, work, todo, state, tol)
    best[:] = order
    for _ in range(kicks):
        gain = kick(A, order, place, state) + descend(A, order, place, work, todo, state, tol)
        if gain >= -tol:
            saved += gain
            best[:] = order
        else:
            order[:] = best
            for k in range(D):
                place[order[k]] = k
    return saved


@njit(cache=True, nogil=True)
def cross(first, second, child, state):
    """Order-based crossover: about half of the places of `first` are filled anew, with the same items, as `second` has them."""
    D = first.shape[0]
    chosen = np.zeros(D, np.bool_)
    for i in range(D):
        chosen[i] = draw(state, 2) == 0
    k = 0
    for i in range(D):
        p = first[i]
        if chosen[p]:
            while not chosen[second[k]]:
                k += 1
            p = second[k]
            k += 1
        child[i] = p


@njit(cache=True, nogil=True)
def breed(A, pair, child, state, kicks, tol):
    """Fill `child` (D,) with a polished offspring of the two orders of `pair`."""
    cross(pair[0], pair[1], child, state)
    polish(A, child, state, kicks, tol)


@njit(cache=True, nogil=True)
def violated(A, order):
    """The weight of the pairs that an order violates."""
    D = order.shape[0]
    positions = np.empty(D, np.uint32)
    for k in range(D):
        positions[order[k]] = k
    return weights(A, positions)[1]


@njit(cache=True, nogil=True)
def scatter(A, child, state, kicks, tol):
    """Fill `child` with a polished random order."""
    D = child.shape[0]
    for i in range(D):
        child[i] = i
    shuffle(child, D, state)
    polish(A, child, state, kicks, tol)


@njit(cache=True, nogil=True)
def distance(first, second):
    """Sum over the items of how far apart the two orders place them."""
    D = first.shape[0]
    place = np.empty(D, np.int64)
    for i in range(D):
        place[first[i]] = i
    total = 0
    for i in range(D):
        total += abs(place[second[i]] - i)
    return total
