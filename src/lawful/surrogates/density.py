"""The choice that evidence on a few thousand rows cannot make: what a kernel is worth where rows are many.

More rows show more detail: the family and the length scales that explain 2000 rows best need not predict best beside 20,000.
So candidates solve half of `ROWS` rows and all of them exactly, and leave-one-out errors of `JUDGED` rows among both (from the
last block of the factor alone, as in `large`) are compared. What is above the noise that a candidate believes in falls as a
power of n: what doubling the rows has done to it is what the next doublings will do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri, spotrf, spotrs
from sklearn.base import clone

from lawful.kernels import Additive, Stationary
from lawful.surrogates.evidence import Labels
from lawful.surrogates.products import values

__all__ = ["GAIN", "ROWS", "Judge", "left_out_error"]

ROWS = 5000  # benchmarks/sizes.py
JUDGED = 1500
SINGLE = 1e-4  # g above which single precision is good enough to compare by
STEEPEST = 0.3  # of what is above the noise, by doubling the rows
GAIN = 0.02  # of the logarithm of squared errors: less is no reason to leave the choice of evidence


class Judge:
    """Compares kernels for one output with n rows, of which `labels` are some."""

    def __init__(self, labels: Labels, n: int) -> None:
        order = np.random.default_rng(0).permutation(len(labels.y))
        self.all, self.half = labels.take(order), labels.take(order[len(order) // 2 :])
        self.doublings = np.log2(n / len(order))

    def of(self, member: Any) -> float:
        """Log of the squared error of labels that is to be expected with n rows; infinite where a matrix is singular."""
        (before, _), (error, noise) = (
            left_out_error(member.kernel, labels, member.theta, float(member.log_g[0])) for labels in (self.half, self.all)
        )
        if not np.isfinite(before + error):
            return np.inf
        floor = min(noise, error)
        left = float(np.clip((error - floor) / max(before - floor, 1e-300), STEEPEST, 1.0))
        return float(np.log(floor + (error - floor) * left**self.doublings + 1e-300))


def left_out_error(kernel: Stationary, labels: Labels, theta: np.ndarray, log_g: float) -> tuple[float, float]:
    """The mean squared leave-one-out residual of the last rows, and the variance of the noise by the model."""
    p, d, g = len(labels.y), labels.X.shape[1], float(np.exp(log_g))
    own = {"share": float(1 / (1 + np.exp(-theta[d])))} if isinstance(kernel, Additive) else {}
    kernel = clone(kernel).set_params(sigma=np.exp(theta[:d]), **own)
    dtype, factor, solve = (np.float32, spotrf, spotrs) if g > SINGLE else (np.float64, dpotrf, dpotrs)
    G = np.empty((p, p), dtype=dtype)
    for i in range(0, p, 512):  # the lower triangle, which is the upper one of the transpose
        part = slice(i, min(i + 512, p))
        G[part, : part.stop] = values(kernel, labels.X[part], labels.X[: part.stop], dtype)
    np.einsum("ii->i", G)[...] += (g / labels.w).astype(dtype)
    L, failed = factor(G.T, lower=0, clean=0, overwrite_a=1)
    if failed:
        return np.inf, 0.0
    right = np.stack([labels.y, np.ones(p)], axis=1).astype(dtype)
    a, u = solve(L, right, lower=0)[0].astype(float).T
    judged = slice(max(p - JUDGED, 0), p)
    inverse = np.triu(dtrtri(np.asfortranarray(np.triu(L[judged, judged]), dtype=float), lower=0)[0])
    diagonal = (inverse**2).sum(axis=1)
    if labels.intercept:
        a = a - u * (a.sum() / u.sum())
        diagonal = diagonal - u[judged] ** 2 / u.sum()
    noise = g * max(float(a @ labels.y), 0.0) / max(labels.free, 1)
    return float(np.mean((a[judged] / np.maximum(diagonal, 1e-300)) ** 2)), noise
