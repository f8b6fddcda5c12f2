"""Cases, worker processes with a watchdog, and the report."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from . import calls
from .draw import Names, draw_law, draw_names
from .judge import Verdict, fitting, judge
from .laws import Law

CALLS = 80  # on one law, at most: a case also ends when its share of processor time is spent
SHARE = 0.5  # seconds
EXAMPLES = 1000  # kept of each kind of failure
WATCHDOG = 90.0  # seconds without a word from a worker, whatever it is doing


@dataclass
class Case:
    """One law and the calls on it. The same for the same seed and number, whatever ran before."""

    law: Law
    names: Names
    shared: object
    first: Verdict
    calls: list[calls.Call]


def law_of(seed: int, number: int) -> tuple[np.random.Generator, Names, Law]:
    """The law of a case, the names of its columns, and the generator that goes on from there."""
    rng = np.random.default_rng([seed, number])
    T = int(rng.choice([1, 2, 3, 4, 5, 6, 9, 10, 12], p=[0.1, 0.28, 0.25, 0.15, 0.06, 0.1, 0.04, 0.01, 0.01]))
    names = draw_names(rng, T, int(rng.integers(1, 4)))
    return rng, names, draw_law(rng, T, names)


def make_case(seed: int, number: int, n_calls: int = CALLS) -> Case:
    rng, names, law = law_of(seed, number)
    T = law.T
    Y = law.middle + law.size * rng.standard_normal((int(rng.integers(1, 20)), T))
    if "Rankings" in law.name:
        Y = np.where(Y > 0, 1.0, -1.0)
    elif rng.random() < 0.3:
        Y[rng.random(Y.shape) < 0.2] = np.nan
    shared, first = fitting(law, names, Y)
    made = calls.fit_line(law, names, Y)
    drawn = [_draw(np.random.default_rng([seed, number, k]), law, names, shared, made, Y) for k in range(n_calls)]
    if shared is None:  # a law that cannot be read: the estimator must say so as well
        drawn = [call for call in drawn if call.verb == "fit"][:1]
    return Case(law, names, shared, first, drawn)


def _draw(rng, law, names, shared, made, Y):
    slow = "Equations" in law.name
    verb = str(
        rng.choice(["project", "decode", "fit", "refit"], p=[0.44, 0.45, 0.08, 0.03] if slow else [0.4, 0.38, 0.2, 0.02])
    )
    if verb == "fit":
        return calls.draw_fit(rng, law, names)
    if verb == "decode":
        return calls.draw_decode(rng, law, names, shared, made)
    if verb == "project":
        own = rng.random() < (0.05 if slow else 0.3)
        return calls.draw_project(rng, law, names, None if own else shared, "" if own else made)
    for _ in range(30):
        former = draw_law(rng, law.T, names)
        if former.new.path == law.new.path:
            break
    else:
        return calls.draw_project(rng, law, names, shared, made)
    X = rng.standard_normal((4, names.d)) if law.uses_x or former.uses_x else None
    points = calls.data.draw_points(rng, law, X, 4)
    return calls.RefitCall(law, names, X, former=former.new, fresh=shared, outputs=Y, points=points)


def run_case(seed: int, number: int, limit: float = 10.0, n_calls: int = CALLS, share: float = SHARE) -> list[Verdict]:
    """The verdicts on the first calls of a case: `n_calls` of them, or what can be done in `share` seconds."""
    began = time.process_time()
    case = make_case(seed, number, n_calls)
    verdicts = [case.first] if case.first.error or case.first.failures else []
    for k, call in enumerate(case.calls):
        verdicts.append(judge(call, np.random.default_rng([seed, number, k, 1]), limit))
        verdicts[-1].call = k
        if time.process_time() - began > share:
            break
    return verdicts


def show_case(seed: int, number: int, only: int | None = None) -> list[Verdict]:
    """Print a case as Python, each call (or only this one) with its outcome."""
    case = make_case(seed, number)
    print(calls.HEADER)
    verdicts = [case.first]
    print(f"\n# case {number} of seed {seed}: {case.law.name}, outputs {case.names.outputs}, inputs {case.names.inputs}")
    tell(case.first)
    for k, call in enumerate(case.calls):
        if only is not None and k != only:
            continue
        print(f"\n# call {k}: {call.verb}")
        print("\n".join(call.lines()))
        verdicts.append(judge(call, np.random.default_rng([seed, number, k, 1])))
        tell(verdicts[-1])
    return verdicts


def tell(verdict: Verdict) -> None:
    rows = {s: n for s, n in verdict.statuses.items() if n}
    print(f"#   {verdict.verb}: {rows or verdict.error or 'done'}")
    for kind, detail in (*verdict.failures, *verdict.notes):
        print(f"#   {kind.upper()}: {detail}")


# ------------------------------------------------------------------ totals


@dataclass
class Report:
    """Counts over many calls."""

    calls: int = 0
    cases: int = 0
    seconds: float = 0.0
    verbs: Counter = field(default_factory=Counter)
    rows: Counter = field(default_factory=Counter)
    errors: Counter = field(default_factory=Counter)
    failures: Counter = field(default_factory=Counter)
    notes: Counter = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    slow: list[tuple[float, int]] = field(default_factory=list)

    def add(self, number: int, verdicts: list[Verdict], seconds: float = 0.0) -> None:
        self.cases += 1
        self.slow = sorted([*self.slow, (round(seconds, 2), number)], reverse=True)[:8]
        for verdict in verdicts:
            self.calls += 1
            self.verbs[verdict.verb] += 1
            self.rows.update({s: n for s, n in verdict.statuses.items() if n})
            if verdict.error:
                self.errors[verdict.error[:60]] += 1
            for kind, detail in verdict.failures:
                self._one(self.failures, kind, number, verdict, detail)
            for kind, detail in verdict.notes:
                self._one(self.notes, kind, number, verdict, detail)

    def _one(self, counter: Counter, kind: str, number: int, verdict: Verdict, detail: str) -> None:
        counter[kind] += 1
        if len(self.examples[kind]) < EXAMPLES:
            self.examples[kind].append(f"case {number}, call {verdict.call}: {verdict.verb} {verdict.law}: {detail}")

    def __str__(self) -> str:
        lines = [
            f"{self.calls} calls in {self.cases} cases, {self.seconds:.0f} s ({self.calls / (self.seconds + 1e-9):.0f} per s)",
            "verbs      " + ", ".join(f"{v} {n}" for v, n in self.verbs.most_common()),
            f"rows       {sum(self.rows.values())}: " + ", ".join(f"{s} {n}" for s, n in self.rows.most_common()),
            f"clear errors {sum(self.errors.values())}:",
            *(f"  {n:6d}  {message}" for message, n in self.errors.most_common(12)),
            "slowest cases " + ", ".join(f"{number} ({s:.1f} s)" for s, number in self.slow),
        ]
        for title, counter in (("failures", self.failures), ("counted apart", self.notes)):
            lines.append(f"{title} {sum(counter.values())}:")
            for kind, n in counter.most_common():
                lines.append(f"  {n:6d}  {kind}")
                lines += [f"            {text}" for text in self.examples[kind][:5]]
        return "\n".join(lines)


# ------------------------------------------------------------------ workers


def work(seed: int, start: int, step: int, count: int, limit: float) -> Iterator[str]:
    """The cases start, start + step, ... as lines of JSON: one before each case, one after."""
    for number in range(start, start + step * count, step):
        yield json.dumps({"begin": number})
        began = time.perf_counter()
        verdicts = run_case(seed, number, limit)
        yield json.dumps({"end": number, "seconds": time.perf_counter() - began, "verdicts": [asdict(v) for v in verdicts]})


@dataclass
class Worker:
    """A process that runs every `step`-th case from `start` on; restarted after the case that silenced it."""

    seed: int
    start: int
    step: int
    limit: float
    command: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.begin(self.start)

    def begin(self, start: int) -> None:
        self.current, self.heard = start, time.monotonic()
        package = __package__ or "tests.fuzz"
        command = self.command or (sys.executable, "-u", "-m", package, "--work")
        arguments = [f"--seed={self.seed}", f"--start={start}", f"--step={self.step}", f"--limit={self.limit}"]
        root = Path(__file__).resolve().parents[package.count(".") + 1]
        paths = os.pathsep.join([str(root), *(p for p in sys.path if p)])
        threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
        environment = {**os.environ, **threads, "PYTHONPATH": paths}
        self.process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True, env=environment)
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, args=(self.process, self.lines), daemon=True).start()

    @staticmethod
    def _listen(process: subprocess.Popen, lines: queue.Queue) -> None:
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def hear(self) -> tuple[int, list[Verdict], float] | None:
        """The next finished case, if there is one; a case that is silent for too long or ends the process is a failure."""
        try:
            line = self.lines.get(timeout=0.05)
        except queue.Empty:
            line = ""
        if line is None or (line == "" and time.monotonic() - self.heard > WATCHDOG):
            why = "ended the process" if line is None else f"silent for {WATCHDOG:g} s"
            number = self.current
            self.stop()
            self.begin(number + self.step)
            return number, [Verdict("?", "?", failures=[("hang", why)])], WATCHDOG
        if not line:
            return None
        self.heard = time.monotonic()
        said = json.loads(line)
        if "begin" in said:
            self.current = said["begin"]
            return None
        return said["end"], [Verdict(**v) for v in said["verdicts"]], said["seconds"]


def run(n: int, seed: int, jobs: int = 1, limit: float = 10.0, seconds: float = np.inf, progress: bool = False) -> Report:
    """About n calls, or what can be done in so many seconds, by `jobs` processes."""
    report, began, shown = Report(), time.monotonic(), time.monotonic()
    workers = [Worker(seed, j, jobs, limit) for j in range(jobs)]
    try:
        while report.calls < n and report.seconds < seconds:
            for worker in workers:
                if (done := worker.hear()) is None:
                    continue
                report.add(*done)
                for verdict in done[1] if progress else ():
                    for kind, detail in verdict.failures:  # at once: a long run may be ended early
                        print(f"{kind}: case {done[0]}, call {verdict.call}: {verdict.law}: {detail}", file=sys.stderr)
            report.seconds = time.monotonic() - began
            if progress and time.monotonic() - shown > 30:
                shown = time.monotonic()
                print(
                    f"... {report.calls} calls, {sum(report.failures.values())} failures, {report.seconds:.0f} s",
                    file=sys.stderr,
                )
    finally:
        for worker in workers:
            worker.stop()
    return report


def run_here(cases: Iterable[int], seed: int, n_calls: int = CALLS, share: float = SHARE) -> Report:
    """These cases in this process."""
    report, began = Report(), time.monotonic()
    for number in cases:
        before = time.perf_counter()
        report.add(number, run_case(seed, number, n_calls=n_calls, share=share), time.perf_counter() - before)
    report.seconds = time.monotonic() - began
    return report
