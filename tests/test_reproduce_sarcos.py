"""The Sarcos experiment: splits that do not overlap, rows that repeat byte for byte, a report that says what holds."""

from __future__ import annotations

import copy
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from lawful.datasets import make_arm
from lawful.experiments._base import Options
from lawful.experiments._document import blocks
from lawful.experiments._paired import Paired, all_of
from lawful.experiments._runner import one
from lawful.experiments.paper import SARCOS as PAPER
from lawful.experiments.sarcos import SARCOS
from lawful.experiments.sarcos import work as module
from lawful.experiments.sarcos.splits import draw
from lawful.experiments.sarcos.systems import SYSTEMS, expected, rivals
from lawful.report.blocks import Claim, Figure, Table, Text

pytestmark = pytest.mark.xdist_group("sarcos")  # the rows are made once, not once for each worker
QUICK = Options(quick=True, trials=2)


@pytest.fixture(scope="module")
def data():
    return SARCOS.load(QUICK)


@pytest.fixture(scope="module")
def rows(data):
    """Two splits with standardised inputs, one with shared ones."""
    plan = [c for c in SARCOS.configurations(QUICK) if c["inputs"] == "standardised" or c["seed"] == 0]
    return [{**c, "results": one(SARCOS, c, data)[1]} for c in plan]


# -------------------------------------------------------------------------------------------------------------- splits


def numbered(n, T=7, d=21):
    """Every number tells its row: X is i + 1, Y is i + 1 as well (times a power of ten for the torque)."""
    i = np.arange(1.0, n + 1)
    return np.repeat(i[:, None], d, axis=1), i[:, None] * 10.0 ** np.arange(T)


def seen(split):
    """Rows (from 1) in the training set, the cloud and the test set, read off raw inputs and scaled outputs."""
    unit = np.nanmax(split.Y, axis=0) / np.nanmax(np.where(np.isnan(split.Y), np.nan, split.X[:, :1]), axis=0)
    cloud = np.round(split.cloud[:, 0] / unit[0]).astype(int)
    return set(split.X[:, 0].astype(int)), set(cloud.tolist()), set(split.X_test[:, 0].astype(int))


def test_small_file_every_row_left_tests_every_torque():
    X, Y = numbered(4449)
    split = draw(X, Y, 3, "raw")
    train, cloud, test = seen(split)
    assert len(train) == 105 and len(cloud) == 1000 and len(test) == 3344
    assert not train & cloud and not train & test and not cloud & test
    assert (np.isfinite(split.Y).sum(axis=0) == 15).all() and (np.isfinite(split.Y).sum(axis=1) == 1).all()
    assert np.isfinite(split.Y_test).all()


def test_large_file_every_torque_has_a_test_set_of_its_own():
    X, Y = numbered(15_100)
    split = draw(X, Y, 0, "raw")
    train, cloud, test = seen(split)
    assert len(train) == 105 and len(cloud) == 1000 and len(test) == 7 * 1985
    assert not train & cloud and not train & test and not cloud & test
    assert (np.isfinite(split.Y_test).sum(axis=0) == 1985).all() and (np.isfinite(split.Y_test).sum(axis=1) == 1).all()
    shared = draw(X, Y, 0, "shared")
    assert len(shared.X_test) == 1985 and np.isfinite(shared.Y_test).all()


def test_inputs_are_scaled_by_the_training_rows_only(data):
    split, raw = draw(data.X, data.Y, 0), draw(data.X, data.Y, 0, "raw")
    np.testing.assert_allclose(split.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(split.X.std(axis=0), 1)
    np.testing.assert_allclose(np.nanstd(split.Y, axis=0), 1)
    np.testing.assert_allclose((raw.X_test - raw.X.mean(axis=0)) / raw.X.std(axis=0), split.X_test, atol=1e-9)
    assert split.level == 21 and raw.level == pytest.approx(raw.X.var(axis=0).sum())
    shared = draw(data.X, data.Y, 0, "shared")
    assert shared.X.shape == (15, 21) and np.isfinite(shared.Y).all()


def test_splits_that_cannot_be():
    X, Y = numbered(1000)
    with pytest.raises(ValueError, match=r"1000 rows do not hold 7 x 15 .*; use more rows or a smaller cloud"):
        draw(X, Y, 0)
    with pytest.raises(ValueError, match="unknown inputs 'scaled'; choose one of standardised, raw, shared"):
        draw(X, Y, 0, "scaled")


# ---------------------------------------------------------------------------------------------------------------- plan


def test_plan(tmp_path):
    quick = SARCOS.configurations(Options(quick=True, trials=3, seed=5))
    assert len(quick) == 6 and {c["seed"] for c in quick} == {5, 6, 7}
    assert all(c["file"] == module.ARM and c["size"] == "small" for c in quick)
    (tmp_path / "sarcos").mkdir()
    rng = np.random.default_rng(0)
    savemat(tmp_path / "sarcos" / "sarcos_inv_test.mat", {"sarcos_inv_test": rng.standard_normal((30, 28))})
    full = SARCOS.configurations(Options(trials=10, data=tmp_path))
    assert len(full) == 30 and [c["inputs"] for c in full[:3]] == ["standardised", "raw", "shared"]
    assert len({json.dumps(c) for c in full}) == 30 and {c["file"] for c in full} == {"sarcos_inv_test.mat"}
    assert sum(map(SARCOS.cost, full)) <= 1500 and sum(map(SARCOS.cost, quick)) <= 60
    found = SARCOS.load(Options(data=tmp_path))
    assert found.X.shape == (30, 21) and "too small" in SARCOS.describe(found)[-1]


def test_a_full_run_needs_data(tmp_path):
    for step in (SARCOS.load, SARCOS.configurations):
        with pytest.raises(FileNotFoundError, match=r"--data with a folder that holds sarcos_inv.mat .*GPML.* or --quick"):
            step(Options())
        with pytest.raises(FileNotFoundError, match=r"lacks sarcos_inv_test.mat or sarcos_inv.mat; get them from"):
            step(Options(data=tmp_path))


def test_the_large_file_is_described():
    large = make_arm(15_100, 7, random_state=0)
    large.file = "sarcos_inv.mat"
    assert "1985 test rows of its own for each torque" in SARCOS.describe(large)[-1]


# ---------------------------------------------------------------------------------------------------------------- rows


def test_the_same_configuration_gives_the_same_bytes(rows, data):
    row = next(r for r in rows if r["inputs"] == "shared")
    configuration = {k: v for k, v in row.items() if k != "results"}
    _, again, times = one(SARCOS, configuration, data)
    assert json.dumps(again) == json.dumps(row["results"])
    assert {"STL", "MTFL", "NL-MTL[R]", "posterior"} <= set(times["parts"])


def test_rows_hold_every_system(rows):
    for row in rows:
        found = row["results"]["systems"]
        assert list(found) == [system.name for system in SYSTEMS]
        for measured in found.values():
            assert len(measured["each"]) == 7 and np.isfinite(measured["each"]).all()
            assert measured["ev"] == pytest.approx(np.mean(measured["each"]), abs=1e-3) and measured["ev"] <= 100
            assert measured["par"]["lam"] > 0 if "lam" in measured["par"] else measured["par"]["lam1"] > 0
        p = found["FMTL"]["par"]["p"]
        assert found["FMTL"]["ev"] == found[f"FMTL[{p}]"]["ev"]
        assert found["posterior"]["par"]["base"] in ("intercept", "cloud")
        assert all(found[name]["ev"] > 0 for name in ("STL", "MTL", "NL-MTL[R]", "NL-MTL[P]", "Wiener", "posterior"))


def test_explained_variance_is_that_of_the_test_rows(rows, data):
    """STL of one row, again and by hand, with the lambda that was chosen."""
    row = rows[0]
    split = draw(data.X, data.Y, row["seed"], row["inputs"], n_cloud=module.CLOUD["small"])
    lam = row["results"]["systems"]["STL"]["par"]["lam"] * split.level
    for t, expected_ev in enumerate(row["results"]["systems"]["STL"]["each"]):
        own = np.isfinite(split.Y[:, t])
        X, y = split.X[own], split.Y[own, t]
        center = X.mean(axis=0)
        w = np.linalg.solve((X - center).T @ (X - center) + len(X) * lam * np.eye(21), (X - center).T @ (y - y.mean()))
        prediction = y.mean() + (split.X_test - center) @ w
        truth = split.Y_test[:, t]
        assert 100 * (1 - np.mean((truth - prediction) ** 2) / truth.var()) == pytest.approx(expected_ev, abs=1e-2)


def test_grids_follow_the_scale_of_the_kernel():
    for name, (_, grid) in rivals(21.0).items():
        for key in (k for k in grid if k.startswith("lam")):
            np.testing.assert_allclose(grid[key], 21 * np.asarray(rivals(1.0)[name][1][key]))
            assert len(grid[key]) >= 5
    assert all(len(rivals(1.0, coarse=True)[name][1]) == len(grid) for name, (_, grid) in rivals(1.0).items())


def test_unexpected_warnings_go_on():
    with pytest.warns(UserWarning, match="something else"), expected() as names:
        warnings.warn("slow", ConvergenceWarning, stacklevel=1)
        warnings.warn("something else", UserWarning, stacklevel=1)
    assert names == ["ConvergenceWarning"]


def test_the_printed_grid_ends_at_one(data):
    """On inputs a hundred times as large every lambda of the paper is too small."""
    split = draw(100 * data.X, data.Y, 0, "raw", n_cloud=200)
    with threadpool_limits(1):
        found = module.printed(split, module.make_folds(5, split.X, np.isfinite(split.Y), list("abcdefg"), 0))
    assert list(found) == list(module.PRINTED_GRID.values())
    assert found["STL, printed grid"]["edge"] and found["STL, printed grid"]["par"]["lam"] == 1.0


# --------------------------------------------------------------------------------------------------------------- pages


def full_rows(rows):
    """As a full run would have them: three treatments of the inputs, numbers moved a little."""
    found = []
    for k, inputs in enumerate(("standardised", "raw", "shared")):
        for row in rows[:2]:
            row = copy.deepcopy({**row, "inputs": inputs, "size": "full", "file": "sarcos_inv_test.mat"})
            if row["seed"] not in (0, 1):
                continue
            for measured in row["results"]["systems"].values():
                measured["ev"] -= 3.0 * k
            if inputs == "raw":
                for key in module.PRINTED_GRID.values():
                    row["results"]["systems"][key] = {**row["results"]["systems"]["STL"], "edge": True}
            found.append(row)
    return found


@pytest.fixture(scope="module")
def both(rows):
    return [row for row in rows if row["inputs"] == "standardised"]


@pytest.mark.parametrize("kind", ["quick", "one split", "full"])
def test_pages(rows, both, data, kind, tmp_path):
    full = [{**row, "file": "sarcos_inv_test.mat"} for row in full_rows(both)]
    used = {"quick": rows, "one split": both[:1], "full": full}[kind]
    told = ["sarcos_inv_test.mat, 4449 rows", "as it was drawn."] if kind == "full" else SARCOS.describe(data)
    sections = SARCOS.pages(used, {"STL": [0.1, 0.3], "MTRL": [1.0]}, QUICK, told)
    found = list(blocks(sections))
    claims = [b for b in found if isinstance(b, Claim)]
    assert len(claims) == 8 and all(any(ch.isdigit() for ch in c.numbers) for c in claims)
    assert kind == "full" or all(c.holds is None for c in claims)  # another arm says nothing about Sarcos
    assert (kind == "one split") == ("n/a" in claims[0].numbers.partition(";")[0])
    figures = [b for b in found if isinstance(b, Figure)]
    assert len({f.name for f in figures}) == len(figures) == 4
    for figure in figures:
        figure.draw().savefig(tmp_path / f"{figure.name}.png")
        assert (tmp_path / f"{figure.name}.png").stat().st_size > 5000 and figure.alt
    tables = [b for b in found if isinstance(b, Table)]
    assert all(len(row) == len(t.columns) for t in tables for row in t.rows)
    assert len(tables[0].rows) == len(SYSTEMS) and [r[1] for r in tables[0].rows if r[0] == "MTRL"] == ["41.6 ± 7.1"]
    warned = any("not Sarcos" in b.text for b in found if isinstance(b, Text))
    assert warned == (kind != "full")
    words = " ".join(" ".join(b.items) for b in found if hasattr(b, "items"))
    assert all(f"**{e}**" in words for e in ("E2", "E3", "E4"))
    if kind == "full":
        assert "ends at λ = 1 in 2 of 2 splits" in words
        assert any("nearer to raw inputs" in b.text for b in found if isinstance(b, Text))


def test_claims_follow_the_numbers(both, data):
    """Rows in which NL-MTL is best by far, then worst: the same sentences, other verdicts."""

    def claimed(shift, order):
        changed = []
        for k in range(4):
            row = copy.deepcopy({**both[0], "seed": k, "file": "sarcos_inv_test.mat"})
            for system in SYSTEMS:
                level = PAPER[system.paper][0] if order and system.paper else 50.0
                level += shift if system.name.startswith("NL-MTL[") else -0.1 * shift if system.name == "NL-MTL" else 0.0
                row["results"]["systems"][system.name]["ev"] = level + 0.1 * k
            changed.append(row)
        return [b.holds for b in blocks(SARCOS.pages(changed, {}, QUICK, SARCOS.describe(data))) if isinstance(b, Claim)]

    assert claimed(10.0, False)[:7] == [True] * 7
    assert claimed(-10.0, False)[:6] == [False] * 6
    assert claimed(0.0, True)[-1] is True and claimed(-20.0, True)[-1] is False


def test_paired_differences():
    d = Paired(np.array([2.0, 0.0, 3.0]))
    assert (d.mean, d.won, d.n) == (pytest.approx(5 / 3), 2, 3)
    assert d.error == pytest.approx(np.std([2, 0, 3], ddof=1) / np.sqrt(3)) and d.verdict is None
    assert Paired(np.array([-1.0, -1.1])).verdict is False and Paired(np.array([1.0, 1.1])).verdict is True
    single = Paired(np.array([1.0]))
    assert str(single) == "+1.0 ± n/a" and single.verdict is None
    assert all_of([True, True]) is True and all_of([True, None]) is None and all_of([None, False]) is False


@pytest.mark.data
def test_sarcos_itself():
    """One quick split of the real data: every system learns, and the average over the cloud is worth most."""
    options = Options(quick=True, trials=1, data=Path(os.environ["LAWFUL_DATA"]))
    configuration = SARCOS.configurations(options)[0]
    found = one(SARCOS, configuration, SARCOS.load(options))[1]["systems"]
    assert all(measured["ev"] > 30 for measured in found.values())
    assert found["posterior"]["ev"] > found["STL"]["ev"] + 3
