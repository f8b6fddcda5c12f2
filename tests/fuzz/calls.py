"""The verbs as calls that can be made, made again on some of the rows, and printed."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import array_api_strict as strict
import numpy as np

import lawful
from lawful.decoders import Decoding, decode

from . import data
from .draw import Names
from .laws import Law, Named
from .source import Handed, New, Written, build, source

HEADER = """import numpy as np, pandas as pd, lawful
from numpy import sin, cos, tan, sinh, cosh, tanh, exp, log, sqrt, abs
from numpy import arcsin as asin, arccos as acos, arctan as atan, arctan2 as atan2
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor
def derivative(f, h=1e-6):  # the suite itself uses the exact derivative
    def J(c, *X):
        steps = h * np.maximum(1, abs(c)).max() * np.eye(c.shape[1])
        return np.stack([(f(c + s, *X) - f(c - s, *X)) / (2 * s.max()) for s in steps], axis=2)
    return (lambda c: J(c)) if f.__code__.co_argcount == 1 else (lambda c, X: J(c, X))"""


@dataclass
class Call:
    """One use of a verb. `run` makes it; `again(rows)` makes it for some rows with the same fitted model."""

    law: Law
    names: Names
    X: np.ndarray | None = None  # inputs of the rows that are decoded

    verb = ""
    model: Any = None

    def run(self, handed: Handed) -> Decoding:
        raise NotImplementedError

    def again(self, rows: np.ndarray) -> Decoding:
        raise NotImplementedError

    def bound(self) -> Any:
        """The library's set for the rows that were decoded."""
        raise NotImplementedError

    def promised(self) -> bool:
        """Whether the law as it was written is the law of the answers."""
        return True

    def kept(self) -> bool:
        """Whether rows that did not converge still hold what was found for them."""
        return True

    def value(self, c: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray | None:
        """F(c) of all rows, or of these rows, where it is known without the library."""
        return None

    def weights(self) -> np.ndarray | None:
        """The objective's weights (m, T) or (m, T, T), where they are known."""
        return None

    def blur(self, rows: np.ndarray) -> float:
        """How much the objective itself depends on the company of a row: sums of many terms are rounded as BLAS pleases."""
        return 0.0

    def lines(self) -> list[str]:
        raise NotImplementedError


def at(C: Any, X: np.ndarray | None) -> Any:
    return C if X is None else C.at(X)


def fitted(law: Law, names: Names, Y: np.ndarray, handed: Handed) -> Any:
    """The library's set, fitted to some outputs."""
    return build(law.new, handed).fit(Y, outputs=names.outputs, inputs=names.inputs)


def fit_line(law: Law, names: Names, Y: np.ndarray) -> str:
    return f"C = {law.new}.fit({source(Y)}, outputs={names.outputs!r}, inputs={names.inputs!r})"


@dataclass
class ProjectCall(Call):
    """lawful.project(points, C, weights, X)."""

    points: Any = None
    weight: np.ndarray | None = None
    shared: Any = None  # a set that is fitted already, and how it was made
    made: str = ""
    given_X: Any = None

    verb = "project"

    def run(self, handed):
        C = self.shared if self.shared is not None else build(self.law.new, handed)
        points, weight, X = (build(v, handed) for v in (self.points, self.weight, self.given_X))
        return lawful.project(points, C, weights=weight, X=X, certificate=True)

    def _plain(self):
        p = np.asarray(self.points, float)
        return p, np.broadcast_to(np.ones(self.law.T) if self.weight is None else self.weight, p.shape)

    def again(self, rows):
        if self.shared is None:
            return None
        p, a = self._plain()
        return lawful.project(
            p[rows], self.shared, weights=a[rows], X=None if self.X is None else self.X[rows], certificate=True
        )

    def bound(self):
        C = self.shared if self.shared is not None else fitted(self.law, self.names, self._plain()[0], Handed())
        return at(C, self.X)

    def value(self, c, rows=None):
        p, a = (v if rows is None else v[rows] for v in self._plain())
        with np.errstate(all="ignore"):
            return None if self.law.free else np.sum(a * (c - p) ** 2, axis=1)

    def weights(self):
        return self._plain()[1]

    def lines(self):
        head = [self.made] if self.made else [f"C = {self.law.new}"]
        given = [source(self.points), "C", f"weights={source(self.weight)}", f"X={source(self.given_X)}", "certificate=True"]
        return [*head, f"d = lawful.project({', '.join(given)})"]


@dataclass
class DecodeCall(Call):
    """decoders.decode(F, C.at(X), decoder), F one of the objectives, on numpy or on another array library."""

    kind: str = "Quadratic"
    arrays: tuple[Any, ...] = ()
    shared: Any = None
    made: str = ""
    decoder: Any = None
    library: str = "numpy"

    verb = "decode"

    def _objective(self, arrays, handed):
        return New(f"lawful.losses.{self.kind}", *arrays).build(handed)

    def _solve(self, arrays, X, handed):
        decoder = build(self.decoder, handed)
        if self.library == "strict":
            arrays = tuple(strict.asarray(v) for v in arrays)
            F = getattr(lawful.losses, self.kind)(*arrays)
            d = decode(F, at(self.shared, None if X is None else strict.asarray(X)), decoder)
            return d.with_(**{f.name: np.asarray(getattr(d, f.name)) for f in fields(d) if f.name != "names"})
        return decode(self._objective(arrays, handed), at(self.shared, X), decoder)

    def run(self, handed):
        return self._solve(self.arrays, self.X, handed)

    def _rows(self, rows):
        if self.kind in ("Objective", "SmoothObjective"):
            losses, scores, atoms = self.arrays
            return losses, [s[rows] for s in scores], atoms
        return tuple(v[rows] for v in self.arrays)

    def again(self, rows):
        return self._solve(self._rows(rows), None if self.X is None else self.X[rows], Handed())

    def bound(self):
        return at(self.shared, self.X)

    def value(self, c, rows=None):
        if self.law.free or self.kind not in ("Quadratic", "QuadraticForm"):
            return None
        first, second = (v if rows is None else v[rows] for v in self.arrays)
        with np.errstate(all="ignore"):
            if self.kind == "Quadratic":
                a, b = first, second
                w = np.where(a > 0, b / np.where(a > 0, a, 1), 0)
                return np.sum(np.where(a > 0, a * (c - w) ** 2, a * c**2 - 2 * b * c), axis=1)
            return np.einsum("mt,mts,ms->m", c - second, first, c - second)

    def weights(self):
        return self.arrays[0] if self.kind in ("Quadratic", "QuadraticForm") else None

    def lines(self):
        F = f"F = {New(f'lawful.losses.{self.kind}', *self.arrays)}"
        if self.library == "strict":
            F += "  # with every array as array_api_strict.asarray(...)"
        C = "C" if self.X is None else f"C.at({source(self.X)})"
        return [self.made, F, f"d = lawful.decoders.decode(F, {C}, {source(self.decoder)})"]


@dataclass
class FitCall(Call):
    """ConstrainedRegressor(...).fit(X, Y).decode(Xnew)."""

    table: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    search: bool = False

    verb = "fit"

    def _new(self):
        return New(
            "lawful.ConstrainedRegressorCV" if self.search else "lawful.ConstrainedRegressor", self.law.new, **self.options
        )

    def run(self, handed):
        self.model = self._new().build(handed)
        X, Y, Xnew = (build(v, handed) for v in self.table.given)
        self.model.fit(X, Y, sample_weight=build(self.table.weight, handed))
        return self.model.decode(Xnew)

    def _some(self, rows):
        Xnew = self.table.given[2]
        return Xnew.iloc[rows] if hasattr(Xnew, "iloc") else np.asarray(Xnew, float)[rows]

    def _regressor(self):
        return self.model.best_estimator_ if self.search else self.model

    def again(self, rows):
        return self.model.decode(self._some(rows))

    def blur(self, rows):
        """Of the prediction, and of its weights: a variance is what is left when nearly everything cancels."""
        together, apart = self._regressor().objective(self.table.given[2]), self._regressor().objective(self._some(rows))
        center = together.center[rows]
        with np.errstate(all="ignore"):
            blurs = [np.abs(center - apart.center) / (np.abs(center) + self.law.size)]
            if hasattr(together, "softened"):  # a quadratic
                weight, other = together.curvature(together.center)[rows], apart.curvature(apart.center)
                blurs.append(np.abs(weight - other) / np.abs(weight))
            return float(np.nanmax(blurs, initial=0.0))

    def bound(self):
        return self._regressor().constraint_.at(self.X)

    def plainly(self):
        """The same numbers as plain float64 tables with NaN for gaps; None where they were that already."""
        given = self.table.given
        plain = tuple(data.undressed(v) for v in given)
        if all(type(v) is type(p) and getattr(v, "dtype", None) == getattr(p, "dtype", None) for v, p in zip(given, plain)):
            return None
        model = self._new().build(Handed())
        return model.fit(*plain[:2], sample_weight=self.table.weight).decode(plain[2])

    def with_diagonal(self):
        """The same with the weights of the metric written as a diagonal matrix; None where there are none."""
        metric = self.options["loss"].kwargs.get("metric") if isinstance(self.options["loss"], New) else None
        if not isinstance(metric, np.ndarray) or metric.ndim != 1:
            return None
        loss = New("lawful.Square", **{**self.options["loss"].kwargs, "metric": np.diag(metric)})
        model = New(self._new().path, self.law.new, **{**self.options, "loss": loss}).build(Handed())
        X, Y, Xnew = self.table.given
        return model.fit(X, Y, sample_weight=self.table.weight).decode(Xnew)

    def promised(self):
        chosen = self.model.best_params_ if self.search else {}
        return chosen.get("delta") is None and chosen.get("mu") is None

    def kept(self):
        return self.options["on_failure"] in ("warn", "raise")

    def lines(self):
        X, Y, Xnew = map(source, self.table.given)
        return [
            f"model = {self._new()}",
            f"model.fit({X}, {Y}, sample_weight={source(self.table.weight)})",
            f"d = model.decode({Xnew})",
        ]


@dataclass
class RefitCall(Call):
    """A set that had another law before: set_params(...).fit(Y) must leave nothing of it."""

    former: New | None = None
    fresh: Any = None
    outputs: np.ndarray | None = None
    points: np.ndarray | None = None

    verb = "refit"

    def run(self, handed):
        C = build(self.former, handed)
        C.fit(build(self.outputs, handed), outputs=self.names.outputs, inputs=self.names.inputs)
        lawful.project(build(self.points, handed), C, X=build(self.X, handed), certificate=True)  # so that caches are filled
        keep = {k: None for k in C.get_params(deep=False)}
        new = build(self.law.new, handed).get_params(deep=False)
        C.set_params(**{**keep, **new}).fit(self.outputs, outputs=self.names.outputs, inputs=self.names.inputs)
        self.model = C
        return lawful.project(self.points, C, X=self.X, certificate=True)

    def again(self, rows):
        X = None if self.X is None else self.X[rows]
        return lawful.project(self.points[rows], self.fresh, X=X, certificate=True)

    def bound(self):
        return at(self.model, self.X)

    def value(self, c, rows=None):
        points = self.points if rows is None else self.points[rows]
        with np.errstate(all="ignore"):
            return None if self.law.free else np.sum((c - points) ** 2, axis=1)

    def weights(self):
        return np.ones(self.points.shape)

    def lines(self):
        fit = f"fit({source(self.outputs)}, outputs={self.names.outputs!r}, inputs={self.names.inputs!r})"
        p, X = source(self.points), source(self.X)
        return [
            f"C = {self.former}.{fit}",
            f"lawful.project({p}, C, X={X})",
            f"C.set_params(**{self.law.new}.get_params(deep=False)).{fit}",
            f"d = lawful.project({p}, C, X={X}, certificate=True)",
        ]


# ------------------------------------------------------------------ drawing


def draw_project(rng: np.random.Generator, law: Law, names: Names, shared: Any, made: str) -> Call:
    m = int(rng.integers(1, 7))
    X = rng.standard_normal((m, names.d)) if law.uses_x or rng.random() < 0.1 else None
    points = data.draw_points(rng, law, X, m)
    weight = data.draw_weights(rng, m, law.T)
    if shared is not None:
        given = data.dressed(rng, points, None)
        shown = None if X is None else data.dressed(rng, X, None)
    else:
        given = data.dressed(rng, points, names.outputs)
        shown = None if X is None else data.dressed(rng, X, names.inputs)
    X = None if shown is None else np.asarray(shown, float)
    return ProjectCall(law, names, X, points=given, weight=weight, shared=shared, made=made, given_X=shown)


def draw_decode(rng: np.random.Generator, law: Law, names: Names, shared: Any, made: str) -> Call:
    m, T = int(rng.integers(1, 7)), law.T
    X = rng.standard_normal((m, names.d)) if law.uses_x else None
    points = data.draw_points(rng, law, X, m)
    kind = str(rng.choice(["Quadratic", "QuadraticForm", "table"], p=[0.6, 0.28, 0.12]))
    unit = 1 / np.where(law.size > 0, law.size, 1.0) if rng.random() < 0.5 else np.ones(T)
    if kind == "Quadratic":
        a = rng.uniform(0.1, 3, (m, T)) * unit**2
        if rng.random() < 0.35:
            a = a * rng.choice([1.0, 1.0, -1.0, 0.0, 1e-9], size=(m, T))
        arrays: tuple[Any, ...] = (a, np.where(a != 0, a, unit**2) * points)
    elif kind == "QuadraticForm":
        B = rng.standard_normal((m, T, int(rng.integers(1, T + 2)))) * unit[:, None]
        Q = B @ B.transpose(0, 2, 1) + (rng.random() < 0.7) * 0.1 * np.diag(unit**2)
        arrays = ((Q + Q.transpose(0, 2, 1)) / 2, points)
    else:
        arrays, kind = _scores(rng, law, points)
    decoder = data.draw_decoder(rng)
    quick = isinstance(law, Named) and decoder is None and kind in ("Quadratic", "QuadraticForm")  # strict arrays are slow
    library = "strict" if quick and rng.random() < 0.08 else "numpy"
    return DecodeCall(law, names, X, kind=kind, arrays=arrays, shared=shared, made=made, decoder=decoder, library=library)


def _scores(rng, law, points):
    """A table of scores: each row mixes a few atoms around its point."""
    m, T = points.shape
    losses, labels = [], False
    while len(losses) < T:
        loss, labels = data._other_loss(rng, law)
        same = [loss] if not (isinstance(loss, New) and loss.path == "lawful.Mixed") else loss.args[0]
        losses = (same * T)[:T] if not isinstance(loss, Written) or rng.random() < 0.3 else []
    k = int(rng.integers(1, 6))
    atoms = [
        np.unique(np.array([-1.0, 1.0]) if labels else points[0, t] + law.size[t] * rng.standard_normal(k)) for t in range(T)
    ]
    scores = [rng.uniform(0, 1, (m, len(y))) for y in atoms]
    if rng.random() < 0.3:
        scores = [s - 0.3 for s in scores]
    smooth = all(hasattr(build(loss, Handed()), "derivative") for loss in losses)
    return (losses, scores, atoms), "SmoothObjective" if smooth else "Objective"


def draw_fit(rng: np.random.Generator, law: Law, names: Names) -> Call:
    loss, labels = data.draw_loss(rng, law)
    table = data.draw_table(rng, law, names, labels)
    decoder = data.draw_decoder(rng, 0.92)
    failure = str(rng.choice(["warn", "raise", "nan", "unconstrained"], p=[0.6, 0.1, 0.15, 0.15]))
    if rng.random() < 0.02:
        options: dict[str, Any] = {"kernels": [1.0], "lams": [1e-3, 0.1], "cv": 2, "loss": loss, "on_failure": failure}
        if rng.random() < 0.5:
            options["deltas" if rng.random() < 0.5 else "mus"] = [0.1, 1.0]
        return FitCall(law, names, table.Xnew, table=table, options=options, search=True)
    options = {"loss": loss, "surrogate": data.draw_surrogate(rng), "decoder": decoder, "on_failure": failure}
    return FitCall(law, names, table.Xnew, table=table, options=options)
