"""Laws whose outputs are seen with correlated and unequal noise, for `regress.py --part metrics`.

Each draws (constraint, X, Y, X_test, truth): smooth functions of two or three inputs that obey the law, and labels with noise
whose standard deviations and correlations are part of the problem. Without noise the same functions (`noise=0`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lawful import Affine, Equations, Rotations, Simplex, Sphere

Array = np.ndarray
N_TEST = 400


def waves(x: Array, k: int, seed: int, speed: float = 1.5) -> Array:
    """(n, k) smooth functions, the same for every draw."""
    rng = np.random.default_rng(seed)
    W, b = speed * rng.standard_normal((x.shape[1], k)), rng.uniform(0, 6, k)
    return np.sin(x @ W + b)


def composition(x: Array) -> Array:
    e = np.exp(1.2 * waves(x, 5, 1) + np.array([0.5, 0.0, -0.5, -1.0, 0.3]))
    return e / e.sum(axis=1, keepdims=True)


def hierarchy(x: Array) -> Array:
    """Four parts, two subtotals, one total."""
    parts = waves(x, 4, 2) + np.array([2.0, 1.0, 3.0, 0.5])
    return np.c_[parts, parts[:, 0] + parts[:, 1], parts[:, 2] + parts[:, 3], parts.sum(axis=1)]


SUMS = np.array([[1, 1, 0, 0, -1, 0, 0], [0, 0, 1, 1, 0, -1, 0], [0, 0, 0, 0, 1, 1, -1.0]])


def rotation(x: Array) -> Array:
    a, b, c = (1.2 * waves(x, 3, 3)).T
    ca, sa, cb, sb, cc, sc = np.cos(a), np.sin(a), np.cos(b), np.sin(b), np.cos(c), np.sin(c)
    zero, one = np.zeros_like(a), np.ones_like(a)
    A = np.stack([ca, -sa, zero, sa, ca, zero, zero, zero, one], axis=1).reshape(-1, 3, 3)
    B = np.stack([cb, zero, sb, zero, one, zero, -sb, zero, cb], axis=1).reshape(-1, 3, 3)
    C = np.stack([one, zero, zero, zero, cc, -sc, zero, sc, cc], axis=1).reshape(-1, 3, 3)
    return (A @ B @ C).reshape(-1, 9)


def balance(x: Array) -> Array:
    """Two streams join: flows add up, and so do flows times concentrations."""
    f, c = 2 + 0.8 * waves(x, 2, 4), 0.5 + 0.3 * waves(x, 2, 5)
    flow = f.sum(axis=1)
    return np.c_[f, flow, c, (f * c).sum(axis=1) / flow]


BALANCE = ["y1 + y2 = y3", "y1*y4 + y2*y5 = y3*y6"]


def circle(x: Array) -> Array:
    a = 2.0 * waves(x, 1, 6)[:, 0]
    return np.c_[np.cos(a), np.sin(a)]


def lemniscate(x: Array) -> Array:
    a = np.pi * x[:, 0]
    return np.c_[np.sin(a), np.sin(2 * a) / 2]


def sphere(x: Array) -> Array:
    a, b = (1.5 * waves(x, 2, 7)).T
    return np.c_[np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), np.sin(a)]


def quantiles(x: Array) -> Array:
    center, width = waves(x, 1, 8), 0.1 + 0.3 * (1 + waves(x, 1, 9))
    return center + width * np.array([-1.3, -0.7, 0.0, 0.7, 1.3])


# law: the set, its inputs, the function, relative standard deviations of the noise, correlation of neighbours
LAWS: dict[str, tuple[Callable[[], Any], int, Callable[[Array], Array], list[float], float]] = {
    "composition": (Simplex, 2, composition, [1, 1, 1, 1, 1], 0.0),
    "composition, unequal": (Simplex, 2, composition, [0.3, 1, 3, 1, 0.5], -0.2),
    "sums": (lambda: Affine(SUMS, np.zeros(3)), 2, hierarchy, [1, 1, 1, 1, 1, 1, 1], 0.0),
    "sums, unequal": (lambda: Affine(SUMS, np.zeros(3)), 2, hierarchy, [0.5, 2, 1, 0.3, 1, 3, 0.5], 0.6),
    "rotations": (Rotations, 3, rotation, [1] * 9, 0.0),
    "rotations, correlated": (Rotations, 3, rotation, [1, 1, 1, 2, 2, 2, 0.5, 0.5, 0.5], 0.5),
    "balances": (lambda: Equations(BALANCE), 2, balance, [1, 1, 1, 1, 1, 1], 0.0),
    "balances, unequal": (lambda: Equations(BALANCE), 2, balance, [0.3, 2, 1, 0.5, 3, 0.5], 0.5),
    "circle, unequal": (Sphere, 2, circle, [0.3, 3], 0.0),
    "circle, correlated": (Sphere, 2, circle, [1, 1], 0.9),
    "lemniscate": (lambda: Equations("y1**4 = y1**2 - y2**2"), 1, lemniscate, [1, 1], 0.5),
    "sphere": (Sphere, 3, sphere, [1, 1, 1], 0.4),
    "quantiles": (lambda: Equations([f"y{t} <= y{t + 1}" for t in range(1, 5)]), 2, quantiles, [1] * 5, 0.5),
    "quantiles, unequal": (lambda: Equations([f"y{t} <= y{t + 1}" for t in range(1, 5)]), 2, quantiles, [3, 1, 0.5, 1, 3], 0.3),
}


def draw(name: str, n: int, seed: int, noise: float = 0.2) -> tuple[Any, Array, Array, Array, Array]:
    """Noise is a share of the standard deviation of each output, times its own factor."""
    make, d, truth, levels, correlation = LAWS[name]
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n + N_TEST, d))
    Y = truth(x)
    T = Y.shape[1]
    R = correlation ** np.abs(np.subtract.outer(np.arange(T), np.arange(T))) if correlation > 0 else np.eye(T)
    if correlation < 0:
        R = (1 - correlation) * np.eye(T) + correlation  # all pairs
    scale = noise * Y.std(axis=0) * np.array(levels)
    e = rng.standard_normal(Y.shape) @ np.linalg.cholesky(R + 1e-9 * np.eye(T)).T
    return make(), x[:n], (Y + scale * e)[:n], x[n:], Y[n:]
