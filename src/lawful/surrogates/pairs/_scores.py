"""Kernels that turn dual coefficients into the skew matrix S(x) of a query.

    v_t(x) = sum_i k(x, x_i) c_ti                               one number per observed task
    S_pq(x) = (f_p - f_q + v_t(x)) [n_t + 1]                    f the prior mean, S_qp = -S_pq, the bracket is optional

Eight queries are scored together: the coefficients, by far the largest array, are then read from memory once for all eight.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from lawful.surrogates.pairs.compiled import REASSOCIATE

LANES = 8  # queries scored together
TILE = 16  # numbers in a line of the cache, in single precision
U = np.uint64  # unsigned indices need no test for counting from the end, and then loops vectorise


@njit(nogil=True, cache=True, fastmath=REASSOCIATE)
def score_lanes(ptr, users, coef, first, last, shift, k, out):
    """out[:, t] = v_t for eight queries, first <= t < last; k (n, 8). `users` and `coef` start at observation `shift`."""
    total = np.empty(LANES)
    for t in range(U(first), U(last)):
        i = U(ptr[t] - shift)
        stop = U(ptr[t + U(1)] - shift)
        if (stop - i) % U(2):
            c, u = coef[i], U(users[i])
            for b in range(U(LANES)):
                total[b] = c * k[u, b]
            i += U(1)
        else:
            for b in range(U(LANES)):
                total[b] = 0.0
        while i < stop:  # two at a time: half as many trips of the sums through memory
            c, u = coef[i], U(users[i])
            d, w = coef[i + U(1)], U(users[i + U(1)])
            for b in range(U(LANES)):
                total[b] += c * k[u, b] + d * k[w, b]
            i += U(2)
        for b in range(U(LANES)):
            out[b, t] = total[b]


@njit(nogil=True, cache=True)
def score_one(ptr, users, coef, first, last, shift, k, out):
    """out[t] = v_t for one query, first <= t < last; k (n,)."""
    for t in range(U(first), U(last)):
        s = 0.0
        for i in range(U(ptr[t] - shift), U(ptr[t + U(1)] - shift)):
            s += coef[i] * k[U(users[i])]
        out[t] = s


@njit(nogil=True, cache=True)
def score_chosen(tasks, at, ptr, users, coef, shift, k, out):
    """out[:, at[j]] = v of task tasks[j] for every query; k (m, n)."""
    for j in range(tasks.size):
        for b in range(k.shape[0]):
            s = 0.0
            for i in range(ptr[tasks[j]] - shift, ptr[tasks[j] + 1] - shift):
                s += coef[i] * k[b, users[i]]
            out[b, at[j]] = s


@njit(nogil=True, cache=True)
def assemble(pair_start, partner, ptr, v, f, by_count, first, last, S):
    """Write S_pq and S_qp for first <= p < last (multiples of TILE, or D) and all q >= p.

    A strip of rows is mirrored while it is still in the cache.
    """
    D = U(pair_start.size - 1)
    for a in range(U(first), U(last), U(TILE)):
        z = min(a + U(TILE), U(last))
        for p in range(a, z):
            for q in range(p + U(1), D):
                S[p, q] = f[p] - f[q]
            for t in range(U(pair_start[p]), U(pair_start[p + U(1)])):
                other = U(partner[t])
                weight = float(ptr[t + U(1)] - ptr[t] + 1) if by_count else 1.0
                S[p, other] = (f[p] - f[other] + v[t]) * weight
            S[p, p] = 0.0
        for q in range(a + U(1), D):
            for p in range(a, z if z < q else q):
                S[q, p] = -S[p, q]


@njit(nogil=True, cache=True)
def find_tasks(pair_start, partner, low, high, out):
    """out[i] = the task of the pair (low[i], high[i]), low sorted; -1 if it was never observed."""
    where = np.full(pair_start.size - 1, -1, dtype=np.int64)
    done = -1
    for i in range(low.size):
        if low[i] != done:
            if done >= 0:
                for t in range(pair_start[done], pair_start[done + 1]):
                    where[partner[t]] = -1
            done = low[i]
            for t in range(pair_start[done], pair_start[done + 1]):
                where[partner[t]] = t
        out[i] = where[high[i]]


@njit(nogil=True, cache=True)
def count_among(items, local, pair_start, partner, ptr, pairs, observations):
    """For every chosen item: its tasks whose partner is chosen too (local >= 0), and their observations."""
    for i in range(items.size):
        for t in range(pair_start[items[i]], pair_start[items[i] + 1]):
            if local[partner[t]] >= 0:
                pairs[i] += 1
                observations[i] += ptr[t + 1] - ptr[t]


@njit(nogil=True, cache=True)
def copy_among(items, local, pair_start, partner, ptr, users, coef, partner_out, ptr_out, users_out, coef_out):
    """The tasks among the chosen items, renumbered, as a table of their own."""
    s = 0
    o = 0
    for p in items:
        for t in range(pair_start[p], pair_start[p + 1]):
            if local[partner[t]] >= 0:
                partner_out[s] = local[partner[t]]
                ptr_out[s] = o
                for i in range(ptr[t], ptr[t + 1]):
                    users_out[o] = users[i]
                    coef_out[o] = coef[i]
                    o += 1
                s += 1
    ptr_out[s] = o
