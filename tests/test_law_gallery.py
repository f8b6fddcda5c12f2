"""Worked examples of laws that are tested, learned, completed or followed: what they promise holds, and there is a picture."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture
def shown(tmp_path):
    """Run an example; its variables, after a look at its picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    def run(name):
        plt.close("all")
        found = runpy.run_path(str(FOLDER / f"{name}.py"))
        (number,) = plt.get_fignums()
        plt.figure(number).savefig(tmp_path / "picture.png")
        assert (tmp_path / "picture.png").stat().st_size > 5_000
        plt.close("all")
        return found

    return run


def test_doctor(shown):
    r = shown("plot_doctor")
    wrong, row = sorted(r["found"].alarms, key=lambda alarm: alarm.kind)
    assert wrong.kind == "equation" and wrong.numbers["value"] == pytest.approx(0.7, abs=0.003)
    assert "unknown=['a']" in wrong.sentence and "delta" in wrong.sentence
    assert row.kind == "outliers" and row.rows == ("run 18",)
    assert [note.subject for note in r["found"].notes if note.kind == "unused"] == ["room"]
    assert abs(r["freed"].unknown_["a"] - 0.7) < 4 * r["freed"].unknown_std_["a"]
    assert r["right"].sound and r["right"].help["error_with"] < r["right"].help["error_without"]


def test_learned_law(shown):
    r = shown("plot_learned_law")
    assert r["law"].equation == "y1**2 + 4*y2**2 = 4"
    assert r["errors"]["learned"] <= 1.1 * r["errors"]["true law"] < 0.9 * r["errors"]["no law"]
    assert r["nothing"].equations_ == []


def test_cloud_surface(shown):
    r = shown("plot_cloud_surface")
    e = r["errors"]
    assert r["surface"].dimension_ == 2 and r["choice"].name == "surface"
    assert e["surface"] < e["no law"] and e["surface"] < 0.5 * e["nearest point"]


def test_unknown_coefficients(shown):
    r = shown("plot_unknown_coefficients")
    for k, (name, truth) in enumerate(r["TRUTH"].items()):
        low, high = r["profiles"][name].interval()
        assert low < truth < high
        assert abs(r["C"].unknown_[name] - truth) < abs(r["naive"][k] - truth)
    assert (r["errors"]["law"] < r["errors"]["no law"]).all()


def test_discover(shown):
    r = shown("plot_discover")
    assert [law.simple for law in r["table"]] == ["top + bottom = feed + steam", "top*pure = 0.7*feed"]
    assert (r["errors"]["laws"][:3] < r["errors"]["no law"][:3]).all()


def test_inverse_kinematics(shown):
    r = shown("plot_inverse_kinematics")
    assert r["jumps"](r["alone"].c) > 0 and r["jumps"](r["together"].c) == 0
    assert np.abs(r["hand"](r["together"].c) - r["x"]).max() <= 1e-8
