"""Square("auto"), the default: correlations of residuals as far as they are noise; and one matrix for all rows, and fast."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from lawful import (
    Affine,
    Ball,
    Box,
    ConstrainedRegressor,
    Ellipsoid,
    Equations,
    KernelRidge,
    Product,
    Reals,
    Simplex,
    Sphere,
    Square,
)
from lawful.decoders import decode
from lawful.kernels import Gaussian
from lawful.losses.quadratic import QuadraticForm
from lawful.losses.square import KEPT
from lawful.tasks import Tasks

SUMS = np.array([[1, 1, 0, 0, -1, 0], [0, 0, 1, 1, 0, -1.0]])
LAWS = [Affine(SUMS, [0.0, 1.0]), Simplex(), Box(0, 0.3), Sphere(), Ball(0.3), Ellipsoid([1, 2, 3, 1, 2, 3.0])]


def draw(seed, noise, n=150):
    """Two outputs whose difference is 1, with noise in common."""
    rng = np.random.default_rng(seed)
    A, B = rng.uniform(-3, 3, (n, 1)), rng.uniform(-3, 3, (200, 1))
    truth = lambda x: np.c_[np.sin(2 * x), np.sin(2 * x) + 1]  # noqa: E731
    common = rng.standard_normal((n, 1)) * [1.0, 2.0] + 0.3 * rng.standard_normal((n, 2))
    return A, truth(A) + noise * common, B, truth(B)


def fitted(metric, noise, seed=0, law=None, tune="evidence", n=150):
    X, Y, X_test, truth = draw(seed, noise, n)
    model = ConstrainedRegressor(law or Equations("y2 = y1 + 1"), loss=Square(metric), surrogate=KernelRidge(tune=tune))
    return model.fit(X, Y), X_test, truth


def test_it_is_the_default():
    assert Square().metric == "auto"


@pytest.mark.parametrize("tune", ["evidence", "loo"])
@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_the_share_of_noise_is_that_of_the_labels(noise, tune):
    model, *_ = fitted("auto", noise, tune=tune)
    true = noise**2 * np.array([1.09, 4.09]) / model.surrogate_.loo_mse_
    np.testing.assert_allclose(model.surrogate_.noise_share(), np.minimum(true, 1), atol=0.25)


def test_correlations_count_with_noise_and_not_without():
    model, *_ = fitted("auto", 0.3)
    S, R = np.linalg.inv(model.loss_.metric_), np.corrcoef(model.surrogate_.residuals())[0, 1]
    share = model.surrogate_.noise_share()
    assert abs(S[0, 1] / np.sqrt(S[0, 0] * S[1, 1]) - KEPT * np.sqrt(share[0] * share[1]) * R) < 0.02
    assert fitted("auto", 0.0, n=20)[0].loss_.metric_.shape == (2,)  # errors of approximation


def test_where_nobody_knows_the_noise_it_is_the_shrunk_covariance():
    X, Y, *_ = draw(0, 0.3)
    tree = DecisionTreeRegressor(max_depth=4, random_state=0)
    found = [ConstrainedRegressor(Sphere(), loss=Square(m), surrogate=tree).fit(X, Y).loss_.metric_ for m in ("auto", "shrunk")]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(("law", "ndim"), [(Box(0), 2), (Simplex(), 2), (Product([(Reals(), [0]), (Reals(), [1])]), 1)])
def test_polyhedra_are_given_the_matrix_and_composed_laws_weights(law, ndim):
    assert fitted("auto", 0.3, law=law)[0].loss_.metric_.ndim == ndim
    assert fitted("shrunk", 0.3, law=law)[0].loss_.metric_.ndim == 1


def test_it_pays_with_noise_and_costs_nothing_without():
    ratios = {0.3: [], 0.0: []}
    for noise, found in ratios.items():
        for seed in range(8):
            error = {}
            for metric in ("auto", "residual"):
                model, X, truth = fitted(metric, noise, seed)
                error[metric] = np.mean((model.predict(X) - truth) ** 2)
            found.append(np.log(error["auto"] / error["residual"]))
    assert np.exp(np.mean(ratios[0.3])) < 0.9
    assert np.exp(np.mean(ratios[0.0])) < 1.02


def test_folds_of_a_search_calibrate_as_a_refit_does():
    """The share of noise travels with held-out predictions."""
    X, Y, *_ = draw(0, 0.3)
    ridge = KernelRidge(Gaussian(0.5), lam=1e-3)
    tasks = Tasks.of(X, Y).encoded(Square())
    (left,) = ridge.held_out(tasks, None, residuals=True)
    np.testing.assert_allclose(left.at(0).noise_share(), ridge.fit_tasks(tasks).noise_share())
    train, test = np.arange(100), np.arange(100, 150)
    (fold,) = ridge.held_out(tasks, [(train, test)], residuals=True)
    np.testing.assert_allclose(fold.at(0).noise_share(), ridge.fit_tasks(tasks.take(train)).noise_share())
    assert not hasattr(type(left.at(0))([np.ones(3)]), "noise_share")


def problem(m=300, seed=0):
    rng = np.random.default_rng(seed)
    w, root = 0.15 + 0.3 * rng.standard_normal((m, 6)), rng.standard_normal((6, 6))
    return w, np.linalg.inv(np.eye(6) + root @ root.T / 6)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_one_matrix_for_all_rows_is_a_matrix_for_each(law):
    w, Q = problem()
    C = law.fit(w)
    one, each = QuadraticForm(Q, w), QuadraticForm(np.tile(Q, (len(w), 1, 1)), w)
    a, b = decode(one, C), decode(each, C)
    assert (a.status == "ok").all()
    np.testing.assert_allclose(a.c, b.c, atol=1e-9)
    np.testing.assert_allclose(a.value, b.value, atol=1e-10)
    np.testing.assert_array_equal(one.Q, each.Q)
    np.testing.assert_allclose(one.rows(np.arange(5)).value(a.c[:5]), b.value[:5], atol=1e-10)
    # nothing of the set is nearer in that metric
    others = C.sample(2000, 0)
    assert (one.costs(others).min(axis=1) >= a.value - 1e-9).all()


def test_directions_that_the_matrix_ignores_stay_where_they_are():
    w, _ = problem()
    C, Q = Affine(SUMS, [0.0, 1.0]).fit(w), np.diag([1.0, 1, 1, 0, 0, 0])
    np.testing.assert_allclose(C.project_form(Q, w), C.project_form(np.tile(Q, (len(w), 1, 1)), w), atol=1e-9)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_a_full_metric_costs_little_more_than_weights(law):
    w, Q = problem(20_000)
    C, spent = law.fit(w), {"weights": np.inf, "full": np.inf}
    scores = [np.stack([np.ones(len(w)), v], axis=1) for v in w.T]
    for _ in range(5):
        for name, metric in (("weights", np.diagonal(Q).copy()), ("full", Q)):
            loss = Square(metric)
            loss.metric_ = metric
            begin = time.process_time()
            decode(loss.objective(scores, [None] * 6), C)
            spent[name] = min(spent[name], time.process_time() - begin)
    assert spent["full"] < 4 * spent["weights"] + 0.01
