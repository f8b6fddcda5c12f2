r"""Compiled: Newton's method on the conditions of Karush, Kuhn and Tucker, in batches of LANES rows, with sparse factors.

    [ H  A' ] [ d  ]     [ -grad F ]
    [ A  -e ] [ nu ]  =  [   -g    ]      H = Hessian of F + nu . g,  A = Jacobian,  e a ridge for redundant equations

An inequality p takes part while nu_p + g_p / |A_p|^2 > 0 (the semismooth form of complementarity); elsewhere its row reads
nu_p = 0. Which entries are not zero, the order of elimination and the fill-in depend on the law alone, so the factor
K = L D L' is one fixed list of multiplications; each is done for LANES rows at once, which are next to each other in memory.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

LANES = 8
RIDGE = 1e-13


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate(table, op, a, b, const, term, weight, first):
    """All instructions of a tape (see `lawful.sets.laws.tape.OPS` for the codes)."""
    for k in range(len(op)):
        out = table[first + k]
        code = op[k]
        if code == 0:
            for r in range(LANES):
                out[r] = const[k]
            for q in range(a[k], b[k]):
                row, w = table[term[q]], weight[q]
                for r in range(LANES):
                    out[r] += w * row[r]
            continue
        u = table[a[k]]
        if code == 1:
            v = table[b[k]]
            for r in range(LANES):
                out[r] = u[r] * v[r]
        elif code == 2:
            v = table[b[k]]
            for r in range(LANES):
                out[r] = 0.0 if u[r] == 0.0 or v[r] == 0.0 else u[r] * v[r]
        elif code == 3:
            v = table[b[k]]
            for r in range(LANES):
                out[r] = u[r] / v[r] if v[r] != 0.0 else np.nan
        elif code == 4:
            v = table[b[k]]
            for r in range(LANES):
                out[r] = u[r] ** v[r] if u[r] > 0.0 else np.nan
        elif code == 5:
            v = table[b[k]]
            for r in range(LANES):
                out[r] = math.atan2(u[r] + 0.0, v[r] + 0.0)
        elif code == 6:
            for r in range(LANES):
                out[r] = u[r]
            for _ in range(b[k] - 1):
                for r in range(LANES):
                    out[r] *= u[r]
        else:
            for r in range(LANES):
                out[r] = unary(code, u[r])


@njit(cache=True, nogil=True, error_model="numpy")
def unary(code, v):
    if code == 7:
        return 1.0 / v if v != 0.0 else np.nan
    if code == 8:
        return math.sin(v)
    if code == 9:
        return math.cos(v)
    if code == 10:
        return math.tan(v)
    if code == 11:
        return math.asin(v) if abs(v) <= 1.0 else np.nan
    if code == 12:
        return math.acos(v) if abs(v) <= 1.0 else np.nan
    if code == 13:
        return math.atan(v)
    if code == 14:
        return math.sinh(v) if abs(v) < 700.0 else np.nan
    if code == 15:
        return math.cosh(v) if abs(v) < 700.0 else np.nan
    if code == 16:
        return math.tanh(v)
    if code == 17:
        return math.exp(v) if v < 700.0 else np.nan
    if code == 18:
        return math.log(v) if v > 0.0 else np.nan
    if code == 19:
        return math.sqrt(v) if v >= 0.0 else np.nan
    if code == 20:
        return abs(v)
    return 1.0 if v > 0.0 else -1.0 if v < 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def factorise(K, column, target, inverse, lane):
    """K = L D L' in place: entries 0 ... n-1 are D, then the columns of L D. `inverse` gets 1 / D."""
    n = len(column) - 1
    q = 0
    for j in range(n):
        for r in range(LANES):
            d = K[j, r]
            inverse[j, r] = 1.0 / d if d != 0.0 else 1e300
        for e in range(column[j], column[j + 1]):
            for r in range(LANES):
                lane[r] = K[e, r] * inverse[j, r]
            for f in range(e, column[j + 1]):
                to, entry = K[target[q]], K[f]
                q += 1
                for r in range(LANES):
                    to[r] -= entry[r] * lane[r]


@njit(cache=True, nogil=True, error_model="numpy")
def substitute(K, column, row, inverse, z):
    """K^-1 z in place, for z in the order of elimination."""
    n = len(column) - 1
    for j in range(n):
        for e in range(column[j], column[j + 1]):
            to, entry = z[row[e - n]], K[e]
            for r in range(LANES):
                to[r] -= entry[r] * inverse[j, r] * z[j, r]
    for j in range(n):
        for r in range(LANES):
            z[j, r] *= inverse[j, r]
    for j in range(n - 1, -1, -1):
        for e in range(column[j], column[j + 1]):
            down, entry = z[row[e - n]], K[e]
            for r in range(LANES):
                z[j, r] -= entry[r] * inverse[j, r] * down[r]


@njit(cache=True, nogil=True, error_model="numpy")
def bend(K, table, bends, at_bend, plain):
    """K + the Hessian of nu . g, for rows that are not to be plain."""
    for e in range(len(bends)):
        entry = table[bends[e, 2]]
        for r in range(LANES):
            if not plain[r]:
                K[at_bend[e], r] += entry[r]


@njit(cache=True, nogil=True, error_model="numpy")
def border(K, table, slopes, at_slope, at_relation, live, reach):
    """The rows of the relations: their gradients and a ridge, or nu_p = 0 where they take no part."""
    for e in range(len(slopes)):
        p, entry = slopes[e, 0], table[slopes[e, 2]]
        for r in range(LANES):
            if live[p, r]:
                K[at_slope[e], r] += entry[r]
    for p in range(len(at_relation)):
        for r in range(LANES):
            K[at_relation[p], r] = -RIDGE * reach[p, r] - 1e-300 if live[p, r] else -1.0


@njit(cache=True, nogil=True, error_model="numpy")
def positive_pivots(K, n, r):
    count = 0
    for j in range(n):
        if K[j, r] > 0.0:
            count += 1
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def local(
    start, w, X, q, q_at, n_equal, op, a, b, const, term, weight, first, values, slopes, bends,
    size, column, row, target, at_output, at_relation, at_q, at_slope, at_bend,
    h_size, h_column, h_target, h_at_q, h_at_bend, aside, vary, convex_everywhere, tol, landing, max_iter,
):  # fmt: skip
    """(c, nu, converged, iterations, one basin) of every row: Newton from `start`, then a look at the Lagrangian's Hessian.

    The first `landing` steps only go to the law. Only a strict local minimum counts as converged: the factor has as many
    positive pivots as there are outputs. F = sum over entries e of q_e (c - w)_t (c - w)_s, with q doubled (the Hessian of F);
    aside: directions of probes.
    """
    m, T = w.shape
    R = len(values)
    rows = first + len(op)
    found = np.empty((m, T))
    multipliers = np.zeros((m, R))
    converged = np.zeros(m, dtype=np.bool_)
    iterations = np.zeros(m, dtype=np.int64)
    single = np.zeros(m, dtype=np.bool_)
    table = np.zeros((rows, LANES))
    K, inverse, z = np.zeros((size, LANES)), np.zeros((T + R, LANES)), np.zeros((T + R, LANES))
    B, pivots = np.zeros((h_size, LANES)), np.zeros((T, LANES))
    lane = np.zeros(LANES)
    live = np.zeros((R, LANES), dtype=np.bool_)
    reach = np.zeros((R, LANES))
    curve = np.zeros((T, LANES))
    away, change = np.zeros((T, LANES)), np.zeros((T, LANES))
    first_bend = np.zeros((len(bends), LANES))
    c, nu = np.zeros((T, LANES)), np.zeros((R, LANES))
    done, dead = np.zeros(LANES, dtype=np.bool_), np.zeros(LANES, dtype=np.bool_)
    good, plain, nobody = np.zeros(LANES, dtype=np.bool_), np.zeros(LANES, dtype=np.bool_), np.zeros(LANES, dtype=np.bool_)
    for begin in range(0, m, LANES):
        count = min(LANES, m - begin)
        curve[:] = 0.0
        for r in range(LANES):
            i = begin + min(r, count - 1)
            done[r] = dead[r] = plain[r] = False
            for t in range(T):
                c[t, r] = start[i, t]
            for p in range(R):
                nu[p, r] = 0.0
            for j in range(X.shape[1]):
                table[T + R + j, r] = X[i, j]
            for e in range(len(q_at)):
                if q_at[e, 0] == q_at[e, 1]:
                    curve[q_at[e, 0], r] = q[i, e]
        for step in range(max_iter):
            for t in range(T):
                for r in range(LANES):
                    table[t, r] = c[t, r]
            for p in range(R):
                for r in range(LANES):
                    table[T + p, r] = nu[p, r]
            evaluate(table, op, a, b, const, term, weight, first)
            reach[:] = 0.0
            for e in range(len(slopes)):
                p, t, entry = slopes[e, 0], slopes[e, 1], table[slopes[e, 2]]
                for r in range(LANES):
                    reach[p, r] += entry[r] * entry[r] / curve[t, r]
            for p in range(R):
                for r in range(LANES):
                    size_of = reach[p, r] if reach[p, r] > 0.0 else 1.0
                    live[p, r] = p < n_equal or nu[p, r] + table[values[p], r] / size_of > 0.0
            idle = False
            for p in range(n_equal, R):
                for r in range(LANES):
                    if nu[p, r] != 0.0 and not live[p, r]:
                        nu[p, r] = table[T + p, r] = 0.0
                        idle = True
            if idle:  # an inequality that takes no part bends nothing
                evaluate(table, op, a, b, const, term, weight, first)
            K[:] = 0.0
            z[:] = 0.0
            for e in range(len(q_at)):
                for r in range(LANES):
                    i = begin + min(r, count - 1)
                    K[at_q[e], r] += q[i, e]
                    if step < landing:
                        continue
                    t, s = q_at[e, 0], q_at[e, 1]
                    z[at_output[t], r] -= q[i, e] * (c[s, r] - w[i, s])
                    if t != s:
                        z[at_output[s], r] -= q[i, e] * (c[t, r] - w[i, t])
            if step >= landing:
                bend(K, table, bends, at_bend, plain)
            border(K, table, slopes, at_slope, at_relation, live, reach)
            for p in range(R):
                for r in range(LANES):
                    if live[p, r]:
                        z[at_relation[p], r] = -table[values[p], r]
            factorise(K, column, target, inverse, lane)
            substitute(K, column, row, inverse, z)
            finished = True
            for r in range(count):
                if done[r] or dead[r]:
                    continue
                i = begin + r
                length = big = near = far = 0.0
                for t in range(T):
                    unit = math.sqrt(0.5 * curve[t, r])
                    length = max(length, abs(z[at_output[t], r]) * unit)
                    big = max(big, abs(c[t, r]) * unit)
                    far = max(far, abs(w[i, t]) * unit)
                    near = max(near, abs(c[t, r] - w[i, t]) * unit)
                finite = True
                for t in range(T + R):
                    if not math.isfinite(z[t, r]):
                        finite = False
                if not finite:
                    dead[r] = True
                    continue
                big += 1e-8 * far + 1e-300
                share = 1.0 if length <= 4.0 * big else 4.0 * big / length
                minimum = positive_pivots(K, T + R, r) == T
                same = minimum and not plain[r]
                if not minimum and not plain[r]:  # no minimum ahead: a step with the Hessian of F alone, from here
                    plain[r] = True
                    finished = False
                    continue
                plain[r] = False
                # Inequalities that cannot all hold pull with huge multipliers: begin again with the violated ones.
                torn = False
                for p in range(n_equal, R):
                    if abs(z[at_relation[p], r]) * math.sqrt(reach[p, r]) > 1e6 * (near + 1e-3 * big):
                        torn = True
                for p in range(R):
                    new = 0.0 if torn and p >= n_equal else z[at_relation[p], r]
                    if p >= n_equal and live[p, r] and new < 0.0:
                        same = False
                    # Contradictory relations also come to rest, but not on the law.
                    off = table[values[p], r] if p >= n_equal else abs(table[values[p], r])
                    if not (off <= 1e-6 * (near + 1e-3 * big) * math.sqrt(reach[p, r])):
                        same = False
                    nu[p, r] = new if step >= landing else 0.0
                for t in range(T):
                    c[t, r] += share * z[at_output[t], r]
                iterations[i] = step + 1
                if step >= landing and length <= tol * (near + 1e-3 * big) and same and not torn:
                    done[r] = True
                else:
                    finished = False
            if finished:
                break
        # Where could something better be? Where the Lagrangian is convex there is nothing.
        probes = 1 if convex_everywhere else 3 + len(aside)
        least = 0.0 if convex_everywhere else 0.5
        for r in range(LANES):
            good[r] = done[r]
        for k in range(probes):
            for r in range(LANES):
                i = begin + min(r, count - 1)
                radius = 0.0
                for t in range(T):
                    radius += (c[t, r] - w[i, t]) ** 2 * curve[t, r]
                radius = math.sqrt(radius)
                for t in range(T):
                    if k == 0:
                        away[t, r] = c[t, r]
                    elif k == 1:
                        away[t, r] = w[i, t]
                    elif k == 2:
                        away[t, r] = 2 * w[i, t] - c[t, r]
                    else:
                        away[t, r] = w[i, t] + radius * aside[k - 3, t] / math.sqrt(curve[t, r])
            for t in range(T):
                for r in range(LANES):
                    table[t, r] = away[t, r]
            for p in range(R):
                for r in range(LANES):
                    table[T + p, r] = nu[p, r]
            evaluate(table, op, a, b, const, term, weight, first)
            if not convex_everywhere:
                # The functions bend from place to place: L must be convex along them wherever that is looked at, and its
                # Hessian must not change by much, or a few looks say little.
                if k == 0:
                    for e in range(len(bends)):
                        for r in range(LANES):
                            first_bend[e, r] = table[bends[e, 2], r]
                else:
                    change[:] = 0.0
                    for e in range(len(bends)):
                        t, s = bends[e, 0], bends[e, 1]
                        for r in range(LANES):
                            moved = abs(table[bends[e, 2], r] - first_bend[e, r]) / math.sqrt(curve[t, r] * curve[s, r])
                            change[t, r] += moved
                            if t != s:
                                change[s, r] += moved
                    for t in range(T):
                        for r in range(LANES):
                            if not (change[t, r] <= vary):
                                good[r] = False
                K[:] = 0.0
                for e in range(len(q_at)):
                    for r in range(LANES):
                        K[at_q[e], r] += (1.0 - least) * q[begin + min(r, count - 1), e]
                bend(K, table, bends, at_bend, nobody)
                border(K, table, slopes, at_slope, at_relation, live, reach)
                factorise(K, column, target, inverse, lane)
                for r in range(LANES):
                    if positive_pivots(K, T + R, r) != T:
                        good[r] = False
                continue
            B[:] = 0.0
            for e in range(len(q_at)):
                for r in range(LANES):
                    B[h_at_q[e], r] += (1.0 - least) * q[begin + min(r, count - 1), e]
            bend(B, table, bends, h_at_bend, nobody)
            factorise(B, h_column, h_target, pivots, lane)
            for r in range(LANES):
                if positive_pivots(B, T, r) != T:
                    good[r] = False
        for r in range(count):
            i = begin + r
            converged[i], single[i] = done[r], good[r]
            for t in range(T):
                found[i, t] = c[t, r]
            for p in range(R):
                multipliers[i, p] = nu[p, r]
    return found, multipliers, converged, iterations, single
