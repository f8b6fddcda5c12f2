"""The command line: `lawful fit`, `predict`, `project`, `rank`, `compare`, `doctor`, `discover`, `info` and `reproduce`."""

from lawful.cli.main import app

__all__ = ["app"]
