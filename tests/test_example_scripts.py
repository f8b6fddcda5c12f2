"""The scripts in `examples/` run, their laws hold, and the law makes predictions better."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lawful import Equations

FOLDER = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture(autouse=True)
def _beside_the_scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


def script(name):
    return importlib.import_module(name)


def test_distillation():
    r = script("distillation").run()
    assert r["ok"] == 1
    assert r["relative violation"] <= 1e-8
    assert r["lawful violation"] <= 1e-8 * 100  # flows are about 100
    assert r["free violation"] > 1e-2
    assert r["lawful"] < 0.7 * r["free"]


def test_power_flow():
    r = script("power_flow").run()
    assert r["ok"] == 1
    assert r["lawful violation"] <= 1e-8
    assert r["free violation"] > 1e-2
    assert (r["lawful"] < r["free"]).all()  # magnitudes, angles, active and reactive powers
    assert r["newton violation"] > 1e-2  # the junction, at which the prediction has power
    assert r["lawful"][1] < r["newton"][1] and r["lawful"][2] < r["newton"][2]
    assert (r["lawful"][:2] < 0.6 * r["free"][:2]).all()


def lawful_and_better(errors, ours, *others, within=1.0):
    """Our last way obeys the law, is better than no law, and not worse than the usual tools."""
    assert errors[ours][1] <= 1e-8
    free, *_ = errors.values()
    assert free[1] > 1e-3 and errors[ours][0] < free[0]
    for other in others:
        assert errors[ours][0] <= within * errors[other][0], other


def test_reconciliation():
    r = script("reconciliation").run()
    assert r["largest difference to that MinT"][0] <= 1e-8
    lawful_and_better(r, "lawful: Hierarchy, residual_full", "bottom-up", "MinT, ols", "MinT, shrink", within=1.0 + 1e-9)
    lawful_and_better(r, "lawful: Hierarchy, auto (the default)", "MinT, shrink")


def test_quantiles():
    r = script("quantiles").run()
    lawful_and_better(r, "lawful: Monotone, in the metric of a sample", "sorted", within=1.02)
    lawful_and_better(r, "lawful: all levels together over Monotone", "sorted", "lawful: Monotone, equal weights")


def test_shapes():
    r = script("shapes").run()
    lawful_and_better(r, "lawful: rising and convex", "slopes sorted")


def test_compositions():
    r = script("compositions").run()
    lawful_and_better(r, "lawful: Simplex", "log-ratios, 0.1 for 0", "log-ratios, 0.01 for 0", "log-ratios, 0.001 for 0")


def test_correlations():
    r = script("correlations").run()
    lawful_and_better(r, "lawful: in the metric of the sample", "clipped and scaled", "lawful: nearest (Higham's)")


def test_margins():
    r = script("margins").run()
    lawful_and_better(r, "lawful: Margins, in the metric of the sample", "raking")


def test_network_flow():
    r = script("network_flow").run()
    lawful_and_better(r, "lawful: Flow", "reconciled by least squares", "reconciled and clipped")


def test_orientations():
    r = script("orientations").run()
    lawful_and_better(r, "lawful: UnitQuaternions", "four numbers, signs turned to one side")


def test_arms(tmp_path):
    arms = script("arms")
    for arm, rows in zip(arms.ARMS, (60, 20)):
        r = arms.run(arm, rows=rows, out=tmp_path)
        assert r["alone"] > 0 and r["sequence"] == 0
        assert r["ok"] == 1 and r["off"] <= 1e-8
    assert all((tmp_path / name).stat().st_size > 10_000 for name in ("arm_2.png", "arm_6.png"))


def test_prediction_sets(tmp_path):
    r = script("prediction_sets").run(out=tmp_path)
    assert 0.85 < r["coverage"] < 0.97
    assert r["width"] < 0.8 * r["width without the law"]
    assert (tmp_path / "prediction_sets.png").stat().st_size > 10_000


def test_error_bars(tmp_path):
    r = script("error_bars").run(out=tmp_path)
    assert r["off law"] <= 1e-8 and r["R-hat"] < 1.15
    assert r["lawful coverage"] >= 0.85
    assert r["lawful width"] < 0.3 * r["free width"]
    assert (tmp_path / "error_bars.png").stat().st_size > 10_000


@pytest.mark.parametrize("buses", [14, 30])
def test_power_flows_of_the_archive(buses):
    """The published solutions: voltages at the last bus, the slack's power; and strings that agree with complex arithmetic."""
    grids = script("grids")
    grid = grids.grid(buses)
    v, a = grids.solve(grid, grid.load[None])
    S = grids.power(grid, v, a)
    published = {14: (1.036, -16.04, 2.324), 30: (0.992, -17.64, 2.610)}[buses]
    np.testing.assert_allclose((v[0, -1], np.degrees(a[0, -1]), S[0, 0].real), published, rtol=1e-3)
    np.testing.assert_allclose(S[0, 1:].real, (grid.generation - grid.load).real[1:], atol=1e-10)


def test_power_flow_strings_say_what_complex_arithmetic_says():
    flow, grids = script("power_flow"), script("grids")
    grid = grids.grid(14)
    truth = flow.states(grid, np.array([[1.0, 1.0, 1.0], [0.6, 1.2, 0.8]]))
    law = Equations(flow.law(grid)).fit(truth)
    assert law.residual(truth).max() <= 1e-12
    rng = np.random.default_rng(0)
    c = truth + 0.1 * rng.standard_normal(truth.shape)
    S = grids.power(grid, c[:, :14], c[:, 14:28])
    np.testing.assert_allclose(law.equality(c)[:, :28], c[:, 28:] - np.c_[S.real, S.imag], atol=1e-12)


def test_balances_of_the_flow_sheet():
    sheet = script("flow_sheet")
    plant = sheet.make_plant(200, 0)
    Y = sheet.flows(plant, np.random.default_rng(0).uniform(-1, 1, (50, 3)))
    assert Y.shape == (50, 200)
    assert np.abs(Y @ plant.units.T).max() <= 1e-11
    assert Y.min() >= 0
    assert (Y == 0).mean() > 0.01
    assert np.linalg.matrix_rank(plant.units) == len(plant.units)


def test_scripts_print():
    """From the command line, as a user runs them: the smallest one."""
    done = subprocess.run(
        [sys.executable, FOLDER / "distillation.py", "--n", "20"], capture_output=True, text=True, timeout=120, check=True
    )
    assert "with the law" in done.stdout


def test_label_logic():
    r = script("label_logic").run()
    assert r["lawful violations"] == 0 and r["free violations"] > 0.2
    assert r["lawful rows right"] > r["free rows right"] + 0.15 and r["lawful F1"] > r["free F1"]
    assert r["even"] < 1e-12 and r["status"] == {"ok"}
