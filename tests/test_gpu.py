"""Laws on a GPU: tensors stay on their device, and the numbers are those of the host."""

from __future__ import annotations

import numpy as np
import pytest

from lawful import (
    Affine,
    Ball,
    Box,
    ConstrainedRegressor,
    Equations,
    NystromRidge,
    PointCloud,
    Product,
    Simplex,
    Sphere,
    Stiefel,
    project,
)
from lawful.kernels import Gaussian

pytestmark = [pytest.mark.torch, pytest.mark.gpu]
RNG = np.random.default_rng(3)
LAWS = {
    "sphere": (Sphere(), 3),
    "ball": (Ball(), 3),
    "box": (Box(-0.5, 0.5), 4),
    "simplex": (Simplex(), 5),
    "affine": (Affine([[1.0, 2.0, -1.0], [0.0, 1.0, 1.0]], [1.0, 0.5]), 3),
    "rotations": (Stiefel(3, 3), 9),
    "cloud": (PointCloud(RNG.standard_normal((50, 2))), 2),
    "product": (Product([(Sphere(), range(3)), (Simplex(), range(3, 6))]), 6),
    "circle": (Equations("y1**2 + y2**2 = 1"), 2),
    "lemniscate": (Equations("y1**4 - (y1**2 - y2**2) = 0"), 2),
    "products": (Equations(["y1 * y2 = y3", "y1 + y2 + y3 + y4 = 1"]), 4),
}


@pytest.mark.parametrize("name", LAWS)
def test_projections_on_a_gpu_are_those_of_the_host(name):
    import torch

    law, T = LAWS[name]
    Y = 1.2 * RNG.standard_normal((300, T))
    there = project(torch.as_tensor(Y, device="cuda"), law)
    here = project(Y, law)
    assert there.device.type == "cuda" and there.dtype == torch.float64
    np.testing.assert_allclose(there.cpu().numpy(), here, atol=1e-8)


def test_a_model_is_fitted_and_predicts_on_a_gpu():
    import torch

    X = RNG.uniform(-3, 3, (6000, 2))
    Y = np.stack([np.cos(X[:, 0] + 0.3 * X[:, 1]), np.sin(X[:, 0] + 0.3 * X[:, 1])], axis=1)
    Y += 0.05 * RNG.standard_normal(Y.shape)
    ridge = NystromRidge(Gaussian(1.5), lam=1e-5, n_centers=300)
    here = ConstrainedRegressor(Sphere(), surrogate=ridge).fit(X, Y).predict(X[:100])
    there = ConstrainedRegressor(Sphere(), surrogate=NystromRidge(Gaussian(1.5), lam=1e-5, n_centers=300, device="cuda"))
    np.testing.assert_allclose(there.fit(X, Y).predict(X[:100]), here, atol=1e-8)
    tensors = ConstrainedRegressor(Sphere(), surrogate=ridge)
    A, B = (torch.as_tensor(v, device="cuda") for v in (X, Y))
    found = tensors.fit(A, B).predict(A[:100])
    np.testing.assert_allclose(np.asarray(found.cpu()), here, atol=1e-8)
