"""Quantiles that do not cross: the progression of diabetes, at nine levels.

    python examples/quantiles.py

Each level has a linear quantile regression of its own (scikit-learn's data and estimator), and for some patients they cross.
Sorting each row is the usual repair; `Monotone` projects it, which pools what crosses: with equal weights, or in the metric of
the errors that quantiles of a sample have, Cov(s, t) = (min(s, t) - s t) / (f_s f_t). The error is the pinball loss.
"""

from __future__ import annotations

import numpy as np
from columns import show  # examples/columns.py, beside this script
from scipy.stats import norm
from sklearn.datasets import load_diabetes
from sklearn.linear_model import QuantileRegressor
from sklearn.preprocessing import StandardScaler

from lawful import Monotone, project

LEVELS = np.arange(1, 10) / 10


def pinball(q: np.ndarray, y: np.ndarray) -> float:
    left = y[:, None] - q
    return float(np.mean(np.maximum(LEVELS * left, (LEVELS - 1) * left)))


def covariance() -> np.ndarray:
    """Of the quantiles of a normal sample, up to a factor."""
    density = norm.pdf(norm.ppf(LEVELS))
    return (np.minimum.outer(LEVELS, LEVELS) - np.outer(LEVELS, LEVELS)) / np.outer(density, density)


def predicted(seed: int, rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles (m, 9) of the patients that were not learned from, and their labels."""
    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[:rows], order[rows:]
    scale = StandardScaler().fit(X[train])
    A, B = scale.transform(X[train]), scale.transform(X[test])
    return np.stack([QuantileRegressor(quantile=t, alpha=0.0).fit(A, y[train]).predict(B) for t in LEVELS], axis=1), y[test]


def run(seed: int = 0) -> dict[str, tuple[float, float]]:
    q, y = predicted(seed)
    ways = {
        "one by one (no law)": q,
        "sorted": np.sort(q, axis=1),
        "lawful: Monotone, equal weights": project(q, Monotone()),
        "lawful: Monotone, in the metric of a sample": project(q, Monotone(), metric=np.linalg.inv(covariance())),
    }
    return {name: (pinball(c, y), float(np.maximum(-np.diff(c), 0).max())) for name, c in ways.items()}


if __name__ == "__main__":
    show("nine quantiles for 382 patients, 60 learned from; pinball loss", run())
