"""`ConstrainedRegressor` as a user meets it: the lines of the README, ground truth, data of every shape, failures."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KernelCenterer, StandardScaler

from lawful import (
    Box,
    ConstrainedRegressor,
    DecodingError,
    DecodingWarning,
    Equations,
    Inflated,
    KernelRidge,
    NystromRidge,
    Penalized,
    PointCloud,
    Product,
    Reals,
    Sphere,
    Square,
    stack_tasks,
)  # fmt: skip
from lawful.decoders import Enumeration, Newton, Riemannian
from lawful.kernels import Gaussian, Linear
from lawful.metrics import r2, scorer

CIRCLE = "y1**2 + y2**2 = 1"
RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, (60, 1))
Y = np.hstack([np.cos(X), np.sin(X)]) + 0.05 * RNG.standard_normal((60, 2))
NEW = np.linspace(-3, 3, 41)[:, None]
ANGLES = np.linspace(0, 2 * np.pi, 20001)
DENSE = np.c_[np.cos(ANGLES), np.sin(ANGLES)]
RIDGE = KernelRidge(Gaussian(1.5), lam=1e-3)


def law(constraint=None, **options):
    return ConstrainedRegressor(constraint, **({"surrogate": RIDGE} | options))


def radius(c):
    return np.linalg.norm(c[:, :2], axis=1)


# ------------------------------------------------------------------ the lines every user writes


def test_the_first_lines():
    Y_gaps = Y.copy()
    Y_gaps[::3, 0] = np.nan
    model = ConstrainedRegressor(Equations(CIRCLE)).fit(X, Y_gaps)
    c = model.predict(NEW)
    assert c.shape == (41, 2) and np.abs((c**2).sum(axis=1) - 1).max() <= 1e-8
    assert np.abs(c - np.hstack([np.cos(NEW), np.sin(NEW)])).max() < 0.15
    d = model.decode(NEW)
    np.testing.assert_array_equal(d.c, c)
    assert {len(v) for v in (d.value, d.residual, d.status, d.iterations, d.margin)} == {41}
    assert (d.status == "ok").all() and (d.residual <= 1e-8).all() and (d.iterations >= 1).all() and (d.margin > 0).all()
    np.testing.assert_allclose(d.value, model.objective(NEW).value(c))
    frame = d.to_frame()
    columns = ["y1", "y2", "value", "residual", "status", "iterations", "margin", "law_residual", "y1_std", "y2_std"]
    assert list(frame.columns) == columns and len(frame) == 41
    assert model.score(NEW, np.hstack([np.cos(NEW), np.sin(NEW)])) > 0.98


def test_each_task_its_own_inputs():
    X1, X2 = X[:40], X[30:]
    X_all, Y_all = stack_tasks([(X1, Y[:40, 0]), (X2, Y[30:, 1])])
    c = law(Equations(CIRCLE)).fit(X_all, Y_all).predict(NEW)
    np.testing.assert_allclose(radius(c), 1.0, atol=1e-8)


def flash(n=50, names=("x1", "x2")):
    """A splitter: y1 + y2 = x1 + x2, y1*y3 + y2*y6 = 0.697616946*x1, 0 <= y1 <= 3."""
    rng = np.random.default_rng(1)
    x1, x2 = rng.uniform(1, 2, (2, n))
    y1, y3 = 0.6 * (x1 + x2), 0.3 + 0.1 * x1
    y2 = x1 + x2 - y1
    y6 = (0.697616946 * x1 - y1 * y3) / y2
    rest = [y3 + y6, y3 - y6]
    table = np.stack([y1, y2, y3, *rest, y6], axis=1)
    return pd.DataFrame(np.c_[x1, x2], columns=list(names)), pd.DataFrame(table, columns=[f"y{t + 1}" for t in range(6)])


def test_equations_in_inputs_and_outputs_of_data_frames():
    df_X, df_Y = flash()
    text = ["x1 + x2 = y1 + y2", "0.697616946*x1 = y1*y3 + y2*y6", "0 <= y1 <= 3"]
    model = law(Equations(text)).fit(df_X, df_Y)
    d = model.decode(df_X)
    assert (d.status == "ok").all() and d.residual.max() <= 1e-8
    assert model.score(df_X, df_Y) > 0.99 and model.output_names_ == list(df_Y.columns)


def test_names_of_columns_with_spaces():
    df_X, df_Y = flash(names=("feed rate", "solvent"))
    df_Y.columns = ["top", "bottom product", "a", "b", "c", "d"]
    text = ["`feed rate` + solvent = top + `bottom product`", "0.697616946*`feed rate` = top*a + `bottom product`*d"]
    model = law(Equations(text)).fit(df_X, df_Y)
    d = model.decode(df_X)
    assert d.residual.max() <= 1e-8 and list(d.to_frame().columns[:2]) == ["top", "bottom product"]
    np.testing.assert_allclose(d.c[:, :2].sum(axis=1), df_X.sum(axis=1), atol=1e-8)
    with pytest.raises(ValueError, match=r"unknown name 'bottom'.*Known names: .*bottom product"):
        law(Equations("top + bottom = solvent")).fit(df_X, df_Y)


@pytest.mark.parametrize(
    "C",
    [
        Equations(gamma=lambda c: (c**2).sum(axis=1) - 1, jacobian=None),
        Equations(gamma=lambda c: (c**2).sum(axis=1) - 1, jacobian=lambda c: 2 * c),
        Equations(gamma=lambda c, X: (c**2).sum(axis=1) - 1 - 0 * X[:, 0]),
        Equations(gamma=lambda c, X: (c**2).sum(axis=1) - 1 + 0 * X[:, 0], jacobian=lambda c, X: 2 * c[:, None, :]),
    ],
    ids=["c", "c jacobian", "c and X", "c and X jacobian"],
)
def test_callables(C):
    c = law(C).fit(X, Y).predict(NEW)
    np.testing.assert_allclose(c, law(Equations(CIRCLE)).fit(X, Y).predict(NEW), atol=1e-6)


def test_other_sets_and_other_regressors():
    Y3 = np.c_[Y, X[:, 0] ** 2 / 9]
    c = ConstrainedRegressor(Product([(Sphere(), [0, 1]), (Box(0, 1), [2])])).fit(X, Y3).predict(NEW)
    np.testing.assert_allclose(radius(c), 1.0, atol=1e-12)
    assert (c[:, 2] >= 0).all() and (c[:, 2] <= 1).all()
    forest = make_pipeline(StandardScaler(), RandomForestRegressor(10, random_state=0))
    model = ConstrainedRegressor(Sphere(), surrogate=forest).fit(X, Y)
    np.testing.assert_allclose(radius(model.predict(NEW)), 1.0, atol=1e-12)
    tube = law(Inflated(Sphere(), delta=0.02)).fit(X, 1.1 * Y).predict(NEW)
    assert (np.abs(radius(tube) - 1) <= 0.02 + 1e-12).all() and radius(tube).max() > 1.015
    free, exact = law().fit(X, 1.1 * Y).predict(NEW), law(Sphere()).fit(X, 1.1 * Y).predict(NEW)
    soft = law(Penalized(Sphere(), mu=0.5)).fit(X, 1.1 * Y).predict(NEW)
    assert (np.abs(radius(soft) - 1) <= np.abs(radius(free) - 1)).all() and np.abs(soft - exact).max() > 1e-4
    cloud = law(PointCloud(Y)).fit(X, Y).predict(NEW)
    assert {tuple(row) for row in cloud} <= {tuple(row) for row in Y}


# ------------------------------------------------------------------ ground truth


@pytest.mark.parametrize("s, lam", [(0.7, 1e-2), (2.0, 1e-4)])
def test_without_a_constraint_it_is_kernel_ridge(s, lam):
    model = ConstrainedRegressor(Reals(), surrogate=KernelRidge(Gaussian(s), lam=lam, intercept=False)).fit(X, Y)
    reference = SklearnKernelRidge(alpha=60 * lam, kernel="rbf", gamma=1 / s**2).fit(X, Y).predict(NEW)
    np.testing.assert_allclose(model.predict(NEW), reference, atol=1e-8)
    one = clone(model).fit(X, Y[:, 0])
    assert one.predict(NEW).shape == (41,)
    np.testing.assert_allclose(one.predict(NEW), reference[:, 0], atol=1e-8)


def test_with_an_intercept_it_is_kernel_ridge_on_the_centred_kernel():
    model = ConstrainedRegressor(Reals(), surrogate=KernelRidge(Gaussian(2.0), lam=1e-3)).fit(X, Y)
    center = KernelCenterer().fit(Gaussian(2.0)(X, X))
    ridge = SklearnKernelRidge(alpha=60 * 1e-3, kernel="precomputed").fit(center.transform(Gaussian(2.0)(X, X)), Y - Y.mean(0))
    reference = Y.mean(0) + ridge.predict(center.transform(Gaussian(2.0)(NEW, X)))
    np.testing.assert_allclose(model.predict(NEW), reference, atol=1e-8)


def test_the_paper_divides_by_the_sum_of_the_scores():
    """ex:ls-and-mtl: b_t(x) / a_t(x), both kernel ridge predictions, of y and of 1."""
    ridge = KernelRidge(Gaussian(0.7), lam=1e-2, intercept=False)
    model = ConstrainedRegressor(surrogate=ridge, loss=Square("identity", "scores")).fit(X, Y)
    both = SklearnKernelRidge(alpha=60 * 1e-2, kernel="rbf", gamma=1 / 0.7**2).fit(X, np.c_[Y, np.ones(60)]).predict(NEW)
    np.testing.assert_allclose(model.predict(NEW), both[:, :2] / both[:, 2:], atol=1e-8)


@pytest.mark.parametrize("ridge", [RIDGE, KernelRidge(Gaussian(1.5))], ids=["fixed", "tuned lambda"])
def test_separate_data_sets_are_separate_fits(ridge):
    X_all, Y_all = stack_tasks([(X[:30], Y[:30, 0]), (X[20:], Y[20:, 1])])
    together = ConstrainedRegressor(Reals(), surrogate=ridge).fit(X_all, Y_all).predict(NEW)
    for t, rows in enumerate((slice(0, 30), slice(20, 60))):
        alone = ConstrainedRegressor(Reals(), surrogate=ridge).fit(X[rows], Y[rows, t]).predict(NEW)
        np.testing.assert_allclose(together[:, t], alone, atol=1e-6)


@pytest.mark.parametrize(
    "loss", [Square(), Square("identity", "scores"), Square("residual_full"), Square([1.0, 9.0])], ids=repr
)
def test_cloud_sphere_and_equations_agree_on_the_circle(loss):
    a, b, c = (law(C, loss=loss).fit(X, Y).decode(NEW) for C in (PointCloud(DENSE), Sphere(), Equations(CIRCLE)))
    np.testing.assert_allclose(b.c, c.c, atol=1e-6)
    np.testing.assert_allclose(a.c, c.c, atol=1e-3)
    assert (c.value <= a.value + 1e-9).all()


# ------------------------------------------------------------------ data of every shape


def test_weights_zero_one_and_two():
    C, w = Sphere(), np.ones(60)
    w[:20], w[30:35] = 0, 2
    repeated = np.r_[np.arange(20, 60), np.arange(30, 35)]

    def fit(x, y, weight=None, loss=None):
        return law(C, loss=Square("identity") if loss is None else loss).fit(x, y, weight).predict(NEW)

    reference = fit(X[repeated], Y[repeated])
    np.testing.assert_allclose(fit(X, Y, w), reference, atol=1e-8)
    np.testing.assert_allclose(fit(X, Y, np.c_[w, w]), reference, atol=1e-8)
    hidden = Y.copy()
    hidden[:20, 0] = np.nan
    again = fit(np.r_[X, X[30:35]], np.r_[hidden, np.c_[Y[30:35, 0], np.full(5, np.nan)]])
    np.testing.assert_allclose(fit(X, Y, np.c_[w, np.ones(60)]), again, atol=1e-8)
    zeros = (w > 0).astype(float)
    np.testing.assert_allclose(fit(X, Y, zeros, Square()), fit(X[20:], Y[20:], loss=Square()), atol=1e-10)


@pytest.mark.parametrize("surrogate", [RIDGE, None], ids=["fixed", "tuned"])
def test_nothing_depends_on_order_history_or_shared_memory(surrogate):
    X0, Y0 = X.copy(), np.where(RNG.uniform(size=Y.shape) < 0.2, np.nan, Y)
    given = X0.copy(), Y0.copy()
    model = ConstrainedRegressor(Equations(CIRCLE), surrogate=surrogate).fit(*given)
    first = model.predict(NEW)
    np.testing.assert_array_equal(given[0], X0)
    np.testing.assert_array_equal(given[1], Y0)
    np.testing.assert_array_equal(model.fit(*given).predict(NEW), first)
    order = np.random.default_rng(3).permutation(60)
    np.testing.assert_allclose(
        clone(model).fit(X0[order], Y0[order]).predict(NEW), first, atol=1e-4 if surrogate is None else 1e-7
    )
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(NEW), first)
    assert repr(clone(model)) == repr(model)


@pytest.mark.parametrize("surrogate", [RIDGE, None], ids=["fixed", "tuned"])
@pytest.mark.parametrize(
    "C", [None, Sphere(), Equations(CIRCLE), PointCloud(DENSE)], ids=["reals", "sphere", "equations", "cloud"]
)
@pytest.mark.parametrize("rows", ["one", "two", "same", "duplicates", "constant"])
def test_little_data(C, surrogate, rows):
    x, y = {
        "one": (X[:1], Y[:1]),
        "two": (X[:2], Y[:2]),
        "same": (np.ones((5, 1)), Y[:5]),
        "duplicates": (np.r_[X[:4], X[:4]], np.r_[Y[:4], Y[4:8]]),
        "constant": (X[:8], np.tile([0.6, 0.8], (8, 1))),
    }[rows]
    c = ConstrainedRegressor(C, surrogate=surrogate, on_failure="raise").fit(x, y).predict(NEW)
    assert c.shape == (41, 2) and np.isfinite(c).all()
    if C is not None:
        np.testing.assert_allclose(radius(c), 1.0, atol=1e-6)
    if rows == "constant":
        np.testing.assert_allclose(c, np.tile([0.6, 0.8], (41, 1)), atol=1e-3)


def test_one_output():
    y = np.abs(np.sin(X[:, 0]))
    model = law(Equations("0 <= y1 <= 0.5")).fit(X, y)
    assert model.predict(NEW).shape == (41,) and model.predict(NEW).max() <= 0.5 + 1e-8
    assert law(Box(0, 0.5)).fit(X, y[:, None]).predict(NEW).shape == (41, 1)


# ------------------------------------------------------------------ failures

CONTRADICTION = ["y1 + y2 = 1", "y1 + y2 = 3"]


def test_on_failure():
    with pytest.warns(DecodingWarning, match="41 infeasible of 41 rows"):
        d = law(Equations(CONTRADICTION)).fit(X, Y).decode(NEW)
    assert (d.status == "infeasible").all() and np.isfinite(d.c).all()
    np.testing.assert_allclose(d.residual, 1.0, rtol=1e-6)
    with pytest.raises(DecodingError, match="infeasible"):
        law(Equations(CONTRADICTION), on_failure="raise").fit(X, Y).predict(NEW)
    assert np.isnan(law(Equations(CONTRADICTION), on_failure="nan").fit(X, Y).predict(NEW)).all()
    instead = law(Equations(CONTRADICTION), on_failure="unconstrained").fit(X, Y).decode(NEW)
    np.testing.assert_allclose(instead.c, law().fit(X, Y).predict(NEW), atol=1e-12)
    np.testing.assert_allclose(instead.value, 0.0, atol=1e-12)
    with pytest.raises(ValueError, match="on_failure='ignore' is unknown; choose one of 'warn'"):
        law(on_failure="ignore").fit(X, Y)


def test_low_confidence_where_the_scores_vanish():
    """k(x, x') = x x' gives a(0) = 0: nothing is known there, and that is said."""
    ridge = KernelRidge(Linear(0.0), lam=0.1, intercept=False)
    model = ConstrainedRegressor(Sphere(), loss=Square("identity", "scores"), surrogate=ridge).fit(np.abs(X), Y)
    with pytest.warns(DecodingWarning, match="2 low_confidence of 3 rows"):
        d = model.decode([[0.0], [1.0], [-1.0]])
    assert list(d.status) == ["low_confidence", "ok", "low_confidence"]
    np.testing.assert_allclose(radius(d.c), 1.0)


# ------------------------------------------------------------------ scikit-learn


def test_search_pipelines_and_parameters():
    order = RNG.permutation(60)
    x, y = X[order], np.where(RNG.uniform(size=Y.shape) < 0.2, np.nan, Y)[order]
    grid = {"surrogate__lam": [1e-3, 10.0], "surrogate__kernel__sigma": [0.01, 1.5]}
    search = GridSearchCV(ConstrainedRegressor(Sphere()), grid, cv=3).fit(x, y)
    assert search.best_params_ == {"surrogate__lam": 1e-3, "surrogate__kernel__sigma": 1.5}
    model = ConstrainedRegressor().set_params(surrogate__kernel__sigma=1.5, surrogate__lam=1e-3)
    np.testing.assert_allclose(model.fit(X, Y).predict(NEW), law().fit(X, Y).predict(NEW))
    delta = GridSearchCV(law(Inflated(Sphere(), 0.1)), {"constraint__delta": [0.0, 0.5]}, cv=3).fit(x, y)
    assert delta.best_params_ == {"constraint__delta": 0.0}
    pipe = make_pipeline(StandardScaler(), law(Sphere())).fit(X, Y)
    np.testing.assert_allclose(radius(pipe.predict(NEW)), 1.0)
    good = cross_val_score(law(Sphere()), x, y, cv=3, scoring=scorer(r2, greater_is_better=True))
    assert (good > 0.9).all()


def test_decoder_by_hand():
    reference = law(Sphere()).fit(X, Y).predict(NEW)
    for decoder in (Newton(), Riemannian()):
        np.testing.assert_allclose(law(Sphere(), decoder=decoder).fit(X, Y).predict(NEW), reference, atol=1e-6)
    with pytest.raises(
        TypeError, match=r"no decoder minimises the Square loss over Sphere: .*Enumeration would need Sphere\.points_"
    ):
        law(Sphere(), decoder=Enumeration()).fit(X, Y)


@pytest.mark.parametrize("surrogate", [KernelRidge(), NystromRidge(n_centers=20), "auto"])
def test_the_surrogate_of_a_fitted_model_predicts_by_itself(surrogate):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 1))
    model = ConstrainedRegressor(Sphere(), surrogate=surrogate).fit(X, np.hstack([np.cos(X), np.sin(X)]))
    assert model.surrogate_.predict(X).shape == (40, 2)
