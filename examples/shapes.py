"""Curves that must be rising and convex: how unequally ink is spread over a digit (Lorenz curves).

    python examples/shapes.py

From the upper half of an image (scikit-learn's digits), how the ink of its lower half is spread over 32 pixels: the share of
the ink in the lightest 4, 8, ..., 28 of them. Such a curve rises and is convex, whatever the image, and lies between 0 and 1.
Curves that are learned from few images do not. A usual repair sorts the slopes; `Intersection([Monotone(), ConvexShape(),
Box(0, 1)])` projects.
"""

from __future__ import annotations

import numpy as np
from columns import show  # examples/columns.py, beside this script
from sklearn.datasets import load_digits

from lawful import Box, ConstrainedRegressor, ConvexShape, Intersection, KernelRidge, Monotone
from lawful.kernels import Gaussian

LAW = Intersection([Monotone(), ConvexShape(), Box(0.0, 1.0)])
AT = np.arange(4, 32, 4)


def lorenz() -> tuple[np.ndarray, np.ndarray]:
    """Upper halves (1797, 32) and the curves (1797, 7) of the lower halves."""
    images = load_digits().images
    ink = np.cumsum(np.sort(images[:, 4:].reshape(-1, 32), axis=1), axis=1)
    return images[:, :4].reshape(-1, 32), ink[:, AT - 1] / ink[:, -1:]


def sorted_slopes(c: np.ndarray) -> np.ndarray:
    """The same ends, steps in order and not negative."""
    return np.clip(c[:, :1], 0, 1) + np.c_[np.zeros(len(c)), np.cumsum(np.sort(np.maximum(np.diff(c), 0), axis=1), axis=1)]


def violation(c: np.ndarray) -> float:
    return float(max(-np.diff(c).min(), -np.diff(c, 2).min(), -c.min(), c.max() - 1, 0.0))


def run(seed: int = 0, rows: int = 40) -> dict[str, tuple[float, float]]:
    X, Y = lorenz()
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[:rows], order[rows : rows + 600]
    noisy = Y[train] + 0.03 * np.random.default_rng(seed + 1).standard_normal((rows, len(AT)))
    model = ConstrainedRegressor(LAW, surrogate=KernelRidge(Gaussian(30.0), tune="loo")).fit(X[train], noisy)
    free = model.objective(X[test]).center
    ways = {
        "one by one (no law)": free,
        "slopes sorted": sorted_slopes(free),
        "lawful: rising and convex": model.predict(X[test]),
    }
    return {name: (float(np.sqrt(np.mean((c - Y[test]) ** 2))), violation(c)) for name, c in ways.items()}


if __name__ == "__main__":
    show("Lorenz curves of 600 digits, 40 learned from", run())
