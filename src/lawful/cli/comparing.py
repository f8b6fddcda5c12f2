"""`lawful compare`: usual regressors and ours, with and without the law, under one cross-validation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lawful.cli import tools
from lawful.cli.laws import law_of
from lawful.cli.predicting import Output
from lawful.cli.settings import Config, Force, Inputs, Json, Law, Outputs, Quiet, Unknown
from lawful.cli.words import Trouble, progress, show, speaking, tell, tell_json

__all__ = ["compare"]


def compare(
    data: Annotated[Path, typer.Argument(help="A table: .csv, .parquet or .npz.")],
    outputs: Outputs,
    law: Law = None,
    unknown: Unknown = None,
    inputs: Inputs = None,
    folds: Annotated[int, typer.Option(min=2, help="Parts that are predicted from the others in turn.")] = 5,
    methods: Annotated[str, typer.Option(help="Any of mean, linear, forest, kernel.")] = "mean,linear,forest,kernel",
    seed: Annotated[int, typer.Option(min=0, help="Deals the folds.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="A picture: .png, .svg or .pdf.", show_default=False)] = None,
    output: Output = None,
    config: Config = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare regressors with and without the law on the same folds: error, violation, time.

    [bold]lawful compare data.csv --outputs "y*" --law "y1**2 + y2**2 = 1" --plot compare.png[/]

    error: the held-out squared error over the output's variance, mean over outputs; 1 is as good as the mean, 0 perfect.
    """
    with speaking("compare", as_json):
        tools.free(output, force, tools.SUFFIXES), tools.free(plot, force, tools.PICTURES)
        tools.apart(data=data, output=output, plot=plot)
        wanted = list(dict.fromkeys(name.strip() for name in methods.split(",") if name.strip()))
        if strange := [name for name in wanted if name not in tools.RIVALS]:
            raise Trouble(f"--methods names {', '.join(strange)}; choose from {', '.join(tools.RIVALS)}")
        if not wanted:
            raise Trouble(f"--methods is empty; choose from {', '.join(tools.RIVALS)}")
        table = tools.read(data)
        given, to_predict = tools.columns(table, outputs, inputs, data)
        X, Y = tools.learn(table, given, to_predict, data)
        if len(X) < folds:
            raise Trouble(f"{data} has {len(X)} usable rows, too few for {folds} folds; more rows, or fewer --folds, would do")
        if (Y.max() == Y.min()).all():
            raise Trouble(f"{data}: {', '.join(Y.columns)} never change, and any method knows that; name an output that does")
        constraint = law_of(law, unknown)
        cases = [(name, bound) for name in wanted for bound in ((False, True) if constraint is not None else (False,))]
        found = []
        with progress(quiet or as_json) as bar:
            for name, bound in bar.track(cases, description="methods"):
                found.append(
                    {"method": f"{name} + law" if bound else name} | tools.judge(name, bound, constraint, X, Y, folds, seed)
                )
        if output is not None:
            with tools.writing(output) as writer:
                writer.write(tools.pandas().DataFrame(found))
        if plot is not None:
            tools.draw(found, plot)
        _tell(found, constraint is not None, data, as_json, quiet)


def _tell(found: list[dict[str, Any]], lawful: bool, data: Path, as_json: bool, quiet: bool) -> None:
    if as_json:
        tell_json({"data": str(data), "methods": found})
        return
    best = min(one["error"] for one in found)
    rows = [
        [one["method"], f"{one['error']:.3e}", f"{one['error'] / best:.2f}" if best else "-"]
        + ([f"{one['violation']:.1e}"] if lawful else [])
        + [f"{one['fit_s']:.2f}", f"{one['predict_s']:.2f}"]
        for one in found
    ]
    names = ["method", "error", "of the best", *(["violation"] if lawful else []), "fit s", "predict s"]
    show("held out, the same folds for all", names, rows, quiet)
    tell(f"lowest error: {min(found, key=lambda one: one['error'])['method']}", quiet)
