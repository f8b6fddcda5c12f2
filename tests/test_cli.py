"""`lawful reproduce` as a user types it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

import lawful
from figure_checks import check
from lawful.cli import app
from lawful.experiments import EXPERIMENTS, Options
from lawful.experiments._document import figures

runner = CliRunner()


def call(*words):
    return runner.invoke(app, [str(w) for w in words])


def test_version_and_help():
    assert call("--version").output.strip() == f"lawful {lawful.__version__}"
    assert call().exit_code == 2 and "reproduce" in call().output
    done = subprocess.run([sys.executable, "-m", "lawful", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"lawful {lawful.__version__}"


def test_names_of_experiments():
    assert list(EXPERIMENTS) == ["synthetic", "sarcos", "ranking", "theory"]
    wrong = call("reproduce", "sarkos")
    assert wrong.exit_code == 2 and "sarkos" in wrong.output
    assert call("reproduce", "theory", "--trials", 0).exit_code == 2
    assert call("reproduce", "theory", "--n-jobs", 0).exit_code == 2


@pytest.mark.parametrize(("words", "trials", "quick"), [([], 10, False), (["--quick"], 2, True), (["--trials", 3], 3, False)])
def test_what_is_asked_for_when_nothing_is_said(monkeypatch, tmp_path, words, trials, quick):
    asked = []
    monkeypatch.setattr(lawful.experiments, "reproduce", lambda *args, **kwargs: asked.append((*args, kwargs)) or "here")
    assert "report: here" in call("reproduce", "theory", *words, "--out", tmp_path).output
    chosen, options, out, rest = asked[0]
    assert list(chosen) == ["theory"] and out == tmp_path
    assert options == Options(quick=quick, trials=trials, seed=0, data=None)
    assert rest["n_jobs"] == lawful.experiments.cores() and rest["resume"] is False


@pytest.mark.parametrize(("name", "file"), [("sarcos", "sarcos_inv"), ("ranking", "u.data"), ("all", "sarcos_inv")])
def test_missing_data_is_said_before_anything_is_run(tmp_path, name, file):
    for words in ([], ["--data", tmp_path / "nowhere"]):
        done = call("reproduce", name, "--out", tmp_path / "out", *words)
        assert done.exit_code == 2 and file in done.output
        assert ("nowhere" if words else "--data") in done.output
        assert "Traceback" not in done.output
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [("run.json", b"", "run.json is empty"), ("rows.jsonl", b"\xff\n17\n", "line 1 is not UTF-8; line 2 is 17, not a row")],
)
def test_a_damaged_run_is_said_in_words(tmp_path, file, text, message):
    folder = tmp_path / "theory"
    folder.mkdir()
    (folder / file).write_bytes(text)
    done = call("reproduce", "theory", "--quick", "--out", tmp_path, "--resume")
    assert done.exit_code == 2 and message in done.output and "Restore it from a copy" in done.output
    assert "Traceback" not in done.output and (folder / file).read_bytes() == text


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """`lawful reproduce all --quick`, as CI runs it: no data, one worker; one trial of each."""
    out = tmp_path_factory.mktemp("quick")
    words = ["reproduce", "all", "--quick", "--trials", "1", "--seed", "5", "--n-jobs", "1", "--out", str(out)]
    before = os.times()
    done = subprocess.run([sys.executable, "-m", "lawful", *words], capture_output=True, text=True)
    after = os.times()
    return out, done, after.children_user + after.children_system - before.children_user - before.children_system


@pytest.mark.xdist_group("quick")
def test_all_quick(quick):
    out, done, seconds = quick
    # of the processor: what the other tests take at the same time is not its fault
    assert seconds < 120, f"a trial of --quick takes under half a minute, not {seconds / 4:.0f} s"
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "no warnings on a plain run"
    assert f"report: {out / 'report.html'}" in done.stdout
    page = (out / "report.html").read_text()
    text = (out / "report.md").read_text()
    for name in EXPERIMENTS:
        folder = out / name
        assert f"## {name.capitalize()}: " in text
        assert (folder / "report.html").stat().st_size > 10_000 and (folder / "report.md").exists()
        rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
        assert rows and all(row["results"] for row in rows)
        assert len((folder / "results.csv").read_text().splitlines()) == len(rows) + 1
        asked = json.loads((folder / "run.json").read_text())
        assert asked["asked"]["seed"] == 5 and asked["asked"]["trials"] == 1 and asked["sessions"][0]["versions"]["numpy"]
        wall = max(json.loads(line)["at"] for line in (folder / "times.jsonl").read_text().splitlines())
        assert wall < 60, f"{name} --quick promises under a minute, and one of its two trials took {wall:.0f} s"
    for figure in re.findall(r"\]\((figures/[\w-]+\.png)\)", text):
        assert (out / figure).read_bytes().startswith(b"\x89PNG")
    assert page.count("<figure") == text.count("](figures/") >= 10
    assert page.count('class="claim"') >= 10 and "This is a quick run" in page
    assert "http" not in re.sub(r'"data:[^"]*"', "", page), "nothing from the network"
    assert str(out) not in page and os.path.expanduser("~") not in page, "no folder of the user's is published"


@pytest.mark.xdist_group("quick")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_figures_are_legible(quick, name):
    """No label is cut, none runs into another."""
    folder = quick[0] / name
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    told = json.loads((folder / "run.json").read_text())["asked"]["data"]
    sections = EXPERIMENTS[name].pages(rows, {}, Options(quick=True, trials=1, seed=5), told)
    pictures = figures(sections)
    assert len(pictures) >= 4
    for picture in pictures:
        check(picture)


@pytest.mark.xdist_group("quick")
def test_links_lead_somewhere(quick):
    page = (quick[0] / "report.html").read_text()
    targets = set(re.findall(r'href="#([^"]+)"', page))
    assert targets and targets <= set(re.findall(r'id="([^"]+)"', page))


@pytest.mark.xdist_group("quick")
def test_a_run_is_neither_overwritten_nor_mixed(quick, tmp_path):
    out = quick[0]
    early = call("reproduce", "all", "--quick", "--trials", 1, "--seed", 5, "--out", out)
    assert early.exit_code == 2 and "rows" not in early.output, "found before anything is run"
    (tmp_path / "file").write_text("not a folder")
    blocked = call("reproduce", "theory", "--quick", "--out", tmp_path / "file")
    assert blocked.exit_code == 2 and "Traceback" not in blocked.output
    again = call("reproduce", "theory", "--quick", "--trials", 1, "--seed", 5, "--out", out)
    assert again.exit_code == 2 and "--resume" in again.output
    other = call("reproduce", "theory", "--quick", "--trials", 1, "--seed", 6, "--out", out, "--resume")
    assert other.exit_code == 2 and "seed was 5 and is 6" in other.output


@pytest.mark.xdist_group("quick")
def test_resuming_a_finished_run_writes_its_report_again(quick):
    out = quick[0]
    before = (out / "theory" / "rows.jsonl").read_bytes()
    (out / "theory" / "report.html").unlink()
    done = call("reproduce", "theory", "--quick", "--trials", 1, "--seed", 5, "--out", out, "--resume")
    assert done.exit_code == 0, done.output
    assert (out / "theory" / "report.html").exists() and (out / "theory" / "rows.jsonl").read_bytes() == before


@pytest.mark.xdist_group("quick")
@pytest.mark.parametrize(
    "name", ["synthetic", *(pytest.param(n, marks=pytest.mark.slow) for n in ("ranking", "sarcos", "theory"))]
)
def test_killed_and_resumed_gives_the_same_bytes(quick, tmp_path, name):
    """SIGKILL in the middle, then --resume with two workers: the rows of the uninterrupted run with one."""
    whole = quick[0]
    rows = tmp_path / name / "rows.jsonl"
    words = [sys.executable, "-m", "lawful", "reproduce", name, "--quick", "--trials", "1", "--seed", "5"]
    words += ["--n-jobs", "2", "--out", str(tmp_path)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)
    wanted = len((whole / name / "rows.jsonl").read_text().splitlines()) // 2
    while process.poll() is None:
        if rows.exists() and rows.read_bytes().count(b"\n") >= wanted:
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.01)
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / name / "report.html").exists()
    done = subprocess.run([*words, "--resume"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"{name}: \d+ of \d+ rows are there", done.stdout)
    assert rows.read_bytes() == (whole / name / "rows.jsonl").read_bytes()
    assert (tmp_path / name / "report.html").exists()


def test_reproduce_for_programs(monkeypatch, tmp_path):
    """One JSON object on standard output; what is said on the way goes to standard error."""

    def run(*args, console, **rest):
        console.print("working")
        return tmp_path / "report.html"

    monkeypatch.setattr(lawful.experiments, "reproduce", run)
    done = call("reproduce", "theory", "--out", tmp_path, "--json")
    assert json.loads(done.stdout) == {"report": str(tmp_path / "report.html")} and "working" in done.stderr
    monkeypatch.undo()
    wrong = call("reproduce", "sarcos", "--out", tmp_path / "out", "--json")
    assert wrong.exit_code == 2 and "--data" in json.loads(wrong.stdout)["error"]
