"""Displays: what they draw is true (curves obey the law, surfaces have the right area), and can be read."""

from __future__ import annotations

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.linear_model import Ridge

from figure_checks import legible
from lawful import (
    Affine,
    Ball,
    Box,
    ConstrainedRanker,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    Equations,
    PointCloud,
    Reals,
    Simplex,
    Sphere,
)
from lawful.plots import (
    ConfidenceDisplay,
    LearningCurveDisplay,
    MarginDisplay,
    PathDisplay,
    PredictionDisplay,
    RankingDisplay,
    ResidualDisplay,
    draw_law,
)
from lawful.plots.laws import tetrahedra_crossed
from lawful.surrogates import KernelRidge

matplotlib.use("agg")
BOX = np.array([[-1.5, 1.5], [-1.5, 1.5], [-1.5, 1.5]])


def circle(n=50, noise=0.1, d=1):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (n, d))
    return X, np.c_[np.cos(X[:, 0]), np.sin(X[:, 0])] + noise * rng.standard_normal((n, 2))


@pytest.fixture(scope="module")
def model():
    X, Y = circle()
    return ConstrainedRegressor(Equations("y1**2 + y2**2 = 1"), surrogate=KernelRidge(lam=1e-2)).fit(X, Y)


def flat():
    return Figure().subplots()


@pytest.fixture(autouse=True)
def closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


# ---------------------------------------------------------------------- the law itself


@pytest.mark.parametrize(
    "law",
    ["y1**2 + y2**2 = 1", "(y1**2 + y2**2)**2 = y1**2 - y2**2", "y2 = 0.2/y1", "y2 = sin(3*y1)", "y2 = tan(3*y1)", "y1 = 0.5"],
)
def test_curves_obey_the_law(law):
    C = Equations(law).fit(np.zeros((1, 2)))
    ax = flat()
    draw_law(ax, C, BOX[:2])
    assert ax.lines
    for line in ax.lines:
        x, y = np.asarray(line.get_data(), dtype=float)
        slope = np.linalg.norm(C.equality_jacobian(np.c_[x, y])[:, 0], axis=1)
        off = np.abs(C.equality(np.c_[x, y])[:, 0]) / np.maximum(slope, 0.1)
        assert off.max() < 3 * 3.0 / 240, "no part of the curve is further from the law than a few cells"


def test_a_curve_stops_where_an_inequality_forbids_it():
    C = Equations(["y1**2 + y2**2 = 1", "y1 >= 0"]).fit(np.zeros((1, 2)))
    ax = flat()
    draw_law(ax, C, BOX[:2])
    x = np.concatenate([line.get_xdata() for line in ax.lines])
    assert -0.02 < x.min() < 0.05 and x.max() > 0.99


def test_regions_points_and_nothing():
    for C, what in (
        (Ball(), "collections"),
        (Box(0, 1), "collections"),
        (PointCloud(np.eye(2)), "lines"),
        (Simplex(), "lines"),
    ):
        ax = flat()
        draw_law(ax, C.fit(np.eye(2)), BOX[:2])
        assert len(getattr(ax, what)) >= 1
    both = Equations(["y1 = 0.5", "y2 = y1"]).fit(np.zeros((3, 2)))  # two equations: a point
    ax = flat()
    draw_law(ax, both, BOX[:2])
    np.testing.assert_allclose(np.asarray(ax.lines[0].get_data())[:, 0], 0.5)
    ax = flat()
    draw_law(ax, Reals().fit(np.zeros((2, 2))), BOX[:2])
    assert not ax.lines and not ax.collections, "no law, no curve"


def test_surfaces_have_their_area():
    axis = np.linspace(-1.5, 1.5, 29)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
    for f, area in ((np.linalg.norm(points, axis=-1) - 1, 4 * np.pi), (points @ [0.0, 0.6, 0.8] - 0.1, None)):
        triangles = tetrahedra_crossed(points, f)
        sides = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
        total = np.linalg.norm(sides, axis=1).sum() / 2
        if area is None:
            np.testing.assert_allclose(triangles @ [0.0, 0.6, 0.8], 0.1, atol=1e-12)
        else:
            np.testing.assert_allclose(total, area, rtol=0.01)


def test_surfaces_and_curves_in_space():
    for law in ("y1**2 + y2**2 + y3**2 = 1", ["y1**2 + y2**2 = 1", "y3 = y1"], ["y1 + y2 + y3 = 1", "y1 >= 0"]):
        ax = Figure().add_subplot(projection="3d")
        draw_law(ax, Equations(law).fit(np.random.default_rng(0).standard_normal((20, 3))), BOX)
        assert ax.collections or ax.lines


# ---------------------------------------------------------------------- displays


def test_predictions_of_any_number_of_outputs(model):
    X, Y = circle()
    display = PredictionDisplay.from_estimator(model, X, Y)
    assert display.figure_ is display.ax_.figure
    labels = display.ax_.get_legend_handles_labels()[1]
    assert labels == ["law", "observed", "before the law", "prediction"]
    legible(display.figure_, "two outputs")
    ax = flat()
    assert PredictionDisplay.from_predictions(Y, ax=ax).ax_ is ax
    three = PredictionDisplay.from_predictions(np.c_[Y, Y[:, 0]], Affine([[1, 0, -1]]).fit(np.zeros((1, 3))))
    assert three.ax_.name == "3d"
    in_place = PredictionDisplay.from_predictions(np.c_[Y, Y[:, 0]], ax=flat())
    assert in_place.ax_.name == "3d" and len(in_place.figure_.axes) == 1
    more = PredictionDisplay.from_predictions(np.c_[Y, Y], Sphere(2**0.5).fit(np.c_[Y, Y]), names=["a", "b", "c", "d"])
    assert more.ax_.shape == (3, 3) and more.ax_[2, 0].get_xlabel() == "a"
    legible(more.figure_, "four outputs")
    assert PredictionDisplay.from_predictions(np.c_[Y, Y], ax=flat()).ax_.shape == (3, 3)
    one = PredictionDisplay.from_predictions(Y[:, 0], labels=Y[:, 0])
    assert one.ax_.get_ylabel() == "y1"
    with pytest.raises(ValueError, match="needs 3 x 3 axes"):
        PredictionDisplay.from_predictions(np.c_[Y, Y], ax=[flat(), flat()])


def test_laws_that_depend_on_x_are_drawn_for_some_rows():
    X, Y = circle(noise=0)
    law = Equations("y1**2 + y2**2 = 1 + 0.1*x1**2")
    model = ConstrainedRegressor(law, surrogate=KernelRidge(lam=1e-3)).fit(X, Y * np.sqrt(1 + 0.1 * X**2))
    display = PredictionDisplay.from_estimator(model, X)
    assert len([line for line in display.ax_.lines if line.get_color() == "#009E73"]) >= 5


def test_residuals_and_margins(model):
    X, Y = circle()
    display = ResidualDisplay.from_estimator(model, X, Y)
    assert set(display.residuals) == {"before the law", "prediction", "observed"}
    assert display.residuals["prediction"].max() < 1e-7 < np.median(display.residuals["before the law"])
    legible(display.figure_, "residuals")
    margins = MarginDisplay.from_estimator(model, X)
    assert len(margins.margin) == len(X)
    legible(margins.figure_, "margins")
    labels = MarginDisplay([0.1, 0.2, np.inf], ["ok", "low_confidence", "ok"]).plot().ax_.get_legend_handles_labels()[1]
    assert labels == ["ok (1)", "low_confidence (1)", "1 with no other solution"]


def test_confidence_maps(model):
    X, _ = circle()
    line = ConfidenceDisplay.from_estimator(model, X, what="std", resolution=12)
    assert line.values.shape == (12,) and (line.values > 0).all()
    X2, Y2 = circle(60, d=2)
    two = ConstrainedRegressor(Sphere(), surrogate=KernelRidge(lam=1e-2)).fit(X2, Y2)
    for what in ("margin", "std", "value"):
        display = ConfidenceDisplay.from_estimator(two, X2, what=what, features=["x1", 1], resolution=9)
        assert display.values.shape == (9, 9)
        legible(display.figure_, what)
    expected = two.decode(np.array([[X2[:, 0].min(), X2[:, 1].max()]])).value[0]
    np.testing.assert_allclose(display.values[-1, 0], expected)
    with pytest.raises(ValueError, match="there is no input 'x9'; choose from x1, x2"):
        ConfidenceDisplay.from_estimator(two, X2, features=["x9"])
    with pytest.raises(ValueError, match="what='size' is unknown"):
        ConfidenceDisplay.from_estimator(two, X2, what="size")


def test_paths(model):
    X, Y = circle()
    grids = {"lams": np.logspace(-6, 2, 9), "kernels": [1.0]}
    search = ConstrainedRegressorCV(Sphere(), mus=[0.1, 1, 10], cv=5, **grids).fit(X, Y)
    for parameter in ("lam", "mu"):
        display = PathDisplay.from_estimator(search, parameter)
        legible(display.figure_, parameter)
    np.testing.assert_allclose(display.errors.mean(axis=1), _means(search, "mu"))
    assert ("exact law (chosen)" in display.ax_.get_legend_handles_labels()[1]) == (search.best_params_["mu"] is None)
    with pytest.raises(ValueError, match="nothing was tried for delta; give the search a grid, deltas="):
        PathDisplay.from_estimator(search, "delta")
    tube = ConstrainedRegressorCV(Sphere(1.5), deltas=[0.1, 0.5, 3.0], norm="euclidean", cv=5, **grids).fit(X, Y)
    display = PathDisplay.from_estimator(tube, "delta")
    assert display.chosen == tube.best_params_["delta"] > 0, "the law is wrong, and a tube is better"


def _means(search, name):
    table = search.cv_results_
    values = np.unique(table[name][table["law"] == name])
    return [np.mean(table["mean_error"][(table["law"] == name) & (table[name] == v)]) for v in values]


def test_learning_curves():
    X, Y = circle(80)
    estimator = ConstrainedRegressor(Sphere(), surrogate=KernelRidge(lam=1e-2))
    display = LearningCurveDisplay.from_estimator(
        estimator, X, Y, sizes=[10, 30, 60], rivals={"linear": Ridge()}, repetitions=3
    )
    assert {name: e.shape for name, e in display.errors.items()} == dict.fromkeys(
        ("with the law", "without the law", "linear"), (3, 3)
    )
    assert display.errors["with the law"][-1].mean() < display.errors["linear"][-1].mean()
    legible(display.figure_, "learning")
    with pytest.raises(ValueError, match=r"sizes=\[100\] will not do; of 80 rows, 2 to 60 can be learned from"):
        LearningCurveDisplay.from_estimator(estimator, X, Y, sizes=[100])


def test_rankings():
    X = np.random.default_rng(0).standard_normal((40, 2))
    ranker = ConstrainedRanker().fit(X, X @ np.random.default_rng(1).standard_normal((2, 6)))
    display = RankingDisplay.from_estimator(ranker, X[:12])
    assert (np.diff(display.matrix.mean(axis=0)) >= 0).all(), "the best item on average stands first"
    assert sorted(display.items) == [str(i) for i in range(6)]
    legible(display.figure_, "positions")
    pairs = RankingDisplay.from_estimator(ranker, X[:12], query=5)
    np.testing.assert_array_equal(pairs.matrix, -pairs.matrix.T)
    above = pairs.matrix[np.triu_indices(6, 1)]
    assert above[above > 0].sum() >= -above[above < 0].sum(), "the order agrees with most of the weight"
    assert RankingDisplay.from_predictions(np.array([[0, -1, 1], [1, -1, 0]])).items[-1] == "1"


def test_matplotlib_is_not_needed_until_something_is_drawn():
    lines = """
import sys
sys.modules["matplotlib"] = None
from lawful.plots import PredictionDisplay, plot_draws
for call in (lambda: PredictionDisplay.from_predictions([[1.0, 2.0]]), lambda: plot_draws([[[1.0, 2.0]]])):
    try:
        call()
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    first, second = done.stdout.strip().splitlines()
    assert first == ("PredictionDisplay draws with matplotlib, which is not installed; pip install 'lawful[plot]' brings it")
    assert "lawful[plot]" in second
