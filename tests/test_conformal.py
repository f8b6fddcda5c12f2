"""Prediction sets inside the law: joint coverage, and shapes that agree with brute force."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.linear_model import LinearRegression

from lawful import (
    Affine,
    ConformalRegressor,
    ConstrainedClassifier,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    Equations,
    KernelRidge,
    PointCloud,
    Rankings,
    Reals,
    Simplex,
    Sphere,
)
from lawful.decoders import decode
from lawful.kernels import Gaussian, Linear, Matern
from lawful.losses.quadratic import Quadratic, QuadraticForm
from lawful.surrogates import parts
from lawful.uncertainty import PredictionSet, Ranks, level_of

RIDGE = KernelRidge(Gaussian(1.0), lam=1e-3)


def circle(rng, n, noise=0.1, lawful=True):
    x = rng.uniform(-3, 3, n)
    angle = x + noise * rng.standard_normal(n) * lawful
    Y = np.c_[np.cos(angle), np.sin(angle)]
    return x[:, None], Y if lawful else Y + noise * rng.standard_normal((n, 2))


def sets_of(C, w, P, radius, n=19):
    """Sets {c in C : F(c) <= min F + radius^2} around predictions that are given."""
    w = np.asarray(w, dtype=float)
    F = QuadraticForm(P, w) if P.ndim == 3 else Quadratic.around(w, P)
    level = level_of(F, C.fit(w), np.r_[np.full(n - 1, radius), np.inf], decode)
    return PredictionSet(np.zeros((len(w), 1)), C, Ranks([level], 0.1), level.best, decode, True, ["y"] * w.shape[1])


# ---------------------------------------------------------------------- coverage


@pytest.mark.parametrize("lawful", [True, False])
@pytest.mark.parametrize("method", ["split", "cv+"])
def test_joint_coverage_on_the_circle(method, lawful):
    rng = np.random.default_rng(0)
    covered = []
    for seed in range(12):
        X, Y = circle(rng, 120, lawful=lawful)
        X_test, Y_test = circle(rng, 300, lawful=lawful)
        model = ConformalRegressor(
            ConstrainedRegressor(Sphere(), surrogate=RIDGE),
            0.2,
            method=method,
            cv=0.5 if method == "split" else 4,
            random_state=seed,
        ).fit(X, Y)
        found = model.contains(X_test, Y_test)
        assert found.shape == (300,) and found.dtype == bool
        covered.append(found.mean())
    assert model.labels_ == ("lawful" if lawful else "noisy")
    assert abs(np.mean(covered) - 0.8) < 0.04  # the standard error of the mean of twelve is about 0.015


def test_jackknife_plus():
    rng = np.random.default_rng(5)
    covered = []
    for _ in range(4):
        X, Y = circle(rng, 40)
        model = ConformalRegressor(ConstrainedRegressor(Sphere(), surrogate=RIDGE), 0.2, method="jackknife+").fit(X, Y)
        assert len(model.models_) == model.n_calibration_ == 40
        covered.append(model.contains(*circle(rng, 200)).mean())
    assert abs(np.mean(covered) - 0.8) < 0.1  # one of forty rows: 0.06; four of them: 0.03


def test_split_is_the_rank_of_the_score():
    """contains, by hand: F(y) - min F against the k-th smallest of the calibration rows."""
    rng = np.random.default_rng(2)
    X, Y = circle(rng, 150)
    fold = (np.arange(80), np.arange(80, 150))
    model = ConformalRegressor(ConstrainedRegressor(Sphere(), surrogate=RIDGE), 0.1, cv=[fold]).fit(X, Y)
    grid = np.c_[np.cos(np.linspace(0, 2 * np.pi, 20_001)), np.sin(np.linspace(0, 2 * np.pi, 20_001))]

    def scores(X, Y):
        F = model.estimator_.predictive(X)
        return np.sqrt(np.maximum(F.value(Y) - F.costs(grid).min(axis=1), 0))

    q = np.sort(scores(X[80:], Y[80:]))[int(np.ceil(0.9 * 71)) - 1]
    X_test, Y_test = circle(rng, 400)
    s = scores(X_test, Y_test)
    clear = np.abs(s - q) > 1e-3
    np.testing.assert_array_equal(model.contains(X_test, Y_test)[clear], (s <= q)[clear])


def test_cv_plus_counts_over_folds():
    rng = np.random.default_rng(3)
    X, Y = circle(rng, 60)
    model = ConformalRegressor(ConstrainedRegressor(Sphere(), surrogate=RIDGE), 0.15, method="cv+", cv=3, random_state=0).fit(
        X, Y
    )
    X_test, Y_test = circle(rng, 100, 0.2)
    count = np.zeros(100)
    for blind, scores in zip(model.models_, model.scores_):
        F = blind.predictive(X_test)
        s = np.sqrt(np.maximum(F.value(Y_test) - F.value(decode(F, blind.constraint_).c), 0))
        count += (scores[None, :] < s[:, None]).sum(axis=1)
    np.testing.assert_array_equal(model.contains(X_test, Y_test), count < 0.85 * 61)


def test_labels_off_the_law_are_in_no_set_unless_labels_are_noisy():
    rng = np.random.default_rng(4)
    X, Y = circle(rng, 150)
    model = ConformalRegressor(ConstrainedRegressor(Sphere(), surrogate=RIDGE), random_state=0).fit(X, Y)
    c = model.predict(X[:5])
    assert model.contains(X[:5], c).all() and not model.contains(X[:5], 1.1 * c).any()
    model.set_params(labels="noisy").fit(X, Y)
    assert model.contains(X[:5], 1.1 * c).all()


def test_calibrate_a_fitted_model():
    rng = np.random.default_rng(5)
    X, Y = circle(rng, 200)
    fitted = ConstrainedRegressor(Sphere(), surrogate=RIDGE).fit(X[:80], Y[:80])
    model = ConformalRegressor(fitted).calibrate(X[80:], Y[80:])
    whole = ConformalRegressor(ConstrainedRegressor(Sphere(), surrogate=RIDGE), cv=[(np.arange(80), np.arange(80, 200))]).fit(
        X, Y
    )
    np.testing.assert_allclose(model.volume(X[:10]), whole.volume(X[:10]))
    assert model.n_calibration_ == 120


def test_missing_outputs():
    """On a circle one coordinate and the prediction tell the other: coverage of complete rows stays right."""
    rng = np.random.default_rng(6)
    X, Y = circle(rng, 300)
    gaps = Y.copy()
    gaps[rng.random(300) < 0.5, rng.integers(0, 2)] = np.nan
    model = ConformalRegressor(ConstrainedRegressor(Sphere(), surrogate=RIDGE), cv=0.5, random_state=0).fit(X, gaps)
    X_test, Y_test = circle(rng, 1000)
    assert 0.83 < model.contains(X_test, Y_test).mean() < 0.96
    half = Y_test.copy()
    half[:, 1] = np.nan
    some = model.contains(X_test, half)
    assert some.mean() > 0.83 and some[model.contains(X_test, Y_test)].all()  # what is in, is so with a gap
    half[:, 0] = np.nan
    assert model.contains(X_test, half).all()


def test_scores_with_gaps_are_made_comparable():
    """Without a law the score of one of two outputs is chi with 1 degree of freedom, and is stretched to 2."""
    rng = np.random.default_rng(7)
    X, Y = rng.uniform(-1, 1, (600, 1)), rng.standard_normal((600, 2))
    gaps = Y.copy()
    gaps[:, 1] = np.where(np.arange(600) % 4, np.nan, Y[:, 1])
    model = ConformalRegressor(ConstrainedRegressor(surrogate=RIDGE), cv=0.5, random_state=0).fit(X, gaps)
    assert 0.85 < model.contains(rng.uniform(-1, 1, (2000, 1)), rng.standard_normal((2000, 2))).mean() < 0.95


# ---------------------------------------------------------------------- shapes


def test_arcs_against_a_fine_grid():
    """Length and bounds, for one arc, for two, and for the whole circle."""
    P = np.array([[[9.0, 2.0], [2.0, 4.0]], [[30.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
    w = np.array([[0.8, 0.5], [0.4, 0.05], [0.1, 0.0]])
    sets = sets_of(Equations("y1**2 + y2**2 = 1"), w, P, 0.9)
    angle = np.linspace(0, 2 * np.pi, 100_001)[:-1]
    grid = np.c_[np.cos(angle), np.sin(angle)]
    cost = QuadraticForm(P, w).costs(grid)
    inside = cost <= cost.min(axis=1, keepdims=True) + 0.81
    np.testing.assert_allclose(sets.volume(), 2 * np.pi * inside.mean(axis=1), rtol=1e-3)
    assert [len(arcs) for arcs in sets.arcs] == [1, 2, 1] and sets.arcs[2][0].closed
    low = np.where(inside[:, :, None], grid, np.inf).min(axis=1)
    high = np.where(inside[:, :, None], grid, -np.inf).max(axis=1)
    np.testing.assert_allclose(sets.intervals(), np.stack([low, high], axis=2), atol=1e-4)


def test_lemniscate_is_passed_straight_through_its_crossing():
    sets = sets_of(Equations("y1**4 = y1**2 - y2**2"), [[0.05, 0.02]], np.ones((1, 2)), 10.0)
    a = np.linspace(-np.pi, np.pi, 20_001)
    c = np.c_[np.sin(a), np.sin(2 * a) / 2]
    np.testing.assert_allclose(sets.volume(), np.linalg.norm(np.diff(c, axis=0), axis=1).sum(), rtol=2e-3)


def test_cap_of_a_sphere():
    """F = |c - w|^2, w on the axis: the set is a cap, whose area is 2 pi h; a small one, and one of more than half of it."""
    w = np.array([[0.0, 0.0, 1.0]] * 2)
    for radius, tolerance in ((0.4, 0.02), (1.7, 0.25)):
        sets = sets_of(Equations("y1**2 + y2**2 + y3**2 = 1"), w, np.ones((2, 3)), radius)
        area, error = sets.volume(return_error=True)
        np.testing.assert_allclose(area, 2 * np.pi * radius**2 / 2, rtol=tolerance)  # |c - w|^2 = 2 h
        assert (error < 0.2 * area).all()
    small = sets_of(Equations("y1**2 + y2**2 + y3**2 = 1"), w[:1], np.ones((1, 3)), 0.4)
    edge = 0.4 * np.sqrt(1 - 0.4**2 / 4)
    np.testing.assert_allclose(small.intervals()[0], [[-edge, edge], [-edge, edge], [1 - 0.08, 1.0]], atol=2e-3)


def test_affine_sets_are_ellipsoids():
    rng = np.random.default_rng(8)
    A = rng.standard_normal((3, 3))
    P, w = (A @ A.T + np.eye(3))[None], rng.standard_normal((1, 3))
    sets = sets_of(Affine([[1.0, 1.0, 1.0]], 1.0), w, P, 1.5)
    area, error = sets.volume(return_error=True)
    Z = np.linalg.svd(np.ones((1, 3)))[2][1:].T
    H = Z.T @ P[0] @ Z
    np.testing.assert_allclose(area, np.pi * 1.5**2 / np.sqrt(np.linalg.det(H)))
    assert error == 0
    half = 1.5 * np.sqrt(np.diag(Z @ np.linalg.inv(H) @ Z.T))
    np.testing.assert_allclose(sets.intervals()[0], np.c_[sets.center[0] - half, sets.center[0] + half], rtol=1e-3)


def test_without_a_law_sets_are_balls():
    sets = sets_of(Reals(), np.zeros((1, 2)), np.ones((1, 2)), 2.0)
    np.testing.assert_allclose(sets.volume(), 4 * np.pi)
    np.testing.assert_allclose(sets.intervals()[0], [[-2, 2], [-2, 2]], rtol=1e-3)


def test_simplex_sets_stay_inside():
    sets = sets_of(Simplex(), [[0.9, 0.2, -0.1]], np.ones((1, 3)), 0.3)
    points = np.random.default_rng(9).dirichlet(np.ones(3), 400_000)
    cost = ((points - [0.9, 0.2, -0.1]) ** 2).sum(axis=1)
    low = ((sets.center[0] - [0.9, 0.2, -0.1]) ** 2).sum()
    area, error = sets.volume(return_error=True, n=1024)
    assert abs(area - np.sqrt(3) / 2 * (cost <= low + 0.09).mean()) < 4 * error + 0.002
    inside = points[cost <= low + 0.09]
    assert (sets.intervals()[0, :, 0] <= inside.min(axis=0)).all() and (sets.intervals()[0, :, 1] >= inside.max(axis=0)).all()
    assert sets.intervals().min() >= 0


def test_finite_sets_are_lists():
    rng = np.random.default_rng(10)
    points, w = rng.standard_normal((40, 3)), rng.standard_normal((5, 3))
    sets = sets_of(PointCloud(points), w, np.ones((5, 3)), 1.2)
    cost = ((w[:, None] - points) ** 2).sum(axis=2)
    inside = cost <= cost.min(axis=1, keepdims=True) + 1.44
    np.testing.assert_array_equal(sets.members(), inside)
    np.testing.assert_array_equal(sets.volume(), inside.sum(axis=1))
    drawn = sets.sample_set(50, 0)
    assert all((drawn[i][:, None] == points[inside[i]]).all(axis=2).any(axis=1).all() for i in range(5))


@pytest.mark.parametrize("D", [4, 8])
def test_sets_of_orders_are_partial_orders(D):
    rng = np.random.default_rng(11)
    C = Rankings().of_items(D)
    T = D * (D - 1) // 2
    w = C.encode(np.arange(D)) * rng.uniform(0.2, 1, (1, T)) * np.where(rng.random(T) < (0.1 if D == 4 else 0), -1, 1)
    F = Quadratic.around(w, np.ones((1, T)))
    level = level_of(F, C, np.r_[np.full(18, 1.3), np.inf], decode)
    sets = PredictionSet(np.zeros((1, 1)), C, Ranks([level], 0.1), level.best, decode, True, ["y"] * T)
    before = sets.order()[0]
    assert not (before & before.T).any() and before.any() and not before[np.triu_indices(D, 1)].all()
    if D == 4:  # all orders, one by one
        orders = C.encode(np.array(list(permutations(range(D)))))
        inside = orders[F.costs(orders)[0] <= level.low[0] + 1.3**2 + 1e-9]
        assert sets.volume()[0] == len(inside) > 1
        p, q = C.pairs().T
        np.testing.assert_array_equal(before[p, q], (inside == 1).all(axis=0))
    else:
        with pytest.raises(TypeError, match="too many to list; `order"):
            sets.volume()


@pytest.mark.parametrize("method", ["split", "cv+"])
@pytest.mark.parametrize("law", ["circle", "sphere"])
def test_points_of_a_set_are_in_it_and_in_its_bounds(law, method):
    rng = np.random.default_rng(12)
    X, Y = circle(rng, 100)
    equation = "y1**2 + y2**2 = 1"
    if law == "sphere":
        Y, equation = np.c_[Y * 0.8, np.full(100, 0.6)], "y1**2 + y2**2 + y3**2 = 1"
        Y[:, 2] += 0.05 * rng.standard_normal(100)
        Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    model = ConformalRegressor(ConstrainedRegressor(Equations(equation), surrogate=RIDGE), method=method, random_state=0).fit(
        X, Y
    )
    sets = model.predict_set(X[:6])
    points, bounds = sets.sample_set(40, 0), sets.intervals()
    assert model.contains(np.repeat(X[:6], 40, axis=0), points.reshape(-1, Y.shape[1])).all()
    assert ((points >= bounds[:, None, :, 0] - 1e-9) & (points <= bounds[:, None, :, 1] + 1e-9)).all()
    reach = (points.max(axis=1) - points.min(axis=1)) / (bounds[:, :, 1] - bounds[:, :, 0])
    assert np.median(reach) > 0.6  # and the bounds are not far off


# ---------------------------------------------------------------------- the estimator


def test_one_sided_bounds():
    rng = np.random.default_rng(13)
    X, Y = circle(rng, 600)
    X_test, Y_test = circle(rng, 2000)
    for method in ("split", "cv+"):
        model = ConformalRegressor(
            ConstrainedRegressor(Sphere(), surrogate=RIDGE), method=method, cv=0.6 if method == "split" else 3, random_state=0
        ).fit(X, Y)
        for side, sign in (("upper", 1), ("lower", -1)):
            held = sign * (model.predict_bound(X_test, side) - Y_test) >= 0
            assert (np.abs(held.mean(axis=0) - 0.9) < 0.06).all()
            joint = sign * (model.predict_bound(X_test, side, joint=True) - Y_test) >= 0
            assert abs(joint.all(axis=1).mean() - 0.9) < 0.06


def test_intervals_and_alpha():
    rng = np.random.default_rng(14)
    X, Y = circle(rng, 200)
    model = ConformalRegressor(ConstrainedRegressor(Sphere(), surrogate=RIDGE), random_state=0).fit(X, Y)
    c, bounds = model.predict_interval(X[:7])
    assert bounds.shape == (7, 2, 2) and (bounds[:, :, 0] <= c).all() and (c <= bounds[:, :, 1]).all()
    assert (model.volume(X[:7], alpha=0.3) < model.volume(X[:7], alpha=0.05)).all()
    np.testing.assert_array_equal(model.predict(X[:7]), model.estimator_.predict(X[:7]))
    assert model.score(X, Y) > 0.9


def test_any_regressor_and_the_search():
    rng = np.random.default_rng(15)
    X = rng.uniform(-1, 1, (300, 2))
    Y = X @ [[1.0, 2.0], [0.5, -1.0]] + 0.2 * rng.standard_normal((300, 2))
    model = ConformalRegressor(LinearRegression(), cv=0.5, random_state=0).fit(X[:200], Y[:200])
    assert 0.8 < model.contains(X[200:], Y[200:]).mean() <= 1
    expected = np.pi * 0.04 * chi2.ppf(0.9, 2)
    np.testing.assert_allclose(model.volume(X[:1]), expected, rtol=0.5)
    X, Y = circle(rng, 100)
    search = ConformalRegressor(ConstrainedRegressorCV(Sphere(), kernels=[1.0], cv=3), random_state=0).fit(X, Y)
    assert search.predict_set(X[:3]).volume().shape == (3,)
    single = ConformalRegressor(random_state=0).fit(X, Y[:, 0])
    assert single.contains(X[:5], Y[:5, 0]).shape == (5,)


def test_few_rows_give_the_whole_law_and_say_so():
    rng = np.random.default_rng(16)
    X, Y = circle(rng, 20)
    with pytest.warns(UserWarning, match="6 calibration rows are too few for alpha=0.1, .* 9 rows would do"):
        model = ConformalRegressor(ConstrainedRegressor(Sphere(), surrogate=RIDGE), random_state=0).fit(X, Y)
    sets = model.predict_set(X[:2])
    assert sets.contains(np.array([[1.0, 0.0], [-1.0, 0.0]])).all() and np.isinf(sets.volume()).all()
    with pytest.raises(ValueError, match="too few for alpha"):
        sets.sample_set(3)


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"alpha": 1.5}, ValueError, "alpha=1.5 will not do; give a number between 0 and 1"),
        ({"method": "bootstrap"}, ValueError, "method='bootstrap' is unknown; choose one of 'split'"),
        ({"labels": "clean"}, ValueError, "labels='clean' is unknown"),
        ({"estimator": ConstrainedRegressor}, TypeError, "an instance, not the class"),
        ({"cv": 3}, ValueError, "cv=3 will not do for method='split'"),
    ],
)
def test_bad_parameters(options, error, words):
    X, Y = circle(np.random.default_rng(17), 30)
    with pytest.raises(error, match=words):
        ConformalRegressor(**options).fit(X, Y)


def test_bad_calls():
    X, Y = circle(np.random.default_rng(18), 60)
    with pytest.raises(ValueError, match="is not fitted; fit it first"):
        ConformalRegressor(ConstrainedRegressor()).calibrate(X, Y)
    model = ConformalRegressor(ConstrainedRegressor(Sphere(), surrogate=RIDGE), random_state=0).fit(X, Y)
    sets = model.predict_set(X[:3])
    with pytest.raises(ValueError, match="labels of shape"):
        sets.contains(Y[:2])
    with pytest.raises(ValueError, match="sets of other inputs"):
        sets.contains(X[3:6], Y[:3])
    with pytest.raises(TypeError, match="not of orders; see intervals"):
        sets.order()
    with pytest.raises(ValueError, match="side='left' is unknown"):
        model.predict_bound(X, "left")
    np.testing.assert_array_equal(sets.contains(X[:3], Y[:3]), sets.contains(Y[:3]))
    assert repr(sets) == "<3 prediction sets (curves), alpha=0.1>"


def test_pictures():
    from lawful.plots import plot_draws, plot_sets

    P = np.ones((2, 3))
    for C, T in ((Equations("y1**2 + y2**2 = 1"), 2), (Equations("y1**2 + y2**2 + y3**2 = 1"), 3), (Reals(), 4)):
        sets = sets_of(C, np.full((2, T), 0.5), np.ones((2, T)), 0.3)
        assert plot_sets(sets, labels=sets.center).axes
    assert plot_draws(P[:, None], law=P).axes


@pytest.mark.parametrize(
    "ridge",
    [
        KernelRidge(random_state=0),  # an average of kernels for each output
        KernelRidge(Gaussian(1.0), lam=1e-3),  # one kernel for all
        KernelRidge(Gaussian(1.0), lam=[1e-3, 1e-2]),
        KernelRidge(Linear(), lam=1e-3),  # in features
        KernelRidge([Gaussian(1.0), Matern(1.5, 2.0)], lam=1e-3, intercept=np.array([0.1, 0.2])),
    ],
    ids=["averaged", "shared", "lambdas", "linear", "bases"],
)
def test_means_and_spreads_of_one_pass_are_those_of_two(ridge, monkeypatch):
    """`predict_set` takes both from the same kernel values; in pieces, too, and with gaps in the labels."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 2))
    Y = np.c_[np.cos(X[:, 0]), np.sin(X[:, 0])] + 0.05 * rng.standard_normal((60, 2))
    Y[::7, 1] = np.nan
    model = ConformalRegressor(ConstrainedRegressor(Sphere(), surrogate=ridge), random_state=0).fit(X, Y)
    surrogate, new = model.estimator_.surrogate_, rng.uniform(-2, 2, (50, 2))
    means, std = surrogate.predict_and_std(new)
    for found, expected in zip(means, surrogate.predict_tasks(new)):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(std, surrogate.std(new), rtol=1e-12)
    fast = model.predict_set(new)
    monkeypatch.setattr(parts, "CROSS_ENTRIES", 300)  # a few rows at a time
    np.testing.assert_allclose(surrogate.std(new), std, rtol=1e-9)
    monkeypatch.undo()
    monkeypatch.delattr(KernelRidge, "predict_and_std")
    slow = model.predict_set(new)
    np.testing.assert_allclose(fast.center, slow.center, atol=1e-12)
    np.testing.assert_allclose(fast.intervals(), slow.intervals(), atol=1e-8)


def test_a_classifier_has_no_prediction_sets():
    with pytest.raises(TypeError, match=r"predicts classes or labels.*give a regressor"):
        ConformalRegressor(ConstrainedClassifier()).fit(np.ones((20, 1)), np.ones((20, 2)))


def test_one_calibration_row():
    X = np.linspace(-3, 3, 40)[:, None]
    Y = np.c_[np.cos(X), np.sin(X)]
    model = ConstrainedRegressor(Sphere(), surrogate=KernelRidge(Gaussian(1.0), lam=1e-3)).fit(X[1:], Y[1:])
    with pytest.warns(UserWarning, match=r"1 calibration row is too few for alpha=0.1, .* 9 rows would do"):
        sets = ConformalRegressor(model).calibrate(X[:1], Y[:1]).predict_set(X[:3])
    assert sets.contains(Y[:3]).all() and np.isinf(sets.volume()).all() and np.isinf(sets.intervals()).all()
    with pytest.raises(ValueError, match=r"too few for alpha=0.1, so the set is all of the law; 9 would do"):
        sets.sample_set(5)
    enough = ConformalRegressor(model, alpha=0.5).calibrate(X[:1], Y[:1]).predict_set(X[:3])
    assert (enough.volume() > 0).all() and np.isfinite(enough.volume()).all()
