"""A loss of its own for every output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lawful._array import Array
from lawful.losses.base import Loss, separable_objective


class Mixed(Loss):
    """One loss per output, with optional positive weights: sum_t weight_t l_t(c_t, y_t).

    >>> from lawful.losses import Absolute, Logistic
    >>> Mixed([Absolute(), Logistic()]).encode_task(0, np.array([2.0, 1.0, 2.0]))[1]
    array([1., 2.])
    """

    def __init__(self, losses: Sequence[Loss], weights: Sequence[float] | None = None) -> None:
        self.losses = losses
        self.weights = weights

    def encode_task(self, t: int, y: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        # Inside a mixture every loss, the square loss too, speaks through its atoms: exact for all of them.
        return Loss.encode(self.losses[t], y)

    def encodings(self, y: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray | None]]:
        if len(self.losses) != len(y):
            raise ValueError(f"Mixed has {len(self.losses)} losses, but there are {len(y)} outputs; give one loss per output")
        if self.weights is not None:
            weights = np.asarray(self.weights, dtype=float)
            if weights.shape != (len(y),) or not (weights > 0).all():
                raise ValueError(f"Mixed needs one positive weight per output ({len(y)}), got {self.weights!r}")
        pairs = [self.encode_task(t, y_t) for t, y_t in enumerate(y)]
        return [Z for Z, _ in pairs], [atoms for _, atoms in pairs]

    def objective(self, scores: list[Array], atoms: list[Any], variance: Array | None = None) -> Any:
        weights = self.weights if self.weights is not None else [1.0] * len(scores)
        return separable_objective(list(self.losses), [s * w for s, w in zip(scores, weights)], atoms)
