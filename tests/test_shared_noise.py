"""`KernelRidge(noise="shared")`: one noise level for all outputs, against brute force and by what it is worth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from lawful import ConstrainedRegressor, KernelRidge, Sphere, kernels, load
from lawful.surrogates.evidence import Labels, vertex
from lawful.surrogates.shared_noise import GRID, PRIOR, heights, path

RNG = np.random.default_rng(0)
NOISE = 0.2


def outputs(n, T=6, own_rows=True):
    """T waves of two inputs, of unequal height, seen with the same noise; on rows of their own, or on the same."""
    X, W = RNG.uniform(-1, 1, (n * T if own_rows else n, 2)), 1.5 * RNG.standard_normal((2, T))
    height, phase = np.exp(0.7 * RNG.standard_normal(T)), RNG.uniform(0, 6, T)

    def truth(x):
        return height * np.sin(x @ W + phase)

    Y = truth(X) + NOISE * RNG.standard_normal((len(X), T))
    if own_rows:
        Y[np.arange(T)[None, :] != np.repeat(np.arange(T), n)[:, None]] = np.nan
    return X, Y, truth


def test_likelihood_at_a_known_noise_is_that_of_a_normal_distribution():
    X, y, w = RNG.standard_normal((9, 2)), RNG.standard_normal(9), RNG.uniform(0.5, 2, 9)
    labels = Labels(X, w * 9 / w.sum(), y, 0.0, 9, False)
    kernel = kernels.Gaussian(1.3)
    penalty, quadratic = path(labels, kernel)
    found = heights(penalty, quadratic, labels.free, np.log([0.05, 0.3])) - PRIOR[:, None]
    for k in (80, 120, 160):
        for j, sigma2 in enumerate((0.05, 0.3)):
            s2 = sigma2 / np.exp(GRID[k])
            cov = s2 * kernel(X, X) + np.diag(sigma2 / labels.w)
            expected = -multivariate_normal(np.zeros(9), cov).logpdf(y) - 4.5 * np.log(2 * np.pi)
            np.testing.assert_allclose(found[k, j], expected, rtol=1e-9)


def test_level_is_the_most_likely_one():
    """Brute force over the noise and every task's own variance, at the kernels that were found."""
    X, Y, _ = outputs(14, 3)
    ridge = KernelRidge(kernels.Matern(2.5), intercept=False, noise="shared").fit(X, Y)
    groups = [(X[np.isfinite(y)], y[np.isfinite(y)], k) for y, k in zip(Y.T, ridge.kernels_)]

    def minus(x):
        total = 0.0
        for (points, y, kernel), log_s2 in zip(groups, x[1:]):
            cov = np.exp(log_s2) * kernel(points, points) + np.exp(x[0]) * np.eye(len(y))
            log_g = x[0] - log_s2
            total -= multivariate_normal(np.zeros(len(y)), cov).logpdf(y) - np.interp(log_g, GRID, PRIOR)
        return total

    best = minimize(minus, np.r_[np.log(NOISE**2), np.zeros(3)], method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-6})
    np.testing.assert_allclose(np.log(ridge._noise), best.x[0], atol=0.02)
    g = ridge.lam_ * 14
    np.testing.assert_allclose(np.log(ridge._noise / g), best.x[1:], atol=0.05)


def test_every_output_has_the_same_noise_and_units_do_not_matter():
    X, Y, _ = outputs(20)
    ridge = KernelRidge(noise="shared").fit(X, Y)
    noises = [part.noise for part in ridge._parts]
    np.testing.assert_allclose(np.concatenate(noises), ridge._noise)
    assert abs(np.log(np.sqrt(ridge._noise) / NOISE)) < 0.3
    other = KernelRidge(noise="shared").fit(X, 1024 * Y)
    np.testing.assert_allclose(other.lam_, ridge.lam_, rtol=1e-9)
    np.testing.assert_allclose(other._noise, 1024**2 * ridge._noise, rtol=1e-9)
    with_constant = KernelRidge(noise="shared").fit(X, np.c_[Y, np.ones(len(X))])
    np.testing.assert_allclose(with_constant.predict(X[:3])[:, -1], 1.0)


def test_it_is_worth_having():
    """Outputs of few rows each: smaller errors, intervals that cover what they say."""
    ratios, covered = [], {"own": [], "shared": []}
    for _ in range(6):
        X, Y, truth = outputs(15)
        new = RNG.uniform(-1, 1, (200, 2))
        seen = truth(new) + NOISE * RNG.standard_normal((200, 6))
        errors = {}
        for noise in covered:
            mean, std = KernelRidge(noise=noise).fit(X, Y).predict(new, return_std=True)
            errors[noise] = np.log(((mean - truth(new)) ** 2).mean(axis=0)).mean()
            covered[noise].append(np.mean(abs(seen - mean) < 1.645 * std))
        ratios.append(errors["shared"] - errors["own"])
    assert np.exp(np.mean(ratios)) < 1
    assert abs(np.mean(covered["shared"]) - 0.9) < 0.05


def test_fits_in(tmp_path):
    X, Y, _ = outputs(25, 3, own_rows=False)
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    model = ConstrainedRegressor(Sphere(), surrogate=KernelRidge(noise="shared")).fit(X, Y)
    model.save(tmp_path / "m.lawful")
    again = load(tmp_path / "m.lawful")
    assert again.surrogate_.noise == "shared"
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    single = KernelRidge(noise="shared").fit(X, Y[:, 0])
    np.testing.assert_allclose(single.predict(X), KernelRidge().fit(X, Y[:, 0]).predict(X), atol=0.02)


LACKING = [{"tune": "loo"}, {"lam": 1e-3}, {"noise": "mine"}]
LACKING += [{"kernel": kernels.Gaussian(1.0)}, {"kernel": [kernels.Gaussian()] * 2}]


@pytest.mark.parametrize("settings", LACKING)
def test_what_it_cannot_be_asked_for(settings):
    X, Y, _ = outputs(10, 2, own_rows=False)
    with pytest.raises(ValueError, match="KernelRidge"):
        KernelRidge(**({"noise": "shared"} | settings)).fit(X, Y)


def test_vertices():
    x = np.linspace(-1, 1, 9)
    assert vertex(x, (x - 0.13) ** 2) == pytest.approx(0.13)
    assert vertex(x, x) == -1 and vertex(x, 0 * x) == -1
    singular = np.r_[np.full(3, np.inf), (x[3:] - x[3]) ** 2]
    assert vertex(x, singular) == x[3] and vertex(x, np.full(9, np.inf)) == -1


def test_labels_that_say_nothing():
    mean, std = KernelRidge(noise="shared").fit([[0.0], [1.0], [2.0]], np.ones((3, 2))).predict([[0.5]], return_std=True)
    np.testing.assert_allclose(mean, 1.0)
    assert np.isfinite(std).all()
