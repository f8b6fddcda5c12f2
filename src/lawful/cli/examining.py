"""`lawful doctor` and `lawful discover`: is this law right for these data, and which laws do they obey?"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from lawful._files import replacing
from lawful.cli import tools
from lawful.cli.laws import law_of
from lawful.cli.settings import Config, Force, Inputs, Json, Law, Outputs, Quiet, Unknown
from lawful.cli.words import DOUBTFUL, Trouble, console, listed, speaking, tell, tell_json

__all__ = ["discover", "doctor"]

ODD = ",*?["  # what a name, written as a pattern, would not say


def doctor(
    data: Annotated[Path, typer.Argument(help="A table: .csv, .parquet or .npz.")],
    outputs: Outputs,
    law: Law = None,
    unknown: Unknown = None,
    inputs: Inputs = None,
    alpha: Annotated[float, typer.Option(min=0, max=1, help="The share of sound laws that raise an alarm.")] = 0.05,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out whether the law helps, most of the time.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the tests and the folds.")] = 0,
    report: Annotated[Path | None, typer.Option(help="An HTML page on what was found.", show_default=False)] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 3 if there is an alarm.")] = False,
    config: Config = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Is this law right for these data? Wrong numbers, signs, units, columns and outlying rows are named.

    [bold]lawful doctor data.csv --outputs "y*" --law "y1**2 + y2**2 = 1" --report doctor.html[/]

    Rows are counted from 1, the first below the names.
    """
    with speaking("doctor", as_json):
        tools.free(report, force)
        constraint = law_of(law, unknown)
        if constraint is None:
            raise Trouble("--law is needed, the law to be examined; `lawful discover` looks for one")
        tools.apart(data=data, report=report)
        X, Y = _read(data, outputs, inputs)
        with console().status(f"examining the law at {len(Y)} rows"):
            found = tools.doctor(X, Y, constraint, alpha=alpha, held_out=not quick, random_state=seed)
        if report is not None:
            with replacing(report, text=True) as file:
                file.write(found.to_html())
        if as_json:
            tell_json(_plain(found, data, len(Y)) | {"report": report and str(report)})
        else:
            tell(str(found), quiet)
            if report is not None:
                tell(f"report: {report}", quiet)
    if strict and not found.sound:
        raise typer.Exit(DOUBTFUL)


def _read(data: Path, outputs: str, inputs: str | None, needed: bool = True) -> tuple[Any, Any]:
    """X, which is None without inputs, and Y, their rows called by their numbers in the file."""
    table = tools.read(data)
    X, Y = tools.learn(table, *tools.columns(table, outputs, inputs, data, needed=needed), data)
    X.index = Y.index = Y.index + 1
    return (X if X.shape[1] else None), Y


def _plain(found: Any, data: Path, rows: int) -> dict[str, Any]:
    def listed(findings: Any) -> list[dict[str, Any]]:
        return [{key: value for key, value in asdict(one).items() if key != "level"} for one in findings]

    return {
        "data": str(data),
        "rows": rows,
        "sound": found.sound,
        "alarms": listed(found.alarms),
        "notes": listed(found.notes),
        "equations": [asdict(one) for one in found.equations],
        "help": found.help,
        "untested": found.untested,
    }


def discover(
    data: Annotated[Path, typer.Argument(help="A table: .csv, .parquet or .npz.")],
    outputs: Outputs,
    inputs: Inputs = None,
    alone: Annotated[bool, typer.Option("--alone", help="Laws of the outputs alone; inputs take no part.")] = False,
    degree: Annotated[
        int | None, typer.Option(min=1, help="The highest degree (default: the lowest with a law).", show_default=False)
    ] = None,
    noise: Annotated[
        float | None, typer.Option(min=0, help="Standard deviation of the outputs' noise, if known.", show_default=False)
    ] = None,
    terms: Annotated[str, typer.Option(help="Any of exp, log, inverse, separated by commas.")] = "",
    choose: Annotated[
        bool, typer.Option("--choose", help="Compare equations, a surface, a region and no law on rows left out.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The laws as settings, for --config: .toml.", show_default=False)
    ] = None,
    config: Config = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Which equations do the outputs obey, alone or together with the inputs?

    [bold]lawful discover data.csv --outputs "y*" -o law.toml[/]

    [bold]lawful fit data.csv --config law.toml --save model.lawful[/]

    Rows with gaps are left out.
    """
    with speaking("discover", as_json):
        if output is not None and output.suffix != ".toml":
            raise Trouble(f"--output {output} is for settings; a name that ends in .toml would do")
        tools.free(output, force)
        X, Y = _read(data, outputs, inputs, needed=not alone)
        functions = [word.strip() for word in terms.split(",") if word.strip()]
        with console().status(f"looking for laws in {len(Y)} rows"):
            found = tools.discover(X, Y, x_dependent=not alone, degree=degree or "auto", noise=noise, terms=functions)
            choice = tools.choose_law(Y, None if alone else X) if choose else None
        laws = [one.equation for one in found.laws]
        if output is not None:
            if not laws:
                raise Trouble(f"no law was found, and nothing written to {output}; {' '.join(found.remarks)}".rstrip("; "))
            with replacing(output, text=True) as file:
                file.write(_settings([] if X is None else list(X.columns), list(Y.columns), laws))
        if as_json:
            told = {"data": str(data), "rows": len(Y), "laws": found.to_frame().to_dict("records"), "remarks": found.remarks}
            told |= {"constant": found.constant, "output": output and str(output)}
            if choice is not None:
                told |= {"chosen": choice.name, "errors": {name: e.mean() for name, e in choice.errors.items()}}
            tell_json(told)
            return
        tell(str(found), quiet)
        if choice is not None:
            tell(f"\n{choice}", quiet)
        if output is not None:
            tell(f"settings: {output}", quiet)


def _settings(inputs: list[str], outputs: list[str], laws: list[str]) -> str:
    """TOML; its strings are written as those of JSON."""
    lines = "".join(f"    {json.dumps(law, ensure_ascii=False)},\n" for law in laws)
    names = {"outputs": listed(outputs, ODD), "inputs": listed(inputs, ODD)}
    head = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in names.items() if value)
    return f"{head}law = [\n{lines}]\n"
