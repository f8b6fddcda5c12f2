"""Rows on disk: what a kill, a second writer or another request may do to them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from lawful.experiments._store import Store, StoreError, dumps, flat, read_lines

PLAN = [{"n": n, "trial": k} for k in range(2) for n in (10, 20)]
ASKED = {"experiment": "toy", "seed": 0, "trials": 2}
SESSION = {"command": "toy", "versions": {}, "machine": "m", "n_jobs": 1}
TIMES = {"seconds": 1.0, "parts": {}, "peak_mb": 1.0, "at": 1.0}


def fill(store, configurations):
    store.begin(SESSION)
    for c in configurations:
        store.add(c, {"mse": c["n"] / 3}, TIMES)


def test_rows_are_kept_in_the_order_of_the_plan(tmp_path):
    with Store(tmp_path, ASKED, PLAN, resume=False) as store:
        fill(store, PLAN[::-1])  # workers finish in any order
        rows = store.finish()
    assert [(r["n"], r["trial"]) for r in rows] == [(c["n"], c["trial"]) for c in PLAN]
    assert (tmp_path / "rows.jsonl").read_text() == "".join(dumps(r) + "\n" for r in rows)
    assert rows[1]["results"]["mse"] == 20 / 3  # floats survive the file


@pytest.mark.parametrize("torn", [b"", b'{"n":10', b'{"n":20,"results":{"mse":3.3},"trial":0}', b"\xc3"])
def test_a_torn_line_is_cut_off_and_done_again(tmp_path, torn):
    with Store(tmp_path, ASKED, PLAN, resume=False) as store:
        fill(store, PLAN[:1])
    with open(tmp_path / "rows.jsonl", "ab") as file:
        file.write(torn)  # no newline: the write was killed
    with open(tmp_path / "times.jsonl", "ab") as file:
        file.write(b'{"at"')
    with Store(tmp_path, ASKED, PLAN, resume=True) as store:
        assert store.todo() == PLAN[1:]
        fill(store, store.todo())
        resumed = store.finish()
        assert len(store.times()) == 4 and len(store.sessions) == 2
    with Store(tmp_path / "other", ASKED, PLAN, resume=False) as store:
        fill(store, PLAN)
        store.finish()
    assert (tmp_path / "rows.jsonl").read_bytes() == (tmp_path / "other" / "rows.jsonl").read_bytes()
    assert len(resumed) == 4


def test_an_existing_run_is_not_overwritten(tmp_path):
    with Store(tmp_path, ASKED, PLAN, resume=False) as store:
        fill(store, PLAN[:1])
    before = (tmp_path / "rows.jsonl").read_bytes()
    with pytest.raises(StoreError, match="--resume"), Store(tmp_path, ASKED, PLAN, resume=False):
        pass
    with pytest.raises(StoreError, match="seed was 0 and is 1"):
        Store(tmp_path, {**ASKED, "seed": 1}, PLAN, resume=True).check()
    with pytest.raises(StoreError, match="trials was 2 and is 1"):
        Store(tmp_path, {**ASKED, "trials": 1}, PLAN, resume=True).check()
    assert (tmp_path / "rows.jsonl").read_bytes() == before


def test_more_trials_go_on_behind_the_first(tmp_path):
    with Store(tmp_path, {**ASKED, "trials": 1}, PLAN[:2], resume=False) as store:
        fill(store, PLAN[:2])
        store.finish()
    with Store(tmp_path, ASKED, PLAN, resume=True) as store:
        assert store.todo() == PLAN[2:]
        fill(store, store.todo())
        assert len(store.finish()) == 4
    assert json.loads((tmp_path / "run.json").read_text())["asked"]["trials"] == 2


def test_strange_files_are_refused(tmp_path):
    with Store(tmp_path, ASKED, PLAN, resume=False) as store:
        fill(store, PLAN[:1])
    row = (tmp_path / "rows.jsonl").read_text()
    for text, message in [
        (row + "nonsense\n" + row, "line 2"),
        (row + row, "repeated"),
        (row.replace("10", "11"), "not planned"),
    ]:
        (tmp_path / "rows.jsonl").write_text(text)
        with pytest.raises(StoreError, match=message), Store(tmp_path, ASKED, PLAN, resume=True):
            pass


GOOD = dumps({**PLAN[0], "results": {"mse": 10 / 3}}) + "\n"
LATER = dumps({**PLAN[2], "results": {"mse": 1.0}}) + "\n"
DAMAGED_ROWS = {
    "not UTF-8": (b'{"n":20,"results":{"mse":"\xff\xfe"},"trial":0}\n', "line 2 is not UTF-8"),
    "half a character": (b'{"n":20,"results":{"mse":"\\ud800"},"trial":0}\n', "line 2 is not UTF-8"),
    "zeros": (b"\0" * 40 + b"\n", "line 2 is not JSON"),
    "half a row": (b'{"n":20,"results":{"mse"\n', "line 2 is not JSON"),
    "an empty line": (b"\n", "line 2 is empty"),
    "a number": (b"5\n", "line 2 is 5, not a row"),
    "a list": (b"[1,2]\n", r"line 2 is \[1,2\], not a row"),
    "NaN": (b'{"n":20,"results":{"mse":NaN},"trial":0}\n', "line 2 is no JSON of ours"),
    "too deep": (b"[" * 100_000 + b"]" * 100_000 + b"\n", "line 2 is no JSON of ours"),
    "no results": (b'{"n":20,"trial":0}\n', "line 2 lacks 'results'"),
    "results that are none": (b'{"n":20,"results":7,"trial":0}\n', "line 2 has 7 as 'results'"),
    "no mse": (b'{"n":20,"results":{"r2":1},"trial":0}\n', "line 2 lacks 'mse'"),
    "no trial": (b'{"n":20,"results":{"mse":1}}\n', "line 2 holds a row that is not planned"),
    "two of them": (b"5\n6\n", "line 2 is 5, not a row; line 3 is 6, not a row"),
    "many": (b"5\n" * 9, "line 6 is 5, not a row; and 4 more"),
}


def toy(folder, resume=True):
    return Store(folder, ASKED, PLAN, resume=resume, fields=lambda c: ("mse",))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


@pytest.mark.parametrize(("line", "message"), DAMAGED_ROWS.values(), ids=DAMAGED_ROWS)
def test_a_damaged_row_is_named_and_no_other_is_lost(tmp_path, line, message):
    with toy(tmp_path, resume=False) as store:
        fill(store, PLAN[:1])
    (tmp_path / "rows.jsonl").write_bytes(GOOD.encode() + line + LATER.encode() + b'{"torn')
    before = contents(tmp_path)
    for open_store in (lambda: toy(tmp_path).check(), lambda: toy(tmp_path).__enter__()):
        with pytest.raises(
            StoreError, match=rf"rows.jsonl: .*{message}.*delete the damaged lines.*the other 2 are good"
        ) as error:
            open_store()
        assert error.value.__cause__ is None
    assert contents(tmp_path) == before
    (tmp_path / "rows.jsonl").write_bytes((GOOD + LATER).encode())  # as the message says
    with toy(tmp_path) as store:
        assert store.todo() == [PLAN[1], PLAN[3]]


DAMAGED_RUNS = {
    "empty": ("", "is empty"),
    "half": ('{"asked": {"exp', "is not JSON"),
    "not UTF-8": (b"\xff\xfe{}", "is not UTF-8"),
    "a list": ("[]", r"is \[\], not a run"),
    "nothing in it": ("{}", "lacks 'asked'"),
    "asked for a number": ('{"asked": 3, "sessions": []}', "has 3 as 'asked'"),
    "no sessions": (dumps({"asked": ASKED}), "lacks 'sessions'"),
    "a session that is a number": (dumps({"asked": ASKED, "sessions": [4]}), "is 4, not a session"),
    "a session without versions": (dumps({"asked": ASKED, "sessions": [{"command": "toy"}]}), "lacks 'versions'"),
}


@pytest.mark.parametrize(("text", "message"), DAMAGED_RUNS.values(), ids=DAMAGED_RUNS)
def test_a_damaged_run_is_named_and_its_rows_are_kept(tmp_path, text, message):
    with toy(tmp_path, resume=False) as store:
        fill(store, PLAN[:2])
    (tmp_path / "run.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    before = contents(tmp_path)
    for open_store in (lambda: toy(tmp_path).check(), lambda: toy(tmp_path).__enter__()):
        with pytest.raises(StoreError, match=f"run.json {message}.*or delete it and give the command"):
            open_store()
    assert contents(tmp_path) == before
    (tmp_path / "run.json").unlink()  # as the message says
    with pytest.raises(StoreError, match="add --resume"):
        toy(tmp_path, resume=False).check()
    with toy(tmp_path) as store:
        assert store.todo() == PLAN[2:] and store.sessions == []
        fill(store, store.todo())
        assert len(store.finish()) == 4
    assert json.loads((tmp_path / "run.json").read_text())["asked"] == ASKED


@pytest.mark.parametrize("trials", ["two", None, [2]])
def test_trials_that_are_no_number_are_another_request(tmp_path, trials):
    with toy(tmp_path, resume=False) as store:
        fill(store, PLAN[:1])
    (tmp_path / "run.json").write_text(dumps({"asked": {**ASKED, "trials": trials}, "sessions": [SESSION]}))
    with pytest.raises(StoreError, match="trials was"):
        toy(tmp_path).check()


DAMAGED_TIMES = {
    "not UTF-8": (b"\xff", "is not UTF-8"),
    "a number": (b"3", "is 3, not the times"),
    "no session": (b'{"at":1}', "lacks 'session'"),
    "an empty line": (b"", "is empty"),
    "a word for seconds": (dumps({"session": 0, **TIMES, "parts": {"STL": "long"}}).encode(), "has \"long\" as 'STL'"),
}


@pytest.mark.parametrize(("line", "message"), DAMAGED_TIMES.values(), ids=DAMAGED_TIMES)
def test_damaged_times_are_named_and_cost_no_row(tmp_path, line, message):
    with toy(tmp_path, resume=False) as store:
        fill(store, PLAN[:2])
    times = tmp_path / "times.jsonl"
    first, second = times.read_bytes().splitlines(keepends=True)
    times.write_bytes(first + line + b"\n" + second)
    before = contents(tmp_path)
    with pytest.raises(StoreError, match=f"times.jsonl: line 2 {message}.*nothing but the times of the deleted ones is lost"):
        toy(tmp_path).__enter__()
    assert contents(tmp_path) == before
    times.write_bytes(first + second)
    with toy(tmp_path) as store:
        assert store.todo() == PLAN[2:] and len(store.times()) == 2


def test_what_lacks_deep_inside_results_is_named_with_its_line(tmp_path):
    """A report that looks for it says which line to delete; JSON, equality and nesting stay what they are."""
    with Store(tmp_path, ASKED, PLAN, resume=False) as store:
        store.begin(SESSION)
        for c in PLAN:
            lost = c == PLAN[2]
            store.add(c, {"STL": {} if lost else {"mse": 1.0}, "path": [{} if lost else {"delta": 0.1}]}, TIMES)
        rows = store.finish()
    assert rows[1]["results"] == {"STL": {"mse": 1.0}, "path": [{"delta": 0.1}]}
    assert json.loads(dumps(rows[1])) == rows[1] and flat(rows)[1]["STL.mse"] == 1.0
    assert rows[1]["results"]["path"][0]["delta"] == 0.1 and rows[2]["results"]["STL"].get("mse") is None
    for look, told in (
        (lambda r: r["STL"]["mse"], "STL lacks 'mse'"),
        (lambda r: r["path"][0]["delta"], "path[0] lacks 'delta'"),
    ):
        with pytest.raises(StoreError, match=re.escape(f"rows.jsonl: line 3: results.{told}")) as caught:
            [look(row["results"]) for row in rows]
        assert "--resume" in str(caught.value)


def test_two_writers_at_once_are_refused(tmp_path):
    with (
        Store(tmp_path, ASKED, PLAN, resume=False),
        pytest.raises(StoreError, match="in use by another run"),
        Store(tmp_path, ASKED, PLAN, resume=True),
    ):
        pass


def test_rows_hold_no_nan(tmp_path):
    with Store(tmp_path, ASKED, PLAN, resume=False) as store:
        store.begin({})
        with pytest.raises(ValueError, match="JSON compliant"):
            store.add(PLAN[0], {"mse": float("nan")}, TIMES)
        assert read_lines(tmp_path / "rows.jsonl") == []


def test_flat_names_nested_results():
    assert flat([{"n": 1, "results": {"a": {"b": {"c": 2}}, "d": [1]}}]) == [{"n": 1, "a.b.c": 2}]


TOY = """
    import sys, time
    import numpy as np
    from pathlib import Path
    from rich.console import Console
    from lawful.experiments._base import Experiment, Options
    from lawful.experiments._runner import prepare, run

    def configurations(options):
        return [{"n": n, "seed": options.seed + k} for k in range(options.trials) for n in (10, 20, 50)]

    def work(configuration, data, clock):
        rng = np.random.default_rng([configuration["seed"], configuration["n"]])
        time.sleep(0.02)
        A = rng.standard_normal((configuration["n"], 5))
        return {"sum": float(np.linalg.lstsq(A, A.sum(axis=1), rcond=None)[0] @ rng.standard_normal(5))}

    toy = Experiment("toy", "toy", configurations, lambda o: None, work, lambda c: 1.0, lambda *a: [])
    out, jobs, resume = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "resume"
    run(prepare(toy, Options(trials=20), out, resume=resume), n_jobs=jobs, console=Console(quiet=True))
"""


def children(pid):
    """Workers that a run with this process number started: they keep its session when it is gone."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            session = stat.read_text().rpartition(")")[2].split()[3]
            if session == str(pid) and b"popen_loky" in stat.with_name("cmdline").read_bytes():
                found.append(stat.parent.name)
        except (FileNotFoundError, ProcessLookupError):  # it ended while we looked
            continue
    return found


@pytest.mark.parametrize(("jobs", "kills", "whole_group"), [(1, (17,), True), (2, (3, 40), False)])
def test_killed_runs_resume_to_the_same_bytes(tmp_path, jobs, kills, whole_group):
    """SIGKILL at several moments, then resume: the rows of an uninterrupted run, none lost, none computed twice.

    With two workers only the parent is killed: they must find that out and stop.
    """
    script = tmp_path / "toy.py"
    script.write_text(textwrap.dedent(TOY))

    def start(out, resume):
        return subprocess.Popen([sys.executable, str(script), str(tmp_path / out), str(jobs), resume], start_new_session=True)

    assert start("whole", "new").wait(120) == 0
    rows, killed = tmp_path / "cut" / "toy" / "rows.jsonl", 0
    for attempt, wanted in enumerate(kills):
        process = start("cut", "resume" if attempt else "new")
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if rows.exists() and rows.read_bytes().count(b"\n") >= wanted:
                (os.killpg if whole_group else os.kill)(process.pid, signal.SIGKILL)
            time.sleep(0.005)
        killed += process.wait() == -signal.SIGKILL
        deadline = time.monotonic() + 60
        while left := children(process.pid):
            assert time.monotonic() < deadline, f"workers of a killed run go on: {left}"
            time.sleep(0.1)
    assert killed == len(kills)
    done = {dumps(r) for r in read_lines(rows)}
    assert kills[-1] <= len(done) < 60
    assert start("cut", "resume").wait(120) == 0
    assert rows.read_bytes() == (tmp_path / "whole" / "toy" / "rows.jsonl").read_bytes()
    assert done <= {dumps(r) for r in read_lines(rows)}
    times = read_lines(rows.with_name("times.jsonl"))
    assert 60 - len(kills) <= len(times) <= 60, "a row is computed once; at most the last time before each kill is lost"
    sessions = json.loads(rows.with_name("run.json").read_text())["sessions"]
    assert len(sessions) == len(kills) + 1
    assert re.fullmatch(r"lawful reproduce toy --trials 20 --seed 0 --n-jobs \d", sessions[0]["command"])
