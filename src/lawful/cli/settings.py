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
from pathlib import Path
from typing import Annotated, Any

import typer

from lawful.cli.laws import NAMED
from lawful.cli.words import WRONG, Trouble, console

__all__ = ["Config", "Force", "Inputs", "Json", "Law", "Outputs", "Quiet", "Unknown"]

SEVERAL = ("law", "unknown")  # options that may be repeated: one word in a file is a list of one


def from_file(context: typer.Context, path: Path | None) -> Path | None:
    """The settings of a file as the defaults of the command that is being read."""
    if path is None:
        return None
    try:
        context.default_map = settings(path, context.info_name or "", {p.name or "" for p in context.command.params})
    except Trouble as error:
        console().print(f"lawful {context.info_name}: {error}", markup=False, style="red")
        raise typer.Exit(WRONG) from error
    return path


def settings(path: Path, command: str, known: set[str]) -> dict[str, Any]:
    """What a TOML file says to a command. Names that the command does not know are an error."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Trouble(f"the settings {path} cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Trouble(f"the settings {path} are no TOML: {error}") from error
    shared = {key: value for key, value in found.items() if not isinstance(value, dict)}
    chosen = {key.replace("-", "_"): value for key, value in (shared | found.get(command, {})).items()}
    own = {key.replace("-", "_") for key in found.get(command, {})}
    if unknown := sorted(key for key in own if key not in known):
        raise Trouble(f"the settings {path} name {', '.join(unknown)} for {command}, which has no such option")
    chosen |= {key: [chosen[key]] for key in SEVERAL if isinstance(chosen.get(key), str)}
    return {key: value for key, value in chosen.items() if key in known and key != "config"}


Law = Annotated[
    list[str] | None,
    typer.Option(
        "--law",
        help=f'An equation or inequality such as "y1**2 + y2**2 = 1", by the names of the columns; repeat it for several. Or '
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
Config = Annotated[
    Path | None,
    typer.Option(
        "--config", callback=from_file, is_eager=True, help="A TOML file with any of these options.", show_default=False
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Json = Annotated[bool, typer.Option("--json", help="The result as one JSON object on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
