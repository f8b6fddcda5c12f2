"""The command line on tables as they come: from spreadsheets, from other countries, half empty, of the wrong kind."""

from __future__ import annotations

import codecs
import json
import os

import numpy as np
import pandas as pd
import pytest

from commands import call, save_model
from lawful.cli.tools.dialects import dialect
from lawful.cli.tools.tables import free, numbers, pieces, read
from lawful.cli.words import Trouble

LAW = "y1**2 + y2**2 = 1"
T = np.random.default_rng(0).uniform(-3, 3, 20)
TABLE = pd.DataFrame({"t": T, "y1": np.cos(T), "y2": np.sin(T)})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("model"), LAW, TABLE, ["y1", "y2"])


# ---------------------------------------------------------------------- one table, many ways to write it


@pytest.mark.parametrize(
    "options",
    [
        {"sep": ";"},
        {"sep": ";", "decimal": ","},
        {"sep": "\t"},
        {"sep": "\t", "decimal": ","},
        {"sep": "|"},
        {"encoding": "utf-8-sig"},
        {"encoding": "utf-16"},
        {"encoding": "utf-16", "sep": "\t", "decimal": ","},
        {"lineterminator": "\r\n"},
        {"quoting": 1},
        {"quoting": 1, "sep": ";", "decimal": ","},
    ],
    ids=lambda options: " ".join(f"{k}={v!r}" for k, v in options.items()),
)
def test_the_same_table_however_it_is_written(folder, options):
    TABLE.to_csv("data.csv", index=False, **options)
    pd.testing.assert_frame_equal(read(folder / "data.csv"), TABLE, check_exact=True)
    found = list(pieces(folder / "data.csv", 7))
    assert [len(piece) for piece in found] == [7, 7, 6]
    pd.testing.assert_frame_equal(pd.concat(found), TABLE, check_exact=True)


def test_big_endian_utf_16(folder):
    (folder / "data.csv").write_bytes(codecs.BOM_UTF16_BE + TABLE.to_csv(index=False).encode("utf-16-be"))
    pd.testing.assert_frame_equal(read(folder / "data.csv"), TABLE, check_exact=True)


def test_names_are_taken_without_the_space_around_them(folder):
    TABLE.rename(columns={"y1": " y1 ", "t": "t "}).to_csv("data.csv", index=False)
    assert list(read(folder / "data.csv").columns) == ["t", "y1", "y2"]


def test_a_comma_inside_a_name_separates_nothing(folder):
    (folder / "data.csv").write_text('"speed, km/h";"way, km"\n"1,5";2\n')
    table = read(folder / "data.csv")
    assert table.to_dict("list") == {"speed, km/h": [1.5], "way, km": [2]}
    (folder / "data.csv").write_text('a,"b;c;d"\n1,2\n')
    assert list(read(folder / "data.csv").columns) == ["a", "b;c;d"]


def test_text_with_commas_is_no_decimal(folder):
    (folder / "data.csv").write_text("place;t\nParis, 12;0.5\n")
    assert dialect(folder / "data.csv")["decimal"] == "."
    assert read(folder / "data.csv")["t"].tolist() == [0.5]


def test_row_numbers_predict_nothing(folder, capsys):
    """As `DataFrame.to_csv` leaves them, and as R does: without a name."""
    TABLE.to_csv("data.csv")
    assert list(read(folder / "data.csv").columns) == ["t", "y1", "y2"]
    assert capsys.readouterr().err.count("without a name is left out") == 1
    (folder / "data.csv").write_text("t,y1,,\n1,2,,\n3,4,,\n")
    assert list(read(folder / "data.csv").columns) == ["t", "y1"]
    assert capsys.readouterr().err == "", "an empty column says nothing"


def test_a_comma_at_the_end_of_every_row_moves_nothing(folder):
    (folder / "data.csv").write_text("t,y1,y2\n1,2,3,\n4,5,6,\n")
    assert read(folder / "data.csv").to_dict("list") == {"t": [1, 4], "y1": [2, 5], "y2": [3, 6]}


@pytest.mark.parquet
def test_an_index_of_parquet_is_a_column(folder):
    TABLE.set_index("t").to_parquet("named.parquet")
    assert set(read(folder / "named.parquet").columns) == {"t", "y1", "y2"}
    TABLE.sample(frac=1, random_state=0).to_parquet("numbered.parquet")
    found = list(pieces(folder / "numbered.parquet", 7))
    assert [list(piece.columns) for piece in found] == [["t", "y1", "y2"]] * 3 and found[1].index[0] == 7
    TABLE.iloc[:0].to_parquet("none.parquet")
    assert read(folder / "none.parquet").shape == (0, 3)


# ---------------------------------------------------------------------- what cannot be read is said


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty; its first line should name the columns"),
        (b"\n\n \n", "it is empty; its first line should name the columns"),
        ("temp °C,y1,y2\n1,2,3\n".encode("latin-1"), "is not written in UTF-8 .* save it as CSV in UTF-8"),
        ("t,y1,y2\n1,2,3\n".encode("utf-16-le"), "holds zero bytes"),
        (bytes(range(256)), "holds zero bytes"),
        (b"t,y1,y1\n1,2,3\n", "has 2 columns 'y1'; give each a name of its own"),
        (b"t,y1, y1 ,y1\n1,2,3,4\n", "has 3 columns 'y1'; give each a name of its own"),
        (b"t,y1\n1,2,3\n4,5,6\n", "names 2 columns in its first line and has 3 values in the next one"),
        (b"t,y1\n1,2\n4,5,6\n", "Expected 2 fields in line 3, saw 3"),
        (b"t,y1,y2\n1,inf,3\n", "the column 'y1' holds inf in row 1; a value that is not known is left empty"),
        (b"t,y1,y2\n1,2,3\n-1e999,2,3\n", "the column 't' holds -inf in row 2"),
        (b"t,day,y1,y2\n1,2020-01-01,2,3\n", "'2020-01-01' in row 1, which is no number"),
        (b"t,y1,y2\n1,2,\n2,3,\n", "output 'y2' has no observation"),
    ],
)
def test_odd_files_are_sentences(folder, content, message):
    (folder / "data.csv").write_bytes(content)
    words = " ".join(call("fit", "data.csv", "--outputs", "y*", "--json", code=2).stderr.split())
    assert words.startswith("lawful fit: ")
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(words)


def test_arrays_that_make_no_table(folder):
    np.savez("twice.npz", Y=np.ones((3, 2)), y1=np.zeros(3))
    np.savez("complex.npz", t=np.ones(3) * 1j, y1=np.zeros(3))
    np.savez("dates.npz", t=np.array(["2020-01-01"] * 3, dtype="datetime64[D]"), y1=np.zeros(3))
    np.savez("lengths.npz", t=np.ones(3), y1=np.zeros(2))
    for name, message in {
        "twice": "the column 'y1' is there twice",
        "complex": "holds '1j' in row 1, which is no number",
        "dates": "which is no number",
        "lengths": "All arrays must be of the same length",
    }.items():
        assert message in " ".join(call("fit", f"{name}.npz", "--outputs", "y1", code=2).output.split())


def test_true_and_false_are_numbers(folder):
    (folder / "data.csv").write_text("on,y1\nTrue,1\nFalse,2\n")
    assert numbers(read(folder / "data.csv"), ["on", "y1"], folder)["on"].tolist() == [1.0, 0.0]


# ---------------------------------------------------------------------- answers for programs


def told(*words, code=0):
    """Standard output, which is one JSON object, whatever happened."""
    return json.loads(call(*words, "--json", code=code).stdout)


def test_json_holds_the_rows_where_no_file_is_asked_for(folder, model):
    TABLE.assign(t=TABLE["t"].where(TABLE.index != 3)).to_csv("new.csv", index=False)
    for output in ((), ("-o", "-")):
        found = told("predict", model, "new.csv", "--keep", "t", *output)
        assert found["rows"] == len(found["table"]) == 20 and found["output"] is None
        assert found["status"] == {"ok": 19, "missing_input": 1}
        assert found["table"][3]["y1"] is None and found["table"][3]["status"] == "missing_input"
        assert abs(found["table"][0]["y1"] - TABLE["y1"][0]) < 0.1 and found["table"][0]["t"] == T[0]
    found = told("project", "new.csv", "--columns", "y*", "--law", LAW)
    np.testing.assert_allclose([[row["y1"], row["y2"]] for row in found["table"]], TABLE[["y1", "y2"]], atol=1e-12)
    assert "table" not in told("predict", model, "new.csv", "-o", "out.csv")
    (folder / "none.csv").write_text("t\n")
    assert told("predict", model, "none.csv") == {"rows": 0, "status": {}, "violation": 0.0, "table": [], "output": None}


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "nowhere.csv", "--outputs", "y"],
        ["predict", "nowhere.lawful", "data.csv"],
        ["project", "data.csv", "--law", "z = 1"],
        ["rank", "data.csv", "--items", "y1"],
        ["compare", "data.csv", "--outputs", "y1", "--methods", " "],
        ["compare", "data.csv", "--outputs", "y1", "--folds", "21"],
        ["doctor", "data.csv", "--outputs", "y*"],
        ["discover", "data.csv", "--outputs", "q"],
        ["info", "nowhere.lawful"],
    ],
    ids=lambda words: words[0],
)
def test_errors_for_programs(folder, words):
    TABLE.to_csv("data.csv", index=False)
    done = call(*words, "--json", code=2)
    assert json.loads(done.stdout)["error"] in " ".join(done.stderr.split())


def test_a_missing_model_is_named(folder):
    assert "nowhere.lawful: No such file or directory" in call("info", "nowhere.lawful", code=2).output


# ---------------------------------------------------------------------- asked before the work, not after


@pytest.mark.parametrize(
    "words",
    [
        ["rank", "nowhere.csv", "-o", "best.xlsx"],
        ["compare", "nowhere.csv", "--outputs", "y1", "-o", "table.txt"],
        ["compare", "nowhere.csv", "--outputs", "y1", "--plot", "picture.gif"],
        ["predict", "nowhere.lawful", "nowhere.csv", "-o", "out"],
    ],
)
def test_endings_are_asked_first(folder, words):
    assert "which tells no format; use one of ." in call(*words, code=2).output


def test_folders_where_nothing_may_be_written_are_asked_first(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda place, mode: False)
    with pytest.raises(Trouble, match=r"nothing may be written to the folder .*choose another for m\.lawful"):
        free(folder / "m.lawful", False)


def test_a_model_and_a_report_have_a_file_each(folder):
    TABLE.to_csv("data.csv", index=False)
    assert "both x.html" in call("fit", "data.csv", "--outputs", "y*", "--save", "x.html", "--report", "x.html", code=2).output


def test_rows_without_inputs_at_the_start_take_no_columns_away(folder, model):
    """The first piece has no answer, and so no standard deviations; those of the others are written all the same."""
    pd.DataFrame({"t": [np.nan] * 5 + [0.5] * 5}).to_csv("new.csv", index=False)
    call("predict", model, "new.csv", "-o", "out.csv", "--rows", 2, "-q")
    out = pd.read_csv("out.csv")
    assert list(out["status"]) == ["missing_input"] * 5 + ["ok"] * 5
    assert out["y1_std"].notna().sum() == 5 and out["y1_std"].isna()[:5].all()


def test_a_picture_without_a_law_has_one_panel(folder):
    TABLE.to_csv("data.csv", index=False)
    words = ("compare", "data.csv", "--outputs", "y*", "--methods", "mean,linear", "--folds", 3, "-q")
    call(*words, "--plot", "alone.svg")
    call(*words, "--plot", "both.svg", "--law", LAW)
    alone, both = ((folder / name).read_text() for name in ("alone.svg", "both.svg"))
    assert alone.count('id="axes_') == 1 and both.count('id="axes_') == 2
    assert 'id="legend_' in both and 'id="legend_' not in alone
