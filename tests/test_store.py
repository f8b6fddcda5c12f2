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
TIMES = {"seconds": 1.0, "parts": {}, "peak_mb": 1.0, "at": 1.0}


def fill(store, configurations):
    store.begin({"command": "toy"})
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
