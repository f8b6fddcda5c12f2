"""What several commands share: their options, laws in words, and settings in a TOML file.

    # lawful.toml                                   lawful fit data.csv --config lawful.toml
    outputs = "y*"
    law = ["y1 + y2 = x1", "y1 >= 0"]

    [predict]                                       a table of a command's name is for that command alone
    strict = true

Names are those of the options. What the command line says counts more than the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from lawful.cli.laws import NAMED
from lawful.cli.words import WRONG, Trouble, listed, refuse

__all__ = ["Config", "Force", "Given", "Inputs", "Json", "Law", "Outputs", "Quiet", "Unknown"]

SEVERAL = ("law", "unknown")  # options that may be repeated: one word in a file is a list of one
OTHERWISE = {"json": "as_json"}  # options whose parameter has another name


def from_file(context: typer.Context, path: Path | None) -> Path | None:
    """The settings of a file as the defaults of the command that is being read."""
    if path is None:
        return None
    group = context.parent.command if context.parent is not None else context.command
    commands = {name: {p.name or "" for p in one.params} for name, one in getattr(group, "commands", {}).items()}
    name = context.info_name or ""
    try:
        context.default_map = settings(path, name, {p.name or "" for p in context.command.params}, commands)
    except Trouble as error:
        refuse(name, str(error), context.meta.get("as_json", False))
        raise typer.Exit(WRONG) from error
    return path


def settings(path: Path, command: str, known: set[str], commands: Mapping[str, set[str]] | None = None) -> dict[str, Any]:
    """What a TOML file says to a command.

    A name that the command does not know is an error in the command's own table; above it if none of `commands` knows it.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Trouble(f"the settings {path} cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Trouble(f"the settings {path} are no TOML: {error}") from error
    tables = {name: value for name, value in found.items() if isinstance(value, dict)}
    own, shared = ({_parameter(key): value for key, value in one.items()} for one in (tables.get(command, {}), found))
    shared = {key: value for key, value in shared.items() if key not in tables}
    if strange := sorted(key for key in own if key not in known):
        raise Trouble(f"the settings {path} name {', '.join(strange)} for {command}, which has no such option")
    if commands:
        options = known.union(*commands.values())
        if strange := [key for key in shared if key not in options]:
            raise Trouble(
                f"the settings {path} name {strange[0]}, which is an option of no command{_near(strange[0], options)}"
            )
        if strange := [name for name in tables if name not in commands]:
            raise Trouble(f"the settings {path} have a table [{strange[0]}], which is no command{_near(strange[0], commands)}")
    chosen = {key: value for key, value in (shared | own).items() if key in known and key != "config"}
    return {key: _value(key, value, path) for key, value in chosen.items()}


def _parameter(key: str) -> str:
    return OTHERWISE.get(key, key.replace("-", "_"))


def _near(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _value(key: str, value: Any, path: Path) -> Any:
    """As the command line would give it: lists of names are names with commas between them."""
    inner = value if isinstance(value, list) else [value]
    if any(isinstance(one, list | dict) or (key in SEVERAL and not isinstance(one, str)) for one in inner):
        raise Trouble(f"the settings {path} say {key} = {value}; text, or a list of texts, would do")
    if key in SEVERAL:
        return inner
    return listed(map(str, inner)) if isinstance(value, list) else value


Law = Annotated[
    list[str] | None,
    typer.Option(
        "--law",
        help=f'An equation or inequality such as "y1**2 + y2**2 = 1", by the names of the columns (odd names between '
        f"backticks: '`flow in` >= 0'); repeat it for several. Or "
        f'a set, as Simplex or "Sphere(radius=2)": one of {", ".join(NAMED)}.',
    ),
]
Unknown = Annotated[
    list[str] | None,
    typer.Option(
        "--unknown",
        help='Names in --law that stand for numbers which nobody knows, to be estimated: "a, b=0:10" (with bounds).',
        show_default=False,
    ),
]
Outputs = Annotated[
    str, typer.Option("--outputs", help='Columns to predict: names or patterns, separated by commas: "y*,temp".')
]
Inputs = Annotated[
    str | None, typer.Option("--inputs", help="Columns to predict from, likewise (default: all others).", show_default=False)
]
Given = Annotated[
    str | None, typer.Option("--inputs", help="Columns that are given, names or patterns (default: none).", show_default=False)
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config", callback=from_file, is_eager=True, help="A TOML file with any of these options.", show_default=False
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Json = Annotated[bool, typer.Option("--json", help="The result as one JSON object on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
