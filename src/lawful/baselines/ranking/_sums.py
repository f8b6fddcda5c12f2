"""Sums over the pairs of rated items of each query, on plain arrays; no pair is ever stored.

Entries (ratings) are sorted by query, then by rating; `level` numbers the distinct ratings of a query from 0, `below[e]` counts
the entries of the query that are rated lower than e. A pair is (p, q) with r_p > r_q.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FAST = {"reassoc", "contract", "nsz"}  # sums may be reordered; NaN and infinity keep their meaning
RANGE = 600.0  # scores of a query further apart than this overflow in products of exponentials


@njit(cache=True, nogil=True)
def _add(tree, level, a, b, c, d):
    """Add (a, b, c, d) at a level of a Fenwick tree (L + 1, 4)."""
    i = level + 1
    while i < tree.shape[0]:
        tree[i, 0] += a
        tree[i, 1] += b
        tree[i, 2] += c
        tree[i, 3] += d
        i += i & -i


@njit(cache=True, nogil=True)
def _below(tree, level, out):
    """out = the sums over all levels under `level`."""
    out[:] = 0.0
    i = level
    while i > 0:
        for k in range(4):
            out[k] += tree[i, k]
        i -= i & -i


@njit(cache=True, nogil=True)
def plus_sums(indptr, r, level, omega, t, c, mu, weighted, order, grad):
    """Sums of omega a_pq psi(z_pq) over pairs, z_pq = c + t_p - t_q, psi the positive part smoothed on [0, mu].

        psi(z) = 0 (z <= 0), z^2 / (2 mu) (0 < z < mu), z - mu / 2 (z >= mu);    a_pq = r_p - r_q, or 1 unless `weighted`

    Returns the sums of the positive part itself, of psi, and of psi'(z) z. Fills grad = d/dt of the second and `order`, the
    entries of each query by growing t. Pairs beyond mu are summed over the sorted t with a tree over the levels, O(n log n)
    for n ratings of a query; only those inside (0, mu) are visited one by one, and none when mu = 0.
    """
    exact, smooth, linear = 0.0, 0.0, 0.0
    grad[:] = 0.0
    sums = np.empty(4)
    for u in range(indptr.size - 1):
        lo, hi = indptr[u], indptr[u + 1]
        n = hi - lo
        if n == 0:
            continue
        order[lo:hi] = lo + np.argsort(t[lo:hi])
        levels = level[hi - 1] + 1
        if levels < 2:
            continue
        w = omega[u]
        tree = np.zeros((levels + 1, 4))
        far = lo
        for a in range(lo, hi):
            p = order[a]
            top = t[p] + c
            while far < hi and t[order[far]] <= top - mu:
                q = order[far]
                _add(tree, level[q], 1.0, r[q], t[q], r[q] * t[q])
                far += 1
            _below(tree, level[p], sums)
            if weighted:
                weight = sums[0] * r[p] - sums[1]
                z = weight * top - (r[p] * sums[2] - sums[3])
            else:
                weight = sums[0]
                z = weight * top - sums[2]
            exact += w * z
            linear += w * z
            smooth += w * (z - 0.5 * mu * weight)
            grad[p] += w * weight
            for b in range(far, hi):
                q = order[b]
                if t[q] >= top:
                    break
                if level[q] < level[p]:
                    z = top - t[q]
                    weight = w * (r[p] - r[q]) if weighted else w
                    slope = weight * (z / mu)
                    exact += weight * z
                    linear += slope * z
                    smooth += 0.5 * slope * z
                    grad[p] += slope
                    grad[q] -= slope
        # the same far pairs, seen from the lower rating: levels are counted from above
        tree[:] = 0.0
        far = hi - 1
        for a in range(hi - 1, lo - 1, -1):
            q = order[a]
            while far >= lo and t[q] <= t[order[far]] + c - mu:
                p = order[far]
                _add(tree, levels - 1 - level[p], 1.0, r[p], 0.0, 0.0)
                far -= 1
            _below(tree, levels - 1 - level[q], sums)
            grad[q] -= w * (sums[1] - sums[0] * r[q] if weighted else sums[0])
    return exact, smooth, linear


@njit(cache=True, nogil=True)
def plus_curvature(indptr, r, level, omega, t, c, mu, weighted, order, v, out):
    """out = the second derivative of the sum of omega a_pq psi(z_pq) in t, times v; `order` as left by `plus_sums`."""
    out[:] = 0.0
    for u in range(indptr.size - 1):
        lo, hi = indptr[u], indptr[u + 1]
        if hi == lo or level[hi - 1] == 0:
            continue
        far = lo
        for a in range(lo, hi):
            p = order[a]
            top = t[p] + c
            while far < hi and t[order[far]] <= top - mu:
                far += 1
            for b in range(far, hi):
                q = order[b]
                if t[q] >= top:
                    break
                if level[q] < level[p]:
                    weight = omega[u] / mu * (r[p] - r[q]) if weighted else omega[u] / mu
                    change = weight * (v[p] - v[q])
                    out[p] += change
                    out[q] -= change


@njit(cache=True, nogil=True, fastmath=FAST)
def logistic_sums(indptr, r, below, omega, s, grad):
    """The sum of omega (r_p - r_q) log(1 + exp(s_q - s_p)) over pairs; grad is filled with its derivative in s."""
    total = 0.0
    grad[:] = 0.0
    for u in range(indptr.size - 1):
        lo, part = indptr[u], 0.0
        for p in range(lo, indptr[u + 1]):
            mine = 0.0
            for q in range(lo, lo + below[p]):
                m = s[p] - s[q]
                e = np.exp(-abs(m))
                weight = r[p] - r[q]
                part += weight * (np.log1p(e) + max(-m, 0.0))
                slope = weight * (e if m > 0 else 1.0) / (1.0 + e)
                mine += slope
                grad[q] += omega[u] * slope
            grad[p] -= omega[u] * mine
        total += omega[u] * part
    return total


@njit(cache=True, nogil=True, fastmath=FAST)
def logistic_curvature(indptr, r, below, omega, s, v, out):
    """out = the second derivative of `logistic_sums` in s, times v.

    sigma(m) sigma(-m) = E_p E_q / (E_p + E_q)^2 with m = s_p - s_q and E = exp(s): one exponential an entry, not a pair.
    """
    out[:] = 0.0
    E = np.empty(s.size)
    for u in range(indptr.size - 1):
        lo, hi = indptr[u], indptr[u + 1]
        if hi == lo:
            continue
        low, high = s[lo], s[lo]
        for p in range(lo, hi):
            low, high = min(low, s[p]), max(high, s[p])
        safe = high - low < RANGE
        if safe:
            for p in range(lo, hi):
                E[p] = np.exp(s[p] - 0.5 * (low + high))
        for p in range(lo, hi):
            mine = 0.0
            if safe:
                for q in range(lo, lo + below[p]):
                    both = E[p] + E[q]
                    change = omega[u] * (r[p] - r[q]) * (E[p] * E[q] / (both * both)) * (v[p] - v[q])
                    mine += change
                    out[q] -= change
            else:
                for q in range(lo, lo + below[p]):
                    e = np.exp(-abs(s[p] - s[q]))
                    change = omega[u] * (r[p] - r[q]) * (e / ((1.0 + e) * (1.0 + e))) * (v[p] - v[q])
                    mine += change
                    out[q] -= change
            out[p] += mine
