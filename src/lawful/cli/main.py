"""The commands, and what is said of them all.

Exit codes: 0 all went well; 2 something is wrong with what was given, and a sentence says what; 3 with --strict, some rows
could not be certified, or the doctor raised an alarm; 130 stopped from the keyboard, 143 from outside. What is half done leaves
no file behind.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import lawful
from lawful.cli.comparing import compare
from lawful.cli.examining import discover, doctor
from lawful.cli.learning import fit, info
from lawful.cli.playing import studio
from lawful.cli.predicting import predict, project
from lawful.cli.ranking import rank
from lawful.cli.reproducing import reproduce
from lawful.cli.words import tell_json


class Commands(TyperGroup):
    """The commands; with --json what typer itself finds wrong with an option is one object on standard output too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["as_json"] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            if ctx.meta["as_json"] and hasattr(error, "format_message"):
                tell_json({"error": error.format_message()})
            raise


app = typer.Typer(
    cls=Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
)
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
