"""The last rows of a stream and their residuals: what `partial_fit` measures an output metric on."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import to_numpy
from lawful.surrogates.base import Calibration
from lawful.tasks import Tasks

__all__ = ["Recent"]

ROWS = 5000


class Recent:
    """Labels, weights and out-of-sample residuals of at most `ROWS` rows; inputs are of no use any more."""

    def __init__(self, tasks: Tasks, residuals: list[Any]) -> None:
        self.names, self.n_rows = tasks.names, tasks.n_rows
        self.rows = [to_numpy(r) for r in tasks.rows]
        self.values = [[to_numpy(v) for v in columns] for columns in (tasks.y, tasks.weights, residuals)]
        self._forget()

    def then(self, other: Recent) -> Recent:
        """This, followed by more rows."""
        self.rows = [np.concatenate([a, b + self.n_rows]) for a, b in zip(self.rows, other.rows)]
        self.values = [[np.concatenate(pair) for pair in zip(*both)] for both in zip(self.values, other.values)]
        self.n_rows += other.n_rows
        self._forget()
        return self

    def _forget(self) -> None:
        """The first rows, beyond `ROWS`; but no output is left without any."""
        first = max(0, min([self.n_rows - ROWS, *(int(r[-1]) for r in self.rows if len(r))]))
        kept = [r >= first for r in self.rows]
        self.rows = [r[k] - first for r, k in zip(self.rows, kept)]
        self.values = [[v[k] for v, k in zip(columns, kept)] for columns in self.values]
        self.n_rows -= first

    @property
    def tasks(self) -> Tasks:
        y, weights, _ = self.values
        return Tasks(np.empty((self.n_rows, 0)), y, self.rows, weights, self.names)

    def calibration(self, surrogate: Any) -> Calibration:
        """Its residuals, in the form a loss asks for them."""
        return Calibration(self.values[2], surrogate.noise_share() if hasattr(surrogate, "noise_share") else None)
