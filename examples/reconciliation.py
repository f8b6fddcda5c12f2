"""Series that add up: the ink of handwritten digits, learned at three levels of detail.

    python examples/reconciliation.py

From the upper half of an image (scikit-learn's digits) the ink in the lower half is predicted: all of it, in its two quarters,
and in its eight blocks of 2 x 2 pixels. Details are known for few images only, sums for many, as with figures of regions and of
a country. Each series has its own base forecast; these do not add up. MinT, the usual tool, reconciles them with the
covariance of their residuals; bottom-up adds the details.
"""

from __future__ import annotations

import numpy as np
from columns import show  # examples/columns.py, beside this script
from sklearn.datasets import load_digits

from lawful import ConstrainedRegressor, Hierarchy, KernelRidge, Square
from lawful.kernels import Gaussian

BLOCKS = [f"{side}{k}" for side in ("left", "right") for k in range(4)]
GROUPS = {"all": ["left", "right"], "left": BLOCKS[:4], "right": BLOCKS[4:]}
SERIES = ["all", "left", "right", *BLOCKS]


def ink() -> tuple[np.ndarray, np.ndarray]:
    """Upper halves (1797, 32) and the ink (1797, 11) of the lower halves."""
    images = load_digits().images
    blocks = images[:, 4:].reshape(-1, 2, 2, 2, 2, 2).sum(axis=(2, 5))  # rows of blocks, side, column of the side
    bottom = blocks.transpose(0, 2, 1, 3).reshape(len(images), 8)
    return images[:, :4].reshape(-1, 32), bottom @ Hierarchy.from_groups(GROUPS, SERIES).S.T


def mint(S: np.ndarray, W: np.ndarray, base: np.ndarray) -> np.ndarray:
    Q = np.linalg.inv(W)
    return base @ (S @ np.linalg.solve(S.T @ Q @ S, S.T @ Q)).T


def run(seed: int = 0, detailed: int = 60, rows: int = 500) -> dict[str, tuple[float, float]]:
    """Root mean squared error in units of each series, averaged over them, and the largest violation."""
    X, Y = ink()
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[:rows], order[rows : rows + 600]
    labels = Y[train].copy()
    labels[detailed:, 3:] = np.nan
    law = Hierarchy.from_groups(GROUPS, SERIES)
    S = law.S
    ridge = KernelRidge(Gaussian(30.0), tune="loo")
    full, auto = (
        ConstrainedRegressor(law, loss=Square(metric), surrogate=ridge).fit(X[train], labels)
        for metric in ("residual_full", "auto")
    )
    base = full.objective(X[test]).center
    residuals = np.full(labels.shape, np.nan)
    for t, found in enumerate(full.surrogate_.residuals()):
        residuals[np.isfinite(labels[:, t]), t] = found
    ways = {"base forecasts (no law)": base, "bottom-up": base[:, 3:] @ S.T}
    for method in ("ols", "wls_struct", "wls_var", "shrink"):
        ways[f"MinT, {method}"] = mint(S, law.covariance(residuals, method), base)
    same = mint(S, np.linalg.inv(full.loss_.metric_), base)
    ways["MinT, the covariance that lawful found"] = same
    ways["lawful: Hierarchy, residual_full"] = full.predict(X[test])
    ways["lawful: Hierarchy, auto (the default)"] = auto.predict(X[test])
    off = np.abs(ways["lawful: Hierarchy, residual_full"] - same).max()
    errors = {name: _judged(c, Y[test], S) for name, c in ways.items()}
    return errors | {"largest difference to that MinT": (off, 0.0)}


def _judged(c: np.ndarray, truth: np.ndarray, S: np.ndarray) -> tuple[float, float]:
    return float(np.mean(np.sqrt(np.mean((c - truth) ** 2, axis=0)) / truth.std(axis=0))), float(
        np.abs(c - c[:, 3:] @ S.T).max()
    )


if __name__ == "__main__":
    show("ink of 600 digits, 500 learned from, details of 60", run())
