"""A table whose margins are known: cultivar and alcohol of wines, from a small sample.

    python examples/margins.py

Of 178 wines (scikit-learn's data) 40 are looked at; how many there are of each cultivar, and of each level of alcohol, is known
for all. Raking (iterative proportional fitting), the usual tool, keeps every 0 of the sample. `Margins` finds the nearest table
in the metric of the sample's errors.
"""

from __future__ import annotations

import numpy as np
from columns import show  # examples/columns.py, beside this script
from sklearn.datasets import load_wine

from lawful import Margins, project


def raked(P: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    for _ in range(1000):
        P = P * (rows / np.maximum(P.sum(axis=1), 1e-300))[:, None]
        P = P * (columns / np.maximum(P.sum(axis=0), 1e-300))[None, :]
    return P


def run(seed: int = 0, looked_at: int = 40, repetitions: int = 100) -> dict[str, tuple[float, float]]:
    """Root mean squared error of the shares, over samples."""
    wine = load_wine()
    level = np.searchsorted(np.quantile(wine.data[:, 0], [0.2, 0.4, 0.6, 0.8]), wine.data[:, 0])
    cell = wine.target * 5 + level
    truth = np.bincount(cell, minlength=15) / len(cell)
    rows, columns = truth.reshape(3, 5).sum(axis=1), truth.reshape(3, 5).sum(axis=0)
    rng = np.random.default_rng(seed)
    samples = np.stack([np.bincount(rng.permutation(cell)[:looked_at], minlength=15) / looked_at for _ in range(repetitions)])
    guess = (samples * looked_at + 15 * np.outer(rows, columns).reshape(-1)) / (looked_at + 15)  # no cell is surely 0
    law = Margins((3, 5), rows, columns)
    ways = {
        "the sample (no law)": samples,
        "raking": np.stack([raked(s.reshape(3, 5), rows, columns).reshape(-1) for s in samples]),
        "lawful: Margins, equal weights": project(samples, law),
        "lawful: Margins, in the metric of the sample": project(samples, law, weights=1 / guess),
    }
    fitted = law.fit(samples)
    return {name: (float(np.sqrt(np.mean((c - truth) ** 2))), float(fitted.residual(c).max())) for name, c in ways.items()}


if __name__ == "__main__":
    show("shares of 15 kinds of wine, 100 samples of 40", run())
