"""The rated pairs of all queries as one object: their weights, and the pairwise losses with their derivatives.

    L(s) = sum_u omega_u sum_{p, q: r_up > r_uq} a_pq l(s_up - s_uq)          scores s, one for each rating

omega_u is 1 / (sum of all a) when every pair counts by its weight ("pairs"), and 1 / (number of queries x sum of the a of its
query) when all queries count the same ("queries"), as they do in the normalised rank loss. Either way the weights add up to 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lawful.baselines.ranking._sums import logistic_curvature, logistic_sums, plus_curvature, plus_sums

__all__ = ["HingePairs", "LogisticPairs", "Pairs", "StructuralPairs", "make_pairs"]

WEIGHTS = ("pairs", "queries")


@dataclass
class Pairs:
    """Entries sorted by query, then rating; `entries` says which of the given ones they are."""

    entries: np.ndarray
    indptr: np.ndarray
    r: np.ndarray  # less the lowest rating of the query, in units of `unit`
    level: np.ndarray
    below: np.ndarray
    omega: np.ndarray
    n_pairs: int
    unit: float  # the mean of r_p - r_q over all pairs: the scale of the ratings makes no difference

    def linear(self) -> np.ndarray:
        """g with g . s = sum_u omega_u sum_{r_p > r_q} (r_p - r_q) (s_p - s_q): omega_u n_u (r_p - mean of r), no pair loop."""
        n = np.diff(self.indptr)
        mean = np.add.reduceat(self.r, self.indptr[:-1]) / n
        return np.repeat(self.omega * n, n) * (self.r - np.repeat(mean, n))


def make_pairs(query: np.ndarray, r: np.ndarray, weights: str, who: str, hint: str = "") -> Pairs:
    """Pairs within each value of `query`. Queries whose ratings are all equal are dropped: they order nothing."""
    if weights not in WEIGHTS:
        raise ValueError(f"{who}: weights={weights!r} is unknown; choose 'pairs' or 'queries'")
    order = np.lexsort((r, query))
    query, r = query[order], r[order]
    _, first, group = np.unique(query, return_index=True, return_inverse=True)
    ends = np.append(first[1:], len(r))
    keep = (r[ends - 1] > r[first])[group] if len(r) else np.zeros(0, dtype=bool)
    if not keep.any():
        raise ValueError(f"{who}: no query rated two items differently, so there is nothing to learn an order from{hint}")
    order, r, group = order[keep], r[keep], group[keep]
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    indptr = np.append(starts, len(r)).astype(np.int64)
    n = np.diff(indptr)
    user = np.repeat(np.arange(len(n)), n)
    r = r - r[starts][user]
    step = np.diff(r, prepend=-1.0) != 0
    step[starts] = True
    run = np.flatnonzero(step)  # where a level begins
    below = run[np.cumsum(step) - 1] - indptr[user]
    level = np.cumsum(step) - 1
    level -= level[starts][user]
    # sum of (r_p - r_q)_+ over the pairs of a query: each rating counts with (entries before it) - (entries after it)
    place = np.arange(len(r)) - indptr[user]
    mass: np.ndarray = np.bincount(user, r * (2 * place - n[user] + 1))
    unit = float(mass.sum() / below.sum())
    r, mass = r / unit, mass / unit
    omega = np.full(len(n), 1 / mass.sum()) if weights == "pairs" else 1 / (len(n) * mass)
    return Pairs(order, indptr, r, level.astype(np.int64), below.astype(np.int64), omega, int(below.sum()), unit)


class HingePairs:
    """a_pq [1 - (s_p - s_q)]_+, a_pq = r_p - r_q, smoothed on an interval of length mu."""

    c, slope, weighted = 1.0, -1.0, True
    width = 2.0  # the first mu: at s = 0 every pair is in the smoothed part

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self._order = np.arange(len(pairs.r))  # entries of each query by growing t, kept by `sums` for `curvature`

    def _t(self, s: np.ndarray) -> np.ndarray:
        return -s

    def sums(self, s: np.ndarray, mu: float) -> tuple[float, float, float, np.ndarray]:
        """The loss, the smoothed loss, sum of its slopes times their arguments, its gradient in s."""
        p, grad = self.pairs, np.empty(len(s))
        exact, smooth, linear = plus_sums(
            p.indptr, p.r, p.level, p.omega, self._t(s), self.c, mu, self.weighted, self._order, grad
        )
        return exact, smooth, linear, self.slope * grad

    def curvature(self, s: np.ndarray, mu: float, v: np.ndarray) -> np.ndarray:
        """The second derivative at the s of the last call of `sums`, times v."""
        p, out = self.pairs, np.empty(len(s))
        plus_curvature(p.indptr, p.r, p.level, p.omega, self._t(s), self.c, mu, self.weighted, self._order, v, out)
        return self.slope**2 * out


class StructuralPairs(HingePairs):
    """[a_pq - 2 (s_p - s_q)]_+: the slack of the structural loss; r - 2 s is what the most violated order sorts by."""

    c, slope, weighted = 0.0, -2.0, False

    def __init__(self, pairs: Pairs) -> None:
        super().__init__(pairs)
        self.width = 2.0 * float(pairs.r.max())

    def _t(self, s: np.ndarray) -> np.ndarray:
        return self.pairs.r - 2 * s


class LogisticPairs:
    """a_pq log(1 + exp(s_q - s_p)); smooth as it is."""

    width = 0.0

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs

    def sums(self, s: np.ndarray, mu: float = 0.0) -> tuple[float, float, float, np.ndarray]:
        p, grad = self.pairs, np.empty(len(s))
        value = logistic_sums(p.indptr, p.r, p.below, p.omega, s, grad)
        return value, value, value, grad

    def curvature(self, s: np.ndarray, mu: float, v: np.ndarray) -> np.ndarray:
        p, out = self.pairs, np.empty(len(s))
        logistic_curvature(p.indptr, p.r, p.below, p.omega, s, v, out)
        return out
