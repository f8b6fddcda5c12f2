"""Minimise L(Phi w) + lam |w|^2 by cutting planes with one slack (Joachims, Finley & Yu 2009), with a line search.

Every subgradient gives a plane a_k . w + b_k below the convex L; so does 0. The maximum of the planes + lam |w|^2 is minimised
in its dual,

    max over alpha >= 0, sum alpha = 1 of b . alpha - |A' alpha|^2 / (4 lam),       w = -A' alpha / (2 lam),

whose value bounds the minimum from below. The next plane is cut near the best point on the way from the best w so far.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from tqdm import tqdm

from lawful.baselines.ranking._newton import Solution

__all__ = ["cutting_planes"]

SEARCH = 8  # evaluations along a line
BEYOND = 0.1  # a plane at the best point itself would tell less than one a little further on


def cutting_planes(
    loss: Any, Phi: np.ndarray, lam: float, w: np.ndarray, *, tol: float, max_iter: int, verbose: Any, name: str
) -> Solution:
    planes = Planes(len(w), lam)
    s = Phi @ w
    exact, _, _, slope = loss.sums(s, 0.0)
    planes.cut(exact, Phi.T @ slope, w)
    objective, bound, gap, iteration = exact + lam * float(w @ w), 0.0, np.inf, 0
    with tqdm(total=max_iter, desc=name, disable=not verbose) as bar:
        while iteration < max_iter:
            iteration += 1
            lower, target = planes.minimum(0.01 * tol * objective)
            bound = max(bound, lower)
            gap = max(objective - bound, 0.0)
            bar.set_postfix(objective=f"{objective:.6g}", gap=f"{gap:.1e}")
            bar.update()
            if gap <= tol * objective:
                break
            toward = target - w
            along = Phi @ toward
            size, value = line_search(loss, s, along, w, toward, lam)
            far = min(size + BEYOND, 1.0)
            exact, _, _, slope = loss.sums(s + far * along, 0.0)
            planes.cut(exact, Phi.T @ slope, w + far * toward)
            if value < objective:
                w, s, objective = w + size * toward, s + size * along, value
    norm = float(np.linalg.norm(Phi.T @ loss.sums(s, 0.0)[3] + 2 * lam * w))
    return Solution(w, objective, gap, norm, iteration)


def line_search(loss: Any, s: Any, along: Any, w: Any, toward: Any, lam: float) -> tuple[float, float]:
    """The best of some points of the segment w + [0, 1] toward, by the sign of the slope: (size, objective)."""
    low, high, best = 0.0, 1.0, (0.0, np.inf)
    size = 1.0
    for _ in range(SEARCH):
        exact, _, _, slope = loss.sums(s + size * along, 0.0)
        there = w + size * toward
        best = min(best, (size, exact + lam * float(there @ there)), key=lambda found: found[1])
        if float(slope @ along) + 2 * lam * float(there @ toward) > 0:
            high = size
        else:
            low = size
        if low == 1.0:
            break
        size = 0.5 * (low + high)
    return best


class Planes:
    """The planes cut so far, their Gram matrix, and the dual variables of the last minimum."""

    def __init__(self, d: int, lam: float) -> None:
        self.lam = lam
        self.A, self.b, self.alpha, self.gram = np.zeros((1, d)), np.zeros(1), np.ones(1), np.zeros((1, 1))

    def cut(self, value: float, a: np.ndarray, w: np.ndarray) -> None:
        """Add the plane with slope a that touches the loss `value` at w."""
        self.A = np.vstack([self.A, a])
        self.b, self.alpha = np.append(self.b, value - a @ w), np.append(self.alpha, 0.0)
        cross = self.A @ a
        gram = np.empty((len(cross), len(cross)))
        gram[:-1, :-1], gram[-1], gram[:, -1] = self.gram, cross, cross
        self.gram = gram

    def minimum(self, tol: float) -> tuple[float, np.ndarray]:
        """A lower bound of the minimum of (maximum of the planes) + lam |w|^2, within tol of it, and its w."""
        simplex_quadratic(self.gram / (2 * self.lam), self.b, self.alpha, tol, 100 * len(self.b) + 10000)
        w = -(self.A.T @ self.alpha) / (2 * self.lam)
        return float(self.b @ self.alpha) - self.lam * float(w @ w), w


@njit(cache=True, nogil=True)
def simplex_quadratic(Q, b, alpha, tol, max_steps):
    """Maximise b . alpha - alpha' Q alpha / 2 over the simplex, in place: weight moves from one coordinate to another."""
    n = b.size
    total = 0.0
    for k in range(n):
        alpha[k] = max(alpha[k], 0.0)
        total += alpha[k]
    g = b.copy()
    for k in range(n):
        alpha[k] /= total
        for i in range(n):
            g[i] -= alpha[k] * Q[k, i]
    for _ in range(max_steps):
        i, mean = 0, 0.0
        for k in range(n):
            mean += g[k] * alpha[k]
            if g[k] > g[i]:
                i = k
        if g[i] - mean <= tol:  # bounds what is missing to the maximum
            break
        best, j = -1.0, -1
        for k in range(n):  # the partner that gains most
            gain = g[i] - g[k]
            if alpha[k] > 0.0 and gain > 0.0:
                gain = gain * gain / max(Q[i, i] + Q[k, k] - 2.0 * Q[i, k], 1e-300)
                if gain > best:
                    best, j = gain, k
        if j < 0:
            break
        step = min((g[i] - g[j]) / max(Q[i, i] + Q[j, j] - 2.0 * Q[i, j], 1e-300), alpha[j])
        alpha[i] += step
        alpha[j] = 0.0 if step == alpha[j] else alpha[j] - step
        for k in range(n):
            g[k] -= step * (Q[i, k] - Q[j, k])
