"""Which few terms make a law.

*One law*: backward elimination. With theta the best coefficients on a support S and B = M - mu N, leaving out term j costs
about theta_j^2 / (B^+)_jj; the cheapest term goes, theta is computed anew, and the support of least

    n mu_S + 1.25 (log n + 2 log p) |S|          (extended BIC: p terms to choose from)

is kept; terms that are not worth that price when distances decide (`findings.py`) go as well. *Several laws*: all supports of
at most 5 terms, in uncentred variables, because centring destroys sparsity. A support S holds a law when M_S - tau N_S is not
positive definite; with all but two of its terms eliminated once (a Schur complement), the sign of 2 x 2 determinants decides
for all pairs that complete it, so that a million supports take a second. A law counts only if it is *functionally
independent* of those found before: at points moved onto them, the part of its gradient outside the span of theirs has more
than 2 % of its length, root mean square. Multiples and consequences of any degree have none.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.linalg import eigh, qr

from lawful.sets.learned.features import Library
from lawful.sets.learned.refine import law_at, onto

INDEPENDENT = 0.02
FLOOR = 1e-6  # moments are squares: noise below this fraction of a variable cannot be seen in them
CHECKED = 300  # points at which gradients are compared
MAX_CANDIDATES = 100_000
SHARP = 0.03  # a ratio of coefficients known to this is not +-1 by chance


def moments(lib: Library, Z: np.ndarray, sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """M and N (p, p), uncentred."""
    F, dF = lib.evaluate(Z)
    G = (dF * (sigma / lib.unit)).transpose(0, 2, 1).reshape(-1, len(lib))
    return F.T @ F / len(Z), G.T @ G / len(Z)


def floored(Z: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """Noise that moments can show; variables without any stay so."""
    return np.where(sigma > 0, np.maximum(sigma, FLOOR * np.sqrt(np.mean(Z**2, axis=0))), 0.0)


def least(M: np.ndarray, N: np.ndarray, count: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The smallest mu and their theta (p, count), theta' N theta = 1; terms without noise are free."""
    noisy = np.diag(N) > 0
    theta = np.zeros((len(M), min(count, int(noisy.sum()))))
    A, K = M[np.ix_(noisy, noisy)], N[np.ix_(noisy, noisy)]
    if not noisy.any():
        return np.full(1, np.inf), np.zeros((len(M), 1))
    free = None
    if not noisy.all():
        cross = M[np.ix_(~noisy, noisy)]
        free = np.linalg.lstsq(M[np.ix_(~noisy, ~noisy)], cross, rcond=None)[0]
        A = A - cross.T @ free
    A, K = (A + A.T) / 2, (K + K.T) / 2
    K = K + 1e-12 * np.trace(K) / len(K) * np.eye(len(K))
    mu, V = eigh(A, K, subset_by_index=[0, theta.shape[1] - 1])
    theta[noisy] = V
    if free is not None:
        theta[~noisy] = -free @ V
    return mu, theta


def price_of_a_term(n: int, p: int) -> float:
    """Of the extended BIC, and a quarter more: an idle term is worse than one that is missed by a hair."""
    return float(1.25 * (np.log(n) + 2 * np.log(max(p, 2))))


def eliminate(M: np.ndarray, N: np.ndarray, n: int, allowed: list[int]) -> tuple[list[int], float, float]:
    """The support of one law among the allowed terms, its mu, and by how much the next best support is worse."""
    S, price = list(allowed), price_of_a_term(n, len(M))
    tried: list[tuple[float, list[int], float]] = []
    while S and np.any(np.diag(N)[S] > 0):
        m, k = M[np.ix_(S, S)], N[np.ix_(S, S)]
        mu, theta = least(m, k)
        tried.append((n * max(mu[0], 0.0) + price * len(S), list(S), float(mu[0])))
        if len(S) == 1:
            break
        t = theta[:, 0]
        B = m - mu[0] * k
        w, V = np.linalg.eigh((B + B.T) / 2)
        across = V * np.where(w > 1e-14 * max(abs(w[-1]), 1e-300), 1.0, 0.0) / np.sqrt(np.maximum(w, 1e-300))
        cost = t**2 / np.maximum(np.sum(across**2, axis=1), 1e-300)
        S.pop(int(np.argmin(cost)))
    tried.sort(key=lambda item: item[0])
    gain = tried[1][0] - tried[0][0] if len(tried) > 1 else np.inf
    return tried[0][1], tried[0][2], gain


def pivots(theta: np.ndarray) -> list[int]:
    """As many terms as there are columns, on which the laws theta (p, K) differ most."""
    return [int(j) for j in qr(theta.T, pivoting=True, mode="r")[1][: theta.shape[1]]]


def candidates(M: np.ndarray, N: np.ndarray, tau: float, size: int) -> np.ndarray:
    """(m, size) supports of this size on which M - tau N is not positive definite, although it is but for the last two."""
    A = M - tau * N
    scale = np.sqrt(np.maximum(np.diag(A), 0.0))
    usable = np.flatnonzero(scale > 0)  # a term that is within the noise of 0 is no part of a law
    A = A[np.ix_(usable, usable)] / np.outer(scale[usable], scale[usable])
    p = len(A)
    upper = np.triu(np.ones((p, p), bool), 1)
    found, total = [np.zeros((0, size), int)], 0
    for head in combinations(range(p), size - 2):
        B = A
        for h in head:
            if B[h, h] <= 1e-14:
                break
            B = B - np.outer(B[:, h], B[h] / B[h, h])
        else:
            d = np.diag(B)
            bad = upper & (np.outer(d, d) < B * B) & (d > 0)[:, None] & (d > 0)[None, :]
            bad[: head[-1] + 1 if head else 0] = False
            tails = np.argwhere(bad)
            if len(tails):
                found.append(usable[np.c_[np.tile(head, (len(tails), 1)).reshape(len(tails), -1).astype(int), tails]])
                total += len(tails)
                if total >= MAX_CANDIDATES:
                    break
    return np.concatenate(found)


def laws_of(supports: np.ndarray, M: np.ndarray, N: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """mu (m,), theta (m, k) and standard errors (m, k) for many supports (m, k) at once: 1/mu is an eigenvalue of N in M."""
    pick = supports[:, :, None], supports[:, None, :]
    # A hundredth of the smallest noise that moments can show: clean laws leave M singular up to rounding.
    L = np.linalg.cholesky(M[pick] + 0.01 * FLOOR**2 * np.diag(M)[supports][:, :, None] * np.eye(supports.shape[1]))
    half = np.linalg.solve(L, N[pick])
    w, V = np.linalg.eigh(np.linalg.solve(L, half.transpose(0, 2, 1)))
    V = np.linalg.solve(L.transpose(0, 2, 1), V)
    top = np.maximum(w[:, -1:], 1e-300)
    theta = V[:, :, -1] / np.sqrt(top)
    gap = np.maximum(1 - w[:, :-1] / top, 1e-12)
    return 1 / top[:, 0], theta, np.sqrt(np.sum(V[:, :, :-1] ** 2 / gap[:, None, :], axis=2) / n)


def without_supersets(supports: np.ndarray, minimal: list[np.ndarray], p: int) -> np.ndarray:
    """The supports (m, k) that contain none of the smaller ones."""
    for smaller in minimal:
        if len(smaller) == 0 or len(supports) == 0:
            continue
        known = np.zeros((len(smaller), p), np.float32)
        np.put_along_axis(known, smaller, 1, axis=1)
        keep = []
        for chunk in np.array_split(supports, len(supports) // 2000 + 1):
            mine = np.zeros((len(chunk), p), np.float32)
            np.put_along_axis(mine, chunk, 1, axis=1)
            keep.append(chunk[~np.any(mine @ known.T > smaller.shape[1] - 0.5, axis=1)])
        supports = np.concatenate(keep)
    return supports


def learned_numbers(theta: np.ndarray, error: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """(m,) how many numbers laws theta (m, k) had to learn: one that is sharply +-1 times another one is not learned."""
    b, e = np.abs(theta * factors), error / np.maximum(np.abs(theta), 1e-300)
    ratio = b[:, :, None] / np.maximum(b[:, None, :], 1e-300)
    unsure = ratio * np.hypot(e[:, :, None], e[:, None, :])
    alike = (np.abs(ratio - 1) <= 3 * unsure) & (unsure < SHARP)
    alike |= np.eye(b.shape[1], dtype=bool)
    return b.shape[1] - alike.sum(axis=1).max(axis=1)


def off_span(
    lib: Library, theta: np.ndarray, accepted: list[tuple[Library, np.ndarray]], Z: np.ndarray, sigma: np.ndarray
) -> float:
    """The share of the gradient that the accepted laws do not have, root mean square over points on them."""
    if not accepted:
        return 1.0
    points = onto(accepted, Z, sigma)
    spread = np.maximum(Z.std(axis=0), 1e-300)
    own = law_at(lib, theta, points)[1] * spread
    others = np.stack([law_at(a, t, points)[1] for a, t in accepted], axis=1) * spread
    others /= np.maximum(np.linalg.norm(others, axis=2, keepdims=True), 1e-300)
    _, s, Vt = np.linalg.svd(others, full_matrices=False)
    Vt = Vt * (s > 1e-8 * np.maximum(s[:, :1], 1e-300))[:, :, None]
    inside = np.einsum("nkd,nd->nk", Vt, own)
    rest = own - np.einsum("nkd,nk->nd", Vt, inside)
    return float(np.sqrt(np.mean(rest**2) / max(np.mean(own**2), 1e-300)))
