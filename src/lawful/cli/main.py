"""The commands, and what is said of them all.

Exit codes: 0 all went well; 2 something is wrong with what was given, and a sentence says what; 3 with --strict, some rows
could not be certified, or the doctor raised an alarm; 130 stopped from the keyboard, 143 from outside. What is half done leaves
no file behind.
"""

from __future__ import annotations

from typing import Annotated

import typer

import lawful
from lawful.cli.comparing import compare
from lawful.cli.examining import discover, doctor
from lawful.cli.learning import fit, info
from lawful.cli.playing import studio
from lawful.cli.predicting import predict, project
from lawful.cli.ranking import rank
from lawful.cli.reproducing import reproduce

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
for command in (fit, predict, project, rank, compare, doctor, discover, info, reproduce, studio):
    app.command()(command)


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lawful {lawful.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Learn several outputs that must obey a law."""
