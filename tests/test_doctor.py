"""The doctor: names what is wrong, keeps quiet where nothing is, and never raises."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lawful import Equations, PointCloud, Sphere, doctor

PATH = Path(__file__).parent.parent / "benchmarks" / "doctor.py"
SPEC = importlib.util.spec_from_file_location("doctor_cases", PATH)
assert SPEC and SPEC.loader
cases = importlib.util.module_from_spec(SPEC)
sys.modules["doctor_cases"] = cases
SPEC.loader.exec_module(cases)


@pytest.mark.parametrize("k", range(len(cases.DEFECTS)), ids=[case.name for case in cases.DEFECTS])
def test_the_defect_is_named(k):
    case = cases.DEFECTS[k]
    X, Y = case.draw(np.random.default_rng([77, k]))
    found = doctor(X, Y, case.law)
    assert cases.named(case, found), str(found)


def test_sound_data_seldom_alarm():
    """Twenty cases at a nominal 5 %: three alarms or more would be bad luck beyond one in ten."""
    alarms = []
    for k, case in enumerate(cases.SOUND):
        if "1000" in case.name:
            continue
        found = doctor(*case.draw(np.random.default_rng([78, k])), case.law)
        alarms += [case.name] * (not found.sound)
    assert len(alarms) <= 2, alarms


def test_effect_size_and_suggestion():
    X, Y = cases.circle(300, 0.03)(np.random.default_rng(5))
    found = doctor(X, Y, Equations("y1**2 + y2**2 = 1.2"))
    (alarm,) = found.alarms
    assert alarm.kind == "equation" and alarm.numbers["sigma"] > 5
    assert alarm.numbers["mean"] == pytest.approx(-0.2, abs=0.02)
    assert alarm.numbers["value"] == pytest.approx(1.0, abs=0.02)
    assert 0.05 < alarm.numbers["delta"] < 0.15  # the radius is off by 0.095
    assert found.help["error_with"] > found.help["error_without"]


def test_rows_are_called_what_the_user_calls_them():
    X, Y = cases.mixer()(np.random.default_rng(0))
    Y[17, 0] += 3
    names = [f"batch {i}" for i in range(len(Y))]
    table = pd.DataFrame(Y, columns=["feed", "return", "out", "product"], index=names)
    found = doctor(pd.DataFrame(X, columns=["speed", "load"], index=names), table, Equations("out = feed + return"))
    (alarm,) = found.alarms
    assert alarm.kind == "outliers" and alarm.rows == ("batch 17",)
    assert [note.subject for note in found.notes if note.kind == "unused"] == ["product"]


def test_what_it_returns_can_be_read_and_shown():
    import matplotlib

    matplotlib.use("Agg")
    X, Y = cases.mixer()(np.random.default_rng(0))
    found = doctor(X, Y, Equations(["y3 = y1 + y2", "y4 = 1.1*y1*y2", "y1 <= 2.2"]))
    text = str(found)
    assert "y4 = 1.1*y1*y2" in text and "alarm" in text
    frame = found.to_frame()
    assert list(frame["name"]) == ["y3 = y1 + y2", "y4 = 1.1*y1*y2", "y1 <= 2.2"] and frame["n"].eq(200).all()
    assert "<html" in found.to_html() and "1.1*y1*y2" in found.to_html()
    figure = found.plot()
    assert len(figure.axes) == 2


@pytest.mark.parametrize(
    ("X", "Y", "law"),
    [
        (np.zeros((5, 1)), np.full((5, 2), np.nan), Equations("y1 = y2")),  # nothing observed
        (np.zeros((5, 1)), np.zeros((4, 2)), Equations("y1 = y2")),  # rows do not match
        (np.zeros((30, 1)), np.ones((30, 2)), Equations("y1 = y2")),  # constant
        (np.arange(3.0)[:, None], np.arange(6.0).reshape(3, 2), Equations("y1 = y2")),  # few rows
        (np.arange(30.0)[:, None], np.ones((30, 2)), Equations("y1 = y7")),  # no such output
        (np.arange(30.0)[:, None], -np.ones((30, 2)), Equations("log(y1) = y2")),  # outside its domain
        (np.arange(30.0)[:, None], [["a", "b"]] * 30, Equations("y1 = y2")),
        (np.arange(30.0)[:, None], np.ones((30, 2)), "y1 = y2"),  # not a set
        (np.arange(30.0)[:, None], np.random.default_rng(0).standard_normal((30, 2)), PointCloud(np.eye(2))),
    ],
)
def test_bad_data_are_reported_and_never_raise(X, Y, law):
    found = doctor(X, Y, law)
    assert found.alarms or found.untested or found.notes
    assert isinstance(str(found), str) and isinstance(found.to_html(), str)


def test_inputs_are_left_as_they_were_and_the_answer_is_the_same_again():
    X, Y = cases.circle(120, 0.05, "gaps")(np.random.default_rng(3))
    before = X.copy(), Y.copy()
    first, second = (doctor(X, Y, Sphere()) for _ in range(2))
    assert str(first) == str(second)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Y, before[1])


def test_calibrated_on_a_few_draws():
    """The long run is `benchmarks/doctor.py`; here 40 draws at 5 %, of which more than six fail once in a thousand."""
    rng = np.random.default_rng(9)
    draw = cases.circle(80, 0.05)
    assert sum(not doctor(*draw(rng), Equations(cases.ROUND)).sound for _ in range(40)) <= 6


def test_what_is_worth_knowing_is_noted():
    X, Y = cases.circle(150, 0.05)(np.random.default_rng(4))
    Y = np.c_[Y, 1e6 * X]
    Y[10:40, 1] = np.nan
    X[0] = 8.0  # far from all others: its fitted values rest on its own labels
    found = doctor(X, Y, Equations("y1**2 + y2**2 = 1"), held_out=False)
    notes = {note.kind: note for note in found.notes}
    assert {"gaps", "scale", "weak", "dimension", "unused"} <= set(notes)
    assert "2 patterns; 120 of 150 rows are complete" in notes["gaps"].sentence
    assert notes["dimension"].numbers == {"rank": 1, "dimension": 2}
    assert notes["scale"].numbers["ratio"] > 1e5
    assert all(0 in note.rows for note in found.notes if note.kind == "weak")
    assert any("held_out" in what for what in found.untested)


def test_a_page_has_the_picture():
    X, Y = cases.circle(60, 0.05)(np.random.default_rng(4))
    page = doctor(X, Y, Equations("y1**2 + y2**2 = 1"), held_out=False).to_html()
    assert "data:image/svg+xml" in page and "Residuals" in page


def test_a_wrong_coefficient_is_found_where_the_mean_says_little():
    """1.1 y1^2 + 0.9 y2^2 on the circle: off by 0.1 cos(2 t), which is 0 on average."""
    rng = np.random.default_rng(11)
    found = [doctor(*cases.circle()(rng), Equations("1.1*y1**2 + 0.9*y2**2 = 1"), held_out=False) for _ in range(6)]
    assert sum(not diagnosis.sound for diagnosis in found) >= 5
