"""The studio over HTTP: who may ask, what it takes, what it says, and that a fit can be stopped."""

from __future__ import annotations

import http.client
import io
import json
import subprocess
import sys
import time
from contextlib import closing
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import lawful
from commands import serving
from lawful.cli import app
from lawful.sets.named import NAMED, law_in_words
from lawful.studio.offers import MENU
from lawful.studio.tables import Refused, read

T = np.linspace(0, 6, 40)
CIRCLE = "angle,east,north\n" + "\n".join(f"{t:.4f},{np.cos(t):.6f},{np.sin(t):.6f}" for t in T)
LAW = "east**2 + north**2 = 1"
BOTH = ["east", "north"]


@pytest.fixture(scope="module")
def studio():
    with serving(upload_mb=1) as found:
        yield found


class Tab:
    """One tab of a browser that came in by the address with the token."""

    def __init__(self, studio):
        self.studio = studio
        self.cookie = {"Cookie": f"{studio.cookie}={studio.token}"}
        self.name = self.post("/api/session", {})["session"]

    def ask(self, method, path, body=None, headers=None):
        with closing(http.client.HTTPConnection("127.0.0.1", self.studio.server_port, timeout=120)) as connection:
            connection.request(method, path, body, self.cookie if headers is None else headers)
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers

    def at(self, path):
        return path + ("&" if "?" in path else "?") + f"session={getattr(self, 'name', '')}"

    def post(self, path, words, status=200):
        body = words if isinstance(words, bytes) else json.dumps(words)
        found, answer, _ = self.ask("POST", self.at(path), body)
        assert found == status, answer
        return json.loads(answer)

    def get(self, path, status=200):
        found, answer, _ = self.ask("GET", self.at(path))
        assert found == status, answer
        return answer

    def upload(self, text, name="circle.csv", status=200):
        data = text if isinstance(text, bytes) else text.encode()
        return self.post(f"/api/table?name={quote(name)}", data, status)

    def wait(self, kind="fit", seconds=240):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            job = json.loads(self.get(f"/api/job?kind={kind}"))
            if job["state"] != "running":
                return job
            time.sleep(0.1)
        raise AssertionError(f"still running: {job}")


@pytest.fixture
def tab(studio):
    return Tab(studio)


# ---------------------------------------------------------------------- who may ask


def test_it_listens_on_this_machine_alone(studio):
    assert studio.server_address[0] == "127.0.0.1"
    assert len(studio.token) >= 32


@pytest.mark.parametrize(
    "headers, words",
    [
        ({"Host": "evil.example"}, "answers to 127.0.0.1 and localhost only"),
        ({"Host": "127.0.0.1"}, "answers to 127.0.0.1 and localhost only"),  # another port
        ({"Origin": "https://evil.example"}, "Another site asked"),
        ({"Origin": "null"}, "Another site asked"),
        ({"Sec-Fetch-Site": "cross-site"}, "Another site asked"),
        ({"Cookie": ""}, "token is missing"),
        ({"Cookie": "lawful-studio=guess"}, "token is missing"),
    ],
)
def test_others_are_refused(tab, headers, words):
    for method, path in (("POST", "/api/session"), ("GET", tab.at("/api/job")), ("GET", "/studio.js")):
        status, answer, _ = tab.ask(method, path, headers=tab.cookie | headers)
        assert status == 403 and words in answer.decode()


def test_the_token_opens_the_page_once_and_the_cookie_keeps_it(studio, tab):
    status, page, headers = tab.ask("GET", f"/?token={studio.token}", headers={})
    assert status == 200 and b"<title>lawful studio</title>" in page
    assert "HttpOnly" in headers["Set-Cookie"] and "SameSite=Strict" in headers["Set-Cookie"]
    assert "default-src 'none'" in headers["Content-Security-Policy"] and headers["X-Content-Type-Options"] == "nosniff"
    assert tab.ask("GET", "/?token=wrong", headers={})[0] == 403
    assert tab.ask("GET", "/", headers={})[0] == 403
    assert tab.ask("GET", "/")[0] == 200
    assert b"http://" not in page.replace(b"http://www.w3.org", b""), "nothing is fetched from elsewhere"


def test_what_is_not_there(tab):
    for path in ("/../server.py", "/page/studio.js", "/api/picture?name=../../job", "/etc/passwd"):
        assert b"no such page" in tab.get(path, 404)
    assert "no finished fit" in json.loads(tab.get("/download/model", 404))["error"]
    assert tab.ask("GET", "/api/job?session=unknown")[0] == 404
    assert tab.ask("PUT", "/")[0] == 501
    status, answer, _ = tab.ask("POST", tab.at("/api/law"), "[" * 5000)
    assert status == 400 and b"no JSON" in answer
    assert "no list of names" in tab.post("/api/law", {"outputs": [1], "law": "y = 1"}, 400)["error"]


def test_large_files_are_refused_before_they_are_read(tab):
    answer = tab.upload(b"x,y\n" + b"1,2\n" * 500_000, "big.csv", 413)
    assert answer["error"].startswith("The file has 1.9 MB; the studio takes 1 MB.")
    with closing(http.client.HTTPConnection("127.0.0.1", tab.studio.server_port, timeout=20)) as connection:
        connection.putrequest("POST", tab.at("/api/table"))
        for name, value in {**tab.cookie, "Content-Length": str(10**12)}.items():
            connection.putheader(name, value)
        connection.endheaders()
        with connection.getresponse() as answer:
            assert answer.status == 413
    assert tab.upload(CIRCLE)["rows"] == 40, "the tab works on"


def test_one_connection_serves_many_requests(tab):
    """A body that the answer does not need must not become the next request."""
    with closing(http.client.HTTPConnection("127.0.0.1", tab.studio.server_port, timeout=20)) as connection:
        for path in ("/api/session", tab.at("/api/cancel"), "/api/session"):
            connection.request("POST", path, "{}", tab.cookie)
            with connection.getresponse() as answer:
                assert answer.status == 200 and answer.read()


# ---------------------------------------------------------------------- files


@pytest.mark.parametrize(
    "data, words",
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf \n\n", "is empty"),
        (b"x,y\n", "has column names and no rows"),
        (b"x,y\n1,2\n", "has one row; to learn something and to check it, at least 8 are needed"),
        (b"x,y\n" + b"1,2\n" * 3, "has 3 rows"),
        (b"PK\x03\x04\x00\x00", "is no CSV file but a spreadsheet"),
        (b"\x89PNG\r\n\x1a\n", "is no CSV file but a picture"),
        (b"x,y\n\x001,2\n" * 9, "is no text"),
        (b"\xff\xfex,y\n1,2\n" + b"\x00\xd8" * 3, "begins as UTF-16"),
        ("name,town\n" + "a,b\n" * 9, "has no columns of numbers"),
        ("name,y\n" + "a,1\n" * 9, "has 1 column of numbers"),
        ('x,y\n"1,2\n' + "3,4\n" * 9, "cannot be read as a table"),
        (",".join(f"c{j}" for j in range(600)) + "\n" + (",".join(["1"] * 600) + "\n") * 9, "has 600 columns"),
    ],
    ids=range(13),
)
def test_files_that_are_no_tables(tab, data, words):
    answer = tab.upload(data, "odd.csv", 400)
    assert words in answer["error"] and answer["error"].startswith("odd.csv")


@pytest.mark.parametrize(
    "text, encoding, notes",
    [
        ("größe,y\n" + "1.5,2\n" * 9, "utf-8", []),
        ("größe,y\n" + "1.5,2\n" * 9, "utf-8-sig", []),
        ("größe,y\n" + "1.5,2\n" * 9, "cp1252", ["read as cp1252"]),
        ("größe,y\n" + "1.5,2\n" * 9, "utf-16", ["read as utf-16"]),
        ("größe;y\n" + "1,5;2\n" * 9, "utf-8", ["separated by semicolons, decimals by commas"]),
        ("größe\ty\n" + "1.5\t2\n" * 9, "utf-8", ["separated by tabs"]),
        ("größe,y,town,\n" + "1.5,2,Bonn,\n" * 9, "utf-8", ["left out: town"]),
        ("größe,y\n" + "1.5,inf\n" + "1.5,2\n" * 9, "utf-8", ["y: 1 infinite values count as gaps"]),
    ],
)
def test_odd_files_are_read_and_said_so(text, encoding, notes):
    table = read(text.encode(encoding), "odd.csv")
    assert list(table.numbers) == ["größe", "y"]
    np.testing.assert_array_equal(table.numbers["größe"], 1.5)
    assert len(table.notes) == len(notes) and all(word in note for word, note in zip(notes, table.notes))


def test_files_without_names_get_some():
    table = read(b"1,2\n" * 10, "plain.csv")
    assert table.rows == 10 and list(table.numbers) == ["column1", "column2"] and "no names" in table.notes[0]


def test_outputs_and_inputs():
    table = read(CIRCLE.encode(), "circle.csv")
    X, Y, inputs = table.split(BOTH)
    assert X.shape == (40, 1) and Y.shape == (40, 2) and inputs == ["angle"]
    for outputs, words in (([], "No output is marked"), (["angle", *BOTH], "Every column is an output"), (["z"], "called 'z'")):
        with pytest.raises(Refused, match=words):
            table.split(outputs)


# ---------------------------------------------------------------------- the law


@pytest.mark.parametrize(
    "law, words",
    [
        ("east**2 + nort**2 = 1", "did you mean 'north'?"),
        ("east^2 = 1", "write powers with '**'"),
        ("east + north", "has no '=', '<=' or '>='"),
        ("angle = 1", "does not constrain any output"),
        ("__import__('os') = 1", "cannot call"),
        ("9**9**9 = east", "has an exponent beyond 100"),
    ],
)
def test_wrong_laws_are_refused_in_words(tab, law, words):
    tab.upload(CIRCLE)
    (line,) = tab.post("/api/law", {"outputs": BOTH, "law": law})["lines"]
    assert not line["ok"] and words in line["message"]
    answer = tab.post("/api/start", {"kind": "fit", "outputs": BOTH, "law": law}, 400)
    assert "not right yet" in answer["error"]


def test_right_laws_are_typeset_and_measured(tab):
    assert "no table yet" in tab.post("/api/law", {"outputs": BOTH, "law": LAW}, 400)["error"]
    tab.upload(CIRCLE)
    found = tab.post("/api/law", {"outputs": BOTH, "law": f"{LAW}\neast <= 2  # a remark\n\n"})
    assert found["ok"] and [line["ok"] for line in found["lines"]] == [True, True]
    assert "<msup>" in found["lines"][0]["markup"]
    assert "At the 40 labels it is off by" in found["said"]
    assert "characters" in tab.post("/api/law", {"outputs": BOTH, "law": "x" * 30_000}, 400)["error"]
    assert tab.post("/api/law", {"outputs": BOTH, "law": ""}) == {"lines": [], "ok": False, "said": ""}


WIDTHS = {"Rotations": 9, "SE3": 12, "UnitQuaternions": 10, "CorrelationMatrices": 9, "PositiveSemidefinite": 9, "Margins": 6}


def test_every_set_of_the_command_line_is_offered():
    offered = [name for group in MENU.values() for name in group]
    assert sorted(offered) == sorted(NAMED)


@pytest.mark.parametrize("name", NAMED)
def test_what_is_picked_is_a_law_for_the_outputs_that_are_marked(tab, name):
    width = WIDTHS.get(name, 3)
    outputs = [f"out {k}" for k in range(width)]
    values = np.random.default_rng(0).uniform(0.1, 0.9, (30, width + 1))
    tab.upload("\n".join([",".join(["x", *outputs]), *(",".join(f"{v:.4f}" for v in row) for row in values)]))
    law = tab.post("/api/set", {"name": name, "outputs": outputs})["law"]
    assert law.startswith(name)
    (line,) = tab.post("/api/law", {"outputs": outputs, "law": law})["lines"]
    assert line["ok"], line["message"]
    assert line["markup"] and repr(law_in_words([law]))  # the same words for the command line


def test_sets_are_typeset_measured_and_refused_in_words(tab):
    tab.upload(CIRCLE)
    found = tab.post("/api/law", {"outputs": BOTH, "law": "Sphere(radius=2,\n  center=[0, 1])  # two lines"})
    (line,) = found["lines"]
    assert "‖c − center‖ = radius" in line["markup"] and "center = [0, 1], radius = 2" in line["markup"]
    assert "At the 40 labels it is off by" in found["said"]
    learned = tab.post("/api/law", {"outputs": BOTH, "law": "LearnedEquations()"})["lines"][0]
    assert "<msup>" in learned["markup"], "what was learned is typeset"
    for law, words in (
        ("Sphere(diameter=2)", "Sphere is given as Sphere(radius=1.0, center=0.0)"),
        ("Sphere(radius=open('x'))", "a set has plain values"),
        ("Rotations()", "Rotations"),
        ("Sphere(radius=-1)", "radius"),
    ):
        (line,) = tab.post("/api/law", {"outputs": BOTH, "law": law})["lines"]
        assert not line["ok"] and words in line["message"]
    both = tab.post("/api/law", {"outputs": BOTH, "law": f"Sphere\n{LAW}"})["lines"]
    assert [line["ok"] for line in both] == [False, True] and "stands alone" in both[0]["message"]
    assert "Mark the outputs" in tab.post("/api/set", {"name": "Sphere", "outputs": []}, 400)["error"]
    assert "no such set" in tab.post("/api/set", {"name": "os.system", "outputs": BOTH}, 400)["error"]


def test_a_set_is_drawn_fitted_and_examined(tab, tmp_path):
    tab.upload(CIRCLE)
    words = {"outputs": BOTH, "law": "Sphere(radius=1)"}
    _, picture, headers = tab.ask("POST", tab.at("/api/draw"), json.dumps(words))
    assert headers["X-Law"] == "drawn" and b"<svg" in picture
    tab.post("/api/start", {"kind": "fit", **words})
    job = tab.wait()
    assert job["state"] == "done", job["message"]
    assert job["result"]["command"].endswith("--law 'Sphere(radius=1)' --save model.lawful")
    (tmp_path / "m.lawful").write_bytes(tab.get("/download/model"))
    model = lawful.load(tmp_path / "m.lawful")
    np.testing.assert_allclose(np.hypot(*np.asarray(model.predict(pd.DataFrame({"angle": T}))).T), 1, atol=1e-8)
    tab.post("/api/start", {"kind": "doctor", **words})
    assert tab.wait("doctor")["state"] == "done"


def test_the_data_are_drawn_with_the_law(tab):
    tab.upload(CIRCLE)
    pictures = {
        (law, theme): tab.ask("POST", tab.at("/api/draw"), json.dumps({"outputs": BOTH, "law": law, "theme": theme}))
        for law in (LAW, "", "east = =")
        for theme in ("light", "dark")
    }
    assert all(status == 200 and b"<svg" in svg for status, svg, _ in pictures.values())
    green = b"#009e73"
    assert green in pictures[LAW, "light"][1].lower() and green not in pictures["", "light"][1].lower()
    assert pictures[LAW, "light"][1] != pictures[LAW, "dark"][1]
    assert [pictures[law, "dark"][2]["X-Law"] for law in (LAW, "", "east = =")] == ["drawn", "none", "none"]
    for outputs in (["east"], ["east", "north", "angle"]):
        words = {"outputs": outputs, "law": ""}
        status = tab.ask("POST", tab.at("/api/draw"), json.dumps(words))[0]
        assert status == (200 if len(outputs) < 3 else 400)


def test_names_are_no_formulas(tab):
    """matplotlib reads what stands between dollar signs."""
    tab.upload(CIRCLE.replace("east", r"east $\frac$").replace("north", "<b>north</b> & $"))
    words = {"outputs": [r"east $\frac$", "<b>north</b> & $"], "law": r"`east $\frac$` = `<b>north</b> & $`"}
    status, picture, _ = tab.ask("POST", tab.at("/api/draw"), json.dumps(words))
    assert status == 200 and b"<svg" in picture
    (line,) = tab.post("/api/law", words)["lines"]
    assert line["ok"] and "&lt;b&gt;north" in line["markup"] and "<b>" not in line["markup"]


def test_what_nobody_thought_of_is_answered_too(tab, monkeypatch):
    tab.upload(CIRCLE)
    monkeypatch.setattr("lawful.studio.server.check", lambda *words: 1 / 0)
    assert (
        tab.post("/api/law", {"outputs": BOTH, "law": LAW}, 500)["error"] == "The studio stumbled over this: division by zero"
    )


# ---------------------------------------------------------------------- fits


def test_a_fit_is_compared_downloaded_and_loaded(tab, tmp_path):
    tab.upload(CIRCLE)
    assert tab.post("/api/start", {"kind": "fit", "outputs": BOTH, "law": LAW})["state"] == "running"
    assert "running already" in tab.post("/api/start", {"kind": "doctor", "outputs": BOTH, "law": LAW}, 409)["error"]
    job = tab.wait()
    assert job["state"] == "done", job["message"]
    found = job["result"]["compare"]
    assert found["rows"] == 40 and found["violation"]["with"] < 1e-7
    assert [row["output"] for row in found["outputs"]] == BOTH
    assert job["result"]["command"].startswith("lawful fit 'circle.csv' --outputs 'east,north' --law")
    (tmp_path / "model.lawful").write_bytes(tab.get("/download/model"))
    model = lawful.load(tmp_path / "model.lawful")
    np.testing.assert_allclose((model.predict(_frame(T)) ** 2).sum(axis=1), 1)
    status, report, headers = tab.ask("GET", tab.at("/download/report"))
    assert status == 200 and b"A fit under a law" in report and "attachment" in headers["Content-Disposition"]
    for name in ("predictions-light", "residuals-dark"):
        assert b"<svg" in tab.get(f"/api/picture?name={name}")
    other = Tab(tab.studio)
    assert json.loads(other.get("/api/job"))["state"] == "none", "another tab knows nothing of it"
    assert other.ask("GET", other.at("/download/model"))[0] == 404


def _frame(t):
    import pandas as pd

    return pd.DataFrame({"angle": t})


def test_a_fit_can_be_stopped(tab):
    tab.upload(CIRCLE)
    tab.post("/api/start", {"kind": "fit", "outputs": BOTH, "law": LAW})
    session = tab.studio.sessions.get(tab.name)
    process = session.jobs["fit"]._process
    tab.post("/api/cancel", {})
    job = json.loads(tab.get("/api/job"))
    assert job["state"] == "cancelled" and job["message"] == "Stopped; nothing was kept."
    assert process.poll() is not None, "the process is gone"
    assert tab.ask("GET", tab.at("/download/model"))[0] == 404
    tab.post("/api/start", {"kind": "fit", "outputs": ["east"], "law": ""})
    second, folder = session.jobs["fit"]._process, session.folder
    tab.post("/api/close", {})
    assert second.poll() is not None and not folder.exists(), "a tab that is closed leaves nothing behind"


def test_a_job_that_dies_says_so(tab):
    tab.upload(CIRCLE)
    tab.post("/api/start", {"kind": "fit", "outputs": BOTH, "law": LAW})
    tab.studio.sessions.get(tab.name).jobs["fit"]._process.kill()
    job = tab.wait()
    assert job["state"] == "failed" and job["message"]


def test_workers_end_with_the_server(tab):
    tab.upload(CIRCLE)
    tab.post("/api/start", {"kind": "fit", "outputs": BOTH, "law": LAW})
    process = tab.studio.sessions.get(tab.name).jobs["fit"]._process
    process.stdin.close()  # what happens when the server is killed
    assert process.wait(60) != 0


def test_the_doctor(tab):
    tab.upload(CIRCLE)
    assert "write one first" in tab.post("/api/start", {"kind": "doctor", "outputs": BOTH, "law": ""}, 400)["error"]
    noisy = np.random.default_rng(0).normal(0, 0.02, (40, 2)) + np.c_[np.cos(T), np.sin(T)]
    file = io.StringIO()
    np.savetxt(file, np.c_[T, noisy], delimiter=",", header="angle,east,north", comments="")
    tab.upload(file.getvalue())
    tab.post("/api/start", {"kind": "doctor", "outputs": BOTH, "law": "east**2 + north**2 = 1.3"})
    job = tab.wait("doctor")
    assert job["state"] == "done", job["message"]
    assert job["result"]["alarms"] and "instead of 1.3 would fit" in job["result"]["alarms"][0]


def test_the_oldest_idle_tab_makes_room(studio):
    tabs = [Tab(studio) for _ in range(17)]
    assert tabs[0].ask("GET", tabs[0].at("/api/job"))[0] == 404
    assert json.loads(tabs[-1].get("/api/job"))["state"] == "none"
    for tab in tabs[1:]:
        tab.post("/api/close", {})


def test_the_command(studio):
    words = [sys.executable, "-m", "lawful", "studio", "--no-browser", "--upload-mb", "2"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        first = process.stdout.readline()
        host, _, path = first.removeprefix("lawful studio: http://").strip().partition("/")
        with closing(http.client.HTTPConnection(host, timeout=60)) as connection:
            connection.request("GET", f"/{path}")
            with connection.getresponse() as answer:
                assert answer.status == 200 and b"lawful studio" in answer.read()
        process.terminate()
        assert process.wait(60) == 0 and process.stdout.read().endswith("ended\n")
    busy = CliRunner().invoke(app, ["studio", "--no-browser", "--port", str(studio.server_port)])
    assert busy.exit_code == 2 and "--port 0 takes one that is free" in " ".join(busy.stderr.split())
