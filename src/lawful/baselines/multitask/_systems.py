"""Least squares for a given matrix C of the tasks, the step inside most baselines:

    min over f, b of   sum_it omega_it (Y_it - f_t(x_i) - b_t)^2 + lam sum_ts (C^-1)_ts <f_t, f_s>

Its solution is f_t = sum_s C_ts g_s, g_s = sum_i A_is k(x_i, .), with residual R = Y - K A C - 1 b' = lam A / omega where a
task was observed, A = 0 elsewhere, and 1'A = 0 when there is an intercept. C may be singular: f then stays in its range.
Four ways, none of which forms the nT x nT system unless it is small:

    PrimalSystem   explicit features phi (d):  W = V R', C = R R', d T unknowns (shared inputs: eigenvectors of phi'phi)
    SharedSystem   all tasks on the same rows: eigenvectors of K and of C,  O(p^3) once, then O(p^2 T) for every C
    DenseSystem    few observations:           Cholesky of K o C + lam / omega
    CGSystem       many observations:          products K A C, preconditioned by every task's own Cholesky factor

`Solution` holds what the alternating methods and certificates need, recomputed from f and not believed: b, the residual,
a feasible dual point A, <f_t, f_s> and A'KA.

Conjugate gradients: on the matrices A that are zero where nothing was observed and (with an intercept) have columns of mean
zero, the operator

    A -> M o (K A C) + lam A / omega,      M the pattern of observations,

is symmetric and positive definite, and b drops out. K is p x p over the distinct rows: a product costs O(p^2 T). The
preconditioner solves every task by itself, (C_tt K_t + lam / omega_t) z + beta = r with 1'z = 0: what is left for the
iterations is the coupling of the tasks, in which the operator differs from it by a factor of at most T from above. A
residual of 1e-5 leaves 1e-10 in the duality gap, which is measured afterwards in any case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, cg

from lawful._array import eigh
from lawful.baselines.multitask._problem import Problem

PRIMAL_UNKNOWNS = 4000  # d T
DENSE_POINTS = 2500  # observations
MAX_ROWS = 24_000  # a kernel matrix of 4.6 GB


@dataclass
class Solution:
    B: np.ndarray  # weights of the features (d, T), or of the kernel (p, T)
    bias: np.ndarray
    residual: np.ndarray
    A: np.ndarray
    gram: np.ndarray  # <f_t, f_s>
    dual_gram: np.ndarray  # A'KA
    loss: float

    def dual(self, problem: Problem, lam: float) -> float:
        """2 lam <A, Y> - lam^2 sum A^2 / omega, the part of the dual that does not depend on the penalty."""
        seen = problem.mask
        return float(2 * lam * (self.A * problem.Y).sum() - lam**2 * (self.A[seen] ** 2 / problem.omega[seen]).sum())


class System:
    primal = False

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def solve(self, C: np.ndarray, lam: float) -> Solution:
        raise NotImplementedError

    def _finish(
        self,
        B: np.ndarray,
        F: np.ndarray,
        gram: np.ndarray,
        lam: float,
        A: np.ndarray | None = None,
        M: np.ndarray | None = None,
    ) -> Solution:
        problem = self.problem
        bias = problem.means(problem.Y - F)
        residual = np.where(problem.mask, problem.Y - F - bias, 0.0)
        if A is None:
            A = problem.omega * residual / lam
        elif problem.intercept:  # any A with 1'A = 0 is feasible
            A = A - problem.omega * (A.sum(axis=0) / problem.omega.sum(axis=0))
        M = self.dual_gram(A) if M is None else M
        return Solution(B, bias, residual, A, (gram + gram.T) / 2, (M + M.T) / 2, problem.loss(residual))

    def dual_gram(self, A: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class PrimalSystem(System):
    primal = True

    def __init__(self, problem: Problem, phi: np.ndarray) -> None:
        super().__init__(problem)
        self.phi = phi
        T, d = problem.n_tasks, phi.shape[1]
        tasks = [0] if problem.shared else range(T)
        S = np.empty((len(tasks), d, d))
        self.q = np.empty((T, d))
        ybar = problem.means(problem.Y)
        for t in range(T):
            w = problem.omega[:, t]
            centred = phi - (w @ phi) / w.sum() if problem.intercept else phi
            if t in tasks:
                S[t] = centred.T @ (w[:, None] * centred)
            self.q[t] = centred.T @ (w * (problem.Y[:, t] - ybar[t]))
        self.S = S
        self.spectrum = eigh(S[0]) if problem.shared else None

    def solve(self, C: np.ndarray, lam: float) -> Solution:
        c, U = np.linalg.eigh(C)
        keep = c > 1e-13 * max(c[-1], 1e-300)
        R = U[:, keep] * np.sqrt(c[keep])
        rhs = R.T @ self.q  # (r, d)
        if self.spectrum is not None:  # S o R'R is diagonal in the eigenvectors of both
            s, E = self.spectrum
            V = (rhs @ E) / (np.maximum(s, 0.0) * c[keep][:, None] + lam) @ E.T
        else:
            r, d = rhs.shape
            H = np.einsum("ta,tb,tij->aibj", R, R, self.S, optimize=True).reshape(r * d, r * d)
            H.flat[:: r * d + 1] += lam
            V = _solve_positive(H, rhs.ravel()).reshape(r, d)
        W = (R @ V).T
        return self._finish(W, self.phi @ W, W.T @ W, lam)

    def dual_gram(self, A: np.ndarray) -> np.ndarray:
        G = self.phi.T @ A
        return G.T @ G


class KernelSystem(System):
    """f = K A C: what the dual ways share."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.K = problem.gram()

    def dual_gram(self, A: np.ndarray) -> np.ndarray:
        return A.T @ (self.K @ A)

    def _from_dual(self, A: np.ndarray, C: np.ndarray, lam: float) -> Solution:
        B = A @ C
        F = self.K @ B
        return self._finish(B, F, B.T @ F, lam, A)


class SharedSystem(KernelSystem):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.root = np.sqrt(problem.omega[:, :1])
        weight = problem.omega[:, 0] / problem.omega[:, 0].sum()
        self.mean = weight @ self.K if problem.intercept else np.zeros(problem.n_rows)
        self.unit = self.root / np.linalg.norm(self.root) if problem.intercept else np.zeros_like(self.root)
        block = self.root * self.K * self.root.T
        mean = block @ self.unit
        block = block - self.unit @ mean.T - mean @ self.unit.T + (self.unit.T @ mean) * (self.unit @ self.unit.T)
        s, self.E = eigh((block + block.T) / 2)
        self.s = np.maximum(s, 0.0)
        Z = self.root * problem.Y
        self.Z = self.E.T @ (Z - self.unit @ (self.unit.T @ Z))

    def solve(self, C: np.ndarray, lam: float) -> Solution:
        c, U = np.linalg.eigh(C)
        inner = (self.Z @ U) / (self.s[:, None] * np.maximum(c, 0.0) + lam)
        A = self.root * (self.E @ inner @ U.T)
        # values and products from the eigenvectors: K times a large A would lose what a small lam asks for
        F = self.E @ (self.s[:, None] * inner) @ (U.T @ C) / self.root
        M = U @ (inner.T @ (self.s[:, None] * inner)) @ U.T
        F += self.mean @ (A @ C)  # what centring took away
        return self._finish(A @ C, F, C @ M @ C, lam, A, M)


class DenseSystem(KernelSystem):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.i, self.t = np.nonzero(problem.mask)
        self.Kij = self.K[np.ix_(self.i, self.i)]
        self.y = problem.Y[self.i, self.t]

    def solve(self, C: np.ndarray, lam: float) -> Solution:
        A = np.zeros_like(self.problem.Y)
        G = self.Kij * C[np.ix_(self.t, self.t)]
        G.flat[:: len(G) + 1] += lam / self.problem.omega[self.i, self.t]
        own = (self.t[:, None] == np.arange(self.problem.n_tasks)).astype(float)
        A[self.i, self.t] = solve_with_bias(G, self.y, own if self.problem.intercept else None)
        return self._from_dual(A, C, lam)


class CGSystem(KernelSystem):
    """Warm-started: the alternating methods change C a little at a time."""

    def __init__(self, problem: Problem, tol: float = 1e-5, max_iter: int = 500) -> None:
        super().__init__(problem)
        self.tol, self.max_iter = tol, max_iter
        self.rows = [np.flatnonzero(problem.mask[:, t]) for t in range(problem.n_tasks)]
        self.A: np.ndarray | None = None
        self._factors: list = []
        self._at: tuple[np.ndarray, float] | None = None

    def solve(self, C: np.ndarray, lam: float) -> Solution:
        problem = self.problem
        self._factor(np.diag(C), lam)
        price = np.where(problem.mask, lam / np.where(problem.mask, problem.omega, 1.0), 0.0)

        def on_tables(function: Callable[[np.ndarray], np.ndarray]) -> LinearOperator:
            return LinearOperator((problem.Y.size,) * 2, lambda v: function(v.reshape(problem.Y.shape)).ravel(), dtype=float)

        product = on_tables(lambda A: self._project(np.where(problem.mask, self.K @ (A @ C), 0.0) + price * A))
        target, start = self._project(problem.Y).ravel(), None if self.A is None else self.A.ravel()
        found = cg(product, target, start, rtol=self.tol, maxiter=self.max_iter, M=on_tables(self._precondition))[0]
        self.A = found.reshape(problem.Y.shape)
        return self._from_dual(self.A, C, lam)

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


def solve_with_bias(G: np.ndarray, y: np.ndarray, own: np.ndarray | None) -> np.ndarray:
    """alpha with G alpha + E b = y, E'alpha = 0, for E = own, the indicators of the tasks; without E when there is no bias."""
    if own is None:
        return _solve_positive(G, y)
    Z = _solve_positive(G, np.column_stack([own, y]))
    GE, Gy = Z[:, :-1], Z[:, -1]
    return Gy - GE @ np.linalg.solve(own.T @ GE, own.T @ Gy)


def _solve_positive(G: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """G^-1 rhs; where rounding has made G indefinite, by its eigenvectors with the spectrum cut at rounding."""
    try:
        return scipy.linalg.cho_solve(scipy.linalg.cho_factor(G, check_finite=False), rhs, check_finite=False)
    except np.linalg.LinAlgError:
        s, E = np.linalg.eigh(G)
        s = np.maximum(s, len(G) * np.finfo(float).eps * s[-1])
        return E @ ((E.T @ rhs) / (s[:, None] if rhs.ndim == 2 else s))
