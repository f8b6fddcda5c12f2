"""FMTL: the kernel between the outputs learned with the tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
from tqdm import tqdm

from lawful._checks import choice, count, number
from lawful.baselines.multitask._alternate import ROUNDING, alternate
from lawful.baselines.multitask._base import Baseline
from lawful.baselines.multitask._problem import Problem
from lawful.baselines.multitask._sdca import epoch_features, epoch_gram
from lawful.baselines.multitask._structures import Power
from lawful.baselines.multitask._systems import MAX_ROWS, CGSystem, make_system
from lawful.tasks import Tasks

__all__ = ["OutputKernelLearning"]

WINDOW = 10  # passes between extrapolations


class OutputKernelLearning(Baseline):
    """Output kernel learning with an l_p penalty (Jawanpuria, Lapin, Hein & Schiele, NIPS 2015):

        min  sum_t (1/n_t) sum_i w_it l(y_it - f_t(x_it) - b_t)
             + lam ( sum_ts (Theta^-1)_ts <f_t, f_s> + (1/p) sum_ts |Theta_ts|^p )

    over f and Theta >= 0, for p = 2k/(2k-1) = 2, 4/3, 6/5, 8/7, ... Then Theta_rs = M_rs^(2k-1) with M_rs = <V_r, V_s> of
    the dual variables is positive semidefinite by itself, and the dual is a maximum without constraints. solver="sdca" is
    the paper's stochastic dual coordinate ascent (passes in windows, each followed by Anderson's extrapolation);
    solver="theta" (square loss) descends in Theta, with f the exact least squares for it: a few dozen rounds also where lam
    is small and coordinates crawl. Both stop by the same duality gap. The paper has one weight for each of the two
    penalties, but only one matters: the other is a change of units of Theta. To make that unit natural, outputs are divided
    by their common standard deviation s (`scale_`) while solving, and `objective_` and `gap_` are in units of s^2.

    The paper has no bias. Here features and outputs are centred in each task. For the square loss that is the unpenalised bias;
    for the epsilon-insensitive loss it fixes the prediction at the mean input to be the mean output. p = 2 with the square loss
    is the method of Dinuzzo et al. (2011).

    Parameters
    ----------
    p : 2k/(2k-1) with a whole k from 1; smaller p makes Theta sparser
    lam : weight of the penalties
    loss : "square" or "epsilon", l(r) = max(0, |r| - epsilon), the paper's
    epsilon : width of the tube, in units of each task's standard deviation
    kernel : None is x.x'; any of `lawful.kernels`, or a function
    intercept : whether data are centred by task
    solver : "sdca", "theta" (square loss only), or "auto": "theta" for the square loss, except where its least squares
        would have to be iterative
    tol : stop at this duality gap, relative to the objective (1e-3 is the paper's)
    max_iter : passes over the data, or rounds of "theta"; a ConvergenceWarning names the gap when they do not suffice
    random_state : order of the coordinates; None is a fixed one
    verbose : show a progress bar

    Attributes
    ----------
    task_matrix_ : Theta (T, T)
    objective_, gap_, n_iter_, scale_, intercept_, coef_ or dual_coef_

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 3))
    >>> Y = X @ rng.standard_normal((3, 2)) + 0.1 * rng.standard_normal((40, 2))
    >>> from lawful.baselines import OutputKernelLearning
    >>> OutputKernelLearning().fit(X, Y).predict(X[:5]).shape
    (5, 2)
    """

    def __init__(
        self,
        p: float = 2.0,
        lam: float = 0.1,
        loss: str = "square",
        epsilon: float = 0.1,
        kernel: Any = None,
        intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 5000,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.p = p
        self.lam = lam
        self.loss = loss
        self.epsilon = epsilon
        self.kernel = kernel
        self.intercept = intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def _learn(self, tasks: Tasks) -> None:
        q = self._conjugate_power()
        lam, epsilon = number(self, "lam"), number(self, "epsilon", zero=True)
        tol, max_iter = number(self, "tol", zero=True), count(self, "max_iter")
        choice(self, "loss", ("square", "epsilon"))
        if self.solver not in ("auto", "sdca", "theta") or (self.solver == "theta" and self.loss != "square"):
            raise ValueError(
                f"OutputKernelLearning(solver={self.solver!r}) will not do; 'auto' and 'sdca' always do, 'theta' with "
                "loss='square'"
            )
        problem = self._problem(tasks)
        means = problem.means(problem.Y)
        self.scale_ = float(np.sqrt(problem.null_loss / problem.n_tasks)) or 1.0
        problem.Y = np.where(problem.mask, (problem.Y - means) / self.scale_, 0.0)
        system = make_system(problem) if self.loss == "square" and self.solver != "sdca" else None
        if system is not None and (self.solver == "theta" or not isinstance(system, CGSystem)):
            found = alternate(system, Power(problem.n_tasks, q), lam, tol, max_iter, self.verbose)
            self.task_matrix_ = found.C
            self._store(problem, self.scale_ * found.solution.B, means + self.scale_ * found.solution.bias, system.primal)
            self._certify(found.gap, found.objective, found.allowed, found.n_iter)
            return
        ascent = Ascent(problem, lam, q, self.loss == "epsilon", epsilon)
        rng = np.random.default_rng(0 if self.random_state is None else self.random_state)
        n_iter = ascent.run(rng, tol, max_iter, self.verbose)
        self.task_matrix_ = ascent.theta()
        B, bias = ascent.function()
        self._store(problem, self.scale_ * B, means + self.scale_ * bias, ascent.phi is not None)
        self._certify(ascent.gap, ascent.primal, ascent.allowed(tol), n_iter)

    def _conjugate_power(self) -> int:
        """q = p / (p - 1), a positive even number."""
        p = number(self, "p")
        q = p / (p - 1) if p > 1 else np.inf
        if not np.isfinite(q) or abs(q - 2 * round(q / 2)) > 1e-6 * q or round(q / 2) < 1:
            raise ValueError(f"OutputKernelLearning(p={self.p!r}) will not do; give p = 2k/(2k-1): 2, 4/3, 6/5, 8/7, ...")
        return 2 * round(q / 2)


class Ascent:
    """The state of the coordinate ascent: alpha, and through features or the kernel matrix, M and the predictions."""

    def __init__(self, problem: Problem, lam: float, q: int, tube: bool, epsilon: float) -> None:
        self.problem, self.lam, self.q, self.tube = problem, lam, q, tube
        self.row, self.task = np.nonzero(problem.mask)
        self.y, self.omega = problem.Y[self.row, self.task], problem.omega[self.row, self.task]
        spread = np.sqrt((problem.omega * problem.Y**2).sum(axis=0) / problem.omega.sum(axis=0))
        self.eps = epsilon * spread[self.task]
        self.alpha = np.zeros(len(self.y))
        self.phi = problem.features()
        T = problem.n_tasks
        self.center = problem.omega if problem.intercept else np.zeros_like(problem.omega)  # each column adds up to one
        if self.phi is not None:
            self.centred = np.ascontiguousarray(self.phi[self.row] - (self.center.T @ self.phi)[self.task])
            self.V = np.zeros((T, self.phi.shape[1]))
        else:
            if problem.n_rows > MAX_ROWS:
                raise ValueError(
                    f"OutputKernelLearning: {problem.n_rows} distinct rows are too many for a kernel matrix; the linear kernel "
                    "on inputs mapped by sklearn.kernel_approximation.Nystroem would do"
                )
            self.K = np.ascontiguousarray(problem.gram())
            self.mean_K = np.ascontiguousarray((self.K @ self.center).T)
            self.mean_KK = np.ascontiguousarray(self.mean_K @ self.center)
        self.refresh()

    def dense(self) -> np.ndarray:
        A = np.zeros_like(self.problem.Y)
        A[self.row, self.task] = self.alpha
        return A - self.center * A.sum(axis=0)  # the weights of the uncentred features

    def refresh(self) -> None:
        """M and the state recomputed from alpha: rounding does not add up over passes."""
        A = self.dense()
        if self.phi is not None:
            self.V = np.ascontiguousarray((self.phi.T @ A).T)
            self.M = self.V @ self.V.T
        else:
            KA = self.K @ A
            self.Q = np.ascontiguousarray(KA.T)
            self.mean_Q = np.ascontiguousarray(self.Q @ self.center)
            self.M = A.T @ KA
        self.M = (self.M + self.M.T) / 2

    def theta(self) -> np.ndarray:
        return self.M ** (self.q - 1)

    def function(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights of features or kernel, and the bias."""
        if self.phi is not None:
            B = self.V.T @ self.theta()
            return B, -((self.center.T @ self.phi) * B.T).sum(axis=1)
        return self.dense() @ self.theta(), -(self.mean_Q.T * self.theta()).sum(axis=1)

    def certify(self) -> None:
        q, lam, total = self.q, self.lam, float((self.M**self.q).sum())
        inner = self.centred @ self.V.T if self.phi is not None else (self.Q[:, self.row] - self.mean_Q[:, self.task]).T
        residual = self.y - (inner * self.theta()[self.task]).sum(axis=1)
        loss = np.maximum(np.abs(residual) - self.eps, 0.0) if self.tube else residual**2
        self.primal = float(self.omega @ loss) + lam * (1 + (q - 1) / q) * total  # 1/p = (q - 1)/q
        price = 2 * lam * self.eps @ np.abs(self.alpha) if self.tube else lam**2 * (self.alpha**2 / self.omega).sum()
        self.dual = float(2 * lam * self.alpha @ self.y - price - lam / q * total)
        self.gap = max(self.primal - self.dual, 0.0)

    def allowed(self, tol: float) -> float:
        return tol * self.primal + ROUNDING * self.problem.null_loss

    def run(self, rng: np.random.Generator, tol: float, max_iter: int, verbose: Any) -> int:
        """Passes in windows of a few with the same order, each followed by an extrapolation; the number of passes."""
        self.certify()
        order, history = rng.permutation(len(self.alpha)), [self.alpha.copy()]
        with tqdm(total=max_iter, desc="passes", disable=not verbose) as bar:
            for k in range(max_iter):
                if self.gap <= self.allowed(tol):
                    return k
                self._pass(order)
                history.append(self.alpha.copy())
                if len(history) > WINDOW:
                    self._extrapolate(history)
                    order, history = rng.permutation(len(self.alpha)), [self.alpha.copy()]
                bar.set_postfix(objective=f"{self.primal:.6g}", gap=f"{self.gap:.1e}")
                bar.update()
        return max_iter

    def _pass(self, order: np.ndarray) -> None:
        common = (self.task, self.y, self.omega, self.eps, self.tube, self.lam, self.q, self.alpha)
        if self.phi is not None:
            epoch_features(order, self.centred, *common, self.V, self.M)
        else:
            means = (self.mean_Q, self.mean_K, self.mean_KK)
            epoch_gram(order, self.K, self.row, *common, self.Q, *means, self.M)
        self.refresh()
        self.certify()

    def _extrapolate(self, history: list[np.ndarray]) -> None:
        """Anderson's extrapolation of the last passes (Bertrand & Massias 2021), kept if the dual is the better for it."""
        steps = np.diff(np.array(history), axis=0)
        G = steps @ steps.T
        size = float(np.trace(G))
        if size <= 0:
            return
        c = np.linalg.solve(G + 1e-10 * size * np.eye(len(G)), np.ones(len(G)))
        guess = (c / c.sum()) @ np.array(history[1:])
        if self.tube:
            bound = self.omega / (2 * self.lam)
            guess = np.clip(guess, -bound, bound)
        before, dual = self.alpha.copy(), self.dual
        self.alpha[:] = guess
        self.refresh()
        self.certify()
        if not self.dual > dual:
            self.alpha[:] = before
            self.refresh()
            self.certify()
