"""Any scikit-learn regressor as the regress step: g_t(x) is its prediction of the encoded labels.

Kernel ridge is one way to estimate E[psi(y_t) | x]; a forest, boosting, a network or a pipeline is another, and the
decode step does not care. Columns of Z that are constant are known without fitting: the 1 of the square loss's
[1, y] comes back as 1. Tasks seen on the same rows with the same weights are fitted together when the regressor takes
several outputs (its tag `target_tags.multi_output`), else by one clone for each column.

Residuals are cross-validated: K-fold, shuffled, computed when first asked for. With fewer rows than folds each row is
a fold; with a single row there is nothing to predict it from and its residual is 0, as for y minus its mean.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

__all__ = ["RegressorSurrogate"]


class RegressorSurrogate(BaseEstimator):
    """A scikit-learn regressor or pipeline, cloned for each group of tasks.

    Parameters
    ----------
    regressor : the regressor, not fitted.
    cv : number of folds for `residuals`.
    n_jobs : how many fits run at once (joblib).
    random_state : shuffles the folds; the regressor has its own.
    """

    def __init__(self, regressor: Any, cv: int = 5, n_jobs: int | None = None, random_state: Any = 0) -> None:
        self.regressor = regressor
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit_tasks(
        self,
        X: np.ndarray,
        Z: list[np.ndarray],
        y: list[np.ndarray],
        rows: list[np.ndarray],
        weights: list[np.ndarray],
    ) -> Self:
        together = get_tags(self.regressor).target_tags.multi_output
        groups: dict[Any, list[tuple[int, int]]] = {}  # rows and weights -> (task, column) to fit
        self.constants_ = []
        for t, z in enumerate(Z):
            constant = np.all(z == z[:1], axis=0)
            self.constants_.append(np.where(constant, z[0], np.nan))
            key = (rows[t].tobytes(), weights[t].tobytes())
            for j in np.flatnonzero(~constant):
                groups.setdefault(key if together else (t, j), []).append((t, int(j)))
        self.columns_ = list(groups.values())
        jobs = [(X[rows[c[0][0]]], np.stack([Z[t][:, j] for t, j in c], axis=1), weights[c[0][0]]) for c in self.columns_]
        self.regressors_ = Parallel(n_jobs=self.n_jobs)(delayed(_fit)(self.regressor, *job) for job in jobs)
        self._data = X, y, rows, weights
        self._residuals: list[np.ndarray] | None = None
        return self

    def predict_tasks(self, X: np.ndarray) -> list[np.ndarray]:
        self._check_fitted()
        out = [np.tile(constant, (X.shape[0], 1)) for constant in self.constants_]
        for columns, regressor in zip(self.columns_, self.regressors_):
            for (t, j), values in zip(columns, _predict(regressor, X).T):
                out[t][:, j] = values
        return out

    def residuals(self) -> list[np.ndarray]:
        """Cross-validated residuals of y, one array per task."""
        self._check_fitted()
        if self._residuals is None:
            X, y, rows, weights = self._data
            self._residuals = [self._cross_validate(X[r], label, w) for r, label, w in zip(rows, y, weights)]
        return list(self._residuals)

    def _check_fitted(self) -> None:
        if not hasattr(self, "regressors_"):
            raise NotFittedError("RegressorSurrogate is not fitted yet: it has no regressors; call fit_tasks first")

    def _cross_validate(self, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        n = y.shape[0]
        if n == 1 or np.all(y == y[0]):
            return np.zeros(n)
        folds = list(KFold(min(self.cv, n), shuffle=True, random_state=self.random_state).split(X))
        fitted = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit)(self.regressor, X[train], y[train, None], weights[train]) for train, _ in folds
        )
        out = np.empty(n)
        for (_, test), regressor in zip(folds, fitted):
            out[test] = y[test] - _predict(regressor, X[test])[:, 0]
        return out


def _fit(regressor: Any, X: np.ndarray, Y: np.ndarray, weights: np.ndarray) -> Any:
    """A fitted clone; weights go along only when they say something."""
    target = Y[:, 0] if Y.shape[1] == 1 else Y
    if np.all(weights == weights[0]):
        return clone(regressor).fit(X, target)
    name = type(regressor).__name__
    if isinstance(regressor, Pipeline):
        step, last = regressor.steps[-1]
        key, able = f"{step}__sample_weight", has_fit_parameter(last, "sample_weight")
    else:
        key, able = "sample_weight", has_fit_parameter(regressor, "sample_weight")
    if not able:
        raise ValueError(
            f"RegressorSurrogate got unequal sample weights but {name} takes no sample_weight in fit; "
            "equal weights, or a regressor such as Ridge or RandomForestRegressor, would do"
        )
    return clone(regressor).fit(X, target, **{key: weights})


def _predict(regressor: Any, X: np.ndarray) -> np.ndarray:
    prediction = np.asarray(regressor.predict(X), dtype=float)
    return prediction.reshape(X.shape[0], -1)
