"""The one place that knows which array library is in use.

The numerical core is written against the Python array API (through `array_api_compat`), so the same lines run
on NumPy arrays and torch tensors. The standard lacks a few things that the core needs (scatter into rows, a
symmetric generalised solver, ...): they are dispatched here and nowhere else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from array_api_compat import array_namespace, is_array_api_obj, is_numpy_namespace, is_torch_array
from array_api_compat import device as device_of

Array = Any  # an array of whichever library the caller uses

__all__ = [
    "Array",
    "array_namespace",
    "as_given",
    "cholesky_in_place",
    "device_of",
    "eigh",
    "in_host_memory",
    "is_foreign",
    "is_numpy_namespace",
    "like",
    "put_rows",
    "segment_sum",
    "solve_lower",
    "take_rows",
    "to_numpy",
]


def to_numpy(x: Array) -> np.ndarray:
    """Any array as a NumPy array (torch tensors leave the graph and the device)."""
    if is_torch_array(x):
        return x.detach().cpu().numpy()
    try:
        return np.asarray(x)
    except (RuntimeError, TypeError):  # not in the host's memory
        if not hasattr(x, "__dlpack__"):
            raise
        return np.from_dlpack(x, device="cpu")


def like(values: Any, reference: Array) -> Array:
    """`values` as an array of the library, dtype and device of `reference`."""
    xp = array_namespace(reference)
    if is_torch_array(values) and is_torch_array(reference):
        return values.to(dtype=reference.dtype, device=reference.device)
    return xp.asarray(to_numpy(values), dtype=reference.dtype, device=device_of(reference))


def take_rows(x: Array, idx: Array | slice) -> Array:
    """x[idx] for an integer index array, in any array library, or a slice, which costs nothing."""
    return x[idx, ...] if isinstance(idx, slice) else array_namespace(x).take(x, idx, axis=0)


def put_rows(x: Array, idx: Array, values: Array) -> Array:
    """A copy of x whose rows `idx` (all different) are replaced by `values`: scatter is not in the standard."""
    xp = array_namespace(x)
    if is_numpy_namespace(xp) or is_torch_array(x):
        out = xp.asarray(x, copy=True)
        out[idx] = values
        return out
    if idx.shape[0] == 0:
        return x
    # out = x off the index, values on it: position of each row inside idx, then one gather.
    where = np.full(x.shape[0], -1)
    where[to_numpy(idx)] = np.arange(idx.shape[0])
    chosen = xp.asarray(where >= 0, device=device_of(x))
    gathered = xp.take(values, xp.asarray(np.maximum(where, 0), device=device_of(x)), axis=0)
    return xp.where(xp.reshape(chosen, (-1,) + (1,) * (x.ndim - 1)), gathered, x)


def segment_sum(values: Array, segments: Array, count: int) -> Array:
    """out[g] = sum of the rows of `values` (n, k) with segments[i] = g: scatter-add is not in the standard."""
    xp = array_namespace(values)
    segments = to_numpy(segments)
    if is_numpy_namespace(xp):
        out = np.zeros((count, values.shape[1]), dtype=values.dtype)
        np.add.at(out, segments, values)
        return out
    if is_torch_array(values):
        out = xp.zeros((count, values.shape[1]), dtype=values.dtype, device=values.device)
        return out.index_add(0, xp.asarray(segments, device=values.device), values)
    return like(segments[None, :] == np.arange(count)[:, None], values) @ values


def eigh(A: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of a symmetric matrix (LAPACK's divide and conquer where there is a choice)."""
    xp = array_namespace(A)
    if A.shape[0] == 0:
        return xp.zeros(0, dtype=A.dtype, device=device_of(A)), A
    if is_numpy_namespace(xp) and A.shape[0] > 1:  # SciPy before 1.13 has no room for a single number there
        return scipy.linalg.eigh(A, driver="evd", overwrite_a=True, check_finite=False)
    return tuple(xp.linalg.eigh(A))


def as_given(found: np.ndarray, X: Any) -> Any:
    """What was found for inputs X: a tensor of double precision, where X is, if X is a tensor."""
    return array_namespace(X).asarray(found, device=device_of(X)) if is_torch_array(X) else found


def cholesky_in_place(A: np.ndarray, add: float) -> np.ndarray:
    """The factor of A + add I, in the memory of a Fortran-ordered copy; A keeps what was added, unless that fails."""
    A.flat[:: A.shape[1] + 1] += add
    L, failed = scipy.linalg.lapack.dpotrf(np.asfortranarray(A), lower=1, clean=1, overwrite_a=1)
    if failed:
        A.flat[:: A.shape[1] + 1] -= add
        raise np.linalg.LinAlgError("not positive definite")
    return L


def solve_lower(L: Array, B: Array, transpose: bool = False) -> Array:
    """L^-1 B, or L^-T B, for a lower triangular L: a triangular solve is not in the standard."""
    xp = array_namespace(L, B)
    if L.shape[0] == 0:  # which LAPACK refuses
        return B
    if is_numpy_namespace(xp):
        return scipy.linalg.solve_triangular(L, B, lower=True, trans=int(transpose), check_finite=False)
    if is_torch_array(L):
        if transpose:
            return xp.linalg.solve_triangular(L.mT, B, upper=True)
        return xp.linalg.solve_triangular(L, B, upper=False)
    return xp.linalg.solve(L.T if transpose else L, B)


def is_foreign(x: Any) -> bool:
    """Whether x is an array of floats of another library than NumPy, on whatever device."""
    if isinstance(x, np.ndarray) or not is_array_api_obj(x):
        return False
    xp = array_namespace(x)
    return bool(xp.isdtype(x.dtype, "real floating"))


def in_host_memory(x: Array) -> bool:
    """Whether x is where the processor works: all arrays are but torch tensors on another device."""
    return not is_torch_array(x) or x.device.type == "cpu"
