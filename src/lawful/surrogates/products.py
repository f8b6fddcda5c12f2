"""Kernel values and products with them, fast: a product of matrices and a function in place, block by block.

`Kernel.__call__` takes differences of inputs one by one and keeps every digit; here exponents are |u|^2 - 2 u v' + |v|^2, which
loses some where inputs are many length scales from each other (there k is nothing) or nearly the same (there k is 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, is_numpy_namespace
from lawful.kernels import Additive, Gaussian, Kernel, Matern

__all__ = ["times", "values"]

BLOCK = 2**17  # numbers that stay in the cache while several functions pass over them


def fast(kernel: Kernel) -> bool:
    return type(kernel) in (Gaussian, Additive) or (type(kernel) is Matern and kernel.nu in (1.5, 2.5))


def values(kernel: Kernel, X: Array, Z: Array, dtype: Any = np.float64) -> Array:
    """k(x, z), (n, m)."""
    if not fast(kernel):
        found = kernel(X, Z)
        return found if dtype is np.float64 else found.astype(dtype)
    if not is_numpy_namespace(array_namespace(X)):
        return kernel(X, Z)
    out = np.empty((len(X), len(Z)), dtype=dtype)
    for rows, found in pieces(kernel, X, Z, dtype):
        out[rows] = found
    return out


def times(kernel: Kernel, X: Array, Z: Array, C: Array, dtype: Any = np.float64) -> Array:
    """k(X, Z) C, (n, columns), without the matrix."""
    if not is_numpy_namespace(array_namespace(X)):
        xp, size = array_namespace(X), max(1, 2**27 // max(Z.shape[0], 1))
        return xp.concat([kernel(X[i : i + size, :], Z) @ C for i in range(0, max(X.shape[0], 1), size)], axis=0)
    out = np.empty((len(X), C.shape[1]))
    if not fast(kernel):
        size = max(1, 2**22 // max(len(Z), 1))
        for i in range(0, len(X), size):
            out[i : i + size] = kernel(X[i : i + size], Z) @ C
        return out
    C = C.astype(dtype, copy=False)
    for rows, found in pieces(kernel, X, Z, dtype):
        out[rows] = found @ C
    return out


def pieces(kernel: Any, X: np.ndarray, Z: np.ndarray, dtype: Any) -> Any:
    """(rows, k(X[rows], Z)), a few rows at a time, in memory that the next piece overwrites."""
    sigma, center = kernel.scales(X.shape[1]), Z.mean(axis=0) if len(Z) else 0.0
    U, V = ((A - center) / sigma for A in (X, Z))
    right = np.concatenate([-2 * V, np.ones((len(V), 1)), np.einsum("ij,ij->i", V, V)[:, None]], axis=1).T.astype(dtype)
    left = np.concatenate([U, np.einsum("ij,ij->i", U, U)[:, None], np.ones((len(U), 1))], axis=1).astype(dtype)
    size = max(8, BLOCK // max(len(Z), 1))
    room = np.empty((3, min(size, max(len(X), 1)), len(Z)), dtype=dtype)
    U, V = U.astype(dtype), np.ascontiguousarray(V.T.astype(dtype))
    for i in range(0, len(X), size):
        rows = slice(i, min(i + size, len(X)))
        q, f, sums = room[:, : rows.stop - i]
        np.matmul(left[rows], right, out=q)
        np.maximum(q, 0, out=q)
        profile(kernel, q, f)
        if isinstance(kernel, Additive):
            sums[...] = 0
            for j, v in enumerate(V):
                np.subtract(U[rows, j, None], v, out=q)
                q *= q
                np.negative(q, out=q)
                sums += np.exp(q, out=q)
            f *= dtype(1 - kernel.share)
            sums *= dtype(kernel.share / X.shape[1])
            f += sums
        yield rows, f


def profile(kernel: Kernel, q: np.ndarray, f: np.ndarray) -> None:
    """k at squared distances q, which are overwritten."""
    if not isinstance(kernel, Matern):
        np.exp(np.negative(q, out=q), out=f)
        return
    q *= q.dtype.type(2 * kernel.nu)
    r = np.sqrt(q, out=q)
    np.exp(np.negative(r, out=f), out=f)
    if kernel.nu == 1.5:
        r += 1
        f *= r
        return
    third = q.dtype.type(1 / 3)
    for i in range(len(f)):  # 1 + r + r^2 / 3, row by row: no matrix beside the two
        row = r[i]
        f[i] *= (row * third + 1) * row + 1
