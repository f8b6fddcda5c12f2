"""Mixtures of surrogates: weights, tables with categories and gaps, scikit-learn's conventions, the law."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from lawful import Affine, ConstrainedRegressor, ConstrainedRegressorCV, Equations, KernelRidge, Portfolio, Sphere, load
from lawful.kernels import Gaussian
from lawful.surrogates import RegressorSurrogate, Trees
from lawful.surrogates._forest import along, summed
from lawful.surrogates.encoders import Numbers
from lawful.surrogates.portfolio import bagged_weights, simplex_minimum, stack
from lawful.surrogates.trees import grown
from lawful.tasks import Tasks

RNG = np.random.default_rng(0)
N = 90
X = RNG.uniform(-1, 1, (N, 2))
STEP = np.where(X[:, 0] > 0, 1.0, -1.0) + 0.02 * RNG.standard_normal(N)
LINE = X @ [1.0, -2.0] + 0.02 * RNG.standard_normal(N)
Y = np.c_[STEP, LINE]
RIDGE = KernelRidge(Gaussian(1.0), lam=1e-3)
SMALL = Portfolio(["linear", DecisionTreeRegressor(random_state=0), RIDGE])


def table(n=N, seed=1):
    """Numbers with gaps, strings, pandas' categories; two outputs that sum to one."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(0, 4, n),
            "shop": rng.choice(["a", "b", "c"], n),
            "day": pd.Categorical(rng.choice(["week", "sunday"], n)),
        }
    )
    effect = frame["shop"].map({"a": 0.0, "b": 1.0, "c": -1.0}).to_numpy(float) + (frame["day"] == "sunday")
    y = np.sin(frame["size"].to_numpy()) / 2 + effect
    frame.loc[rng.uniform(size=n) < 0.1, "size"] = np.nan
    return frame, np.c_[y, 1 - y] + 0.05 * rng.standard_normal((n, 2))


# ---------------------------------------------------------------------- weights


def test_each_output_gets_the_member_it_needs():
    model = clone(SMALL).fit(X, Y)
    assert model.names_ == ["linear", "DecisionTreeRegressor", "KernelRidge"]
    np.testing.assert_allclose(model.weights_.sum(axis=1), 1.0)
    assert (model.weights_ >= 0).all()
    assert model.weights_[0, 1] > 0.5 and model.weights_[1, 0] + model.weights_[1, 2] > 0.95
    new = RNG.uniform(-1, 1, (300, 2))
    truth = np.c_[np.where(new[:, 0] > 0, 1.0, -1.0), new @ [1.0, -2.0]]
    errors = ((model.predict(new) - truth) ** 2).mean(axis=0) / truth.var(axis=0)
    for member in SMALL.members[1:]:
        alone = clone(member).fit(X, Y).predict(new)
        assert errors.mean() < (((alone - truth) ** 2).mean(axis=0) / truth.var(axis=0)).mean()


def test_weights_are_the_minimum_on_the_simplex():
    """SLSQP finds the same."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((6, 4)) * rng.uniform(0.5, 2, 4)
        G = A.T @ A
        found = simplex_minimum(G)
        sum_one = {"type": "eq", "fun": lambda w: w.sum() - 1}
        best = minimize(lambda w: w @ G @ w, np.full(4, 0.25), bounds=[(0, 1)] * 4, constraints=sum_one, tol=1e-12).x  # noqa: B023
        np.testing.assert_allclose(found, best, atol=1e-4)
    np.testing.assert_array_equal(simplex_minimum(np.diag([1.0, 0.0, 2.0])), [0, 1, 0])
    np.testing.assert_allclose(simplex_minimum(np.eye(3) * 1e-200), 1 / 3)
    np.testing.assert_allclose(simplex_minimum(np.diag([1.0, 1e30])), [1, 0], atol=1e-3)


def test_many_rows_decide_alone_and_few_rows_share():
    rng = np.random.default_rng(0)
    e = rng.standard_normal((4000, 2)) * [1.0, 2.0]
    np.testing.assert_allclose(bagged_weights(e, np.full(4000, 1 / 4000)), [8 / 9, 1 / 9], atol=0.03)  # (4 : 1)^1.5
    equal = rng.standard_normal((40, 3))
    assert bagged_weights(equal, np.full(40, 1 / 40)).min() > 0.1
    # a member that is the same, only worse, has no weight
    same = rng.standard_normal((30, 1)) * [1.0, 1.02]
    np.testing.assert_array_equal(bagged_weights(same, np.full(30, 1 / 30)), [1.0, 0.0])


def test_held_out_errors_are_those_of_refits():
    model = Portfolio([Ridge(0.1), DecisionTreeRegressor(random_state=0)], cv=4).fit(X, Y)
    P = np.empty((N, 2, 2))
    for train, test in model._folds(Tasks.of(X, Y)):
        for k, member in enumerate(model.members):
            P[test, :, k] = clone(member).fit(X[train], Y[train]).predict(X[test])
    np.testing.assert_allclose(model.held_out_mse_, ((P - Y[:, :, None]) ** 2).mean(axis=0))


def test_residuals_are_held_out():
    """Labels of a row do not reach its own held-out prediction: moving them far moves the residual by as much."""
    model = Portfolio([Ridge(0.1)], cv=3).fit(X, Y)
    (_, test), *_ = model._folds(Tasks.of(X, Y))
    moved = Y.copy()
    moved[test] += 100.0
    other = Portfolio([Ridge(0.1)], cv=3).fit(X, moved)
    for t in range(2):
        np.testing.assert_allclose(other.residuals()[t][test], model.residuals()[t][test] + 100.0)


def test_a_useless_member_costs_nothing():
    class Counting(DummyRegressor):
        fits = 0

        def fit(self, X, y, sample_weight=None):
            type(self).fits += 1
            return super().fit(X, y, sample_weight)

    model = Portfolio(["linear", Counting()], cv=4).fit(X, LINE)
    assert Counting.fits == 4  # the folds, and no fit on all rows
    np.testing.assert_array_equal(model.weights_, [[1.0, 0.0]])
    assert model.members_[1] is None
    np.testing.assert_allclose(model.predict(X), Portfolio(["linear"]).fit(X, LINE).predict(X))


def test_intervals_cover():
    rng = np.random.default_rng(5)
    A, B = rng.uniform(-2, 2, (150, 2)), rng.uniform(-2, 2, (2000, 2))
    truth = lambda x: np.c_[np.sin(2 * x[:, 0]), np.abs(x[:, 1])]  # noqa: E731
    noisy = lambda x: truth(x) + 0.2 * rng.standard_normal((len(x), 2))  # noqa: E731
    model = Portfolio(["linear", "trees", KernelRidge(Gaussian(1.0))]).fit(A, noisy(A))
    mean, std = model.predict(B, return_std=True)
    assert std.shape == mean.shape == (2000, 2) and (std > 0).all()
    assert 0.85 < (np.abs(noisy(B) - mean) < 1.645 * std).mean() < 0.95
    np.testing.assert_allclose(model.variance(B) * model._error, std**2)


# ---------------------------------------------------------------------- tables


def test_numbers_and_levels():
    frame = pd.DataFrame({"u": pd.array([1, None, 5], dtype="Int64"), "v": ["x", None, "y"], "w": [True, False, True]})
    encoder = Numbers().fit(frame)
    np.testing.assert_array_equal(encoder.transform(frame), [[1, 0, 1, 0, 1], [3, 1, 0, 0, 0], [5, 0, 0, 1, 1]])
    odd = pd.DataFrame({"u": [2.0], "v": ["never seen"], "w": [True]})
    np.testing.assert_array_equal(encoder.transform(odd), [[2, 0, 0, 0, 1]])
    assert Numbers(max_levels=1).fit(pd.DataFrame({"v": list("abbc")})).columns_ == [("levels", ["b"])]
    words = pd.DataFrame({"u": [1.0, np.nan] * 15, "v": ["a"] * 12 + ["b"] * 17 + ["rare"]})
    coder = Numbers(codes=True).fit(words)
    assert coder.columns_ == [("gaps", 1.0), ("levels", ["b", "a"])] and coder.coded == {1: 3} and coder.width == 2
    np.testing.assert_array_equal(coder.transform(words)[[0, 1, 12, 29]], [[1, 1], [np.nan, 1], [1, 0], [np.nan, 2]])


def test_dates_are_days_and_places_on_circles():
    days = pd.date_range("2020-01-01", periods=700, freq="D")
    frame = pd.DataFrame({"when": days, "said": days.strftime("%Y-%m-%d"), "word": "2-b"})
    frame.loc[3, "when"] = pd.NaT
    made = Numbers().fit(frame)
    found = made.transform(frame)
    assert found.shape == (700, 11) == (700, made.width)
    np.testing.assert_allclose(found[:3, :5], found[:3, 5:10])
    np.testing.assert_allclose(np.diff(found[:, 5]), 1.0)
    np.testing.assert_allclose(found[:, 8] ** 2 + found[:, 9] ** 2, 1.0)
    hours = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=60, freq="h", tz="Europe/Berlin")})
    assert Numbers().fit(hours).columns_[0][1][1:] == [1.0]
    y = np.sin(2 * np.pi * np.arange(700) / 365.2425) + 0.1 * np.random.default_rng(0).standard_normal(700)
    model = ConstrainedRegressor(surrogate="auto").fit(frame[:600], y[:600])
    assert np.mean((model.predict(frame[600:]) - np.sin(2 * np.pi * np.arange(600, 700) / 365.2425)) ** 2) < 0.01


def test_trees_are_those_of_scikit_learn_and_survive_a_file(tmp_path):
    rng = np.random.default_rng(0)
    A = np.where(rng.uniform(size=(400, 3)) < 0.1, np.nan, rng.uniform(size=(400, 3)))
    y = np.where(np.nan_to_num(A[:, 0]) > 0.5, 1.0, 0.0) + np.nan_to_num(A[:, 1])
    forest = grown(A, y, np.ones(400), 30, 0.1)
    same = HistGradientBoostingRegressor(
        learning_rate=0.1, max_iter=30, max_leaf_nodes=13, min_samples_leaf=10, l2_regularization=1.0, early_stopping=False
    ).fit(A, y)
    np.testing.assert_allclose(summed(A, *forest), same.predict(A), rtol=1e-12)
    np.testing.assert_allclose(along(A, 30, *forest)[-1], same.predict(A), rtol=1e-12)
    frame, labels = table(300)
    model = ConstrainedRegressor(Affine([[1.0, 1.0]], [1.0]), surrogate="auto").fit(frame, labels)
    model.save(tmp_path / "auto.lawful")
    again = load(tmp_path / "auto.lawful")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(again.decode(frame).std, model.decode(frame).std)
    state = model.surrogate_.members_[1].state()
    state["forests"][0][-1][4][:] = 10**6
    with pytest.raises(ValueError, match="do not fit together"):
        Trees.from_state(state)


def test_the_default_has_trees_where_they_are_clearly_better():
    rng = np.random.default_rng(0)
    A = rng.integers(0, 6, (300, 6)).astype(float)
    steps = np.where((A[:, 0] > 2) & (A[:, 1] < 3), 3.0, 0.0) + np.where(A[:, 2] > A[:, 3], 2.0, 0.0)
    new = rng.integers(0, 6, (500, 6)).astype(float)
    truth = np.where((new[:, 0] > 2) & (new[:, 1] < 3), 3.0, 0.0) + np.where(new[:, 2] > new[:, 3], 2.0, 0.0)
    model = ConstrainedRegressor().fit(A, steps + 0.3 * rng.standard_normal(300))
    assert "trees" in model.surrogate_choice_ and isinstance(model.surrogate_, Portfolio)
    kernel = KernelRidge().fit(A, steps + 0.3 * rng.standard_normal(300))
    assert np.mean((model.predict(new) - truth) ** 2) < 0.9 * np.mean((kernel.predict(new) - truth) ** 2)
    mean, std = model.predict(new, return_std=True)
    assert 0.85 < (np.abs(truth + 0.3 * rng.standard_normal(500) - mean) < 1.645 * std).mean() < 0.95
    smooth = ConstrainedRegressor().fit(A, A @ rng.standard_normal(6) + 0.1 * rng.standard_normal(300))
    assert isinstance(smooth.surrogate_, KernelRidge)


def test_a_table_reaches_trees_and_pipelines_as_it_is():
    frame, labels = table()
    seen = []

    class Looking(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            seen.append(X)
            self.mean_ = np.mean(y, axis=0)
            return self

        def predict(self, X):
            seen.append(X)
            return np.full(len(X), self.mean_)

    ConstrainedRegressor(Affine([[1.0, 1.0]], [1.0]), surrogate=Looking()).fit(frame, labels).predict(frame)
    assert seen and all(part.columns.tolist() == ["size", "shop", "day"] for part in seen)
    assert all((part.dtypes == frame.dtypes).all() for part in seen) and any(part["size"].isna().any() for part in seen)

    by_name = make_pipeline(make_column_transformer((OneHotEncoder(), ["shop", "day"])), LinearRegression())
    model = ConstrainedRegressor(Affine([[1.0, 1.0]], [1.0]), surrogate=by_name).fit(frame, labels)
    direct = clone(by_name).fit(frame, labels)
    np.testing.assert_allclose(model.objective(frame).center, direct.predict(frame), atol=1e-9)
    np.testing.assert_allclose(model.predict(frame).sum(axis=1), 1.0, atol=1e-9)


@pytest.mark.parametrize("surrogate", ["auto", Portfolio([RIDGE, "linear", "trees"])], ids=["auto", "given"])
def test_categories_and_gaps_survive(surrogate):
    frame, labels = table()
    labels[::7, 0] = np.nan
    law = Equations("y1 + y2 = 1")
    model = ConstrainedRegressor(law, surrogate=surrogate).fit(frame, labels)
    new, truth = table(400, seed=2)
    new.loc[0, "shop"] = "never seen"
    d = model.decode(new)
    assert (d.status == "ok").all()
    error = ((d.c - truth) ** 2).mean() / truth.var()
    assert error < 0.2
    # the same rows one by one, and in another order
    np.testing.assert_allclose(model.predict(new.iloc[[3]])[0], d.c[3], rtol=1e-9)
    np.testing.assert_allclose(model.predict(new[::-1]), d.c[::-1], rtol=1e-9)


def test_boosting_alone_takes_gaps_in_arrays():
    gaps = np.where(RNG.uniform(size=X.shape) < 0.1, np.nan, X)
    model = ConstrainedRegressor(surrogate=HistGradientBoostingRegressor(max_iter=20)).fit(gaps, Y)
    assert np.isfinite(model.predict(gaps)).all()
    assert model.__sklearn_tags__().input_tags.allow_nan
    assert np.isfinite(Portfolio().fit(gaps, Y).predict(gaps)).all()
    with pytest.raises(ValueError, match="NaN"):
        ConstrainedRegressor(surrogate=Ridge()).fit(gaps, Y)


def test_a_law_of_an_input_that_is_missing_is_not_certified():
    frame = pd.DataFrame(X.copy(), columns=["u", "v"])
    labels = np.c_[X[:, 0] * X[:, 1], X[:, 1]]
    frame.loc[3, "u"] = np.nan
    model = ConstrainedRegressor(Equations("y1 = u * y2"), surrogate="auto", on_failure="nan").fit(frame, labels)
    d = model.decode(frame)
    assert d.status[3] != "ok" and (np.delete(d.status, 3) == "ok").all()


def test_plain_ridges_say_what_to_do_with_categories():
    frame, labels = table()
    with pytest.raises(ValueError, match=r"KernelRidge: the columns shop, day of X hold no numbers.*encode them"):
        KernelRidge().fit(frame, labels)
    with pytest.raises(ValueError, match=r"ConstrainedRegressor: the columns shop, day .* such as \"auto\""):
        ConstrainedRegressor().fit(frame, labels)


# ---------------------------------------------------------------------- the law


def test_members_are_judged_after_the_decode():
    """A member with a large common error that the law removes beats one with a small error that it does not."""
    rng = np.random.default_rng(3)
    Z = rng.uniform(-1, 1, (200, 1))
    truth = np.c_[Z[:, 0], -Z[:, 0]]

    class Shifted(RegressorMixin, BaseEstimator):
        """The truth plus what is orthogonal to the law (`across`) or along it."""

        def __init__(self, across=True):
            self.across = across

        def fit(self, X, y):
            self.fitted_ = True
            return self

        def predict(self, X):
            away = 0.5 * np.sin(40 * X[:, :1]) if self.across else 0.2 * np.cos(33 * X[:, :1]) * [1, -1]
            return np.c_[X[:, 0], -X[:, 0]] + away

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.target_tags.multi_output = True
            return tags

    members = [Shifted(True), Shifted(False)]
    labels = truth + 0.01 * rng.standard_normal(truth.shape)
    alone = Portfolio(members).fit(Z, labels)
    assert (alone.weights_.argmax(axis=1) == 1).all()
    model = ConstrainedRegressor(Affine([[1.0, 1.0]], [0.0]), surrogate=Portfolio(members)).fit(Z, labels)
    np.testing.assert_array_equal(model.surrogate_.weights_, [[1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(model.predict(Z), truth, atol=0.01)


def test_auto_is_a_portfolio_in_searches_too():
    labels = Y / np.linalg.norm(Y, axis=1, keepdims=True)
    model = ConstrainedRegressor(Sphere(), surrogate="auto").fit(X, labels)
    assert isinstance(model.surrogate_, Portfolio) and model.surrogate_.names_ == ["kernel", "trees"]
    np.testing.assert_allclose((model.predict(X) ** 2).sum(axis=1), 1.0)
    assert clone(model).surrogate == "auto"
    search = ConstrainedRegressorCV(
        Sphere(), surrogate=Portfolio(["linear", RIDGE]), grid={"cv": [3, 4]}, cv=2, random_state=0
    ).fit(X, labels)
    assert search.best_params_["cv"] in (3, 4)
    with pytest.raises(TypeError, match='"auto"'):
        ConstrainedRegressor(surrogate="automatic").fit(X, Y)


# ---------------------------------------------------------------------- gaps, weights, odd sizes


def test_missing_outputs_and_weights():
    gaps = Y.copy()
    gaps[::3, 0] = np.nan
    gaps[1:, 1] = np.nan  # a single observation
    model = clone(SMALL).fit(X, gaps)
    assert np.isfinite(model.predict(X)).all()
    np.testing.assert_allclose(model.weights_[1], model.weights_[0])  # nothing else is known
    # weight 0 is absence
    dirty, weight = Y.copy(), np.ones(N)
    dirty[:10] += 100.0
    weight[:10] = 0.0
    one = Portfolio([Ridge(), DecisionTreeRegressor(random_state=0)]).fit(X, dirty, weight)
    two = Portfolio([Ridge(), DecisionTreeRegressor(random_state=0)]).fit(X[10:], Y[10:])
    np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_few_rows(n):
    model = clone(SMALL).fit(X[:n], Y[:n])
    assert np.isfinite(model.predict(X)).all() and np.isfinite(model.variance(X)).all()


def test_wrong_members_are_named():
    for members, words in (
        ([], "give a list such as"),
        ("kernel", "give a list such as"),
        (["forest"], "unknown member 'forest'"),
    ):
        with pytest.raises(ValueError, match=words):
            Portfolio(members).fit(X, Y)
    for cv in (1, "loo", True, 0.5):
        with pytest.raises(ValueError, match="is no number of folds"):
            Portfolio([Ridge()], cv=cv).fit(X, Y)
    for members in ([Ridge], [3]):
        with pytest.raises(TypeError, match="give instances"):
            Portfolio(members).fit(X, Y)


def test_two_of_a_kind_have_two_names():
    model = Portfolio([Ridge(1.0), Ridge(10.0), RegressorSurrogate(Ridge())]).fit(X, Y)
    assert model.names_ == ["Ridge", "Ridge 2", "RegressorSurrogate"]


# A row of weight 2 is one row to a bootstrap, and to trees that bin their inputs (scikit-learn's own fail this check too).
WEIGHTS = {"check_sample_weight_equivalence_on_dense_data": "weights and repeated rows differ for bootstraps and binned trees"}


@parametrize_with_checks(
    [Portfolio(["linear", "trees"], cv=2), ConstrainedRegressor(surrogate=Portfolio([RIDGE, "linear"], cv=2))],
    expected_failed_checks=lambda estimator: WEIGHTS if isinstance(estimator, Portfolio) else {},
)
def test_scikit_learn_estimator(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check(estimator)


def test_outputs_lend_each_other_what_they_know_of_the_members():
    """An output with five noisy rows takes the weights of the others; one with many rows keeps its own."""
    rng = np.random.default_rng(0)
    good, bad = (
        lambda n: np.c_[0.1 * rng.standard_normal(n), rng.standard_normal(n)],
        lambda n: 0.5 * rng.standard_normal((n, 2)),
    )
    share = lambda e: (e, np.full(len(e), 1 / len(e)))  # noqa: E731
    few, many = bad(5), bad(5000)
    clear = [share(good(300)) for _ in range(3)]
    assert stack([share(few), *clear])[0, 0] > 0.8 > 2 * stack([share(few)])[0, 0]
    np.testing.assert_allclose(stack([share(many), *clear])[0], stack([share(many)])[0], atol=0.1)
