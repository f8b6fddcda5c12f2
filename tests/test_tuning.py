"""The "auto" rules: gradients, invariances, and what they find where the answer is known."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from lawful.kernels import Gaussian, Laplacian, Matern
from lawful.surrogates import KernelRidge
from lawful.surrogates.exact import SpectralFactor, distinct
from lawful.surrogates.tuning import Problem, best_lam, criterion, input_scales, round_digits, thin


def problem(n, tasks, seed=0, noise=0.05, duplicates=0, weighted=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    Y = np.sin(X @ rng.standard_normal((3, tasks))) + noise * rng.standard_normal((n, tasks))
    rows = np.concatenate([np.arange(n), np.arange(duplicates)])
    labels = Y[rows] + noise * rng.standard_normal((n + duplicates, tasks))
    weights = rng.uniform(0.3, 2.0, len(rows)) if weighted else np.ones(len(rows))
    return Problem(distinct(X, rows, weights, Gaussian()), labels)


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), Matern(1.5), Matern(2.5)], ids=repr)
def test_gradient_of_the_criterion(kernel, intercept):
    """Against central differences, with weights, duplicates, several tasks and two groups of rows."""
    problems = [problem(25, 3, duplicates=4), problem(18, 1, seed=1, noise=0.2)]
    scales = np.array([1.5, 2.5, 4.0])

    def J(log_scales, gradient=False):
        return criterion(clone(kernel).set_params(sigma=np.exp(log_scales)), problems, intercept, gradient)

    exact = J(np.log(scales), gradient=True)[1]
    h = 1e-4
    for j in range(3):
        shift = h * np.eye(3)[j]
        numeric = (J(np.log(scales) + shift)[0] - J(np.log(scales) - shift)[0]) / (2 * h)
        assert exact[j] == pytest.approx(numeric, rel=2e-3, abs=2e-3)


def test_best_lam_beats_a_fine_grid():
    for seed, noise in ((0, 0.0), (1, 0.1), (2, 3.0)):
        one = problem(30, 2, seed, noise, weighted=False)
        factor = SpectralFactor(Gaussian(2.0), one.sample)
        lam, mse = best_lam(factor, one.Y)
        grid = 10.0 ** np.linspace(-15, 2, 700)
        assert np.all(mse <= 1.02 * factor.loo_mse(one.Y, grid[:, None]).min(axis=0))
        np.testing.assert_allclose(factor.loo_mse(one.Y, lam[None, :])[0], mse)
    assert np.all(lam > 1e-2)  # all noise


def test_length_scales_tell_relevant_inputs_from_irrelevant_ones():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (150, 3)) * [1.0, 1.0, 1000.0]
    Y = np.stack([np.sin(4 * X[:, 0]), np.cos(3 * X[:, 0])], axis=1)
    ridge = KernelRidge().fit(X, Y)
    for kernel in (*ridge.kernels_, KernelRidge(scales="shared").fit(X, Y).kernel_):
        relative = kernel.sigma / X.std(axis=0)
        assert relative[1] > 5 * relative[0] and relative[2] > 5 * relative[0]
    new = rng.uniform(-1, 1, (200, 3)) * [1.0, 1.0, 1000.0]
    truth = np.stack([np.sin(4 * new[:, 0]), np.cos(3 * new[:, 0])], axis=1)
    assert np.mean((ridge.predict(new) - truth) ** 2) < 1e-6
    isotropic = KernelRidge(Gaussian(float(np.sqrt(3)))).fit(X / X.std(axis=0), Y)
    assert ridge.loo_mse_.sum() < 1e-2 * isotropic.loo_mse_.sum()


def test_units_of_inputs_and_outputs_do_not_matter():
    one = problem(40, 2, weighted=False)
    X, units = one.sample.X, np.array([1024.0, 1.0, 1 / 64])
    here, there = KernelRidge().fit(X, one.Y), KernelRidge().fit(X * units, one.Y * [1e6, 1e-6])
    for one_there, one_here in zip(there.kernels_, here.kernels_):
        np.testing.assert_allclose(one_there.sigma, one_here.sigma * units, rtol=0.02)
    np.testing.assert_allclose(there.predict(X * units) / [1e6, 1e-6], here.predict(X), atol=1e-2)


def test_an_unpredictable_or_constant_output_does_not_spoil_the_others():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (80, 2))
    good = np.sin(3 * X[:, 0]) + X[:, 1]
    junk = 1e3 * rng.standard_normal(80)
    alone = KernelRidge().fit(X, good)
    together = KernelRidge().fit(X, np.column_stack([good, junk, np.full(80, 2.0)]))
    assert together.loo_mse_[0] < 30 * alone.loo_mse_[0] < 1e-6
    assert together.lam_[1] > 1e-3
    assert together.lam_[2] > 0 and together.loo_mse_[2] < 1e-20


@pytest.mark.parametrize("n", [10, 50, 200])
def test_circle(n):
    """The paper's first curve: y = (cos x, sin x) + noise; the error falls below the noise."""
    rng = np.random.default_rng(n)
    x = rng.uniform(-np.pi, np.pi, (n, 1))
    y = np.hstack([np.cos(x), np.sin(x)]) + 0.05 * rng.standard_normal((n, 2))
    ridge = KernelRidge().fit(x, y)
    grid = np.linspace(-3, 3, 200)[:, None]
    error = np.mean((ridge.predict(grid) - np.hstack([np.cos(grid), np.sin(grid)])) ** 2)
    assert error < {10: 0.05, 50: 0.05**2, 200: 0.05**2 / 3}[n]


def test_more_inputs_than_rows():
    rng = np.random.default_rng(0)
    X, new = rng.standard_normal((20, 50)), rng.standard_normal((500, 50))
    truth = new[:, 0] + new[:, 1]
    ridge = KernelRidge().fit(X, X[:, 0] + X[:, 1])
    assert np.mean((ridge.predict(new) - truth) ** 2) < 1.3 * truth.var()


def test_many_tasks_and_many_rows_stay_affordable_and_deterministic():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (260, 2))
    Y = np.cos(2 * X @ rng.standard_normal((2, 80)))
    one = KernelRidge(max_tuning_rows=60).fit(X, Y)
    two = KernelRidge(max_tuning_rows=60).fit(X[::-1], Y[::-1])
    for a, b in zip(one.kernels_, two.kernels_):
        np.testing.assert_array_equal(a.sigma, b.sigma)
    assert np.median(one.loo_mse_ / Y.var(axis=0)) < 1e-8
    assert one.lam_.shape == (80,)


def test_thin_keeps_whole_inputs():
    full = problem(30, 2, duplicates=10)
    small = thin(full, 12, np.random.default_rng(0))
    assert small.sample.points.shape == (12,)
    assert small.Y.shape[0] == np.isin(full.sample.points[full.sample.group], small.sample.points).sum()
    total = np.bincount(small.sample.group, weights=small.sample.share)
    np.testing.assert_allclose(total, 1.0)


def test_input_scales_and_round_digits():
    X = np.column_stack([np.arange(5.0), np.full(5, 3.3)])
    np.testing.assert_allclose(input_scales(X, np.ones(5)), [np.sqrt(2), 1.0])
    np.testing.assert_allclose(round_digits(np.array([123456.0, 0.0123456])), [123000.0, 0.0123], rtol=1e-15)


@pytest.mark.data
def test_distillation_column():
    """The benchmark of the KKT-HardNet examples: a length scale per input is worth seven orders of magnitude."""
    folder = Path(os.environ["LAWFUL_DATA"]) / "distillation"
    X, Y = (np.loadtxt(folder / f"{name}_2000.csv", delimiter=",", skiprows=1) for name in ("parameters", "variables"))
    outputs = [t for t in range(9) if t != 4]  # the fifth is rounding noise
    test = slice(1600, 2000)
    error = (KernelRidge().fit(X[:1600], Y[:1600]).predict(X[test]) - Y[test]) ** 2
    assert np.mean(error.mean(axis=0)[outputs] / Y[test].var(axis=0)[outputs]) < 5e-10
