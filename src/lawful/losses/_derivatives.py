"""What a loss does not say itself: second derivatives by differences, majorisers, the size of its labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, to_numpy


def label_range(atoms: Array) -> float:
    """The range of a task's labels, or their size when they are all the same."""
    values = np.asarray(to_numpy(atoms), dtype=float)
    return float(values.max() - values.min()) or float(np.abs(values).max()) or 1.0


def second(loss: Any, c: Array, y: Array, size: float) -> Array:
    """The second derivative of a loss in c: its own, or a difference of the first."""
    if hasattr(loss, "second"):
        return loss.second(c, y)
    h = 1e-5 * size
    return (loss.derivative(c + h, y) - loss.derivative(c - h, y)) / (2 * h)


def majoriser(loss: Any, c: Array, y: Array, size: float) -> Array:
    """A quadratic above the loss that touches it at c: its own, or the second derivative, kept away from zero."""
    if hasattr(loss, "curvature"):
        return loss.curvature(c, y)
    found = second(loss, c, y, size)
    xp = array_namespace(found)
    return xp.where(found > 1e-6 / size**2, found, xp.full_like(found, 1e-6 / size**2))
