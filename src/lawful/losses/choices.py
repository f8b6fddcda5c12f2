"""F_x(c) for outputs with two values: a cost for each of them, whatever the loss they come from."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Choices"]


class Choices:
    """sum_t costs[c_t][:, t]: `false` and `true` (m, T) are what it costs to say 0 and 1."""

    def __init__(self, false: np.ndarray, true: np.ndarray) -> None:
        self.false, self.true = false, true
        self.shape: tuple[int, int] = (false.shape[0], false.shape[1])
        self.doubtful = np.zeros(len(false), bool)

    @property
    def center(self) -> np.ndarray:
        """(m, T) the cheapest values, each label on its own."""
        return (self.true < self.false).astype(float)

    def value(self, c: np.ndarray) -> np.ndarray:
        return np.where(c > 0.5, self.true, self.false).sum(axis=1)

    def table(self, t: int, v: np.ndarray) -> np.ndarray:
        """(m, len(v)): the cost of each value v for label t."""
        return np.where(v[None, :] > 0.5, self.true[:, t, None], self.false[:, t, None])

    def costs(self, points: np.ndarray) -> np.ndarray:
        """(m, P): the cost of each candidate point."""
        on = (points > 0.5).astype(float)
        return self.true @ on.T + self.false @ (1 - on).T

    def tasks(self, idx: list[int]) -> Choices:
        return Choices(self.false[:, idx], self.true[:, idx])

    def rows(self, idx: Any) -> Choices:
        return Choices(self.false[idx], self.true[idx])
