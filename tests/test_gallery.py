"""The gallery: every `examples/plot_*.py` runs, draws and prints, and what its words claim holds in its numbers."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("plot_*.py"))


def play(name, monkeypatch):
    """What the example leaves behind: its variables, how many figures, what it printed."""
    monkeypatch.chdir(FOLDER)
    matplotlib.use("Agg")
    plt.close("all")
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), matplotlib.rc_context():
            left = runpy.run_path(str(FOLDER / f"{name}.py"))
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()  # what cannot be drawn fails here
        return SimpleNamespace(**left), len(plt.get_fignums()), printed.getvalue()
    finally:
        plt.close("all")


def claims_circle(v):
    assert v.errors["on the circle"] < v.errors["alone"] and v.violations["on the circle"] < 1e-8 < v.violations["alone"]
    assert set(v.decoding.status) == {"ok"}


def claims_lemniscate(v):
    assert v.lawful_error < 0.8 * v.alone_error
    assert v.wrong_errors["softened by the search"] < 0.1 * v.wrong_errors["believed"]
    assert np.isfinite(v.decoding.margin).any()


def claims_distillation(v):
    (free, off), (lawful, on) = v.results.values()
    assert lawful < 0.8 * free and off > 1e-2 and on < 1e-6  # flows are about 100
    assert set(v.decoding.status) == {"ok"} and v.model.constraint_.at(v.data.X_test).relative(v.decoding.c).max() <= 1e-8
    np.testing.assert_allclose(v.rmse["with the law"][-1], v.rmse["without the law"][-1], rtol=0.2)  # no balance ties the duty


def claims_robot_torques(v):
    assert v.explained["nearest point"] > v.explained["each torque alone"]
    assert v.explained["posterior mean"] > v.explained["each torque alone"]


def claims_vapour_pressure(v):
    assert max(abs(v.C.unknown_[k] - t) / v.C.unknown_std_[k] for k, t in v.TRUTH.items()) < 3.5
    assert v.low < 8.0 < v.high and v.errors["law"] < v.errors["free"]
    assert "unknown=" in v.wrong.alarms[0].sentence


def claims_movie_rankings(v):
    assert v.losses["default"] < v.losses["mean ratings"] < 0.5
    assert v.losses["default"] < v.losses["the paper's"]
    assert (v.decoding.bound <= v.decoding.objective + 1e-9).all()


def claims_sports_league(v):
    assert v.best.status == "optimal" and v.best.weight == v.best.bound
    assert v.agreement["fewest goals against"] > v.agreement["points"]
    assert min(v.by_weather.values()) > 0.6


def claims_flow_sheet(v):
    (free, off, below), (lawful, on, none) = v.results.values()
    assert lawful < free and on <= 1e-8 < 1e-2 < off and none == 0 and below > 0.05
    assert set(v.decoding.status) == {"ok"} and np.mean(v.decoding.c < 1e-9) > 0.05  # bounds bind: no affine law in disguise
    assert np.abs(v.Y_test @ v.plant.units.T).max() <= 1e-11 and v.Y_test.min() >= 0


def claims_doctor(v):
    wrong, row = sorted(v.found.alarms, key=lambda alarm: alarm.kind)
    assert wrong.kind == "equation" and wrong.numbers["value"] == pytest.approx(0.7, abs=0.003)
    assert "unknown=['a']" in wrong.sentence and "delta" in wrong.sentence
    assert row.kind == "outliers" and row.rows == ("run 18",)
    assert [note.subject for note in v.found.notes if note.kind == "unused"] == ["room"]
    assert abs(v.freed.unknown_["a"] - 0.7) < 4 * v.freed.unknown_std_["a"]
    assert v.right.sound and v.right.help["error_with"] < v.right.help["error_without"]


def claims_learned_law(v):
    assert v.law.equation == "y1**2 + 4*y2**2 = 4"
    assert v.errors["learned"] <= 1.1 * v.errors["true law"] < 0.9 * v.errors["no law"]
    assert v.nothing.equations_ == []


def claims_cloud_surface(v):
    e = v.errors
    assert v.surface.dimension_ == 2 and v.choice.name == "surface"
    assert e["surface"] < e["no law"] and e["surface"] < 0.5 * e["nearest point"]


def claims_unknown_coefficients(v):
    for k, (name, truth) in enumerate(v.TRUTH.items()):
        low, high = v.profiles[name].interval()
        assert low < truth < high
        assert abs(v.C.unknown_[name] - truth) < abs(v.naive[k] - truth)
    assert (v.errors["law"] < v.errors["no law"]).all()


def claims_discover(v):
    assert [law.simple for law in v.table] == ["top + bottom = feed + steam", "top*pure = 0.7*feed"]
    assert (v.errors["laws"][:3] < v.errors["no law"][:3]).all()


def claims_inverse_kinematics(v):
    for arm, (x, alone, together) in v.found.items():
        assert v.jumps(alone.c) > 0 and v.jumps(together.c) == 0
        assert np.abs(v.hand(v.ARMS[arm][0], together.c) - x).max() <= 1e-8
        assert set(together.status) == {"ok"}


def lawful_and_better(v, ours, *others, within=1.0):
    """Ours obeys the law, is better than no law, and not worse than the usual tools."""
    (free, off), (error, violation) = next(iter(v.errors.values())), v.errors[ours]
    assert violation <= 1e-8 and off > 1e-3 and error < free
    for other in others:
        assert error <= within * v.errors[other][0], other


def claims_reconciliation(v):
    same = v.ways["MinT, the covariance that lawful found"], v.ways["lawful: Hierarchy, residual_full"]
    np.testing.assert_allclose(*same, atol=1e-8)
    lawful_and_better(v, "lawful: Hierarchy, residual_full", "bottom-up", "MinT, ols", "MinT, shrink", within=1.0 + 1e-9)
    lawful_and_better(v, "lawful: Hierarchy, auto (the default)", "MinT, shrink")


def claims_quantiles(v):
    lawful_and_better(v, "lawful: Monotone, in the metric of a sample", "sorted", within=1.02)
    lawful_and_better(v, "lawful: all levels together over Monotone", "sorted", "lawful: Monotone, equal weights")


def claims_shapes(v):
    lawful_and_better(v, "lawful: rising and convex", "slopes sorted")


def claims_compositions(v):
    lawful_and_better(v, "lawful: Simplex", *(f"log-ratios, {least:g} for 0" for least in (0.1, 0.01, 0.001)))


def claims_correlations(v):
    lawful_and_better(v, "lawful: in the metric of the sample", "clipped and scaled", "lawful: nearest (Higham's)")


def claims_margins(v):
    lawful_and_better(v, "lawful: Margins, in the metric of the sample", "raking")


def claims_network_flow(v):
    lawful_and_better(v, "lawful: Flow", "reconciled by least squares", "reconciled and clipped")


def claims_orientations(v):
    lawful_and_better(v, "lawful: UnitQuaternions", "four numbers, signs turned to one side")


def claims_power_flow(v):
    free, newton, lawful = v.errors.values()
    off, junction, on = v.violations.values()
    assert set(v.decoding.status) == {"ok"} and on <= 1e-8 and off > 1e-2
    assert (lawful < free).all()  # magnitudes, angles, active and reactive powers
    assert junction > 1e-2  # at which the prediction has power
    assert lawful[1] < newton[1] and lawful[2] < newton[2]
    assert (lawful[:2] < 0.6 * free[:2]).all()


def claims_prediction_sets(v):
    (coverage, width), (_, wide) = v.results.values()
    assert 0.85 < coverage < 0.97 and width < 0.8 * wide


def claims_error_bars(v):
    (_, wide), (coverage, width) = v.results.values()
    assert v.off_law <= 1e-8 and v.d.samples.rhat.max() < 1.15
    assert coverage >= 0.85 and width < 0.3 * wide


def claims_label_logic(v):
    free, lawful = v.results.values()
    assert lawful["contradictions"] == 0 and free["contradictions"] > 0.1
    assert lawful["right"] > free["right"] + 0.05 and lawful["F1"] > free["F1"]
    assert v.even < 1e-12 and set(v.status) == {"ok"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run_draw_and_print(name, monkeypatch):
    left, figures, printed = play(name, monkeypatch)
    assert figures >= 1
    assert sum(any(letter.isdigit() for letter in line) for line in printed.splitlines()) >= 2
    claims = globals().get(name.replace("plot_", "claims_"))
    if claims is not None:
        claims(left)


def test_there_are_enough_fields():
    assert len(EXAMPLES) >= 14


def test_every_page_has_one_place_in_the_gallery():
    listed = re.findall(r"^   \.\./examples/(plot_\w+)\.py$", (FOLDER / "index.rst").read_text(encoding="utf-8"), re.M)
    assert sorted(listed) == EXAMPLES


def test_each_example_is_one_thing():
    """A page stands alone, as a script and as a notebook: nothing beside it is imported."""
    assert sorted(path.name for path in FOLDER.glob("*.py") if not path.stem.startswith("plot_")) == ["demo.py"]
    for name in EXAMPLES:
        tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
        imported = {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        imported |= {
            alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        }
        assert not imported & {path.stem for path in FOLDER.glob("*.py")}, name


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_have_a_title_words_and_blocks(name):
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    title, line, empty, *words = ast.get_docstring(ast.parse(text), clean=True).splitlines()
    assert re.fullmatch("=+", line) and len(line) >= len(title) and empty == "" and words
    assert text.count("\n# %%\n") >= 3, "blocks with words between them"
    assert "argparse" not in text and "plt.show" not in text and "savefig" not in text
