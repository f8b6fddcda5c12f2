"""MTFL: which tasks share which features, over all groups of tasks.

The norm over groups v, w of tasks and base kernels j, its weights and its dual:

    Omega = sum_v d_v N_v,   N_v = (sum_{w containing v} n_w^q)^(1/q),   n_w = (sum_j Theta_wj^p)^(1/p)

Omega^2 = min over theta of sum Theta_wj^2 / theta_wj, attained by  1/theta_wj = (dOmega^2 / dTheta_wj) / (2 Theta_wj).
Its dual is  max over gamma in the simplex of g(gamma)^(1/qbar),  g = sum_w lam_w(gamma) (sum_j kappa_wj^pbar)^(qbar/pbar),

    lam_w(gamma) = (sum_{v in w} d_v^q gamma_v^(1-q))^(1/(1-q)),   kappa_wj = beta' K_wj beta,   pbar = p / (2(p-1)).

g is concave and homogeneous, so g(gamma') <= max_v dg/dgamma_v for all gamma': a bound that needs no exact maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from lawful._checks import count, number
from lawful.baselines.multitask._alternate import ROUNDING
from lawful.baselines.multitask._base import COUPLED, Baseline
from lawful.baselines.multitask._systems import solve_with_bias
from lawful.kernels import as_kernel
from lawful.tasks import Tasks

__all__ = ["LatentTaskStructure"]

MAX_TASKS = 10  # 1023 groups
MAX_NUMBERS = 2**28  # base kernel matrices held at once
TINY = 1e-30
PATIENCE, MOVES = 50, 1e-3  # a gap that has not shrunk by this fraction for so many rounds is what rounding leaves
REFINE = 30  # steps towards the best gamma, each a product with the matrix of inclusions


class LatentTaskStructure(Baseline):
    """Convex feature learning for latent task structure (Jawanpuria & Nath, ICML 2012):

        f_t = sum over groups w with t in w and base kernels j of  h_0wj + h_twj
        Theta_wj = (mu |h_0wj|^2 + sum_{t in w} |h_twj|^2)^(1/2)
        Omega = sum_v d_v ( sum_{w containing v} (sum_j Theta_wj^p)^(q/p) )^(1/q),      d_v = d^|v|
        min  sum_t (1/n_t) sum_i w_it (y_it - f_t(x_it) - b_t)^2 + lam Omega^2

    Groups of tasks that share features are found among all 2^T - 1. As Omega^2 is the minimum of sum Theta_wj^2 / theta_wj
    over a convex set of weights theta, the problem is kernel ridge with k = sum_wj theta_wj K_wj for given theta, and theta
    has a closed form for given norms: in turns, stopped by the duality gap, whose upper bound on the dual norm uses that
    the weights lam_w(gamma) of the paper are concave in gamma. The paper used support vector regression; here the loss is
    the square.

    Parameters
    ----------
    lam : weight of Omega^2
    mu : price of what the tasks of a group have in common; inf for nothing in common
    p, q : exponents in (1, 2], over kernels and over groups
    d : price of a group grows as d^|v|
    base_kernels : None is one linear kernel for each input and one for all (the paper's for Sarcos), or a list of kernels
    groups : None is all groups (at most 10 tasks), or a list of tuples of tasks, every task in at least one: the paper's active
        set over the lattice of groups is not here
    intercept, tol, max_iter, verbose : as in `RelationshipLearning`

    Attributes
    ----------
    groups_ (list of tuples), group_norms_ (G, m) the Theta_wj, weights_ (G, m) the theta_wj
    objective_, gap_, n_iter_, intercept_, coef_ (default base kernels) or dual_coef_ (m, N, T)

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 3))
    >>> Y = X @ rng.standard_normal((3, 2)) + 0.1 * rng.standard_normal((40, 2))
    >>> from lawful.baselines import LatentTaskStructure
    >>> LatentTaskStructure().fit(X, Y).predict(X[:5]).shape
    (5, 2)
    """

    def __init__(
        self,
        lam: float = 0.1,
        mu: float = 1.0,
        p: float = 1.5,
        q: float = 1.5,
        d: float = 1.5,
        base_kernels: Sequence[Any] | None = None,
        groups: Sequence[Sequence[int]] | None = None,
        intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 2000,
        verbose: bool = False,
    ) -> None:
        self.lam = lam
        self.mu = mu
        self.p = p
        self.q = q
        self.d = d
        self.base_kernels = base_kernels
        self.groups = groups
        self.intercept = intercept
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    kernel = None

    def _learn(self, tasks: Tasks) -> None:
        lam, mu, price = number(self, "lam"), number(self, "mu", infinite=True, hint=COUPLED), number(self, "d")
        for name in ("p", "q"):
            if not 1 < number(self, name) <= 2:
                raise ValueError(f"LatentTaskStructure({name}={getattr(self, name)!r}) will not do; give a number in (1, 2]")
        tol, max_iter = number(self, "tol", zero=True), count(self, "max_iter")
        problem = self._problem(tasks)
        groups = self._groups(problem.n_tasks, mu, price)
        self.row_, task = np.nonzero(problem.mask)
        N, T = len(task), problem.n_tasks
        points = problem.X[problem.rows][self.row_]
        K = self._matrices(points, N)
        labels, omega = problem.Y[self.row_, task], problem.omega[self.row_, task]
        own = (task[:, None] == np.arange(T)).astype(float)
        floor = ROUNDING * problem.null_loss
        theta = groups.weights(np.ones((len(groups.tasks), len(K))))
        best, dual, gamma = None, -np.inf, None
        closest, moved = np.inf, 0
        with tqdm(total=max_iter, desc="rounds", disable=not self.verbose) as bar:
            for n_iter in range(1, max_iter + 1):
                C = groups.task_matrices(theta)
                G = np.einsum("jab,jab->ab", K, C[:, task[:, None], task[None, :]])
                beta = solve_with_bias(G + np.diag(lam / omega), labels, own if problem.intercept else None)
                B = own * beta[:, None]
                M = B.T @ (K @ B)  # (m, T, T)
                norms = groups.norms(theta, M)
                residual = labels - G @ beta
                if problem.intercept:
                    residual = residual - own @ (own.T @ (omega * residual) / (own.T @ omega))
                primal = float(omega @ residual**2) + lam * groups.omega(norms) ** 2
                bound, gamma = groups.support(M, norms, gamma)
                dual = max(dual, float(2 * lam * beta @ labels - lam**2 * (beta**2 / omega).sum()) - lam * bound)
                if best is None or primal <= best[0]:
                    best = (primal, theta, norms, C, B)
                gap, allowed = max(best[0] - dual, 0.0), tol * best[0] + floor
                bar.set_postfix(objective=f"{best[0]:.6g}", gap=f"{gap:.1e}")
                bar.update()
                if gap < closest * (1 - MOVES):
                    closest, moved = gap, n_iter
                if gap <= allowed or n_iter - moved >= PATIENCE:
                    break
                theta = groups.weights(norms)
        assert best is not None
        primal, self.weights_, self.group_norms_, C, B = best
        self.groups_ = [tuple(int(t) for t in np.flatnonzero(g)) for g in groups.tasks]
        self._finish(problem, points, C, B)
        self._certify(gap, primal, allowed, n_iter)

    def _groups(self, T: int, mu: float, price: float) -> Groups:
        if self.groups is None:
            if T > MAX_TASKS:
                raise ValueError(
                    f"LatentTaskStructure: {T} tasks have {2**T - 1} groups, too many to list; give groups= (a list of tuples "
                    f"of tasks), or at most {MAX_TASKS} tasks"
                )
            tasks = (np.arange(1, 2**T)[:, None] >> np.arange(T)) & 1
        else:
            tasks = np.zeros((len(self.groups), T), dtype=int)
            for k, members in enumerate(self.groups):
                if not len(members) or min(members) < 0 or max(members) >= T:
                    raise ValueError(f"LatentTaskStructure: group {k} is {members!r}; give task numbers in 0 .. {T - 1}")
                tasks[k, list(members)] = 1
            if not len(tasks) or (tasks.sum(axis=0) == 0).any():
                raise ValueError("LatentTaskStructure: some task is in no group; every task needs one, (t,) at least")
        return Groups(tasks.astype(float), mu, float(self.p), float(self.q), price)

    def _kernels(self, points: np.ndarray, others: np.ndarray) -> np.ndarray:
        """(m, N, M) base kernels between two sets of inputs."""
        if self.base_kernels is None:
            single = np.einsum("ij,kj->jik", points, others)
            return np.concatenate([single, single.sum(axis=0)[None]]) if points.shape[1] > 1 else single
        return np.stack([np.asarray(as_kernel(kernel)(points, others), dtype=float) for kernel in self.base_kernels])

    def _matrices(self, points: np.ndarray, N: int) -> np.ndarray:
        m = points.shape[1] + 1 if self.base_kernels is None else len(self.base_kernels)
        if m == 0 or m * N**2 > MAX_NUMBERS:
            raise ValueError(
                f"LatentTaskStructure: {m} base kernels on {N} observations will not do; one to {MAX_NUMBERS // N**2} kernels "
                "fit into memory: give fewer base_kernels or fewer observations"
            )
        return self._kernels(points, points)

    def _finish(self, problem: Any, points: np.ndarray, C: np.ndarray, B: np.ndarray) -> None:
        self.__dict__.pop("coef_", None)
        if self.base_kernels is None:
            V = points.T @ B  # (d, T)
            self.coef_ = np.einsum("js,jts->jt", V, C[: points.shape[1]])
            if points.shape[1] > 1:
                self.coef_ += V @ C[-1]
        else:
            self.dual_coef_ = np.einsum("is,jts->jit", B, C)
        self._points = points
        self.intercept_ = np.zeros(problem.n_tasks)
        self.intercept_ = problem.means(problem.Y - self._values(problem.X[problem.rows]))

    def _values(self, X: np.ndarray) -> np.ndarray:
        if self.base_kernels is None:
            return X @ self.coef_ + self.intercept_
        return np.einsum("jmi,jit->mt", self._kernels(X, self._points), self.dual_coef_) + self.intercept_


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
        most = np.maximum(kappa.max(axis=1), 1e-300)
        log_inner = qbar * np.log(most / top) + qbar / pbar * np.log(((kappa / most[:, None]) ** pbar).sum(axis=1) + 1e-300)
        mine = self.d * self._sums(norms)[1]
        starts = [mine / mine.sum() if mine.sum() > 0 else np.full(len(self.d), 1 / len(self.d))]
        starts += [] if gamma is None else [gamma]
        best = np.inf  # a logarithm: exponents grow without bound as q and p fall to 1
        for start in starts:
            g = np.maximum(start, 1e-12)
            for _ in range(REFINE):
                slope, unit = self._slope(g / g.sum(), log_inner)
                value = float(np.log(slope.max())) + unit
                if value < best:
                    best, gamma = value, g / g.sum()
                g = np.maximum(g * slope ** (1 / self.q), 1e-300)
        if gamma is None:
            raise FloatingPointError("the prices of the groups are too far apart")
        return float(top * np.exp(best / qbar)), gamma

    def _slope(self, gamma: np.ndarray, log_inner: np.ndarray) -> tuple[np.ndarray, float]:
        """dg/dgamma_v = d_v^q gamma_v^-q sum_{w containing v} lam_w^q inner_w, with powers taken of ratios, over exp(unit)."""
        low = gamma.max()
        ratio = self.d**self.q * (gamma / low) ** (1 - self.q)
        terms = self.q / (1 - self.q) * np.log(self.inside.T @ ratio) + log_inner  # (lam_w / low)^q inner_w
        unit = float(terms.max())
        return (self.d * low / gamma) ** self.q * (self.inside @ np.exp(terms - unit)), unit
