"""The one place that knows which array library is in use.

The numerical core is written against the Python array API (through `array_api_compat`), so the same lines run
on NumPy arrays and torch tensors. The standard lacks a few things that the core needs (scatter into rows, a
symmetric generalised solver, ...): they are dispatched here and nowhere else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_numpy_namespace, is_torch_array
from array_api_compat import device as device_of

Array = Any  # an array of whichever library the caller uses

__all__ = [
    "Array",
    "array_namespace",
    "device_of",
    "is_numpy_namespace",
    "like",
    "put_rows",
    "solve_small",
    "take_rows",
    "to_numpy",
]


def to_numpy(x: Array) -> np.ndarray:
    """Any array as a NumPy array (torch tensors leave the graph and the device)."""
    if is_torch_array(x):
        return x.detach().cpu().numpy()
    return np.asarray(x)


def like(values: Any, reference: Array) -> Array:
    """`values` as an array of the library, dtype and device of `reference`."""
    xp = array_namespace(reference)
    if is_torch_array(values) and is_torch_array(reference):
        return values.to(dtype=reference.dtype, device=reference.device)
    return xp.asarray(to_numpy(values), dtype=reference.dtype, device=device_of(reference))


def take_rows(x: Array, idx: Array) -> Array:
    """x[idx] for an integer index array, in any array library."""
    return array_namespace(x).take(x, idx, axis=0)


def put_rows(x: Array, idx: Array, values: Array) -> Array:
    """A copy of x whose rows `idx` (all different) are replaced by `values`: scatter is not in the standard."""
    xp = array_namespace(x)
    if is_numpy_namespace(xp) or is_torch_array(x):
        out = xp.asarray(x, copy=True)
        out[idx] = values
        return out
    # out = x off the index, values on it: position of each row inside idx, then one gather.
    where = np.full(x.shape[0], -1)
    where[to_numpy(idx)] = np.arange(idx.shape[0])
    chosen = xp.asarray(where >= 0)
    gathered = xp.take(values, xp.asarray(np.maximum(where, 0)), axis=0)
    return xp.where(xp.reshape(chosen, (-1,) + (1,) * (x.ndim - 1)), gathered, x)


def solve_small(A: Array, b: Array) -> Array:
    """Solve A z = b for a batch: A (m, k, k), b (m, k). Closed forms for k <= 2, LAPACK beyond.

    A batch of thousands of 1x1 and 2x2 systems is the common case of the decoders (one or two equations), where
    the closed form is ten times faster than a batched LAPACK call.
    """
    xp = array_namespace(A, b)
    k = A.shape[-1]
    if k == 1:
        return b / A[:, 0, :]
    if k == 2:
        det = A[:, 0, 0] * A[:, 1, 1] - A[:, 0, 1] * A[:, 1, 0]
        z0 = A[:, 1, 1] * b[:, 0] - A[:, 0, 1] * b[:, 1]
        z1 = A[:, 0, 0] * b[:, 1] - A[:, 1, 0] * b[:, 0]
        return xp.stack([z0, z1], axis=1) / det[:, None]
    return xp.linalg.solve(A, b[:, :, None])[:, :, 0]
