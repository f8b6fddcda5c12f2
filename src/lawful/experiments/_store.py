"""Rows on disk: one JSON line for each finished configuration, appended as it finishes, never lost and never repeated.

A run's folder holds

    run.json      what was asked, and for every session (a start of the program) its command, versions and machine
    rows.jsonl    the rows; nothing in them depends on time, machine load or the number of workers
    times.jsonl   seconds and peak memory of each configuration, kept apart for that reason

The program may be killed at any moment. A line counts once its newline is on disk: whatever follows the last newline is the
torn line of a killed write and is cut off at the next start. When all configurations are done the rows are put into the order
of the plan by one atomic replacement, so that an interrupted and resumed run leaves the same bytes as an uninterrupted one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Self

try:
    import fcntl
except ImportError:  # Windows: two writers at once are then not noticed
    fcntl = None  # type: ignore[assignment]


class StoreError(RuntimeError):
    """The folder does not hold what was expected; the message says what to do."""


def dumps(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, shortest floats, NaN refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def replace(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.new")  # one name: a kill leaves at most one behind, and the next time takes it
    with open(temporary, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def read_lines(path: Path) -> list[Any]:
    """The complete lines of a JSON-lines file; a torn last line is left out."""
    if not path.exists():
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    lines = whole.decode("utf-8").split("\n") if whole else []
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise StoreError(
                f"{path}, line {number} is not JSON ({error.msg}). A killed run only tears the last line, so something else "
                "changed the file; restore it or start again in another --out folder"
            ) from error
    return found


def key(configuration: dict[str, Any]) -> str:
    return dumps({name: value for name, value in configuration.items() if name != "results"})


class Store:
    """The files of one run. Use as a context manager: it holds a lock, which the system drops when the process dies."""

    def __init__(self, folder: Path, asked: dict[str, Any], configurations: list[dict[str, Any]], *, resume: bool) -> None:
        self.folder, self.asked, self.plan = Path(folder), asked, configurations
        self.resume = resume
        self.rows: dict[str, dict[str, Any]] = {}
        self.sessions: list[dict[str, Any]] = []
        self._rows: IO[str] | None = None
        self._times: IO[str] | None = None

    @property
    def path(self) -> Path:
        return self.folder / "rows.jsonl"

    def check(self) -> dict[str, Any] | None:
        """What run.json says, if there is one and it may be gone on with; nothing is written."""
        path = self.folder / "run.json"
        if not path.exists():
            return None
        if not self.resume:
            raise StoreError(f"{self.folder} already holds a run; add --resume to go on with it, or name another --out folder")
        run = json.loads(path.read_text(encoding="utf-8"))
        before = run["asked"]
        changed = [name for name in sorted({*before, *self.asked}) if before.get(name) != self.asked.get(name)]
        if changed == ["trials"] and before["trials"] < self.asked["trials"]:
            return run  # more of the same: the rows that are there belong to it
        if changed:
            told = "; ".join(f"{name} was {before.get(name)!r} and is {self.asked.get(name)!r}" for name in changed)
            raise StoreError(f"{self.folder} holds a run of something else ({told}); ask for the same, or name another --out")
        return run

    def __enter__(self) -> Self:
        self.check()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = open(self.folder / ".lock", "w")
        try:
            if fcntl is not None:
                try:
                    fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    raise StoreError(f"{self.folder} is in use by another run; wait for it, or name another --out") from error
            run = self.check()
            if run is not None:
                self._continue(run)
            self._open()
        except BaseException:
            self._lock.close()
            raise
        return self

    def _continue(self, run: dict[str, Any]) -> None:
        self.sessions = run["sessions"]
        planned = {key(c) for c in self.plan}
        for row in read_lines(self.path):
            k = key(row)
            if k not in planned or k in self.rows:
                raise StoreError(f"{self.path} holds a row that is {'repeated' if k in self.rows else 'not planned'}: {k}")
            self.rows[k] = row
        # Cut off the torn line before anything is appended behind it.
        replace(self.path, "".join(dumps(row) + "\n" for row in self.rows.values()))
        times = self.folder / "times.jsonl"
        replace(times, "".join(dumps(line) + "\n" for line in read_lines(times)))

    def _open(self) -> None:
        self._rows = open(self.path, "a", encoding="utf-8", newline="\n")  # noqa: SIM115
        self._times = open(self.folder / "times.jsonl", "a", encoding="utf-8", newline="\n")  # noqa: SIM115

    def __exit__(self, *exception: object) -> None:
        for file in (self._rows, self._times, self._lock):
            if file is not None:
                file.close()

    def begin(self, session: dict[str, Any]) -> None:
        """Note a start of the program."""
        self.sessions.append(session)
        replace(self.folder / "run.json", json.dumps({"asked": self.asked, "sessions": self.sessions}, indent=2) + "\n")

    def todo(self) -> list[dict[str, Any]]:
        return [c for c in self.plan if key(c) not in self.rows]

    def add(self, configuration: dict[str, Any], results: dict[str, Any], times: dict[str, Any]) -> None:
        """Append a finished row; it is on disk when this returns."""
        row = {**configuration, "results": results}
        text = dumps(row)
        self.rows[key(configuration)] = json.loads(text)
        for file, line in ((self._rows, text), (self._times, dumps({"session": len(self.sessions) - 1, **times}))):
            assert file is not None, "the store is not open"
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def finish(self) -> list[dict[str, Any]]:
        """All rows in the order of the plan, and the file likewise."""
        rows = [self.rows[key(c)] for c in self.plan]
        if self._rows is not None:
            self._rows.close()  # some systems do not replace an open file
            self._rows = None
        replace(self.path, "".join(dumps(row) + "\n" for row in rows))
        return rows

    def times(self) -> list[dict[str, Any]]:
        return read_lines(self.folder / "times.jsonl")


def flat(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows for a spreadsheet: nested results become columns `a.b`; lists are left out.

    >>> flat([{"n": 10, "results": {"STL": {"mse": 0.5, "path": [1, 2]}, "note": None}}])
    [{'n': 10, 'STL.mse': 0.5, 'note': None}]
    """

    def walk(value: dict[str, Any], prefix: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, part in value.items():
            if isinstance(part, dict):
                found.update(walk(part, f"{prefix}{name}."))
            elif not isinstance(part, list):
                found[prefix + name] = part
        return found

    return [{**{k: v for k, v in row.items() if k != "results"}, **walk(row["results"], "")} for row in rows]
