r"""The Gaussian prediction on a polyhedron {A c = b, G c <= h}: closed form without inequalities, else hit and run.

With Z an orthonormal basis of the null space of A and c0 a point of C, c = c0 + Z u and u is Gaussian with precision Z'P Z,
truncated by G Z u <= h - G c0. In units where that precision is the identity a direction is drawn, and a point on the line
through it from its own truncated normal distribution, by inversion in logarithms: a prediction far outside C makes no trouble.
Chains start inside C, between the decoded point and the point deepest in C (a linear program).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog
from scipy.special import log_ndtr, ndtri_exp

from lawful._array import to_numpy
from lawful.uncertainty.geometry import mat, transpose
from lawful.uncertainty.samples import Samples, diagnostics
from lawful.uncertainty.target import precision_of

CHAINS = 4  # at least
TOGETHER = 256  # few rows get more chains, which are then shorter
BURN_IN = 50


def linear_parts(C: Any, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A (m or 1, P, T), b, and G (m or 1, R, T), h of {A c = b, G c <= h}."""
    parts: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {"zero": [], "nonnegative": []}
    for cone in C.cones():
        matrix, offset = np.asarray(to_numpy(cone.matrix), float), np.asarray(to_numpy(cone.offset), float)
        count = len(matrix) if matrix.ndim == 3 else len(offset) if offset.ndim == 2 else 1
        parts[cone.kind].append(
            (np.broadcast_to(matrix, (count, *matrix.shape[-2:])), np.broadcast_to(offset, (count, offset.shape[-1])))
        )
    out: list[np.ndarray] = []
    for found in parts.values():
        count = max((len(matrix) for matrix, _ in found), default=1)
        T = C.n_tasks_
        out.append(np.concatenate([np.zeros((count, 0, T)), *(np.broadcast_to(M, (count, *M.shape[1:])) for M, _ in found)], 1))
        out.append(np.concatenate([np.zeros((count, 0)), *(np.broadcast_to(o, (count, o.shape[1])) for _, o in found)], 1))
    return out[0], out[1], out[2], out[3]


def polyhedral_draws(F: Any, C: Any, best: np.ndarray, n: int, rng: np.random.Generator, thin: int) -> Samples:
    """n draws for each of the m rows; `best` (m, T) are points of C."""
    m, T = best.shape
    P, w = precision_of(F), np.asarray(to_numpy(F.center), float)
    A, b, G, h = linear_parts(C, m)
    size = np.abs(A).max(axis=2, keepdims=True)
    bases = [null_space(a) if a.shape[0] else np.eye(T) for a in A / np.where(size > 0, size, 1.0)]
    d = min(basis.shape[1] for basis in bases)
    Z = np.broadcast_to(np.stack([basis[:, :d] for basis in bases]), (m, T, d))
    if d == 0:
        return Samples.of(np.repeat(best[:, None, :], n, axis=1))
    L = np.linalg.cholesky(transpose(Z) @ P @ Z)
    root = Z @ np.linalg.inv(transpose(L))  # c = best + root y, y standard normal around y0
    y0 = mat(transpose(root), mat(P, w - best))
    if G.shape[1] == 0:
        y = y0[:, None, :] + rng.standard_normal((m, n, d))
        return Samples.of(best[:, None, :] + y @ transpose(root))
    inside = deepest(A, b, G, h, m)
    away = np.linalg.norm(mat(transpose(root), mat(P, inside - best)), axis=1, keepdims=True)
    start = mat(transpose(root), mat(P, inside - best)) * np.minimum(0.5, 0.5 * d**0.5 / np.maximum(away, 1e-300))
    slack = np.maximum(h - mat(np.broadcast_to(G, (m, *G.shape[1:])), best), 0.0)
    draws, ess, rhat = _hit_and_run(G @ root, slack, y0, start, n, rng, thin * d)
    return Samples.of(best[:, None, :] + draws @ transpose(root), np.ones(m), ess, rhat)


def deepest(A: np.ndarray, b: np.ndarray, G: np.ndarray, h: np.ndarray, m: int) -> np.ndarray:
    """(m, T) points of {A c = b, G c <= h} as far from all faces as can be, at most 1 in the units of each inequality."""
    count = max(len(A), len(G))
    found = np.empty((count, G.shape[2]))
    for i in range(count):
        a, e, g, k = (M[i if len(M) > 1 else 0] for M in (A, b, G, h))
        norm = np.linalg.norm(g, axis=1, keepdims=True)
        wide = np.hstack([g, norm])
        reach = max(1.0, float(np.abs(k).max()))
        bounds = [(None, None)] * g.shape[1] + [(0, reach)]
        cost = np.append(np.zeros(g.shape[1]), -1.0)
        equal = {"A_eq": np.hstack([a, np.zeros((len(a), 1))]), "b_eq": e} if len(a) else {}
        solved = linprog(cost, A_ub=wide, b_ub=k, bounds=bounds, **equal)
        if solved.status != 0 or solved.x[-1] <= 0:
            raise ValueError(
                "sample: the inequalities leave no room inside the equations of the law, so there is no surface to draw from; "
                "write pairs such as y1 <= 1, y1 >= 1 as the equation y1 = 1"
            )
        found[i] = solved.x[:-1]
    return np.broadcast_to(found, (m, G.shape[2]))


def _hit_and_run(
    K: np.ndarray, slack: np.ndarray, y0: np.ndarray, start: np.ndarray, n: int, rng: np.random.Generator, thin: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws (m, n, d) of N(y0, I) on {K y <= slack}, with their effective number and R-hat."""
    m, d = y0.shape
    several = max(CHAINS, min(TOGETHER // m, n // 32))
    rows = np.repeat(np.arange(m), several)
    K, slack, y0, y = K[rows], slack[rows], y0[rows], start[rows].copy()
    length, burn_in = -(-n // several), BURN_IN * d
    kept = []
    for t in range(burn_in + length * thin):
        if t % 2:  # along the axes, faces that lie across each other are passed one by one
            e = np.eye(d)[rng.integers(d, size=len(y))]
        else:
            e = rng.standard_normal(y.shape)
            e /= np.linalg.norm(e, axis=1, keepdims=True)
        rate, room = mat(K, e), slack - mat(K, y)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.maximum(room, 0.0) / rate
        high = np.min(np.where(rate > 1e-14, steps, np.inf), axis=1)
        low = np.max(np.where(rate < -1e-14, steps, -np.inf), axis=1)
        middle = ((y0 - y) * e).sum(axis=1)
        y = y + truncated_normal(low - middle, high - middle, rng, middle)[:, None] * e
        if t >= burn_in:
            kept.append(y)
    chains = np.stack(kept, axis=1).reshape(m, several, length * thin, d)
    share, rhat = diagnostics(chains)
    draws = chains[:, :, thin - 1 :: thin].transpose(0, 2, 1, 3).reshape(m, length * several, d)[:, :n]
    return draws, np.minimum(share * length * thin * several, n), rhat


def truncated_normal(low: np.ndarray, high: np.ndarray, rng: np.random.Generator, shift: Any = 0.0) -> np.ndarray:
    """shift + a standard normal between low and high, by inversion of logarithms of its distribution function."""
    flip = low > 0  # work in the lower tail, where logarithms keep their digits
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    log_a, log_b = log_ndtr(a), log_ndtr(b)
    with np.errstate(divide="ignore", invalid="ignore"):
        span = log_b + np.log1p(-np.exp(np.minimum(log_a - log_b, 0.0)))
        x = ndtri_exp(np.logaddexp(log_a, np.log(rng.random(a.shape)) + span))
    x = np.clip(np.where(np.isfinite(x), x, np.where(np.isfinite(b), b, a)), a, b)
    return shift + np.where(flip, -x, x)
