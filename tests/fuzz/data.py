"""Random points, tables with gaps, losses, objectives, surrogates: what the calls are fed with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from lawful.losses import Loss

from .draw import Names, rounded, scale
from .laws import Law
from .source import New, Written


class Cubic(Loss):
    """A loss with nothing but its formula."""

    def __call__(self, c, y):
        return abs(c - y) ** 3


class Cosh(Loss):
    """A loss with a derivative and no curvature."""

    def __call__(self, c, y):
        r = c - y
        return (1 + r**2) ** 0.5 - 1

    def derivative(self, c, y):
        r = c - y
        return r / (1 + r**2) ** 0.5


CUBIC = Written('type("Cubic", (lawful.losses.Loss,), {"__call__": lambda self, c, y: abs(c - y) ** 3})()', Cubic())
COSH = Written(
    'type("Cosh", (lawful.losses.Loss,), {"__call__": lambda self, c, y: (1 + (c - y) ** 2) ** 0.5 - 1,'
    ' "derivative": lambda self, c, y: (c - y) / (1 + (c - y) ** 2) ** 0.5})()',
    Cosh(),
)


# ------------------------------------------------------------------ points


def draw_points(rng: np.random.Generator, law: Law, X: np.ndarray | None, m: int) -> np.ndarray:
    """(m, T) finite points: near the law, on it, far away, at its centre, at zero, of any size, repeated."""
    near = law.middle + law.size * rng.standard_normal((m, law.T))
    kind = str(rng.choice(["near", "on", "far", "centre", "zero", "any", "mixed"], p=[0.35, 0.12, 0.13, 0.08, 0.05, 0.07, 0.2]))
    some = {
        "near": near,
        "far": law.middle + law.size * 1e6 * rng.standard_normal((m, law.T)),
        "centre": np.tile(law.middle, (m, 1)),
        "zero": np.zeros((m, law.T)),
        "any": rng.standard_normal((m, law.T)) * 10 ** rng.uniform(-12, 12, (m, 1)),
    }
    if kind in ("on", "mixed"):
        some["on"] = law.snap(near, np.zeros((m, 1)) if X is None else X, rng)
    if kind == "mixed":
        stacked = np.stack([some[k] for k in sorted(some)])
        points = stacked[rng.integers(len(stacked), size=m), np.arange(m)]
    else:
        points = some[kind]
    points = np.where(np.isfinite(points), points, near)
    if m > 1 and rng.random() < 0.15:
        points[-1] = points[0]
    return points


def draw_weights(rng: np.random.Generator, m: int, T: int) -> np.ndarray | None:
    kind = rng.choice(["none", "vector", "rows", "wide"], p=[0.45, 0.2, 0.2, 0.15])
    if kind == "none":
        return None
    if kind == "vector":
        return rounded(rng.uniform(0.1, 3, T))
    if kind == "rows":
        return rounded(rng.uniform(0.1, 3, (m, T)))
    return rounded(10 ** rng.uniform(-6, 6, (m, T)))


def dressed(rng: np.random.Generator, values: np.ndarray, names: list[str] | None, gaps: bool = False) -> Any:
    """The numbers as a DataFrame (always where columns have names), a masked array, float32, in Fortran order, read-only."""
    if names is not None:
        if gaps and rng.random() < 0.2:
            return pd.DataFrame(values, columns=names, dtype="Float64")
        return pd.DataFrame(values, columns=names)
    kind = rng.choice(["plain", "float32", "fortran", "locked", "masked", "list"], p=[0.6, 0.08, 0.08, 0.1, 0.07, 0.07])
    if kind == "float32" and np.nanmax(np.abs(values), initial=0.0) < 1e30:
        return values.astype(np.float32)
    if kind == "fortran":
        return np.asfortranarray(values)
    if kind == "locked":
        values = values.copy()
        values.flags.writeable = False
        return values
    if kind == "masked" and gaps:
        hidden = np.isnan(values)
        return np.ma.masked_array(np.where(hidden, 1e3, values), hidden)
    return values.tolist() if kind == "list" else values


def undressed(values: Any) -> Any:
    """The same numbers in float64, NaN for what is missing; column names stay."""
    if isinstance(values, pd.DataFrame):
        return pd.DataFrame(values.to_numpy(dtype=float, na_value=np.nan), columns=values.columns)
    return values.astype(float).filled(np.nan) if isinstance(values, np.ma.MaskedArray) else np.asarray(values, float)


# ------------------------------------------------------------------ training data


@dataclass
class Table:
    """Training inputs and outputs, and inputs to predict at; plain arrays beside what is handed over."""

    X: np.ndarray
    Y: np.ndarray
    Xnew: np.ndarray
    weight: np.ndarray | None
    given: tuple[Any, Any, Any]


def draw_inputs(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    X = rng.standard_normal((n, d)) * scale(rng, 0.9)
    if rng.random() < 0.15:
        X[:, 0] = X[0, 0]
    if n > 2 and rng.random() < 0.25:
        X[n // 2 :] = X[: n - n // 2]
    return X


def draw_table(rng: np.random.Generator, law: Law, names: Names, labels: bool) -> Table:
    """A few rows, with gaps; `labels`: outputs are -1 and +1."""
    n, m = int(rng.integers(2, 31)), int(rng.integers(1, 9))
    X, T = draw_inputs(rng, n, names.d), law.T
    Y = law.snap(law.middle + law.size * rng.standard_normal((n, T)), X, rng)
    Y = np.where(np.isfinite(Y), Y, law.middle) + law.size * rng.choice([0.0, 1e-3, 0.1]) * rng.standard_normal((n, T))
    if labels or "Rankings" in law.name:
        Y = np.where(rng.random((n, T)) < 0.5, 1.0, -1.0)
    elif rng.random() < 0.1:
        Y[:, rng.integers(T)] = law.middle[0]
    if rng.random() < 0.4:
        Y[rng.random((n, T)) < rng.choice([0.1, 0.3, 0.7])] = np.nan
    if rng.random() < 0.1:
        t = rng.integers(T)
        Y[1:, t] = np.nan
    Xnew = X[rng.integers(n, size=m)] + (rng.random() < 0.8) * X.std(axis=0) * rng.standard_normal((m, names.d))
    if rng.random() < 0.1:
        Xnew = Xnew * 1e6
    weight = None
    if rng.random() < 0.2:
        weight = rng.uniform(0, 2, n if rng.random() < 0.6 else (n, T))
        weight[rng.random(weight.shape) < rng.choice([0.0, 0.3])] = 0.0
    given = dressed(rng, X, names.inputs), dressed(rng, Y, names.outputs, gaps=True), dressed(rng, Xnew, names.inputs)
    # what float32 and float64 read from the same call must be the same numbers
    X, Xnew = (np.asarray(v, dtype=float) for v in (given[0], given[2]))
    return Table(X, Y, Xnew, weight, given)


SURROGATES = [
    Written("Ridge()", Ridge()),
    Written("KNeighborsRegressor(2)", KNeighborsRegressor(2)),
    Written("DecisionTreeRegressor(max_depth=3, random_state=0)", DecisionTreeRegressor(max_depth=3, random_state=0)),
]


def draw_surrogate(rng: np.random.Generator) -> Any:
    kind = rng.random()
    if kind < 0.05:
        return None
    if kind < 0.15:
        return SURROGATES[rng.integers(len(SURROGATES))]
    kernels = [
        New("lawful.kernels.Gaussian", float(rng.choice([0.3, 1.0, 3.0]))),
        New("lawful.kernels.Laplacian", 1.0),
        New("lawful.kernels.Linear"),
        New("lawful.kernels.Polynomial", 2),
    ]
    kernel = kernels[int(rng.choice(4, p=[0.7, 0.1, 0.1, 0.1]))]
    lam = float(rng.choice([1e-9, 1e-3, 1e-1, 10.0])) if rng.random() < 0.93 else "auto"
    return New("lawful.KernelRidge", kernel=kernel, lam=lam, intercept=bool(rng.random() < 0.7))


# ------------------------------------------------------------------ losses


def draw_loss(rng: np.random.Generator, law: Law) -> tuple[Any, bool]:
    """A loss and whether it wants labels -1 and +1."""
    T = law.T
    kind = rng.random()
    if kind < 0.15:
        return None, False
    if kind < 0.62:
        metric: Any = str(rng.choice(["identity", "variance", "residual", "residual_full"]))
        if rng.random() < 0.45:
            unit = 1 / np.where(law.size > 0, law.size, 1.0)
            M = np.diag(rng.uniform(0.3, 3, T))
            if rng.random() < 0.5:
                B = rng.standard_normal((T, T))
                M = B @ B.T + 0.1 * np.eye(T)
            M = unit[:, None] * (M + M.T) / 2 * unit[None, :]
            metric = np.diag(M).copy() if rng.random() < 0.4 else M
        confidence: Any = rng.choice(["scores", "variance", "none", "number"])
        return New("lawful.Square", metric=metric, confidence=0.5 if confidence == "number" else str(confidence)), False
    return _other_loss(rng, law)


def _other_loss(rng: np.random.Generator, law: Law) -> tuple[Any, bool]:
    size = float(rounded(law.size.min()))
    simple = [
        New("lawful.Absolute"),
        New("lawful.Huber", size),
        New("lawful.Pinball", float(rng.choice([0.1, 0.5, 0.9]))),
        COSH,
        CUBIC,
    ]
    kind = str(rng.choice(["simple", "labels", "zero", "mixed"], p=[0.6, 0.15, 0.1, 0.15]))
    if kind == "simple":
        return simple[rng.integers(len(simple))], False
    if kind == "labels":
        return New(str(rng.choice(["lawful.Hinge", "lawful.Logistic"]))), True
    if kind == "zero":
        return New("lawful.ZeroOne"), False
    losses = [simple[rng.integers(4)] if rng.random() < 0.8 else New("lawful.Square") for _ in range(law.T)]
    weights = rounded(rng.uniform(0.1, 3, law.T)).tolist() if rng.random() < 0.3 else None
    return New("lawful.Mixed", losses, weights), False


def draw_decoder(rng: np.random.Generator, plain: float = 0.85) -> Any:
    """None mostly, an average, an average that goes back to C, or a decoder by its class."""
    if rng.random() < plain:
        return None
    kind = str(rng.choice(["posterior", "wiener", "back", "named"]))
    if kind in ("posterior", "wiener"):
        return kind
    if kind == "back":
        return New(str(rng.choice(["lawful.Posterior", "lawful.Wiener"])), project=True, n_samples=60)
    simple = ["Newton", "ConvexDescent", "Riemannian", "Projection", "FormProjection", "Enumeration", "Coordinate", "ArcSet"]
    return New(f"lawful.decoders.{rng.choice(simple)}")
