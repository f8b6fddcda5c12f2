"""Laws with a smooth function that obeys them: what the theorems are measured on.

x is uniform on [-pi, pi]; every function is a trigonometric polynomial, or one divided by its norm, so it is smooth and the
Gaussian kernel can learn it.

    circle, sphere    T outputs on the unit sphere: codimension 1
    curve             (cos x, sin x, cos 2x, sin 2x, ...): a curve in R^T, codimension T - 1
    tori              T/2 circles: codimension T/2
    affine            k linear equations among T outputs: codimension k
    rotations         3 x 3 rotation matrices: codimension 6 of 9
    box               [-1, 1]^T: no relation at all
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lawful.sets import Affine, Box, Equations, Product, Rotations, Sphere


@dataclass(frozen=True)
class World:
    """A constraint set with T outputs, its codimension, and a function f(x) -> (m, T) that obeys it."""

    constraint: Any
    T: int
    codimension: int
    truth: Any


def waves(x: np.ndarray, T: int, harmonics: int = 3) -> np.ndarray:
    """(m, T) trigonometric polynomials, the same ones whenever they are asked for."""
    rng = np.random.default_rng(1000 + T)
    amplitude = rng.standard_normal((2, harmonics, T)) / np.arange(1, harmonics + 1)[:, None]
    k = np.arange(1, harmonics + 1)
    return np.cos(np.outer(x, k)) @ amplitude[0] + np.sin(np.outer(x, k)) @ amplitude[1]


def on_sphere(x: np.ndarray, T: int) -> np.ndarray:
    if T == 2:
        return np.c_[np.cos(x), np.sin(x)]
    w = 1 + 0.6 * waves(x, T)  # away from zero, where dividing by the norm would not be smooth
    return w / np.linalg.norm(w, axis=1, keepdims=True)


def on_curve(x: np.ndarray, T: int) -> np.ndarray:
    k = np.arange(1, T // 2 + 1)
    return np.stack([np.cos(np.outer(x, k)), np.sin(np.outer(x, k))], axis=2).reshape(len(x), T)


def curve_equations(T: int) -> list[str]:
    """cos and sin of (k+1) x from those of k x and x."""
    found = ["y1**2 + y2**2 = 1"]
    for k in range(1, T // 2):
        c, s = f"y{2 * k - 1}", f"y{2 * k}"
        found += [f"y{2 * k + 1} = y1*{c} - y2*{s}", f"y{2 * k + 2} = y2*{c} + y1*{s}"]
    return found


def on_tori(x: np.ndarray, T: int) -> np.ndarray:
    angle = x[:, None] + 0.7 * waves(x, T // 2, 2) / 2
    return np.stack([np.cos(angle), np.sin(angle)], axis=2).reshape(len(x), T)


def on_plane(x: np.ndarray, T: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """T outputs of unit size in the kernel of a (k, T) matrix with orthonormal rows."""
    A = np.linalg.qr(np.random.default_rng(2000 + 100 * T + k).standard_normal((T, k)))[0].T
    w = waves(x, T)
    return w - (w @ A.T) @ A, A


def on_rotations(x: np.ndarray) -> np.ndarray:
    """Rodrigues' formula for a smooth axis and angle."""
    axis = waves(x, 3, 2)
    axis = axis / np.sqrt(1 + (axis**2).sum(axis=1, keepdims=True))  # smooth, also through zero
    angle = np.linalg.norm(axis, axis=1)
    sinc, versine = np.sinc(angle / np.pi), 0.5 * np.sinc(angle / (2 * np.pi)) ** 2
    K = np.zeros((len(x), 3, 3))
    K[:, 0, 1], K[:, 0, 2], K[:, 1, 2] = -axis[:, 2], axis[:, 1], -axis[:, 0]
    K = K - K.swapaxes(1, 2)
    R = np.eye(3) + sinc[:, None, None] * K + versine[:, None, None] * (K @ K)
    return R.reshape(len(x), 9)


def world(name: str, T: int, k: int = 1) -> World:
    """One of the laws above, by name."""
    if name in ("circle", "sphere"):
        return World(Sphere(1.0), T, 1, lambda x: on_sphere(x, T))
    if name == "curve":
        return World(Equations(curve_equations(T)), T, T - 1, lambda x: on_curve(x, T))
    if name == "tori":
        blocks = [(Sphere(1.0), [2 * i, 2 * i + 1]) for i in range(T // 2)]
        return World(Product(blocks), T, T // 2, lambda x: on_tori(x, T))
    if name == "affine":
        _, A = on_plane(np.zeros(1), T, k)
        return World(Affine(A, np.zeros(k)), T, k, lambda x: on_plane(x, T, k)[0])
    if name == "rotations":
        return World(Rotations(3), 9, 6, on_rotations)
    if name == "box":
        return World(Box(-1.0, 1.0), T, 0, lambda x: np.sin(waves(x, T)))
    raise ValueError(f"unknown law {name!r}; choose circle, sphere, curve, tori, affine, rotations or box")
