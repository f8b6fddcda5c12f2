r"""The Gaussian prediction at x before the law: N(w(x), S(x)), as the objective F_x(c) = (c - w)' S^-1 (c - w).

w(x) is the unconstrained prediction, and S(x) = D R D: D = diag(std(x)), the standard deviations of a new observation as far as
the regression knows them at x (`decode(X).std`; else its out-of-sample errors, the same everywhere), and R the correlation of
the output metric of `Square`, where that is a matrix that was estimated. A metric that the user gave is taken at its word: it
*is* S^-1. Minimised over C(x), F_x is a decode objective that follows the predictive variance at x.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import to_numpy
from lawful.losses.quadratic import Quadratic, QuadraticForm
from lawful.tasks import read_inputs, rows_of

__all__ = ["predictive"]

LEAST = 1e-9  # of the largest standard deviation of an output: no prediction is more certain than this


def predictive(model: Any, X: Any) -> tuple[np.ndarray, Any]:
    """X as floats, and F_x of its rows, by a fitted `ConstrainedRegressor`."""
    X, given = read_inputs(model, X, model.surrogate_)
    centers, spreads = [], []
    for batch in model._batches(len(X)):
        rows = rows_of(given, batch)
        scores, std = _moments(model.surrogate_, rows)
        centers.append(np.asarray(to_numpy(model._objective_of(rows, scores).center), dtype=float))
        spreads.append(std)
    T = model.n_outputs_
    w = np.concatenate(centers) if centers else np.zeros((0, T))
    std = np.concatenate(spreads) if spreads else np.zeros((0, T))
    metric = getattr(model.loss_, "metric_", None)
    if metric is not None and not isinstance(model.loss_.metric, str):
        return X, QuadraticForm(metric, w) if metric.ndim == 2 else Quadratic.around(w, np.broadcast_to(metric, w.shape))
    if metric is None or metric.ndim == 1 or T == 1:
        return X, Quadratic.around(w, 1 / std**2)
    S = np.linalg.inv(metric)
    size = np.sqrt(np.diagonal(S))
    R = np.linalg.inv(S / np.outer(size, size))
    return X, QuadraticForm((R + R.T) / 2 / (std[:, :, None] * std[:, None, :]), w)


def _moments(surrogate: Any, given: Any) -> tuple[list[Any], np.ndarray]:
    """The predictions, and (m, T) standard deviations of new observations, above 0."""
    error = surrogate.errors()
    if hasattr(surrogate, "predict_and_std"):
        scores, std = surrogate.predict_and_std(given)
    else:
        scores = surrogate.predict_tasks(given)
        if hasattr(surrogate, "std"):
            std = surrogate.std(given)
        elif hasattr(surrogate, "variance"):
            std = np.sqrt(np.asarray(to_numpy(surrogate.variance(given)), dtype=float)) * error
        else:
            std = np.broadcast_to(error, (given.shape[0], len(error)))
    std = np.asarray(to_numpy(std), dtype=float)
    least = LEAST * np.maximum(error, np.max(std, axis=0, initial=0.0))
    return scores, np.maximum(np.where(np.isfinite(std), std, error), np.where(least > 0, least, 1e-12))
