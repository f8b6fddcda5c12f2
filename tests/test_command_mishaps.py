"""The command line in the hands of somebody who has never seen it: odd names, wrong settings, files that must not be lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import lawful
from commands import call, save_model
from lawful._files import replacing
from lawful.cli.tools.tables import choose, pieces
from lawful.cli.words import Trouble, listed, patterns_of, tell_json
from lawful.sets.learned.words import _rounded

LAW = "y1**2 + y2**2 = 1"
T = np.random.default_rng(0).uniform(-3, 3, 30)
TABLE = pd.DataFrame({"t": T, "y1": np.cos(T), "y2": np.sin(T)})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("data.csv", index=False)
    return tmp_path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("model"), LAW, TABLE, ["y1", "y2"])


def said(*words, code=2):
    return " ".join(call(*words, code=code).output.split())


# ---------------------------------------------------------------------- names of columns


def test_names_are_no_markup(folder):
    TABLE.rename(columns={"y1": "east [c]", "y2": "north [/bold]"}).to_csv("data.csv", index=False)
    out = call("fit", "data.csv", "--outputs", "east*,north*", "--law", LAW).output
    assert "east [c]" in out and "north [/bold]" in out


def test_names_are_no_mathematics(folder):
    """Two dollars in a name broke the reports, which have pictures."""
    TABLE.rename(columns={"y1": "us$ a\\frac$"}).to_csv("data.csv", index=False)
    words = ("data.csv", "--outputs", "us*,y2", "--law", "`us$ a\\frac$`**2 + y2**2 = 1", "-q")
    call("fit", *words, "--report", "fit.html")
    call("doctor", *words, "--report", "doctor.html", "--quick")
    assert all("us$ a\\frac$" in (folder / name).read_text() for name in ("fit.html", "doctor.html"))


def test_a_name_with_a_comma_stands_between_backticks(folder):
    names = ["speed, km/h", "way, km", "y*", "y1", 'say "x"']
    assert choose(names, "`speed, km/h`, y1", "--outputs") == ["speed, km/h", "y1"]
    assert choose(names, "`y*`", "--outputs") == ["y*"] and choose(names, "y*", "--outputs") == ["y*", "y1"]
    assert choose(names, 'say "x"', "--outputs") == ['say "x"']
    assert [name for name, _ in patterns_of(listed(names))] == names
    with pytest.raises(Trouble, match="a name with a comma stands between backticks"):
        choose(names, "speed, km/h", "--outputs")


def test_laws_that_were_discovered_are_kept_whatever_the_columns_are_called(folder):
    rng = np.random.default_rng(0)
    flow = rng.uniform(1, 2, (60, 2))
    table = pd.DataFrame(np.c_[np.arange(60), flow, flow.sum(axis=1)], columns=["hour", "a, in", "b*", "b* and more"])
    table.iloc[:, 1:] += 0.01 * rng.standard_normal((60, 3))
    table.to_csv("flow.csv", index=False)
    call("discover", "flow.csv", "--outputs", "`a, in`,b*", "--alone", "--noise", "0.01", "-o", "law.toml")
    call("fit", "flow.csv", "--config", "law.toml", "--save", "m.lawful", "-q")
    assert lawful.saving.describe("m.lawful")["outputs"] == ["a, in", "b*", "b* and more"]
    table.drop(columns="hour").to_csv("alone.csv", index=False)
    words = ("discover", "alone.csv", "--outputs", "*", "--alone", "--noise", "0.01", "--force", "-o", "law.toml")
    assert "1 law found" in call(*words).output, "laws of the outputs alone need no inputs"
    assert "inputs" not in (folder / "law.toml").read_text()


def test_columns_may_be_called_as_arguments_of_python_are(folder, model):
    pd.DataFrame({"t": T, "file": np.arange(30), "self": ["1"] * 29 + ["oops"]}).to_csv("new.csv", index=False)
    call("predict", model, "new.csv", "-o", "out.npz", "--keep", "file,self")
    with np.load("out.npz") as out:
        np.testing.assert_array_equal(out["file"], np.arange(30))
        assert out["self"][-1] == "oops" and out["status"][0] == "ok"
    assert "'oops' in row 30" in said("fit", "new.csv", "--outputs", "self")
    ratings = pd.DataFrame(np.random.default_rng(0).integers(1, 6, (20, 3)), columns=["self", "file", "c"])
    ratings.to_csv("ratings.csv", index=False)
    call("rank", "ratings.csv", "--save", "r.lawful", "-o", "best.csv", "--top", 9)
    assert list(pd.read_csv("best.csv").columns) == ["rank1", "rank2", "rank3"], "there are no more items than there are"
    ratings[["c"]].to_csv("few.csv", index=False)
    assert len(json.loads(call("rank", "few.csv", "--model", "r.lawful", "--json").stdout)["orders"]) == 20
    assert "outputs:    -" in call("info", "r.lawful").output


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ("simplex", "did you mean Simplex?"),
        ("Spher(radius=2)", "did you mean Sphere?"),
        ("sphere", "did you mean Sphere?"),
        ("log(y1) = log(y2)", None),
    ],
)
def test_a_set_that_is_misspelt(folder, law, message):
    if message:
        assert message in said("project", "data.csv", "--columns", "y*", "--law", law)
    else:
        call("project", "data.csv", "--columns", "y*", "--law", law, "-q")


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ('"flow in" = 1', "contains a quote; names with odd characters stand between backticks"),
        ("flow in = 1", "did you mean 'flow in', between backticks?"),
        ("y2 = 1; y2 >= 0", "give every equation by itself: a list of them, or --law for each"),
    ],
)
def test_how_a_law_is_written_is_said(folder, law, message):
    TABLE.rename(columns={"y1": "flow in"}).to_csv("data.csv", index=False)
    assert message in said("project", "data.csv", "--columns", "flow in,y2", "--law", law)


def test_what_is_no_number_is_said_with_what_would_do(folder, model):
    (folder / "new.csv").write_text("t\n0.5\n-\n")
    assert "holds '-' in row 2, which is no number; leave empty what is not known" in said("predict", model, "new.csv")


# ---------------------------------------------------------------------- columns that are named wrongly


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--outputs", ",,"], "--outputs is empty"),
        (["--outputs", "y*", "--inputs", "y1,t"], "--inputs names 'y1', which is an output"),
        (["--outputs", "y*", "--weights", "*"], "--weights * means t, y1, y2; name one column"),
        (["--outputs", "y1", "--weights", "y2", "--inputs", "t,y2"], "--inputs names 'y2', which is the weights"),
    ],
)
def test_columns_are_one_thing(folder, words, message):
    assert message in said("fit", "data.csv", *words)


def test_weights_by_a_pattern_predict_nothing(folder):
    TABLE.assign(weight=1.0).to_csv("data.csv", index=False)
    told = json.loads(call("fit", "data.csv", "--outputs", "y1", "--inputs", "t", "--weights", "wei*", "--json").stdout)
    assert told["inputs"] == ["t"]
    told = json.loads(call("fit", "data.csv", "--outputs", "y*", "--weights", "wei*", "--json").stdout)
    assert told["inputs"] == ["t"]


def test_project_says_how_a_law_gets_its_inputs_and_wants_all_weights(folder):
    assert "--inputs t gives it" in said("project", "data.csv", "--columns", "y*", "--law", "y1 + y2 = t")
    words = ("project", "data.csv", "--columns", "y*", "--law", "y1 + y2 = 1", "--weights")
    assert "--weights has 1 for 2 columns (y1, y2); give one for each" in said(*words, "1")
    assert "(default: none)" in call("project", "--help").output and "(default: none)" in call("rank", "--help").output


def test_compare_estimates_coefficients(folder):
    words = ("compare", "data.csv", "--outputs", "y*", "--methods", "mean,linear,mean", "--folds", 3, "--json")
    told = json.loads(call(*words, "--law", "y1**2 + y2**2 = r", "--unknown", "r=0:10").stdout)["methods"]
    assert [one["method"] for one in told] == ["mean", "mean + law", "linear", "linear + law"]
    TABLE.assign(y1=1.0, y2=2.0).to_csv("data.csv", index=False)
    assert "y1, y2 never change" in said(*words)


# ---------------------------------------------------------------------- what is said of a fit


def test_errors_that_nobody_knows_are_not_0(folder):
    TABLE.head(1).to_csv("data.csv", index=False)
    words = ("fit", "data.csv", "--outputs", "y*", "--law", LAW)
    assert [(one["rmse"], one["r2"]) for one in json.loads(call(*words, "--json").stdout)["outputs"]] == [(None, None)] * 2
    out = call(*words, "--report", "r.html").output
    assert "1 row, 1 input" in out and "on 1 training row:" in out
    pd.concat([TABLE.head(1)] * 10).to_csv("data.csv", index=False)  # whose mean is not itself, by rounding
    assert [one["r2"] for one in json.loads(call(*words, "--json").stdout)["outputs"]] == [None, None]


def test_quiet_is_quiet(folder):
    assert call("fit", "data.csv", "--outputs", "y*", "-q").output == ""


def test_laws_in_tiny_units(folder):
    """y1**2 + y2**2 = 1e-24 is no point."""
    assert _rounded(9.937e-25, 1e-28) == pytest.approx(9.937e-25, rel=1e-3, abs=0) and _rounded(0.0, 1e-30) == 0
    assert _rounded(0.123456, 1e-3) == 0.123 and _rounded(1234.5, 100.0) == 1200
    ring = TABLE.assign(t=np.arange(30))
    ring[["y1", "y2"]] = 1e-12 * (ring[["y1", "y2"]] + 0.02 * np.random.default_rng(0).standard_normal((30, 2)))
    ring.to_csv("data.csv", index=False)
    law = json.loads(call("discover", "data.csv", "--outputs", "y*", "--alone", "--noise", "2e-14", "--json").stdout)["laws"][
        0
    ]["law"]
    assert float(law.split("=")[1]) == pytest.approx(1e-24, rel=0.2, abs=0)


# ---------------------------------------------------------------------- what predict says and keeps


def test_many_pieces_say_one_thing(folder, model):
    infeasible = folder / "i.lawful"
    lawful.ConstrainedRegressor(lawful.Equations("y1**2 + y2**2 = -1")).fit(TABLE[["t"]], TABLE[["y1", "y2"]]).save(infeasible)
    TABLE.assign(t=TABLE["t"].where(TABLE.index % 4 > 0)).to_csv("new.csv", index=False)
    done = call("predict", infeasible, "new.csv", "--rows", 5)
    assert [line for line in done.stderr.splitlines() if line] == [
        "30 rows (8 missing_input, 22 infeasible); the column status says which"
    ]
    assert call("predict", infeasible, "new.csv", "--rows", 5, "-q").stderr.strip() == ""
    assert call("predict", infeasible, "new.csv", "--rows", 5, "-o", "o.csv").stderr.strip() == ""


def test_what_is_kept_is_kept_letter_by_letter(folder, model):
    (folder / "new.csv").write_text("code,t,land,amount\n007,0.5,NA,1.50\n,1.5,DE,\n1e5,2.5,None,3\n")
    for output in ("out.csv", "-"):
        done = call("predict", model, "new.csv", "-o", output, "--keep", "*", "--rows", 2)
        text = (folder / output).read_text() if output != "-" else done.stdout
        assert [",".join(line.split(",")[:4]) for line in text.splitlines()] == (folder / "new.csv").read_text().splitlines()
    call("predict", model, "new.csv", "-o", "out.npz", "--keep", "amount")
    with np.load("out.npz") as out:
        np.testing.assert_array_equal(out["amount"], [1.5, np.nan, 3.0])
    assert [piece["land"].tolist() for piece in pieces(folder / "new.csv", text=lambda names: ["land"])] == [
        ["NA", "DE", "None"]
    ]


def test_a_column_that_cannot_be_kept_is_said(folder, model):
    assert "--keep y1: the result has a column of that name" in said("predict", model, "data.csv", "--keep", "y1,t", code=0)
    assert "the result has" not in said("predict", model, "data.csv", "--keep", "*", code=0)


def test_whatever_is_kept_has_a_word_in_json(capsys):
    tell_json({"day": pd.Timestamp("2020-01-01"), "none": pd.NaT, "bytes": b"a", "gap": float("nan"), "nothing": None, "n": 1})
    found = {"day": "2020-01-01 00:00:00", "none": None, "bytes": "b'a'", "gap": None, "nothing": None, "n": 1}
    assert json.loads(capsys.readouterr().out) == found


@pytest.mark.parquet
def test_a_column_that_changes_its_kind_makes_no_parquet(folder, model):
    pd.DataFrame({"t": T, "code": ["1"] * 20 + ["x"] * 10}).to_csv("new.csv", index=False)
    words = [sys.executable, "-m", "lawful", "predict", str(model), "new.csv", "-o", "o.parquet", "--keep", "*", "--rows", "10"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2 and "more --rows at a time, or a .csv, would do" in done.stderr
    assert "Traceback" not in done.stderr and not [name for name in os.listdir() if "o.parquet" in name]


# ---------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('outputs = "y*"\nlwa = "y1 = 1"', "name lwa, which is an option of no command; did you mean law?"),
        ('[fti]\noutputs = "y*"', "have a table [fti], which is no command; did you mean fit?"),
        ('fit = 3\noutputs = "y*"', "name fit, which is an option of no command"),
        ('outputs = "y*"\nlaw = 3', "say law = 3; text, or a list of texts, would do"),
        ('outputs = "y*"\nlaw = [["y1 = 1"]]', "say law = [['y1 = 1']]; text, or a list of texts, would do"),
        ('outputs = [["y1"]]', "text, or a list of texts, would do"),
    ],
)
def test_settings_that_nobody_reads_are_an_error(folder, text, message):
    (folder / "s.toml").write_text(text)
    done = call("fit", "data.csv", "--config", "s.toml", "--json", code=2)
    assert message in json.loads(done.stdout)["error"]


def test_settings_with_lists_and_for_several_commands(folder, model):
    (folder / "s.toml").write_text(f'outputs = ["y1", "y2"]\nlaw = "{LAW}"\nrows = 7\njson = true\n[predict]\nkeep = ["t"]\n')
    told = json.loads(call("fit", "data.csv", "--config", "s.toml").stdout)
    assert [one["output"] for one in told["outputs"]] == ["y1", "y2"] and told["law"]["violation"] < 1e-8
    assert set(json.loads(call("predict", model, "data.csv", "--config", "s.toml").stdout)["table"][0]) >= {"t", "y1", "y1_std"}


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "data.csv"],
        ["fit", "data.csv", "--outputs", "y1", "--colour", "red"],
        ["fit", "data.csv", "--outputs", "y1", "--surrogate", "magic"],
        ["fit", "data.csv", "--outputs", "y1", "--config", "nowhere.toml"],
        ["predict", "m.lawful", "data.csv", "--rows", "0"],
        ["fitt", "data.csv"],
    ],
    ids=" ".join,
)
def test_every_wrong_word_is_one_object_for_programs(folder, words):
    done = call(*words, "--json", code=2)
    assert json.loads(done.stdout)["error"] and done.stderr
    assert call(*words, code=2).stdout == ""


# ---------------------------------------------------------------------- files that must not be lost


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with a name")
def test_what_is_no_file_is_never_replaced(folder):
    """As the owner of everything `--save /dev/null --force` put a model in the place of the device."""
    os.mkfifo("pipe")
    assert "is no ordinary file" in said("fit", "data.csv", "--outputs", "y*", "--save", "pipe", "--force")
    with pytest.raises(ValueError, match="is no ordinary file"), replacing(folder / "pipe"):
        pass
    assert not (folder / "pipe").is_file() and sorted(os.listdir()) == ["data.csv", "pipe"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "data.csv", "--outputs", "y*", "--save", "data.csv"], "the data and --save are both data.csv"),
        (["fit", "data.csv", "--outputs", "y*", "--report", "link.csv"], "the data and --report are both link.csv"),
        (["fit", "data.csv", "--outputs", "y*", "--save", "m", "--report", "../{}/m"], "--save and --report are both"),
        (["doctor", "data.csv", "--outputs", "y*", "--law", LAW, "--report", "data.csv"], "the data and --report are both"),
        (["compare", "data.csv", "--outputs", "y*", "-o", "data.csv"], "the data and --output are both data.csv"),
        (["rank", "data.csv", "-o", "data.csv"], "the data and --output are both data.csv"),
        (["rank", "data.csv", "--save", "x.csv", "-o", "x.csv"], "--save and --output are both x.csv"),
    ],
)
def test_data_are_not_replaced_by_what_is_made_of_them(folder, words, message):
    (folder / "link.csv").symlink_to("data.csv")
    before = (folder / "data.csv").read_bytes()
    assert message in said(*[word.format(folder.name) for word in words], "--force")
    assert (folder / "data.csv").read_bytes() == before and sorted(os.listdir()) == ["data.csv", "link.csv"]


def test_a_table_may_take_the_place_of_its_inputs(folder, model):
    call("predict", model, "data.csv", "-o", "data.csv", "--keep", "*", "--force", "--rows", 7)
    found = pd.read_csv("data.csv")
    np.testing.assert_allclose(found["t"], T, rtol=1e-14)
    assert len(found) == 30 and (found["status"] == "ok").all()


def test_a_folder_is_no_table(folder):
    (folder / "folder.csv").mkdir()
    assert "folder.csv is a folder; name a file" in said("fit", "folder.csv", "--outputs", "y")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
@pytest.mark.parametrize("words", [["--json"], []], ids=["json", "text"])
def test_a_full_disk_is_a_sentence(folder, model, words):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "lawful", "predict", str(model), "data.csv", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.startswith("lawful predict: what was to be written cannot be: No space left on device")


# ---------------------------------------------------------------------- reproduce


def test_a_folder_with_brackets_in_its_name(folder):
    assert "no [/where]" in said("reproduce", "sarcos", "--data", "no [/where]", "--out", "out")


def test_a_reproduction_that_is_stopped_says_so_to_programs(folder):
    words = [sys.executable, "-m", "lawful", "reproduce", "theory", "--quick", "--n-jobs", "1", "--out", "out", "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (folder / "out" / "theory" / "run.json").exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143 and "--resume goes on behind them" in json.loads(out)["error"]
    assert "Traceback" not in err
