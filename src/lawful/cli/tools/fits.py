"""What `lawful fit` and `lawful compare` do: columns, data, estimators, and what a fit is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lawful import estimators
from lawful._array import to_numpy
from lawful.cli.tools.tables import choose, complete, numbers
from lawful.cli.words import Trouble

__all__ = ["columns", "estimator", "learn", "summarise"]

CHECKED = 2000  # training rows that are decoded again for the summary


def columns(
    table: Any, outputs: str, inputs: str | None, path: Path, weights: str | None = None
) -> tuple[list[str], list[str]]:
    """The names of inputs and outputs of a table."""
    if not outputs.strip():
        raise Trouble('--outputs is empty; name the columns to predict: --outputs "y*"')
    to_predict = choose(table.columns, outputs, "--outputs")
    rest = [name for name in table.columns if name not in to_predict and name != weights]
    given = rest if inputs is None else choose(rest, inputs, "--inputs")
    if not given:
        raise Trouble(f"{path} has no column left to predict from; the outputs are {', '.join(to_predict)}")
    return given, to_predict


def learn(table: Any, given: list[str], to_predict: list[str], path: Path) -> tuple[Any, Any]:
    """X and Y of a table, rows without inputs or without any output left out."""
    values = complete(numbers(table, [*given, *to_predict], path), given, path)
    seen = values[to_predict].notna().any(axis=1)
    if not seen.any():
        raise Trouble(f"{path} has no row with all inputs and an output; there is nothing to learn from")
    return values.loc[seen, given], values.loc[seen, to_predict]


def estimator(law: Any, search: bool, surrogate: str) -> Any:
    chosen = None if surrogate == "kernel" else "auto"
    if not search:
        return estimators.ConstrainedRegressor(law, surrogate=chosen)
    if chosen is not None:
        raise Trouble("--search is for --surrogate kernel; auto chooses by held-out errors itself")
    return estimators.ConstrainedRegressorCV(law)


def summarise(model: Any, X: Any, Y: Any, data: Path, seconds: float) -> dict[str, Any]:
    """What a fit is worth: held-out errors of every output before the law, and the law on training rows."""
    inner = getattr(model, "best_estimator_", model)
    found = []
    for name, residuals in zip(Y.columns, inner.surrogate_.residuals()):
        known = Y[name].to_numpy()[~np.isnan(Y[name].to_numpy())]
        r, spread = to_numpy(residuals), float(known.std())
        rmse = float(np.sqrt(np.mean(r**2)))
        found.append({"output": name, "observed": len(known), "rmse": rmse, "r2": 1 - (rmse / spread) ** 2 if spread else None})
    rows = X.iloc[np.linspace(0, len(X) - 1, min(len(X), CHECKED)).astype(int)]
    d = inner.decode(rows)
    law = {"rows": len(rows), "violation": float(np.nanmax(to_numpy(d.residual), initial=0.0)), "status": count(d.status)}
    return {
        "data": str(data),
        "rows": len(X),
        "inputs": list(X.columns),
        "outputs": found,
        "law": law,
        "seconds": round(seconds, 3),
    }


def count(status: np.ndarray) -> dict[str, int]:
    """How many rows have each status."""
    names, times = np.unique(status, return_counts=True)
    return {str(name): int(k) for name, k in zip(names, times)}
