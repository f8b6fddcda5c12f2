"""The choice that evidence on a few thousand rows cannot make: what a kernel is worth where rows are many.

More rows show more detail: the family and the length scales that explain 2000 rows best need not predict best beside 20,000.
So candidates solve half of `ROWS` rows and all of them exactly, and leave-one-out errors of `JUDGED` rows among both (from the
last block of the factor alone, as in `large`) are compared. What is above the noise that a candidate believes in falls as a
power of n: what doubling the rows has done to it is what the next doublings will do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrs, dtrtri, spotrs
from sklearn.base import clone

from lawful._lapack import cholesky
from lawful.kernels import Additive, Stationary
from lawful.surrogates.evidence import Labels
from lawful.surrogates.products import values

__all__ = ["GAIN", "ROWS", "Judge", "left_out_error"]

ROWS = 4000  # benchmarks/sizes.py
JUDGED = 1500
SINGLE = 1e-4  # g above which single precision is good enough to compare by
STEEPEST = 0.3  # of what is above the noise, by doubling the rows
FARTHEST = 2.5  # doublings that can be foreseen
GAIN = 0.02  # of the logarithm of squared errors: less is no reason to leave the choice of evidence


class Judge:
    """Compares kernels for one output with n rows, of which `labels` are some."""

    def __init__(self, labels: Labels, n: int) -> None:
        order = np.random.default_rng(0).permutation(len(labels.y))
        self.all, self.half = labels.take(order), labels.take(order[len(order) // 2 :])
        self.doublings = min(np.log2(n / len(order)), FARTHEST)

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
    if labels.device is not None:
        solved = on_device(kernel, labels, g)
        if solved is None:
            return np.inf, 0.0
        a, u, diagonal = solved
        return judged_error(labels, g, a, u, diagonal)
    dtype, solve = (np.float32, spotrs) if g > SINGLE else (np.float64, dpotrs)
    G = np.empty((p, p), dtype=dtype)
    for i in range(0, p, 512):  # the lower triangle, which is the upper one of the transpose
        part = slice(i, min(i + 512, p))
        G[part, : part.stop] = values(kernel, labels.X[part], labels.X[: part.stop], dtype)
    np.einsum("ii->i", G)[...] += (g / labels.w).astype(dtype)
    if cholesky(G, lower=True) is None:
        return np.inf, 0.0
    L = G.T
    right = np.stack([labels.y, np.ones(p)], axis=1).astype(dtype)
    a, u = solve(L, right, lower=0)[0].astype(float).T
    judged = slice(max(p - JUDGED, 0), p)
    inverse = np.triu(dtrtri(np.asfortranarray(np.triu(L[judged, judged]), dtype=float), lower=0)[0])
    diagonal = (inverse**2).sum(axis=1)
    return judged_error(labels, g, a, u, diagonal)


def on_device(kernel: Stationary, labels: Labels, g: float) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """G^-1 y, G^-1 1 and the last of the diagonal of G^-1 from a device of torch; None where G is singular."""
    import torch

    X, y, w = (torch.as_tensor(np.ascontiguousarray(v), device=labels.device) for v in (labels.X, labels.y, labels.w))
    G = kernel(X, X)
    G.diagonal().add_(g / w)
    L, failed = torch.linalg.cholesky_ex(G)
    if int(failed):
        return None
    found = torch.cholesky_solve(torch.stack([y, torch.ones_like(y)], dim=1), L)
    corner = L[-min(JUDGED, len(y)) :, -min(JUDGED, len(y)) :]
    inverse = torch.linalg.solve_triangular(corner, torch.eye(len(corner), dtype=L.dtype, device=L.device), upper=False)
    return *found.T.cpu().numpy(), (inverse**2).sum(0).cpu().numpy()


def judged_error(labels: Labels, g: float, a: np.ndarray, u: np.ndarray, diagonal: np.ndarray) -> tuple[float, float]:
    judged = slice(len(a) - len(diagonal), len(a))
    if labels.intercept:
        a = a - u * (a.sum() / u.sum())
        diagonal = diagonal - u[judged] ** 2 / u.sum()
    noise = g * max(float(a @ labels.y), 0.0) / max(labels.free, 1)
    return float(np.mean((a[judged] / np.maximum(diagonal, 1e-300)) ** 2)), noise
