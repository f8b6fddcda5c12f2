"""Generators obey the law they state; loaders read a folder, or say what it lacks."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from lawful import Equations
from lawful.datasets import (
    column_outputs,
    load_distillation,
    load_power_grid,
    load_sarcos,
    make_column,
    make_curve,
    make_flow_sheet,
)
from lawful.metrics import constraint_violation


@pytest.mark.parametrize("curve", ["circle", "lemniscate", "lemniscate_tall"])
def test_curves_obey_their_equation(curve):
    data = make_curve(curve, 50, noise=0.0, n_test=200, random_state=0)
    assert data.X.shape == (50, 1) and data.Y.shape == (50, 2) and data.X_test.shape == (200, 1)
    law = Equations(data.equation).fit(data.Y)
    assert constraint_violation(law, data.Y) < 1e-12 and constraint_violation(law, data.Y_test) < 1e-12


def test_the_printed_lemniscate_does_not():
    data = make_curve("lemniscate_printed", 5, n_test=2000, random_state=0)
    assert 0.7 < constraint_violation(Equations(data.equation).fit(data.Y), data.Y_test) < 0.76


def test_noise_gaps_and_seed():
    data = make_curve("circle", 4000, noise=0.1, missing=0.3, random_state=1)
    again = make_curve("circle", 4000, noise=0.1, missing=0.3, random_state=1)
    np.testing.assert_array_equal(data.Y, again.Y)
    assert np.isnan(data.Y).mean() == pytest.approx(0.3, abs=0.02)
    residual = data.Y - np.c_[np.cos(data.X), np.sin(data.X)]
    assert np.nanstd(residual) == pytest.approx(0.1, abs=0.005)
    everything = make_curve("circle", 3, missing=1.0, random_state=0)
    assert np.isfinite(everything.Y[0]).all() and np.isnan(everything.Y[1:]).all()


def test_unknown_curve():
    with pytest.raises(ValueError, match="unknown curve 'spiral'; choose one of circle, lemniscate"):
        make_curve("spiral")


@pytest.mark.parametrize("load, file", [(load_distillation, "extractive_column.csv"), (load_sarcos, "sarcos_inv_test.mat")])
def test_missing_folder_names_the_files_and_their_source(load, file, tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"lacks .*{file}.*; get them from"):
        load(tmp_path / "nowhere")


@pytest.mark.data
def test_distillation():
    data = load_distillation(Path(os.environ["LAWFUL_DATA"]) / "distillation")
    assert data.X.shape == (2000, 3) and data.Y.shape == (2000, 9)
    assert data.X_test.shape[1] == 3 and len(data.X_test) == len(data.Y_test) > 100
    law = Equations(data.equations).fit(data.Y, inputs=["x1", "x2", "x3"])
    for X, Y in ((data.X, data.Y), (data.X_test, data.Y_test)):
        assert np.isfinite(X).all() and np.isfinite(Y).all()
        assert constraint_violation(law, Y, X) < 1e-3 * np.abs(Y).max()
    assert not {tuple(row) for row in data.X} & {tuple(row) for row in data.X_test}


@pytest.mark.data
def test_sarcos():
    data = load_sarcos(Path(os.environ["LAWFUL_DATA"]) / "sarcos")
    assert data.X.shape[1] == 21 and data.Y.shape[1] == 7 and len(data.X) == len(data.Y) >= 4449
    assert np.isfinite(data.X).all() and np.isfinite(data.Y).all()


@pytest.mark.parametrize("buses", [14, 30])
def test_power_flows_of_the_archive(buses):
    """The published solutions: voltages at the last bus, the slack's power; and strings that agree with complex arithmetic."""
    grid = load_power_grid(buses)
    v, a = grid.solve(grid.load[None])
    S = grid.power(v, a)
    published = {14: (1.036, -16.04, 2.324), 30: (0.992, -17.64, 2.610)}[buses]
    np.testing.assert_allclose((v[0, -1], np.degrees(a[0, -1]), S[0, 0].real), published, rtol=1e-3)
    np.testing.assert_allclose(S[0, 1:].real, (grid.generation - grid.load).real[1:], atol=1e-10)


def test_power_flow_strings_say_what_complex_arithmetic_says():
    grid = load_power_grid(14)
    truth = grid.states(np.array([[1.0], [0.6]]) * grid.load)
    law = Equations(grid.equations).fit(truth)
    assert law.residual(truth).max() <= 1e-12
    rng = np.random.default_rng(0)
    c = truth + 0.1 * rng.standard_normal(truth.shape)
    S = grid.power(c[:, :14], c[:, 14:28])
    np.testing.assert_allclose(law.equality(c)[:, :28], c[:, 28:] - np.c_[S.real, S.imag], atol=1e-12)


def test_balances_of_the_flow_sheet():
    plant = make_flow_sheet(200, random_state=0)
    Y = plant.flows(np.random.default_rng(0).uniform(-1, 1, (50, 3)))
    assert Y.shape == (50, 200)
    assert np.abs(Y @ plant.units.T).max() <= 1e-11
    assert Y.min() >= 0
    assert (Y == 0).mean() > 0.01
    assert np.linalg.matrix_rank(plant.units) == len(plant.units)


def test_loads_beyond_the_grid_are_refused():
    grid = load_power_grid(14)
    with pytest.raises(ValueError, match="more than the grid can carry"):
        grid.solve(100 * grid.load[None])
    with pytest.raises(ValueError, match="no case with 15 buses"):
        load_power_grid(15)


def test_a_column_balances_with_and_without_noise():
    data = make_column(200, noise=0.1, n_test=30, random_state=0)
    law = Equations(data.equations).fit(data.Y, data.X)
    assert law.at(data.X_test).residual(data.Y_test).max() <= 1e-9
    noise = (data.Y - column_outputs(data.X)).std(axis=0) / column_outputs(data.X).std(axis=0)
    np.testing.assert_allclose(noise, 0.1, rtol=0.25)
    again = make_column(200, noise=0.1, n_test=30, random_state=0)
    np.testing.assert_array_equal(again.Y, data.Y)
