"""Tabular problems for `regress.py --part portfolio`: kinks, steps, categories, gaps in the inputs; scikit-learn's files.

Each draws (X, Y, X_test, Y_test), X a DataFrame; test labels are without noise where the truth is known.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from problems import MADE, bundled, linnerud  # benchmarks/problems.py, beside this script
from sklearn.datasets import load_iris, load_wine

Array = np.ndarray
Draw = Callable[[int, int], tuple[pd.DataFrame, Array, pd.DataFrame, Array] | None]
N_TEST = 1000


def made(
    frame: Callable[[np.random.Generator, int], pd.DataFrame], truth: Callable[[pd.DataFrame], Array], noise: float
) -> Draw:
    def draw(n: int, seed: int):
        rng = np.random.default_rng(seed)
        X = frame(rng, n + N_TEST)
        Y = truth(X)
        noisy = Y + noise * Y.std(axis=0) * rng.standard_normal(Y.shape)
        return X[:n], noisy[:n], X[n:], Y[n:]

    return draw


def with_gaps(draw: Draw, share: float) -> Draw:
    """The same with missing inputs: the largest values of the first column, and any value at random."""

    def gappy(n: int, seed: int):
        X, Y, X_test, Y_test = draw(n, seed)
        rng = np.random.default_rng(seed + 1)
        both = pd.concat([X, X_test])
        for name in both.columns:
            both[name] = both[name].mask(rng.uniform(size=len(both)) < share)
        first = both.columns[0]
        both[first] = both[first].mask(both[first] > both[first].quantile(0.9))
        return both[:n], Y, both[n:], Y_test

    return gappy


def kept(X: pd.DataFrame, Y: Array) -> Draw:
    """Data of a file: n rows to learn from, the others to be judged on; None where fewer than 40 would be left."""

    def draw(n: int, seed: int):
        order = np.random.default_rng(seed).permutation(len(X))
        if len(X) - n < 40:
            return None
        return X.iloc[order[:n]], Y[order[:n]], X.iloc[order[n:]], Y[order[n:]]

    return draw


SHOPS = np.array(["alma", "bora", "cleo", "dune", "ekko", "fern", "gale", "hill"])
EFFECT = dict(zip(SHOPS, [0.0, 0.3, -0.5, 1.2, 0.8, -1.0, 0.1, 2.0]))
SLOPE = dict(zip(SHOPS, [1.0, 0.5, -1.0, 2.0, 0.0, 1.5, -0.5, 0.2]))


def shop(rng: np.random.Generator, n: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "amount": rng.exponential(10, n),
            "age": rng.uniform(18, 80, n),
            "shop": rng.choice(SHOPS, n, p=np.arange(8, 0, -1) / 36),
            "day": pd.Categorical(rng.choice(["week", "saturday", "sunday"], n)),
        }
    )


def prices(f: pd.DataFrame) -> Array:
    """Discounts in steps, an effect of the shop, and a slope that depends on it."""
    effect, slope = (f["shop"].map(table).to_numpy(float) for table in (EFFECT, SLOPE))
    amount, weekend = f["amount"].to_numpy(), (f["day"] != "week").to_numpy(float)
    discount = np.select([amount > 20, amount > 10, amount > 5], [0.7, 0.8, 0.9], 1.0)
    old = np.maximum(f["age"].to_numpy() - 60, 0) / 10
    return np.c_[amount * discount / 10 + effect, slope * np.minimum(amount, 15) / 10 + old + weekend]


def offsets(f: pd.DataFrame) -> Array:
    """Smooth in the numbers, plus a constant for each level."""
    effect = f["shop"].map(EFFECT).to_numpy(float)
    return np.c_[np.sin(f["age"].to_numpy() / 8) + effect, np.log1p(f["amount"].to_numpy()) + (f["day"] == "sunday")]


def numbers(d: int) -> Callable[[np.random.Generator, int], pd.DataFrame]:
    return lambda rng, n: pd.DataFrame(rng.uniform(-1, 1, (n, d)), columns=[f"u{j}" for j in range(d)])


def steps(f: pd.DataFrame) -> Array:
    u = f.to_numpy()
    return np.c_[np.floor(3 * u[:, 0]) + (u[:, 1] > 0.2) * (u[:, 2] < 0), np.sign(u[:, 3]) * np.sign(u[:, 0] + 0.3) + u[:, 4]]


def thresholds(f: pd.DataFrame) -> Array:
    u = f.to_numpy()
    return np.c_[np.where(u[:, 0] > 0, np.sin(4 * u[:, 1]), u[:, 2]), np.maximum(u[:, 3], 0) * 2 - np.abs(u[:, 1])]


def of_suite(name: str) -> Draw:
    def draw(n: int, seed: int):
        p = MADE[name].draw(n, seed)
        names = [f"u{j}" for j in range(p.X.shape[1])]
        return pd.DataFrame(p.X, columns=names), p.Y, pd.DataFrame(p.X_test, columns=names), p.Y_test

    return draw


def tables() -> dict[str, Draw]:
    iris, wine = load_iris(as_frame=True).frame, load_wine(as_frame=True).frame
    iris["species"] = iris.pop("target").map(dict(enumerate(["setosa", "versicolor", "virginica"]))).astype("category")
    wine["grape"] = wine.pop("target").map(dict(enumerate("abc"))).astype("category")
    lengths, colour = [f"petal {what} (cm)" for what in ("length", "width")], ["color_intensity", "proline"]
    out: dict[str, Draw] = {
        "prices": made(shop, prices, 0.2),
        "offsets": made(shop, offsets, 0.2),
        "steps": made(numbers(6), steps, 0.2),
        "thresholds": made(numbers(6), thresholds, 0.2),
        "prices, gaps": with_gaps(made(shop, prices, 0.2), 0.08),
        "steps, gaps": with_gaps(made(numbers(6), steps, 0.2), 0.08),
        "kinks": of_suite("kinks"),
        "friedman1": of_suite("friedman1"),
        "linear": of_suite("linear"),
        "iris": kept(iris.drop(columns=lengths), iris[lengths].to_numpy()),
        "wine": kept(wine.drop(columns=colour), wine[colour].to_numpy()),
    }
    for name, (X, Y) in bundled().items():
        if name != "wine":
            out[name] = kept(pd.DataFrame(X, columns=[f"m{j}" for j in range(X.shape[1])]), Y)
    X, Y = linnerud()
    table = pd.DataFrame(X, columns=["chins", "situps", "jumps"])
    out["linnerud"] = lambda n, seed: None if n > 60 else split(table, Y, 14, seed)
    return out


def split(X: pd.DataFrame, Y: Array, n: int, seed: int):
    order = np.random.default_rng(seed).permutation(len(X))
    return X.iloc[order[:n]], Y[order[:n]], X.iloc[order[n:]], Y[order[n:]]
