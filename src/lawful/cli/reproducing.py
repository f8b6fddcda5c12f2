"""`lawful reproduce`: the experiments of the paper."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lawful import experiments  # a list of names until something is run
from lawful.cli.settings import Json
from lawful.cli.words import Trouble, speaking, tell, tell_json

Which = StrEnum("Which", [*experiments.NAMES, "all"])  # type: ignore[misc]
TRIALS, QUICK_TRIALS = 10, 2


def reproduce(
    experiment: Annotated[Which, typer.Argument(help="Which experiment of the paper.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Under a minute each; generated stand-ins where --data is not given.")
    ] = False,
    trials: Annotated[
        int | None, typer.Option(min=1, help=f"Trials or splits (default: {TRIALS}, with --quick {QUICK_TRIALS}).")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The first seed; trial k uses seed + k.")] = 0,
    n_jobs: Annotated[
        int | None, typer.Option(min=1, help="Configurations at the same time (default: all cores).", show_default=False)
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder that holds sarcos/ and ml-100k/.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for rows and reports.")] = Path("reproduction"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    as_json: Json = False,
) -> None:
    """Run the paper's experiments; rows and a report (HTML, Markdown) go to the folder --out.

    A run that was killed goes on with --resume: finished rows are neither lost nor repeated.
    """
    console = Console(stderr=as_json)
    chosen = {name: e for name, e in experiments.EXPERIMENTS.items() if experiment in (name, "all")}
    n_jobs = n_jobs or experiments.cores()
    options = experiments.Options(quick=quick, trials=trials or (QUICK_TRIALS if quick else TRIALS), seed=seed, data=data)
    with speaking(
        "reproduce", as_json, "stopped; finished rows are kept, and the same command with --resume goes on behind them"
    ):
        try:
            page = experiments.reproduce(chosen, options, out, n_jobs=n_jobs, resume=resume, console=console)
        except experiments.StoreError as error:
            raise Trouble(str(error)) from error
        tell_json({"report": str(page)}) if as_json else tell(f"report: {page}")
