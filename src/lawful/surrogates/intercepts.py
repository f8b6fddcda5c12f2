"""A fixed intercept beta_t, known from elsewhere: learn what is left of the labels, and add it back to predictions.

The encoding of beta is psi(beta): for the square loss [1, beta], so that constant columns of Z are known without learning.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lawful._array import Array, like, to_numpy
from lawful.tasks import Tasks


class Centred(NamedTuple):
    """Tasks less the fixed intercept, what is left to fit (a free constant or none), and what to add back."""

    tasks: Tasks
    intercept: bool
    bases: list[np.ndarray] | None


def without_base(intercept: Any, tasks: Tasks, who: str = "KernelRidge") -> Centred:
    """`intercept`: True or False, which leave the labels as they are, or one number per task."""
    if isinstance(intercept, bool | np.bool_):
        return Centred(tasks, bool(intercept), None)
    Z, y = tasks.Z, tasks.y
    try:
        beta = np.asarray(to_numpy(intercept), dtype=float)
    except (TypeError, ValueError):
        beta = np.array(np.nan)
    if beta.shape != (len(y),) or not np.all(np.isfinite(beta)):
        raise ValueError(
            f"{who}(intercept={intercept!r}) will not do; give True, False or {len(y)} finite numbers, one for each output"
        )
    bases = [_base(z, v, b, who) for z, v, b in zip(Z, y, beta)]
    left = tasks.with_labels([v - b for v, b in zip(y, beta)], [z - like(b, z)[None, :] for z, b in zip(Z, bases)])
    return Centred(left, False, bases)


def _base(z: Array, y: Array, beta: float, who: str) -> np.ndarray:
    """The encoding of `beta`: constant columns as they are, the labels themselves (last) replaced."""
    columns = to_numpy(z)
    if not (np.all(columns[:, :-1] == columns[:1, :-1]) and np.array_equal(columns[:, -1], to_numpy(y))):
        raise ValueError(
            f"{who} with a fixed intercept needs the labels themselves, as the Square loss gives them; with other "
            "losses use intercept=True or False"
        )
    return np.append(columns[0, :-1], beta)
