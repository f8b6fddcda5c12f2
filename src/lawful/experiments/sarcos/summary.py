"""Rows of the Sarcos experiment, turned into arrays over splits and paired differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful.experiments._base import Row
from lawful.experiments._paired import Paired, spread
from lawful.experiments.sarcos.systems import SYSTEMS

LINEAR = [system.name for system in SYSTEMS if system.linear]


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
        return Paired(self.ev(a) - self.ev(b))

    def spread(self, name: str) -> str:
        """mean ± standard deviation over splits, as the paper prints them."""
        return spread(self.ev(name))


def variants(rows: list[Row]) -> dict[str, Variant]:
    """inputs -> its splits, in the order of the rows."""
    names = list(dict.fromkeys(row["inputs"] for row in rows))
    return {name: Variant([row for row in rows if row["inputs"] == name]) for name in names}
