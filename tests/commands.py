"""Commands and the studio as tests start them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from typer.testing import CliRunner

from lawful.cli import app
from lawful.studio import Studio


def call(*words, code=0):
    """`lawful ...` in this process; it ends with `code` and never with a traceback."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    return done


@contextmanager
def serving(**options) -> Iterator[Studio]:
    """A studio that answers from a thread of this process."""
    with Studio(**options) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield found
        found.shutdown()
        thread.join()
