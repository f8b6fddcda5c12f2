"""Details that a random change of the code once got past all tests (`make mutants`); each test here notices one."""

from __future__ import annotations

import numpy as np
import pytest

from lawful import Huber, Sphere
from lawful.kernels import Polynomial, Precomputed
from lawful.losses.objective import SmoothObjective
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


@pytest.mark.parametrize("large", [10_000, 3], ids=["whole", "in place"])
def test_an_indefinite_matrix_is_named_with_its_own_eigenvalues(large, monkeypatch):
    """A factorisation in place that fails leaves the matrix as it was, for the message."""
    monkeypatch.setattr(exact, "LARGE", large)
    K = np.eye(4) + 3 * np.eye(4)[[1, 0, 2, 3]] * np.array([1, 1, 0, 0])  # [[1, 3], [3, 1]] and ones
    sample = distinct(K, np.arange(4), np.ones(4), Precomputed())
    with pytest.raises(ValueError, match=r"eigenvalues from -2\.0e\+00 to 4\.0e\+00"):
        CholeskyFactor(Precomputed(), sample, 0.25, intercept=False)
