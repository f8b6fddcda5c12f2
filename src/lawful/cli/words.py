"""What the command line says: sentences for people, JSON for programs, and an exit code.

Results go to standard output, everything else (progress, warnings, errors) to standard error, so that both can be piped.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

__all__ = [
    "Trouble",
    "console",
    "listed",
    "note",
    "patterns_of",
    "progress",
    "refuse",
    "several",
    "show",
    "speaking",
    "tell",
    "tell_json",
]

LISTED = re.compile(r"\s*(?:`([^`]*)`\s*|([^,]*))(?:,|$)")
PYTHON = "; see decode(X).status"  # a table has a column for it
WRONG, DOUBTFUL, STOPPED, ENDED = 2, 3, 130, 143


class Trouble(Exception):
    """Something the user can put right; the message says how."""


def console() -> Console:
    """Standard error, looked up when it is used: tests and pipes exchange it."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


@contextmanager
def speaking(command: str, as_json: bool = False, stopped: str = "stopped; no file is left half written") -> Iterator[None]:
    """Errors as sentences with exit code 2, warnings as one line each; a signal to end cleans up like an interrupt.

    With --json the sentence also goes to standard output, as {"error": ...}: a program finds one object there, come what may.

    The exception of a signal can strike anywhere, also in compiled code, which may turn it into one of its own: once a signal
    has come, whatever ends the command ends it with the code of that signal.
    """
    came: list[int] = []

    def end(number: int, frame: Any) -> None:
        came.append(number)
        raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGTERM, signal.SIGINT) if main else ()
    before = {number: signal.signal(number, end) for number in signals}
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *rest, **more: note(f"{command}: {str(message).removesuffix(PYTHON)}")
            yield
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit from None
    except BaseException as error:
        if came or isinstance(error, KeyboardInterrupt):
            console().print(stopped)
            tell_json({"error": stopped}) if as_json else None
            raise typer.Exit(ENDED if signal.SIGTERM in came else STOPPED) from None
        if not isinstance(error, Trouble | OSError | ValueError | TypeError | ImportError | MemoryError):
            raise
        refuse(command, _sentence(error), as_json)
        raise typer.Exit(WRONG) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def refuse(command: str, text: str, as_json: bool) -> None:
    """What is wrong, for people and, if asked, for programs."""
    console().print(f"[bold red]lawful {command}:[/] ", end="")
    console().print(text, markup=False)
    with suppress(OSError):  # standard output may be what is full
        tell_json({"error": text}) if as_json else None


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return (
            f"{error.filename}: {error.strerror}" if error.filename else f"what was to be written cannot be: {error.strerror}"
        )
    return str(error) or type(error).__name__


def listed(names: Iterable[str], odd: str = ",") -> str:
    """Names with commas between them; those with an odd character stand between backticks, as in a law."""
    return ",".join(f"`{name}`" if any(c in name for c in odd) else name for name in names)


def patterns_of(text: str) -> list[tuple[str, bool]]:
    """What `listed` joined: each name or pattern, and whether it stood between backticks, and so is no pattern."""
    found = [(match[1] or match[2].strip(), match[1] is not None) for match in LISTED.finditer(text)]
    return [one for one in found if one[0]]


def several(n: int, what: str) -> str:
    """1 row, 2 rows."""
    return f"{n} {what}{'s' * (n != 1)}"


def note(text: str) -> None:
    """A remark that is no result."""
    console().print(text, markup=False, style="dim")


def tell(text: str, quiet: bool = False) -> None:
    """A line for people."""
    if not quiet:
        Console(highlight=False, soft_wrap=True).print(text, markup=False)


def tell_json(value: Any) -> None:
    """The whole answer for programs: one JSON object; what is no finite number is null, what JSON has no word for is text."""
    typer.echo(json.dumps(_plain(value), ensure_ascii=False, default=str))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "item"):
        value = value.item() if getattr(value, "ndim", 0) == 0 else value.tolist()
        return _plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return None if value is not None and value != value else value  # no date either


def show(title: str, columns: list[str], rows: list[list[str]], quiet: bool = False) -> None:
    """A table for people: the first column names the row, numbers stand to the right."""
    if quiet:
        return
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*map(Text, row))  # names of columns are no markup
    Console(highlight=False).print(table)


def progress(quiet: bool) -> Progress:
    """A bar on standard error, where somebody looks at it."""
    screen = console()
    parts = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*parts, console=screen, transient=True, disable=quiet or not screen.is_terminal)
