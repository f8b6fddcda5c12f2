"""Every kernel x every property it must have. A new kernel is one line in KERNELS."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Matern as GPMatern
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from lawful._array import to_numpy
from lawful.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial, Precomputed, as_kernel

RNG = np.random.default_rng(0)
X, Z = RNG.standard_normal((12, 3)), RNG.standard_normal((7, 3))
SCALES = np.array([0.5, 1.0, 3.0])


def cosine(X, Z):
    return (X @ Z.T) / np.sqrt((X**2).sum(1)[:, None] * (Z**2).sum(1)[None, :])


STATIONARY = {
    "gaussian": Gaussian(1.3),
    "gaussian ard": Gaussian(SCALES),
    "laplacian": Laplacian(1.3),
    "laplacian ard": Laplacian(SCALES),
    "matern 1/2": Matern(0.5, SCALES),
    "matern 3/2": Matern(1.5, 2.0),
    "matern 5/2": Matern(2.5, SCALES),
}
ARRAY_API = STATIONARY | {"polynomial": Polynomial(3, 0.5, 2.0), "linear": Linear(0.7)}
KERNELS = ARRAY_API | {"function": as_kernel(cosine)}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_kernel_is_symmetric_positive_and_has_its_diagonal(kernel):
    K = kernel(X, X)
    np.testing.assert_allclose(K, K.T, atol=1e-14)
    assert np.linalg.eigvalsh(K)[0] > -1e-12 * np.trace(K)
    np.testing.assert_allclose(kernel.diag(X), np.diag(K), rtol=1e-13)
    rows = np.array([4, 1, 9])
    np.testing.assert_allclose(kernel.gram(X, rows), K[np.ix_(rows, rows)], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(kernel.cross(Z, X, rows), kernel(Z, X)[:, rows], rtol=1e-13, atol=1e-15)
    assert repr(clone(kernel)) == repr(kernel)


def test_kernels_against_scikit_learn():
    np.testing.assert_allclose(Gaussian(1.7)(X, Z), rbf_kernel(X, Z, gamma=1 / 1.7**2), rtol=1e-12)
    np.testing.assert_allclose(Gaussian(SCALES)(X, Z), rbf_kernel(X / SCALES, Z / SCALES, gamma=1), rtol=1e-12)
    np.testing.assert_allclose(Laplacian(1.7)(X, Z), laplacian_kernel(X, Z, gamma=1 / 1.7), rtol=1e-12)
    np.testing.assert_allclose(
        Polynomial(3, 0.5, 2.0)(X, Z), polynomial_kernel(X, Z, degree=3, gamma=0.5, coef0=2.0), rtol=1e-12
    )
    for nu in (0.5, 1.5, 2.5):
        np.testing.assert_allclose(Matern(nu, SCALES)(X, Z), GPMatern(SCALES, nu=nu)(X, Z), rtol=1e-12)


@pytest.mark.parametrize("kernel", STATIONARY.values(), ids=STATIONARY.keys())
def test_distances_are_those_of_differences_input_by_input(kernel):
    """In one compiled pass, and the slow way where numbers are too large for it."""
    sigma = kernel.scales(3)
    for A, B in ((X, Z), (X + 1e8, Z + 1e8), (1e-8 * X, 1e-8 * Z), (np.r_[X, Z], Z)):
        gap = np.abs(A[:, None] - B[None]) / sigma
        np.testing.assert_allclose(kernel.distance(A, B), (gap**kernel.power).sum(axis=2), rtol=1e-7, atol=1e-300)
    assert (kernel.distance(X, X).diagonal() == 0).all()
    far = kernel.distance(np.array([[1e308, 0, 0], [-1e308, 0, 0]]), np.array([[1e308, 0, 0]]))
    assert far[0, 0] == 0 and far[1, 0] == np.inf
    assert kernel.distance(X.astype(np.float32), Z.astype(np.float32)).dtype == np.float32
    assert kernel.distance(X, Z[:0]).shape == (12, 0)


def test_linear_features_reproduce_the_kernel():
    kernel = Linear(0.7)
    np.testing.assert_allclose(kernel.features(X) @ kernel.features(Z).T, kernel(X, Z), rtol=1e-13)


def test_gaussian_keeps_close_inputs_apart_far_from_the_origin():
    """|x|^2 + |z|^2 - 2 x.z would lose these differences altogether."""
    x = np.array([[1e6, 1e6], [1e6 + 1e-3, 1e6]])
    gap = x[1, 0] - x[0, 0]
    assert 1 - Gaussian(1.0)(x, x)[0, 1] == pytest.approx(gap**2, rel=1e-3)


@pytest.mark.parametrize("d", [3, 40])
@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), Matern(0.5), Matern(1.5), Matern(2.5)], ids=repr)
def test_contract_is_the_derivative_in_log_length_scales(kernel, d):
    rng = np.random.default_rng(1)
    A, W = rng.standard_normal((9, d)), rng.standard_normal((9, 9))
    scales = np.sqrt(d) * rng.uniform(0.5, 3.0, d)
    exact = clone(kernel).set_params(sigma=scales).contract(W, A)
    for j in range(d):
        h = 1e-5 * np.eye(d)[j]
        up = clone(kernel).set_params(sigma=scales * np.exp(h))(A, A)
        down = clone(kernel).set_params(sigma=scales * np.exp(-h))(A, A)
        assert exact[j] == pytest.approx(np.sum(W * (up - down)) / 2e-5, rel=1e-5, abs=1e-7)


EVERY_WIDTH = {name: kernel for name, kernel in ARRAY_API.items() if not np.ndim(getattr(kernel, "sigma", 1.0))}
WIDTHS = [(name, 3) for name in ARRAY_API] + [(name, 40) for name in EVERY_WIDTH]  # three length scales fit three inputs


@pytest.mark.parametrize("name, d", WIDTHS)
def test_kernels_on_the_strict_array_api(name, d):
    kernel = ARRAY_API[name]
    rng = np.random.default_rng(2)
    A, B = rng.standard_normal((6, d)) / np.sqrt(d), rng.standard_normal((5, d)) / np.sqrt(d)  # near enough to see each other
    result = kernel(strict.asarray(A), strict.asarray(B))
    assert isinstance(result, type(strict.asarray(0.0)))
    np.testing.assert_allclose(to_numpy(result), kernel(A, B), rtol=1e-12)
    np.testing.assert_allclose(to_numpy(kernel.diag(strict.asarray(A))), kernel.diag(A), rtol=1e-12)
    rows = np.array([3, 0])
    np.testing.assert_allclose(to_numpy(kernel.gram(strict.asarray(A), strict.asarray(rows))), kernel.gram(A, rows), rtol=1e-12)
    if hasattr(kernel, "contract"):
        W = rng.standard_normal((6, 6))
        np.testing.assert_allclose(kernel.contract(strict.asarray(W), strict.asarray(A)), kernel.contract(W, A), rtol=1e-10)


@pytest.mark.torch
@pytest.mark.parametrize("kernel", ARRAY_API.values(), ids=ARRAY_API.keys())
def test_kernels_on_torch(kernel):
    import torch

    result = kernel(torch.asarray(X), torch.asarray(Z))
    assert isinstance(result, torch.Tensor)
    np.testing.assert_allclose(to_numpy(result), kernel(X, Z), rtol=1e-12)


def test_precomputed_chooses_columns_as_well_as_rows():
    K, cross, rows = Gaussian(1.0)(X, X), Gaussian(1.0)(Z, X), np.array([5, 2])
    np.testing.assert_array_equal(Precomputed().gram(K, rows), K[np.ix_(rows, rows)])
    np.testing.assert_array_equal(Precomputed().cross(cross, K, rows), cross[:, rows])
    with pytest.raises(ValueError, match="square Gram"):
        Precomputed().gram(cross, rows)
    with pytest.raises(ValueError, match="one column per training row"):
        Precomputed().cross(K[:, :3], K, rows)
    with pytest.raises(TypeError, match="variance"):
        Precomputed().diag(K)
    with pytest.raises(TypeError, match="gram and cross"):
        Precomputed()(X, Z)


def test_errors_say_what_would_do():
    with pytest.raises(ValueError, match="KernelRidge tunes it"):
        Gaussian()(X, Z)
    with pytest.raises(ValueError, match="3 numbers would do"):
        Gaussian([1.0, 2.0])(X, Z)
    with pytest.raises(ValueError, match="positive number"):
        Laplacian(0.0)(X, Z)
    with pytest.raises(ValueError, match=r"nu = 0\.5, nu = 1\.5 or nu = 2\.5"):
        Matern(3.5, 1.0)(X, Z)
    with pytest.raises(TypeError, match="not a kernel"):
        as_kernel("rbf")
    with pytest.raises(ValueError, match="must be vectorised"):
        as_kernel(lambda x, z: np.exp(-np.sum((x - z) ** 2)))(X, X)
    assert isinstance(as_kernel(None), Gaussian)
