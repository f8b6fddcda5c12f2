"""The distinct inputs of a task: equal ones are merged, weights add, labels average, and the ridge solution is the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lawful._array import Array, array_namespace, device_of, is_numpy_namespace, like, segment_sum, take_rows, to_numpy
from lawful._memory import require_memory
from lawful.kernels import Kernel, Precomputed

__all__ = ["Sample", "distinct", "observations", "require_room"]

COUNTED = 1e-6  # relative: how near to multiples of the least weight others are where weights are counts
COPIES = 1.2  # of the kernel matrix that its factorisation in place needs


@dataclass(frozen=True)
class Sample:
    """The p distinct inputs among the chosen rows of X, in sorted order."""

    X: Array
    points: np.ndarray  # (p,) one row of X for each distinct input
    group: np.ndarray  # (n,) which distinct input each chosen row has
    weights: Array  # (p,) total weight of each distinct input
    share: Array  # (n,) weight of the row within its input

    @property
    def rows(self) -> Array:
        """`points` as an index array of X's library."""
        return array_namespace(self.X).asarray(self.points, device=device_of(self.X))

    def average(self, Z: Array) -> Array:
        return segment_sum(Z * self.share[:, None], self.group, self.points.shape[0])

    def spread(self, values: Array) -> Array:
        """(p, ...) -> (n, ...): to each row what its input has."""
        return take_rows(values, array_namespace(values).asarray(self.group, device=device_of(values)))


def distinct(X: Array, rows: np.ndarray, weights: Array, kernel: Kernel) -> Sample:
    """Merge equal inputs (not for `Precomputed`, whose inputs are unknown)."""
    w = to_numpy(weights)
    if isinstance(kernel, Precomputed):
        points, group = rows, np.arange(rows.shape[0])
    else:
        _, first, group = np.unique(to_numpy(X)[rows], axis=0, return_index=True, return_inverse=True)
        points, group = rows[first], group.reshape(-1)
    total = np.bincount(group, weights=w, minlength=points.shape[0])
    return Sample(X, points, group, like(total, X), like(w / total[group], X))


def require_room(samples: list[Sample], kernel: Kernel) -> None:
    """A `MemoryError` before hours of tuning, where the kernel matrix of the largest sample will not fit."""
    p = max(sample.points.shape[0] for sample in samples)
    if hasattr(kernel, "features") or not is_numpy_namespace(array_namespace(samples[0].X)):
        return  # few features need no such matrix, and a device has a memory of its own
    require_memory(
        "KernelRidge",
        COPIES * 8.0 * p * p,
        f"the kernel matrix of {p} inputs",
        "NystromRidge() needs no such matrix and learns from any number of rows; or fit on fewer",
    )


def observations(group: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> int:
    """How many observations rows are, with inputs `group`, so that rows copied as a whole, or weights doubled, change nothing.

    Rows equal in input and label are copies, and count once; unless labels have few values and differ at some inputs, as those
    of independent observations do. Then the least weight is one observation, if all others are multiples of it.
    """
    pairs, pair = np.unique(np.stack([group.astype(float), labels]), axis=1, return_inverse=True)
    sums = np.bincount(pair.reshape(-1), weights=weights)
    n, inputs = len(sums), len(np.unique(pairs[0]))
    if n == inputs or 2 * len(np.unique(pairs[1])) > n:
        return n
    counts = sums / sums.min()
    whole = np.round(counts)
    return int(whole.sum()) if np.all(np.abs(counts - whole) < COUNTED * counts) else n
