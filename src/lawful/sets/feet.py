r"""Foot points: the nearest point of a law {g = 0} to each label, in the metric of its noise.

With J the derivatives of g at f and S the covariance of the noise of a label y,

    f <- y - S J' (J S J')^-1 (g(f) + J (y - f)),

which is exact where g is affine and converges fast where the noise is small beside the bends of the law. Where it does not, the
label itself stands in, and the distance is Sampson's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

FOOT_STEPS = 8
SETTLED = 1e-9  # of the distance: the steps have come to an end
RIDGE = 1e-12  # of J S J': equations that say the same twice

Law = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]  # c (n, T) -> g (n, P), J (n, P, T)


def weights(J: np.ndarray, S: np.ndarray) -> np.ndarray:
    """(n, P, P) inverse of J S J', J (n, P, T), S (n, T, T) or (T, T); 0 where that does not exist."""
    with np.errstate(all="ignore"):
        V = J @ S @ np.swapaxes(J, 1, 2)
        unit = np.sqrt(np.einsum("npp->np", V))
        good = np.isfinite(V).all(axis=(1, 2)) & np.isfinite(1 / unit**2).all(axis=1)
    unit = np.where(good[:, None], unit, 1.0)
    scaled = np.where(good[:, None, None], V, np.eye(V.shape[1])) / unit[:, :, None] / unit[:, None, :]
    inverse = np.linalg.inv(scaled + RIDGE * np.eye(V.shape[1])) if V.shape[1] > 1 else 1 / scaled
    return np.where(good[:, None, None], inverse / unit[:, :, None] / unit[:, None, :], 0.0)


@np.errstate(all="ignore")
def feet(law: Law, Y: np.ndarray, S: np.ndarray, steps: int = FOOT_STEPS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Foot points (n, T) of labels Y, distances (n,) in units of the noise, and for which rows they are.

    For the others, the label and Sampson's distance. Of a single equation the distance has the sign of the equation there.
    S is (n, T, T), or (T, T) for all rows.
    """
    f = Y
    first = last = moved = np.zeros(len(Y))
    for k in range(steps):
        g, J = law(f)
        lam = np.einsum("npq,nq->np", weights(J, S), g + np.einsum("npt,nt->np", J, Y - f))
        back = np.einsum("npt,np->nt", J, lam)
        toward = (S @ back[:, :, None])[:, :, 0]
        f, distance = Y - toward, np.sqrt(np.einsum("nt,nt->n", back, toward))
        distance = np.copysign(distance, lam[:, 0]) if lam.shape[1] == 1 else distance
        moved, last = np.abs(distance - last), distance
        first = distance if k == 0 else first
        if np.all(moved <= SETTLED * (1e-3 + np.abs(last))):
            break
    good = (moved <= 1e-3 * (1 + np.abs(last))) & (np.abs(last) <= 1.5 * np.abs(first) + 0.5) & np.isfinite(f).all(axis=1)
    return np.where(good[:, None], f, Y), np.where(good, last, first), good
