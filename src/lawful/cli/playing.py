"""`lawful studio`: a page to play with, on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from lawful import studio as room
from lawful.cli.words import Trouble, speaking, tell

__all__ = ["studio"]


def studio(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
    upload_mb: Annotated[float, typer.Option("--upload-mb", min=0.001, help="The largest file that it takes.")] = 50,
) -> None:
    """A local web page: drop a table, write a law, see it drawn, fit, compare, ask the doctor, download.

    [bold]lawful studio[/]

    One process, no account; it answers to this machine alone, and keeps nothing that was not downloaded. Ctrl-C ends it.
    """
    with speaking("studio"):
        try:
            room.serve(port, browser=browser, upload_mb=upload_mb, say=tell)
        except OSError as error:
            raise Trouble(f"port {port} cannot be used ({error.strerror or error}); --port 0 takes one that is free") from error
