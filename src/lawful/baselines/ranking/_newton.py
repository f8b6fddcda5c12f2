"""Minimise L(Phi w) + lam |w|^2 for a pairwise loss L by truncated Newton, and bound how far the value is from the minimum.

A positive part is smoothed on an interval of length mu and its slopes serve as dual variables alpha in [0, 1]:

    value at w - dual value at alpha = [L(s) - sum alpha a z] + |grad|^2 / (4 lam)                (both parts >= 0)

where grad is the gradient of the smoothed objective. The first part falls with mu, the second with Newton steps, so mu is
lowered as soon as it is what matters. A smooth loss needs no mu, and by strong convexity |grad|^2 / (4 lam) bounds its gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg
from tqdm import tqdm

__all__ = ["Solution", "newton"]

MU_FALL, MU_LAST = 0.2, 1e-10
ARMIJO, MAX_HALVINGS = 1e-4, 40
DENSE = 1500  # features up to which a d x d matrix is factored


@dataclass
class Solution:
    """w, its objective, how far that can be above the minimum, the norm of the (sub)gradient, iterations.

    rounding: the share of the objective below which the gap says nothing.
    """

    w: np.ndarray
    objective: float
    gap: float
    gradient_norm: float
    n_iter: int
    rounding: float = 0.0


def newton(
    loss: Any, Phi: np.ndarray, lam: float, w: np.ndarray, *, smooth: bool, tol: float, max_iter: int, verbose: Any, name: str
) -> Solution:
    """Steps by conjugate gradients with a line search. The best value and the best bound of all steps are kept."""
    mu = 0.0 if smooth else loss.width
    best, bound = Solution(w, np.inf, np.inf, np.inf, 0), -np.inf
    s, spread = Phi @ w, Spread(loss.pairs, Phi)
    sums = loss.sums(s, mu)
    with tqdm(total=max_iter, desc=name, disable=not verbose) as bar:
        for iteration in range(max_iter + 1):
            exact, value, linear, slope = sums
            grad = Phi.T @ slope + 2 * lam * w
            norm, ridge = float(np.linalg.norm(grad)), lam * float(w @ w)
            slack, residue = max(exact - linear, 0.0), norm**2 / (4 * lam)
            if exact + ridge <= best.objective:
                best = Solution(w, exact + ridge, np.inf, norm, iteration)
            bound = max(bound, exact + ridge - slack - residue)
            best.gap, best.n_iter = max(best.objective - bound, 0.0), iteration
            bar.set_postfix(objective=f"{best.objective:.6g}", gap=f"{best.gap:.1e}")
            allowed = tol * best.objective
            if best.gap <= allowed or iteration == max_iter:
                break
            if not smooth and residue <= 0.25 * max(slack, allowed):
                if mu <= MU_LAST * loss.width:
                    break
                mu *= max(MU_FALL, min(0.5, np.sqrt(0.5 * allowed / max(slack, 1e-300))))  # the slack falls like mu^2
                _, value, _, slope = sums = loss.sums(s, mu)
                grad = Phi.T @ slope + 2 * lam * w
            step = newton_step(loss, Phi, lam, s, mu, grad, spread)
            found = line_search(loss, mu, lam, (w, s, value), (step, Phi @ step, float(grad @ step)))
            if found is not None:
                w, s, sums = found
            elif smooth or mu <= MU_LAST * loss.width:
                break
            else:  # rounding: no step makes the smoothed objective smaller
                mu *= MU_FALL
                sums = loss.sums(s, mu)
            bar.update()
    return best


def line_search(loss: Any, mu: float, lam: float, here: tuple, way: tuple) -> tuple[np.ndarray, np.ndarray, tuple] | None:
    """A point with a lower objective and at most half the slope, by bisection: (w, s, sums) there; None if there is none.

    Where few pairs are in the smoothed part a Newton step is often far too long, and the first point that is merely lower far
    too short; the slope finds the valley between.
    """
    (w, s, value), (step, moved, descent) = here, way
    before, low, high, size = value + lam * float(w @ w), 0.0, np.inf, 1.0
    for _ in range(MAX_HALVINGS):
        new, sums = w + size * step, loss.sums(s + size * moved, mu)
        slope = float(sums[3] @ moved) + 2 * lam * float(new @ step)
        lower = sums[1] + lam * float(new @ new) <= before + ARMIJO * size * descent
        if lower and abs(slope) <= 0.5 * abs(descent):
            return new, s + size * moved, sums
        if lower and slope < 0:
            low = size
        else:
            high = size
        size = 2 * size if high == np.inf else 0.5 * (low + high)
    return None


class Spread:
    """The spread of the features within queries, M = sum_u omega_u n_u sum_p (phi - mean)(phi - mean)', in its eigenbasis.

    The curvature of a pairwise loss is about k M + 2 lam with one number k: that is what conjugate gradients are preconditioned
    with, so that they need a few steps even where features say nearly the same. k is measured at every Newton step.
    """

    basis: np.ndarray | None = None

    def __init__(self, pairs: Any, Phi: np.ndarray) -> None:
        n = np.diff(pairs.indptr)
        weight = np.sqrt(np.repeat(pairs.omega * n, n))[:, None]
        inside = weight * (Phi - np.repeat(np.add.reduceat(Phi, pairs.indptr[:-1], axis=0) / n[:, None], n, axis=0))
        if Phi.shape[1] <= DENSE:
            values, self.basis = np.linalg.eigh(inside.T @ inside)
            self.values = np.maximum(values, 0.0)
        else:
            self.values = np.sum(inside**2, axis=0)

    def to(self, v: np.ndarray) -> np.ndarray:
        return v if self.basis is None else self.basis.T @ v

    def back(self, v: np.ndarray) -> np.ndarray:
        return v if self.basis is None else self.basis @ v


def newton_step(
    loss: Any, Phi: np.ndarray, lam: float, s: np.ndarray, mu: float, grad: np.ndarray, spread: Spread
) -> np.ndarray:
    """d with H d = -grad by conjugate gradients, to a residual that shrinks with the gradient; k M + 2 lam preconditions."""

    def product(v: np.ndarray) -> np.ndarray:
        return Phi.T @ loss.curvature(s, mu, Phi @ v)

    start = spread.back(spread.to(grad) / (spread.values + 2 * lam))
    along = spread.to(start)
    k = float(start @ product(start)) / max(float(along @ (spread.values * along)), 1e-300)
    diagonal = k * spread.values + 2 * lam
    n = len(grad)
    H = LinearOperator((n, n), lambda v: product(v) + 2 * lam * v, dtype=float)
    M = LinearOperator((n, n), lambda r: spread.back(spread.to(r) / diagonal), dtype=float)
    share = min(0.1, float(np.linalg.norm(grad)) ** 0.5)
    return cg(H, -grad, rtol=share, maxiter=2 * n + 10, M=M)[0]
