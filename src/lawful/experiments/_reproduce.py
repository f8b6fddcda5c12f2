"""`reproduce`: experiments by name, from the options to the report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from lawful.experiments._base import Experiment, Options
from lawful.experiments._document import write_report, write_table
from lawful.experiments._runner import prepare, run
from lawful.report.pictures import need_matplotlib


def reproduce(
    experiments: Mapping[str, Experiment],
    options: Options,
    out: Any,
    *,
    n_jobs: int = 1,
    resume: bool = False,
    console: Console | None = None,
) -> Path:
    """Run experiments, one after the other; out/<name> gets rows and a report each, `out` a common one if there are several.

    Everything that can be wrong with the request is found before the first hour of work: data that is not there, a folder that
    holds another run, matplotlib missing. Returns the path of the HTML report.
    """
    need_matplotlib()
    out, console = Path(out), console or Console(quiet=True)
    every = [prepare(experiment, options, out, resume=resume) for experiment in experiments.values()]
    runs = []
    for prepared in every:
        done = run(prepared, n_jobs=n_jobs, console=console)
        folder = prepared.store.folder
        write_table(done, folder)
        page = write_report([done], folder)
        runs.append(done)
    return page if len(runs) == 1 else write_report(runs, out)
