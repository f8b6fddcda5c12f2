"""`python -m lawful` is the command `lawful`."""

from lawful.cli import app

app(prog_name="lawful")
