"""`lawful predict` and `lawful project`: tables in, tables out, a piece at a time."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from lawful import decoders, estimators
from lawful.cli import tools
from lawful.cli.laws import law_of
from lawful.cli.settings import Config, Force, Given, Json, Law, Quiet
from lawful.cli.words import DOUBTFUL, Trouble, note, several, speaking, tell, tell_json

__all__ = ["Output", "predict", "project"]

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        callback=lambda path: None if str(path) == "-" else path,
        help="Where to write: .csv, .parquet or .npz (default: standard output).",
        show_default=False,
    ),
]
Keep = Annotated[str | None, typer.Option(help="Columns of the data to copy to the result, names or patterns.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit code 3 if a row could not be certified.")]
CERTIFIED = ("ok", "averaged", "low_confidence")


def predict(
    model: Annotated[Path, typer.Argument(help="A model file that `lawful fit --save` wrote.")],
    data: Annotated[Path, typer.Argument(help="A table with the model's inputs: .csv, .parquet or .npz.")],
    output: Output = None,
    keep: Keep = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows in memory at a time.")] = 20_000,
    strict: Strict = False,
    config: Config = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict outputs that obey the law, with a certificate for every row.

    [bold]lawful predict circle.lawful new.csv -o out.csv[/]

    Beside the outputs stand the violation of the law (residual), the status (ok, not_converged, infeasible, ...) and the
    standard deviation of each output before the law. Files larger than memory are no matter.
    """
    with speaking("predict", as_json):
        tools.free(output, force, tools.SUFFIXES)
        estimator = tools.load(model)
        if not hasattr(estimator, "decode") or hasattr(estimator, "n_items_"):
            raise Trouble(f"{model} holds a {type(estimator).__name__}; predict is for regressors, `lawful rank` for rankers")
        given = getattr(estimator, "feature_names_in_", None)
        inner = getattr(estimator, "best_estimator_", estimator)
        inner.on_failure = "warn" if inner.on_failure == "raise" else inner.on_failure  # the status says it row by row

        def used(names: list[str]) -> list[str]:
            return list(given) if given is not None else names[: estimator.n_features_in_]

        def decoded(piece: Any) -> Any:
            X = tools.numbers(piece, used(list(piece.columns)), data)
            whole = X.notna().all(axis=1).to_numpy()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", estimators.DecodingWarning)  # the last line says it of all pieces together
                answer = estimator.decode(X[whole] if given is not None else X[whole].to_numpy()) if whole.any() else None
            return tools.certificate(answer, estimator.output_names_, whole, piece.index)

        found = tools.stream(data, output, used, decoded, keep, rows, as_json, quiet or as_json or output is None)
        finish(found, output, as_json, quiet)
    judge(found, strict)


def project(
    points: Annotated[Path, typer.Argument(help="A table of points: .csv, .parquet or .npz.")],
    law: Law = None,
    columns: Annotated[str, typer.Option(help="The columns that the law is about, names or patterns.")] = "*",
    inputs: Given = None,
    weights: Annotated[str | None, typer.Option(help="A positive weight for each column, separated by commas.")] = None,
    output: Output = None,
    keep: Keep = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows in memory at a time.")] = 20_000,
    strict: Strict = False,
    config: Config = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Move every row to the nearest point that obeys a law; nothing is learned.

    [bold]lawful project points.csv --law "y1**2 + y2**2 = 1" -o on_circle.csv[/]
    """
    with speaking("project", as_json):
        tools.free(output, force, tools.SUFFIXES)
        constraint = law_of(law)
        if constraint is None:
            raise Trouble('--law is needed: --law "y1 + y2 = 1", by the names of the columns')
        fitted: list[Any] = []  # on the first piece, for all

        def parts(table: list[str]) -> tuple[list[str], list[str]]:
            given = [] if inputs is None else tools.choose(table, inputs, "--inputs")
            return given, [name for name in tools.choose(table, columns, "--columns") if name not in given]

        def decoded(piece: Any) -> Any:
            given, names = parts(list(piece.columns))
            metric = None if weights is None else tools.numbers_of(weights, names)
            values = tools.numbers(piece, [*names, *given], points)
            whole = values.notna().all(axis=1).to_numpy()
            P, X = values.loc[whole, names].to_numpy(), values.loc[whole, given].to_numpy() if given else None
            if not fitted and len(P):
                try:
                    fitted.append(constraint.fit(P, X, outputs=names, inputs=given or None))
                except ValueError as error:
                    others = [name for name in piece.columns if name not in [*names, *given] and f"name {name!r}" in str(error)]
                    raise Trouble(f"{error}; --inputs {others[0]} gives it" if others else str(error)) from error
            d = decoders.project(P, fitted[0], metric, X, certificate=True) if len(P) else None
            return tools.certificate(d, names, whole, piece.index)

        def used(table: list[str]) -> list[str]:
            return [name for part in parts(table) for name in part]

        found = tools.stream(points, output, used, decoded, keep, rows, as_json, quiet or as_json or output is None)
        finish(found, output, as_json, quiet)
    judge(found, strict)


def finish(found: dict[str, Any], output: Path | None, as_json: bool, quiet: bool) -> None:
    """The summary; where the rows themselves went to standard output, only what is wrong with some of them, beside it."""
    rows = several(found["rows"], "row")
    states = ", ".join(f"{k} {name}" for name, k in found["status"].items())
    if as_json:
        tell_json(found | {"output": output and str(output)})
    elif output is not None:
        tell(f"{rows}{states and f' ({states})'}, largest violation {found['violation']:.1e}: {output}", quiet)
    elif not quiet and any(name not in CERTIFIED for name in found["status"]):
        note(f"{rows} ({states}); the column status says which")


def judge(found: dict[str, Any], strict: bool) -> None:
    """The exit code that --strict asked for."""
    if strict and any(name not in CERTIFIED for name in found["status"]):
        raise typer.Exit(DOUBTFUL)
