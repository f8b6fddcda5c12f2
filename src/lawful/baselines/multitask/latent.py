"""MTFL: which tasks share which features, over all groups of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from tqdm import tqdm

from lawful.baselines.multitask._alternate import ROUNDING
from lawful.baselines.multitask._base import Baseline
from lawful.baselines.multitask._groups import Groups
from lawful.baselines.multitask._systems import solve_with_bias
from lawful.kernels import as_kernel

__all__ = ["LatentTaskStructure"]

MAX_TASKS = 10  # 1023 groups
MAX_NUMBERS = 2**28  # base kernel matrices held at once


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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """y (n, T) or (n,), NaN where not observed; sample_weight (n,) or (n, T)."""
        lam, mu, price = self._positive("lam"), self._positive("mu", infinite=True), self._positive("d")
        for name in ("p", "q"):
            if not 1 < self._positive(name) <= 2:
                raise ValueError(f"LatentTaskStructure({name}={getattr(self, name)!r}) will not do; give a number in (1, 2]")
        problem = self._problem(X, y, sample_weight)
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
        with tqdm(total=int(self.max_iter), desc="rounds", disable=not self.verbose) as bar:
            for n_iter in range(1, int(self.max_iter) + 1):  # noqa: B007
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
                gap, allowed = max(best[0] - dual, 0.0), self.tol * best[0] + floor
                bar.set_postfix(objective=f"{best[0]:.6g}", gap=f"{gap:.1e}")
                bar.update()
                if gap <= allowed:
                    break
                theta = groups.weights(norms)
        assert best is not None
        primal, self.weights_, self.group_norms_, C, B = best
        self.groups_ = [tuple(int(t) for t in np.flatnonzero(g)) for g in groups.tasks]
        self._finish(problem, points, C, B)
        self._certify(gap, primal, allowed, n_iter)
        return self

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
