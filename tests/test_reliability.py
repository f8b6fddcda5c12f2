"""What a program that runs for years relies on: kills, threads, memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import lawful
from lawful import (
    ConstrainedRegressor,
    Equations,
    Inflated,
    KernelRidge,
    PointCloud,
    Product,
    Simplex,
    Sphere,
    kernels,
    load,
    project,
)

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (40, 1))
Y = np.c_[np.cos(X), np.sin(X)] + 0.05 * rng.standard_normal((40, 2))
RIDGE = KernelRidge(kernels.Gaussian(1.0), lam=1e-3)


def table(seed):
    t = np.random.default_rng(seed).uniform(-3, 3, 15)
    return pd.DataFrame({"t": t, "y1": np.cos(t), "y2": np.sin(t)})


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """An old and a new version of a model and of a table of predictions, as uninterrupted commands write them."""
    folder = tmp_path_factory.mktemp("kills")
    for name, seed in (("old", 1), ("new", 2)):
        data = table(seed)
        data.to_csv(folder / f"{name}.csv", index=False)
        run(folder, *fit_words(name, f"{name}.lawful")).wait()
    pd.DataFrame({"t": np.linspace(-3, 3, 6000)}).to_csv(folder / "inputs.csv", index=False)
    for name in ("old", "new"):
        run(folder, *predict_words(name, f"{name}.out.csv")).wait()
    return folder


def fit_words(name, target):
    return ["fit", f"{name}.csv", "--outputs", "y*", "--law", "y1**2 + y2**2 = 1", "--save", target, "--force", "-q"]


def predict_words(name, target):
    return ["predict", f"{name}.lawful", "inputs.csv", "-o", target, "--rows", "100", "--force", "-q"]


def run(folder, *words):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-m", "lawful", *words], cwd=folder, env=environment, stderr=subprocess.DEVNULL)


def parts(folder):
    return [name for name in os.listdir(folder) if name.endswith(".part")]


def kill(process, folder, moment, number):
    """Kill it some time after it began, or some time after it began to write; what it is before that is its exit code."""
    kind, delay = moment
    start = time.monotonic()
    while kind == "writing" and process.poll() is None and not parts(folder):
        time.sleep(0.0005)
        assert time.monotonic() - start < 60
    time.sleep(delay)
    process.send_signal(number)
    return process.wait()


def moments(n, seconds):
    """Half of them at any moment of a run, half while it writes."""
    draw = np.random.default_rng(n)
    return [("any", draw.uniform(0, seconds)) if k % 2 else ("writing", draw.uniform(0, 0.03 * seconds)) for k in range(n)]


def check_kills(work, n):
    seconds = {"fit": 4.0, "predict": 4.0}
    ended = 0
    for command, words, old, new in (
        ("fit", fit_words("new", "target.lawful"), "old.lawful", "new.lawful"),
        ("predict", predict_words("new", "target.csv"), "old.out.csv", "new.out.csv"),
    ):
        target = work / words[words.index("--save" if command == "fit" else "-o") + 1]
        for moment in moments(n, seconds[command]):
            target.write_bytes((work / old).read_bytes())
            for name in parts(work):
                (work / name).unlink()
            ended += kill(run(work, *words), work, moment, signal.SIGKILL) == -signal.SIGKILL
            assert target.read_bytes() in ((work / old).read_bytes(), (work / new).read_bytes()), (command, moment)
            assert len(parts(work)) <= 1
            if command == "fit":
                load(target)
    assert ended > n / 2, "most of them came in time"
    for name in parts(work):
        (work / name).unlink()


def test_kills_leave_the_old_file_or_the_new_one(work):
    check_kills(work, 4)


@pytest.mark.slow
def test_fifty_kills(work):
    check_kills(work, 50)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["end", "interrupt"])
def test_a_signal_to_end_leaves_nothing_behind(work, number, code):
    target = work / "ended.csv"
    target.write_text("mine")
    process = run(work, *predict_words("new", "ended.csv"))
    assert kill(process, work, ("writing", 0.02), number) == code
    assert target.read_text() == "mine" and not parts(work)


LAWS = {
    "equations": Equations("y1**2 + y2**2 = 1"),
    "with inputs": Equations(["y1**2 + y2**2 = 1 + 0*x1", "y1 <= 2 + x1**2"]),
    "two parts": Equations(["y1**3 = y1", "y2**2 = 1"]),
    "sphere": Sphere(),
    "simplex": Simplex(),
    "tube": Inflated(Equations("y1**2 + y2**2 = 1"), 0.1),
    "cloud": PointCloud(),
    "product": Product([(Equations("y1**2 = 1"), [0])]),
}


@pytest.mark.parametrize("name", LAWS)
def test_eight_threads_predict_as_one(name):
    """One fitted model, eight threads at once, from the first call on (when caches are filled): the same numbers."""
    model = ConstrainedRegressor(LAWS[name], surrogate=RIDGE).fit(X, Y)
    inputs = [np.random.default_rng(k).uniform(-3, 3, (50, 1)) for k in range(24)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(model.predict, inputs))
    alone = ConstrainedRegressor(LAWS[name], surrogate=RIDGE).fit(X, Y)
    for x, c in zip(inputs, found):
        np.testing.assert_array_equal(c, alone.predict(x))


def test_eight_threads_fit_and_project():
    def work(k):
        points = np.random.default_rng(k).standard_normal((20, 2))
        model = ConstrainedRegressor(Equations("y1**2 + y2**2 = 1"), surrogate=RIDGE).fit(X, Y + 0.01 * k)
        return model.predict(X), project(points, Equations("y1**2 + 2*y2**2 = 1"))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(16)))
    for k, (c, p) in enumerate(found):
        expected = work(k)
        np.testing.assert_array_equal(c, expected[0])
        np.testing.assert_array_equal(p, expected[1])


def resident():
    """Bytes of this process in memory (Linux)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def grown(rounds, warm):
    x, y = X[:8], Y[:8]
    before = 0
    for k in range(rounds):
        if k == warm:
            before = resident()
        law = Sphere(1 + k) if k % 10 else Equations(f"y1**2 + y2**2 = {1 + k}")  # one that was never seen
        ConstrainedRegressor(law, surrogate=RIDGE).fit(x, y).predict(x)
    return resident() - before


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
def test_memory_does_not_grow():
    assert grown(400, 200) < 4_000_000


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
def test_memory_does_not_grow_over_ten_thousand_fits():
    assert grown(10_000, 1000) < 10_000_000


def test_a_model_that_is_loaded_again_and_again(tmp_path):
    ConstrainedRegressor(Sphere(), surrogate=RIDGE).fit(X, Y).save(tmp_path / "m")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: lawful.load(tmp_path / "m").predict(X), range(24)))
    assert all(np.array_equal(c, found[0]) for c in found)
