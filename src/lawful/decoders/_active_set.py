r"""Compiled inner loop of `polyhedral`: many small dual problems with nonnegative multipliers.

    min over lam >= 0 of   1/2 lam' M lam - v . lam          M (R, R) positive semidefinite

is the dual of projecting onto {N u <= h}, with M = N N' and v = N u0 - h the violations at the unconstrained answer u0. The
dual method of Goldfarb and Idnani adds one violated inequality at a time. With A the inequalities that hold with equality, the
multiplier of j grows by t and those of A follow by t z, z = -M_AA^-1 M_Aj, so that A keeps holding; the violation of j falls at
the rate d = M_jj + M_jA z. Either it reaches 0 (j joins A) or a multiplier of A does first (it leaves A). Each step raises the
dual value, so no set A comes twice. d = 0 with no multiplier left to give way means that no point obeys all inequalities.
M_AA = L L' is updated, not made anew: a row is added in |A|^2 operations, and taken out by rotations.
"""

from __future__ import annotations

import numpy as np
from numba import njit

EPS = 2.0**-52


@njit(cache=True, nogil=True, error_model="numpy")
def nonnegative(M: np.ndarray, v: np.ndarray, h: np.ndarray, size: np.ndarray, max_iter: int) -> tuple:
    """(lam, solved, steps) of every row. M (1 or m, R, R); v (m, R); h (1 or m, R) and size (m,) say what rounding is."""
    m, R = v.shape
    lam = np.zeros((m, R))
    solved = np.zeros(m, dtype=np.bool_)
    steps = np.zeros(m, dtype=np.int64)
    active = np.empty(R, dtype=np.int64)
    L = np.empty((R, R))
    y, z = np.empty(R), np.empty(R)
    left = np.empty(R)
    for i in range(m):
        Mi = M[i if M.shape[0] > 1 else 0]
        hi = h[i if h.shape[0] > 1 else 0]
        x = lam[i]
        left[:] = v[i]
        k = 0
        while steps[i] < max_iter:
            worst, j = 0.0, -1
            for p in range(R):
                excess = left[p] - 32 * EPS * (size[i] + abs(hi[p]))
                if excess > worst and x[p] == 0.0:
                    worst, j = excess, p
            if j < 0:
                solved[i] = True
                break
            joined = False
            while not joined and steps[i] < max_iter:
                steps[i] += 1
                rate = Mi[j, j]
                for a in range(k):  # y = L^-1 M_Aj
                    total = Mi[active[a], j]
                    for b in range(a):
                        total -= L[a, b] * y[b]
                    y[a] = total / L[a, a]
                    rate -= y[a] * y[a]
                for a in range(k - 1, -1, -1):  # z = -L^-T y
                    total = -y[a]
                    for b in range(a + 1, k):
                        total -= L[b, a] * z[b]
                    z[a] = total / L[a, a]
                dependent = rate <= 1e-12 * Mi[j, j]
                t, out = np.inf if dependent else left[j] / rate, -1
                for a in range(k):
                    if z[a] < 0.0 and -x[active[a]] / z[a] < t:
                        t, out = -x[active[a]] / z[a], a
                if t == np.inf:
                    break
                x[j] += t
                for a in range(k):
                    x[active[a]] += t * z[a]
                for p in range(R):
                    left[p] -= t * Mi[j, p]
                for a in range(k):
                    change = t * z[a]
                    row = Mi[active[a]]
                    for p in range(R):
                        left[p] -= change * row[p]
                if out < 0:
                    for a in range(k):
                        L[k, a] = y[a]
                    L[k, k] = np.sqrt(rate)
                    active[k] = j
                    k += 1
                    joined = True
                else:
                    x[active[out]] = 0.0
                    for a in range(out, k - 1):  # take row `out` from L, and rotate the rest back to a triangle
                        active[a] = active[a + 1]
                        for b in range(a + 2):
                            L[a, b] = L[a + 1, b]
                    k -= 1
                    for a in range(out, k):
                        p, q = L[a, a], L[a, a + 1]
                        r = np.sqrt(p * p + q * q)
                        cos, sin = p / r, q / r
                        for b in range(a, k):
                            one, two = L[b, a], L[b, a + 1]
                            L[b, a] = cos * one + sin * two
                            L[b, a + 1] = cos * two - sin * one
            if not joined:
                break
    return lam, solved, steps
