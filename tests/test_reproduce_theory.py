"""The theory experiment: its worlds obey their laws, its rows are the same bytes, its pages say what was measured."""

from __future__ import annotations

import json

import numpy as np
import pytest

from figure_checks import check
from lawful.experiments import Options
from lawful.experiments._document import blocks
from lawful.experiments._runner import one
from lawful.experiments.theory import THEORY
from lawful.experiments.theory.pages import slope
from lawful.experiments.theory.work import GAIN, LAWS
from lawful.experiments.theory.worlds import world
from lawful.report.blocks import Claim, Figure

pytestmark = pytest.mark.xdist_group("theory")  # the rows are made once, not once for each worker
OPTIONS = Options(quick=True, trials=1, seed=3)
WORLDS = sorted({(law, T, k) for law, T, k in GAIN} | {(law, T, 1) for law, T in LAWS})


@pytest.mark.parametrize(("law", "T", "k"), WORLDS)
def test_truths_obey_their_laws(law, T, k):
    w = world(law, T, k)
    y = w.truth(np.linspace(-np.pi, np.pi, 200))
    assert y.shape == (200, T) == (200, w.T)
    assert w.constraint.fit(y).residual(y).max() < 1e-12
    if law != "box":  # the rank of the equations is the codimension that is claimed
        jacobian = (
            w.constraint.equality_jacobian(y[:1])[0]
            if hasattr(w.constraint, "equality_jacobian")
            else numerical_normals(w.constraint, y[:1])
        )
        assert np.linalg.matrix_rank(jacobian, tol=1e-6) == w.codimension


def numerical_normals(C, c):
    """Directions that a manifold's projection on its tangent space removes."""
    T = c.shape[1]
    return np.eye(T) - C.tangent(np.repeat(c, T, axis=0), np.eye(T))


@pytest.fixture(scope="module")
def rows():
    plan = THEORY.configurations(OPTIONS)
    assert len({json.dumps(c) for c in plan}) == len(plan)
    return [{**c, "results": one(THEORY, c, None)[1]} for c in plan]


def test_rows_are_the_same_bytes(rows):
    for row in rows[:4]:
        c = {k: v for k, v in row.items() if k != "results"}
        assert json.dumps(one(THEORY, c, None)[1]) == json.dumps(row["results"], allow_nan=False)


def test_constants_are_the_known_ones(rows):
    for name, by_T in rows[0]["results"].items():
        for value in by_T.values():
            assert value["q"] == pytest.approx(value["exact"], rel=1e-7), name


def test_both_sides_of_the_comparison_inequality(rows):
    for row in rows:
        if row["kind"] == "rate":
            for lam in ("half", "quarter"):
                r = row["results"][lam]
                assert 0 < r["excess"] <= r["tight"] <= r["bound"]


def test_slope_is_the_exponent():
    n = [10, 100, 1000]
    assert slope(n, [5 * m**-0.25 for m in n]) == pytest.approx(-0.25)


def test_pages(rows):
    sections = THEORY.pages(rows, {}, OPTIONS, None)
    claims = [b for b in blocks(sections) if isinstance(b, Claim)]
    assert len(claims) == 6 and all(any(ch.isdigit() for ch in c.numbers) for c in claims)
    assert claims[2].holds and claims[3].holds and not claims[4].holds
    figures = [b for b in blocks(sections) if isinstance(b, Figure)]
    assert len(figures) == 4
    for figure in figures:
        check(figure)
