"""Random walks over the assignments of a part, compiled: Gibbs sampling with steps of one to three labels.

At each label t in turn: its value is drawn from its own log-odds and kept if the part still holds, which is the conditional
distribution given the others. Then t and one or two random labels that share a gate with it are turned over together, and
that is kept with Metropolis' probability: under "exactly one" no single label can move. Both leave prod_t exp(logit_t c_t) on
the assignments that obey as it is. A turned label changes the counts of its gates only.

Assignments may lie so far apart that no walk crosses from some to others; the starts then decide how often each kind is seen.
Their weights are known, though: over the *distinct* assignments that were seen, prod_t exp(logit_t c_t) can be summed. That
is right where they are nearly all that counts, and the plain mean where they are a few of very many. How much was not seen is
told by the share u of visits to assignments that were seen once (Good and Turing), and the answer is (1 - u) weighted + u
plain: a mean of assignments that obey, so that whatever the formulas say of probabilities holds.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["walk_rows"]


@numba.njit(cache=True, nogil=True)
def _turn(v, x, count, dirty, n, inner, low, high, occurs, gate_of, sign):
    """Turn label v over and keep the counts of all gates up to date; how many more gates that must hold are violated."""
    more, first = 0, inner
    node = v
    while True:
        x[node] = 1 - x[node]
        for i in range(occurs[node], occurs[node + 1]):
            g = gate_of[i]
            before = low[g] <= count[g] <= high[g]
            count[g] += 1 if x[node] != sign[i] else -1
            after = low[g] <= count[g] <= high[g]
            if before != after:
                if g < inner:
                    dirty[g] = not dirty[g]
                    first = min(first, g)
                else:
                    more += 1 if before else -1
        while first < inner and not dirty[first]:  # gates come after what they count
            first += 1
        if first == inner:
            return more
        dirty[first] = False
        node = n + first


@numba.njit(cache=True, nogil=True)
def _mean(seen, key, weight, share):
    """(1 - u) weighted + u plain."""
    visits, n = seen.shape
    order, top = np.argsort(key), weight.max()
    single, total = 0, 0.0
    for j in range(visits):
        new = j == 0 or key[order[j]] != key[order[j - 1]]
        single += new and (j == visits - 1 or key[order[j]] != key[order[j + 1]])
        weight[order[j]] = np.exp(weight[order[j]] - top) if new else 0.0
        total += weight[order[j]]
    u = single / visits
    share[:] = 0.0
    for j in range(visits):
        w = (1 - u) * weight[j] / total + u / visits
        for t in range(n):
            if seen[j, t]:
                share[t] += w


@numba.njit(cache=True, nogil=True)
def walk_rows(gates, low, high, inner, occurs, gate_of, sign, near, near_start, starts, logits, chance, keys, shares):
    """For each row (m, n) of logits, from each of its starts (m, K, n): how probable each label is, to `shares`.

    chance (K, S, n, 4) are uniform numbers: S sweeps, the same for every row, whose answer is then its own affair. `gates` is
    their number; the literals are listed by node (`occurs`, `gate_of`, `sign`). keys (n,) tell assignments apart."""
    m, K, n = starts.shape
    S = chance.shape[1]
    x, count = np.zeros(n + inner, np.int64), np.zeros(gates, np.int64)
    dirty, up = np.zeros(inner + 1, np.bool_), np.empty(n)
    seen, key, weight = np.zeros((K * S, n), np.bool_), np.zeros(K * S, np.int64), np.empty(K * S)
    for i in range(m):
        s = logits[i]
        for t in range(n):
            up[t] = 1.0 / (1.0 + np.exp(-s[t]))
        for k in range(K):
            x[:] = 0
            count[:] = 0
            for node in range(n + inner):  # all labels false, all gates as if they were: literals that are negated count
                for j in range(occurs[node], occurs[node + 1]):
                    count[gate_of[j]] += sign[j]
            bad = 0
            for g in range(inner):  # then gates in order, which turns their nodes
                dirty[g] = False
                if low[g] <= count[g] <= high[g]:
                    x[n + g] = 1
                    for j in range(occurs[n + g], occurs[n + g + 1]):
                        count[gate_of[j]] += -1 if sign[j] else 1
            for g in range(inner, gates):
                bad += not low[g] <= count[g] <= high[g]
            for t in range(n):
                if starts[i, k, t]:
                    bad += _turn(t, x, count, dirty, n, inner, low, high, occurs, gate_of, sign)
            for r in range(S):
                for t in range(n):
                    if (chance[k, r, t, 0] < up[t]) != (x[t] == 1):
                        bad += _turn(t, x, count, dirty, n, inner, low, high, occurs, gate_of, sign)
                        if bad:
                            bad += _turn(t, x, count, dirty, n, inner, low, high, occurs, gate_of, sign)
                    many = near_start[t + 1] - near_start[t]
                    if not many:
                        continue
                    v = near[near_start[t] + int(chance[k, r, t, 1] * many)]
                    w = v if chance[k, r, t, 2] < 0.5 else near[near_start[t] + int((2 * chance[k, r, t, 2] - 1) * many)]
                    gain = (1 - 2 * x[t]) * s[t] + (1 - 2 * x[v]) * s[v] + (1 - 2 * x[w]) * s[w] * (w != v)
                    if gain >= 0 or chance[k, r, t, 3] < np.exp(gain):
                        for _ in range(2):  # there, and back again if that will not do
                            bad += _turn(t, x, count, dirty, n, inner, low, high, occurs, gate_of, sign)
                            bad += _turn(v, x, count, dirty, n, inner, low, high, occurs, gate_of, sign)
                            if w != v:
                                bad += _turn(w, x, count, dirty, n, inner, low, high, occurs, gate_of, sign)
                            if not bad:
                                break
                at = k * S + r
                key[at], weight[at] = 0, 0.0
                for t in range(n):
                    seen[at, t] = x[t]
                    if x[t]:
                        key[at] ^= keys[t]
                        weight[at] += s[t]
        _mean(seen, key, weight, shares[i])
