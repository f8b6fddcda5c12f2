"""Kernels of one classifier per pair of items: who compared the two, the machine itself, its answers to the queries that ask.

    hinge    min over f of 1/2 |f|^2 + C sum_i a_i max(0, 1 - s_i f(x_i)),   s = sign(r_p - r_q), a = |r_p - r_q|, no ties
    dual     max of sum alpha - 1/2 alpha' Q alpha,  0 <= alpha_i <= C a_i,  Q_ij = s_i s_j k(x_i, x_j)
    square   f(x) = k(x)' (K_t + n_t lam I)^{-1} y,                          y = r_p - r_q, ties with y = 0

The dual is climbed one coordinate after the other with the margins Q alpha at hand: a step costs one row of a block that fits
the cache. It ends when the duality gap is a small share of the objective, so that every single machine is certified.

Plain arrays in and out.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from lawful.surrogates.pairs.compiled import solve_task

FAST = {"reassoc", "contract", "nsz"}  # sums may be reordered; NaN and infinity keep their meaning


@njit(cache=True, nogil=True)
def comparisons(p, q, col_ptr, rows, values, ties, users, y):
    """Write the users who rated both items, ascending, and r_p - r_q; return how many. `ties`: whether equals are kept."""
    a, b, n = col_ptr[p], col_ptr[q], 0
    while a < col_ptr[p + 1] and b < col_ptr[q + 1]:
        if rows[a] < rows[b]:
            a += 1
        elif rows[b] < rows[a]:
            b += 1
        else:
            d = values[a] - values[b]
            if ties or d != 0.0:
                users[n] = rows[a]
                y[n] = d
                n += 1
            a += 1
            b += 1
    return n


@njit(cache=True, nogil=True, fastmath=FAST)
def hinge_dual(Q, box, alpha, margin, tol, max_iter):
    """alpha (n,) <- argmax of sum alpha - 1/2 alpha' Q alpha over 0 <= alpha <= box. Returns gap / objective and passes.

    Starts at the given alpha; `margin` is overwritten with Q alpha. The objective is that of the primal.
    """
    n = alpha.size
    for i in range(n):
        row = Q[i]
        s = 0.0
        for j in range(n):
            s += row[j] * alpha[j]
        margin[i] = s
    share = np.inf
    for sweep in range(max_iter + 1):
        norm, total, slack = 0.0, 0.0, 0.0
        for i in range(n):
            norm += alpha[i] * margin[i]
            total += alpha[i]
            slack += box[i] * max(0.0, 1.0 - margin[i])
        objective = 0.5 * norm + slack
        share = max(norm + slack - total, 0.0) / objective if objective > 0.0 else 0.0
        if share <= tol or sweep == max_iter:
            return share, sweep
        for i in range(n):
            row = Q[i]
            step = (1.0 - margin[i]) / row[i] if row[i] > 0.0 else np.inf  # a point that the kernel does not see
            new = min(max(alpha[i] + step, 0.0), box[i])
            step = new - alpha[i]
            if step != 0.0:
                alpha[i] = new
                for j in range(n):
                    margin[j] += step * row[j]
    return share, max_iter


@njit(cache=True, nogil=True)
def hinge_machine(K, users, y, C, tol, max_iter, Q, work):
    """y (n,) differences without ties <- coefficients c of f = sum c_i k(x_i, .). Returns gap / objective and passes."""
    n = y.size
    for i in range(n):
        row = K[users[i]]
        s = np.sign(y[i])
        for j in range(n):
            Q[i, j] = s * np.sign(y[j]) * row[users[j]]
    box, alpha, margin = work[0, :n], work[1, :n], work[2, :n]
    for i in range(n):
        box[i] = C * abs(y[i])
        alpha[i] = box[i]  # where a small C, or a machine of one example, ends
    share, sweeps = hinge_dual(Q[:n, :n], box, alpha, margin, tol, max_iter)
    for i in range(n):
        y[i] = np.sign(y[i]) * alpha[i]
    return share, sweeps


@njit(cache=True, nogil=True)
def answer(start, low, high, query, col_ptr, rows, values, K, cross, square, strength, tol, max_iter, scores):
    """scores[e] = f(x_query[e]) of the machine of pair t, for e in start[t] .. start[t + 1].

    A pair without examples answers 0. `square`: ridge machines with lam = strength, else hinge machines with C = strength.
    Returns the largest gap / objective, the most passes, and how many ridge systems could not be solved.
    """
    largest = 1
    for i in range(col_ptr.size - 1):
        largest = max(largest, col_ptr[i + 1] - col_ptr[i])
    users, y = np.empty(largest, dtype=np.int64), np.empty(largest)
    Q = np.empty((1, 1)) if square else np.empty((largest, largest))
    work, scratch = np.empty((3, largest)), np.empty(largest * (largest + 8) if square else 1)
    worst, most, bad = 0.0, 0, 0
    for t in range(low.size):
        n = comparisons(low[t], high[t], col_ptr, rows, values, square, users, y)
        if n == 0:
            scores[start[t] : start[t + 1]] = 0.0
            continue
        if square:
            if not solve_task(K, users[:n], y[:n], strength * n, scratch):
                bad += 1
        else:
            share, sweeps = hinge_machine(K, users[:n], y[:n], strength, tol, max_iter, Q, work)
            worst, most = max(worst, share), max(most, sweeps)
        for e in range(start[t], start[t + 1]):
            row = cross[query[e]]
            s = 0.0
            for i in range(n):
                s += row[users[i]] * y[i]
            scores[e] = s
    return worst, most, bad
