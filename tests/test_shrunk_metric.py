"""Square("shrunk"): variances and correlations of residuals, both shrunk, as a matrix where the law can use one."""

from __future__ import annotations

import numpy as np
import pytest

from lawful import (
    Affine,
    ConstrainedRegressor,
    Equations,
    Inflated,
    KernelRidge,
    PointCloud,
    Product,
    Reals,
    Simplex,
    Sphere,
    Square,
)
from lawful.kernels import Gaussian
from lawful.losses.square import EXTRA, inverse_covariance, shrunk_variances

RNG = np.random.default_rng(0)


def second_moments(residuals):
    return np.array([np.mean(r**2) for r in residuals])


def test_variances_that_differ_by_chance_become_equal_and_others_stay():
    alike = [RNG.standard_normal(15) for _ in range(6)]
    v = shrunk_variances(alike, second_moments(alike))
    assert v.max() / v.min() < 0.5 * second_moments(alike).max() / second_moments(alike).min() + 0.5
    np.testing.assert_allclose(np.log(v).mean(), np.log(second_moments(alike)).mean())
    apart = [RNG.standard_normal(200) * 10.0**k for k in range(-3, 4)]
    np.testing.assert_allclose(shrunk_variances(apart, second_moments(apart)), second_moments(apart), rtol=0.01)
    # more rows, less shrinkage: the limit is the variances themselves
    many = [RNG.standard_normal(20000) * s for s in (1.0, 1.2, 1.5)]
    np.testing.assert_allclose(shrunk_variances(many, second_moments(many)), second_moments(many), rtol=0.01)


def test_units_do_not_matter():
    """Outputs in other units: the metric changes with them, the shrinkage does not."""
    residuals = [RNG.standard_normal(20), 1.3 * RNG.standard_normal(20)]
    v = shrunk_variances(residuals, second_moments(residuals))
    both = [1e3 * r for r in residuals]
    np.testing.assert_allclose(shrunk_variances(both, second_moments(both)), 1e6 * v)


@pytest.mark.parametrize("residuals", [[np.zeros(5), np.zeros(5)], [np.ones(1), np.array([2.0])]], ids=["exact", "one row"])
def test_residuals_that_say_nothing(residuals):
    errors = np.array([1.0, 4.0])
    np.testing.assert_array_equal(shrunk_variances(residuals, errors), errors)


def test_correlations_are_shrunk_by_what_is_not_known_and_some_more():
    e = RNG.standard_normal((50000, 2)) @ np.linalg.cholesky([[1.0, 0.6], [0.6, 1.0]]).T
    rows = [np.arange(len(e))] * 2
    S = np.linalg.inv(inverse_covariance(list(e.T), rows, len(e), second_moments(e.T), EXTRA))
    assert abs(S[0, 1] / np.sqrt(S[0, 0] * S[1, 1]) - (1 - EXTRA) * 0.6) < 0.02


X = RNG.uniform(-1, 1, (50, 2))
Y = np.c_[np.cos(X[:, 0]), np.sin(X[:, 0])] + 0.1 * RNG.standard_normal((50, 1)) * [1, 2] + 0.02 * RNG.standard_normal((50, 2))
SHARES = np.abs(Y) / np.abs(Y).sum(axis=1, keepdims=True)
MATRIX = [Sphere(), Affine([[1.0, 1.0]], [1.0]), Equations("y1**2 + y2**2 = 1"), Inflated(Sphere(), 0.1)]
WEIGHTS = [Simplex(), Reals(), PointCloud(Y[:5]), Product([(Reals(), [0]), (Reals(), [1])])]


@pytest.mark.parametrize("law", MATRIX + WEIGHTS, ids=lambda law: type(law).__name__)
def test_a_matrix_only_where_the_law_can_use_it(law):
    labels = SHARES if isinstance(law, Simplex) else Y
    model = ConstrainedRegressor(law, loss=Square("shrunk"), surrogate=KernelRidge(Gaussian(1.0), lam=1e-3)).fit(X, labels)
    assert model.loss_.metric_.ndim == (1 if any(law is other for other in WEIGHTS) else 2)
    assert np.isfinite(model.predict(X)).all()
    # variances of the weights are those of the matrix
    residuals = model.surrogate_.residuals()
    v = shrunk_variances(residuals, second_moments(residuals))
    found = model.loss_.metric_
    np.testing.assert_allclose(1 / found if found.ndim == 1 else np.diagonal(np.linalg.inv(found)), v, rtol=1e-6)


def test_correlated_noise_is_where_it_pays():
    """Noise of both outputs in common moves a prediction along a known direction: the matrix knows it, weights do not."""
    errors = {"residual": [], "shrunk": []}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        A, B = rng.uniform(-3, 3, (120, 1)), rng.uniform(-3, 3, (200, 1))
        truth = lambda x: np.c_[np.sin(x), np.sin(x) + 1]  # noqa: E731
        noisy = truth(A) + 0.3 * rng.standard_normal((120, 1)) * [1.0, 2.0] + 0.05 * rng.standard_normal((120, 2))
        for metric, found in errors.items():
            model = ConstrainedRegressor(Equations("y2 = y1 + 1"), loss=Square(metric), surrogate=KernelRidge(Gaussian(1.0)))
            found.append(np.mean((model.fit(A, noisy).predict(B) - truth(B)) ** 2))
    assert np.mean(errors["shrunk"]) < 0.9 * np.mean(errors["residual"])
