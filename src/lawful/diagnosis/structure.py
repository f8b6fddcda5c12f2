r"""What the equations of a law say about each other: rank, redundancy, contradiction, singular points.

At the labels, in units of the outputs' spread and with gradients of usual length 1, the rank of the Jacobian is the number of
outputs that the law decides. An equation whose gradient is everywhere a combination of others,
grad g_p = sum_q beta_q grad g_q, adds nothing where g_p = sum_q beta_q g_q too, and contradicts them where that difference is
not 0. A singular point is one where an equation holds and its gradient vanishes: a Newton step on the gradient leads there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lawful.diagnosis.functions import Functions

SAME = 1e-6  # of a unit gradient: outside the span of others
APART = 1e-6  # of the size of its terms: not the same equation
ON_LAW = 0.05  # of the usual gradient: a place where both the equation and its gradient vanish


@dataclass(frozen=True)
class Structure:
    """Rank of the Jacobian at most rows; {p: (the others it follows from, contradicts)}; (m,) how far a singular point is."""

    rank: int
    dependent: dict[int, tuple[list[int], bool]]
    singular: np.ndarray


def structure_of(law: Functions, points: np.ndarray, spread: np.ndarray) -> Structure:
    """At points (m, T) near the law, in units of the outputs' spread."""
    P = law.n_equal
    if P == 0 or not len(points):
        return Structure(0, {}, np.full(len(points), np.inf))
    J = law.jacobian(points)[:, :P] * spread
    good = np.isfinite(J).all(axis=(1, 2))
    length = np.sqrt((J**2).sum(axis=2))
    typical = np.median(length[good], axis=0) if good.any() else np.ones(P)
    typical = np.where(typical > 0, typical, 1.0)
    J = J[good] / typical[None, :, None]
    if not len(J):
        return Structure(0, {}, np.full(len(points), np.inf))
    s = np.linalg.svd(J, compute_uv=False)
    rank = int(np.median((s > SAME * s[:, :1]).sum(axis=1)))
    dependent = {}
    g = law.values(points)[good][:, :P] / typical
    size = np.abs(points[good] / spread).max(axis=1) + 1.0
    for p in reversed(range(P)):  # of equal ones the later one is one too many
        others = [q for q in range(P) if q != p and q not in dependent]
        if not others:
            continue
        A = np.swapaxes(J[:, others], 1, 2)  # (m, T, q)
        beta = np.linalg.pinv(A, rcond=SAME) @ J[:, p, :, None]
        off = np.linalg.norm(J[:, p] - (A @ beta)[:, :, 0], axis=1)
        if np.median(off) > SAME * np.median(np.linalg.norm(J[:, p], axis=1)):
            continue
        gap = np.abs(g[:, p] - (g[:, others] * beta[:, :, 0]).sum(axis=1))
        part = [q for k, q in enumerate(others) if np.median(np.abs(beta[:, k, 0])) > SAME]
        dependent[p] = (part, bool(np.median(gap / size) > APART))
    return Structure(rank, dependent, _singular(law, points, spread, typical))


def _singular(law: Functions, points: np.ndarray, spread: np.ndarray, typical: np.ndarray) -> np.ndarray:
    """(m,) distance, in spreads of the outputs, to where an equation's gradient vanishes on the law; a Newton step away."""
    distance = np.full(len(points), np.inf)
    for p in range(law.n_equal):
        J = law.jacobian(points)[:, p] * spread
        B = law.hessian(points, p) * spread[:, None] * spread
        if not (np.isfinite(J).all() and np.isfinite(B).all()) or not B.any():
            continue
        step = (np.linalg.pinv(B, rcond=1e-9) @ J[:, :, None])[:, :, 0]
        there = points - step * spread
        flat = np.linalg.norm(law.jacobian(there)[:, p] * spread, axis=1) <= ON_LAW * typical[p]
        on_law = np.abs(law.values(there)[:, p]) <= ON_LAW * typical[p]
        length = np.linalg.norm(step, axis=1)
        distance = np.where(flat & on_law, np.minimum(distance, length), distance)
    return distance
