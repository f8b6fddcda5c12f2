"""From a support to a law: coefficients by distance, standard errors, and how far the points are.

For a law p = F theta with few terms, the Sampson distance of a point is p / sqrt(g), g = sum_i sigma_i^2 (d_i p)^2; the
geometric distance is that of its foot point, the nearest point of {p = 0} in units of the noise (`lawful.sets.feet`), and theta
comes from Gauss-Newton on the signed distances, whose derivative in theta is F(f) / sqrt(g(f)), with |theta| = 1. Where the
steps do not converge the Sampson distance stands in. Standard errors are those of the same linear problem.

Noise along a law that bends moves points to its outer side: with v the unit normal and B the second derivatives of p, all in
units of the noise, the signed distance has mean b = tr((I - v v') B) / (2 sqrt(g)), not 0. Least squares of distances alone
put the radius of a circle at r + s^2 / (2 r); `unbent` moves theta to where the distances less b are least.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lawful.sets.feet import feet as nearest
from lawful.sets.learned.features import Library

NEWTON_STEPS = 8
BENT = 0.3  # of the noise: beyond, a point is nearer to a crossing or a tip than the expansion holds


@dataclass(frozen=True)
class Fit:
    """Coefficients in the units of the library, |theta| = 1, with covariance; signed distances in units of the noise."""

    theta: np.ndarray
    covariance: np.ndarray
    distance: np.ndarray

    @property
    def mu(self) -> float:
        dof = max(len(self.distance) - len(self.theta) + 1, 1)
        return float(np.sum(self.distance**2) / dof)


def sampson(lib: Library, Z: np.ndarray, sigma: np.ndarray, start: np.ndarray | None = None, steps: int = 5) -> np.ndarray:
    """theta of least weighted p^2, weights 1/g from the theta before: singular vectors of the weighted terms, unsquared."""
    F, dF = lib.evaluate(Z)
    G = dF * (sigma / lib.unit)
    theta = start
    for _ in range(steps):
        if theta is None:
            weight = np.ones(len(Z))
        else:
            g = np.sum(np.einsum("nqd,q->nd", G, theta) ** 2, axis=1)
            weight = 1 / np.maximum(g, 1e-3 * g.mean() + 1e-300)
        W = np.sqrt(weight / weight.mean())
        noisy = np.any(G != 0, axis=(0, 2))
        theta = _least(F * W[:, None], (G * W[:, None, None]).transpose(0, 2, 1).reshape(-1, len(lib)), noisy)
    return theta if theta is not None else np.zeros(len(lib))


def _least(F: np.ndarray, G: np.ndarray, noisy: np.ndarray) -> np.ndarray:
    """argmin |F theta|^2 / |G theta|^2; columns that are not noisy are free."""
    free = F[:, ~noisy]
    Q, R = np.linalg.qr(free)
    rest = F[:, noisy] - Q @ (Q.T @ F[:, noisy])
    root = np.linalg.qr(G[:, noisy], mode="r")
    root = root + 1e-13 * np.abs(np.diag(root)).max(initial=0.0) * np.eye(len(root))
    Vt = np.linalg.svd(np.linalg.solve(root.T, rest.T).T, full_matrices=False)[2]
    theta = np.zeros(F.shape[1])
    theta[noisy] = np.linalg.solve(root, Vt[-1])
    if len(R):
        theta[~noisy] = -np.linalg.lstsq(R, Q.T @ F[:, noisy] @ theta[noisy], rcond=None)[0]
    return theta / np.linalg.norm(theta)


def law_at(lib: Library, theta: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """p (n,) and its gradient (n, D) in the units of the data."""
    F, dF = lib.evaluate(Z)
    return F @ theta, np.einsum("nqd,q->nd", dF, theta) / lib.unit


def feet(lib: Library, theta: np.ndarray, Z: np.ndarray, sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Foot points (n, D) and signed distances (n,) in units of the noise."""

    def law(c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, slope = law_at(lib, theta, c)
        return p[:, None], slope[:, None, :]

    return nearest(law, Z, np.diag(sigma**2))[:2]


def geometric(lib: Library, theta: np.ndarray, Z: np.ndarray, sigma: np.ndarray) -> Fit:
    """Gauss-Newton on signed distances, from theta; steps that do not shorten them are not taken."""
    theta = theta / np.linalg.norm(theta)
    foot, distance = feet(lib, theta, Z, sigma)
    J = _slopes(lib, theta, foot, sigma)
    for _ in range(NEWTON_STEPS):
        tangent = _tangent(theta)
        step = tangent @ np.linalg.lstsq(J @ tangent, -distance, rcond=None)[0]
        for size in (1.0, 0.25):
            trial = theta + size * step
            trial /= np.linalg.norm(trial)
            new_foot, new = feet(lib, trial, Z, sigma)
            if np.sum(new**2) < np.sum(distance**2):
                break
        else:
            break
        gain = np.sum(distance**2) - np.sum(new**2)
        theta, foot, distance = trial, new_foot, new
        J = _slopes(lib, theta, foot, sigma)
        if gain < 1e-8 * np.sum(new**2):
            break
    dof = max(len(Z) - len(theta) + 1, 1)
    return Fit(theta, _inverse(J, theta) * np.sum(distance**2) / dof, distance)


def unbent(lib: Library, fit: Fit, Z: np.ndarray, sigma: np.ndarray) -> Fit:
    """The fit without the pull of the law's bends; as it was where that would not be a small step."""
    foot, distance = feet(lib, fit.theta, Z, sigma)
    J, tangent = _slopes(lib, fit.theta, foot, sigma), _tangent(fit.theta)
    step = tangent @ np.linalg.lstsq(J @ tangent, _bends(lib, fit.theta, foot, sigma) - distance, rcond=None)[0]
    theta = fit.theta + step
    theta /= np.linalg.norm(theta)
    new = feet(lib, theta, Z, sigma)[1]
    rise = np.sum(new**2) - np.sum(fit.distance**2)
    if not rise <= BENT**2 * len(Z):
        return fit
    return Fit(theta, fit.covariance, new)


def _bends(lib: Library, theta: np.ndarray, foot: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """(n,) the mean of the signed distance that noise alone makes; second derivatives by differences as wide as the noise."""

    def slope(c: np.ndarray) -> np.ndarray:
        return law_at(lib, theta, c)[1] * sigma

    middle = slope(foot)
    length = np.linalg.norm(middle, axis=1)
    normal = middle / np.maximum(length, 1e-300)[:, None]
    noisy = np.flatnonzero(sigma > 0)
    total = sum((slope(foot + sigma * e) - slope(foot - sigma * e))[:, i] / 2 for i, e in zip(noisy, np.eye(len(sigma))[noisy]))
    across = (slope(foot + sigma * normal) - slope(foot - sigma * normal)) / 2
    mean = (total - np.sum(across * normal, axis=1)) / (2 * np.maximum(length, 1e-300))
    return np.where(np.isfinite(mean), np.clip(mean, -BENT, BENT), 0.0)


def _inverse(J: np.ndarray, theta: np.ndarray) -> np.ndarray:
    tangent = _tangent(theta)
    root = tangent @ np.linalg.pinv(J @ tangent, rcond=1e-12)
    return root @ root.T


def _slopes(lib: Library, theta: np.ndarray, foot: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    F, dF = lib.evaluate(foot)
    slope = np.einsum("nqd,q->nd", dF, theta) * (sigma / lib.unit)
    g = np.sum(slope**2, axis=1)
    return F / np.sqrt(np.maximum(g, 1e-6 * g.mean() + 1e-300))[:, None]


def _tangent(theta: np.ndarray) -> np.ndarray:
    """(k, k-1) orthonormal columns across theta."""
    return np.linalg.svd(theta[None, :])[2][1:].T


def onto(laws: list[tuple[Library, np.ndarray]], Z: np.ndarray, sigma: np.ndarray, steps: int = 3) -> np.ndarray:
    """Points moved onto all of these laws, by steps of least length in units of the noise."""
    for _ in range(steps if laws else 0):
        parts = [law_at(lib, theta, Z) for lib, theta in laws]
        p = np.stack([value for value, _ in parts], axis=1)
        A = np.stack([slope for _, slope in parts], axis=1) * sigma
        size = np.maximum(np.linalg.norm(A, axis=2), 1e-300)
        A, p = A / size[:, :, None], p / size
        S = A @ A.transpose(0, 2, 1) + 1e-6 * np.eye(len(laws))
        Z = Z - sigma * np.einsum("nkd,nk->nd", A, np.linalg.solve(S, p[:, :, None])[:, :, 0])
    return Z
