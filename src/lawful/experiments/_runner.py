"""Runs what is left of a plan, some configurations at a time, and shows how long the rest will take."""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numba
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from threadpoolctl import threadpool_limits

from lawful.experiments._base import Clock, Experiment, Options, Row
from lawful.experiments._store import Store, StoreError

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

PACKAGES = ("numpy", "scipy", "scikit-learn", "sympy", "numba", "joblib", "matplotlib")
SPEAK_EVERY = 20.0  # seconds between lines where no bar can be drawn


@dataclass
class Run:
    """A finished run: rows in the order of the plan, times, and how it came about."""

    experiment: Experiment
    options: Options
    rows: list[Row]
    times: list[dict[str, Any]]
    sessions: list[dict[str, Any]]
    asked: dict[str, Any]

    def seconds(self) -> dict[str, list[float]]:
        """Label of the clock -> its seconds, configuration by configuration."""
        found: dict[str, list[float]] = {}
        for line in self.times:
            for label, seconds in line["parts"].items():
                found.setdefault(label, []).append(seconds)
        return found

    def wall(self) -> float:
        """Seconds from the start of each session to its last row, added up."""
        return sum(max((t["at"] for t in self.times if t["session"] == s), default=0.0) for s in range(len(self.sessions)))

    def work(self) -> float:
        """Seconds of all configurations together, on one core."""
        return sum(t["seconds"] for t in self.times)

    def peak(self) -> float:
        """Largest memory of a worker, in MB."""
        return max((t["peak_mb"] for t in self.times), default=0.0)


@dataclass
class Prepared:
    """An experiment whose request was found to be in order: its data are there, and its folder may be written to."""

    experiment: Experiment
    options: Options
    data: Any
    store: Store


def prepare(experiment: Experiment, options: Options, out: Path, *, resume: bool = False) -> Prepared:
    """Find out what is wrong with a request before the first hour of work."""
    data = load(experiment, options)
    asked = {
        "experiment": experiment.name,
        "quick": options.quick,
        "trials": options.trials,
        "seed": options.seed,
        "data": experiment.describe(data),
    }
    store = Store(
        Path(out) / experiment.name, asked, experiment.configurations(options), resume=resume, fields=experiment.fields
    )
    store.check()
    return Prepared(experiment, options, data, store)


def load(experiment: Experiment, options: Options) -> Any:
    """The data, read on one thread like everything else."""
    try:
        with threadpool_limits(1):
            return experiment.load(options)
    except ValueError as error:
        raise StoreError(f"{experiment.name}: the data cannot be used: {error}") from error


def run(prepared: Prepared, *, n_jobs: int = 1, console: Console) -> Run:
    """Everything that is planned and not yet there, in the folder of the store."""
    experiment, options = prepared.experiment, prepared.options
    with prepared.store as store:
        todo, kept, plan = store.todo(), len(store.rows), store.plan
        if todo or not store.sessions:
            now = session(experiment, options, n_jobs)
            if store.sessions and store.sessions[-1]["versions"] != now["versions"]:
                console.print(
                    f"{experiment.name}: versions differ from those of the rows that are there; the report lists both"
                )
            store.begin(now)
        if kept and todo:
            console.print(f"{experiment.name}: {kept} of {len(plan)} rows are there, {len(todo)} are left")
        start = time.monotonic()
        with progress(experiment, todo, console) as advance:
            for configuration, results, times in results_of(experiment, options, todo, n_jobs, prepared.data):
                store.add(configuration, results, {**times, "at": round(time.monotonic() - start, 3)})
                advance(configuration)
        rows = store.finish()
        return Run(experiment, options, rows, store.times(), store.sessions, store.asked)


def results_of(
    experiment: Experiment, options: Options, todo: list[dict[str, Any]], n_jobs: int, data: Any
) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """(configuration, results, times), as they finish."""
    if n_jobs == 1 or len(todo) < 2:
        for configuration in todo:
            yield one(experiment, configuration, data)
        return
    pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
    parent = os.getpid()
    yield from pool(delayed(in_worker)(experiment, options, configuration, parent) for configuration in todo)
    get_reusable_executor().shutdown(wait=True)  # the next experiment's memory is its own


_loaded: dict[tuple[str, Options], Any] = {}  # a worker reads the data once


def in_worker(experiment: Experiment, options: Options, configuration: dict[str, Any], parent: int) -> Any:
    where = (experiment.name, options)
    if not _loaded:
        threading.Thread(target=leave_with, args=(parent,), daemon=True).start()
    if where not in _loaded:
        _loaded[where] = load(experiment, options)
    return one(experiment, configuration, _loaded[where])


def leave_with(parent: int) -> None:
    """End this worker when the run was killed: nobody will write what it finds, and a resumed run wants the core."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def one(experiment: Experiment, configuration: dict[str, Any], data: Any) -> Any:
    """One configuration on one thread: sums in another order would be other bytes."""
    clock, before = Clock(), numba.get_num_threads()
    start = time.perf_counter()
    try:
        numba.set_num_threads(1)
        with threadpool_limits(1), warnings.catch_warnings():
            results = experiment.run(dict(configuration), data, clock)
    except Exception as error:
        error.add_note(f"while {experiment.name} ran {configuration}; finished rows are kept, --resume goes on behind them")
        raise
    finally:
        numba.set_num_threads(before)
    times = {
        "seconds": round(time.perf_counter() - start, 4),
        "parts": {label: round(seconds, 4) for label, seconds in clock.seconds.items()},
        "peak_mb": peak_mb(),
    }
    return configuration, results, times


def peak_mb() -> float:
    if resource is None:
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def session(experiment: Experiment, options: Options, n_jobs: int) -> dict[str, Any]:
    """Who ran this, with what. Folders are left out: a report may be published."""
    words = ["lawful reproduce", experiment.name, *(["--quick"] if options.quick else []), f"--trials {options.trials}"]
    words += [
        f"--seed {options.seed}",
        f"--n-jobs {n_jobs}",
        *(["--data FOLDER"] if options.data and experiment.needs_data else []),
    ]
    versions = {"python": platform.python_version(), "lawful": sys.modules["lawful"].__version__}  # also when not installed
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "command": " ".join(words),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions,
        "machine": f"{platform.system()} {platform.machine()}, {processor()}, {cores()} cores",
        "n_jobs": n_jobs,
    }


def processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"


def left(done: float, total: float, elapsed: float) -> str:
    """How long the rest will take, if it goes on as it went.

    >>> left(25.0, 100.0, 60.0)
    '3:00 left'
    """
    if not done:
        return "time left not known yet"
    minutes, seconds = divmod(round(elapsed * (total - done) / done), 60)
    return f"{minutes}:{seconds:02d} left"


@contextmanager
def progress(experiment: Experiment, todo: list[dict[str, Any]], console: Console) -> Iterator[Any]:
    """A bar with the time left on a terminal, a line now and then elsewhere."""
    total, start, state = (
        sum(map(experiment.cost, todo)),
        time.monotonic(),
        {"done": 0.0, "rows": 0, "spoken": time.monotonic()},
    )
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal or not todo) as bar:
        task = bar.add_task(experiment.name, total=len(todo), left="")

        def advance(configuration: dict[str, Any]) -> None:
            state["done"] += experiment.cost(configuration)
            state["rows"] += 1
            now = time.monotonic()
            text = left(state["done"], total, now - start)
            bar.update(task, advance=1, left=text)
            if not console.is_terminal and (now - state["spoken"] > SPEAK_EVERY or state["rows"] == len(todo)):
                state["spoken"] = now
                console.print(
                    f"{experiment.name}: {state['rows']} of {len(todo)} rows, {now - start:.0f} s, {text}", highlight=False
                )

        yield advance
