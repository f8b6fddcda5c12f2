"""What all baselines share: the checks of the data, f_t(x) = sum_i k(x, x_i) B_it + b_t, the certificate."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from lawful._checks import check_finite, in_range
from lawful.baselines.multitask._problem import Problem, make_problem
from lawful.metrics import r2
from lawful.tasks import Tasks, check_inputs

COUPLED = ", or inf, which switches the coupling off"
CROSS_ENTRIES = 2**24  # largest piece of a cross-kernel matrix held at once


class Baseline(RegressorMixin, BaseEstimator):
    """X (n, d), y (n, T) or (n,) with NaN where an output was not observed; `lawful.stack_tasks` joins separate data sets.

    Fitted: `coef_` (d', T) when the kernel has explicit features, else `dual_coef_` (p, T) on the rows `rows_`;
    `intercept_` (T,); `kernel_`; `objective_`, the minimum; `gap_`, a bound on how far it is above the true one.
    """

    kernel: Any
    intercept: bool

    # ------------------------------------------------------------------ data

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """y (n, T) or (n,), NaN where not observed; sample_weight (n,) or (n, T)."""
        name = type(self).__name__
        tasks = Tasks.read(self, X, y, sample_weight)
        self._single, self.n_outputs_, self.output_names_ = tasks.single, len(tasks), tasks.output_names
        with in_range(name):
            self._learn(tasks)
            check_finite(name, self._values(tasks.X[:1]), getattr(self, "objective_", 0.0))
        return self

    def _learn(self, tasks: Tasks) -> None:
        """Check the parameters and fit."""
        raise NotImplementedError

    def _problem(self, tasks: Tasks) -> Problem:
        return make_problem(tasks, self.kernel, bool(self.intercept))

    # ------------------------------------------------------------------ fitted function

    def _store(self, problem: Problem, B: np.ndarray, bias: np.ndarray, primal: bool) -> None:
        self.kernel_ = problem.kernel
        self.__dict__.pop("coef_", None)
        self.__dict__.pop("dual_coef_", None)
        if primal:
            self.coef_ = B
        else:
            self.dual_coef_ = B
            self.rows_ = problem.rows
            self._X = problem.X
        self.intercept_ = bias

    def _certify(self, gap: float, objective: float, allowed: float, n_iter: int) -> None:
        """Keep the certificate, and say so where it is not good enough."""
        self.gap_, self.objective_, self.n_iter_ = float(gap), float(objective), int(n_iter)
        if not gap <= allowed:
            warnings.warn(
                f"{type(self).__name__} stopped after {n_iter} iterations with a duality gap of {gap:.2e} "
                f"({gap / max(abs(objective), 1e-300):.1e} of the objective); raise max_iter, tol or lam",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _values(self, X: np.ndarray) -> np.ndarray:
        if hasattr(self, "coef_"):
            return self.kernel_.features(X) @ self.coef_ + self.intercept_
        size = max(1, CROSS_ENTRIES // len(self.rows_))
        pieces = [
            self.kernel_.cross(X[i : i + size], self._X, self.rows_) @ self.dual_coef_ for i in range(0, max(len(X), 1), size)
        ]
        return np.concatenate(pieces) + self.intercept_

    def predict(self, X: Any) -> np.ndarray:
        """(m, T), or (m,) when fitted on a single column."""
        check_is_fitted(self)
        out = self._values(check_inputs(self, X))
        return out[:, 0] if self._single else out

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2, the mean over outputs; outputs that are NaN in y are left out."""
        return float(r2(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.pairwise = type(getattr(self, "kernel", None)).__name__ == "Precomputed"
        return tags
