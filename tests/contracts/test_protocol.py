"""What every surrogate and every estimator keeps: a list of objects times a list of properties."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from lawful import (
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    Equations,
    Huber,
    KernelRidge,
    NystromRidge,
    PointCloud,
    Sphere,
    Square,
)
from lawful.baselines import MeanRegularized, SingleTask, WienerShrinkage
from lawful.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial, Precomputed
from lawful.surrogates import Portfolio, RegressorSurrogate, Surrogate
from lawful.tasks import Tasks

RNG = np.random.default_rng(0)
N = 36
X = RNG.uniform(-2, 2, (N, 2))
X[5] = X[6]  # equal inputs
XNEW = RNG.uniform(-2, 2, (9, 2))
Y = np.c_[np.cos(X[:, 0]), np.sin(X[:, 0])] + 0.05 * RNG.standard_normal((N, 2))
Y[RNG.uniform(size=Y.shape) < 0.15] = np.nan
W = RNG.uniform(0.5, 2.0, Y.shape)
FOLDS = [(np.arange(12, N), np.arange(12)), (np.arange(0, 24), np.arange(24, N)), (np.arange(1, N), np.arange(1))]

RIDGES = {
    "tuned": KernelRidge(),
    "tuned lambda": KernelRidge(Matern(2.5, 2.0), intercept=False),
    "rate": KernelRidge(Gaussian(1.5), lam="rate"),
    "one lambda": KernelRidge(Gaussian(1.5), lam=1e-3),
    "two lambdas": KernelRidge(Laplacian(1.5), lam=[1e-3, 1e-2]),
    "two kernels": KernelRidge([Gaussian(1.0), Matern(1.5, 2.0)], lam=1e-3),
    "fixed intercept": KernelRidge(Gaussian(1.5), lam=1e-3, intercept=[0.1, -0.2]),
    "features": KernelRidge(Linear(), lam=1e-2),
    "polynomial": KernelRidge(Polynomial(3), lam=1e-2),
}
OTHERS = {
    "least squares": RegressorSurrogate(Ridge(0.1)),
    "pipeline, one output at a time": RegressorSurrogate(make_pipeline(StandardScaler(), SVR(C=10))),
    "forest": RegressorSurrogate(RandomForestRegressor(8, random_state=0), cv=3),
    "portfolio": Portfolio([KernelRidge(Gaussian(1.5), lam=1e-3), Ridge(0.1)], cv=3),
    "centres": NystromRidge(Gaussian(1.5), lam=1e-3, n_centers=20),
    "centres, lambda by generalised cross-validation": NystromRidge(Matern(2.5, 1.5), n_centers=20, centers="leverage"),
    "centres, conjugate gradients": NystromRidge(Gaussian(1.5), lam=1e-3, n_centers=20, solver="cg", tol=1e-11),
}
SURROGATES = RIDGES | OTHERS
each_surrogate = pytest.mark.parametrize("surrogate", SURROGATES.values(), ids=SURROGATES.keys())
each_ridge = pytest.mark.parametrize("surrogate", RIDGES.values(), ids=RIDGES.keys())

RIDGE = KernelRidge(Gaussian(1.5), lam=1e-3)
ESTIMATORS = {
    "ridge": KernelRidge(),
    "sphere": ConstrainedRegressor(Sphere(), surrogate=RIDGE),
    "equations, full metric": ConstrainedRegressor(
        Equations("y1**2 + y2**2 = 1"), loss=Square("residual_full", "variance"), surrogate=RIDGE
    ),
    "cloud of the labels": ConstrainedRegressor(PointCloud(), loss=Huber(0.2), surrogate=RIDGE),
    "another surrogate": ConstrainedRegressor(Sphere(), surrogate=Ridge()),
    "portfolio": ConstrainedRegressor(Sphere(), surrogate=Portfolio([RIDGE, Ridge()], cv=3)),
    "search": ConstrainedRegressorCV(Sphere(), kernels=[1.0, 2.0], lams=[1e-4, 1e-3, 1e-2], mus=[0.3]),
    "search of another surrogate": ConstrainedRegressorCV(PointCloud(), surrogate=Ridge(), grid={"alpha": [0.1, 1.0]}),
    "centres": ConstrainedRegressor(Sphere(), surrogate=NystromRidge(Gaussian(1.5), lam=1e-3, n_centers=20)),
    "search on centres": ConstrainedRegressorCV(
        Sphere(), surrogate=NystromRidge(n_centers=20), kernels=[1.0, 2.0], lams=[1e-3]
    ),
    "single task": SingleTask(1e-3, kernel=Gaussian(1.5)),
    "coupled": MeanRegularized(1e-3, kernel=Gaussian(1.5)),
    "shrinkage": WienerShrinkage(kernel=Gaussian(1.5)),
}
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS.keys())
pytestmark = pytest.mark.filterwarnings("ignore::lawful.GridEdgeWarning")


def tasks(Y=Y, weights=None):
    return Tasks.of(X, Y, weights).encoded(Square())


def equal(one, two):
    assert len(one) == len(two)
    for a, b in zip(one, two):
        np.testing.assert_array_equal(a, b)


# ---------------------------------------------------------------------- surrogates


@each_surrogate
def test_fit_twice_is_fit_once(surrogate):
    once = clone(surrogate).fit_tasks(tasks(weights=W))
    twice = clone(surrogate).fit_tasks(tasks(Y[:, ::-1] * 3))
    twice.residuals()
    twice.fit_tasks(tasks(weights=W))
    equal(twice.predict_tasks(XNEW), once.predict_tasks(XNEW))
    equal(twice.residuals(), once.residuals())


@each_surrogate
def test_one_row_is_the_same_row_in_a_batch(surrogate):
    model = clone(surrogate).fit_tasks(tasks())
    batch = model.predict_tasks(XNEW)
    for i in range(len(XNEW)):
        for alone, together in zip(model.predict_tasks(XNEW[i : i + 1]), batch):
            np.testing.assert_allclose(alone[0], together[i], rtol=1e-9, atol=1e-9)
        if hasattr(model, "variance"):
            np.testing.assert_allclose(model.variance(XNEW[i : i + 1])[0], model.variance(XNEW)[i], rtol=1e-8, atol=1e-10)


@each_surrogate
def test_inputs_are_unchanged(surrogate):
    data = tasks(weights=W)
    before = copy.deepcopy(data)
    model = clone(surrogate).fit_tasks(data)
    model.predict_tasks(data.X)
    model.residuals()
    list(clone(surrogate).held_out(data, FOLDS, residuals=True))
    np.testing.assert_array_equal(data.X, before.X)
    for name in ("y", "rows", "weights", "Z"):
        equal(getattr(data, name), getattr(before, name))


def spoilt(rows, amount=100.0):
    """Y with other labels on these rows, as many of them."""
    other = Y.copy()
    other[rows] = -other[rows] + amount
    return other


@each_surrogate
def test_held_out_labels_do_not_reach_their_predictions(surrogate):
    variance = hasattr(surrogate, "variance")
    honest = list(clone(surrogate).held_out(tasks(), FOLDS, residuals=True, variance=variance))
    for k, (train, test) in enumerate(FOLDS):
        (h,) = clone(surrogate).held_out(tasks(spoilt(test)), [(train, test)], residuals=True, variance=variance)
        np.testing.assert_array_equal(h.rows, test)
        equal(h.scores, honest[k].scores)
        equal(h.residuals, honest[k].residuals)
        if variance:
            np.testing.assert_array_equal(h.variance, honest[k].variance)


@each_surrogate
def test_held_out_rows_are_those_of_refits(surrogate):
    """Closed forms agree with the base class, which refits."""
    variance = hasattr(surrogate, "variance")
    found = clone(surrogate).held_out(tasks(weights=W), FOLDS, residuals=True, variance=variance)
    refits = Surrogate.held_out(clone(surrogate), tasks(weights=W), FOLDS, residuals=True, variance=variance)
    for one, two in zip(found, refits, strict=True):
        for name in ("scores", "residuals"):
            for a, b in zip(getattr(one, name), getattr(two, name), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7)
        equal(one.tasks.y, two.tasks.y)
        if variance:
            np.testing.assert_allclose(one.variance, two.variance, rtol=1e-6, atol=1e-8)


@each_ridge
def test_leave_one_out_is_its_residuals(surrogate):
    """Held-out predictions of observed labels are the labels less the leave-one-out residuals."""
    data = tasks(weights=W)
    (h,) = clone(surrogate).held_out(data, None, residuals=True)
    model = clone(surrogate).fit_tasks(data)
    for t in range(2):
        places = np.searchsorted(h.rows, data.rows[t])
        np.testing.assert_allclose(h.scores[t][0, places, 1], data.y[t] - model.residuals()[t], atol=1e-7)
        np.testing.assert_allclose(h.residuals[t][0], model.residuals()[t], atol=1e-8)


@pytest.mark.parametrize("surrogate", OTHERS.values(), ids=OTHERS.keys())
def test_leave_one_out_by_refitting(surrogate):
    (h,) = clone(surrogate).held_out(tasks(), None, residuals=True)
    np.testing.assert_array_equal(h.rows, tasks().seen)
    out = np.array([5, 6])  # equal inputs are left out together
    without = clone(surrogate).fit_tasks(tasks().take(np.setdiff1d(np.arange(N), out)))
    for t, column in enumerate(without.predict_tasks(X[out])):
        np.testing.assert_allclose(h.scores[t][0, np.searchsorted(h.rows, out)], column)


def test_a_fold_that_takes_a_task_away_says_so():
    alone = Y.copy()
    alone[1:, 1] = np.nan
    alone[0, 1] = 1.0
    for surrogate in (RIDGE, RegressorSurrogate(Ridge())):
        with pytest.raises(ValueError, match="fold 0 leaves output 'y2' without any observation"):
            list(clone(surrogate).held_out(tasks(alone), FOLDS))


# ---------------------------------------------------------------------- states


def is_plain(value):
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_plain(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(is_plain, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biuf"
    return value is None or isinstance(value, bool | int | float | str)


def through_a_file(value):
    """As JSON would keep it, arrays as lists of numbers with their type and shape."""

    def default(array):
        return {"__array__": array.ravel().tolist(), "dtype": str(array.dtype), "shape": list(array.shape)}

    def hook(found):
        return np.array(found["__array__"], dtype=found["dtype"]).reshape(found["shape"]) if "__array__" in found else found

    return json.loads(json.dumps(value, default=default), object_hook=hook)


@each_ridge
def test_a_state_is_the_model(surrogate):
    model = clone(surrogate).fit(X, Y, W)
    state = model.state()
    assert is_plain(state)
    again = KernelRidge.from_state(through_a_file(state))
    np.testing.assert_array_equal(again.predict(XNEW), model.predict(XNEW))
    np.testing.assert_array_equal(again.variance(XNEW), model.variance(XNEW))
    equal(again.residuals(), model.residuals())
    np.testing.assert_array_equal(again.lam_, model.lam_)
    assert again.n_features_in_ == 2 and repr(again.kernels_) == repr(model.kernels_)
    # and it can be fitted again, as the first one was
    np.testing.assert_array_equal(again.fit(X, Y, W).predict(XNEW), model.predict(XNEW))


def test_the_state_of_a_precomputed_kernel_holds_no_matrix():
    K = Gaussian(1.5)(X, X)
    model = KernelRidge(Precomputed(), lam=1e-3).fit(K, Y)
    again = KernelRidge.from_state(model.state())
    assert model.state()["X"].size == 0
    np.testing.assert_array_equal(again.predict(K[:3]), model.predict(K[:3]))


def test_states_hold_no_code():
    model = KernelRidge(lambda A, B: A @ B.T, lam=0.1).fit(X, Y)
    with pytest.raises(TypeError, match="which no state can hold; one of Gaussian"):
        model.state()
    with pytest.raises(ValueError, match=r"give what KernelRidge.state\(\) returned"):
        KernelRidge.from_state({"surrogate": "forest"})
    assert not hasattr(RegressorSurrogate(Ridge()), "state")  # a capability that not all have


# ---------------------------------------------------------------------- residuals of regressors


class Counting(Ridge):
    fits = 0

    def fit(self, X, y, sample_weight=None):
        type(self).fits += 1
        return super().fit(X, y, sample_weight)


def test_residuals_of_several_outputs_cost_one_fit_a_fold():
    complete = np.c_[np.cos(X), np.sin(X), np.ones(N)]
    model = RegressorSurrogate(Counting(0.1), cv=4).fit_tasks(Tasks.of(X, complete))
    Counting.fits = 0
    residuals = model.residuals()
    assert Counting.fits == 4
    one = RegressorSurrogate(Ridge(0.1), cv=4).fit_tasks(Tasks.of(X, complete[:, :1])).residuals()
    np.testing.assert_allclose(residuals[0], one[0])
    np.testing.assert_array_equal(residuals[4], 0.0)  # a constant is known
    model.residuals()
    assert Counting.fits == 4


# ---------------------------------------------------------------------- estimators


@each_estimator
def test_fitting_an_estimator_twice_is_fitting_it_once(estimator):
    once = clone(estimator).fit(X, Y)
    twice = clone(estimator).fit(X + 1, -2 * Y)
    twice.predict(X)
    twice.fit(X, Y)
    np.testing.assert_array_equal(twice.predict(XNEW), once.predict(XNEW))


@each_estimator
def test_an_estimator_predicts_row_by_row(estimator):
    model = clone(estimator).fit(X, Y)
    batch = model.predict(XNEW)
    for i in range(len(XNEW)):
        np.testing.assert_allclose(model.predict(XNEW[i : i + 1])[0], batch[i], rtol=1e-8, atol=1e-8)


@each_estimator
def test_an_estimator_changes_none_of_its_inputs(estimator):
    model = clone(estimator)
    given = [X.copy(), Y.copy(), W[:, 0].copy()]
    parameters = repr(model.get_params())
    try:
        model.fit(*given)
    except ValueError as error:  # not every regressor takes weights
        assert "sample_weight" in str(error)
        model.fit(*given[:2])
    model.predict(given[0])
    equal(given, [X, Y, W[:, 0]])
    assert repr(model.get_params()) == parameters


@pytest.mark.parametrize("law", [PointCloud(), Sphere(), Equations("y1**2 + y2**2 = 1")], ids=lambda law: type(law).__name__)
@pytest.mark.parametrize("surrogate", [RIDGE, Ridge(0.1)], ids=["ridge", "another"])
def test_held_out_labels_do_not_reach_the_errors_of_a_search(law, surrogate):
    """One fold: with the held-out labels moved far away, every candidate errs as a refit would."""
    train, test = FOLDS[0]
    moved = spoilt(test)
    options = {"kernels": [Gaussian(1.5)], "lams": [1e-3]} if surrogate is RIDGE else {}
    model = ConstrainedRegressorCV(
        law, surrogate=surrogate, cv=[(train, test)], scoring="neg_mean_squared_error", **options
    ).fit(X, moved)
    refit = ConstrainedRegressor(law, surrogate=surrogate).fit(X[train], Y[train])
    for name, predicted in (("none", refit.objective(X[test]).center), ("exact", refit.predict(X[test]))):
        found = model.cv_results_["error"][model.cv_results_["law"] == name]
        np.testing.assert_allclose(found, np.nanmean((predicted - moved[test]) ** 2, axis=0), rtol=1e-8)
