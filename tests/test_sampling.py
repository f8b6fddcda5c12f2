"""Draws from the prediction restricted to the law: on the law, and of the right distribution, by references of another kind."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from lawful import (
    Affine,
    Ball,
    Box,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    Ellipsoid,
    Equations,
    Intersection,
    KernelRidge,
    PointCloud,
    Product,
    Reals,
    Rotations,
    Samples,
    SamplingWarning,
    Simplex,
    Sphere,
    Union,
)
from lawful.decoders import decode
from lawful.kernels import Gaussian
from lawful.losses.quadratic import Quadratic, QuadraticForm
from lawful.uncertainty import draw
from lawful.uncertainty.polyhedra import truncated_normal
from lawful.uncertainty.samples import diagnostics


def sampled(C, w, P, n, thin=3, seed=0):
    w = np.asarray(w, dtype=float)
    F = QuadraticForm(P, w) if P.ndim == 3 else Quadratic.around(w, P)
    C = C.fit(w)
    return F, draw(F, C, decode(F, C).c, n, seed, thin)


def precision(rng, m, T, size=1.0):
    A = rng.standard_normal((m, T, T))
    return (A @ A.transpose(0, 2, 1) + np.eye(T)) / size**2


def weighted(F, points, area=1.0):
    cost = F.costs(points)
    p = area * np.exp(-(cost - cost.min(axis=1, keepdims=True)) / 2)
    p /= p.sum(axis=1, keepdims=True)
    mean = p @ points
    away = points[None] - mean[:, None]
    return mean, np.einsum("ij,ijt,ijs->its", p, away, away)


def agree(F, draws, points, area=1.0, limit=4.5):
    """Mean and covariance within Monte Carlo error of a quadrature or of weighted uniform points."""
    mean, covariance = weighted(F, points, area)
    found = np.asarray(draws)
    se = found.std(axis=1) / np.sqrt(draws.ess)[:, None]
    assert np.abs((found.mean(axis=1) - mean) / se).max() < limit
    away = found - found.mean(axis=1, keepdims=True)
    products = np.einsum("int,ins->ints", away, away)
    se = products.std(axis=1) / np.sqrt(draws.ess)[:, None, None]
    assert np.abs((products.mean(axis=1) - covariance) / se).max() < limit


def circle_points(n=4000):
    angle = 2 * np.pi * np.arange(n) / n
    return np.c_[np.cos(angle), np.sin(angle)]


@pytest.mark.parametrize("size", [0.05, 0.4, 2.0])
def test_circle_against_quadrature(size):
    """From a narrow prediction to one that knows next to nothing; the second row lies at the center, with two modes."""
    P = precision(np.random.default_rng(1), 3, 2, size)
    F, draws = sampled(Equations("y1**2 + y2**2 = 1"), [[0.9, 0.5], [0.02, -0.01], [-1.3, 0.2]], P, 3000)
    assert draws.exact.all()
    assert np.abs((draws**2).sum(axis=2) - 1).max() <= 1e-12
    agree(F, draws, circle_points())


def test_ellipse_is_measured_by_its_arc_length():
    """A flat prediction gives draws uniform in arc length, not in angle."""
    F, draws = sampled(Ellipsoid([3.0, 1.0]), [[0.0, 0.0]], np.full((1, 2), 1e-6), 4000)
    points = circle_points() * [3.0, 1.0]
    length = np.linalg.norm(np.roll(points, -1, axis=0) - np.roll(points, 1, axis=0), axis=1) / 2
    agree(F, draws, points, length)


def test_sphere_against_quadrature():
    P = precision(np.random.default_rng(2), 2, 3, 0.7)
    F, draws = sampled(Equations("y1**2 + y2**2 + y3**2 = 1"), [[0.9, 0.5, 0.1], [0.1, 0.0, -0.3]], P, 1500)
    assert not draws.exact.any()
    assert np.abs((draws**2).sum(axis=2) - 1).max() <= 1e-12
    height, weight = np.polynomial.legendre.leggauss(80)
    z, a = (v.ravel() for v in np.meshgrid(height, 2 * np.pi * np.arange(160) / 160, indexing="ij"))
    r = np.sqrt(1 - z**2)
    agree(F, draws, np.c_[r * np.cos(a), r * np.sin(a), z], np.repeat(weight, 160))


def test_surface_whose_equation_is_written_twice_and_scaled():
    """The measure is that of the surface, not of how its law is written."""
    P = precision(np.random.default_rng(3), 1, 3, 0.3)
    w = [[1.0, 0.2, 0.4]]
    laws = ["y3 = y1 * y2"], ["y3 = y1 * y2", "1000 * y3 * exp(y1) = 1000 * y1 * y2 * exp(y1)"]
    means = [np.asarray(sampled(Equations(law), w, P, 1200)[1]).mean(axis=1) for law in laws]
    y1, y2 = (v.ravel() for v in np.meshgrid(*[np.linspace(-1.5, 3, 400)] * 2))
    mean, covariance = weighted(QuadraticForm(P, np.array(w)), np.c_[y1, y2, y1 * y2], np.sqrt(1 + y1**2 + y2**2))
    for found in means:
        assert np.abs((found - mean) / np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))).max() < 0.15


@pytest.mark.parametrize("T", [2, 4])
def test_simplex_against_uniform_points(T):
    rng = np.random.default_rng(4)
    w = np.array([[0.9, 0.5, -0.2, 0.1], [0.3, 0.2, 0.3, 0.2]])[:, :T]
    F, draws = sampled(Simplex(), w, rng.uniform(5, 50, w.shape), 4000)
    assert draws.min() >= -1e-12 and np.abs(draws.sum(axis=2) - 1).max() <= 1e-12
    agree(F, draws, rng.dirichlet(np.ones(T), 200_000), limit=5)


def test_affine_is_conditioning():
    rng = np.random.default_rng(5)
    P, w, A = precision(rng, 1, 4), rng.standard_normal((1, 4)), rng.standard_normal((2, 4))
    _, draws = sampled(Affine(A, [1.0, -1.0]), w, P, 20_000)
    S = np.linalg.inv(P[0])
    gain = S @ A.T @ np.linalg.inv(A @ S @ A.T)
    mean, covariance = w[0] + gain @ ([1.0, -1.0] - A @ w[0]), S - gain @ A @ S
    assert np.abs(draws @ A.T - [1.0, -1.0]).max() <= 1e-12
    assert np.abs((np.asarray(draws)[0].mean(axis=0) - mean) / np.sqrt(np.diag(covariance) / 20_000)).max() < 4
    np.testing.assert_allclose(np.cov(np.asarray(draws)[0].T), covariance, atol=0.06 * np.diag(covariance).max())


def test_box_is_a_truncated_normal():
    """Far outside too, where a cumulative distribution function has no digits left."""
    _, draws = sampled(Box(0.0, np.inf), [[-20.0], [0.5]], np.ones((2, 1)), 4000)
    found = np.asarray(draws)[:, :, 0]
    assert found.min() >= 0
    np.testing.assert_allclose(found[0].mean(), 1 / 20, rtol=0.1)  # about exponential with rate 20
    from scipy.stats import truncnorm

    np.testing.assert_allclose(found[1].mean(), truncnorm.mean(-0.5, np.inf, 0.5), rtol=0.05)
    assert np.isfinite(truncated_normal(np.array([40.0, -np.inf]), np.array([41.0, -38.0]), np.random.default_rng(0))).all()


def test_finite_sets_are_weighted_counts():
    rng = np.random.default_rng(6)
    points = rng.standard_normal((30, 3))
    F, draws = sampled(PointCloud(points), rng.standard_normal((2, 3)), precision(rng, 2, 3), 8000)
    agree(F, draws, points)


def test_two_branches_have_their_masses():
    """A hyperbola: the branches do not touch, and the chain of one would never see the other."""
    P = np.full((1, 2), 0.5)
    F, draws = sampled(Equations("y1 * y2 = 1"), [[0.1, 0.15]], P, 4000)
    t = np.exp(np.linspace(-4, 4, 4000))
    half = np.c_[t, 1 / t]
    area = np.gradient(np.log(t)) * np.sqrt(t**2 + 1 / t**2)
    agree(F, draws, np.concatenate([half, -half]), np.tile(area, 2))
    assert 0.2 < (draws[0, :, 0] > 0).mean() < 0.8


def test_two_sheets_in_space_have_their_masses():
    """y3^2 = 1 + y1^2 + y2^2: two sheets, reached only by jumps from mode to mode."""
    F, draws = sampled(Equations("y3**2 = 1 + y1**2 + y2**2"), [[0.0, 0.0, 0.3]], np.ones((1, 3)), 2400)
    y1, y2 = (v.ravel() for v in np.meshgrid(*[np.linspace(-5, 5, 300)] * 2))
    y3 = np.sqrt(1 + y1**2 + y2**2)
    area = np.sqrt(1 + (y1**2 + y2**2) / y3**2)
    mean, _ = weighted(F, np.concatenate([np.c_[y1, y2, y3], np.c_[y1, y2, -y3]]), np.tile(area, 2))
    assert abs(float(draws[0, :, 2].mean()) - mean[0, 2]) < 0.2
    assert 0.05 < (draws[0, :, 2] < 0).mean() < 0.95


@pytest.mark.parametrize(
    "C, T",
    [
        (Ball(), 3),
        (Reals(), 2),
        (Rotations(2), 4),
        (Rotations(3), 9),
        (Sphere(), 4),
        (Equations(["y1**2 + y2**2 = 1", "y1 >= 0.9"]), 2),
        (Equations(["y1**2 + y2**2 <= 1", "y1 >= 0"]), 2),
        (Equations("y1**4 = y1**2 - y2**2"), 2),
        (Product([(Sphere(), [0, 1]), (Simplex(), [2, 3])]), 4),
        (Intersection([Sphere(), Box(0, 1)]), 3),
        (Equations(["y1 + y2 = 1", "y1 >= 0", "y2 >= 0"]), 2),
    ],
    ids=str,
)
def test_every_draw_obeys_the_law(C, T):
    rng = np.random.default_rng(7)
    w = 0.7 * rng.standard_normal((3, T))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        _, draws = sampled(C, w, np.full((3, T), 4.0), 60)
    assert draws.shape == (3, 60, T)
    assert C.contains(np.asarray(draws).reshape(-1, T)).all()
    assert (draws.std(axis=1).max(axis=1) > 0).all()


def test_a_law_that_depends_on_inputs():
    X = np.random.default_rng(8).uniform(1, 2, (40, 1))
    Y = np.c_[np.sqrt(X) * np.cos(X), np.sqrt(X) * np.sin(X)]
    model = ConstrainedRegressor(Equations("y1**2 + y2**2 = x1"), surrogate=KernelRidge(Gaussian(1.0), lam=1e-4)).fit(X, Y)
    draws = model.sample(X[:6], 50, random_state=1)
    assert np.abs((draws**2).sum(axis=2) - X[:6]).max() <= 1e-12


def fitted(**options):
    X = np.linspace(-3, 3, 40)[:, None]
    Y = np.c_[np.cos(X), np.sin(X)] + 0.05 * np.random.default_rng(0).standard_normal((40, 2))
    return ConstrainedRegressor(Sphere(), surrogate=KernelRidge(Gaussian(1.0), lam=1e-3), **options).fit(X, Y), X, Y


def test_decode_carries_draws():
    model, X, _ = fitted()
    d = model.decode(X[:3], sample=20, random_state=3)
    assert isinstance(d.samples, Samples) and d.samples.shape == (3, 20, 2)
    np.testing.assert_array_equal(d.samples, model.sample(X[:3], 20, random_state=3))
    assert model.decode(X[:3]).samples is None
    np.testing.assert_allclose(d.c, d.samples.mean(axis=1), atol=0.1)


def test_the_search_samples_too():
    _, X, Y = fitted()
    search = ConstrainedRegressorCV(Sphere(), kernels=[1.0], cv=3).fit(X, Y)
    assert search.sample(X[:2], 5, random_state=0).shape == (2, 5, 2)
    assert search.decode(X[:2], sample=5).samples.shape == (2, 5, 2)


def test_the_prediction_is_that_of_decode():
    model, X, _ = fitted()
    F = model.predictive(X[:5])
    np.testing.assert_allclose(F.center, model.objective(X[:5]).center)
    S = np.linalg.inv(np.asarray(F.hessian(F.center)) / 2)
    np.testing.assert_allclose(np.sqrt(np.diagonal(S, axis1=1, axis2=2)), model.decode(X[:5]).std)


def test_regressors_without_a_variance_have_their_held_out_errors():
    from sklearn.linear_model import LinearRegression

    _, X, Y = fitted()
    model = ConstrainedRegressor(Sphere(), surrogate=LinearRegression()).fit(X, Y)
    assert np.abs((model.sample(X[:2], 10, random_state=0) ** 2).sum(axis=2) - 1).max() < 1e-12


def test_slices_are_plain_arrays():
    model, X, _ = fitted()
    draws = model.sample(X[:2], 6, random_state=0)
    assert draws[0].ess is None and (draws + 1).rhat is None and draws.ess.tolist() == [6, 6]


def test_bad_input():
    model, X, _ = fitted()
    with pytest.raises(ValueError, match="sample: n=0 will not do; give a whole number"):
        model.sample(X, 0)
    w = np.zeros((1, 2))
    C = Union([Sphere(), Box(0, 1)]).fit(w)
    with pytest.raises(TypeError, match="sample cannot draw from Union"):
        draw(Quadratic.around(w), C, w, 5)
    with pytest.raises(ValueError, match="leave no room"):
        sampled(Equations(["y1 <= 1", "y1 >= 1"]), w, np.ones((1, 2)), 5)


def test_chains_that_do_not_mix_say_so():
    slow = np.cumsum(np.random.default_rng(9).standard_normal((1, 4, 200, 1)), axis=2)
    share, rhat = diagnostics(slow)
    assert rhat[0] > 1.2 and share[0] < 0.1
    good = np.random.default_rng(9).standard_normal((1, 4, 200, 2))
    share, rhat = diagnostics(good)
    assert rhat[0] < 1.05 and share[0] > 0.4
    assert diagnostics(np.ones((1, 4, 200, 1)))[1][0] == 1  # an output that the law fixes

    w = np.full((1, 6), 2.0)
    with pytest.warns(SamplingWarning, match="give a larger thin"):
        sampled(Equations([f"sin(40*y{t}) + y{t + 1}**3 <= 0.2" for t in range(1, 6)]), w, np.full((1, 6), 0.2), 40, thin=1)
