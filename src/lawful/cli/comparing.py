"""`lawful compare`: usual regressors and ours, with and without the law, under one cross-validation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lawful import estimators
from lawful._array import to_numpy
from lawful._files import replacing
from lawful.cli.learning import columns, learn
from lawful.cli.predicting import Output
from lawful.cli.settings import Config, Force, Inputs, Json, Law, Outputs, Quiet, law_of
from lawful.cli.tables import free, pandas, read, writing
from lawful.cli.words import Trouble, progress, show, speaking, tell, tell_json

__all__ = ["compare"]

RIVALS: dict[str, Callable[[], Any]] = {
    "mean": lambda: DummyRegressor(),
    "linear": lambda: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-6, 4, 21))),
    "forest": lambda: RandomForestRegressor(100, random_state=0),
    "kernel": lambda: None,
}


def compare(
    data: Annotated[Path, typer.Argument(help="A table: .csv, .parquet or .npz.")],
    outputs: Outputs,
    law: Law = None,
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
    with speaking("compare"):
        free(output, force), free(plot, force)
        wanted = [name.strip() for name in methods.split(",") if name.strip()]
        if unknown := [name for name in wanted if name not in RIVALS]:
            raise Trouble(f"--methods names {', '.join(unknown)}; choose from {', '.join(RIVALS)}")
        table = read(data)
        given, to_predict = columns(table, outputs, inputs, data)
        X, Y = learn(table, given, to_predict, data)
        if len(X) < folds:
            raise Trouble(f"{data} has {len(X)} usable rows, too few for {folds} folds; --folds {max(len(X), 2)} or more rows")
        constraint = law_of(law)
        cases = [(name, bound) for name in wanted for bound in ((False, True) if constraint is not None else (False,))]
        found = []
        with progress(quiet or as_json) as bar:
            for name, bound in bar.track(cases, description="methods"):
                found.append(
                    {"method": f"{name} + law" if bound else name} | _judge(name, bound, constraint, X, Y, folds, seed)
                )
        _tell(found, constraint is not None, data, as_json, quiet)
        if output is not None:
            with writing(output) as writer:
                writer.write(pandas().DataFrame(found))
        if plot is not None:
            _draw(found, plot)


def _judge(name: str, bound: bool, law: Any, X: Any, Y: Any, folds: int, seed: int) -> dict[str, Any]:
    """Held-out errors, the largest violation of the law, and seconds, over all folds."""
    errors, violation = np.full(Y.shape, np.nan), 0.0
    fitting = predicting = 0.0
    for train, test in KFold(folds, shuffle=True, random_state=seed).split(X):
        model = estimators.ConstrainedRegressor(clone(law) if bound else None, surrogate=RIVALS[name]())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", estimators.DecodingWarning)  # the violation says it
            start = time.perf_counter()
            model.fit(X.iloc[train], Y.iloc[train])
            fitted = time.perf_counter()
            c = model.predict(X.iloc[test])
        fitting, predicting = fitting + fitted - start, predicting + time.perf_counter() - fitted
        errors[test] = (c - Y.iloc[test].to_numpy()) ** 2
        if law is not None:
            C = clone(law).fit(
                Y.iloc[train].to_numpy(), X.iloc[train].to_numpy(), outputs=list(Y.columns), inputs=list(X.columns)
            )
            violation = max(violation, float(to_numpy(C.at(X.iloc[test].to_numpy()).residual(c)).max()))
    spread = np.nanvar(Y.to_numpy(), axis=0)
    ratio = np.nanmean(errors, axis=0)[spread > 0] / spread[spread > 0]
    return {"error": float(ratio.mean()), "violation": violation, "fit_s": fitting, "predict_s": predicting}


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


def _draw(found: list[dict[str, Any]], path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Trouble("--plot needs matplotlib; pip install 'lawful[cli]' brings it") from error
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise Trouble(f"--plot {path} has no ending that names a picture; .png, .svg or .pdf would do")
    figure = Figure(figsize=(6, 0.5 + 0.4 * len(found)), layout="constrained")
    axes = figure.add_subplot()
    names = [one["method"] for one in found][::-1]
    colors = ["C1" if name.endswith("law") else "C0" for name in names]
    axes.barh(names, [one["error"] for one in found][::-1], color=colors)
    axes.set_xscale("log")
    axes.set_xlabel("held-out error (mean over outputs, 1 = predicting the mean)")
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=150)
