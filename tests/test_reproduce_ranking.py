"""The ranking experiment: rows that are the same bytes each time, parts that share their users, pages that say what holds."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from lawful import ConstrainedRanker
from lawful.experiments._base import Clock, Options
from lawful.experiments._document import blocks
from lawful.experiments._paired import Paired
from lawful.experiments.ranking import RANKING
from lawful.experiments.ranking.pages import claim, pages
from lawful.experiments.ranking.problem import Users, losses, make_problem, orders
from lawful.experiments.ranking.small import Films, most_rated
from lawful.experiments.ranking.summary import collect, paired
from lawful.experiments.ranking.words import OMEGA, TASKS
from lawful.experiments.ranking.work import FULL, GENERATED, PARTS
from lawful.report.blocks import Bullets, Claim, Figure, Table, Text

pytestmark = pytest.mark.xdist_group("ranking")  # the rows are made once, not once for each worker
QUICK = Options(quick=True, trials=2)


@pytest.fixture(scope="module")
def data():
    return RANKING.load(QUICK)


@pytest.fixture(scope="module")
def measured(data):
    """Rows and seconds of both trials, as they come out of a file."""
    rows, seconds = [], {}
    with threadpool_limits(1):  # as in the runner
        for configuration in RANKING.configurations(QUICK):
            clock = Clock()
            rows.append(json.loads(json.dumps({**configuration, "results": RANKING.run(configuration, data, clock)})))
            for label, s in clock.seconds.items():
                seconds.setdefault(label, []).append(s)
    return rows, seconds


# ------------------------------------------------------------------------------------------------------------------- plan


def test_plan(data):
    plan = RANKING.configurations(QUICK)
    assert len({json.dumps(c) for c in plan}) == len(plan) == 2 * 2 * 7
    assert {c["seed"] for c in RANKING.configurations(Options(quick=True, trials=3, seed=40))} == {40, 41, 42}
    full = RANKING.configurations(Options(data=Path("somewhere")))
    assert len(full) == 10 * 2 * 7 and all(c["train"] + c["test"] == 943 for c in full)
    assert {c["part"] for c in full} == {*PARTS, "mtrl"}
    assert 0 < sum(map(RANKING.cost, plan)) < 60
    assert sum(map(RANKING.cost, full)) < 2 * 30 * 60  # half an hour on two cores
    assert max(map(RANKING.cost, full)) < 90
    assert "stand-in" in RANKING.describe(data)[0]


def test_without_data():
    with pytest.raises(FileNotFoundError, match=r"u\.data.*grouplens.*--data"):
        RANKING.load(Options())
    with pytest.raises(FileNotFoundError, match=r"u\.data"):
        RANKING.load(Options(quick=True, data=Path(__file__).parent))


def test_the_parts_of_a_trial_share_their_users(data):
    a, again, b = (make_problem(data.table, protocol, 300, 100, 7) for protocol in "AAB")
    np.testing.assert_array_equal(a.X, again.X)
    np.testing.assert_array_equal(a.X_fit, b.X_fit)
    for one, other in ((a.test.truth, b.test.truth), (a.validation.truth, b.validation.truth), (a.R, b.R)):
        assert (one != other).nnz == 0
    assert b.test.profile.nnz == b.validation.profile.nnz == 0 < a.test.profile.nnz
    assert len(a.X_fit) + len(a.validation.X) == 300 and len(a.validation.X) == 60
    held = {row.tobytes() for row in a.validation.truth.toarray() + a.validation.profile.toarray()}
    assert not held & {row.tobytes() for row in a.R_fit.toarray()}  # nobody is fitted and validated
    assert a.validation.profile.multiply(a.validation.truth).nnz == 0
    assert (a.similarity, b.similarity) == (30.0, 0.0)


def test_two_decoders_in_one_pass(data):
    problem = make_problem(data.table, "A", 300, 100, 0)
    model = ConstrainedRanker(None, n_jobs=1).fit(problem.X, problem.R)
    few = Users(problem.test.X[:6], problem.test.profile[:6], problem.test.truth[:6])
    found = orders(model, few, ("insertion", "eades"))
    for method, positions in found.items():
        np.testing.assert_array_equal(positions, model.set_params(decoder=method).predict(few.X, few.profile))
    assert (found["insertion"] != found["eades"]).any()


def test_few_films(data):
    problem = make_problem(data.table, "A", 300, 100, 0)
    films = most_rated(problem.R, 5)
    dense = problem.R.toarray()
    least = (dense[:, films] > 0).sum(axis=0).min()
    assert (np.delete((dense > 0).sum(axis=0), films) <= least).all()
    at = Films(problem, problem.X, problem.R, problem.test, films)
    Y, pairs = at.comparisons(), [(p, q) for p in range(5) for q in range(p + 1, 5)]
    for t, (p, q) in enumerate(pairs):
        r, s = dense[:, films[p]], dense[:, films[q]]
        np.testing.assert_array_equal(Y[:, t], np.where((r > 0) & (s > 0), r - s, np.nan))
    assert at.K.shape == (300, 300) and at.cross.shape == (100, 300)
    assert TASKS == 1_413_721 and 15.9 < OMEGA < 16.1


# ------------------------------------------------------------------------------------------------------------------- rows


@pytest.mark.parametrize(("part", "protocol"), [("nlmtl", "A"), ("self", "B"), ("ours", "A"), ("stl", "A"), ("mtrl", "B")])
def test_same_bytes(data, measured, part, protocol):
    (row,) = [r for r in measured[0] if (r["part"], r["protocol"], r["trial"]) == (part, protocol, 1)]
    configuration = {name: value for name, value in row.items() if name != "results"}
    with threadpool_limits(1):
        again = {**configuration, "results": RANKING.run(configuration, data, Clock())}
    assert json.dumps(again) == json.dumps(row)


def test_rows(measured):
    rows, seconds = measured
    a, b = collect(rows, "A"), collect(rows, "B")
    assert set(a) - set(b) == {"matrix factorisation", "mean of three factorisations"}
    for found in (a, b, collect(rows, "A", few=True), collect(rows, "B", few=True)):
        assert all(set(by_seed) == {0, 1} for by_seed in found.values())
        losses_ = np.array([list(v.values()) for by_seed in found.values() for v in by_seed.values()])
        assert losses_.shape[1] == 3 and ((losses_ > 0.1) & (losses_ < 0.9)).all()
    assert abs(np.mean([v["N1"] for v in a["random order"].values()]) - 0.5) < 0.04
    for name in ("NL-MTL, insertion", "NL-MTL+, insertion", "SELF, insertion", "Hinge", "STL, SVM, error", "popularity"):
        assert paired(a, "random order", name).mean > 0.1
    for ways in (("STL, SVM, error", "STL, SVM, half"), ("STL, ridge, error", "STL, ridge, half")):
        assert paired(a, *ways).mean > 0  # undecided pairs cost less as halves
    assert "MTRL, few films" in seconds and all(len(s) in (2, 4) for s in seconds.values())


# ------------------------------------------------------------------------------------------------------------------ pages


@pytest.mark.parametrize("trials", [1, 2])
def test_pages(data, measured, trials):
    rows = [row for row in measured[0] if row["trial"] < trials]
    sections = pages(rows, measured[1], QUICK, RANKING.describe(data))
    assert len({section.title for section in sections}) == len(sections)
    found = list(blocks(sections))
    assert any("not MovieLens" in block.text for block in found if isinstance(block, Text))
    claims = [block for block in found if isinstance(block, Claim)]
    assert len(claims) == 17 and all(c.holds is None for c in claims)  # generated ratings decide nothing
    assert all(
        re.search(r"A(, \w+)?: 0\.\d{4} against 0\.\d{4} \([+-]0\.\d{4} ± (n/a|0\.\d{4}); \d of \d", c.numbers) for c in claims
    )
    assert ("n/a" in claims[0].numbers) == (trials == 1)
    for block in found:
        if isinstance(block, Table):
            assert all(len(row) == len(block.columns) and all(isinstance(cell, str) for cell in row) for row in block.rows)
        if isinstance(block, Figure):
            picture = block.draw()
            picture.canvas.draw()
            assert picture.get_size_inches()[0] == pytest.approx(4.6) and picture.axes[0].lines
            assert block.alt and block.caption
        if isinstance(block, Bullets):
            assert not any("nan" in item.split() for item in block.items)
    assert sum(isinstance(block, Figure) for block in found) == 4
    assert "16 TB" in "".join(block.text for block in found if isinstance(block, Text))


def test_pages_of_an_unfinished_run(data, measured):
    rows = [row for row in measured[0] if row["protocol"] == "A" and row["part"] in ("nlmtl", "self")]
    found = list(blocks(pages(rows, {}, QUICK, RANKING.describe(data))))
    assert any(isinstance(block, Claim) and block.numbers == "not in these rows" for block in found)
    for block in found:
        if isinstance(block, Figure):
            block.draw()


def test_real_data_are_not_called_generated(measured):
    rows = [{**row, "films": 150} for row in measured[0]]
    sections = pages(rows, {}, QUICK, [])
    assert "150 most rated films" in sections[0].blocks[0].text
    assert any("Popularity" in item for item in sections[-1].blocks[0].items)
    assert not any("not MovieLens" in b.text for b in list(blocks(sections)) if isinstance(b, Text))


def test_claims_follow_the_numbers():
    def found(gaps_a, gaps_b):
        mine = [0.3, 0.31, 0.29]
        return {
            p: {
                "mine": {s: {"N1": v} for s, v in enumerate(mine)},
                "rival": {s: {"N1": v + g} for s, (v, g) in enumerate(zip(mine, gaps))},
            }
            for p, gaps in (("A", gaps_a), ("B", gaps_b))
        }

    better, worse, unclear = [0.010, 0.011, 0.009], [-0.010, -0.011, -0.009], [0.02, -0.01, 0.012]
    for a, b, holds in ((better, better, True), (better, worse, False), (better, unclear, None), (worse, unclear, False)):
        told = claim("mine beats rival", [("", "mine", "rival")], found(a, b), stand_in=False)
        assert told.holds is holds
        assert "3 of 3 trials" in told.numbers or a is not better
        assert claim("the same", [("", "mine", "rival")], found(a, b), stand_in=True).holds is None
    d = Paired(np.array(better))
    assert d.mean == pytest.approx(0.01) and d.error == pytest.approx(0.001 / np.sqrt(3)) and d.won == 3
    assert Paired(np.array([0.5])).error is None and Paired(np.array([0.5])).verdict is None


def test_losses_are_short_and_finite():
    R = np.array([[5.0, 1.0, np.nan], [2.0, 4.0, 3.0]])
    assert losses(R, scores=np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 2.0]])) == {"N1": 0.125, "N2": 0.166667, "N3": 0.166667}


@pytest.mark.data
def test_quick_on_movielens():
    options = Options(quick=True, trials=1, data=Path(os.environ["LAWFUL_DATA"]))
    data = RANKING.load(options)
    assert data.table.ratings.shape == (943, 150) and data.table.movies.genres.shape == (150, 19)
    for configuration in RANKING.configurations(options)[:3]:
        found = RANKING.run(configuration, data, Clock())["losses"]
        assert all(0.2 < v["N1"] < 0.45 for v in found.values())
    assert RANKING.load(Options(data=options.data)).table.ratings.shape[1] == FULL["films"] > GENERATED["films"]
