"""`python -m lawful` is the command `lawful`."""

from lawful.cli import app

if __name__ == "__main__":
    app(prog_name="lawful")
