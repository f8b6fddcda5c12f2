"""Shares that add up to 1, with zeros: where the ink of a digit is.

    python examples/compositions.py

From the upper half of an image (scikit-learn's digits) the shares of the eight columns in the ink of its lower half are
predicted. A third of them is 0, which log-ratios, the usual tool, cannot say: zeros are replaced by a small share first.
"""

from __future__ import annotations

import numpy as np
from columns import show  # examples/columns.py, beside this script
from sklearn.datasets import load_digits

from lawful import ConstrainedRegressor, KernelRidge, Reals, Simplex
from lawful.kernels import Gaussian

LEAST = (1e-1, 1e-2, 1e-3)  # shares that stand for 0


def shares() -> tuple[np.ndarray, np.ndarray]:
    images = load_digits().images
    columns = images[:, 4:].sum(axis=1)
    return images[:, :4].reshape(-1, 32), columns / columns.sum(axis=1, keepdims=True)


def by_log_ratios(X: np.ndarray, Y: np.ndarray, new: np.ndarray, least: float) -> np.ndarray:
    """Centred log-ratios, multiplicative replacement of zeros, and back."""
    filled = np.where(least > Y, least, Y)
    logs = np.log(filled / filled.sum(axis=1, keepdims=True))
    logs -= logs.mean(axis=1, keepdims=True)
    found = np.exp(ConstrainedRegressor(Reals(), surrogate=KernelRidge(Gaussian(30.0), tune="loo")).fit(X, logs).predict(new))
    return found / found.sum(axis=1, keepdims=True)


def run(seed: int = 0, rows: int = 150) -> dict[str, tuple[float, float]]:
    X, Y = shares()
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[:rows], order[rows : rows + 600]
    model = ConstrainedRegressor(Simplex(), surrogate=KernelRidge(Gaussian(30.0), tune="loo")).fit(X[train], Y[train])
    ways = {"one by one (no law)": model.objective(X[test]).center}
    ways |= {f"log-ratios, {least:g} for 0": by_log_ratios(X[train], Y[train], X[test], least) for least in LEAST}
    ways["lawful: Simplex"] = model.predict(X[test])
    return {name: _judged(c, Y[test]) for name, c in ways.items()}


def _judged(c: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    return float(np.sqrt(np.mean((c - truth) ** 2))), float(max(np.abs(c.sum(axis=1) - 1).max(), -c.min(), 0.0))


if __name__ == "__main__":
    show("shares of eight columns in 600 digits, 150 learned from", run())
