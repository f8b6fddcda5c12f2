"""Details that a random change of the code once got past all tests (`make mutants`); each test here notices one."""

from __future__ import annotations

import numpy as np
import pytest

from lawful import Absolute, Equations, Hinge, Huber, Logistic, Pinball, Sphere, Square
from lawful.kernels import Gaussian, Linear, Polynomial, Precomputed
from lawful.losses.objective import SmoothObjective
from lawful.losses.square import check_metric, residual_variance
from lawful.surrogates import exact
from lawful.surrogates.exact import CholeskyFactor, SpectralFactor, distinct


@pytest.mark.parametrize(("a", "b"), [((1.0, 3.0), (30.0, 40.0)), ((2.0, 0.5), (-5.0, 7.0)), ((1.0, 1.5), (100.0, 0.1))])
def test_far_predictions_are_projected_onto_a_sphere_by_their_weights(a, b):
    """argmin of sum_t a_t c_t^2 - 2 b_t c_t over the circle, against all angles; the multiplier is far above 1."""
    a, b = np.array([a]), np.array([b])
    c = Sphere().fit(np.zeros((1, 2))).project(b, a)[0]
    angle = np.linspace(-np.pi, np.pi, 400_001)
    points = np.c_[np.cos(angle), np.sin(angle)]
    best = points[np.argmin((a * points**2 - 2 * b * points).sum(axis=1))]
    np.testing.assert_allclose(c, best, atol=3e-5)


def test_labels_that_are_all_the_same_have_their_own_size_as_scale():
    """Corners are rounded over a share of the range of the labels; 5, 5, 5 have the range 5, and 0, 0, 0 have 1."""
    loss = Huber(1.0)
    seen = []
    loss.rounded = lambda width: seen.append(width) or loss
    for label, width in ((5.0, 0.5), (-2.0, 0.2), (0.0, 0.1)):
        atoms, scores = [np.full(3, label)], [np.ones((1, 3)) / 3]
        SmoothObjective([loss], scores, atoms, np.zeros(1, bool)).rounded(0.1)
        assert seen.pop() == pytest.approx(width)


def test_the_scale_of_lambda_is_the_weighted_mean_of_the_kernels_diagonal():
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((9, 2)), rng.uniform(0.5, 3, 9)
    kernel = Polynomial(2)
    factor = SpectralFactor(kernel, distinct(X, np.arange(9), w, kernel))
    assert factor.level == pytest.approx(np.average(kernel.diag(X), weights=w))


@pytest.mark.parametrize(("size", "level"), [(1e-100, 1e-100), (0.5, 0.5), (1e-290, 1.0), (0.0, 1.0)])
def test_a_kernel_that_vanishes_has_the_scale_one(size, level):
    K = size * np.eye(3)
    assert SpectralFactor(Precomputed(), distinct(K, np.arange(3), np.ones(3), Precomputed())).level == pytest.approx(
        level, rel=1e-12
    )


@pytest.mark.parametrize("large", [10_000, 3], ids=["whole", "in place"])
def test_an_indefinite_matrix_is_named_with_its_own_eigenvalues(large, monkeypatch):
    """A factorisation in place that fails leaves the matrix as it was, for the message."""
    monkeypatch.setattr(exact, "LARGE", large)
    K = np.eye(4) + 3 * np.eye(4)[[1, 0, 2, 3]] * np.array([1, 1, 0, 0])  # [[1, 3], [3, 1]] and ones
    sample = distinct(K, np.arange(4), np.ones(4), Precomputed())
    with pytest.raises(ValueError, match=r"eigenvalues from -2\.0e\+00 to 4\.0e\+00"):
        CholeskyFactor(Precomputed(), sample, 0.25, intercept=False)


@pytest.mark.parametrize("kind", [SpectralFactor, lambda kernel, sample: CholeskyFactor(kernel, sample, 0.1)])
def test_a_slim_factor_still_predicts_and_knows_its_variance(kind):
    rng = np.random.default_rng(1)
    X, Z = rng.standard_normal((8, 2)), rng.standard_normal((8, 1))
    factor = kind(Gaussian(1.0), distinct(X, np.arange(8), np.ones(8), Gaussian(1.0)))
    solution = factor.solve(Z, 0.1)
    before = factor.predict(X, solution), factor.scores(X, 0.1), factor.variance(X, 0.1)
    factor.slim()
    after = factor.predict(X, solution), factor.scores(X, 0.1), factor.variance(X, 0.1)
    for one, two in zip(before, after):
        np.testing.assert_array_equal(one, two)


def test_a_lambda_that_is_lost_beside_the_matrix_is_refused():
    X = np.arange(5.0)[:, None]
    factor = SpectralFactor(Linear(), distinct(X, np.arange(5), np.ones(5), Linear()), intercept=False)
    with pytest.raises(ValueError, match="is lost beside the kernel matrix"):
        factor.solve(X, 1e-25)
    np.testing.assert_allclose(factor.predict(X, factor.solve(X, 1e-9)), X, atol=1e-6)


def test_the_quadratic_above_the_logistic_is_the_tightest():
    """It touches at c and at -c (Jaakkola & Jordan)."""
    c, loss = np.array([0.3, -1.0, 4.0]), Logistic()
    for y in (1.0, -1.0):
        above = loss(c, y) - 2 * c * loss.derivative(c, y) + 2 * c**2 * loss.curvature(c, y)
        np.testing.assert_allclose(above, loss(-c, y), rtol=1e-12)
    assert loss.curvature(np.zeros(1), 1.0) == pytest.approx(0.25)


@pytest.mark.parametrize(
    "metric", [[1.0, 0.0], [1.0, -0.5], [[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.5], [0.0, 1.0]], [1.0, 1.0, 1.0]]
)
def test_a_metric_that_ignores_an_output_is_refused(metric):
    with pytest.raises(ValueError, match="give 2 positive weights or a"):
        check_metric(metric, 2)
    np.testing.assert_array_equal(check_metric([0.5, 1e-9], 2), [0.5, 1e-9])


def test_a_law_that_takes_no_matrix_gets_the_variances_alone():
    """Unless it says that it takes one directly, for "auto"."""
    full, alone = np.linalg.inv([[2.0, 1.0], [1.0, 4.0]]), [0.5, 0.25]
    for name, direct, expected in (
        ("auto", True, full),
        ("auto", False, alone),
        ("shrunk", False, alone),
        ("full", False, full),
    ):
        loss = Square(name)
        loss.metric_ = full
        loss.uncouple(direct) if direct else loss.uncouple()
        np.testing.assert_allclose(loss.metric_, expected)


@pytest.mark.parametrize("loss", [Absolute(), Pinball(0.3), Hinge()], ids=repr)
def test_breakpoints_are_where_a_loss_bends(loss):
    """Slopes differ left and right of each, and nowhere else."""
    atoms = np.array([0.5, -2.0, 1.0])
    bends = np.sort(loss.breakpoints(atoms))
    places = np.concatenate([bends, (bends[1:] + bends[:-1]) / 2 + 0.01, bends[[0, -1]] + [-1, 1]])
    left, here, right = (loss((places + h)[:, None], atoms[None, :]).sum(axis=1) for h in (-1e-4, 0.0, 1e-4))
    bent = abs(left + right - 2 * here) > 1e-6
    np.testing.assert_array_equal(bent, [True] * 3 + [False] * 4)


def test_two_residuals_are_enough_for_an_error_and_one_is_not():
    two = residual_variance(np.array([1.0, 3.0]), np.array([3.0, 1.0]), 50.0)
    assert two == pytest.approx(3.0) and residual_variance(np.array([1.0]), np.ones(1), 50.0) == 50.0
    assert residual_variance(np.zeros(3), np.ones(3), 50.0) == pytest.approx(50e-18)


def test_outputs_snap_to_where_they_are_fixed_or_bounded_on_either_side():
    """Only by rounding, and from a bound only where it is violated; the sign of the coefficient is the law's business."""
    C = Equations(["-y1 = -2", "-y2 <= 0", "3*y3 <= 6"]).fit(np.zeros((1, 3)))
    c = np.array([[2 + 1e-13, -1e-13, 2 + 1e-13], [2 - 1e-13, 1e-13, 2 - 1e-13], [2.1, -0.1, 2.1]])
    np.testing.assert_array_equal(C.snap(c), [[2.0, 0.0, 2.0], [2.0, 1e-13, 2 - 1e-13], [2.1, -0.1, 2.1]])
