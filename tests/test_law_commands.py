"""Laws on the command line: sets and coefficients in words, `lawful doctor`, `lawful discover`."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pandas as pd
import pytest

import lawful
from commands import call
from lawful import doctor
from lawful.cli.laws import NAMED, law_of
from lawful.cli.settings import settings
from lawful.cli.words import Trouble

rng = np.random.default_rng(0)
T = rng.uniform(-3, 3, 80)
RING = pd.DataFrame({"t": T, "east": 2 * np.cos(T), "north": 2 * np.sin(T)})
RING[["east", "north"]] += 0.02 * rng.standard_normal((80, 2))
FLOW = pd.DataFrame(rng.uniform(1, 2, (60, 2)), columns=["feed", "recycle"])
FLOW["total"] = FLOW.sum(axis=1)
FLOW[["feed", "recycle", "total"]] += 0.01 * rng.standard_normal((60, 3))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    RING.to_csv("ring.csv", index=False)
    FLOW.assign(hour=np.arange(60)).to_csv("flow.csv", index=False)
    return tmp_path


# ---------------------------------------------------------------------- laws in words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Simplex", lawful.Simplex()),
        ("Sphere(2)", lawful.Sphere(2)),
        ("Sphere(radius=2, center=[1, -1.5])", lawful.Sphere(2, [1, -1.5])),
        ("Monotone(increasing=False)", lawful.Monotone(increasing=False)),
        ("Box(lower=0, upper=1)", lawful.Box(0, 1)),
        ("Hierarchy([[1, 1], [1, 0], [0, 1]])", lawful.Hierarchy([[1, 1], [1, 0], [0, 1]])),
        ('Logic(["dog -> animal"])', lawful.Logic(["dog -> animal"])),
        ("Stiefel(3, 2)", lawful.Stiefel(3, 2)),
        ("LearnedEquations(degree=2)", lawful.LearnedEquations(degree=2)),
    ],
)
def test_a_set_by_its_name(text, expected):
    assert repr(law_of([text])) == repr(expected)


def test_every_set_that_values_describe_has_a_name_here():
    """What is left out is made of other sets, is no set, or is what the command already is without a law."""
    others = {"ConstraintSet", "Equations", "Inflated", "Intersection", "LawTable", "LearnedLaw", "Penalized", "Product"}
    others |= {"Rankings", "Reals", "Union", "discover"}
    assert {*NAMED} == {*lawful.sets.__all__} - others


@pytest.mark.parametrize(
    ("law", "unknown", "message"),
    [
        (["Sphere(radius=)"], None, "cannot be read; a set has plain values"),
        (["Sphere(radius=open('x'))"], None, "cannot be read; a set has plain values"),
        (["Sphere(__import__('os'))"], None, "cannot be read; a set has plain values"),
        (["Sphere(1)(2)"], None, "cannot be read; a set has plain values"),
        (["Sphere() + (1)"], None, "cannot be read; a set has plain values"),
        (["Sphere(diameter=2)"], None, r"diameter.*given as Sphere\(radius=1.0, center=0.0\)"),
        (["Sphere", "y1 = 1"], None, "stands alone"),
        (["Sphere"], ["a"], "coefficients of equations"),
        (None, ["a"], "coefficients of equations"),
        (["y1 = a"], ["a=1"], "no coefficient"),
        (["y1 = a"], ["a=low:1"], "no coefficient"),
    ],
)
def test_words_that_say_no_law(law, unknown, message):
    with pytest.raises(Trouble, match=message):
        law_of(law, unknown)


def test_unknown_coefficients_in_words():
    law = law_of(["y1 + a*y2 = b"], ["a, b=0:10"])
    assert law.unknown == {"a": None, "b": (0.0, 10.0)}
    assert law_of(["y1 = c"], ["c=:1"]).unknown == {"c": (None, 1.0)}


def test_a_coefficient_is_estimated_by_fit_and_kept_in_the_file(folder):
    words = ("--outputs", "east,north", "--law", "east**2 + north**2 = r**2", "--unknown", "r=0:10")
    call("fit", "ring.csv", *words, "--save", "m.lawful", "-q")
    model = lawful.load("m.lawful")
    assert model.constraint_.unknown_["r"] == pytest.approx(2, abs=0.02)
    assert np.hypot(*model.predict(pd.DataFrame({"t": [0.5]}))[0]) == pytest.approx(model.constraint_.unknown_["r"])


def test_a_set_with_parameters_through_the_commands(folder):
    call("fit", "ring.csv", "--outputs", "east,north", "--law", "Sphere(radius=2)", "--save", "m.lawful", "-q")
    assert np.hypot(*lawful.load("m.lawful").predict(pd.DataFrame({"t": [0.5]}))[0]) == pytest.approx(2)
    pd.DataFrame({"low": [3.0, 1.0], "high": [1.0, 2.0]}).to_csv("points.csv", index=False)
    call("project", "points.csv", "--law", "Monotone", "-o", "p.csv", "-q")
    np.testing.assert_allclose(pd.read_csv("p.csv")[["low", "high"]], [[2, 2], [1, 2]])


def test_settings_may_name_unknowns(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text('law = "y1 = a"\nunknown = "a=0:1"\n')
    assert settings(path, "fit", {"law", "unknown"}) == {"law": ["y1 = a"], "unknown": ["a=0:1"]}


# ---------------------------------------------------------------------- doctor


def test_doctor_says_what_the_library_says(folder):
    words = ("doctor", "ring.csv", "--outputs", "east,north", "--law", "east**2 + north**2 = 3", "--quick")
    done = call(*words, "--report", "d.html")
    told = json.loads(call(*words, "--json").stdout)
    X, Y = (pd.read_csv("ring.csv").set_index(np.arange(1, 81))[names] for names in (["t"], ["east", "north"]))
    expected = doctor(X, Y, lawful.Equations("east**2 + north**2 = 3"), held_out=False)
    assert str(expected) in done.output and expected.to_html() == (folder / "d.html").read_text()
    assert told["sound"] is False and told["rows"] == 80 and told["report"] is None
    assert [one["sentence"] for one in told["alarms"]] == [one.sentence for one in expected.alarms]
    assert told["alarms"][0]["numbers"]["value"] == pytest.approx(4, abs=0.05)
    assert [one["name"] for one in told["equations"]] == [one.name for one in expected.equations]
    assert told["untested"] == expected.untested
    call(*words, "--strict", "-q", code=3)


def test_doctor_on_a_sound_law_from_settings(folder):
    (folder / "s.toml").write_text('outputs = "east,north"\nlaw = "east**2 + north**2 = 4"\n')
    told = json.loads(call("doctor", "ring.csv", "--config", "s.toml", "--strict", "--json").stdout)
    assert told["sound"] and not told["alarms"] and told["help"]["error_with"] < told["help"]["error_without"]


def test_doctor_counts_rows_as_the_file_does(folder):
    table = pd.read_csv("ring.csv")
    table.loc[6, "north"] += 5.0
    table.to_csv("ring.csv", index=False)
    words = ("doctor", "ring.csv", "--outputs", "east,north", "--law", "east**2 + north**2 = 4", "--quick", "--json")
    alarms = json.loads(call(*words).stdout)["alarms"]
    assert [7] in [one["rows"] for one in alarms]


def test_doctor_needs_a_law_and_a_free_name(folder):
    assert "--law is needed" in call("doctor", "ring.csv", "--outputs", "east,north", code=2).output
    (folder / "d.html").write_text("mine")
    words = ("doctor", "ring.csv", "--outputs", "east,north", "--law", "east = 1", "--report", "d.html")
    assert "--force replaces it" in call(*words, code=2).output
    assert (folder / "d.html").read_text() == "mine"


# ---------------------------------------------------------------------- discover


def test_discover_finds_a_balance_that_fit_then_keeps(folder):
    words = ("discover", "flow.csv", "--outputs", "feed,recycle,total", "--alone", "--noise", "0.01")
    done = call(*words, "-o", "law.toml")
    assert "1 law found" in done.output and "settings: law.toml" in done.output
    told = json.loads(call(*words, "--json").stdout)
    assert [one["simple"] for one in told["laws"]] == ["feed + recycle - total = 0"]
    found = tomllib.loads((folder / "law.toml").read_text())
    assert found == {"outputs": "feed,recycle,total", "inputs": "hour", "law": [told["laws"][0]["law"]]}
    call("fit", "flow.csv", "--config", "law.toml", "--save", "m.lawful", "-q")
    c = lawful.load("m.lawful").predict(pd.DataFrame({"hour": [3.0, 4.0]}))
    np.testing.assert_allclose(c[:, 0] + c[:, 1], c[:, 2], rtol=0.02)
    assert "--force replaces it" in call(*words, "-o", "law.toml", code=2).output


def test_discover_with_inputs(folder):
    """The total is an input here, and takes part."""
    words = ("discover", "flow.csv", "--outputs", "feed,recycle", "--inputs", "total", "--noise", "0.02", "--degree", 1)
    laws = json.loads(call(*words, "--json").stdout)["laws"]
    assert len(laws) == 1 and {"feed", "recycle", "total"} <= set(laws[0]["law"].replace("-", " ").replace("*", " ").split())


def test_discover_chooses_by_rows_left_out(folder):
    words = ("discover", "flow.csv", "--outputs", "feed,recycle,total", "--alone", "--choose")
    told = json.loads(call(*words, "--json").stdout)
    assert told["chosen"] == "equations" and told["errors"]["equations"] < told["errors"]["no law"]
    assert "held-out error" in call(*words).output


def test_discover_without_a_law_writes_nothing(folder):
    pd.DataFrame(rng.standard_normal((60, 3)), columns=["a", "b", "c"]).to_csv("noise.csv", index=False)
    words = ("discover", "noise.csv", "--outputs", "a,b", "--noise", "0.01", "--degree", 2)
    assert "0 laws found" in call(*words).output
    assert "no law was found" in call(*words, "-o", "law.toml", code=2).output
    assert not (folder / "law.toml").exists()
    assert "ends in .toml" in call(*words, "-o", "law.csv", code=2).output
