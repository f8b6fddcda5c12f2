"""Errors that understand missing outputs, and the violation of a law.

NaN in y_true means "not observed" and is left out; NaN in y_pred is an error of the prediction and stays NaN. Every
function takes `multioutput="average"` (mean over tasks), "pooled" where it makes sense, or "raw" (one number per task).
`scorer(metric)` turns one into a scikit-learn scorer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lawful._array import to_numpy

__all__ = ["constraint_violation", "explained_variance", "mean_squared_error", "normalized_mse", "scorer"]


def _check(y_true: Any, y_pred: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y, p = np.asarray(y_true, dtype=float), np.asarray(y_pred, dtype=float)
    if y.shape != p.shape:
        if y.size == p.size and 1 in (y.shape[-1], p.shape[-1]):  # (n,) against (n, 1)
            p = p.reshape(y.shape)
        else:
            raise ValueError(f"y_true has shape {y.shape} and y_pred {p.shape}; they must agree")
    y, p = (v[:, None] if v.ndim == 1 else v for v in (y, p))
    w = np.ones(y.shape) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    w = np.broadcast_to(w[:, None] if w.ndim == 1 else w, y.shape)
    w = np.where(np.isnan(y), 0.0, w)
    if (w.sum(axis=0) <= 0).any():
        raise ValueError(f"no observed label for outputs {np.flatnonzero(w.sum(axis=0) <= 0).tolist()}; they cannot be scored")
    return y, p, w


def _sums(y_true: Any, y_pred: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Per task: weighted sum of squared errors, of squared deviations from the mean, and of weights."""
    y, p, w = _check(y_true, y_pred, sample_weight)
    seen = w > 0
    total = w.sum(axis=0)
    filled = np.where(seen, y, 0.0)
    mean = (w * filled).sum(axis=0) / total
    errors = (w * np.where(seen, p - filled, 0.0) ** 2).sum(axis=0)
    spread = (w * np.where(seen, filled - mean, 0.0) ** 2).sum(axis=0)
    return errors, spread, total


def mean_squared_error(y_true: Any, y_pred: Any, *, sample_weight: Any = None, multioutput: str = "average") -> Any:
    """MSE of each task over its observed labels; "average" over tasks, "pooled" over all labels, or "raw"."""
    errors, _, total = _sums(y_true, y_pred, sample_weight)
    return _reduce(errors, total, multioutput)


def normalized_mse(y_true: Any, y_pred: Any, *, sample_weight: Any = None, multioutput: str = "average") -> Any:
    """MSE_t / Var_t. A constant output has no variance: its ratio is 0 when predicted exactly and 1 otherwise."""
    errors, spread, _ = _sums(y_true, y_pred, sample_weight)
    if multioutput == "pooled":
        return float(_ratio(errors.sum(keepdims=True), spread.sum(keepdims=True))[0])
    return _reduce(_ratio(errors, spread), np.ones_like(errors), multioutput)


def explained_variance(y_true: Any, y_pred: Any, *, sample_weight: Any = None, multioutput: str = "average") -> Any:
    """1 - nMSE, the mean over tasks (equal to scikit-learn's R^2 when nothing is missing) or pooled."""
    return 1 - normalized_mse(y_true, y_pred, sample_weight=sample_weight, multioutput=multioutput)


def constraint_violation(constraint: Any, y_pred: Any, X: Any = None, *, reduce: str = "max") -> Any:
    """How far predictions are from the law: "max", "mean" or "rows" of the constraint's residual.

    `constraint` is a fitted set, such as `model.constraint_`; X is needed only when it depends on the inputs.
    """
    if reduce not in ("max", "mean", "rows"):
        raise ValueError(f"unknown reduce {reduce!r}; choose 'max', 'mean' or 'rows'")
    p = np.asarray(y_pred, dtype=float)
    p = p[:, None] if p.ndim == 1 else p
    bound = constraint if X is None else constraint.at(np.asarray(X, dtype=float))
    rows = to_numpy(bound.residual(p))
    return rows if reduce == "rows" else float(getattr(rows, reduce)())


def scorer(metric: Callable[..., float], *, greater_is_better: bool = False, **options: Any) -> Any:
    """A scorer for GridSearchCV and cross_val_score that leaves missing labels out.

    >>> scorer(mean_squared_error)  # doctest: +ELLIPSIS
    <function ...>
    """

    def score(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        value = metric(y, estimator.predict(X), sample_weight=sample_weight, **options)
        return value if greater_is_better else -value

    return score


def _ratio(errors: np.ndarray, spread: np.ndarray) -> np.ndarray:
    constant = np.where(errors > 0, 1.0, 0.0)
    return np.where(spread > 0, errors / np.where(spread > 0, spread, 1.0), constant)


def _reduce(errors: np.ndarray, total: np.ndarray, multioutput: str) -> Any:
    if multioutput == "raw":
        return errors / total
    if multioutput == "average":
        return float(np.mean(errors / total))
    if multioutput == "pooled":
        return float(errors.sum() / total.sum())
    raise ValueError(f"unknown multioutput {multioutput!r}; choose 'average', 'pooled' or 'raw'")
