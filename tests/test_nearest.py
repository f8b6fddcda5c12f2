"""No answer is wrong: projections against brute force and long multi-starts of `nearest.py`, thousands of rows."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest

import nearest
from lawful import Equations, project

CASES = nearest.CASES | nearest.field_cases()


def check(name, scale, seed):
    case, n = CASES[name]
    rows = case(int(n * scale), np.random.default_rng(seed))
    d = project(rows.w, Equations(rows.law), weights=rows.weights, X=rows.X, certificate=True)
    a = 1.0 if rows.weights is None else rows.weights
    np.testing.assert_allclose(d.value, (a * (d.c - rows.w) ** 2).sum(axis=1), rtol=1e-9, atol=1e-12)
    assert np.isfinite(rows.best).mean() > 0.95
    bad = np.flatnonzero(nearest.wrong(rows, d))
    assert not len(bad), f"rows {bad[:5]} of {len(rows.w)}: {d.value[bad[:5]]} above {rows.best[bad[:5]]}, {d.status[bad[:5]]}"
    # Where the search finds less than the library on many rows, it shows nothing.
    assert np.mean(rows.best > d.value * (1 + 1e-4) + 1e-9) <= 0.05


@pytest.mark.parametrize("name", CASES)
def test_nearest(name):
    check(name, 1, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_nearest_of_many(name, seed):
    check(name, 2, seed)


def test_ten_thousand_rows_are_checked():
    """Fast and slow runs together."""
    assert sum(n for _, n in CASES.values()) * (1 + 2 + 2) >= 10_000


def test_the_judge_finds_known_points():
    """The multi-start itself, on laws whose nearest points have a closed form."""
    rng = np.random.default_rng(3)
    w = 1.5 * rng.standard_normal((50, 3))
    sphere = nearest.Functions(lambda c, x: (c**2).sum(1)[:, None] - 4, lambda c, x: 2 * c[:, None, :])
    best = nearest.multistart(sphere, w, nearest.around(w, np.ones(3), 1.0, 5, rng))
    np.testing.assert_allclose(best, (np.linalg.norm(w, axis=1) - 2) ** 2, atol=1e-9)
    A = rng.normal(size=(2, 3))
    plane = nearest.Functions(lambda c, x: c @ A.T - 1, lambda c, x: np.broadcast_to(A, (len(c), 2, 3)))
    best = nearest.multistart(plane, w, w[:, None])
    np.testing.assert_allclose(best, ((np.linalg.pinv(A) @ (A @ w.T - 1)) ** 2).sum(axis=0), atol=1e-9)


def test_the_judge_calls_wrong_answers_wrong():
    rows = nearest.CASES["circle"][0](20, np.random.default_rng(0))
    d = project(rows.w, Equations(rows.law), certificate=True)
    assert not nearest.wrong(rows, d).any()
    off = d.with_(value=d.value + 1e-4 * (1 + d.value))
    assert nearest.wrong(rows, off).all()
    assert nearest.wrong(rows, d.with_(code=d.code + 3)).all()


def test_projected_arrays_stay_in_their_library():
    points = np.random.default_rng(0).standard_normal((20, 2))
    found = project(strict.asarray(points), Equations("y1**2 + 2*y2**2 = 1"), weights=[1.0, 3.0])
    assert type(found) is type(strict.asarray(points))
    np.testing.assert_allclose(
        np.asarray(found), project(points, Equations("y1**2 + 2*y2**2 = 1"), weights=[1.0, 3.0]), atol=1e-8
    )
