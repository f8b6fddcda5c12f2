"""Quantiles that do not cross: the progression of diabetes, at nine levels.

    python examples/quantiles.py

Each level has a linear quantile regression of its own (scikit-learn's data and estimator), and for some patients they cross.
Sorting each row is the usual repair, and for quantiles that are given it is the right one: of two that cross, the pair in order
has the smaller pinball loss, whatever the label. `Monotone` projects, which pools what crosses and loses its spread: with equal
weights, or in the metric of the errors that quantiles of a sample have, Cov(s, t) = (min(s, t) - s t) / (f_s f_t).

Better than any repair is to learn all levels together: one regression encodes the distribution of y given x, and the pinball
losses are decoded from it over `Monotone`. The error is the pinball loss.
"""

from __future__ import annotations

import numpy as np
from columns import show  # examples/columns.py, beside this script
from scipy.stats import norm
from sklearn.datasets import load_diabetes
from sklearn.linear_model import QuantileRegressor
from sklearn.preprocessing import StandardScaler

from lawful import ConstrainedRegressor, KernelRidge, Mixed, Monotone, Pinball, project
from lawful.kernels import Linear

LEVELS = np.arange(1, 10) / 10


def pinball(q: np.ndarray, y: np.ndarray) -> float:
    left = y[:, None] - q
    return float(np.mean(np.maximum(LEVELS * left, (LEVELS - 1) * left)))


def covariance() -> np.ndarray:
    """Of the quantiles of a normal sample, up to a factor."""
    density = norm.pdf(norm.ppf(LEVELS))
    return (np.minimum.outer(LEVELS, LEVELS) - np.outer(LEVELS, LEVELS)) / np.outer(density, density)


def patients(seed: int, rows: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Standardised inputs and labels of the patients to learn from, and of the others."""
    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[:rows], order[rows:]
    scale = StandardScaler().fit(X[train])
    return scale.transform(X[train]), y[train], scale.transform(X[test]), y[test]


def one_by_one(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.stack([QuantileRegressor(quantile=t, alpha=0.0).fit(X, y).predict(new) for t in LEVELS], axis=1)


def together(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The same label nine times, each time with the loss of a level."""
    loss = Mixed([Pinball(float(t)) for t in LEVELS])
    model = ConstrainedRegressor(Monotone(), loss=loss, surrogate=KernelRidge(Linear(), tune="loo"))
    return model.fit(X, np.repeat(y[:, None], len(LEVELS), axis=1)).predict(new)


def run(seed: int = 0) -> dict[str, tuple[float, float]]:
    X, labels, new, y = patients(seed)
    q = one_by_one(X, labels, new)
    ways = {
        "one by one (no law)": q,
        "sorted": np.sort(q, axis=1),
        "lawful: Monotone, equal weights": project(q, Monotone()),
        "lawful: Monotone, in the metric of a sample": project(q, Monotone(), metric=np.linalg.inv(covariance())),
        "lawful: all levels together over Monotone": together(X, labels, new),
    }
    return {name: (pinball(c, y), float(np.maximum(-np.diff(c), 0).max())) for name, c in ways.items()}


if __name__ == "__main__":
    show("nine quantiles for 382 patients, 60 learned from; pinball loss", run())
