"""Rows of the Sarcos experiment, turned into arrays over splits and paired differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lawful.experiments._base import Row
from lawful.experiments.sarcos.systems import SYSTEMS

LINEAR = [system.name for system in SYSTEMS if system.linear]


@dataclass(frozen=True)
class Paired:
    """a - b over the same splits: mean, standard error (None for a single split), splits won."""

    mean: float
    error: float | None
    won: int
    n: int

    def __str__(self) -> str:
        error = "n/a" if self.error is None else f"{self.error:.1f}"
        return f"{self.mean:+.1f} ± {error}"

    @property
    def verdict(self) -> bool | None:
        """True: above zero by two standard errors; False: not above zero; None: above, but it may be chance."""
        if self.n < 2 or self.error is None:
            return None
        if self.mean <= 0:
            return False
        return True if self.mean > 2 * self.error else None


def paired(a: np.ndarray, b: np.ndarray) -> Paired:
    d = np.asarray(a) - np.asarray(b)
    error = float(d.std(ddof=1) / np.sqrt(len(d))) if len(d) > 1 else None
    return Paired(float(d.mean()), error, int((d > 0).sum()), len(d))


class Variant:
    """All splits under one treatment of the inputs, in the order of their seeds."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = sorted(rows, key=lambda row: row["seed"])
        self.systems = [row["results"]["systems"] for row in self.rows]
        self.seeds = [row["seed"] for row in self.rows]
        self.n_test = self.rows[0]["results"]["n_test"]

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, name: str) -> bool:
        return name in self.systems[0]

    def ev(self, name: str) -> np.ndarray:
        """Explained variance in per cent, mean over torques."""
        return np.array([found[name]["ev"] for found in self.systems])

    def pooled(self, name: str) -> np.ndarray:
        return np.array([found[name]["pool"] for found in self.systems])

    def each(self, name: str) -> np.ndarray:
        """(splits, T)."""
        return np.array([found[name]["each"] for found in self.systems])

    def chosen(self, name: str, key: str) -> list[Any]:
        """What was chosen; None where the system did without."""
        return [found[name]["par"].get(key) for found in self.systems]

    def count(self, name: str, key: str) -> int:
        return int(sum(found[name][key] for found in self.systems))

    def against(self, a: str, b: str) -> Paired:
        return paired(self.ev(a), self.ev(b))

    def spread(self, name: str) -> str:
        """mean ± standard deviation over splits, as the paper prints them."""
        values = self.ev(name)
        return f"{values.mean():.1f} ± " + (f"{values.std(ddof=1):.1f}" if len(values) > 1 else "n/a")


def variants(rows: list[Row]) -> dict[str, Variant]:
    """inputs -> its splits, in the order of the rows."""
    names = list(dict.fromkeys(row["inputs"] for row in rows))
    return {name: Variant([row for row in rows if row["inputs"] == name]) for name in names}


def all_of(verdicts: list[bool | None]) -> bool | None:
    """True if all are, False if one is, else undecided."""
    if any(v is False for v in verdicts):
        return False
    return None if any(v is None for v in verdicts) else True
