"""Many observations, a kernel without features, tasks on different rows: conjugate gradients.

On the matrices A that are zero where nothing was observed and (with an intercept) have columns of mean zero, the operator

    A -> M o (K A C) + lam A / omega,      M the pattern of observations,

is symmetric and positive definite, and b drops out. K is p x p over the distinct rows: a product costs O(p^2 T). The
preconditioner solves every task by itself, (C_tt K_t + lam / omega_t) z + beta = r with 1'z = 0: what is left for the
iterations is the coupling of the tasks, in which the operator differs from it by a factor of at most T from above. A
residual of 1e-5 leaves 1e-10 in the duality gap, which is measured afterwards in any case.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from lawful.baselines.multitask._problem import Problem
from lawful.baselines.multitask._systems import (
    DENSE_POINTS,
    PRIMAL_UNKNOWNS,
    DenseSystem,
    KernelSystem,
    PrimalSystem,
    SharedSystem,
    Solution,
    System,
)

MAX_ROWS = 24_000  # a kernel matrix of 4.6 GB


class CGSystem(KernelSystem):
    """Warm-started: the alternating methods change C a little at a time."""

    def __init__(self, problem: Problem, tol: float = 1e-5, max_iter: int = 500) -> None:
        super().__init__(problem)
        self.tol, self.max_iter = tol, max_iter
        self.rows = [np.flatnonzero(problem.mask[:, t]) for t in range(problem.n_tasks)]
        self.A: np.ndarray | None = None
        self.n_products = 0
        self._factors: list = []
        self._at: tuple[np.ndarray, float] | None = None

    def solve(self, C: np.ndarray, lam: float) -> Solution:
        problem = self.problem
        self._factor(np.diag(C), lam)
        price = np.where(problem.mask, lam / np.where(problem.mask, problem.omega, 1.0), 0.0)

        def apply(A: np.ndarray) -> np.ndarray:
            self.n_products += 1
            return self._project(np.where(problem.mask, self.K @ (A @ C), 0.0) + price * A)

        target = self._project(problem.Y)
        A = np.zeros_like(problem.Y) if self.A is None else self.A
        r = target - apply(A) if self.A is not None else target
        z = self._precondition(r)
        d, rz = z, float((r * z).sum())
        start = float((target * self._precondition(target)).sum())
        for _ in range(self.max_iter):
            if rz <= self.tol**2 * start:
                break
            q = apply(d)
            step = rz / float((d * q).sum())
            A, r = A + step * d, r - step * q
            z = self._precondition(r)
            rz, old = float((r * z).sum()), rz
            d = z + (rz / old) * d
        self.A = A
        return self._from_dual(A, C, lam)

    def _project(self, A: np.ndarray) -> np.ndarray:
        if not self.problem.intercept:
            return A
        mask = self.problem.mask
        return np.where(mask, A - A.sum(axis=0) / mask.sum(axis=0), 0.0)

    def _factor(self, diagonal: np.ndarray, lam: float) -> None:
        """Kept while the diagonal of C stays within a quarter of what was factored: a preconditioner need not be exact."""
        diagonal = np.maximum(diagonal, 1e-12 * max(float(diagonal.max()), 1e-300))
        if self._at is not None and self._at[1] == lam and np.all(np.abs(np.log(diagonal / self._at[0])) < 0.25):
            return
        self._factors = []
        for t, rows in enumerate(self.rows):
            G = diagonal[t] * self.K[np.ix_(rows, rows)]
            G.flat[:: len(rows) + 1] += lam / self.problem.omega[rows, t] + 1e-13 * float(np.trace(G)) / len(rows)
            factor = scipy.linalg.cho_factor(G, overwrite_a=True, check_finite=False)
            ones = scipy.linalg.cho_solve(factor, np.ones(len(rows)), check_finite=False)
            self._factors.append((factor, ones))
        self._at = (diagonal, lam)

    def _precondition(self, R: np.ndarray) -> np.ndarray:
        Z = np.zeros_like(R)
        for t, (rows, (factor, ones)) in enumerate(zip(self.rows, self._factors)):
            z = scipy.linalg.cho_solve(factor, R[rows, t], check_finite=False)
            Z[rows, t] = z - ones * (z.sum() / ones.sum()) if self.problem.intercept else z
        return Z


def make_system(problem: Problem) -> System:
    """The way that suits the kernel, the pattern of observations and their number."""
    phi = problem.features()
    if phi is not None and (problem.shared or phi.shape[1] * problem.n_tasks <= PRIMAL_UNKNOWNS):
        return PrimalSystem(problem, phi)
    if problem.n_rows > MAX_ROWS:
        raise ValueError(
            f"{problem.n_rows} distinct rows are too many for a kernel matrix; a kernel with explicit features (None, the "
            "linear one), on inputs mapped by sklearn.kernel_approximation.Nystroem if need be, would do"
        )
    if problem.shared:
        return SharedSystem(problem)
    return DenseSystem(problem) if problem.mask.sum() <= DENSE_POINTS else CGSystem(problem)
