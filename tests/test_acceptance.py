"""What the library promises at full size: minutes of work (`make test-slow`) or data of the user's (`make test-data`)."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import cKDTree

from lawful import ConstrainedRegressor, Equations, project
from lawful.datasets import load_distillation
from lawful.decoders import decode
from lawful.losses import Quadratic
from lawful.metrics import normalized_mse

ANGLES = np.linspace(-np.pi, np.pi, 200_001)[:-1]
LEMNISCATE = np.c_[np.sin(ANGLES), np.sin(2 * ANGLES) / 2]
VARIED = [0, 1, 2, 3, 5, 6, 7, 8]  # the distillation output y5 is rounding noise


@pytest.mark.slow
@pytest.mark.parametrize("where", ["noise 0.05", "noise 0.22", "crossing"])
def test_lemniscate_at_full_size(where):
    rng = np.random.default_rng(11)
    on_curve = LEMNISCATE[rng.integers(len(LEMNISCATE), size=20_000)]
    noise = rng.standard_normal((20_000, 2))
    w = {"noise 0.05": on_curve + 0.05 * noise, "noise 0.22": on_curve + 0.22 * noise, "crossing": 0.05 * noise}[where]
    d = project(w, Equations("y1**4 = y1**2 - y2**2"), certificate=True)
    assert (d.status == "ok").all()
    assert d.residual.max() <= 1e-8
    assert (d.value - cKDTree(LEMNISCATE).query(w)[0] ** 2).max() <= 1e-6


@pytest.mark.slow
def test_lemniscate_with_very_uneven_weights():
    """Weights over four orders of magnitude, predictions far from the curve: still the global minimum."""
    rng = np.random.default_rng(12)
    w, a = 3 * rng.standard_normal((2000, 2)), 10 ** rng.uniform(-2, 2, (2000, 2))
    F = Quadratic(a, a * w)
    d = decode(F, Equations("y1**4 = y1**2 - y2**2").fit(LEMNISCATE[::2000]))
    best = np.concatenate([F.rows(np.arange(i, i + 50)).costs(LEMNISCATE[::4]).min(axis=1) for i in range(0, 2000, 50)])
    assert (d.value <= best + 1e-6 * (1 + best)).all()


@pytest.fixture(scope="module")
def column():
    return load_distillation(Path(os.environ["LAWFUL_DATA"]) / "distillation")


def error(data, prediction):
    return normalized_mse(data.Y_test[:, VARIED], prediction[:, VARIED])


def draw(data, n, noise, missing, seed):
    """(unconstrained, constrained) error of the default model on n random rows."""
    rng = np.random.default_rng(seed)
    pick = rng.choice(2000, n, replace=False)
    Y = data.Y[pick] + noise * data.Y.std(axis=0) * rng.standard_normal((n, 9))
    Y[rng.uniform(size=Y.shape) < missing] = np.nan
    model = ConstrainedRegressor(Equations(data.equations), on_failure="raise").fit(data.X[pick], Y)
    return error(data, model.objective(data.X_test).center), error(data, model.predict(data.X_test))


@pytest.mark.data
def test_distillation_with_all_rows(column):
    model = ConstrainedRegressor(Equations(column.equations)).fit(column.X[:1600], column.Y[:1600])
    d = model.decode(column.X_test)
    assert error(column, d.c) <= 1e-9
    assert d.residual.max() <= 1e-8


@pytest.mark.data
def test_distillation_with_few_rows(column):
    assert np.median([draw(column, 100, 0.0, 0.0, seed)[1] for seed in range(20, 25)]) <= 1.2e-4


@pytest.mark.data
@pytest.mark.parametrize(("n", "missing"), [(100, 0.0), (200, 0.5)])
def test_the_law_halves_the_error_of_noisy_data(column, n, missing):
    pairs = np.array([draw(column, n, 0.05, missing, seed) for seed in range(30, 37)])
    assert np.median(pairs[:, 0] / pairs[:, 1]) >= 2
