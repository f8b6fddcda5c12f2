"""Losses by system and trial, collected from rows, and the paired comparisons that decide claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lawful.experiments._base import Row

Losses = dict[str, dict[int, dict[str, float]]]  # system -> seed -> denominator -> loss
PLAIN, OURS = "NL-MTL, insertion", "NL-MTL+, insertion"
ENOUGH = 2.0  # standard errors that a mean difference must have to count


def collect(rows: list[Row], protocol: str, few: bool = False) -> Losses:
    """Losses under one protocol, on all films or on the few that MTRL can take."""
    found: Losses = {}
    for row in rows:
        if row["protocol"] == protocol and (row["part"] == "mtrl") == few:
            for name, values in row["results"]["losses"].items():
                found.setdefault(name, {})[row["seed"]] = values
    return found


def values(found: Losses, name: str, denominator: str = "N1") -> np.ndarray:
    """One denominator's losses, trial by trial."""
    return np.array([found[name][seed][denominator] for seed in sorted(found.get(name, {}))])


@dataclass(frozen=True)
class Paired:
    """Loss of a rival less that of another, on the same splits: above 0 the rival is worse."""

    differences: np.ndarray

    @property
    def mean(self) -> float:
        return float(self.differences.mean())

    @property
    def error(self) -> float | None:
        n = len(self.differences)
        return float(self.differences.std(ddof=1) / np.sqrt(n)) if n > 1 else None

    @property
    def won(self) -> int:
        return int((self.differences > 0).sum())

    @property
    def verdict(self) -> bool | None:
        """True: the rival is worse; False: it is better; None: not more than ENOUGH standard errors either way."""
        if self.error is None or abs(self.mean) <= ENOUGH * self.error:
            return None
        return self.mean > 0

    def __str__(self) -> str:
        spread = "n/a" if self.error is None else f"{self.error:.4f}"
        return f"{self.mean:+.4f} ± {spread}"


def paired(found: Losses, rival: str, mine: str) -> Paired | None:
    """N1 of `rival` less `mine` over the trials that have both; None where there is none."""
    seeds = sorted(set(found.get(rival, {})) & set(found.get(mine, {})))
    if not seeds:
        return None
    return Paired(np.array([found[rival][s]["N1"] - found[mine][s]["N1"] for s in seeds]))


def mean_of(found: Losses, name: str, denominator: str = "N1") -> float:
    return float(values(found, name, denominator).mean())


def with_deviation(v: np.ndarray, digits: int = 4) -> str:
    """mean ± standard deviation over trials."""
    spread = f"{v.std(ddof=1):.{digits}f}" if len(v) > 1 else "n/a"
    return f"{v.mean():.{digits}f} ± {spread}"


def chosen(rows: list[Row], name: str, protocol: str, few: bool = False) -> list[Any]:
    """What validation chose, trial by trial."""
    return [
        row["results"]["chosen"][name]
        for row in rows
        if row["protocol"] == protocol and (row["part"] == "mtrl") == few and name in row["results"]["chosen"]
    ]
