"""The constant q against closed forms, parametrisations and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lawful import (
    Absolute,
    Affine,
    Ball,
    Box,
    Ellipsoid,
    Equations,
    Hinge,
    Huber,
    Inflated,
    Intersection,
    Logistic,
    Mixed,
    Penalized,
    Pinball,
    PointCloud,
    PositiveSemidefinite,
    Product,
    Rankings,
    Reals,
    Rotations,
    Simplex,
    Sphere,
    Square,
    Stiefel,
    Union,
    ZeroOne,
)
from lawful.theory import q_constant


def s(c):
    return 4 * c**2 + c**4


def q_of(points):
    return 2 * np.sqrt(np.mean(s(points), axis=1).max())


@pytest.mark.parametrize("T", [1, 2, 5, 20, 64])
@pytest.mark.parametrize("B", [0.5, 1.0, 3.0])
def test_box_sphere_ball_and_simplex_have_closed_forms(T, B):
    np.testing.assert_allclose(q_constant(Box(-B, B), n_tasks=T), 2 * np.sqrt(s(B)), rtol=1e-12)
    sphere = 2 * np.sqrt(s(B) / T)  # lem:q-for-sphere, with erratum E7
    np.testing.assert_allclose(q_constant(Sphere(B), n_tasks=T), sphere, rtol=1e-12)
    np.testing.assert_allclose(q_constant(Ball(B), n_tasks=T), sphere, rtol=1e-12)
    np.testing.assert_allclose(q_constant(Simplex(), n_tasks=T), 2 * np.sqrt(s(1.0) / T), rtol=1e-12)
    if B >= 1:
        assert q_constant(Sphere(B), n_tasks=T) <= 2 * np.sqrt(5) * B**2 * T**-0.5 + 1e-12


@pytest.mark.parametrize(
    ("equation", "curve"),
    [
        ("y1**2 + y2**2 = 1", lambda x: np.c_[np.cos(x), np.sin(x)]),
        ("y1**4 = y1**2 - y2**2", lambda x: np.c_[np.sin(x), np.sin(2 * x) / 2]),
        ("y1**4 = y1**2 - y2**2 / 4", lambda x: np.c_[np.sin(x), np.sin(2 * x)]),
        ("(y1 - 2)**2 / 9 + y2**2 = 1", lambda x: np.c_[2 + 3 * np.cos(x), np.sin(x)]),
    ],
)
def test_curves_agree_with_their_parametrisation(equation, curve):
    q, point = q_constant(Equations(equation), return_point=True)
    np.testing.assert_allclose(q, q_of(curve(np.linspace(-np.pi, np.pi, 400_001))), rtol=1e-8)
    assert Equations(equation).fit(np.zeros((1, 2))).contains(point[None], 1e-8).all()
    np.testing.assert_allclose(q, q_of(point[None]), rtol=1e-12)


def test_manifolds():
    np.testing.assert_allclose(q_constant(Rotations(3)), 2 * np.sqrt((4 * 3 + 3) / 9), rtol=1e-10)  # permutation matrices
    np.testing.assert_allclose(q_constant(Stiefel(4, 2)), 2 * np.sqrt((4 * 2 + 2) / 8), rtol=1e-10)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_no_sampled_point_is_beyond(seed, T):
    """Ellipsoids with a centre of their own: brute force never finds more than the ascent."""
    rng = np.random.default_rng(seed)
    C = Ellipsoid(rng.uniform(0.3, 3, T), center=rng.standard_normal(T)).fit(np.zeros((1, T)))
    q = q_constant(C)
    sampled = q_of(C.sample(20_000, seed))
    assert sampled <= q * (1 + 1e-9) <= 1.2 * sampled * (1 + 1e-9)


def test_composed_sets():
    circle, box = Sphere(1.0), Box(-1.0, 1.0)
    product = Product([(circle, [0, 1]), (box, [2, 3])])
    np.testing.assert_allclose(q_constant(product, n_tasks=4), 2 * np.sqrt((5 + 10) / 4))
    np.testing.assert_allclose(q_constant(Union([circle, Sphere(2.0)]), n_tasks=3), q_constant(Sphere(2.0), n_tasks=3))
    quarter = Intersection([circle, Box(0.0, 0.8)])
    np.testing.assert_allclose(q_constant(quarter, n_tasks=2), q_of(np.array([[0.6, 0.8]])), rtol=1e-7)
    np.testing.assert_allclose(q_constant(Inflated(circle, 0.5), n_tasks=3), q_constant(Sphere(1.5), n_tasks=3), rtol=1e-9)
    points = np.random.default_rng(0).standard_normal((30, 3))
    np.testing.assert_allclose(q_constant(PointCloud(points)), q_of(points))


@pytest.mark.parametrize(
    ("constraint", "T"),
    [
        (Reals(), 2),
        (Box(0.0, np.inf), 2),
        (Affine([[1.0, 1.0, 1.0]], [1.0]), 3),
        (Equations("y1*y2 = 1"), 2),
        (Equations("y2 = y1**2"), 2),
        (PositiveSemidefinite(2), 4),
        (Penalized(Sphere(1.0), 0.1), 2),
        (Product([(Sphere(1.0), [0, 1])]), 3),  # the third output is free
    ],
)
def test_unbounded_sets(constraint, T):
    assert q_constant(constraint, n_tasks=T) == np.inf
    assert q_constant(constraint, n_tasks=T, return_point=True)[1] is None


def test_other_losses():
    """s(c) = sum over labels of l(c, y)^2, against brute force on the sphere and at the corners of a box."""
    circle = Sphere(1.0).fit(np.zeros((1, 2)))
    angle = np.linspace(0, 2 * np.pi, 100_001)
    points = np.c_[np.cos(angle), np.sin(angle)]
    for loss, labels in [
        (Hinge(), (-1, 1)),
        (Logistic(), (-1, 1)),
        (Absolute(), (-0.5, 0.0, 2.0)),
        (Huber(0.3), (-1, 0, 1)),
        (Pinball(0.8), (-1, 0, 0.5)),
    ]:
        y = np.asarray(labels, dtype=float)
        size = np.sum(np.asarray(loss(points[:, :, None], y)) ** 2, axis=2)
        np.testing.assert_allclose(q_constant(circle, loss, labels=labels), 2 * np.sqrt(np.mean(size, axis=1).max()), rtol=1e-7)
        ends = np.sum(np.asarray(loss(np.array([[-1.0], [1.0]]), y)) ** 2, axis=1).max()
        np.testing.assert_allclose(q_constant(Box(-1, 1), loss, n_tasks=3, labels=labels), 2 * np.sqrt(ends), rtol=1e-12)
    assert q_constant(circle, Hinge()) == q_constant(circle, Hinge(), labels=[-1, 1])
    # a comparison is -1 or 1: wrong about two of the three possible labels, whatever it is
    np.testing.assert_allclose(q_constant(Rankings(4), ZeroOne()), 2 * np.sqrt(2))
    np.testing.assert_allclose(q_constant(Reals(), ZeroOne(), n_tasks=3), 2 * np.sqrt(3))
    # max(0, 1 - c) is at most 1 for c >= 0, however far c goes; with labels on both sides it is not bounded
    np.testing.assert_allclose(q_constant(Box(0, np.inf), Hinge(), labels=[1], n_tasks=2), 2.0)
    assert q_constant(Box(0, np.inf), Hinge(), n_tasks=2) == np.inf
    mixed = Mixed([Square(), Hinge()], weights=[2.0, 1.0])
    np.testing.assert_allclose(q_constant(Box(-1, 1), mixed, n_tasks=2), 2 * np.sqrt((4 * 5 + 4) / 2))


def test_the_number_of_outputs_is_found_or_asked_for():
    assert q_constant(Equations("y3 = 0.5"), n_tasks=3) == np.inf
    assert q_constant(PointCloud([[1.0, 0.0, 0.0]])) == pytest.approx(2 * np.sqrt(5 / 3))
    with pytest.raises(ValueError, match=r"Sphere does not say how many outputs.*n_tasks"):
        q_constant(Sphere(1.0))
    with pytest.raises(ValueError, match="give labels"):
        q_constant(Sphere(1.0), Absolute(), n_tasks=2)
    with pytest.raises(ValueError, match="Mixed has 1 losses"):
        q_constant(Sphere(1.0), Mixed([Square()]), n_tasks=2)
    with pytest.raises(ValueError, match="without a derivative"):
        q_constant(Sphere(1.0), ZeroOne(), n_tasks=2)
    with pytest.raises(ValueError, match="one weight for each"):
        q_constant(Sphere(1.0), Square(np.ones(3)), n_tasks=2)
