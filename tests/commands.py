"""Commands and the studio as tests start them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from typer.testing import CliRunner

from lawful import ConstrainedRegressor, Equations, KernelRidge, kernels
from lawful.cli import app
from lawful.studio import Studio


def call(*words, code=0):
    """`lawful ...` in this process; it ends with `code` and never with a traceback."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    return done


def save_model(folder: Path, law: str, table: pd.DataFrame, outputs: list[str]) -> Path:
    """A model of a table's column t that took no tuning: tests that use it are about the commands."""
    ridge = KernelRidge(kernels.Gaussian(1.5), lam=1e-4)
    path = folder / "circle.lawful"
    ConstrainedRegressor(Equations(law), surrogate=ridge).fit(table[["t"]], table[outputs]).save(path)
    return path


@contextmanager
def serving(**options) -> Iterator[Studio]:
    """A studio that answers from a thread of this process."""
    with Studio(**options) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield found
        found.shutdown()
        thread.join()
