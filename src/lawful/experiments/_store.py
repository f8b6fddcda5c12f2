"""Rows on disk: one JSON line for each finished configuration, appended as it finishes, never lost and never repeated.

A run's folder holds

    run.json      what was asked, and for every session (a start of the program) its command, versions and machine
    rows.jsonl    the rows; nothing in them depends on time, machine load or the number of workers
    times.jsonl   seconds and peak memory of each configuration, kept apart for that reason

The program may be killed at any moment. A line counts once its newline is on disk: whatever follows the last newline is the
torn line of a killed write and is cut off at the next start. When all configurations are done the rows are put into the order
of the plan by one atomic replacement, so that an interrupted and resumed run leaves the same bytes as an uninterrupted one.

What a kill cannot do, a disk or an editor can. A file is read whole before anything is written: if a line is damaged, the error
names it and says what to do, and no file has changed. Rows whose run.json was lost are taken over if they are planned.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

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


class Damage(ValueError):
    """What is wrong with a line or a file, to follow its name: "is empty"."""


def parse(text: bytes) -> Any:
    """JSON that `dumps` can write again, or `Damage`."""
    if not text.strip():
        raise Damage("is empty")
    try:
        value = json.loads(text.decode("utf-8"))
        dumps(value).encode("utf-8")  # JSON may hold NaN and halves of characters, rows may not
    except UnicodeError:
        raise Damage("is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise Damage(f"is not JSON ({error.msg})") from None
    except (ValueError, RecursionError) as error:
        raise Damage(f"is no JSON of ours ({error})") from None
    return value


def need(value: Any, what: str, /, **fields: type | tuple[type, ...]) -> None:
    """`Damage` unless `value` is an object whose fields are of these types."""
    if not isinstance(value, dict):
        raise Damage(f"is {dumps(value)[:40]}, not {what}")
    for name, kind in fields.items():
        if name not in value:
            raise Damage(f"lacks {name!r}")
        if not isinstance(value[name], kind):
            raise Damage(f"has {dumps(value[name])[:40]} as {name!r}")


def read_lines(path: Path, check: Callable[[Any], None] = lambda value: None, remedy: str = "") -> list[Any]:
    """The complete lines of a JSON-lines file; a torn last line is left out. All damaged lines are named in one error."""
    if not path.exists():
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    found, damaged = [], []
    for number, line in enumerate(whole.split(b"\n") if whole else [], 1):
        try:
            value = parse(line)
            check(value)
            found.append(value)
        except Damage as damage:
            damaged.append(f"line {number} {damage}")
    if damaged:
        told = "; ".join(damaged[:5]) + (f"; and {len(damaged) - 5} more" if len(damaged) > 5 else "")
        raise StoreError(
            f"{path}: {told}. A killed run only tears the last line, so something else changed the file; nothing was written. "
            f"Restore it from a copy, or delete the damaged lines and use --resume again: the other {len(found)} are good"
            + remedy
        )
    return found


NUMBER = (int, float)
SESSION = {"command": str, "versions": dict, "machine": str, "n_jobs": int}


def no_fields(configuration: dict[str, Any]) -> Iterable[str]:
    return ()


def check_times(line: Any) -> None:
    need(line, "the times of a row", session=int, seconds=NUMBER, parts=dict, peak_mb=NUMBER, at=NUMBER)
    need(line["parts"], "seconds by label", **dict.fromkeys(line["parts"], NUMBER))


class Found(NamedTuple):
    """A run that may be gone on with."""

    sessions: list[dict[str, Any]]
    rows: dict[str, dict[str, Any]]
    times: list[dict[str, Any]]


class Measured(dict[str, Any]):
    """Results of a row that know where they are kept: what they lack is told with the file and the line."""

    def __init__(self, values: dict[str, Any], place: str, inside: str = "results") -> None:
        super().__init__({name: measured(value, place, f"{inside}.{name}") for name, value in values.items()})
        self.place, self.inside = place, inside

    def __missing__(self, name: str) -> Any:
        raise StoreError(
            f"{self.place}: {self.inside} lacks {name!r}. Runs write it, so something else changed the file. Restore it from "
            "a copy, or delete that line and use --resume again: its row is computed again, and the others are kept"
        )


def measured(value: Any, place: str, inside: str) -> Any:
    """The same with `Measured` for every object in it."""
    if isinstance(value, dict):
        return Measured(value, place, inside)
    if isinstance(value, list):
        return [measured(part, place, f"{inside}[{k}]") for k, part in enumerate(value)]
    return value


def key(configuration: dict[str, Any]) -> str:
    return dumps({name: value for name, value in configuration.items() if name != "results"})


class Store:
    """The files of one run. Use as a context manager: it holds a lock, which the system drops when the process dies."""

    def __init__(
        self,
        folder: Path,
        asked: dict[str, Any],
        configurations: list[dict[str, Any]],
        *,
        resume: bool,
        fields: Callable[[dict[str, Any]], Iterable[str]] = no_fields,
    ) -> None:
        self.folder, self.asked, self.plan = Path(folder), asked, configurations
        self.resume, self.fields = resume, fields
        self.rows: dict[str, dict[str, Any]] = {}
        self.sessions: list[dict[str, Any]] = []
        self._rows: IO[str] | None = None
        self._times: IO[str] | None = None

    @property
    def path(self) -> Path:
        return self.folder / "rows.jsonl"

    def check(self) -> Found | None:
        """What is there, if it may be gone on with; all of it is read and nothing is written."""
        path = self.folder / "run.json"
        if not path.exists() and not self.path.exists():
            return None
        if not self.resume:
            raise StoreError(f"{self.folder} already holds a run; add --resume to go on with it, or name another --out folder")
        run: dict[str, Any] = self._read_run(path) if path.exists() else {"asked": self.asked, "sessions": []}
        before, now = run["asked"], self.asked
        changed = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
        # More trials are more of the same: the rows that are there belong to it.
        if changed and not (
            changed == ["trials"] and isinstance(before.get("trials"), int) and before["trials"] < now["trials"]
        ):
            told = "; ".join(f"{name} was {before.get(name)!r} and is {now.get(name)!r}" for name in changed)
            raise StoreError(f"{self.folder} holds a run of something else ({told}); ask for the same, or name another --out")
        return Found(run["sessions"], self._read_rows(), self.times())

    def _read_run(self, path: Path) -> dict[str, Any]:
        try:
            run = parse(path.read_bytes())
            need(run, "a run", asked=dict, sessions=list)
            for session in run["sessions"]:
                need(session, "a session", **SESSION)
        except Damage as damage:
            raise StoreError(
                f"{path} {damage}; nothing was written. Restore it from a copy, or delete it and give the command of that run "
                f"again with --resume: its rows are in {self.path.name} and are kept"
            ) from None
        return run

    def _read_rows(self) -> dict[str, dict[str, Any]]:
        planned, rows = {key(c) for c in self.plan}, {}

        def check(row: Any) -> None:
            need(row, "a row", results=dict)
            k = key(row)
            if k not in planned or k in rows:
                raise Damage(f"holds a row that is {'repeated' if k in rows else 'not planned'}: {k}")
            need(row["results"], "results", **dict.fromkeys(self.fields(row), object))
            rows[k] = row

        read_lines(self.path, check, " and are kept, and what is missing is computed again")
        return rows

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
            found = self.check()
            if found is not None:
                self._continue(found)
            self._open()
        except BaseException:
            self._lock.close()
            raise
        return self

    def _continue(self, found: Found) -> None:
        self.sessions, self.rows = found.sessions, found.rows
        # Cut off the torn line before anything is appended behind it.
        for path, lines in ((self.path, found.rows.values()), (self.folder / "times.jsonl", found.times)):
            replace(path, "".join(dumps(line) + "\n" for line in lines))

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
        places = [f"{self.path}: line {number}" for number in range(1, len(rows) + 1)]
        return [{**row, "results": Measured(row["results"], place)} for row, place in zip(rows, places)]

    def times(self) -> list[dict[str, Any]]:
        path, remedy = self.folder / "times.jsonl", "; nothing but the times of the deleted ones is lost"
        return read_lines(path, check_times, remedy)


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
