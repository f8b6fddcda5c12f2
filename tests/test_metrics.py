"""Metrics against scikit-learn where nothing is missing, and by hand where something is."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_squared_error as sklearn_mse
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from lawful import Box, ConstrainedRegressor, Equations, KernelRidge, Sphere
from lawful.kernels import Gaussian
from lawful.metrics import constraint_violation, mean_squared_error, normalized_mse, r2, scorer

RNG = np.random.default_rng(0)
Y, P, W = RNG.standard_normal((30, 3)), RNG.standard_normal((30, 3)), RNG.uniform(0, 2, 30)
GAPS = Y.copy()
GAPS[RNG.uniform(size=Y.shape) < 0.3] = np.nan


@pytest.mark.parametrize("weight", [None, W], ids=["plain", "weighted"])
def test_complete_labels_agree_with_scikit_learn(weight):
    raw = {"sample_weight": weight, "multioutput": "raw_values"}
    np.testing.assert_allclose(mean_squared_error(Y, P, sample_weight=weight), sklearn_mse(Y, P, sample_weight=weight))
    np.testing.assert_allclose(mean_squared_error(Y, P, sample_weight=weight, multioutput="raw"), sklearn_mse(Y, P, **raw))
    np.testing.assert_allclose(r2(Y, P, sample_weight=weight), r2_score(Y, P, sample_weight=weight))
    np.testing.assert_allclose(r2(Y, P, sample_weight=weight, multioutput="raw"), r2_score(Y, P, **raw))
    np.testing.assert_allclose(
        normalized_mse(Y[:, 0], P[:, 0], sample_weight=weight), 1 - r2_score(Y[:, 0], P[:, 0], sample_weight=weight)
    )


@pytest.mark.parametrize("weight", [None, W, np.c_[W, W[::-1], W]], ids=["plain", "rows", "cells"])
def test_missing_labels_are_left_out_task_by_task(weight):
    w = np.ones((30, 3)) if weight is None else np.broadcast_to(weight.T, (3, 30)).T
    seen = [~np.isnan(GAPS[:, t]) for t in range(3)]
    each = [sklearn_mse(GAPS[s, t], P[s, t], sample_weight=w[s, t]) for t, s in enumerate(seen)]
    expected = [r2_score(GAPS[s, t], P[s, t], sample_weight=w[s, t]) for t, s in enumerate(seen)]
    options = {"sample_weight": weight}
    np.testing.assert_allclose(mean_squared_error(GAPS, P, **options, multioutput="raw"), each)
    np.testing.assert_allclose(mean_squared_error(GAPS, P, **options), np.mean(each))
    np.testing.assert_allclose(r2(GAPS, P, **options, multioutput="raw"), expected)
    np.testing.assert_allclose(normalized_mse(GAPS, P, **options), 1 - np.mean(expected))
    totals = [w[s, t].sum() for t, s in enumerate(seen)]
    np.testing.assert_allclose(mean_squared_error(GAPS, P, **options, multioutput="pooled"), np.average(each, weights=totals))


def test_pooled_ratio_is_a_ratio_of_sums():
    errors, spread = ((Y - P) ** 2).sum(), ((Y - Y.mean(0)) ** 2).sum()
    np.testing.assert_allclose(normalized_mse(Y, P, multioutput="pooled"), errors / spread)
    np.testing.assert_allclose(r2(Y, P, multioutput="pooled"), 1 - errors / spread)


def test_constant_outputs_have_no_variance_to_explain():
    y = np.ones((4, 2))
    np.testing.assert_array_equal(normalized_mse(y, y, multioutput="raw"), [0.0, 0.0])
    np.testing.assert_array_equal(normalized_mse(y, y + np.array([0.0, 0.1]), multioutput="raw"), [0.0, 1.0])


def test_a_failed_prediction_is_not_hidden():
    p = P.copy()
    p[0, 1] = np.nan
    assert np.isnan(mean_squared_error(Y, p)) and np.isnan(r2(Y, p))
    np.testing.assert_array_equal(np.isnan(mean_squared_error(Y, p, multioutput="raw")), [False, True, False])
    hidden = Y.copy()
    hidden[0, 1] = np.nan
    assert np.isfinite(mean_squared_error(hidden, p))


@pytest.mark.parametrize("metric", [mean_squared_error, normalized_mse, r2])
def test_bad_arguments(metric):
    with pytest.raises(ValueError, match="must agree"):
        metric(Y, P[:, :2])
    with pytest.raises(ValueError, match="no observed label for outputs \\[1\\]"):
        metric(np.where([False, True, False], np.nan, Y), P)
    with pytest.raises(ValueError, match="unknown multioutput"):
        metric(Y, P, multioutput="uniform")


def test_constraint_violation():
    c = np.array([[1.0, 0.0], [2.0, 0.0]])
    circle = Equations("y1**2 + y2**2 = 1").fit(c)
    assert constraint_violation(circle, c) == 3.0
    assert constraint_violation(circle, c, reduce="mean") == 1.5
    np.testing.assert_array_equal(constraint_violation(circle, c, reduce="rows"), [0.0, 3.0])
    growing = Equations("y1**2 + y2**2 = x1").fit(c)
    np.testing.assert_array_equal(constraint_violation(growing, c, [[1.0], [4.0]], reduce="rows"), [0.0, 0.0])
    assert constraint_violation(Box(0, 1).fit(c[:, :1]), np.array([0.5, 1.5])) == 0.5
    with pytest.raises(ValueError, match="unknown reduce"):
        constraint_violation(circle, c, reduce="median")


def test_scorers_work_in_cross_validation_with_missing_labels():
    x = np.linspace(-3, 3, 60)[:, None]
    y = np.c_[np.cos(x), np.sin(x)]
    y[::4, 0] = np.nan
    model = ConstrainedRegressor(Sphere(), surrogate=KernelRidge(Gaussian(1.0), lam=1e-6))
    order = RNG.permutation(60)
    errors = cross_val_score(model, x[order], y[order], scoring=scorer(mean_squared_error), cv=4)
    assert errors.shape == (4,) and (errors <= 0).all() and (errors > -1e-3).all()
    good = cross_val_score(model, x[order], y[order], scoring=scorer(r2, greater_is_better=True), cv=4)
    assert (good > 0.99).all()
    raw = scorer(mean_squared_error, multioutput="pooled")(model.fit(x, y), x, y)
    assert -1e-3 < raw <= 0
    search = GridSearchCV(model, {"surrogate__lam": [1e-6, 1.0]}, scoring=scorer(normalized_mse), cv=3).fit(x[order], y[order])
    assert search.best_params_ == {"surrogate__lam": 1e-6}


def test_scorer_of_any_regressor():
    x = np.arange(10.0)[:, None]
    assert scorer(mean_squared_error)(LinearRegression().fit(x, x), x, x) == pytest.approx(0.0)
