"""What the user gives, checked: X and Y with NaN for outputs that were not observed, or one data set per task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Tasks:
    """T regression problems on rows of one X.

    y[t] (n_t,) labels, rows[t] (n_t,) rows of X they belong to, weights[t] (n_t,) positive sample weights.
    """

    y: list[np.ndarray]
    rows: list[np.ndarray]
    weights: list[np.ndarray]
    names: list[str] | None = None


def check_outputs(Y: Any) -> tuple[np.ndarray, list[str] | None]:
    """Y as a float array (n,) or (n, T) with NaN for missing, and its column names if it has any."""
    names = [str(c) for c in Y.columns] if hasattr(Y, "columns") else None
    if Y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None")
    try:
        values = np.asarray(Y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Y must be numeric, with NaN for outputs that were not observed: {error}") from error
    if values.ndim not in (1, 2) or 0 in values.shape[1:]:
        raise ValueError(f"Y must have shape (n,) or (n, T) with at least one column, got {values.shape}")
    if np.isinf(values).any():
        raise ValueError("Input y contains infinity or a value too large for dtype('float64'); use NaN for missing outputs")
    return values, names


def split_tasks(Y: np.ndarray, names: list[str] | None = None, sample_weight: Any = None) -> Tasks:
    """Observed labels of every task, with their rows and weights. Rows of weight 0 are left out."""
    n, T = Y.shape
    weight = check_weights(sample_weight, n, T)
    observed = ~np.isnan(Y) & (weight > 0)
    for t in np.flatnonzero(~observed.any(axis=0)):
        label = names[t] if names else f"y{t + 1}"
        reason = "all its sample weights are zero" if (~np.isnan(Y[:, t])).any() else "every value is NaN"
        raise ValueError(f"output {label!r} has no observation ({reason}); drop the column or add data for it")
    rows = [np.flatnonzero(observed[:, t]) for t in range(T)]
    return Tasks([Y[r, t] for t, r in enumerate(rows)], rows, [weight[r, t] for t, r in enumerate(rows)], names)


def check_weights(sample_weight: Any, n: int, T: int) -> np.ndarray:
    """Sample weights (n,) or (n, T) as (n, T), non-negative and finite."""
    if sample_weight is None:
        return np.ones((n, T))
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape not in ((n,), (n, T)):
        raise ValueError(f"sample_weight has shape {weight.shape}; give ({n},) or ({n}, {T})")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must be finite and non-negative")
    if not (weight > 0).any():
        raise ValueError("all sample weights are zero; give at least one row a positive weight")
    return np.broadcast_to(weight[:, None] if weight.ndim == 1 else weight, (n, T))


def stack_tasks(tasks: Sequence[tuple[Any, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """One X and one Y with NaN, from a data set (X_t, y_t) per task: each task may have its own inputs.

    >>> X, Y = stack_tasks([([[0.0], [1.0]], [5.0, 6.0]), ([[2.0]], [7.0])])
    >>> Y
    array([[ 5., nan],
           [ 6., nan],
           [nan,  7.]])
    """
    if not len(tasks):
        raise ValueError("stack_tasks needs at least one (X, y) pair")
    inputs: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    for t, pair in enumerate(tasks):
        if len(pair) != 2:
            raise ValueError(f"stack_tasks: entry {t} is not a pair (X, y)")
        X, y = np.asarray(pair[0], dtype=np.float64), np.asarray(pair[1], dtype=np.float64)
        X = X[:, None] if X.ndim == 1 else X
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if y.ndim != 1 or X.ndim != 2 or len(X) != len(y):
            raise ValueError(
                f"stack_tasks: task {t} has X of shape {X.shape} and y of shape {y.shape}; give (n_t, d) and (n_t,)"
            )
        if inputs and X.shape[1] != inputs[0].shape[1]:
            raise ValueError(
                f"stack_tasks: task {t} has {X.shape[1]} inputs, task 0 has {inputs[0].shape[1]}; all need the same"
            )
        inputs.append(X)
        labels.append(y)
    Y = np.full((sum(map(len, labels)), len(labels)), np.nan)
    start = 0
    for t, y in enumerate(labels):
        Y[start : start + len(y), t] = y
        start += len(y)
    return np.concatenate(inputs), Y
