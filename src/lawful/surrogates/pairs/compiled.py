"""Compiled loops over the pair tasks: which queries compared p with q, the duals of all those tasks, the skew matrix they give.

    task t = (p, q), p < q      the queries u_1 < ... < u_n that rated both, y_i = target(a_ip - a_iq) - (g_ip - g_iq)
    c_t = (K_t + r_t I)^{-1} y_t,   r_t = ridge[0] + ridge[1] n_t
    v_t(x) = sum_i k(x, x_i) c_ti                               one number per observed task
    S_pq(x) = (f_p - f_q + v_t(x)) [n_t + 1]                    f the prior mean, S_qp = -S_pq, the bracket is optional

A query with k ratings belongs to k(k-1)/2 tasks. Walking, for each item p, the queries that rated p, and in each of them the
ratings that follow p, meets every observation of every task (p, .) once and in the order of the queries: the index costs as
many steps as there are observations, and no two lists are ever intersected. Eight queries are scored together: the
coefficients, by far the largest array, are then read from memory once for all eight.

Plain arrays in and out. Everything releases the interpreter lock, so that callers may spread blocks of items over threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

REASSOCIATE = {"reassoc", "contract", "nsz"}  # lets sums use vector registers; infinities and NaN keep their meaning
LANES = 8  # queries scored together
TILE = 16  # numbers in a line of the cache, in single precision
U = np.uint64  # unsigned indices need no test for counting from the end, and then loops vectorise


@njit(nogil=True, cache=True)
def row_sizes(rows_of, col_ptr, position, row_ptr, items, start, stop, n_pairs, n_observations):
    """For p in [start, stop): how many q > p share a query with p, and how many observations they have together."""
    mark = np.full(col_ptr.size - 1, -1, dtype=np.int64)
    for p in range(start, stop):
        pairs = 0
        total = 0
        for a in range(col_ptr[p], col_ptr[p + 1]):
            for b in range(position[a] + 1, row_ptr[rows_of[a] + 1]):
                q = items[b]
                total += 1
                if mark[q] != p:
                    mark[q] = p
                    pairs += 1
        n_pairs[p] = pairs
        n_observations[p] = total


@njit(nogil=True, cache=True)
def index_row(p, index, a, g, sign, count, bucket, base, q_out, ptr_out, users_out, y_out):
    """Write the tasks (p, .), small ones first: partners, offsets (from `base`), queries and targets.

    Tasks of one size in a row are what a processor's branch prediction wants; within a size they follow q. `count` (D,) is zero
    before and after; `bucket` has room for one more than the largest size plus one.
    """
    rows_of, col_ptr, position, row_ptr, items = index
    n_p = col_ptr[p + 1] - col_ptr[p]
    last = p
    for i in range(col_ptr[p], col_ptr[p + 1]):
        for b in range(position[i] + 1, row_ptr[rows_of[i] + 1]):
            count[items[b]] += 1
        last = max(last, items[row_ptr[rows_of[i] + 1] - 1])
    bucket[: n_p + 2] = 0
    for q in range(p + 1, last + 1):
        if count[q] > 0:
            bucket[count[q] + 1] += 1
    for size in range(1, n_p + 2):
        bucket[size] += bucket[size - 1]  # now bucket[s] tasks are smaller than s
    for q in range(p + 1, last + 1):
        if count[q] > 0:
            t = bucket[count[q]]
            bucket[count[q]] = t + 1
            q_out[t] = q
    total = 0
    for t in range(q_out.size):
        q = q_out[t]
        ptr_out[t] = base + total
        size = count[q]
        count[q] = total  # from now on: where the next observation of (p, q) goes
        total += size
    for i in range(col_ptr[p], col_ptr[p + 1]):
        u = rows_of[i]
        here = position[i]
        for b in range(here + 1, row_ptr[u + 1]):
            at = count[items[b]]
            count[items[b]] = at + 1
            y = a[here] - a[b]
            if sign:
                y = np.sign(y)
            users_out[at] = u
            y_out[at] = y - (g[here] - g[b])
    for t in range(q_out.size):
        count[q_out[t]] = 0


@njit(nogil=True, cache=True, fastmath=REASSOCIATE)
def _cholesky(A, n):
    """Lower Cholesky factor of A[:n, :n] in place, four rows at a time. Returns False when A is not positive definite."""
    i = 0
    while i < n:
        width = min(4, n - i)
        if width == 4:
            r0, r1, r2, r3 = A[i], A[i + 1], A[i + 2], A[i + 3]
            for j in range(i):
                row = A[j]
                s0 = s1 = s2 = s3 = 0.0
                for k in range(j):
                    v = row[k]
                    s0 += r0[k] * v
                    s1 += r1[k] * v
                    s2 += r2[k] * v
                    s3 += r3[k] * v
                scale = row[j]  # holds 1 / L_jj
                r0[j] = (r0[j] - s0) * scale
                r1[j] = (r1[j] - s1) * scale
                r2[j] = (r2[j] - s2) * scale
                r3[j] = (r3[j] - s3) * scale
        else:
            for r in range(i, n):
                x = A[r]
                for j in range(i):
                    row = A[j]
                    s = 0.0
                    for k in range(j):
                        s += x[k] * row[k]
                    x[j] = (x[j] - s) * row[j]
        for r in range(i, i + width):
            x = A[r]
            for j in range(i, r):
                row = A[j]
                s = 0.0
                for k in range(j):
                    s += x[k] * row[k]
                x[j] = (x[j] - s) * row[j]
            s = x[r]
            for k in range(r):
                s -= x[k] * x[k]
            if not s > 0.0:
                return False
            x[r] = 1.0 / np.sqrt(s)
        i += width
    return True


@njit(nogil=True, cache=True, fastmath=REASSOCIATE)
def _substitute(A, n, y):
    """y <- (L L^T)^{-1} y, with L below the diagonal of A and 1 / L_ii on it."""
    for i in range(n):
        row = A[i]
        s = y[i]
        for k in range(i):
            s -= row[k] * y[k]
        y[i] = s * row[i]
    for i in range(n - 1, -1, -1):
        row = A[i]
        v = y[i] * row[i]
        y[i] = v
        for k in range(i):
            y[k] -= v * row[k]


@njit(nogil=True, cache=True)
def solve_task(K, users, y, ridge, scratch):
    """y <- (K_t + ridge I)^{-1} y. Returns False when the matrix is not positive definite."""
    n = users.size
    if n == 1:
        d = K[users[0], users[0]] + ridge
        if not d > 0.0:
            return False
        y[0] /= d
        return True
    if n == 2:
        u, v = users[0], users[1]
        a, b, d = K[u, u] + ridge, K[v, u], K[v, v] + ridge
        det = a * d - b * b
        if not (a > 0.0 and det > 0.0):
            return False
        y0 = (d * y[0] - b * y[1]) / det
        y[1] = (a * y[1] - b * y[0]) / det
        y[0] = y0
        return True
    stride = (n + 7) // 8 * 8
    A = scratch[: n * stride].reshape(n, stride)
    for i in range(n):
        row = K[users[i]]
        for j in range(i + 1):
            A[i, j] = row[users[j]]
        A[i, i] += ridge
    if not _cholesky(A, n):
        return False
    _substitute(A, n, y)
    return True


@njit(nogil=True, cache=True)
def index_rows(first, last, index, a, g, sign, pair_start, obs_start, shift, partner, ptr, users, y):
    """Index all tasks (p, .), first <= p < last: partners, offsets, queries and targets.

    `users` and `y` start at observation `shift`.
    """
    col_ptr = index[1]
    count = np.zeros(col_ptr.size - 1, dtype=np.int64)
    largest = 0
    for p in range(first, last):
        largest = max(largest, col_ptr[p + 1] - col_ptr[p])
    bucket = np.empty(largest + 2, dtype=np.int64)
    for p in range(first, last):
        t0, t1, o0, o1 = pair_start[p], pair_start[p + 1], obs_start[p], obs_start[p + 1]
        here, targets = users[o0 - shift : o1 - shift], y[o0 - shift : o1 - shift]
        index_row(p, index, a, g, sign, count, bucket, o0, partner[t0:t1], ptr[t0:t1], here, targets)


@njit(nogil=True, cache=True)
def solve_tasks(first, last, ptr, users, coef, shift, done, K, ridge):
    """Duals of the tasks first..last-1 in place of their targets, but for those that are `done` (none if it is empty).

    `users` and `coef` start at observation `shift`. Returns how many matrices were not positive definite.
    """
    largest = 0
    for t in range(first, last):
        if not (done.size and done[t]):
            largest = max(largest, ptr[t + 1] - ptr[t])
    scratch = np.empty(largest * (largest + 8))
    bad = 0
    for t in range(first, last):
        if done.size and done[t]:
            continue
        lo, hi = ptr[t] - shift, ptr[t + 1] - shift
        if not solve_task(K, users[lo:hi], coef[lo:hi], ridge[0] + ridge[1] * (hi - lo), scratch):
            bad += 1
    return bad


@njit(nogil=True, cache=True)
def pair_losses(indptr, r, f, lost, total):
    """For every query: the weight |r_p - r_q| of the pairs that f puts the wrong way round (a tie counts half), and of all."""
    for u in range(indptr.size - 1):
        for i in range(indptr[u], indptr[u + 1]):
            for j in range(indptr[u], i):
                y, s = r[i] - r[j], f[i] - f[j]
                total[u] += abs(y)
                if y * s < 0:
                    lost[u] += abs(y)
                elif s == 0:
                    lost[u] += abs(y) / 2


@njit(nogil=True, cache=True)
def row_marks(ptr, users, tasks, out):
    """out[i] = a number that tasks on the same queries share (and hardly any others): FNV-1a."""
    for i in range(tasks.size):
        h = U(14695981039346656037)
        for j in range(ptr[tasks[i]], ptr[tasks[i] + 1]):
            h = (h ^ U(users[j])) * U(1099511628211)
        out[i] = h


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
