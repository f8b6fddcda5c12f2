"""`lawful fit` and `lawful info`: a table becomes a model file, and what such a file says of itself."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from lawful import estimators
from lawful._array import to_numpy
from lawful._files import replacing
from lawful.cli.pages import page
from lawful.cli.settings import Config, Force, Inputs, Json, Law, Outputs, Quiet, law_of
from lawful.cli.tables import choose, complete, free, numbers, read
from lawful.cli.words import Trouble, console, note, show, speaking, tell, tell_json
from lawful.saving.models import describe

__all__ = ["fit", "info", "learn"]

CHECKED = 2000  # training rows that are decoded again for the summary


class Surrogate(StrEnum):
    kernel = "kernel"
    auto = "auto"


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


def fit(
    data: Annotated[Path, typer.Argument(help="A table: .csv, .parquet or .npz.")],
    outputs: Outputs,
    law: Law = None,
    inputs: Inputs = None,
    save: Annotated[Path | None, typer.Option(help="Where to write the model: one file.", show_default=False)] = None,
    report: Annotated[Path | None, typer.Option(help="An HTML page on the fit.", show_default=False)] = None,
    search: Annotated[bool, typer.Option("--search", help="Choose hyper-parameters by held-out error.")] = False,
    surrogate: Annotated[
        Surrogate,
        typer.Option(help="kernel: kernel ridge. auto: a mixture of kernels, trees and lines; cannot be saved with trees."),
    ] = Surrogate.kernel,
    weights: Annotated[str | None, typer.Option(help="A column of sample weights.", show_default=False)] = None,
    config: Config = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn outputs that obey a law from a table.

    [bold]lawful fit data.csv --outputs "y*" --law "y1**2 + y2**2 = 1" --save circle.lawful --report circle.html[/]

    Empty outputs are gaps, which the law helps to fill; rows without all inputs are left out.
    """
    with speaking("fit"):
        free(save, force), free(report, force)
        table = read(data)
        given, to_predict = columns(table, outputs, inputs, data, weights)
        X, Y = learn(table, given, to_predict, data)
        weight = (
            None
            if weights is None
            else numbers(table, choose(table.columns, weights, "--weights"), data).loc[X.index].iloc[:, 0]
        )
        model = _estimator(law_of(law), search, surrogate)
        start = time.perf_counter()
        with console().status(f"learning {len(to_predict)} outputs from {len(X)} rows"):
            model.fit(X, Y, None if weight is None else weight.to_numpy())
        summary = summarise(model, X, Y, data, time.perf_counter() - start)
        if save is not None:
            model.save(save)
            summary["saved"] = str(save)
        if report is not None:
            with replacing(report, text=True) as file:
                file.write(page(model, X, Y, summary))
            summary["report"] = str(report)
        if save is None and report is None:
            note("nothing was written; --save model.lawful keeps the model")
        tell_json(summary) if as_json else _say(summary, quiet)


def _estimator(law: Any, search: bool, surrogate: Surrogate) -> Any:
    chosen = None if surrogate == Surrogate.kernel else "auto"
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


def _say(summary: dict[str, Any], quiet: bool) -> None:
    rows = [
        [one["output"], str(one["observed"]), f"{one['rmse']:.3g}", "-" if one["r2"] is None else f"{one['r2']:.4f}"]
        for one in summary["outputs"]
    ]
    show("held out, before the law", ["output", "observed", "error (rms)", "R2"], rows, quiet)
    law, seconds = summary["law"], summary["seconds"]
    states = ", ".join(f"{k} {name}" for name, k in law["status"].items())
    tell(f"{summary['rows']} rows, {len(summary['inputs'])} inputs, {seconds:.1f} s", quiet)
    tell(f"law on {law['rows']} training rows: largest violation {law['violation']:.1e} ({states})", quiet)
    for what in ("saved", "report"):
        if what in summary:
            tell(f"{what}: {summary[what]}", quiet)


def info(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    as_json: Json = False,
) -> None:
    """What a model file holds: its law, inputs, outputs, and the versions that wrote it. Nothing is run.

    [bold]lawful info circle.lawful[/]
    """
    with speaking("info"):
        known = describe(model) | {"file": str(model), "size": model.stat().st_size}
        if as_json:
            tell_json(known)
            return
        for name in ("class", "law", "inputs", "outputs", "version", "size"):
            value = known[name]
            tell(f"{name + ':':10}{', '.join(map(str, value)) if isinstance(value, list) else value}")
        tell(f"{'written by:':12}{', '.join(f'{k} {v}' for k, v in known['written by'].items())}")
