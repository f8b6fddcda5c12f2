"""Rows gathered into cells: the errors of the trials of one law, noise, setting, size and selection, method by method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lawful.experiments._base import Row
from lawful.experiments.synthetic.draw import LAWS

METHODS = ("STL", "MTRL", "NL-MTL", "NL-MTL[R]", "NL-MTL[P]")
NAMES = {
    "circle": "circumference",
    "lemniscate": "lemniscate",
    "lemniscate_tall": "tall lemniscate",
    "lemniscate_printed": "lemniscate as printed",
}
SELECTIONS = {
    "paper": "the paper's grid and hold-out, sigma and lambda by the error after projection",
    "ridge": "the paper's grid and hold-out, sigma and lambda by the error before projection, as for STL",
    "default": "our selection, the defaults of `lawful`",
}
FROM = 50  # training points from which the paper's claim is tested


@dataclass(frozen=True)
class Cell:
    """mse[method] (trials,), in the order of the trials: differences are paired."""

    law: str
    noise: str
    setting: str
    n: int
    selection: str
    mse: dict[str, np.ndarray]

    def median(self, method: str) -> float:
        return float(np.median(self.mse[method]))

    def ratios(self, method: str, rival: str) -> np.ndarray:
        return self.mse[method] / self.mse[rival]

    def ratio(self, method: str, rival: str) -> float:
        """Median over the trials of the paired ratio."""
        return float(np.median(self.ratios(method, rival)))

    def wins(self, method: str, rival: str) -> int:
        return int((self.ratios(method, rival) < 1).sum())

    @property
    def trials(self) -> int:
        return len(self.mse["STL"])


def gather(rows: Iterable[Row]) -> list[Cell]:
    groups: dict[tuple[str, str, str, int], list[Row]] = {}
    for row in rows:
        for law in LAWS[row["curve"]]:
            groups.setdefault((law, row["noise"], row["setting"], row["n"]), []).append(row)
    found = []
    for (law, noise, setting, n), members in groups.items():
        members = sorted(members, key=lambda row: row["trial"])
        for selection in SELECTIONS:
            errors = [row["results"][selection] | row["results"].get(law, {}).get(selection, {}) for row in members]
            mse = {method: np.array([e[method] for e in errors]) for method in METHODS}
            found.append(Cell(law, noise, setting, n, selection, mse))
    return found


def among(cells: list[Cell], **values: object) -> list[Cell]:
    """Those with the given attributes; a tuple allows several values."""
    return [
        c for c in cells if all(getattr(c, k) in v if isinstance(v, tuple) else getattr(c, k) == v for k, v in values.items())
    ]
