"""What `lawful fit` and `lawful compare` do: columns, data, estimators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lawful import estimators
from lawful.cli.tools.tables import choose, complete, numbers
from lawful.cli.words import Trouble, patterns_of

__all__ = ["columns", "estimator", "learn"]


def columns(
    table: Any, outputs: str, inputs: str | None, path: Path, weights: str | None = None, needed: bool = True
) -> tuple[list[str], list[str]]:
    """The names of inputs, if they are `needed` at least one, and of outputs of a table."""
    to_predict = choose(table.columns, outputs, "--outputs")
    if not to_predict:
        raise Trouble('--outputs is empty; name the columns to predict: --outputs "y*"')
    taken = dict.fromkeys(to_predict, "an output") | ({weights: "the weights"} if weights is not None else {})
    for name in (name for name, _ in patterns_of(inputs or "") if name in taken):
        raise Trouble(f"--inputs names {name!r}, which is {taken[name]}; a column is one or the other")
    rest = [name for name in table.columns if name not in taken]
    given = rest if inputs is None else choose(rest, inputs, "--inputs")
    if needed and not given:
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
