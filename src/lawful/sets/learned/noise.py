"""What to do when nobody knows the noise.

*Plateau.* s(d) is the held-out root mean square distance of the points from the best law of degree d, in units of a supposed
noise; s(0) is the smallest spread of a column. Where a law is found, s falls to the noise and stays there: the first degree
with s(d-1) >= 3 s(d) (10 s(d) for d = 1: outputs that go together are common) and no further fall at d + 1 beyond chance (or
by half after a fall by 30) gives sigma = s(d). Two shapes of noise are tried, in proportion to the spread of each output, and
equal in all. The one that finds more laws is taken, then the one with fewer terms, then the one under which the distances are
more likely.

*Regression.* The leave-one-out error of a regression of the outputs on the inputs is noise and bias together, so that it bounds
the noise from above: a plateau well above it is no noise, but a correlation.

*Rounding.* Data without noise obey a law to the digits they were written with: 1e-7 of the size of an output counts as noise.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from lawful.sets.learned.features import library
from lawful.sets.learned.spectrum import of_moments, prepared

FALL = 3.0  # a law is so many times nearer than the best of the degree before
FALL_LINEAR = 10.0  # the same for degree 1: correlated outputs are no law
DEEP = 30.0  # after such a fall a small one is nothing: multiples of a law, where a factor is near 0
CLEAN = 1e-7  # of an output: rounding
FOLDS = 5
MAX_ROWS = 1500
REGRESSED = 600  # rows of the regression
ABOVE = 1.5  # times the error of a regression: no noise


def at_least_rounding(Z: np.ndarray, sigma: np.ndarray, n_outputs: int) -> np.ndarray:
    """Noise of the outputs no smaller than CLEAN times their size: digits that were cut off are noise as well."""
    outputs = np.arange(len(sigma)) < n_outputs
    return np.where(outputs, np.maximum(sigma, CLEAN * np.sqrt(np.mean(Z**2, axis=0))), sigma)


def shapes(Z: np.ndarray, n_outputs: int) -> list[np.ndarray]:
    """Supposed noise (D,): in proportion to the spread, and equal for all outputs; inputs have none."""
    outputs = np.arange(Z.shape[1]) < n_outputs
    spread = Z.std(axis=0)
    moving = outputs & (spread > CLEAN * spread[:n_outputs].max(initial=0.0))
    equal = np.exp(np.mean(np.log(spread[moving]))) if moving.any() else 1.0
    return [np.where(outputs, spread, 0.0), np.where(moving, equal, 0.0)]


def held_out_distance(
    Z: np.ndarray, degree: int, shape: np.ndarray, functions: tuple[str, ...], rng: np.random.Generator
) -> float:
    """s(degree): of the best law of the other folds, on each fold."""
    lib = library(Z, degree, shape, functions, centred=True)
    F, G, noisy = prepared(lib, Z, shape)
    fold = rng.permutation(len(Z)) % FOLDS
    squares = []
    for k in range(FOLDS):
        train, test = fold != k, fold == k
        centre = F[train].mean(axis=0)
        theta = of_moments(F[train] - centre, G[train], int((~noisy).sum()) + 1, 1).theta
        if theta.shape[1] == 0:
            return np.inf
        g = np.mean(np.sum(np.einsum("nqd,q->nd", G[test], theta[:, 0]) ** 2, axis=1))
        squares.append(np.mean(((F[test] - centre) @ theta[:, 0]) ** 2) / max(g, 1e-300))
    return float(np.sqrt(np.mean(squares)))


def plateau(
    Z: np.ndarray, n_outputs: int, degrees: int, functions: tuple[str, ...], rng: np.random.Generator, per_term: int
) -> list[np.ndarray]:
    """sigma (D,) of each shape from the first degree at which the distance falls to a plateau; none when it never does."""
    if len(Z) > MAX_ROWS:
        Z = Z[rng.permutation(len(Z))[:MAX_ROWS]]
    moving = Z.std(axis=0) > 1e-14 * np.abs(Z).max(axis=0, initial=0.0)
    part = Z[:, moving]
    outputs = int(moving[:n_outputs].sum())
    found: list[tuple[int, float, np.ndarray]] = []
    for shape in shapes(part, outputs):
        if not shape.any():
            continue
        at = _fall(part, shape, degrees, functions, rng, per_term)
        if at is not None:
            degree, s = at
            found.append((degree, s, shape))
    first = min((degree for degree, _, _ in found), default=0)
    out = []
    for degree, s, shape in found:
        if degree == first:
            sigma = np.zeros(Z.shape[1])
            sigma[moving] = s * shape
            out.append(sigma)
    return out


def _fall(
    Z: np.ndarray, shape: np.ndarray, degrees: int, functions: tuple[str, ...], rng: np.random.Generator, per_term: int
) -> tuple[int, float] | None:
    spread = Z.std(axis=0)
    before = float(np.min((spread / np.where(shape > 0, shape, np.inf))[shape > 0]))
    slack = 1 - min(4 / np.sqrt(2 * len(Z)), 0.4)
    nexts: dict[int, float] = {}
    for degree in range(1, degrees + 1):
        for d in (degree, degree + 1):
            terms = len(library(Z[:2], d, shape, functions))
            if d not in nexts:
                enough = per_term * terms <= len(Z)
                nexts[d] = max(held_out_distance(Z, d, shape, functions, rng), CLEAN) if enough else np.inf
        s, after = nexts[degree], nexts[degree + 1]
        if not np.isfinite(s):
            return None
        if before >= (FALL_LINEAR if degree == 1 else FALL) * s and after >= (0.5 if before >= DEEP * s else slack) * s:
            return degree, s
        before = min(before, s)
    return None


def regression_error(X: np.ndarray, Y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(T,) leave-one-out errors of a Gaussian kernel ridge, the best over bandwidths and penalties for each output."""
    rows = rng.permutation(len(X))[:REGRESSED]
    X, Y = X[rows], Y[rows]
    spread = X.std(axis=0)
    X = (X[:, spread > 0] - X[:, spread > 0].mean(axis=0)) / spread[spread > 0]
    best = Y.std(axis=0)
    if X.shape[1] == 0 or len(X) < 5:
        return best
    squared = cdist(X, X, "sqeuclidean") / X.shape[1]
    for width in (0.1, 0.3, 1.0, 3.0, 10.0):
        w, V = np.linalg.eigh(np.exp(-squared / (2 * width**2)))
        for lam in 10.0 ** np.arange(-10, 1):
            inverse = V / (np.maximum(w, 0) + lam) @ V.T
            ones = inverse.sum(axis=1)
            inverse -= np.outer(ones, ones) / ones.sum()
            loo = (inverse @ Y) / np.maximum(np.diag(inverse), 1e-300)[:, None]
            best = np.minimum(best, np.sqrt(np.mean(loo**2, axis=0)))
    return best
