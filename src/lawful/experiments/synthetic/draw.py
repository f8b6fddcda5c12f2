"""The data of one trial: y = f(x) + noise on a curve, on shared inputs or with inputs of its own for each output."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lawful.datasets import make_curve
from lawful.tasks import Tasks, stack_tasks

NOISE = {"sd": 0.05, "variance": float(np.sqrt(0.05))}  # N(0, sigma I) with sigma = 0.05, read in both ways
LAWS = {  # the function that is learned -> the laws it is learned with
    "circle": ("circle",),
    "lemniscate": ("lemniscate",),
    "lemniscate_tall": ("lemniscate_tall", "lemniscate_printed"),  # the same data: the printed pair has this function
}


@dataclass(frozen=True)
class Trial:
    """X (N, 1), Y (N, 2) with NaN where an output was not observed; noise-free test data."""

    X: np.ndarray
    Y: np.ndarray
    X_test: np.ndarray
    Y_test: np.ndarray
    tasks: Tasks
    seed: int

    @property
    def shared(self) -> bool:
        return not np.isnan(self.Y).any()


def draw(curve: str, n: int, noise: str, setting: str, seed: int) -> Trial:
    data = make_curve(curve, n, noise=NOISE[noise], random_state=seed)
    X, Y = data.X, data.Y
    if setting == "multitask":
        other = int(np.random.SeedSequence((seed, 1)).generate_state(1)[0])
        second = make_curve(curve, n, noise=NOISE[noise], random_state=other)
        X, Y = stack_tasks([(X, Y[:, 0]), (second.X, second.Y[:, 1])])
    return Trial(X, Y, data.X_test, data.Y_test, Tasks.of(X, Y), seed)
