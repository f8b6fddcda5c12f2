"""Routines of LAPACK for triangles, in place, that let other threads run: SciPy's wrappers hold the interpreter's lock.

They work in the memory of C-ordered matrices, whose upper triangle is what LAPACK calls the lower one.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_lapack

__all__ = ["cholesky", "inverse_of_triangle", "triangle_squared"]


@cache
def routine(name: str, arguments: int) -> Any:
    capsule = cython_lapack.__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(address)


def call(name: str, flags: bytes, A: np.ndarray) -> int:
    """What a routine (flags, n, A, lda, info) says."""
    if not A.flags.c_contiguous or A.shape != (len(A), len(A)) or A.dtype not in (np.float32, np.float64):
        raise ValueError(f"{name} of {A.dtype} {A.shape}, which is no contiguous square matrix")
    words = [ctypes.create_string_buffer(bytes([flag])) for flag in flags]
    n, info = ctypes.c_int(len(A)), ctypes.c_int(0)
    kind = "s" if A.dtype == np.float32 else "d"
    own = [ctypes.addressof(word) for word in words]
    ends = [ctypes.addressof(n), A.ctypes.data, ctypes.addressof(n), ctypes.addressof(info)]
    routine(kind + name, len(own) + 4)(*own, *ends)
    return info.value


def cholesky(A: np.ndarray, lower: bool = False, clean: bool = False) -> np.ndarray | None:
    """L of A = L L', in the memory of A, of which one triangle is read: L', the upper one, or with `lower` L itself.

    None where A is not positive definite. `clean`: zeros in the other triangle.
    """
    if call("potrf", b"U" if lower else b"L", A):
        return None
    for i in range(len(A) if clean else 0):
        A[i, slice(i + 1, None) if lower else slice(i)] = 0.0
    return A


def inverse_of_triangle(A: np.ndarray) -> None:
    """Of an upper one."""
    call("trtri", b"LN", A)


def triangle_squared(A: np.ndarray) -> None:
    """U U' for an upper triangle U, of which the upper triangle."""
    call("lauum", b"L", A)
