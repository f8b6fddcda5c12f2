"""The contracts of the regression: what holds at every size, on both sides of every change in how it is computed.

Thresholds are lowered where a change of regime would need thousands of rows: they say how something is computed, so that
contracts must hold wherever they are.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from lawful import ConstrainedRegressor, KernelRidge, load
from lawful.kernels import Gaussian, Matern
from lawful.sets import Reals
from lawful.surrogates import factorise, large, sparse
from lawful.surrogates.exact import CholeskyFactor, distinct
from lawful.surrogates.large import LargeFactor
from lawful.surrogates.sparse import SparseFactor

RNG = np.random.default_rng(0)
REGIMES = ["exact", "large", "single", "centres"]


def two(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 3))
    truth = np.c_[np.sin(4 * X[:, 0]) * np.cos(X[:, 1]), X[:, 1] + 0.3 * X[:, 2]]
    return X, truth, truth + 0.1 * rng.standard_normal((n, 2))


def regime(monkeypatch, name):
    """Makes a few hundred rows be computed as tens of thousands are."""
    if name != "exact":
        monkeypatch.setattr(factorise, "LARGE", 100)
        monkeypatch.setattr(large, "SINGLE", 100 if name == "single" else 10**9)
        monkeypatch.setattr(large, "JUDGED", 150)
        monkeypatch.setattr(large, "CENTRES", 150)
    if name == "centres":
        monkeypatch.setattr(factorise, "WORK", 0.0)
        monkeypatch.setattr(sparse, "MOST", 300)
        monkeypatch.setattr(sparse, "FEWEST", 300)


def rmse(a, b):
    return np.sqrt(((a - b) ** 2).mean(axis=0))


X_NEW, TRUTH_NEW, Y_NEW = two(1000, 99)


@pytest.mark.parametrize("name", ["exact", "centres"])
def test_an_output_beside_others_is_as_good_as_alone(name, monkeypatch):
    regime(monkeypatch, name)
    X, _, Y = two(400)
    others = np.c_[np.cos(X @ RNG.standard_normal((3, 2))), RNG.standard_normal(400)]
    alone = rmse(KernelRidge().fit(X, Y[:, 0]).predict(X_NEW), TRUTH_NEW[:, 0])
    for beside in (np.c_[Y, others], np.c_[others, Y[:, ::-1]]):
        place = 0 if beside[0, 0] == Y[0, 0] else beside.shape[1] - 1
        found = KernelRidge().fit(X, beside).predict(X_NEW)[:, place]
        assert rmse(found, TRUTH_NEW[:, 0]) <= 1.1 * alone


def test_of_very_many_outputs_each_keeps_its_own_kernel():
    X, _, Y = two(250)
    others = np.sin(3 * X @ RNG.standard_normal((3, 18))) + 0.05 * RNG.standard_normal((250, 18))
    alone = rmse(KernelRidge().fit(X, Y[:, 0]).predict(X_NEW), TRUTH_NEW[:, 0])
    found = KernelRidge().fit(X, np.c_[others, Y]).predict(X_NEW)[:, 18]
    assert rmse(found, TRUTH_NEW[:, 0]) <= 1.3 * alone


def test_more_rows_never_hurt_across_every_change(monkeypatch):
    errors = []
    for n, name in ((200, "exact"), (400, "large"), (800, "single"), (1600, "centres")):
        with monkeypatch.context() as patch:
            regime(patch, name)
            X, _, Y = two(1600)
            found = ConstrainedRegressor(Reals()).fit(X[:n], Y[:n]).predict(X_NEW)
            errors.append(np.sqrt((rmse(found, TRUTH_NEW) ** 2).mean()))
    assert all(after <= 1.02 * before for before, after in pairwise(errors))


@pytest.mark.parametrize("name", REGIMES[1:])
def test_no_cliff(name, monkeypatch):
    """Both sides of a change say the same, within a third of what they say of their own errors."""
    X, _, Y = two(600)
    before = KernelRidge().fit(X, Y)
    regime(monkeypatch, name)
    after = KernelRidge().fit(X, Y)
    (a, s), (b, t) = before.predict(X_NEW, return_std=True), after.predict(X_NEW, return_std=True)
    assert np.abs(a - b).max() < 0.3 * s.min() and np.median(np.abs(t / s - 1)) < 0.1
    assert ("centres" in after.choice_) == (name == "centres")


@pytest.mark.parametrize("name", REGIMES)
def test_standard_deviations_exist_and_cover_with_gaps_too(name, monkeypatch):
    regime(monkeypatch, name)
    X, _, Y = two(700)
    Y[::3, 0] = Y[1::4, 1] = np.nan
    mean, std = ConstrainedRegressor(Reals()).fit(X, Y).predict(X_NEW, return_std=True)
    assert 0.86 <= (np.abs(Y_NEW - mean) <= 1.645 * std).mean() <= 0.94
    far = KernelRidge().fit(X, Y).predict(X_NEW + 20, return_std=True)[1]
    assert (far[:, 0] > 3 * std[:, 0].mean()).all()


@pytest.mark.parametrize("name", ["exact", "large", "centres"])
def test_order_units_constants_and_copies_change_nothing(name, monkeypatch):
    regime(monkeypatch, name)
    X, _, Y = two(300)
    found = KernelRidge().fit(X, Y).predict(X_NEW[:50])
    rows, columns = RNG.permutation(300), [2, 0, 1]
    other = KernelRidge().fit(X[rows], Y[rows]).predict(X_NEW[:50])
    np.testing.assert_allclose(other, found, atol=1e-6)
    other = KernelRidge().fit(X, Y[:, ::-1]).predict(X_NEW[:50])[:, ::-1]
    np.testing.assert_allclose(other, found, atol=1e-6)
    other = KernelRidge().fit(X, 1e3 * Y).predict(X_NEW[:50]) / 1e3
    np.testing.assert_allclose(other, found, atol=1e-6)
    other = KernelRidge().fit(X[:, columns], Y).predict(X_NEW[:50][:, columns])
    np.testing.assert_allclose(other, found, atol=1e-6)
    other = KernelRidge().fit(X * [1e3, 0.7, 3], Y).predict(X_NEW[:50] * [1e3, 0.7, 3])
    np.testing.assert_allclose(other, found, atol=1e-6)
    other = KernelRidge().fit(np.c_[np.full(300, 7.0), X], Y).predict(np.c_[np.full(50, 7.0), X_NEW[:50]])
    np.testing.assert_allclose(other, found, atol=1e-6)
    weight = RNG.integers(1, 3, 300)
    found = KernelRidge().fit(X, Y, sample_weight=weight).predict(X_NEW[:50])
    other = KernelRidge().fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0)).predict(X_NEW[:50])
    np.testing.assert_allclose(other, found, atol=1e-6)


def test_repeated_inputs_are_at_least_as_good_as_the_mean_of_each_cell():
    cells = np.arange(24.0)[:, None]
    rate = np.exp(1 + np.sin(cells[:, 0] / 4))
    X, y = np.tile(cells, (20, 1)), np.random.default_rng(3).poisson(np.tile(rate, 20)).astype(float)
    found = KernelRidge().fit(X, y).predict(cells)
    assert rmse(found, rate) <= 1.05 * rmse(y.reshape(20, 24).mean(axis=0), rate)


@pytest.mark.parametrize("kernel", [Gaussian(np.full(3, 1.5)), Matern(2.5, np.full(3, 2.0))], ids=repr)
def test_large_factors_are_those_of_the_exact_ridge(kernel, monkeypatch):
    X, _, Y = two(500)
    sample = distinct(X, np.arange(500), np.linspace(0.5, 1.5, 500), kernel)
    exact = CholeskyFactor(kernel, sample, 2e-5)
    solution, loo = exact.solve(Y, 2e-5), exact.loo(Y, 2e-5)
    monkeypatch.setattr(large, "SINGLE", 100)
    for factor in (LargeFactor(kernel, sample, 2e-5), SparseFactor(kernel, sample, 2e-5)):
        found = factor.solve(Y, 2e-5)
        tolerance = 5e-4 if isinstance(factor, LargeFactor) else 2e-3  # single precision, beside noise of .1
        np.testing.assert_allclose(factor.predict(X_NEW, found), exact.predict(X_NEW, solution), atol=tolerance)
        np.testing.assert_allclose(factor.loo(Y, 2e-5), loo, atol=0.01)
        np.testing.assert_allclose(factor.variance(X_NEW, 2e-5), exact.variance(X_NEW, 2e-5), rtol=0.05, atol=1e-6)


def test_a_fit_that_is_worse_than_the_mean_is_taken_back():
    """However mistaken evidence is, leave-one-out errors stay within a few per cent of the spread of the labels."""
    rng = np.random.default_rng(1)
    X = np.repeat(np.eye(8), 12, axis=0) + np.c_[rng.integers(0, 2, (96, 7)), np.zeros(96)]
    y = np.where(rng.uniform(size=96) < 0.05, rng.integers(1, 60, 96), 0.0)
    ridge = KernelRidge().fit(X, y)
    assert ridge.loo_mse_[0] <= 1.06 * y.var() and np.abs(ridge.predict(3 * X)).max() <= 2 * y.max()


@pytest.mark.torch
def test_tuned_and_solved_on_a_device_of_torch_as_on_the_host(monkeypatch, tmp_path):
    """Torch's own CPU stands for the device: what a GPU would be asked."""
    import torch

    from lawful.surrogates import ridge

    monkeypatch.setattr(ridge, "device_of_choice", lambda device, given: torch.device("cpu") if device == "cuda" else None)
    X, _, Y = two(400)
    Y[::5, 0] = np.nan
    for kernel in (None, Gaussian(), Matern(2.5)):
        host, device = (KernelRidge(kernel, device=name).fit(X, Y) for name in ("cpu", "cuda"))
        (mean, std), (found, spread) = (model.predict(X_NEW, return_std=True) for model in (host, device))
        np.testing.assert_allclose(found, mean, atol=1e-6)
        np.testing.assert_allclose(spread, std, rtol=1e-5)
    model = ConstrainedRegressor(Reals(), surrogate=KernelRidge(device="cuda")).fit(X, Y)
    mean, std = model.predict(X_NEW, return_std=True)
    np.testing.assert_allclose(mean, KernelRidge().fit(X, Y).predict(X_NEW), atol=1e-6)
    model.save(tmp_path / "there.lawful")
    again = load(tmp_path / "there.lawful").predict(X_NEW, return_std=True)  # on the host
    np.testing.assert_allclose(again, (mean, std), rtol=1e-8)
    monkeypatch.setattr(factorise, "LARGE", 100)
    large = KernelRidge(device="cuda").fit(X, Y)
    np.testing.assert_allclose(large.predict(X_NEW), mean, atol=1e-5)
    monkeypatch.setattr(factorise, "DEVICE_WORK", 0.0)
    few = KernelRidge(device="cuda").fit(X, Y)
    assert "centres" in few.choice_ and rmse(few.predict(X_NEW), mean).max() < 0.01


def test_a_device_that_is_not_there_is_named():
    for name in ("cuda:7", "gpu"):
        with pytest.raises((ValueError, ImportError), match=rf"KernelRidge\(device='{name}'\)"):
            KernelRidge(device=name).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])


def test_labels_of_few_values_count_as_often_as_they_were_seen():
    """Sales at one price: as good as the mean of each cell, though most labels of a cell are equal."""
    rng = np.random.default_rng(5)
    cells = rng.uniform(-1, 1, (60, 3))
    rate = 1 / (1 + np.exp(-3 * np.sin(2 * cells[:, 0]) * cells[:, 1]))
    X = np.repeat(cells, 40, axis=0)
    y = (rng.uniform(size=len(X)) < np.repeat(rate, 40)).astype(float)
    ridge = KernelRidge().fit(X, y)
    assert rmse(ridge.predict(cells), rate) <= rmse(y.reshape(60, 40).mean(axis=1), rate)
    twice = KernelRidge().fit(np.tile(X, (2, 1)), np.tile(y, 2))
    np.testing.assert_allclose(twice.predict(cells), ridge.predict(cells), atol=1e-6)
