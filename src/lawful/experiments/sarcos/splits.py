"""One split of the Sarcos experiment: who learns from which rows, where the cloud comes from, what is tested.

Separate inputs (the multitask setting of the paper): every torque has n_train rows of its own. Where there are rows enough
(44,484), each also has a test set of its own, n_task rows less the n_train, as Jawanpuria & Nath (2012) drew them; where there
are not (4449), all rows left are the test set of all torques. Shared inputs (vector-valued regression): the same n_train rows
for all. In every case the cloud is disjoint from both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lawful.tasks import stack_tasks

INPUTS = ("standardised", "raw", "shared")


@dataclass(frozen=True)
class Split:
    """X (n, d), Y (n, T) with NaN to learn from; the cloud (c, T); X_test, Y_test with NaN where a row does not test a torque.

    Outputs are divided by the standard deviations of the training labels: the same for every system, and no system sees more
    than it may. `unit` holds them: what is added up over torques must be in torques again.
    """

    X: np.ndarray
    Y: np.ndarray
    cloud: np.ndarray
    X_test: np.ndarray
    Y_test: np.ndarray
    unit: np.ndarray  # (T,)
    level: float  # mean of k(x, x) over the training inputs, centred: the natural unit of lambda


def own_tests(n: int, T: int, n_cloud: int, n_task: int) -> bool:
    """Whether n rows suffice for n_task rows a task and a cloud."""
    return n >= T * n_task + n_cloud


def draw(
    X: Any, Y: Any, seed: int, inputs: str = "standardised", n_train: int = 15, n_cloud: int = 1000, n_task: int = 2000
) -> Split:
    """The split number `seed`."""
    if inputs not in INPUTS:
        raise ValueError(f"sarcos: unknown inputs {inputs!r}; choose one of {', '.join(INPUTS)}")
    X, Y = np.asarray(X, dtype=float), np.asarray(Y, dtype=float)
    n, T = Y.shape
    blocks = 1 if inputs == "shared" else T
    if n < blocks * n_train + n_cloud + 2:
        raise ValueError(
            f"sarcos: {n} rows do not hold {blocks} x {n_train} to learn from, {n_cloud} for the cloud and some to test on; "
            "use more rows or a smaller cloud"
        )
    order = np.random.default_rng(seed).permutation(n)
    own = order[: blocks * n_train].reshape(blocks, n_train)
    cloud, rest = order[blocks * n_train :][:n_cloud], order[blocks * n_train + n_cloud :]
    separate = own_tests(n, T, n_cloud, n_task)
    if blocks == 1:
        X_fit, Y_fit = X[own[0]], Y[own[0]]
    else:
        X_fit, Y_fit = stack_tasks([(X[rows], Y[rows, t]) for t, rows in enumerate(own)])
    if separate and blocks > 1:
        tests = rest[: T * (n_task - n_train)].reshape(T, -1)
        X_test, Y_test = stack_tasks([(X[rows], Y[rows, t]) for t, rows in enumerate(tests)])
    else:
        test = rest[: n_task - n_train] if separate else rest
        X_test, Y_test = X[test], Y[test]
    center = X_fit.mean(axis=0)
    scale = X_fit.std(axis=0)
    if inputs == "raw":
        unit, level = np.ones_like(scale), float((scale**2).sum())
        center = np.zeros_like(center)
    else:
        unit, level = np.where(scale > 0, scale, 1.0), float((scale > 0).sum())
    torque = np.nanstd(Y_fit, axis=0)
    torque = np.where(torque > 0, torque, 1.0)
    X_fit, X_test = (X_fit - center) / unit, (X_test - center) / unit
    return Split(X_fit, Y_fit / torque, Y[cloud] / torque, X_test, Y_test / torque, torque, level)
