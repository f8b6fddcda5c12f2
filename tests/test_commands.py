"""The command line as a user types it: tables in, models, tables and sentences out."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest

import lawful
from commands import call, save_model
from lawful import ConstrainedRanker
from lawful.cli.laws import law_of
from lawful.cli.settings import settings
from lawful.cli.tools.tables import choose, pieces, read
from lawful.cli.words import Trouble

CIRCLE = "east**2 + north**2 = 1"
rng = np.random.default_rng(0)
T = rng.uniform(-3, 3, 60)
TABLE = pd.DataFrame({"t": T, "noise": 1.0, "east": np.cos(T), "north": np.sin(T)}).drop(columns="noise")
TABLE.loc[::7, "east"] = np.nan


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("data.csv", index=False)
    pd.DataFrame({"id": range(30), "t": np.linspace(-3, 3, 30)}).to_csv("new.csv", index=False)
    return tmp_path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("model"), CIRCLE, TABLE, ["east", "north"])


def test_fit_writes_a_model_and_a_report(folder):
    done = call("fit", "data.csv", "--outputs", "east,nor*", "--law", CIRCLE, "--save", "m.lawful", "--report", "r.html")
    assert "law on 60 training rows" in done.output and "saved: m.lawful" in done.output
    page = (folder / "r.html").read_text()
    assert page.count("<figure") == 2 and "east**2 + north**2 = 1" in page and "http" not in page.replace('"http://www.w3', "")
    again = lawful.load("m.lawful")
    c = again.predict(pd.DataFrame({"t": [0.5]}))
    assert abs(c - [[np.cos(0.5), np.sin(0.5)]]).max() < 0.01 and abs((c**2).sum() - 1) < 1e-8
    told = json.loads(call("info", "m.lawful", "--json").stdout)
    assert told["law"] == CIRCLE and told["inputs"] == ["t"] and told["outputs"] == ["east", "north"]
    assert "east, north" in call("info", "m.lawful").output
    assert not [name for name in os.listdir() if name.endswith(".part")]


def test_fit_in_json(folder):
    told = json.loads(call("fit", "data.csv", "--outputs", "east,north", "--law", CIRCLE, "--json").stdout)
    assert told["rows"] == 60 and told["inputs"] == ["t"] and told["law"]["status"] == {"ok": 60}
    assert [one["output"] for one in told["outputs"]] == ["east", "north"]
    assert all(one["r2"] > 0.99 for one in told["outputs"]) and told["law"]["violation"] < 1e-8


def test_fit_by_search_and_with_weights(folder):
    TABLE.assign(w=1.0).to_csv("weighted.csv", index=False)
    call("fit", "weighted.csv", "--outputs", "north", "--inputs", "t", "--weights", "w", "--search", "--save", "s.lawful", "-q")
    assert type(lawful.load("s.lawful")).__name__ == "ConstrainedRegressorCV"
    assert (
        "chooses by held-out errors itself"
        in call("fit", "data.csv", "--outputs", "north", "--search", "--surrogate", "auto", code=2).output
    )


def test_predict_is_the_model(folder, model):
    out = call("predict", model, "new.csv", "-o", "out.csv", "--keep", "id").output
    assert "30 rows (30 ok)" in out
    table = read(folder / "out.csv")
    assert list(table.columns) == ["id", "east", "north", "residual", "status", "east_std", "north_std"]
    expected = lawful.load(model).decode(read(folder / "new.csv")[["t"]])
    np.testing.assert_array_equal(table[["east", "north"]], expected.c)
    np.testing.assert_array_equal(table[["east_std", "north_std"]], expected.std)
    assert (table["status"] == "ok").all() and table["residual"].max() < 1e-8


def test_pieces_give_the_same_as_the_whole(folder, model):
    call("predict", model, "new.csv", "-o", "whole.csv")
    call("predict", model, "new.csv", "-o", "pieces.csv", "--rows", 7)
    np.testing.assert_allclose(
        pd.read_csv("whole.csv")[["east", "north"]], pd.read_csv("pieces.csv")[["east", "north"]], rtol=1e-12
    )
    piped = call("predict", model, "new.csv", "--rows", 7).stdout
    assert piped == (folder / "pieces.csv").read_text()


def test_files_larger_than_memory(folder, model):
    """Four times the rows take no more memory, once a table is longer than what pandas reads at a time (256 kB)."""
    peaks = []
    for n in (1000, 15_000, 60_000):  # the first is for what is loaded once
        pd.DataFrame({"t": np.linspace(-3, 3, n)}).to_csv("long.csv", index=False)
        tracemalloc.start()
        call("predict", model, "long.csv", "-o", "o.csv", "--rows", 500, "--force", "-q")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (folder / "o.csv").read_text().count("\n") == n + 1
    assert peaks[2] < 1.2 * peaks[1]


@pytest.mark.parametrize("suffix", [".csv", ".npz", pytest.param(".parquet", marks=pytest.mark.parquet)])
def test_formats(folder, model, suffix):
    new = pd.read_csv("new.csv")
    if suffix == ".npz":
        np.savez("new.npz", t=new["t"], id=new["id"])
    elif suffix == ".parquet":
        new.to_parquet("new.parquet")
    call("predict", model, f"new{suffix}", "-o", f"out{suffix}", "--rows", 11, "-q")
    found = pd.concat(list(pieces(folder / f"out{suffix}", 8)))
    np.testing.assert_allclose(found[["east", "north"]], lawful.load(model).predict(new[["t"]]), rtol=1e-12)
    assert set(found["status"]) == {"ok"} and len(found) == 30


def test_parquet_without_pyarrow_is_a_sentence(folder, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert "pip install pyarrow" in call("predict", model, "new.csv", "-o", "o.parquet", code=2).output
    assert not (folder / "o.parquet").exists()


def test_arrays_of_two_axes_are_columns(folder):
    np.savez("data.npz", X=TABLE[["t"]].to_numpy(), Y=TABLE[["east", "north"]].to_numpy())
    call("fit", "data.npz", "--outputs", "y*", "--law", "y1**2 + y2**2 = 1", "--save", "m.lawful", "-q")
    assert lawful.saving.describe("m.lawful")["inputs"] == ["x1"]


def test_gaps_in_inputs(folder, model):
    pd.DataFrame({"t": [0.1, np.nan, 0.3]}).to_csv("gap.csv", index=False)
    done = call("predict", model, "gap.csv", "-o", "o.csv", "--json", "--strict", code=3)
    assert json.loads(done.stdout)["status"] == {"ok": 2, "missing_input": 1}
    out = pd.read_csv("o.csv")
    assert list(out["status"]) == ["ok", "missing_input", "ok"] and out["east"].isna().sum() == 1
    pd.DataFrame({"t": [np.nan, 0.2, 0.3], "east": 1.0}).to_csv("gap.csv", index=False)
    assert "1 of 3 rows lack an input" in call("fit", "gap.csv", "--outputs", "east").output


def test_an_empty_table(folder, model):
    (folder / "none.csv").write_text("t\n")
    call("predict", model, "none.csv", "-o", "o.csv")
    assert (folder / "o.csv").read_text().startswith("east,north,residual,status")


def test_project(folder):
    pd.DataFrame({"east": [3.0, 0.0], "north": [4.0, 2.0]}).to_csv("points.csv", index=False)
    call("project", "points.csv", "--law", CIRCLE, "-o", "p.csv")
    np.testing.assert_allclose(pd.read_csv("p.csv")[["east", "north"]], [[0.6, 0.8], [0.0, 1.0]], atol=1e-8)
    pd.DataFrame({"r": [1.0, 5.0], "a": [3.0, 3.0], "b": [4.0, 4.0]}).to_csv("points.csv", index=False)
    words = ("project", "points.csv", "--law", "a**2 + b**2 = r**2", "--columns", "a,b", "--inputs", "r", "-o", "p.csv")
    call(*words, "--force", "--rows", 1)
    np.testing.assert_allclose(pd.read_csv("p.csv")[["a", "b"]], [[0.6, 0.8], [3.0, 4.0]], atol=1e-8)
    call("project", "points.csv", "--law", "a + b = 1", "--columns", "a,b", "--weights", "1,1e9", "-o", "w.csv")
    np.testing.assert_allclose(pd.read_csv("w.csv")["b"], 4.0, atol=1e-6)
    call("project", "points.csv", "--law", "Simplex", "--columns", "a,b", "-o", "s.csv")
    np.testing.assert_allclose(pd.read_csv("s.csv")[["a", "b"]].sum(axis=1), 1.0)
    assert "--law is needed" in call("project", "points.csv", code=2).output
    call("project", "points.csv", "--law", "a**2 + b**2 = -1", "--columns", "a,b", "-o", "i.csv", "--strict", code=3)


def test_rank(folder):
    X = rng.standard_normal((30, 1))
    R = pd.DataFrame(X @ [[1.0, -1.0, 2.0, 0.5]], columns=["a", "b", "c", "d"])
    R.insert(0, "age", X[:, 0])
    R.loc[::3, "b"] = np.nan
    R.to_csv("ratings.csv", index=False)
    words = ("rank", "ratings.csv", "--inputs", "age", "--top", 2)
    call(*words, "-o", "best.csv", "--save", "r.lawful")
    best = pd.read_csv("best.csv")
    assert list(best.columns) == ["rank1", "rank2"] and set(best.stack()) <= {"a", "b", "c", "d"}
    ranker = ConstrainedRanker().fit(R[["age"]], R[["a", "b", "c", "d"]])
    expected = ranker.recommend(R[["age"]], 2, ratings=R[["a", "b", "c", "d"]])
    np.testing.assert_array_equal(best, np.array(["a", "b", "c", "d"])[expected])
    R[["age"]].to_csv("people.csv", index=False)  # new people, nothing rated
    assert len(json.loads(call("rank", "people.csv", "--model", "r.lawful", "--json").stdout)["orders"]) == 30
    left = call("rank", "ratings.csv", "--model", "r.lawful", "--unrated").stdout.splitlines()
    assert left[1] == "b,,," and left[2] == ",,,"
    assert "`lawful rank` for rankers" in call("predict", "r.lawful", "ratings.csv", code=2).output


def test_compare(folder):
    words = ("compare", "data.csv", "--outputs", "east,north", "--law", CIRCLE, "--methods", "mean,linear", "--folds", 3)
    told = json.loads(call(*words, "--json", "--plot", "p.png", "-o", "c.csv").stdout)["methods"]
    assert [one["method"] for one in told] == ["mean", "mean + law", "linear", "linear + law"]
    assert 0.9 < told[0]["error"] < 1.2 and told[2]["error"] < told[0]["error"]
    assert all(one["violation"] < 1e-8 for one in told if "law" in one["method"]) and told[0]["violation"] > 0.1
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG") and len(pd.read_csv("c.csv")) == 4
    assert "lowest error" in call(*words).output
    assert "choose from" in call("compare", "data.csv", "--outputs", "east", "--methods", "magic", code=2).output


# ---------------------------------------------------------------------- what is wrong is said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "nowhere.csv", "--outputs", "y"], "there is no file nowhere.csv"),
        (["fit", "data.xls", "--outputs", "y"], "use one of .csv, .parquet, .npz"),
        (["fit", "data.csv", "--outputs", "up"], "the columns are t, east, north"),
        (["fit", "data.csv", "--outputs", "*"], "no column left to predict from"),
        (["fit", "data.csv", "--outputs", " "], "--outputs is empty"),
        (["fit", "data.csv", "--outputs", "east", "--law", "east + = 1"], "number or a name is expected"),
        (["fit", "data.csv", "--outputs", "east", "--law", "west = 1"], "west"),
        (["fit", "data.csv", "--outputs", "east", "--law", "Sphere", "--law", "east = 1"], "stands alone"),
        (["fit", "data.csv", "--outputs", "east", "--save", "no/m.lawful"], "no folder"),
        (["fit", "data.csv", "--outputs", "east", "--save", "."], "is a folder"),
        (["fit", "text.csv", "--outputs", "east"], "'red' in row 2, which is no number"),
        (["fit", "empty.csv", "--outputs", "east"], "cannot be read as CSV"),
        (["fit", "gaps.csv", "--outputs", "east"], "nothing to learn from"),
        (["fit", "broken.npz", "--outputs", "east"], "cannot be read as a table"),
        (["info", "data.csv"], "does not begin like a model file"),
        (["predict", "data.csv", "new.csv"], "does not begin like a model file"),
        (["fit", "data.csv", "--outputs", "east", "--config", "no.toml"], "cannot be read"),
        (["fit", "data.csv", "--config", "bad.toml"], "are no TOML"),
        (["fit", "data.csv", "--config", "odd.toml"], "name colour for fit"),
    ],
)
def test_errors_are_sentences(folder, words, message):
    pd.DataFrame({"t": [1, 2], "shade": ["1", "red"], "east": [0.1, 0.2]}).to_csv("text.csv", index=False)
    (folder / "empty.csv").write_text("")
    (folder / "gaps.csv").write_text("t,east\n1,\n2,\n")
    (folder / "broken.npz").write_bytes(b"PK\x03\x04")
    (folder / "bad.toml").write_text("outputs = east")
    (folder / "odd.toml").write_text('outputs = "east"\n[fit]\ncolour = 1\n')
    before = set(os.listdir())
    done = call(*words, code=2)
    assert message in " ".join(done.output.split()), done.output
    assert set(os.listdir()) == before


def test_nothing_is_overwritten_without_being_asked(folder, model):
    (folder / "out.csv").write_text("mine")
    for words in (
        ["predict", model, "new.csv", "-o", "out.csv"],
        ["fit", "data.csv", "--outputs", "east", "--save", "out.csv"],
    ):
        assert "--force replaces it" in call(*words, code=2).output
        assert (folder / "out.csv").read_text() == "mine"
    call("predict", model, "new.csv", "-o", "out.csv", "--force")
    assert len(pd.read_csv("out.csv")) == 30


def test_a_table_that_breaks_off_leaves_the_old_one(folder, model):
    """The second piece is no number: nothing is written, and what was there stays."""
    (folder / "out.csv").write_text("mine")
    (folder / "bad.csv").write_text("t\n" + "0.5\n" * 10 + "oops\n")
    assert "'oops'" in call("predict", model, "bad.csv", "-o", "out.csv", "--force", "--rows", 5, code=2).output
    assert (folder / "out.csv").read_text() == "mine" and not [n for n in os.listdir() if n.endswith(".part")]


# ---------------------------------------------------------------------- settings


def test_settings_from_a_file(folder):
    (folder / "s.toml").write_text(f'outputs = "east,north"\nlaw = "{CIRCLE}"\nas-json = false\n[fit]\nsave = "m.lawful"\n')
    call("fit", "data.csv", "--config", "s.toml", "-q")
    assert lawful.saving.describe("m.lawful")["law"] == CIRCLE
    call("fit", "data.csv", "--config", "s.toml", "--save", "n.lawful", "--outputs", "north", "--law", "north <= 1", "-q")
    assert lawful.saving.describe("n.lawful")["outputs"] == ["north"], "the command line counts more"


def test_settings_of_other_commands_are_theirs(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text('law = ["a = 1", "b = 2"]\n[predict]\nstrict = true\n')
    assert settings(path, "fit", {"law", "outputs"}) == {"law": ["a = 1", "b = 2"]}
    assert settings(path, "predict", {"strict", "keep"}) == {"strict": True}


def test_patterns_and_laws():
    names = ["y1", "y2", "temp", "z"]
    assert choose(names, "temp, y*", "--outputs") == ["y1", "y2", "temp"]
    with pytest.raises(Trouble, match="no column matches 'q'"):
        choose(names, "y*,q", "--outputs")
    assert law_of(None) is None and law_of([" "]) is None
    assert type(law_of(["Simplex"])).__name__ == "Simplex"
    assert law_of(["a = 1", "b = 2"]).equations == ["a = 1", "b = 2"]


@pytest.mark.parametrize("command", ["fit", "predict", "project", "rank", "compare", "doctor", "discover", "info", "reproduce"])
def test_help_has_an_example(command):
    text = call(command, "--help").output
    assert command == "reproduce" or f"lawful {command} " in text
