"""STL: every task alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import SVR

from lawful._checks import check_number, choice, number
from lawful.baselines.multitask._base import Baseline
from lawful.baselines.multitask._problem import resolve_kernel
from lawful.surrogates import KernelRidge
from lawful.tasks import Tasks

__all__ = ["SingleTask"]

LOSSES = ("square", "epsilon")
PASSES = 10**6  # of the SVR solver, which has no end of its own where lam is next to nothing; it then warns


class SingleTask(Baseline):
    """Every task learned by itself, the baseline of baselines:

        min  (1/n_t) sum_i w_it l(y_it - f_t(x_it) - b_t) + lam_t |f_t|^2

    with l(r) = r^2 (ridge, or kernel ridge: `KernelRidge` inside) or l(r) = max(0, |r| - epsilon) (support vector regression:
    scikit-learn's `SVR` inside, C_t = 1 / (2 lam_t n_t) for each of its observations).

    Parameters
    ----------
    lam : one number, one for each task, or "auto" (square loss only: for each task by leave-one-out)
    loss : "square" or "epsilon"
    epsilon : width of the tube without loss, in units of the standard deviation of each task
    kernel : None is x.x'; any of `lawful.kernels`, or a function. Length scales "auto" are tuned once, for all tasks together
    intercept : whether each task has an unpenalised constant
    tol : tolerance of the SVR solver

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 3))
    >>> Y = X @ rng.standard_normal((3, 2)) + 0.1 * rng.standard_normal((40, 2))
    >>> from lawful.baselines import SingleTask
    >>> SingleTask(lam=0.01).fit(X, Y).predict(X[:5]).shape
    (5, 2)
    """

    def __init__(
        self,
        lam: Any = 0.1,
        loss: str = "square",
        epsilon: float = 0.1,
        kernel: Any = None,
        intercept: bool = True,
        tol: float = 1e-4,
    ) -> None:
        self.lam = lam
        self.loss = loss
        self.epsilon = epsilon
        self.kernel = kernel
        self.intercept = intercept
        self.tol = tol

    def _learn(self, tasks: Tasks) -> None:
        choice(self, "loss", LOSSES)
        if not isinstance(self.lam, str):
            self._lams(len(tasks))
        kernel = resolve_kernel(self.kernel, tasks, bool(self.intercept))
        if self.loss == "square":
            self.kernel_ = kernel
            self.ridge_ = KernelRidge(kernel, lam=self.lam, intercept=bool(self.intercept), scales="shared", tune="loo")
            self.ridge_.fit_tasks(tasks)
            self.lam_ = self.ridge_.lam_
        else:
            self._fit_svr(tasks, kernel)

    def _lams(self, T: int) -> np.ndarray:
        given = np.asarray(self.lam).reshape(-1).tolist()
        if len(given) not in (1, T):
            raise ValueError(f"SingleTask: lam has {len(given)} numbers; give one, or one for each of {T} tasks")
        return np.broadcast_to([check_number("SingleTask", "lam", value) for value in given], (T,)).copy()

    def _fit_svr(self, tasks: Tasks, kernel: Any) -> None:
        if not self.intercept:
            raise ValueError('SingleTask(loss="epsilon", intercept=False) cannot be: SVR always has a constant; use "square"')
        if isinstance(self.lam, str):
            raise ValueError(f'SingleTask(loss="epsilon", lam={self.lam!r}) has no leave-one-out; give numbers')
        epsilon = number(self, "epsilon", zero=True)
        T = len(tasks.y)
        self.lam_ = self._lams(T)
        tol = number(self, "tol")
        X, rows = tasks.X, tasks.seen
        B, bias = np.zeros((len(rows), T)), np.zeros(T)
        for t, (labels, own, w) in enumerate(zip(tasks.y, tasks.rows, tasks.weights)):
            mean = float(np.average(labels, weights=w))
            unit = float(np.sqrt(np.average((labels - mean) ** 2, weights=w)))
            bias[t] = mean
            if unit <= 1e-12 * max(abs(mean), 1e-300) or len(labels) == 1:
                continue  # a constant
            # in units of the task's spread: |f|^2 scales with its square and the loss does not, hence the factor
            cost = 1 / (2 * self.lam_[t] * w.sum() * unit)
            machine = SVR(kernel="precomputed", C=cost, epsilon=epsilon, tol=tol, cache_size=500, max_iter=PASSES)
            machine.fit(kernel.gram(X, own), (labels - mean) / unit, sample_weight=w)
            at = np.searchsorted(rows, own[machine.support_])
            B[at, t] = unit * machine.dual_coef_[0]
            bias[t] += unit * float(machine.intercept_[0])
        self.rows_, self._X, self.dual_coef_, self.intercept_, self.kernel_ = rows, X, B, bias, kernel

    def _values(self, X: np.ndarray) -> np.ndarray:
        if self.loss == "square":
            return np.concatenate(self.ridge_.predict_tasks(X), axis=1)
        return super()._values(X)
