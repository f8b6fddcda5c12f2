"""An experiment: configurations -> rows -> pages. Four functions and a name; runner, store and report do the rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lawful.experiments._store import no_fields
from lawful.report.blocks import Section

Row = dict[str, Any]  # a configuration and, under "results", what was measured; everything in it goes through JSON


@dataclass(frozen=True)
class Options:
    """What was asked. `data` is the folder named by the user; None with `quick` means generated stand-ins."""

    quick: bool = False
    trials: int = 10
    seed: int = 0
    data: Path | None = None


class Clock:
    """Seconds by label. Times never enter a row: rows are compared byte for byte between runs.

    >>> clock = Clock()
    >>> with clock("STL"):
    ...     _ = sum(range(10))
    >>> list(clock.seconds)
    ['STL']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, label: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[label] = self.seconds.get(label, 0.0) + time.perf_counter() - start


def nothing_to_tell(data: Any) -> list[str]:
    return []


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    configurations(options) -> list of flat JSON-able dicts, all different, in the order in which rows are kept
    load(options) -> data, called once in each worker process; describe(data) -> what it is, in words
    run(configuration, data, clock) -> results (JSON-able, no times, the same bytes for the same configuration)
    cost(configuration) -> seconds it takes, roughly: for the time left
    fields(configuration) -> what its results have at least, so that a damaged row is found when the run is gone on with
    pages(rows, seconds, options, told) -> sections of the report; `seconds` maps a label of the clock to its times, `told` is
        what `describe` said: a report needs rows, not data
    """

    name: str
    title: str
    configurations: Callable[[Options], list[dict[str, Any]]]
    load: Callable[[Options], Any]
    run: Callable[[dict[str, Any], Any, Clock], dict[str, Any]]
    cost: Callable[[dict[str, Any]], float]
    pages: Callable[[list[Row], dict[str, list[float]], Options, list[str]], list[Section]]
    describe: Callable[[Any], list[str]] = nothing_to_tell
    fields: Callable[[dict[str, Any]], Iterable[str]] = no_fields
    needs_data: bool = False  # whether --data means anything to it
