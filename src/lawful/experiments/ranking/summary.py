"""Losses by system and trial, collected from rows, and the paired comparisons that decide claims."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful.experiments._base import Row
from lawful.experiments._paired import Paired

Losses = dict[str, dict[int, dict[str, float]]]  # system -> seed -> denominator -> loss
PLAIN, OURS = "NL-MTL, insertion", "NL-MTL+, insertion"
DIGITS = 4


def collect(rows: list[Row], protocol: str, few: bool = False) -> Losses:
    """Losses under one protocol, on all films or on the few of the table with MTRL."""
    found: Losses = {}
    for row in rows:
        if row["protocol"] == protocol and (row["part"] == "mtrl") == few:
            for name, values in row["results"]["losses"].items():
                found.setdefault(name, {})[row["seed"]] = values
    return found


def values(found: Losses, name: str, denominator: str = "N1") -> np.ndarray:
    """One denominator's losses, trial by trial."""
    return np.array([found[name][seed][denominator] for seed in sorted(found.get(name, {}))])


def paired(found: Losses, rival: str, mine: str) -> Paired | None:
    """N1 of `rival` less `mine` over the trials that have both; None where there is none."""
    seeds = sorted(set(found.get(rival, {})) & set(found.get(mine, {})))
    if not seeds:
        return None
    return Paired(np.array([found[rival][s]["N1"] - found[mine][s]["N1"] for s in seeds]), DIGITS)


def mean_of(found: Losses, name: str, denominator: str = "N1") -> float:
    return float(values(found, name, denominator).mean())


def chosen(rows: list[Row], name: str, protocol: str) -> list[Any]:
    """What validation chose, trial by trial."""
    return [
        row["results"]["chosen"][name]
        for row in rows
        if row["protocol"] == protocol and row["part"] != "mtrl" and name in row["results"]["chosen"]
    ]
