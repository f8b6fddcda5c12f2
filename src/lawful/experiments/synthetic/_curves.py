"""Hundreds of thousands of projections onto a plane curve, and what follows from each: the inner loop of the joint search.

The curves are p(t) = (u sin t + v cos t, s sin t + h sin 2t), closed, two or three bends. For each row the cost
sum_t a_t (p_t - w_t)^2 is taken on a grid of t, every local minimum of the grid is refined by Newton steps, and the least is
the projection: the global one up to bends finer than the grid. The certified decoder of the library takes several times as
long and decodes everything that is reported; here only held-out errors are compared.
"""

from __future__ import annotations

import numpy as np
from numba import njit

STEPS = 96  # of the grid of t
NEWTON = 6


@njit(cache=True)
def project(
    a1: float, a2: float, w1: float, w2: float, shape: np.ndarray, grid: np.ndarray, cost: np.ndarray
) -> tuple[float, float]:
    """argmin over t of a1 (p1(t) - w1)^2 + a2 (p2(t) - w2)^2 as a point; grid (G, 2) are points of the curve."""
    u, v, s, h = shape
    G = len(grid)
    for g in range(G):
        cost[g] = a1 * (grid[g, 0] - w1) ** 2 + a2 * (grid[g, 1] - w2) ** 2
    best, c1, c2 = np.inf, grid[0, 0], grid[0, 1]
    for g in range(G):
        if cost[g] > cost[g - 1] or cost[g] > cost[(g + 1) % G]:
            continue
        t = 2 * np.pi * g / G
        for _ in range(NEWTON):
            sin, cos = np.sin(t), np.cos(t)
            sin2, cos2 = 2 * sin * cos, cos * cos - sin * sin
            r1, r2 = u * sin + v * cos - w1, s * sin + h * sin2 - w2
            d1, d2 = u * cos - v * sin, s * cos + 2 * h * cos2
            slope = a1 * r1 * d1 + a2 * r2 * d2
            bend = a1 * (d1 * d1 - r1 * (u * sin + v * cos)) + a2 * (d2 * d2 - r2 * (s * sin + 4 * h * sin2))
            if bend <= 0.0:
                bend = a1 * d1 * d1 + a2 * d2 * d2  # Gauss-Newton: downhill in any case
            step = slope / bend if bend > 0.0 else 0.0
            t -= min(max(step, -2 * np.pi / G), 2 * np.pi / G)
        sin, cos = np.sin(t), np.cos(t)
        p1, p2 = u * sin + v * cos, s * sin + 2 * h * sin * cos
        value = a1 * (p1 - w1) ** 2 + a2 * (p2 - w2) ** 2
        if value < best:
            best, c1, c2 = value, p1, p2
    return c1, c2


@njit(cache=True)
def relaxed_errors(
    a: np.ndarray,
    b: np.ndarray,
    y: np.ndarray,
    seen: np.ndarray,
    shape: np.ndarray,
    grid: np.ndarray,
    values: np.ndarray,
    euclidean: bool,
) -> np.ndarray:
    """(k, 1 + 2 V): summed squared errors of k candidates with the exact law, V deltas and V mus.

    a, b (k, m, 2) scores of m held-out rows, a > 0; y, seen (m, 2). With w = b/a and c its projection, the answers are
    c + r min(1, delta / |r|), r = w - c, |r| Euclidean or in the weights a, and (b + kappa c) / (a + kappa) with
    kappa = (a1 + a2) / mu.
    """
    V = len(values)
    out = np.zeros((a.shape[0], 1 + 2 * V))
    cost = np.empty(len(grid))
    for k in range(a.shape[0]):
        for i in range(a.shape[1]):
            a1, a2, b1, b2 = a[k, i, 0], a[k, i, 1], b[k, i, 0], b[k, i, 1]
            w1, w2 = b1 / a1, b2 / a2
            c1, c2 = project(a1, a2, w1, w2, shape, grid, cost)
            r1, r2 = w1 - c1, w2 - c2
            e1, e2 = c1 - y[i, 0], c2 - y[i, 1]
            s1, s2 = seen[i, 0], seen[i, 1]
            length = np.sqrt(r1 * r1 + r2 * r2) if euclidean else np.sqrt(a1 * r1 * r1 + a2 * r2 * r2)
            out[k, 0] += s1 * e1 * e1 + s2 * e2 * e2
            for j in range(V):
                part = 1.0 if length <= values[j] else values[j] / length
                z1, z2 = e1 + part * r1, e2 + part * r2
                out[k, 1 + j] += s1 * z1 * z1 + s2 * z2 * z2
                kappa = (a1 + a2) / values[j]
                z1, z2 = e1 + a1 / (a1 + kappa) * r1, e2 + a2 / (a2 + kappa) * r2
                out[k, 1 + V + j] += s1 * z1 * z1 + s2 * z2 * z2
    return out
