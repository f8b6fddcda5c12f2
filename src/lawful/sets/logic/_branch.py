"""Branch and bound for one row after the other, compiled.

The cheapest values of the labels, each on its own, are the start; a flip of variable v away from them costs |u_v| >= 0. Where
an inequality is violated, one of its false literals has to be flipped: the candidates, cheapest first, are the branches, and
branch i leaves candidates 1 .. i - 1 as they are for good, so that no set of flips is seen twice. Flips are never taken back.
Violated inequalities without common candidates add up to a lower bound of what remains to be paid.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["search_rows"]

DEAD = -1.0


@numba.njit(cache=True, nogil=True)
def _remaining(start, literal, weight, slack, x, frozen, price, mark, stamp, buffer):
    """(lower bound of what remains to be paid, the violated row to branch on); (DEAD, row) where nothing can help."""
    bound, chosen, worst, fewest = 0.0, -1, -1.0, 0
    for r in range(len(slack)):
        need = -slack[r]
        if need <= 0:
            continue
        k, gain, most, shared = 0, 0, 0, False
        for j in range(start[r], start[r + 1]):
            v = literal[j] >> 1
            if x[v] == (literal[j] & 1) and not frozen[v]:  # false, and may be flipped
                buffer[k] = price[v]
                k += 1
                gain += weight[j]
                most = max(most, weight[j])
                shared = shared or mark[v] == stamp
        if gain < need:
            return DEAD, r
        flips = (need + most - 1) // most
        if flips == 1:
            pay = buffer[0]
            for i in range(1, k):
                pay = min(pay, buffer[i])
        else:
            pay = np.sort(buffer[:k])[:flips].sum()
        if not shared:
            bound += pay
            for j in range(start[r], start[r + 1]):
                v = literal[j] >> 1
                if x[v] == (literal[j] & 1) and not frozen[v]:
                    mark[v] = stamp
        if chosen < 0 or k < fewest or (k == fewest and pay > worst):
            chosen, worst, fewest = r, pay, k
    return bound, chosen


@numba.njit(cache=True, nogil=True)
def _flip(v, x, slack, occurs, place, literal, weight, row):
    """Flip a variable and keep the slacks of its rows up to date."""
    x[v] = 1 - x[v]
    for i in range(occurs[v], occurs[v + 1]):
        j = place[i]
        slack[row[j]] += weight[j] if x[v] != (literal[j] & 1) else -weight[j]


@numba.njit(cache=True, nogil=True)
def _search(start, literal, weight, bounds, row, occurs, place, x, price, limit, best_x):
    """Flips of least price from x (which is changed); (that price, whether it is proven). Infinite where none was found."""
    n, R = len(x), len(bounds)
    slack = np.zeros(R, np.int64)
    for r in range(R):
        slack[r] = -bounds[r]
        for j in range(start[r], start[r + 1]):
            if x[literal[j] >> 1] != (literal[j] & 1):
                slack[r] += weight[j]
    frozen, mark = np.zeros(n, np.bool_), np.full(n, -1, np.int64)
    buffer = np.empty(n + 1)
    first, last, here = np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64)
    candidates = np.empty(4 * n + 4, np.int64)  # those of all open branchings
    best, paid, depth, nodes = np.inf, 0.0, -1, 0
    while True:
        # a new node
        nodes += 1
        ahead, chosen = _remaining(start, literal, weight, slack, x, frozen, price, mark, nodes, buffer)
        if chosen < 0:
            if paid < best:
                best = paid
                best_x[:] = x
        elif ahead != DEAD and paid + ahead < best:
            depth += 1
            first[depth] = last[depth - 1] if depth else 0
            k = first[depth]
            if k + start[chosen + 1] - start[chosen] > len(candidates):
                wider = np.empty(2 * len(candidates) + start[chosen + 1] - start[chosen], np.int64)
                wider[:k] = candidates[:k]
                candidates = wider
            for j in range(start[chosen], start[chosen + 1]):
                v = literal[j] >> 1
                if x[v] == (literal[j] & 1) and not frozen[v]:
                    i = k  # insert by price
                    while i > first[depth] and price[candidates[i - 1]] > price[v]:
                        candidates[i] = candidates[i - 1]
                        i -= 1
                    candidates[i] = v
                    k += 1
            last[depth] = k
            here[depth] = first[depth]
        if nodes >= limit:
            return best, depth < 0
        # the next branch
        while depth >= 0:
            i = here[depth]
            if i > first[depth]:  # take the flip of the branch before back; it stays frozen
                v = candidates[i - 1]
                _flip(v, x, slack, occurs, place, literal, weight, row)
                paid -= price[v]
            if i < last[depth] and paid + price[candidates[i]] < best:
                v = candidates[i]
                here[depth] = i + 1
                frozen[v] = True
                _flip(v, x, slack, occurs, place, literal, weight, row)
                paid += price[v]
                break
            for q in range(first[depth], i):
                frozen[candidates[q]] = False
            depth -= 1
        if depth < 0:
            return best, True


@numba.njit(cache=True, nogil=True)
def search_rows(start, literal, weight, bounds, row, occurs, place, values, prices, limit, out, paid, proven):
    """`values` (m, n) the start of each row, `prices` (m, n) of flips; results go to `out`, `paid` and `proven`."""
    for i in range(len(values)):
        x = values[i].copy()
        out[i] = x
        paid[i], proven[i] = _search(start, literal, weight, bounds, row, occurs, place, x, prices[i], limit, out[i])
