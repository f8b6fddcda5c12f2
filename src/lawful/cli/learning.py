"""`lawful fit` and `lawful info`: a table becomes a model file, and what such a file says of itself."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from lawful._files import replacing
from lawful.cli import tools
from lawful.cli.laws import law_of
from lawful.cli.settings import Config, Force, Inputs, Json, Law, Outputs, Quiet, Unknown
from lawful.cli.words import console, note, several, show, speaking, tell, tell_json

__all__ = ["fit", "info"]


class Surrogate(StrEnum):
    kernel = "kernel"
    auto = "auto"


def fit(
    data: Annotated[Path, typer.Argument(help="A table: .csv, .parquet or .npz.")],
    outputs: Outputs,
    law: Law = None,
    unknown: Unknown = None,
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
    with speaking("fit", as_json):
        tools.free(save, force), tools.free(report, force)
        tools.apart(data=data, save=save, report=report)
        table = tools.read(data)
        if weights is not None:
            weights = tools.one_column(table.columns, weights, "--weights")
        given, to_predict = tools.columns(table, outputs, inputs, data, weights)
        X, Y = tools.learn(table, given, to_predict, data)
        weight = None if weights is None else tools.numbers(table, [weights], data)[weights].loc[X.index].to_numpy()
        model = tools.estimator(law_of(law, unknown), search, surrogate)
        start = time.perf_counter()
        with console().status(f"learning {len(to_predict)} outputs from {len(X)} rows"):
            model.fit(X, Y, weight)
        summary = tools.summarise(model, X, Y, data, time.perf_counter() - start)
        if save is not None:
            model.save(save)
            summary["saved"] = str(save)
        if report is not None:
            with replacing(report, text=True) as file:
                file.write(tools.page(model, X, Y, summary))
            summary["report"] = str(report)
        if save is None and report is None and not quiet:
            note("nothing was written; --save model.lawful keeps the model")
        tell_json(summary) if as_json else _say(summary, quiet)


def _say(summary: dict[str, Any], quiet: bool) -> None:
    rows = [
        [
            one["output"],
            str(one["observed"]),
            "-" if one["rmse"] is None else f"{one['rmse']:.3g}",
            "-" if one["r2"] is None else f"{one['r2']:.4f}",
        ]
        for one in summary["outputs"]
    ]
    show("held out, before the law", ["output", "observed", "error (rms)", "R2"], rows, quiet)
    law, seconds = summary["law"], summary["seconds"]
    states = ", ".join(f"{k} {name}" for name, k in law["status"].items())
    tell(f"{several(summary['rows'], 'row')}, {several(len(summary['inputs']), 'input')}, {seconds:.1f} s", quiet)
    tell(f"law on {several(law['rows'], 'training row')}: largest violation {law['violation']:.1e} ({states})", quiet)
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
    with speaking("info", as_json):
        known = tools.describe(model) | {"file": str(model), "size": model.stat().st_size}
        if as_json:
            tell_json(known)
            return
        for name in ("class", "law", "inputs", "outputs", "version", "size"):
            value = "-" if known[name] is None else known[name]  # a ranker has items
            tell(f"{name + ':':12}{', '.join(map(str, value)) if isinstance(value, list) else value}")
        tell(f"{'written by:':12}{', '.join(f'{k} {v}' for k, v in known['written by'].items())}")
