"""The norm over groups of tasks and base kernels of `LatentTaskStructure`, its weights and its dual.

    Omega = sum_v d_v N_v,   N_v = (sum_{w containing v} n_w^q)^(1/q),   n_w = (sum_j Theta_wj^p)^(1/p)

Omega^2 = min over theta of sum Theta_wj^2 / theta_wj, attained by  1/theta_wj = (dOmega^2 / dTheta_wj) / (2 Theta_wj).
Its dual is  max over gamma in the simplex of g(gamma)^(1/qbar),  g = sum_w lam_w(gamma) (sum_j kappa_wj^pbar)^(qbar/pbar),

    lam_w(gamma) = (sum_{v in w} d_v^q gamma_v^(1-q))^(1/(1-q)),   kappa_wj = beta' K_wj beta,   pbar = p / (2(p-1)).

g is concave and homogeneous, so g(gamma') <= max_v dg/dgamma_v for all gamma': a bound that needs no exact maximum.
"""

from __future__ import annotations

import numpy as np

TINY = 1e-30
REFINE = 30  # steps towards the best gamma, each a product with the matrix of inclusions


class Groups:
    """tasks (G, T) of zeros and ones."""

    def __init__(self, tasks: np.ndarray, mu: float, p: float, q: float, price: float) -> None:
        self.tasks, self.mu, self.p, self.q = tasks, mu, p, q
        size = tasks.sum(axis=1)
        self.inside = (tasks @ tasks.T >= size[:, None] - 0.5).astype(float)  # [v, w]: v is contained in w
        self.d = price**size

    def task_matrices(self, theta: np.ndarray) -> np.ndarray:
        """(m, T, T): sum_w theta_wj (diag(1_w) + 1_w 1_w' / mu)."""
        C = np.einsum("wj,ws,wt->jst", theta, self.tasks, self.tasks, optimize=True) / self.mu
        T = self.tasks.shape[1]
        C[:, np.arange(T), np.arange(T)] += theta.T @ self.tasks
        return C

    def kappa(self, M: np.ndarray) -> np.ndarray:
        """(G, m): beta' K_wj beta from M_j = (beta_s' k_j beta_t)."""
        common = np.einsum("ws,jst,wt->wj", self.tasks, M, self.tasks, optimize=True) / self.mu
        return np.maximum(common + self.tasks @ np.diagonal(M, axis1=1, axis2=2).T, 0.0)

    def norms(self, theta: np.ndarray, M: np.ndarray) -> np.ndarray:
        return theta * np.sqrt(self.kappa(M))

    def _sums(self, norms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = (norms**self.p).sum(axis=1) ** (1 / self.p)
        return n, (self.inside @ n**self.q) ** (1 / self.q)

    def omega(self, norms: np.ndarray) -> float:
        return float(self.d @ self._sums(norms)[1])

    def weights(self, norms: np.ndarray) -> np.ndarray:
        """theta; norms that are zero stay so."""
        top = norms.max()
        if top <= 0:
            return self.weights(np.ones_like(norms))
        norms = norms / top
        n, N = self._sums(norms)
        total = float(self.d @ N)
        outer = self.inside.T @ (self.d * np.maximum(N, TINY) ** (1 - self.q))
        inverse = (
            total * outer[:, None] * np.maximum(n, TINY)[:, None] ** (self.q - self.p) * np.maximum(norms, TINY) ** (self.p - 2)
        )
        return np.where(norms > TINY, 1 / inverse, 0.0)

    def support(self, M: np.ndarray, norms: np.ndarray, gamma: np.ndarray | None) -> tuple[float, np.ndarray]:
        """An upper bound on max over theta of sum theta_wj kappa_wj, and the gamma that gave it (a start for the next)."""
        pbar, qbar = self.p / (2 * (self.p - 1)), self.q / (2 * (self.q - 1))
        kappa = self.kappa(M)
        top = max(float(kappa.max()), 1e-300)
        inner = ((kappa / top) ** pbar).sum(axis=1) ** (qbar / pbar)
        mine = self.d * self._sums(norms)[1]
        starts = [mine / mine.sum() if mine.sum() > 0 else np.full(len(self.d), 1 / len(self.d))]
        starts += [] if gamma is None else [gamma]
        best = np.inf
        for start in starts:
            g = np.maximum(start, 1e-12)
            for _ in range(REFINE):
                slope = self._slope(g / g.sum(), inner)
                if slope.max() < best:
                    best, gamma = float(slope.max()), g / g.sum()
                g = np.maximum(g * slope ** (1 / self.q), 1e-300)
        assert gamma is not None
        return top * best ** (1 / qbar), gamma

    def _slope(self, gamma: np.ndarray, inner: np.ndarray) -> np.ndarray:
        """dg/dgamma_v = d_v^q gamma_v^-q sum_{w containing v} lam_w^q inner_w, with powers taken of ratios."""
        low = gamma.max()
        ratio = self.d**self.q * (gamma / low) ** (1 - self.q)
        lam = (self.inside.T @ ratio) ** (1 / (1 - self.q))  # lam_w / low
        return (self.d * low / gamma) ** self.q * (self.inside @ (lam**self.q * inner))
