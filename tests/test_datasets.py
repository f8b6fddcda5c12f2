"""Generators obey the law they state; loaders read a folder, or say what it lacks."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from lawful import Equations
from lawful.datasets import load_distillation, load_sarcos, make_curve
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
