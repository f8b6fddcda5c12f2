"""Compiled pooling of adjacent violators: weighted isotonic regression of many rows, one pass over each.

Blocks of equal value are kept on a stack; a new output that lies below the last block joins it, and what they have become may
join the one before. Each output is put on the stack once and joins once: a row costs a few operations for each output.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def pooled(w: np.ndarray, a: np.ndarray) -> np.ndarray:
    """argmin of sum_t a_t (c_t - w_t)^2 over c_1 <= c_2 <= ..., row by row; a (m, T) positive."""
    m, T = w.shape
    c = np.empty((m, T))
    value, weight, length = np.empty(T), np.empty(T), np.empty(T, dtype=np.int64)
    for i in range(m):
        k = -1
        for t in range(T):
            k += 1
            value[k], weight[k], length[k] = w[i, t], a[i, t], 1
            while k > 0 and value[k - 1] > value[k]:
                both = weight[k - 1] + weight[k]
                value[k - 1] += (value[k] - value[k - 1]) * (weight[k] / both)
                weight[k - 1] = both
                length[k - 1] += length[k]
                k -= 1
        t = 0
        for block in range(k + 1):
            for _ in range(length[block]):
                c[i, t] = value[block]
                t += 1
    return c
