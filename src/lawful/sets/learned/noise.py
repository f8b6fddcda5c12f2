"""What to do when nobody knows the noise.

*Plateau.* s(d) is the held-out root mean square distance of the points from the best law of degree d, in units of a supposed
noise; s(0) is the smallest spread of a column. Where a law is found, s falls to the noise and stays there: the first degree with
s(d-1) >= 3 s(d) and no further fall at d + 1 beyond chance gives sigma = s(d). Two shapes of noise are tried, in proportion to
the spread of each output, and equal in all; the one that makes the residuals more likely is taken.

*Regression.* The leave-one-out error of a regression of the outputs on the inputs is noise and bias together, so that it bounds
the noise from above: a plateau well above it is no noise, but a correlation.

*Rounding.* Digits that were cut off are noise as well, when there is no other.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from lawful.sets.learned.features import library
from lawful.sets.learned.spectrum import of_moments, prepared, spectrum

FALL = 3.0  # a law is so many times nearer than the best of the degree before
FOLDS = 5
MAX_ROWS = 1500
REGRESSED = 600  # rows of the regression
ABOVE = 1.5  # times the error of a regression: no noise


def rounding(Z: np.ndarray) -> np.ndarray:
    """(D,) standard deviation of what was cut off, where all numbers of a column end at the same decimal; else 0."""
    out = np.zeros(Z.shape[1])
    for i, z in enumerate(Z.T):
        size = np.abs(z).max(initial=0.0)
        for decimals in range(13):
            if np.all(np.abs(z - np.round(z, decimals)) <= 1e-14 * size):
                step = 10.0**-decimals / np.sqrt(12)
                out[i] = step if step < 1e-5 * z.std() else 0.0  # coarser numbers are counts, or measured so
                break
    return out


def at_least_rounding(Z: np.ndarray, sigma: np.ndarray, n_outputs: int) -> np.ndarray:
    """Noise no smaller than that of the digits; that of the inputs counts only where the outputs are hardly noisier."""
    size = np.maximum(np.sqrt(np.mean(Z**2, axis=0)), 1e-300)
    digits = np.maximum(rounding(Z), 1e-13 * size)
    outputs = np.arange(len(sigma)) < n_outputs
    floor = np.where(outputs, np.maximum(sigma, digits), sigma)
    finest = np.min((floor / size)[outputs], initial=np.inf)
    return np.where(~outputs & (digits / size > 0.05 * finest), np.maximum(sigma, digits), floor)


def shapes(Z: np.ndarray, n_outputs: int) -> list[np.ndarray]:
    """Supposed noise (D,): in proportion to the spread, and equal for all outputs; inputs have none."""
    outputs = np.arange(Z.shape[1]) < n_outputs
    spread = Z.std(axis=0)
    moving = outputs & (spread > 0)
    equal = np.exp(np.mean(np.log(spread[moving]))) if moving.any() else 1.0
    return [np.where(outputs, spread, 0.0), np.where(outputs, equal, 0.0)]


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
) -> np.ndarray | None:
    """sigma (D,) from the first degree at which the distance falls to a plateau; None when it never does."""
    if len(Z) > MAX_ROWS:
        Z = Z[rng.permutation(len(Z))[:MAX_ROWS]]
    moving = Z.std(axis=0) > 1e-14 * np.abs(Z).max(axis=0, initial=0.0)
    part = Z[:, moving]
    outputs = int(moving[:n_outputs].sum())
    found: list[tuple[int, float, np.ndarray]] = []
    for shape in shapes(part, outputs):
        if not shape.any():
            return None
        at = _fall(part, shape, degrees, functions, rng, per_term)
        if at is not None:
            degree, s = at
            found.append((degree, s, shape))
    if not found:
        return None
    first = min(degree for degree, _, _ in found)
    found = [f for f in found if f[0] == first]
    _, s, shape = max(found, key=lambda f: _likelihood(part, first, f[1] * f[2], found[0][2], functions))
    sigma = np.zeros(Z.shape[1])
    sigma[moving] = s * shape
    return sigma


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
                nexts[d] = held_out_distance(Z, d, shape, functions, rng) if per_term * terms <= len(Z) else np.inf
        s, after = nexts[degree], nexts[degree + 1]
        if not np.isfinite(s):
            return None
        if before >= FALL * s and after >= slack * s:
            return degree, s
        before = min(before, s)
    return None


def _likelihood(Z: np.ndarray, degree: int, sigma: np.ndarray, common: np.ndarray, functions: tuple[str, ...]) -> float:
    """Of the residuals of one law, the same for all, under this noise."""
    lib = library(Z, degree, common, functions, centred=True)
    theta = spectrum(lib, Z, common, 1).theta[:, 0]
    F, G, _ = prepared(lib, Z, common)
    scaled = G * np.where(common > 0, sigma / np.where(common > 0, common, 1.0), 0.0)
    g = np.maximum(np.sum(np.einsum("nqd,q->nd", scaled, theta) ** 2, axis=1), 1e-300)
    r2 = (F @ theta) ** 2
    return float(-0.5 * (len(Z) * np.log(np.mean(r2 / g)) + np.sum(np.log(g))))


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
