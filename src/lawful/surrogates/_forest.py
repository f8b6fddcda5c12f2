"""Walks through trees: compiled when they are first asked for."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["along", "summed"]


@njit(cache=True, nogil=True)
def leaf(x, node, feature, threshold, left, right, gaps_left):  # type: ignore[no-untyped-def]
    while left[node] != 0:
        v = x[feature[node]]
        down = gaps_left[node] == 1 if v != v else v <= threshold[node]
        node = left[node] if down else right[node]
    return node


@njit(cache=True, nogil=True)
def summed(X, base, roots, feature, threshold, left, right, gaps_left, value):  # type: ignore[no-untyped-def]
    """(n,) predictions."""
    out = np.full(len(X), base)
    for i in range(len(X)):
        for root in roots:
            out[i] += value[leaf(X[i], root, feature, threshold, left, right, gaps_left)]
    return out


@njit(cache=True, nogil=True)
def along(X, rounds, base, roots, feature, threshold, left, right, gaps_left, value):  # type: ignore[no-untyped-def]
    """(rounds, n) predictions after each tree."""
    out = np.empty((rounds, len(X)))
    for i in range(len(X)):
        total = base
        for k in range(rounds):
            if k < len(roots):
                total += value[leaf(X[i], roots[k], feature, threshold, left, right, gaps_left)]
            out[k, i] = total
    return out
