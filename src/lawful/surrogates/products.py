"""Kernel values and products with them, fast: a product of matrices and a function in place, block by block.

`Kernel.__call__` takes differences of inputs one by one and keeps every digit; here exponents are 2 u v' - |u|^2 - |v|^2, which
loses some where inputs are many length scales from each other (there k is nothing) or nearly the same (there k is 1). Sums of
functions of single inputs, as products with `Additive` are, are polynomials of each input: Chebyshev's, of as many terms as it
takes to be exact to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebval
from scipy.fft import dct

from lawful._array import Array, array_namespace, is_numpy_namespace
from lawful._threads import blas_threads, n_threads, on_threads
from lawful.kernels import Additive, Gaussian, Kernel, Matern

__all__ = ["times", "values"]

BLOCK = 2**19  # numbers that several functions pass over before the next: few calls, and not far from the processor
TERMS, EXACT = 64, 1e-14  # of a polynomial at first, and how small its last coefficients are beside what is summed
MOST_TERMS = 4096


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
    used = np.flatnonzero(C.any(axis=0))
    if len(used) < C.shape[1]:
        out[:] = 0
        if len(used):
            out[:, used] = times(kernel, X, Z, C[:, used], dtype)
        return out
    sums = alone(kernel, X, Z, C) if isinstance(kernel, Additive) else None
    C = C.astype(dtype, copy=False)

    def fill(start: int) -> None:
        part = slice(start, start + size)
        for rows, found in pieces(kernel, X[part], Z, dtype, sums is not None):
            out[part][rows] = found @ C

    threads = n_threads(None) if len(X) * len(Z) > 16 * BLOCK else 1
    size = max(-(-len(X) // threads), 1)
    with blas_threads(1):  # whose threads would wait for each other: the inner dimension is small
        on_threads(fill, range(0, len(X), size), threads)
    return out if sums is None else out + sums


def alone(kernel: Additive, X: np.ndarray, Z: np.ndarray, C: np.ndarray) -> np.ndarray | None:
    """share mean_j E_j(X, Z) C, E_j = exp(-(u_j - v_j)^2), by polynomials; None where too many terms were needed."""
    sigma, out = kernel.scales(X.shape[1]), np.zeros((len(X), C.shape[1]))
    C = C.astype(float, copy=False)
    size = np.abs(C).sum(axis=0)
    for x, z, unit in zip(X.T, Z.T, sigma):
        low, high = float(min(x.min(), z.min())), float(max(x.max(), z.max()))
        half = max((high - low) / 2, 1e-300)
        terms = TERMS
        while True:
            angle = np.pi * (np.arange(terms) + 0.5) / terms
            nodes = low + half * (1 + np.cos(angle))
            parts = np.array_split(nodes, max(terms // TERMS, 1))
            at = np.concatenate([np.exp(-(((part[:, None] - z[None, :]) / unit) ** 2)) @ C for part in parts])
            coefficients = dct(at, axis=0) / terms
            coefficients[0] /= 2
            if np.all(np.abs(coefficients[-8:]).max(axis=0) <= EXACT * size):
                break
            terms *= 2
            if terms > min(MOST_TERMS, len(X)):
                return None
        inside = np.clip((x - low) / half - 1, -1, 1)
        out += chebval(inside, coefficients).T.reshape(len(X), -1)
    return out * (kernel.share / X.shape[1])


def pieces(kernel: Any, X: np.ndarray, Z: np.ndarray, dtype: Any, product: bool = False) -> Any:
    """(rows, k(X[rows], Z)), a few rows at a time, in memory that the next piece overwrites. `product`: of `Additive` only the
    product of the inputs' functions, times its share."""
    sigma, center = kernel.scales(X.shape[1]), Z.mean(axis=0) if len(Z) else 0.0
    U, V = ((A - center) / sigma for A in (X, Z))
    factor = 2.0 * kernel.nu if isinstance(kernel, Matern) else -1.0
    right = np.concatenate([-2 * V, np.ones((len(V), 1)), np.einsum("ij,ij->i", V, V)[:, None]], axis=1).T
    right = np.ascontiguousarray(factor * right, dtype=dtype)
    left = np.concatenate([U, np.einsum("ij,ij->i", U, U)[:, None], np.ones((len(U), 1))], axis=1).astype(dtype)
    size = max(8, BLOCK // max(len(Z), 1))
    room = np.empty((3, min(size, max(len(X), 1)), len(Z)), dtype=dtype)
    U, V = U.astype(dtype), np.ascontiguousarray(V.T.astype(dtype))
    for i in range(0, len(X), size):
        rows = slice(i, min(i + size, len(X)))
        q, f, sums = room[:, : rows.stop - i]
        np.matmul(left[rows], right, out=q)
        profile(kernel, q, f)
        if isinstance(kernel, Additive):
            f *= dtype(1 - kernel.share)
        if isinstance(kernel, Additive) and not product:
            sums[...] = 0
            for j, v in enumerate(V):
                np.subtract(U[rows, j, None], v, out=q)
                q *= q
                np.negative(q, out=q)
                np.maximum(q, -80, out=q)
                sums += np.exp(q, out=q)
            sums *= dtype(kernel.share / X.shape[1])
            f += sums
        yield rows, f


def profile(kernel: Kernel, q: np.ndarray, f: np.ndarray) -> None:
    """k where q is minus the squared distance (Gaussian), or 2 nu times it (Matern); q is overwritten."""
    far = 80 if q.dtype == np.float32 else 700  # beyond, numbers are too small to be computed with fast
    if not isinstance(kernel, Matern):
        np.maximum(q, -far, out=q)
        np.exp(q, out=f)
        return
    np.clip(q, 0, far**2, out=q)
    np.sqrt(q, out=f)
    if kernel.nu == 1.5:
        np.add(f, 1, out=q)
    else:
        q *= q.dtype.type(1 / 3)
        q += f
        q += 1
    np.negative(f, out=f)
    np.exp(f, out=f)
    f *= q
