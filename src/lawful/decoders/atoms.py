"""What averages over C run over: its points or samples of it, their moments and their density."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lawful._array import Array, array_namespace, device_of
from lawful._small import solve_many
from lawful.decoders.enumeration import row_chunks
from lawful.losses.quadratic import Quadratic


class Atoms(NamedTuple):
    """The points an average runs over: (P, T), with probabilities (P,), or (m, P, T) and (m, P) where C depends on x."""

    points: Array
    prior: Array
    sampled: bool


def unbounded(C: Any) -> Any:
    """The part of C because of which it has no end, so that there is no average over it; None if it has one."""
    if not getattr(C, "unbounded", False):
        return None
    parts = getattr(C, "members_", None) or [part for part, _ in getattr(C, "blocks_", [])] or [getattr(C, "base_", None)]
    return next((found for found in map(unbounded, parts) if found is not None), C)


def positive_part(F: Any) -> Any:
    """F without the outputs that have no positive weight: they say nothing."""
    if not isinstance(F, Quadratic):
        return F
    xp = array_namespace(F.a)
    zero = xp.zeros_like(F.a)
    return Quadratic(xp.where(F.a > 0, F.a, zero), xp.where(F.a > 0, F.b, zero), F.doubtful, F.unit)


def covariance(points: Array, prior: Array) -> tuple[Array, Array]:
    """Mean and covariance of weighted points: (T,) and (T, T), or one for each row; 0 where nothing has weight."""
    xp = array_namespace(points)
    total = xp.sum(prior, axis=-1, keepdims=True)
    p = prior / xp.where(total > 0, total, xp.ones_like(total))
    mean = xp.sum(p[..., None] * points, axis=-2)
    centred = points - mean[..., None, :]
    return mean, xp.matrix_transpose(p[..., None] * centred) @ centred


def filter_gain(A: Array, G: Array) -> Array:
    """G (G + A^-1)^-1 = (I + G A)^-1 G A, also where A is singular."""
    xp = array_namespace(A)
    GA = G @ A
    return solve_many(xp.eye(A.shape[-1], dtype=A.dtype, device=device_of(A)) + GA, GA)


def density(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Gaussian kernel density at the points themselves, up to a factor; Scott's bandwidth, n^(-1/(T + 4)) deviations."""
    n, T = points.shape
    spread = points.std(axis=0)
    z = points / np.where(spread > 0, spread, 1.0) * n ** (1 / (T + 4))
    square = (z**2).sum(axis=1)
    out = np.empty(n)
    for rows in row_chunks(n, n, z):
        apart = square[rows, None] + square[None, :] - 2 * (z[rows] @ z.T)
        out[rows] = np.exp(-np.maximum(apart, 0.0) / 2) @ weights
    return out
