"""The cloud that a surface or a region is learned from."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import Array, to_numpy
from lawful.sets.base import check_width


def observed(who: str, points: Any, extra: Any, Y: Array, T: int) -> np.ndarray:
    """(N, T) the points given, else the complete rows of the outputs Y; and the complete rows of extra outputs."""
    parts = []
    for name, given in (("points", Y if points is None else points), ("extra", extra)):
        if given is None:
            continue
        part = np.asarray(to_numpy(given), np.float64)
        if part.ndim != 2:
            raise ValueError(f"{who}: {name} have shape {part.shape}; give one row per point")
        check_width(who, part.shape[1], T)
        missing = np.isnan(part).any(axis=1)
        parts.append(part if name == "points" and points is not None else part[~missing])
    return np.concatenate(parts)
