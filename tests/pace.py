"""Limits of time: of processor time, as a busy machine is no fault, and longer ones while every line is traced."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

TRACED = 4.0  # how much longer a test takes under `make coverage`


def spare() -> float:
    """What limits are multiplied by."""
    coverage = sys.modules.get("coverage")
    return TRACED if coverage is not None and coverage.Coverage.current() is not None else 1.0


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fails where what is inside takes more processor seconds."""
    begin = time.process_time()
    yield
    spent = time.process_time() - begin
    assert spent < seconds * spare(), f"took {spent:.2f} s, not {seconds:g}"
