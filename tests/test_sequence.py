"""Rows in order: branches are followed, certificates stay, and laws without branches are decoded as always."""

from __future__ import annotations

import numpy as np
import pytest

from lawful import ConstrainedRegressor, ConstrainedRegressorCV, Equations, KernelRidge, Simplex
from lawful.decoders import decode_sequence
from lawful.losses.quadratic import Quadratic

ARM = ["cos(y1) + 0.8*cos(y1 + y2) = x1", "sin(y1) + 0.8*sin(y1 + y2) = x2"]


def hand(q):
    return np.c_[np.cos(q[:, 0]) + 0.8 * np.cos(q.sum(axis=1)), np.sin(q[:, 0]) + 0.8 * np.sin(q.sum(axis=1))]


@pytest.fixture(scope="module")
def arm():
    rng = np.random.default_rng(0)
    up = rng.uniform([-0.6, 0.7], [0.6, 2.2], (150, 2))
    turn = 2 * np.arctan2(0.8 * np.sin(up[:, 1]), 1 + 0.8 * np.cos(up[:, 1]))
    down = np.c_[up[:, 0] + turn, -up[:, 1]]
    q = np.where(rng.random((150, 1)) < 0.5, up, down)
    surrogate = KernelRidge(lam=1e-3, tune="loo")
    return ConstrainedRegressor(Equations(ARM), surrogate=surrogate).fit(hand(q), q + 0.02 * rng.standard_normal(q.shape))


def path(rows=40):
    s = np.linspace(0, 1, rows)
    return np.c_[0.4 * np.sin(3 * s + 1), 1.4 + 0.5 * np.sin(4 * s)]


def steps(c):
    return np.linalg.norm(np.diff(c, axis=0), axis=1)


def test_one_branch_is_followed(arm):
    q = path()
    alone, together = arm.decode(hand(q)), arm.decode(hand(q), sequence=True)
    assert steps(alone.c).max() > 1  # row by row the elbow jumps
    assert steps(together.c).max() < 0.2
    assert (together.status == "ok").all()
    assert together.residual.max() < 1e-8
    assert len(set(np.sign(together.c[:, 1]))) == 1
    np.testing.assert_array_equal(arm.predict(hand(q), sequence=True), together.c)


def test_the_branch_of_least_total_objective_is_taken(arm):
    """There are two sequences without a jump; the better one is returned, whichever way the rows run."""
    q = path()
    d = arm.decode(hand(q), sequence=True)
    other = np.c_[d.c[:, 0] + 2 * np.arctan2(0.8 * np.sin(d.c[:, 1]), 1 + 0.8 * np.cos(d.c[:, 1])), -d.c[:, 1]]
    np.testing.assert_allclose(hand(other), hand(q), atol=1e-7)
    F = arm.objective(hand(q))
    assert F.value(d.c).sum() <= F.value(other).sum()
    assert (d.margin < 0).any() and (d.margin > 0).any()
    back = arm.decode(hand(q)[::-1], sequence=True)
    np.testing.assert_allclose(back.c[::-1], d.c, atol=1e-6)


def test_a_jump_that_cannot_be_avoided_is_made():
    """Two roots that exist on different rows only: y1**2 = x1 follows its sign, but a step of x1 is a step."""
    C = Equations("y1**2 = x1").fit(np.ones((3, 1)), np.ones((3, 1)))
    x = np.r_[np.linspace(1, 1.1, 10), np.linspace(9, 9.1, 10)][:, None]
    centre = np.r_[0.1 * (-1.0) ** np.arange(20)][:, None]
    d = decode_sequence(Quadratic(np.ones((20, 1)), centre), C.at(x))
    assert len(set(np.sign(d.c[:, 0]))) == 1
    np.testing.assert_allclose(d.c[:, 0] ** 2, x[:, 0], rtol=1e-9)


def test_rows_that_stand_still_keep_their_branch():
    C = Equations("y1**2 = x1").fit(np.ones((3, 1)), np.ones((3, 1)))
    centre = np.r_[0.3, -0.1, 0.2, -0.2, 0.1][:, None]
    d = decode_sequence(Quadratic(np.ones((5, 1)), centre), C.at(np.ones((5, 1))))
    np.testing.assert_allclose(d.c[:, 0], 1.0, rtol=1e-9)


@pytest.mark.parametrize("law", [Simplex(), Equations("y1 + y2 = 1")])
def test_laws_without_branches_are_decoded_as_always(law):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (30, 1))
    Y = np.c_[x, 1 - x] + 0.05 * rng.standard_normal((30, 2))
    model = ConstrainedRegressor(law).fit(x, Y)
    np.testing.assert_array_equal(model.predict(x, sequence=True), model.predict(x))


def test_one_row_and_none_at_all(arm):
    q = path()
    np.testing.assert_array_equal(arm.predict(hand(q)[:1], sequence=True), arm.predict(hand(q)[:1]))


def test_the_search_passes_it_on():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 1, (30, 1)), axis=0)
    Y = np.c_[np.cos(x), np.sin(x)] + 0.02 * rng.standard_normal((30, 2))
    model = ConstrainedRegressorCV(Equations("y1**2 + y2**2 = 1"), cv=3).fit(x, Y)
    assert (model.decode(x, sequence=True).status == "ok").all()
    np.testing.assert_allclose(model.predict(x, sequence=True), model.predict(x), atol=1e-6)
