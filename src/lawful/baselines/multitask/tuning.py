"""Hyper-parameters by cross-validation that understands missing outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import Bunch

from lawful.folds import make_folds
from lawful.tasks import check_outputs, check_weights

__all__ = ["tune"]


def tune(
    estimator: Any,
    grid: Any,
    X: Any,
    y: Any,
    cv: Any = 5,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Bunch:
    """Choose from `grid` (as in GridSearchCV) by the held-out squared error over the variance, mean over outputs, and refit.

    GridSearchCV scores every fold by itself; with a few observations of each output in a fold that is mostly noise, and a fold
    may hold out all there is of an output. Here errors are added up over folds before they are compared, and folds are drawn
    (or checked) so that every output keeps observations. For GridSearchCV itself, give it
    ``cv=lawful.folds.make_folds(5, X, ~numpy.isnan(Y), names)``.

    Returns a Bunch: best_estimator (fitted on all rows), best_params, best_error, params (list), errors (k, T).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 3))
    >>> Y = X @ rng.standard_normal((3, 2)) + 0.1 * rng.standard_normal((40, 2))
    >>> from lawful.baselines import SingleTask, tune
    >>> found = tune(SingleTask(), {"lam": [1e-4, 1e4]}, X, Y, random_state=0)
    >>> found.best_params
    {'lam': 0.0001}
    """
    X = np.asarray(X, dtype=float)
    values, names = check_outputs(y)
    Y = values.reshape(len(values), -1)
    T = Y.shape[1]
    weight = np.where(np.isnan(Y), 0.0, check_weights(sample_weight, *Y.shape))
    filled = np.nan_to_num(Y)
    folds = make_folds(cv, X, weight > 0, names or [f"y{t + 1}" for t in range(T)], random_state)
    if folds is None:
        raise ValueError("tune(cv='loo') would refit for every row; give a number of folds, a fraction or a splitter")
    params = list(ParameterGrid(grid))

    def errors(setting: dict) -> np.ndarray:
        total = np.zeros(T)
        for train, test in folds:
            model = clone(estimator).set_params(**setting)
            model.fit(X[train], values[train], sample_weight=weight[train])
            prediction = model.predict(X[test]).reshape(len(test), T)
            total += (weight[test] * (filled[test] - prediction) ** 2).sum(axis=0)
        return total

    held = np.zeros(T)
    for _, test in folds:
        held += weight[test].sum(axis=0)
    mean = (weight * filled).sum(axis=0) / weight.sum(axis=0)
    variance = (weight * (filled - mean) ** 2).sum(axis=0) / weight.sum(axis=0)
    unit = np.where(held > 0, held, 1.0) * np.where(variance > 0, variance, 1.0)
    table = np.array(Parallel(n_jobs=n_jobs)(delayed(errors)(setting) for setting in params)) / unit
    best = int(np.argmin(table.mean(axis=1)))
    model = clone(estimator).set_params(**params[best]).fit(X, y, sample_weight=sample_weight)
    return Bunch(
        best_estimator=model, best_params=params[best], best_error=float(table[best].mean()), params=params, errors=table
    )
