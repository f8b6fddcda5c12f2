"""Any scikit-learn regressor as the regress step: g_t(x) is its prediction of the encoded labels.

Kernel ridge is one way to estimate E[psi(y_t) | x]; a forest, boosting, a network or a pipeline is another, and the
decode step does not care. Columns of Z that are constant are known without fitting: the 1 of the square loss's
[1, y] comes back as 1. Tasks seen on the same rows with the same weights are fitted together when the regressor takes
several outputs (its tag `target_tags.multi_output`), else by one clone for each column.

A DataFrame reaches the regressor as the user gave it: names, categories and gaps in X are its own affair.

Residuals are cross-validated: K-fold, shuffled, computed when first asked for, for tasks that are fitted together in one fit a
fold. With fewer rows than folds each row is a fold; with a single row there is nothing to predict it from and its residual is
0, as for y minus its mean.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from lawful.surrogates.base import Surrogate
from lawful.tasks import Tasks, as_floats, is_numeric, rows_of

__all__ = ["RegressorSurrogate"]

HUGE = 1e100  # inputs whose products leave double precision


class RegressorSurrogate(Surrogate):
    """A scikit-learn regressor or pipeline, cloned for each group of tasks.

    Parameters
    ----------
    regressor : the regressor, not fitted.
    cv : number of folds for `residuals`.
    n_jobs : how many fits run at once (joblib).
    random_state : shuffles the folds; the regressor has its own.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> Y = np.c_[np.cos(X), np.sin(X)]
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> from lawful.surrogates import RegressorSurrogate
    >>> from lawful.tasks import Tasks
    >>> model = RegressorSurrogate(KNeighborsRegressor(2)).fit_tasks(Tasks.read(KNeighborsRegressor(), X, Y))
    >>> len(model.predict_tasks(X)), model.residuals()[0].shape
    (2, (30,))
    """

    def __init__(self, regressor: Any, cv: int = 5, n_jobs: int | None = None, random_state: Any = 0) -> None:
        self.regressor = regressor
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    raw = True

    @property
    def allow_nan(self) -> bool:
        """As the regressor says; what a pipeline does with gaps its first step must know, which cannot be asked."""
        return isinstance(self.regressor, Pipeline) or bool(get_tags(self.regressor).input_tags.allow_nan)

    def fit_tasks(self, tasks: Tasks) -> Self:
        X = tasks.inputs_of(self)
        self.constants_ = [np.where(np.all(z == z[:1], axis=0), z[0], np.nan) for z in tasks.Z]
        self.columns_ = []  # (task, column) of what each regressor learns
        for g in self._groups(tasks):
            varying = [(t, int(j)) for t in g for j in np.flatnonzero(np.isnan(self.constants_[t]))]
            self.columns_ += [[one] for one in varying] if not self._together else [varying] if varying else []
        jobs = [(c[0][0], np.stack([tasks.Z[t][:, j] for t, j in c], axis=1)) for c in self.columns_]
        self.regressors_ = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit)(self.regressor, rows_of(X, tasks.rows[t]), Z, tasks.weights[t]) for t, Z in jobs
        )
        self._tasks: Tasks | None = tasks  # until its residuals are known
        self._residuals: list[np.ndarray] | None = None
        return self

    def predict_tasks(self, X: Any) -> list[np.ndarray]:
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
            tasks = self._tasks
            assert tasks is not None
            out = [np.zeros(len(y)) for y in tasks.y]
            for g in self._groups(tasks):
                # constant labels are known without fitting
                if varying := [t for t in g if np.any(tasks.y[t] != tasks.y[t][0])]:
                    r, w = tasks.rows[g[0]], tasks.weights[g[0]]
                    X = rows_of(tasks.inputs_of(self), r)
                    found = self._cross_validate(X, np.stack([tasks.y[t] for t in varying], axis=1), w)
                    for t, residuals in zip(varying, found.T):
                        out[t] = residuals
            self._residuals, self._tasks = out, None  # a table that is not kept needs no room, in a file neither
        return list(self._residuals)

    def forget(self) -> Self:
        """The training rows, which residuals alone need, and which whoever calls this will not ask for."""
        self._tasks = None
        return self

    def __getstate__(self) -> dict[str, Any]:
        if getattr(self, "_tasks", None) is not None:  # a file holds residuals, not the table that they come from
            self.residuals()
        return super().__getstate__()

    @property
    def _together(self) -> bool:
        return bool(get_tags(self.regressor).target_tags.multi_output)

    def _groups(self, tasks: Tasks) -> list[list[int]]:
        return tasks.groups() if self._together else [[t] for t in range(len(tasks))]

    def _check_fitted(self) -> None:
        if not hasattr(self, "regressors_"):
            raise NotFittedError("RegressorSurrogate is not fitted yet: it has no regressors; call fit_tasks first")

    def _cross_validate(self, X: Any, Y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        folds = list(KFold(min(self.cv, len(Y)), shuffle=True, random_state=self.random_state).split(X))
        out = np.empty(Y.shape)
        for train, test in folds:
            out[test] = Y[test] - Y[train[:1]]
        folds = [(train, test) for train, test in folds if np.ptp(Y[train], axis=0).any()]  # constant labels are known
        fitted = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit)(self.regressor, rows_of(X, train), Y[train], weights[train]) for train, _ in folds
        )
        for (_, test), regressor in zip(folds, fitted):
            out[test] = Y[test] - _predict(regressor, rows_of(X, test))
        return out


def _fit(regressor: Any, X: Any, Y: np.ndarray, weights: np.ndarray) -> Any:
    """A fitted clone; weights go along only when they say something."""
    target = Y[:, 0] if Y.shape[1] == 1 else Y
    if np.all(weights == weights[0]):
        return _fitted(regressor, X, target)
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
    return _fitted(regressor, X, target, **{key: weights})


def _fitted(regressor: Any, X: Any, target: np.ndarray, **options: Any) -> Any:
    try:
        return clone(regressor).fit(X, target, **options)
    except TypeError as error:
        if "NAType" not in str(error):
            raise
        raise ValueError(
            f"{type(regressor).__name__} cannot be fitted: X contains NA (NaN); fill the gaps, drop those rows, or take a "
            'regressor that allows them, such as HistGradientBoostingRegressor() or surrogate="auto"'
        ) from error
    except (ValueError, FloatingPointError) as error:
        size = 0.0 if hasattr(X, "iloc") and not all(is_numeric(X.iloc[:, j]) for j in range(X.shape[1])) else _size(X)
        if size < HUGE:
            raise
        raise ValueError(
            f"{type(regressor).__name__} cannot be fitted to inputs of size {size:.1g} ({error}); rescale them, for example "
            "with make_pipeline(StandardScaler(), ...)"
        ) from error


def _size(X: Any) -> float:
    return float(np.nanmax(np.abs(as_floats(X, "X")), initial=0.0))


def _predict(regressor: Any, X: Any) -> np.ndarray:
    prediction = np.asarray(regressor.predict(X), dtype=float).reshape(X.shape[0], -1)
    if not np.isfinite(prediction).all():
        raise ValueError(
            f"{type(regressor).__name__} predicts NaN or infinity for some inputs; check its parameters and the scale of X"
        )
    return prediction
