"""The regress step: g_t(x) = sum_i alpha_it(x) Z_it for every task t.

A surrogate is a `sklearn.base.BaseEstimator` with

* `fit_tasks(X, Z, y, rows, weights)`: T regressions. `X` (n, d); for task t, `rows[t]` the rows of X on which it is
  observed, `Z[t]` (n_t, k_t) its encoded labels, `y[t]` (n_t,) its raw labels (for tuning and residuals) and
  `weights[t]` (n_t,) its sample weights, all positive. Returns self.
* `predict_tasks(X)`: T arrays (m, k_t).
* `residuals()`: T arrays (n_t,), out-of-sample residuals of y (leave-one-out or cross-validated).
* optionally `variance(X)`: (m, T) variance of the prediction of each task, in units of its leave-one-out error.
"""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

import numpy as np


@runtime_checkable
class Surrogate(Protocol):
    """Structural type of a surrogate; see the module's docstring."""

    def fit_tasks(
        self,
        X: np.ndarray,
        Z: list[np.ndarray],
        y: list[np.ndarray],
        rows: list[np.ndarray],
        weights: list[np.ndarray],
    ) -> Self: ...

    def predict_tasks(self, X: np.ndarray) -> list[np.ndarray]: ...

    def residuals(self) -> list[np.ndarray]: ...
