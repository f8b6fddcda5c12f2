"""Decoding over equations and inequalities: every law x every property, then against closed forms, scipy and enumeration."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone

from lawful import Ball, Box, Equations, Inflated, Intersection, Penalized, Product, Simplex, Sphere, Union, project
from lawful._array import to_numpy
from lawful.decoders import decode
from lawful.losses.quadratic import Quadratic, QuadraticForm

LAWS = {
    "circle": (2, "y1**2 + y2**2 = 1"),
    "lemniscate": (2, "y1**4 = y1**2 - y2**2"),
    "hyperbola": (2, "y1*y2 = 1"),
    "quarter circle": (2, ["y1**2 + y2**2 = 1", "0 <= y1 <= 1"]),
    "half disc": (2, ["y1**2 + y2**2 <= 1", "y1 >= 0"]),
    "box": (2, ["0 <= y1 <= 1", "-1 <= y2 <= 2"]),
    "ellipsoid": (3, "y1**2 + (y2/2)**2 + (y3/3)**2 = 1"),
    "torus": (3, "(y1**2 + y2**2 + y3**2 + 3)**2 = 16*(y1**2 + y2**2)"),
    "paraboloid": (3, "y3 = y1**2 + y2**2"),
    "plane and sphere": (3, ["y1 + y2 + y3 = 1", "y1**2 + y2**2 + y3**2 = 1"]),
}
each_law = pytest.mark.parametrize("name", LAWS)
FITTED: dict[str, tuple[Equations, np.ndarray]] = {}


def fitted(name):
    """The law read once (compiling it takes longer than decoding), and points of it."""
    if name not in FITTED:
        T, law = LAWS[name]
        C = Equations(law).fit(np.random.default_rng(0).standard_normal((20, T)))
        FITTED[name] = C, C.sample(2000, random_state=0)
    return FITTED[name]


def quadratic(points, weights=1.0):
    a = np.broadcast_to(np.asarray(weights, dtype=float), points.shape)
    return Quadratic(a, a * points)


@each_law
@settings(max_examples=6, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), spread=st.sampled_from([0.3, 1.0, 3.0]), unequal=st.booleans())
def test_properties(name, seed, spread, unequal):
    C, samples = fitted(name)
    rng = np.random.default_rng(seed)
    points = spread * rng.standard_normal((12, LAWS[name][0]))
    weights = rng.uniform(0.2, 5.0, points.shape) if unequal else 1.0
    F = quadratic(points, weights)
    d = decode(F, C)
    assert (d.status == "ok").all() and C.contains(d.c).all() and (d.residual <= 1e-8).all() and (d.margin >= 0).all()
    np.testing.assert_allclose(d.value, F.value(d.c))
    assert (d.value <= F.costs(samples).min(axis=1) + 1e-7).all()  # never worse than any point of C
    again = decode(quadratic(d.c, weights), C)
    np.testing.assert_allclose(again.c, d.c, atol=1e-6)  # idempotent
    order = rng.permutation(12)
    clear = d.margin > 1e-6  # two branches equally near: either is right
    np.testing.assert_allclose(decode(F.rows(order), C).c[clear[order]], d.c[order][clear[order]], atol=1e-6)
    single = np.concatenate([decode(F.rows(np.array([i])), C).c for i in range(4)])
    np.testing.assert_allclose(single[clear[:4]], d.c[:4][clear[:4]], atol=1e-6)


CURVES = {
    "circle": lambda t: np.c_[np.cos(t), np.sin(t)],
    "lemniscate": lambda t: np.c_[np.sin(t), np.sin(2 * t) / 2],
    "ellipse": lambda t: np.c_[3 * np.cos(t), 0.5 * np.sin(t)],
}
LAWS["ellipse"] = (2, "(y1/3)**2 + (2*y2)**2 = 1")
T_GRID = np.linspace(-np.pi, np.pi, 20001)


@pytest.mark.parametrize("signs", ["positive", "any"])
@pytest.mark.parametrize("curve", CURVES)
def test_weights_of_any_sign_against_enumeration(curve, signs):
    C, points = fitted(curve)[0], CURVES[curve](T_GRID)
    rng = np.random.default_rng(1)
    a = rng.uniform(0.05, 3.0, (60, 2)) * (1 if signs == "positive" else rng.choice([-1, 1], (60, 2)))
    F = Quadratic(a, rng.standard_normal((60, 2)))
    d = decode(F, C)
    assert (d.residual <= 1e-8).all() and (d.value <= F.costs(points).min(axis=1) + 1e-6).all()
    assert set(d.status) <= ({"ok"} if signs == "positive" else {"ok", "low_confidence"})
    np.testing.assert_array_equal(d.status == "low_confidence", (a <= 0).any(axis=1))


def test_lemniscate_near_its_crossing():
    """No row worse than a 200,000-point enumeration (the benchmark does 20,000 rows; notes, section 6)."""
    rng = np.random.default_rng(2)
    points = np.concatenate([0.02 * rng.standard_normal((1000, 2)), 0.3 * rng.standard_normal((1000, 2))])
    curve = CURVES["lemniscate"](np.linspace(-np.pi, np.pi, 200_001))
    C = fitted("lemniscate")[0]
    near = project(points, C, certificate=True)
    best = np.concatenate([quadratic(points[i : i + 50]).costs(curve).min(axis=1) for i in range(0, 2000, 50)])
    assert (near.value - best).max() <= 1e-6 and near.residual.max() <= 1e-8


@pytest.mark.parametrize("name", ["circle", "half disc", "paraboloid", "plane and sphere"])
def test_full_metric_against_scipy(name):
    (T, _), (C, samples) = LAWS[name], fitted(name)
    rng = np.random.default_rng(3)
    B = rng.standard_normal((4, T, T))
    F = QuadraticForm(B @ B.transpose(0, 2, 1) + 0.2 * np.eye(T), rng.standard_normal((4, T)))
    d = decode(F, C)
    assert (d.residual <= 1e-8).all() and (d.status == "ok").all()
    for i in range(4):
        part = F.rows(np.array([i]))
        laws = [{"type": "eq", "fun": lambda c: C.equality(c[None])[0]}] if hasattr(C, "equality") else []
        laws += [{"type": "ineq", "fun": lambda c: -C.inequality(c[None])[0]}] if hasattr(C, "inequality") else []
        ends = [
            minimize(lambda c, part=part: part.value(c[None])[0], start, constraints=laws, method="SLSQP", tol=1e-12)
            for start in samples[:6]
        ]
        feasible = [e.fun for e in ends if C.residual(e.x[None])[0] < 1e-7]
        assert d.value[i] <= min(feasible) + 1e-6


CLOSED = {
    "circle": (Equations("y1**2 + y2**2 = 1"), Sphere(), 2),
    "disc": (Equations("y1**2 + y2**2 <= 1"), Ball(), 2),
    "box": (Equations(["-1 <= y1 <= 0.5", "0 <= y2", "y2 <= 2"]), Box([-1.0, 0.0], [0.5, 2.0]), 2),
    "simplex": (Equations(["y1 + y2 + y3 = 1", "y1 >= 0", "y2 >= 0", "y3 >= 0"]), Simplex(), 3),
}


@pytest.mark.parametrize("law, closed, T", CLOSED.values(), ids=CLOSED.keys())
def test_agrees_with_the_closed_form(law, closed, T):
    rng = np.random.default_rng(4)
    points, weights = 2 * rng.standard_normal((80, T)), rng.uniform(0.2, 4.0, (80, T))
    d = project(points, law, weights, certificate=True)
    assert (d.status == "ok").all()
    np.testing.assert_allclose(d.c, project(points, closed, weights), atol=1e-6)
    np.testing.assert_allclose(d.value, project(points, closed, weights, certificate=True).value, atol=1e-10)


INTERSECTIONS = {
    "ball and box": (Intersection([Ball(), Box(0.0, 2.0)]), Equations(["y1**2 + y2**2 <= 1", "y1 >= 0", "y2 >= 0"])),
    "sphere and box": (Intersection([Sphere(), Box(-2.0, 0.5)]), Equations(["y1**2 + y2**2 = 1", "y1 <= 0.5", "y2 <= 0.5"])),
    "equations and ball": (
        Intersection([Equations("y1*y2 = 0.1"), Ball(2.0)]),
        Equations(["y1*y2 = 0.1", "y1**2 + y2**2 <= 4"]),
    ),
}


@pytest.mark.parametrize("both, one", INTERSECTIONS.values(), ids=INTERSECTIONS.keys())
def test_intersection_stacks_its_members(both, one):
    points = np.random.default_rng(5).standard_normal((60, 2))
    d, e = (project(points, C, certificate=True) for C in (both, one))
    assert (d.residual <= 1e-8).all() and (d.status == "ok").all()
    np.testing.assert_allclose(d.value, e.value, atol=1e-7)


@pytest.mark.parametrize("unit", [1e-20, 1e-3, 1e6])
def test_units_of_an_output_do_not_matter(unit):
    """(1, y2) on the circle with y2 measured in any unit, weights following."""
    rng = np.random.default_rng(6)
    points, scale = rng.standard_normal((40, 2)), np.array([1.0, unit])
    C = Equations(f"y1**2 + (y2/{unit})**2 = 1").fit(points * scale)
    d = project(points * scale, C, weights=1 / scale**2, certificate=True)
    assert (d.status == "ok").all()
    expected = points / np.linalg.norm(points, axis=1, keepdims=True)
    np.testing.assert_allclose(d.c / scale, expected, atol=1e-7)


def test_margin_is_the_gap_between_branches():
    rng = np.random.default_rng(7)
    points = rng.uniform(-0.9, 0.9, (50, 2))
    points[:, 0] += np.where(points[:, 0] > 0, 0.05, -0.05)
    lines = Equations("y1**2 = 1").fit(points)  # nearest points (+-1, y2)
    d = project(points, lines, certificate=True)
    np.testing.assert_allclose(d.margin, 4 * np.abs(points[:, 0]), rtol=1e-6)
    circles = Equations("(y1**2 + y2**2 - 1)*(y1**2 + y2**2 - 4) = 0").fit(points)
    r = rng.uniform(1.2, 1.4, 40)
    d = project(r[:, None] * np.c_[np.cos(7 * r), np.sin(7 * r)], circles, certificate=True)
    np.testing.assert_allclose(d.margin, (2 - r) ** 2 - (r - 1) ** 2, rtol=1e-6)


def test_union_prefers_members_that_can_be_reached():
    points = np.array([[0.5, 0.1], [2.0, 2.0]])
    nothing, circle = Equations("y1**2 + y2**2 = -1"), Equations("y1**2 + y2**2 = 1")
    for members in ([nothing, circle], [circle, nothing]):
        d = project(points, Union(members), certificate=True)
        assert (d.status == "ok").all() and (d.margin == np.inf).all()
        np.testing.assert_allclose(np.linalg.norm(d.c, axis=1), 1.0)
    d = project(points, Union([Equations("y1**2 = -4"), nothing]), certificate=True)
    assert (d.status == "infeasible").all() and d.residual == pytest.approx(1.0)


@pytest.mark.parametrize("m", [0, 1])
def test_small_batches(m):
    d = decode(quadratic(np.ones((m, 2))), fitted("circle")[0])
    assert d.c.shape == (m, 2) and d.status.shape == (m,)


COMPOSED = {
    "equations": (Equations("y1**4 = y1**2 - y2**2"), 2),
    "inequalities": (Equations(["y1**2 + y2**2 = 1", "y1 >= 0"]), 2),
    "product": (Product([(Equations("y1**2 + y2**2 = 1"), [2, 0]), (Box(0, 1), [1])]), 3),
    "union": (Union([Equations("y1**2 + y2**2 = 1"), Sphere(3.0)]), 2),
    "inflated": (Inflated(Equations("y1**2 + y2**2 = 1"), 0.1), 2),
    "inflated sphere": (Inflated(Sphere(), 0.1), 3),
    "penalized": (Penalized(Equations("y1**2 + y2**2 = 1"), 0.5), 2),
}


def check_library(xp, C, T):
    rng = np.random.default_rng(8)
    points, a = rng.standard_normal((7, T)), rng.uniform(0.5, 2.0, (7, T))
    C = clone(C).fit(points)
    here = decode(Quadratic(a, a * points), C)
    there = decode(Quadratic(xp.asarray(a), xp.asarray(a * points)), C)
    assert type(there.c) is type(xp.asarray(a))
    for field in ("c", "value", "residual"):
        np.testing.assert_allclose(to_numpy(getattr(there, field)), getattr(here, field), atol=1e-7)
    np.testing.assert_array_equal(there.status, here.status)


@pytest.mark.parametrize("C, T", COMPOSED.values(), ids=COMPOSED.keys())
def test_strict_array_api(C, T):
    check_library(strict, C, T)


@pytest.mark.torch
@pytest.mark.parametrize("C, T", COMPOSED.values(), ids=COMPOSED.keys())
def test_torch(C, T):
    import torch

    check_library(torch, C, T)
