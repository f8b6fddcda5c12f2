"""Which matrices C of the tasks a method may choose from, and what they cost.

Every method here has the penalty  Omega(f) = min over C of  sum_ts (C^-1)_ts <f_t, f_s> + cost(C),  convex in f and C together.
With G = (<f_t, f_s>) and, for dual variables A, M = A'KA, a structure knows

    best(G)      the C that attains it             value(G, C)  Omega, or where it has no closed form its value at C
    support(M)   max over C of  tr(M C) - cost(C)

and min_f L(f) + lam Omega(f) has the dual  max_A 2 lam <A, Y> - lam^2 sum A^2 / omega - lam support(A'KA): the difference
of the two bounds the distance of any f from the minimum (`_alternate`).
"""

from __future__ import annotations

import numpy as np


def spectrum(G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    s, U = np.linalg.eigh((G + G.T) / 2)
    return np.maximum(s, 0.0), U


class Structure:
    """See the module. `turns`: rounds in turns before C = C(R) is moved directly, if `root` says how."""

    turns = 12

    def start(self) -> np.ndarray:
        raise NotImplementedError

    def best(self, G: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def cost(self, C: np.ndarray) -> float:
        return 0.0

    def value(self, G: np.ndarray, C: np.ndarray) -> float:
        raise NotImplementedError

    def support(self, M: np.ndarray) -> float:
        raise NotImplementedError

    # Where C may be singular at the minimum, turns converge slowly: then C = C(R) for a free square matrix R.

    def root(self, G: np.ndarray) -> np.ndarray | None:
        """R with C(R) = best(G); None where turns will do."""
        return None

    def matrix(self, R: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def slope(self, R: np.ndarray, M: np.ndarray) -> np.ndarray:
        """Gradient in R of cost(C(R)) - tr(M C(R)), M held fixed."""
        raise NotImplementedError


class Fixed(Structure):
    """One C. Outside its range f is not allowed."""

    def __init__(self, C: np.ndarray) -> None:
        self.C = C
        c, U = np.linalg.eigh(C)
        keep = c > 1e-13 * c[-1]
        self.inverse = (U[:, keep] / c[keep]) @ U[:, keep].T

    def start(self) -> np.ndarray:
        return self.C

    def best(self, G: np.ndarray) -> np.ndarray:
        return self.C

    def value(self, G: np.ndarray, C: np.ndarray) -> float:
        return float((self.inverse * G).sum())

    def support(self, M: np.ndarray) -> float:
        return float((self.C * M).sum())


class Clusters(Structure):
    """C = U / eps_mean + Q S Q', U = 11'/T, Q a basis of what is left, alpha <= S <= beta, tr S = (T-r) alpha + (r-1) beta."""

    def __init__(self, T: int, mean: float, between: float, within: float, r: int) -> None:
        self.mean, self.alpha, self.beta, self.r = mean, 1 / within, 1 / between, r
        self.one = np.full((T, 1), T**-0.5)
        self.Q = np.linalg.svd(self.one)[0][:, 1:]
        self.budget = (T - r) * self.alpha + (r - 1) * self.beta

    def start(self) -> np.ndarray:
        k = self.Q.shape[1]
        return self._matrix(np.full(k, self.budget / max(k, 1)), np.eye(k))

    def _matrix(self, s: np.ndarray, U: np.ndarray) -> np.ndarray:
        QU = self.Q @ U
        return self.one @ self.one.T / self.mean + (QU * s) @ QU.T

    def _eigenvalues(self, sigma: np.ndarray) -> np.ndarray:
        """clip(x sigma, alpha, beta) with x >= 0 such that they add up: a piecewise linear equation in x."""
        k = len(sigma)
        if k == 0 or self.alpha == self.beta:
            return np.full(k, self.alpha)
        positive = sigma > 1e-14 * sigma.max()
        if not positive.any():
            return np.full(k, self.budget / k)
        knots = np.sort(np.concatenate([self.alpha / sigma[positive], self.beta / sigma[positive]]))
        sums = np.clip(np.outer(knots, sigma), self.alpha, self.beta).sum(axis=1)
        s = np.clip(np.interp(self.budget, sums, knots) * sigma, self.alpha, self.beta)
        spare = self.budget - s.sum()  # all that matter are at beta: the others take the rest, at no cost
        return (
            s + np.where(positive, 0.0, spare / (~positive).sum()) if spare > 1e-12 * self.budget and not positive.all() else s
        )

    def best(self, G: np.ndarray) -> np.ndarray:
        g, U = spectrum(self.Q.T @ G @ self.Q)
        return self._matrix(self._eigenvalues(np.sqrt(g)), U)

    def value(self, G: np.ndarray, C: np.ndarray) -> float:
        g, _ = spectrum(self.Q.T @ G @ self.Q)
        common = float((self.one.T @ G @ self.one).item()) * self.mean
        return common + float((g / self._eigenvalues(np.sqrt(g))).sum())

    def support(self, M: np.ndarray) -> float:
        m, _ = spectrum(self.Q.T @ M @ self.Q)
        common = float((self.one.T @ M @ self.one).item()) / self.mean
        return common + self.alpha * float(m.sum()) + (self.beta - self.alpha) * float(np.sort(m)[::-1][: self.r - 1].sum())


class Relationship(Structure):
    """C^-1 = (lam1 I + lam2 Omega^-1) / 2 with Omega >= 0, tr Omega = 1."""

    def __init__(self, T: int, lam1: float, lam2: float) -> None:
        self.T, self.lam1, self.lam2 = T, lam1, lam2

    def covariance(self, G: np.ndarray) -> np.ndarray:
        """Omega = G^(1/2) / tr G^(1/2)."""
        g, U = spectrum(G)
        root = np.sqrt(g)
        return (U * (root / root.sum())) @ U.T if root.sum() > 0 else np.eye(self.T) / self.T

    def start(self) -> np.ndarray:
        return self._matrix(np.eye(self.T) / self.T)

    def _matrix(self, Omega: np.ndarray) -> np.ndarray:
        w, U = spectrum(Omega)
        return (U * (2 * w / (self.lam1 * w + self.lam2))) @ U.T

    def best(self, G: np.ndarray) -> np.ndarray:
        return self._matrix(self.covariance(G))

    def value(self, G: np.ndarray, C: np.ndarray) -> float:
        g, _ = spectrum(G)
        return float(self.lam1 * g.sum() + self.lam2 * np.sqrt(g).sum() ** 2) / 2

    def root(self, G: np.ndarray) -> np.ndarray:
        w, U = spectrum(self.covariance(G))
        return U * np.sqrt(np.maximum(w, 1e-8))

    def matrix(self, R: np.ndarray) -> np.ndarray:
        return self._matrix(R @ R.T / (R**2).sum())

    def slope(self, R: np.ndarray, M: np.ndarray) -> np.ndarray:
        """dC = 2 lam2 N dOmega N, N = (lam1 Omega + lam2 I)^-1, Omega = RR' / tr RR'."""
        trace = (R**2).sum()
        Omega = R @ R.T / trace
        N = np.linalg.inv(self.lam1 * Omega + self.lam2 * np.eye(self.T))
        g = -2 * self.lam2 * N @ M @ N
        return 2 * (g @ R - (g * Omega).sum() * R) / trace

    def support(self, M: np.ndarray) -> float:
        """max sum_i 2 m_i w_i / (lam1 w_i + lam2) over the simplex: w_i = (sqrt(m_i lam2 / nu) - lam2)_+ / lam1."""
        m = np.sort(spectrum(M)[0])[::-1]
        if m[0] <= 0:
            return 0.0
        if self.lam1 == 0:
            return 2 * float(m[0]) / self.lam2
        root = np.sqrt(m)
        for k in range(len(m), 0, -1):  # the k largest are active: sum of w is 1 gives x = sqrt(lam2 / nu)
            x = (self.lam1 + k * self.lam2) / root[:k].sum()
            if x * root[k - 1] >= self.lam2:
                break
        w = np.maximum(x * root[:k] - self.lam2, 0.0) / self.lam1
        return float((2 * m[:k] * w / (self.lam1 * w + self.lam2)).sum())


class Power(Structure):
    """Any C >= 0 at the cost (1/p) sum_ts |C_ts|^p, p = q/(q-1) with an even q: output kernel learning.

    For p = 2 the best C is G^(1/3); for other p it has no closed form, and C is moved directly from the beginning.
    """

    def __init__(self, T: int, q: int) -> None:
        self.T, self.q, self.p = T, q, q / (q - 1)
        self.turns = 12 if q == 2 else 0

    def start(self) -> np.ndarray:
        return np.eye(self.T)

    def best(self, G: np.ndarray) -> np.ndarray:
        g, U = spectrum(G)
        return (U * np.cbrt(g)) @ U.T

    def cost(self, C: np.ndarray) -> float:
        return float((np.abs(C) ** self.p).sum()) / self.p

    def value(self, G: np.ndarray, C: np.ndarray) -> float:
        if self.q == 2:
            return float(1.5 * (spectrum(G)[0] ** (2 / 3)).sum())
        c, U = spectrum(C)
        keep = c > 1e-13 * c.max()
        return float((np.diag(U.T @ G @ U)[keep] / c[keep]).sum()) + self.cost(C)

    def root(self, G: np.ndarray) -> np.ndarray:
        g, U = spectrum(G)
        top = np.cbrt(g.max())
        return U * np.sqrt(np.maximum(np.cbrt(g), 1e-6 * top if top > 0 else 1.0))

    def matrix(self, R: np.ndarray) -> np.ndarray:
        return R @ R.T

    def slope(self, R: np.ndarray, M: np.ndarray) -> np.ndarray:
        C = R @ R.T
        return 2 * (np.sign(C) * np.abs(C) ** (self.p - 1) - M) @ R

    def support(self, M: np.ndarray) -> float:
        return float((M**self.q).sum()) / self.q
