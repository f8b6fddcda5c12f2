"""Ridges on torch: tensors in, tensors out; NumPy arrays through a device and back; the same numbers as on the host."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from lawful import ConstrainedRegressor, KernelRidge, NystromRidge, Sphere, load
from lawful._array import to_numpy
from lawful.kernels import Additive, Gaussian, Laplacian, Matern
from lawful.surrogates.path import exact_path
from lawful.tasks import Tasks

pytestmark = pytest.mark.torch
RNG = np.random.default_rng(0)
N = 900
X = RNG.uniform(-2, 2, (N, 3))
XNEW = RNG.uniform(-2, 2, (11, 3))
Y = np.c_[np.cos(X[:, 0]), np.sin(X[:, 0] + X[:, 1])] + 0.05 * RNG.standard_normal((N, 2))
GAPS = np.where(RNG.uniform(size=Y.shape) < 0.2, np.nan, Y)
W = RNG.uniform(0.5, 2.0, Y.shape)


each_device = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])


@each_device
@pytest.mark.parametrize("solver", ["direct", "cg"])
@pytest.mark.parametrize("kernel", [Gaussian(2.0), Matern(2.5, 2.0), Matern(1.5, 2.0), Laplacian(3.0), Additive(2.0)],
                         ids=lambda k: f"{type(k).__name__}{getattr(k, 'nu', '')}")  # fmt: skip
def test_a_device_gives_what_the_host_gives(device, solver, kernel):
    ridge = {"lam": 1e-3, "n_centers": 400, "solver": solver, "tol": 1e-12}
    host = NystromRidge(kernel, **ridge).fit(X, GAPS, W)
    model = NystromRidge(kernel, device=device, block_size=250, **ridge).fit(X, GAPS, W)
    found = model.predict(XNEW)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, host.predict(XNEW), atol=1e-8)
    np.testing.assert_allclose(model.noise_share(), host.noise_share(), atol=1e-5)
    if solver == "direct":
        np.testing.assert_allclose(model.std(XNEW), host.std(XNEW), rtol=1e-5)
        for a, b in zip(model.residuals(), host.residuals()):
            np.testing.assert_allclose(a, b, atol=1e-8)


@each_device
def test_tensors_in_tensors_out(device):
    import torch

    A, b, new = (torch.as_tensor(v, device=device) for v in (X, GAPS, XNEW))
    host = NystromRidge(Gaussian(2.0), lam=1e-3, n_centers=100).fit(X, GAPS)
    model = NystromRidge(Gaussian(2.0), lam=1e-3, n_centers=100).fit(A, b)
    mean, std = model.predict(new, return_std=True)
    for found in (mean, std):
        assert isinstance(found, torch.Tensor) and found.device.type == device
    np.testing.assert_allclose(to_numpy(mean), host.predict(XNEW), atol=1e-8)
    np.testing.assert_allclose(to_numpy(std), host.std(XNEW), rtol=1e-6)
    model.partial_fit(A, b)
    np.testing.assert_allclose(to_numpy(model.predict(new)), host.partial_fit(X, GAPS).predict(XNEW), atol=1e-8)
    with pytest.raises(ValueError, match="no NaN or infinity"):
        model.predict(new * float("nan"))
    with pytest.raises(ValueError, match="X has 2 features"):
        model.predict(new[:, :2])
    tuned = NystromRidge(n_centers=100).fit(A, b)
    np.testing.assert_allclose(to_numpy(tuned.predict(new)), NystromRidge(n_centers=100).fit(X, GAPS).predict(XNEW), atol=1e-6)


@each_device
@pytest.mark.parametrize("dtype", ["float32", "tf32"])
def test_single_precision_is_refined_on_a_device(device, dtype):
    double = NystromRidge(Gaussian(2.0), lam=1e-5, n_centers=200).fit(X, GAPS)
    single = NystromRidge(Gaussian(2.0), lam=1e-5, n_centers=200, dtype=dtype, device=device, tol=1e-9).fit(X, GAPS)
    np.testing.assert_allclose(single.predict(XNEW), double.predict(XNEW), atol=1e-7)


@each_device
def test_rows_held_out_on_a_device(device, monkeypatch):
    monkeypatch.setattr("lawful.surrogates.nystrom_fit.ENOUGH", 500)
    host, model = (NystromRidge(Gaussian(2.0), n_centers=60, device=d).fit(X, Y) for d in (None, device))
    np.testing.assert_allclose(model.held_out_["error"], host.held_out_["error"], rtol=1e-6)
    np.testing.assert_allclose(model.predict(XNEW), host.predict(XNEW), atol=1e-8)


@each_device
def test_an_exact_path_on_a_device(device):
    expected = exact_path(Gaussian(2.0), X, Y, [1e-4, 1e-2])
    for a, b in zip(exact_path(Gaussian(2.0), X, Y, [1e-4, 1e-2], device=device), expected):
        assert isinstance(a, np.ndarray)
        np.testing.assert_allclose(a, b, atol=1e-8)


@each_device
def test_states_lawful_models_and_pickles(device, tmp_path):
    circle = np.c_[np.cos(X[:, 0]), np.sin(X[:, 0])]
    model = ConstrainedRegressor(Sphere(), surrogate=NystromRidge(Gaussian(2.0), lam=1e-3, n_centers=60, device=device))
    model.fit(X, circle)
    model.save(tmp_path / "m.lawful")
    for again in (load(tmp_path / "m.lawful"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(again.predict(XNEW), model.predict(XNEW), atol=1e-12)
        again.partial_fit(X, circle)


def test_a_device_that_is_not_there():
    import torch

    if torch.cuda.is_available():
        assert NystromRidge(Gaussian(2.0), lam=1e-3, device="cuda").fit_tasks(Tasks.of(X, Y)).n_seen_ == N
    else:
        with pytest.raises(ValueError, match="torch sees no such device here; device=None would do"):
            NystromRidge(Gaussian(2.0), lam=1e-3, device="cuda").fit(X, Y)


@each_device
def test_an_exact_ridge_answers_tensors_with_tensors(device):
    import torch

    host = KernelRidge(Gaussian(2.0), lam=1e-3).fit(X, GAPS)
    A, B, C = (torch.as_tensor(v, device=device) for v in (X, GAPS, XNEW))
    model = KernelRidge(Gaussian(2.0), lam=1e-3).fit(A, B)
    for asked in ({}, {"return_std": True}, {"return_cov": True}):
        found, wanted = model.predict(C, **asked), host.predict(XNEW, **asked)
        for f, w in zip(*((found, wanted) if asked else ([found], [wanted])), strict=True):
            assert f.device.type == device and f.dtype == torch.float64
            np.testing.assert_allclose(to_numpy(f), w, atol=1e-8)
