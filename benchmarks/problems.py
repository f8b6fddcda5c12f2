"""Regression problems for `regress.py`: generated, from scikit-learn's own files, and from a folder of data.

A problem draws n rows to learn from and rows to be judged on. Where the truth is known, errors are measured against it, and
`Y_seen` are labels of the test rows with noise of their own, for intervals; where it is not, both are the held-out labels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_linnerud, load_wine

from lawful.datasets import load_distillation, load_sarcos, make_arm

Array = np.ndarray
N_TEST = 1000
VARIED = [0, 1, 2, 3, 5, 6, 7, 8]  # the distillation output y5 is rounding noise


class Problem(NamedTuple):
    X: Array
    Y: Array
    X_test: Array
    Y_test: Array
    Y_seen: Array


# ---------------------------------------------------------------------- truths: f(x, fixed) -> (n, T) on x (n, d)


def sphere(x: Array) -> Array:
    """Three outputs on the unit sphere, angles from five inputs."""
    a = 1.5 * np.sin(2 * x[:, 0] + x[:, 1]) + 0.5 * x[:, 2]
    b = 2 * np.cos(1.5 * x[:, 3]) + x[:, 4] * x[:, 0]
    return np.c_[np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), np.sin(a)]


def friedman1(x: Array) -> Array:
    u = (x + 1) / 2
    return (10 * np.sin(np.pi * u[:, 0] * u[:, 1]) + 20 * (u[:, 2] - 0.5) ** 2 + 10 * u[:, 3] + 5 * u[:, 4])[:, None]


def friedman2(x: Array) -> Array:
    u = (x + 1) / 2
    a, w, c, d = 100 * u[:, 0], 2 * np.pi * (20 + 260 * u[:, 1]), u[:, 2], 1 + 10 * u[:, 3]
    reactance = w * c - 1 / (w * d)
    return np.c_[np.hypot(a, reactance), np.arctan(reactance / np.maximum(a, 1e-3))]


def smooth(x: Array) -> Array:
    return np.c_[np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1]), np.exp(-(x[:, 0] ** 2) - x[:, 1]) / 2]


def rough(x: Array) -> Array:
    """Many scales at once, none of them smooth."""
    zigzag = lambda v: np.abs((v % 2) - 1)  # noqa: E731
    return np.c_[
        sum(0.6**k * zigzag(1.7**k * (x[:, 0] + 0.5 * x[:, 1]) + k) for k in range(6)),
        sum(0.6**k * zigzag(1.7**k * (x[:, 1] - x[:, 2]) + 0.3 * k) for k in range(5)),
    ]


def sparse(x: Array) -> Array:
    return np.c_[np.sin(4 * x[:, 0]) + x[:, 1] ** 2, np.exp(x[:, 2]) * x[:, 0]]


def dense(x: Array) -> Array:
    d = x.shape[1]
    w = np.random.default_rng(1).standard_normal((d, 4)) / np.sqrt(d)
    h = x @ w
    return np.c_[np.sin(3 * h[:, 0]) + h[:, 1] * h[:, 2], np.tanh(2 * h[:, 3]) + h[:, 0] ** 2]


def additive(x: Array) -> Array:
    return np.c_[sum(np.sin((1 + k) * x[:, k] + k) / (1 + 0.3 * k) for k in range(6)), np.cos(x).sum(axis=1)]


def linear(x: Array) -> Array:
    w = np.random.default_rng(2).standard_normal((x.shape[1], 2))
    return x @ w


def kinks(x: Array) -> Array:
    return np.c_[
        np.maximum(x[:, 0] + x[:, 1], 0) - np.abs(x[:, 2] - 0.2), np.maximum(x[:, 3], x[:, 0]) + np.minimum(x[:, 1], 0.3)
    ]


def waves(x: Array) -> Array:
    return np.c_[np.sin(9 * x[:, 0]) * (1 + x[:, 0]), np.cos(5 * x[:, 0]) + 0.5 * np.sin(17 * x[:, 0])]


def unequal(x: Array) -> Array:
    """Outputs of very different smoothness, on inputs of their own."""
    return np.c_[
        x[:, 0] + 0.3 * x[:, 1] ** 2, np.sin(6 * x[:, 2]) + 0.5 * np.sin(4 * x[:, 3]), np.sin(2 * x.sum(axis=1)), x[:, 4] ** 3
    ]


def borehole(x: Array) -> Array:
    """The flow of water through a borehole, a classic of computer experiments; 8 inputs."""
    low = np.array([0.05, 100, 63070, 990, 63.1, 700, 1120, 9855])
    high = np.array([0.15, 50000, 115600, 1110, 116, 820, 1680, 12045])
    rw, r, tu, hu, tl, hl, length, kw = (low + (high - low) * (x + 1) / 2).T
    ratio = np.log(r / rw)
    return (2 * np.pi * tu * (hu - hl) / (ratio * (1 + 2 * length * tu / (ratio * rw**2 * kw) + tu / tl)))[:, None]


# ---------------------------------------------------------------------- inputs


def uniform(d: int) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, n: rng.uniform(-1, 1, (n, d))


def skewed(d: int) -> Callable[[np.random.Generator, int], Array]:
    """Few rows far out, and units that differ by thousands (the truth sees log inputs)."""
    return lambda rng, n: np.exp(1.2 * rng.standard_normal((n, d)))


def latent(d: int, k: int) -> Callable[[np.random.Generator, int], Array]:
    """d inputs that are noisy mixtures of k: strongly correlated, as measured ones are."""

    def draw(rng: np.random.Generator, n: int) -> Array:
        mix = np.random.default_rng(3).standard_normal((k, d))
        h = rng.uniform(-1, 1, (n, k))
        return np.tanh(h @ mix) + 0.05 * rng.standard_normal((n, d))

    return draw


class Made(NamedTuple):
    """A generated problem: inputs, truth, and noise as a share of the standard deviation of each output."""

    inputs: Callable[[np.random.Generator, int], Array]
    truth: Callable[[Array], Array]
    noise: float = 0.1
    heteroscedastic: bool = False

    def draw(self, n: int, seed: int, tails: str = "normal") -> Problem:
        rng = np.random.default_rng(seed)
        X, X_test = self.inputs(rng, n), self.inputs(rng, N_TEST)
        Y, Y_test = self.truth(X), self.truth(X_test)
        scale = self.noise * np.concatenate([Y, Y_test]).std(axis=0)
        return Problem(X, self._noisy(rng, X, Y, scale, tails), X_test, Y_test, self._noisy(rng, X_test, Y_test, scale, tails))

    def _noisy(self, rng: np.random.Generator, X: Array, Y: Array, scale: Array, tails: str) -> Array:
        e = rng.standard_normal(Y.shape)
        if tails.startswith("t"):
            e = rng.standard_t(int(tails[1:]), Y.shape)
        elif tails == "outliers":
            far = rng.uniform(size=Y.shape) < 0.02
            e = np.where(far, rng.choice([-1.0, 1.0], Y.shape) * rng.uniform(5, 10, Y.shape) / self.noise, e)
        if self.heteroscedastic:
            e = e * np.exp(1.5 * np.tanh(X[:, :1] / X.std(axis=0)[0])) / 1.6
        return Y + scale * e


MADE = {
    "sphere": Made(uniform(5), sphere, 0.15),
    "friedman1": Made(uniform(10), friedman1, 0.2),
    "friedman2": Made(uniform(4), friedman2, 0.1),
    "smooth": Made(uniform(2), smooth, 0.2),
    "rough": Made(uniform(3), rough, 0.1),
    "sparse": Made(uniform(20), sparse, 0.15),
    "dense": Made(uniform(15), dense, 0.1),
    "additive": Made(uniform(8), additive, 0.15),
    "linear": Made(uniform(10), linear, 0.5),
    "kinks": Made(uniform(5), kinks, 0.1),
    "waves": Made(uniform(1), waves, 0.2),
    "unequal": Made(uniform(6), unequal, 0.1),
    "borehole": Made(uniform(8), borehole, 0.05),
    "skewed": Made(skewed(4), lambda x: additive(np.c_[np.log(x), np.log(x[:, :2])]), 0.1),
    "latent": Made(latent(12, 3), lambda x: np.c_[np.sin(2 * x[:, 0]) + x[:, 1], x[:, 2] * x[:, 3]], 0.1),
    "uneven noise": Made(uniform(3), lambda x: np.c_[np.sin(3 * x[:, 0]) + x[:, 1], x[:, 1] * x[:, 2]], 0.3, True),
}


# ---------------------------------------------------------------------- scikit-learn's own files, and a folder of data


def held_out(X: Array, Y: Array, n: int, seed: int) -> Problem | None:
    """n rows to learn from, the others (at most N_TEST) to be judged on; None where fewer than 60 would be left."""
    order = np.random.default_rng(seed).permutation(len(X))
    test = order[n : n + N_TEST]
    if len(test) < 60:
        return None
    return Problem(X[order[:n]], Y[order[:n]], X[test], Y[test], Y[test])


@cache
def bundled() -> dict[str, tuple[Array, Array]]:
    """diabetes, wine (two measurements from the others) and breast cancer (three of the worst values from the means)."""
    diabetes, wine, cancer = load_diabetes(), load_wine(), load_breast_cancer()
    out = [9, 12]
    return {
        "diabetes": (diabetes.data, diabetes.target[:, None]),
        "wine": (np.delete(wine.data, out, axis=1), wine.data[:, out]),
        "cancer": (cancer.data[:, :10], cancer.data[:, [21, 24, 28]]),
    }


@cache
def linnerud() -> tuple[Array, Array]:
    """20 rows only: too few for the suite, enough for `portfolio`."""
    data = load_linnerud()
    return data.data, data.target


@cache
def measured(folder: Path) -> dict[str, tuple[Array, Array]]:
    """Sarcos, torques 1 and 3."""
    data = load_sarcos(folder / "sarcos")
    return {"sarcos": (data.X, data.Y[:, [0, 2]])}


def arm(n: int, seed: int) -> Problem:
    """Torques of a planar arm: what Sarcos is about, where its file is not at hand."""
    data = make_arm(n + N_TEST, 4, random_state=seed)
    Y = data.Y[:, [0, 2]]
    noisy = Y + 0.1 * Y.std(axis=0) * np.random.default_rng(seed).standard_normal(Y.shape)
    return Problem(data.X[:n], noisy[:n], data.X[n:], Y[n:], noisy[n:])


def column(folder: Path, n: int, seed: int) -> Problem:
    """The distillation column with 5 % noise."""
    data = load_distillation(folder / "distillation")
    rng = np.random.default_rng(seed)
    pick = rng.choice(len(data.X), n, replace=False)
    scale = 0.05 * data.Y[:, VARIED].std(axis=0)
    Y, Y_test = data.Y[pick][:, VARIED], data.Y_test[:N_TEST, VARIED]
    noisy, seen = (y + scale * rng.standard_normal(y.shape) for y in (Y, Y_test))
    return Problem(data.X[pick], noisy, data.X_test[:N_TEST], Y_test, seen)


def suite(folder: Path | None) -> dict[str, Callable[[int, int], Problem | None]]:
    """Name -> draw(n, seed), which is None where the data have too few rows."""
    out: dict[str, Callable[[int, int], Problem | None]] = {name: made.draw for name, made in MADE.items()}
    out["arm"] = arm
    tables = bundled() | (measured(folder) if folder else {})
    out |= {name: lambda n, seed, t=table: held_out(*t, n, seed) for name, table in tables.items()}
    if folder:
        out["distillation"] = lambda n, seed: column(folder, n, seed)
    return out
