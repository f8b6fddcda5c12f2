"""What the README and the tour promise runs: code, commands, links, figures, and the examples in the docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lawful

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
PYTHON = re.compile(r"^```python\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^```\n(make [\w-]+)\n```", README, flags=re.MULTILINE)
sys.path.insert(0, str(ROOT / "docs" / "_ext"))
NAMES = [name for names in importlib.import_module("reference").reference().values() for name in names]
MODULES = ["lawful", *(m.name for m in pkgutil.walk_packages(lawful.__path__, "lawful."))]


def prepared() -> dict[str, object]:
    """The names that the README takes for granted, as small data whose law is known."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (40, 1))
    circle = np.c_[np.cos(X), np.sin(X)]
    Y = circle + 0.05 * rng.standard_normal(circle.shape)
    Y3 = np.c_[Y, rng.uniform(0.2, 0.8, 40)]
    Y[::5, 0] = np.nan
    df_X = pd.DataFrame({"feed": rng.uniform(1, 2, 40), "solvent": rng.uniform(0.5, 1, 40)})
    purity = 0.9 + 0.05 * np.sin(3 * df_X["solvent"])
    top = 0.7 * df_X["feed"] / purity
    df_Y = pd.DataFrame({"top": top, "bottom": df_X["feed"] + df_X["solvent"] - top, "purity": purity})
    angles = np.linspace(-np.pi, np.pi, 200)
    R = np.round(2 * rng.standard_normal((40, 6)) + np.arange(6))
    R[rng.uniform(size=R.shape) < 0.3] = np.nan
    return {
        "X_queries": rng.standard_normal((40, 2)),
        "R": R,
        "X": X,
        "Y": Y,
        "Y3": Y3,
        "X_new": np.linspace(-2, 2, 7)[:, None],
        "X1": X[:25],
        "y1": circle[:25, 0],
        "X2": X[20:],
        "y2": circle[20:, 1],
        "df_X": df_X,
        "df_Y": df_Y,
        "points": np.c_[np.cos(angles), np.sin(angles)],
    }


def test_the_quick_start_runs():
    namespace = prepared()
    (block,) = PYTHON.findall(README)
    exec(compile(block, "README.md", "exec"), namespace)
    d = namespace["d"]
    assert set(d.status) == {"ok"} and d.residual.max() <= 1e-8 and d.margin.shape == (7,)


def test_the_readme_is_two_screens():
    assert len(README.splitlines()) <= 100


def test_figures_of_the_readme_are_those_of_the_pages():
    """No two numbers for the same thing: whatever the README's table says stands in the page that has the whole table."""
    pages = "".join((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in ("benchmarks", "reproduction"))
    table = README[README.index("| measured |") : README.index("Where we lose")]
    figures = [figure for row in table.splitlines()[2:] if row for figure in re.findall(r"\d+\.\d+", row.split("|")[2])]
    assert len(figures) >= 5
    for figure in figures:
        assert re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", pages), f"{figure} is in no table of the pages"
    assert all(re.search(r"`(?:lawful reproduce \w+|benchmarks/\w+\.py)`", row) for row in table.splitlines()[2:] if row)


def test_python_blocks_of_the_tour_run_in_order():
    blocks = PYTHON.findall(TOUR)
    assert len(blocks) >= 10
    namespace = prepared()
    for block in blocks:
        exec(compile(block, "tour.md", "exec"), namespace)
    c = namespace["model"].predict(namespace["X_new"])
    np.testing.assert_allclose((c**2).sum(axis=1), 1, atol=1e-8)
    assert set(namespace["d"].status) == {"ok"}
    assert sorted(namespace["o"].order[0]) == list(range(6))
    frame = namespace["column"].decode(namespace["df_X"]).to_frame()
    assert list(frame.columns[:3]) == ["top", "bottom", "purity"]
    assert frame["residual"].max() <= 1e-8


def test_commands_are_make_targets():
    assert COMMANDS == ["make demo", "make test"]
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    mentioned = re.findall(r"(?:`|^)make ([a-z][\w-]*)", README + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.M)
    assert set(mentioned) <= targets


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(page):
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), f"{page} links to {target}, which is not there"


def test_benchmarks_named_in_the_readme_exist():
    scripts = set(re.findall(r"(?:benchmarks|examples)/\w+\.py", README))
    assert scripts
    assert all((ROOT / script).is_file() for script in scripts)


def test_paper_map_names_existing_tests():
    text = "".join((ROOT / "docs" / f"{page}.md").read_text() for page in ("paper_map", "mathematics", "errata", "metrics"))
    known = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests").rglob("test_*.py"))
    for name in set(re.findall(r"\btest_\w+(?=`)", text)):
        assert f"def {name}" in known or list((ROOT / "tests").rglob(f"{name}.py")), f"no test is called {name}"


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    module = importlib.import_module(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(("lawful.plots.plot_", "lawful.plots.draw_"))])
def test_every_public_name_has_an_example(name):
    """The examples are run with those of the module that they stand in; what plain drawing functions draw is in the gallery."""
    package, _, last = name.rpartition(".")
    thing = getattr(importlib.import_module(package), last)
    assert thing.__module__ in MODULES
    assert ">>>" in (thing.__doc__ or ""), f"{name} has no example"
