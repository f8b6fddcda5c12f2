"""How many laws a cloud obeys up to its noise, and whether the question makes sense.

For terms F with gradients dF and noise of standard deviation sigma_i in variable i, a law p = F theta has

    mu(theta) = theta' M theta / theta' N theta,     M = cov(F),  N = mean_k sum_i sigma_i^2 dF_ki dF_ki',

the mean squared distance of the points from {p = 0} in units of the noise, to first order: about 1 for a law, more for any
other polynomial, whatever the basis. Terms without noise (the constant, products of inputs) are regressed out of F. The
eigenvalues of M theta = mu N theta come from the singular values of F_c R^-1 with R'R = N from a QR factorisation, so that
clean data are not squared.

A law's mu scatters by sqrt((3 kappa - 1) / n), kappa = mean(g^2) / mean(g)^2, g = sum_i sigma_i^2 (d_i p)^2, and exceeds 1 by
more than z times that only if it is no law. *Capacity guard*: a cloud whose columns were shuffled obeys no law; if terms of
this degree fit it nearly as well, they would fit anything at this noise, and the degree is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lawful.sets.learned.features import Library, library

Z_COUNT = 3.0  # a law's mu may exceed 1 by so many standard deviations
WIDER = 1.6  # the same on the other half of the rows
SHUFFLES = 5
CAPACITY = 2.0  # a shuffled cloud must miss by this factor more than a law may


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues upwards, coefficients (p, q) of the noisy terms, and the largest mu that a law may have, each."""

    mu: np.ndarray
    theta: np.ndarray
    limit: np.ndarray

    @property
    def count(self) -> int:
        return int(np.sum(np.cumprod(self.mu <= self.limit))) if len(self.mu) else 0


def noisy_terms(lib: Library, sigma: np.ndarray) -> np.ndarray:
    """(p,) which terms have any noise."""
    return np.array([any(sigma[i] > 0 for i in lib.variables(j)) for j in range(len(lib))])


def prepared(lib: Library, Z: np.ndarray, sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Noisy terms with the others regressed out (n, q), their gradients times the noise (n, q, D), and which terms they are."""
    F, dF = lib.evaluate(Z)
    noisy = noisy_terms(lib, sigma)
    known = np.c_[np.ones(len(Z)), F[:, ~noisy]]
    Q = np.linalg.qr(known)[0]
    rest = F[:, noisy] - Q @ (Q.T @ F[:, noisy])
    return rest, dF[:, noisy] * (sigma / lib.unit), noisy


def spectrum(lib: Library, Z: np.ndarray, sigma: np.ndarray, most: int | None = None) -> Spectrum:
    """Eigenvalues of the cloud, for the `most` smallest of which limits are computed."""
    F, G, noisy = prepared(lib, Z, sigma)
    return of_moments(F, G, int((~noisy).sum()) + 1, most)


def of_moments(F: np.ndarray, G: np.ndarray, known: int = 1, most: int | None = None) -> Spectrum:
    n, q = F.shape
    R = np.linalg.qr(G.transpose(0, 2, 1).reshape(-1, q), mode="r") / np.sqrt(n)
    scale = np.abs(np.diag(R)).max(initial=0.0)
    if q == 0 or scale == 0 or n <= q + known:
        return Spectrum(np.zeros(0), np.zeros((q, 0)), np.zeros(0))
    R = R + 1e-13 * scale * np.eye(q)
    A = np.linalg.solve(R.T, F.T).T / np.sqrt(n - known)
    _, s, Vt = np.linalg.svd(A, full_matrices=False)
    mu, theta = s[::-1] ** 2, np.linalg.solve(R, Vt[::-1].T)
    most = len(mu) if most is None else min(most, len(mu))
    limits = np.array([limit(G, theta[:, k]) for k in range(most)])
    return Spectrum(mu[:most], theta[:, :most], limits)


def limit(G: np.ndarray, theta: np.ndarray, z: float = Z_COUNT) -> float:
    """The largest mu that a law with these coefficients may have."""
    g = np.sum(np.einsum("nqd,q->nd", G, theta) ** 2, axis=1)
    kappa = np.mean(g**2) / max(np.mean(g) ** 2, 1e-300)
    return float(1 + z * np.sqrt(max(3 * kappa - 1, 2) / len(g)))


def confirmed(lib: Library, Z: np.ndarray, sigma: np.ndarray, rng: np.random.Generator) -> bool:
    """Whether the best law of either half of the rows holds on the other half."""
    F, G, noisy = prepared(lib, Z, sigma)
    order = rng.permutation(len(Z))
    halves = order[: len(Z) // 2], order[len(Z) // 2 :]
    misses, limits = [], []
    for here, there in (halves, halves[::-1]):
        found = of_moments(F[here] - F[here].mean(axis=0), G[here], int((~noisy).sum()) + 1, 1)
        if not len(found.mu):
            return False
        theta = found.theta[:, 0]
        g = np.mean(np.sum(np.einsum("nqd,q->nd", G[there], theta) ** 2, axis=1))
        misses.append(np.mean((F[there] @ theta - np.mean(F[here] @ theta)) ** 2) / max(g, 1e-300))
        limits.append(1 + WIDER * (limit(G, theta) - 1))
    # A law of q coefficients from m rows misses on other rows by a factor 1 + q/m.
    return bool(np.mean(misses) <= np.mean(limits) * (1 + F.shape[1] / len(halves[0])))


def capacity(
    Z: np.ndarray, degree: int, sigma: np.ndarray, functions: tuple[str, ...], largest: float, rng: np.random.Generator
) -> tuple[bool, float]:
    """Whether terms of this degree can tell a law from none, and the smallest mu of shuffled clouds."""
    smallest = np.inf
    for _ in range(SHUFFLES):
        shuffled = np.stack([rng.permutation(z) for z in Z.T], axis=1)
        lib = library(shuffled, degree, sigma, functions, centred=True)
        found = spectrum(lib, shuffled, sigma, 1)
        smallest = min(smallest, float(found.mu[0]) if len(found.mu) else 0.0)
    return smallest >= CAPACITY * largest, smallest
