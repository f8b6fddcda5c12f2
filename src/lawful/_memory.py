"""How much memory there is, and a clear error before anything asks for more.

A matrix that does not fit ends a process without a word, or drags the machine through its swap. So whoever is about to
allocate something large says how large first.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_memory", "in_words", "require_memory"]

SHARE = 0.9  # of what is free may be asked for


def available_memory() -> float:
    """Bytes that this process may still take: what is free on the machine, or what is left of its group's limit."""
    return min(_free(), _left_in_group())


def require_memory(who: str, needed: float, what: str, remedy: str) -> None:
    """A `MemoryError` with the estimate and the remedy, where `needed` bytes are more than there are."""
    there = available_memory()
    if needed > SHARE * there:
        raise MemoryError(f"{who}: {what} needs about {in_words(needed)} and {in_words(there)} are free; {remedy}")


def in_words(size: float) -> str:
    """Bytes as a reader would say them.

    >>> in_words(3.2e10)
    '32 GB'
    """
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size / 1e3:.3g} kB"


def _free() -> float:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return float(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # a system that does not say: nothing is refused
        return float("inf")


def _left_in_group() -> float:
    """What a container may still take (control groups, version 2); infinite where there is no limit."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text(encoding="ascii").strip()
        if limit == "max":
            return float("inf")
        used = float((folder / "memory.current").read_text(encoding="ascii"))
        cached = 0.0
        for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines():
            if line.startswith("inactive_file "):
                cached = float(line.split()[1])
        return max(float(limit) - used + cached, 0.0)
    except (OSError, ValueError):
        return float("inf")
