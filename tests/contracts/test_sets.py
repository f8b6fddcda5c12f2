"""Every set x every property it must have. A new set is one line in SETS."""

from __future__ import annotations

import itertools
import pickle

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

from lawful._array import to_numpy
from lawful.sets.algebra import Intersection, Product, Union
from lawful.sets.cloud import PointCloud
from lawful.sets.correlations import CorrelationMatrices
from lawful.sets.elementary import Affine, Box, Reals
from lawful.sets.hierarchy import Hierarchy
from lawful.sets.learned.density import KernelSet
from lawful.sets.learned.tangent import LocalTangent
from lawful.sets.logic.law import Logic
from lawful.sets.manifolds import PositiveSemidefinite, Rotations, Stiefel
from lawful.sets.polyhedra import Flow, Margins
from lawful.sets.poses import SE3, UnitQuaternions
from lawful.sets.round import Ball, Ellipsoid, Sphere
from lawful.sets.shapes import ConvexShape, Monotone
from lawful.sets.simplex import Simplex

CLOUD = np.random.default_rng(7).standard_normal((40, 3))
A2 = [[1.0, 2.0, -1.0, 0.5], [0.0, 1.0, 1.0, 1.0]]
SUMS = [[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
DIAMOND = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t")]

SETS = {
    "reals": (Reals(), 3),
    "box": (Box([-1.0, 0.0, 2.0], [1.0, 0.0, 5.0]), 3),
    "box2": (Box(-1.0, [0.5, 2.0]), 2),
    "orthant": (Box(lower=0.0), 3),
    "half box": (Box([-np.inf, -1.0, -np.inf], [np.inf, np.inf, 3.0]), 3),
    "affine": (Affine([1.0, 1.0, 1.0], 2.0), 3),
    "affine2": (Affine(A2, [1.0, -1.0]), 4),
    "affine redundant": (Affine([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0]], [1.0, 2.0]), 3),
    "affine point": (Affine(np.eye(2), [3.0, 4.0]), 2),
    "sphere1": (Sphere(2.0, center=1.0), 1),
    "sphere2": (Sphere(), 2),
    "sphere": (Sphere(1.5, center=[1.0, -2.0, 0.0]), 3),
    "ball2": (Ball(), 2),
    "ball": (Ball(2.0, center=0.5), 4),
    "ellipse": (Ellipsoid([2.0, 0.5], center=[1.0, 0.0]), 2),
    "ellipsoid": (Ellipsoid([2.0, 0.5, 1.0]), 3),
    "solid ellipsoid": (Ellipsoid([2.0, 0.5, 1.0], solid=True), 3),
    "simplex2": (Simplex(), 2),
    "simplex": (Simplex(3.0), 5),
    "rotations2": (Rotations(), 4),
    "rotations": (Rotations(3), 9),
    "stiefel": (Stiefel(4, 2), 8),
    "psd": (PositiveSemidefinite(), 9),
    "psd packed": (PositiveSemidefinite(packed=True, floor=0.1), 6),
    "correlations": (CorrelationMatrices(3), 9),
    "correlations packed": (CorrelationMatrices(packed=True, floor=0.1), 6),
    "hierarchy": (Hierarchy(SUMS), 5),
    "nonnegative hierarchy": (Hierarchy(SUMS, nonnegative=True), 5),
    "hierarchy without bottom": (Hierarchy([[1, 1, 1], [1, 1, 0], [0, 1, 1], [1, 2, 1]]), 4),
    "monotone": (Monotone(), 4),
    "falling": (Monotone(increasing=False, gap=0.5), 4),
    "convex shape": (ConvexShape([0.0, 1.0, 3.0, 4.0, 4.5, 5.0]), 6),
    "concave shape": (ConvexShape(concave=True), 6),
    "margins": (Margins((2, 3), [0.4, 0.6], [0.2, 0.3, 0.5]), 6),
    "row margins": (Margins((2, 2), row_sums=[1.0, 0.0]), 4),
    "flow": (Flow(DIAMOND, {"s": 2.0, "t": -2.0}, [1.5, 1.5, 1.0, 2.0, 2.0]), 5),
    "open flow": (Flow(DIAMOND, {"s": None, "t": None}, 3.0, -1.0), 5),
    "quaternions": (UnitQuaternions(), 10),
    "poses": (SE3(), 12),
    "cloud": (PointCloud(CLOUD), 3),
    "surface of a cloud": (LocalTangent(CLOUD, dimension=2, neighbours=10), 3),
    "density of a cloud": (KernelSet(CLOUD), 3),
    "curve of a cloud": (LocalTangent(CLOUD, dimension=1, neighbours=6), 3),
    "logic": (Logic(["y1 -> y2", "at_most(2, y2, y3, y4)"]), 5),
    "logic of signs": (Logic("exactly_one(y1, y2, not y3)", values=(-1, 1)), 3),
    "product": (Product([(Sphere(), [3, 1]), (Simplex(), [0, 4])]), 5),
    "product of affine": (Product([(Affine([1.0, 1.0], 1.0), [2, 0]), (Box(0.0, 1.0), [1])]), 3),
    "product of round": (Product([(Ball(), [2, 0]), (Sphere(), [3, 1])]), 4),
    "union": (Union([Sphere(), Affine([1.0, 1.0, 1.0], 0.0)]), 3),
    "intersection": (Intersection([PointCloud(CLOUD), Box(-1.0, np.inf)]), 3),
}
UNBOUNDED = {"reals", "orthant", "half box", "affine", "affine2", "affine redundant", "product", "product of affine"}
UNBOUNDED |= {"hierarchy", "hierarchy without bottom", "poses"}


def fitted(name):
    C, T = SETS[name]
    return clone(C).fit(np.zeros((2, T)))


def knowing(*capabilities):
    return [n for n in SETS if all(hasattr(fitted(n), k) for k in capabilities)]


def value(a, b, c):
    return np.sum(c * (a * c - 2 * b), axis=-1)


def weights(name, m=200, seed=0):
    """Random (a, b); of any sign where the minimum exists."""
    rng = np.random.default_rng(seed)
    T = SETS[name][1]
    a = rng.standard_normal((m, T))
    a = np.abs(a) + 0.01 if name in UNBOUNDED else a
    return a, 2 * rng.standard_normal((m, T))


@pytest.mark.parametrize("name", SETS)
def test_samples_belong(name):
    C = fitted(name)
    points = C.sample(200, random_state=0)
    assert points.shape == (200, SETS[name][1])
    assert C.contains(points).all()
    np.testing.assert_array_equal(points, C.sample(200, random_state=0))


@pytest.mark.parametrize("name", [n for n in SETS if n != "reals"])
def test_residual_sees_points_outside(name):
    C = fitted(name)
    outside = C.sample(50, random_state=0) + 100.0 * np.random.default_rng(0).standard_normal((50, SETS[name][1]))
    outside = -np.abs(outside) if name in ("orthant", "psd", "psd packed") else outside
    outside[:, -1] += 1000.0 if name == "half box" else 0.0
    assert (C.residual(outside) > 1e-3).mean() > 0.9
    assert (C.residual(outside) >= 0).all()


@pytest.mark.parametrize("name", knowing("project"))
def test_project_is_feasible_and_never_beaten(name):
    C = fitted(name)
    a, b = weights(name)
    c = C.project(b, a)
    assert np.isfinite(c).all()
    assert C.contains(c, 1e-10).all()
    scale = 1 + np.abs(a).max(1) * (c**2).sum(1) + np.abs(b * c).sum(1)
    rivals = C.sample(500, random_state=1)
    best = np.min(a @ (rivals**2).T - 2 * b @ rivals.T, axis=1)
    assert (value(a, b, c) <= best + 1e-12 * scale).all()
    nudged = C.nearest(c[:, None, :].repeat(20, 1).reshape(-1, c.shape[1]) + near_noise(c)).reshape(len(c), 20, -1)
    assert (value(a, b, c) <= value(a[:, None], b[:, None], nudged).min(1) + 1e-12 * scale).all()


def near_noise(c):
    return 1e-3 * np.random.default_rng(2).standard_normal((20 * len(c), c.shape[1]))


THETA = np.linspace(0, 2 * np.pi, 200_001)
CIRCLE = np.c_[np.cos(THETA), np.sin(THETA)]
DISC = np.concatenate([CIRCLE[::100] * r for r in np.linspace(0, 1, 201)] + [CIRCLE])
EDGE = np.linspace(0, 1, 100_001)
SQUARE = np.stack(np.meshgrid(np.linspace(-1, 0.5, 301), np.linspace(-1, 2, 601)), -1).reshape(-1, 2)
GRIDS = {
    "sphere2": CIRCLE,
    "ball2": DISC,
    "ellipse": CIRCLE * [2.0, 0.5] + [1.0, 0.0],
    "simplex2": np.c_[EDGE, 1 - EDGE],
    "box2": SQUARE,
}


@pytest.mark.parametrize("name", GRIDS)
def test_project_matches_a_dense_grid(name):
    C = fitted(name)
    assert C.contains(GRIDS[name]).all()
    a, b = weights(name, m=60, seed=3)
    # special rows: zero weights, zero b, equal negative weights, the hard case
    a[:6] = [[0, 0], [1, 1], [-1, -1], [-1, 2], [2, -1], [1, 0]]
    b[:6] = [[1, 2], [0, 0], [1, 1], [0, 0.3], [0.3, 0], [0, 1]]
    costs = np.concatenate([a @ (P**2).T - 2 * b @ P.T for P in np.array_split(GRIDS[name], 20)], axis=1)
    found, best = value(a, b, C.project(b, a)), costs.min(1)
    assert (found <= best + 1e-12).all()
    np.testing.assert_allclose(found, best, atol=2e-3)  # the grid is coarse; the answer may only be better


@settings(max_examples=30, deadline=None)
@given(data=st.data(), name=st.sampled_from(["sphere", "ball", "ellipsoid", "solid ellipsoid", "simplex", "box"]))
def test_project_properties(data, name):
    C, T = fitted(name), SETS[name][1]
    numbers = st.one_of(st.just(0.0), st.just(1.0), st.just(-1.0), st.floats(-10, 10).map(lambda x: round(x, 12)))
    a, b = (data.draw(arrays(np.float64, (3, T), elements=numbers)) for _ in range(2))
    c = C.project(b, a)
    assert np.isfinite(c).all() and C.contains(c, 1e-9).all()
    rivals = np.concatenate([C.sample(300, random_state=0), C.project(b[::-1], a), C.nearest(b), C.nearest(-b)])
    best = np.min(a @ (rivals**2).T - 2 * b @ rivals.T, axis=1)
    assert (value(a, b, c) <= best + 1e-9).all()


@pytest.mark.parametrize("T", [2, 3, 5, 7])
def test_simplex_is_exact_for_mixed_signs(T):
    """A minimiser is stationary on its own support: look at all 2^T - 1 supports."""
    rng = np.random.default_rng(T)
    C = Simplex(2.0).fit(np.zeros((1, T)))
    a, b = rng.standard_normal((300, T)), 2 * rng.standard_normal((300, T))
    a[:20, 0], a[20:40], b[40:60] = 1e-10, np.abs(a[20:40]), 0.0
    best = np.full(300, np.inf)
    for support in itertools.product([0.0, 1.0], repeat=T):
        if any(support):
            inverse = np.array(support) / a.astype(np.longdouble)  # 1e10 * (b - lam) cancels in double precision
            lam = (np.sum(b * inverse, axis=1) - 2.0) / np.sum(inverse, axis=1)
            c = inverse * (b - lam[:, None])
            inside = (c >= -1e-9).all(1)
            best = np.minimum(best, np.where(inside, value(a, b, c), np.inf))
    c = C.project(b, a)
    np.testing.assert_allclose(value(a, b, c), best, atol=1e-7)
    assert C.contains(c, 1e-12).all()
    mixed = (a > 0).any(1) & (a < 0).any(1)
    assert mixed.sum() > 50 and (np.sum(c[mixed] > 1e-9, axis=1) > 1).any()  # not only vertices


def test_sphere_hard_and_nearly_hard_cases_to_rounding():
    C = Sphere().fit(np.zeros((1, 3)))
    for tiny in (0.0, 1e-300, 1e-30, 1e-12, 1e-6):
        a, b = np.array([[1.0, 1.0, 3.0]]), np.array([[tiny, 0.0, 0.5]])
        c = C.project(b, a)[0]
        assert abs(c @ c - 1) < 1e-15
        assert c[2] == pytest.approx(0.25, abs=1e-6) and abs(c[1]) < 1e-12
        assert c[0] == pytest.approx(np.sqrt(1 - c[2] ** 2), abs=1e-14)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2000, 3)) * 10.0 ** rng.uniform(-6, 6, (2000, 1)), rng.standard_normal((2000, 3))
    c = C.project(b, a)
    # stationarity: the gradient is a multiple of c, and the multiplier certifies global optimality
    gradient = a * c - b
    multiplier = np.sum(gradient * c, axis=1, keepdims=True)
    size = np.abs(a).max(1) + np.abs(b).max(1)
    assert (np.abs(gradient - multiplier * c).max(1) <= 1e-13 * size).all()
    assert (multiplier[:, 0] <= a.min(1) + 1e-12 * size).all()


@pytest.mark.parametrize("name", knowing("nearest"))
def test_nearest_is_idempotent_and_closest(name):
    C, T = fitted(name), SETS[name][1]
    rng = np.random.default_rng(0)
    raw = 2 * rng.standard_normal((100, T))
    c = C.nearest(raw)
    assert C.contains(c, 1e-10).all()
    np.testing.assert_allclose(C.nearest(c), c, atol=1e-10)
    rivals = C.sample(500, random_state=1)
    closest = np.min(np.linalg.norm(raw[:, None] - rivals[None], axis=2), axis=1)
    assert (np.linalg.norm(raw - c, axis=1) <= closest + 1e-12).all()
    if C.convex:  # obtuse angle: the certificate of the projection on a convex set
        assert (np.einsum("mt,mrt->mr", raw - c, rivals[None] - c[:, None]) <= 1e-8).all()
    if hasattr(C, "project"):
        np.testing.assert_allclose(C.project(raw, np.ones_like(raw)), c, atol=1e-12)
    degenerate = C.nearest(np.zeros((1, T)))
    assert np.isfinite(degenerate).all() and C.contains(degenerate).all()


@pytest.mark.parametrize("name", knowing("project_form"))
def test_project_form_agrees_with_project_and_is_never_beaten(name):
    C, T = fitted(name), SETS[name][1]
    rng = np.random.default_rng(0)
    a, w = rng.uniform(0.1, 2, (50, T)), rng.standard_normal((50, T))
    np.testing.assert_allclose(C.project_form(a[:, :, None] * np.eye(T), w), C.project(a * w, a), atol=1e-9)
    B = rng.standard_normal((50, T, T))
    Q = B @ B.transpose(0, 2, 1)
    c = C.project_form(Q, w)
    assert C.contains(c, 1e-9).all()
    rivals = np.concatenate([C.sample(500, 0)[None].repeat(50, 0), C.nearest(c + near_noise(c)[:50])[:, None]], 1)
    r = rivals - w[:, None]
    best = np.einsum("mrt,mts,mrs->mr", r, Q, r).min(1)
    assert (np.einsum("mt,mts,ms->m", c - w, Q, c - w) <= best + 1e-9).all()


@pytest.mark.parametrize("method", ["project", "nearest", "residual", "equality", "inequality", "tangent", "retract"])
def test_batch_is_row_by_row_in_any_order_and_library(method):
    for name in knowing(method):
        C = fitted(name)
        a, b = weights(name, m=17)
        args = {"project": (b, a), "tangent": (C.sample(17, 0), b), "retract": (C.sample(17, 0), 0.1 * b)}
        args = args.get(method, (b,))
        whole = getattr(C, method)(*args)
        rows = np.concatenate([getattr(C, method)(*(x[i : i + 1] for x in args)) for i in range(17)])
        np.testing.assert_allclose(whole, rows, atol=1e-12, err_msg=name)
        order = np.random.default_rng(0).permutation(17)
        shuffled = getattr(C, method)(*(x[order] for x in args))
        np.testing.assert_allclose(shuffled, whole[order], atol=1e-12, err_msg=name)
        elsewhere = getattr(C, method)(*(strict.asarray(x) for x in args))
        assert elsewhere.__array_namespace__().__name__ == "array_api_strict"
        np.testing.assert_allclose(to_numpy(elsewhere), whole, atol=1e-12, err_msg=name)


@pytest.mark.torch
@pytest.mark.parametrize("method", ["project", "nearest", "residual"])
def test_torch_gives_the_same_numbers(method):
    import torch

    for name in knowing(method):
        C = fitted(name)
        a, b = weights(name, m=17)
        args = (b, a) if method == "project" else (b,)
        found = getattr(C, method)(*(torch.asarray(x) for x in args))
        assert isinstance(found, torch.Tensor)
        np.testing.assert_allclose(found.numpy(), getattr(C, method)(*args), atol=1e-12, err_msg=name)


def _finite_difference(f, c, h=1e-6):
    steps = h * np.eye(c.shape[1])
    return np.stack([(f(c + e) - f(c - e)) / (2 * h) for e in steps], axis=-1)


@pytest.mark.parametrize("name", knowing("equality"))
def test_jacobian_of_the_equations(name):
    C = fitted(name)
    c = np.random.default_rng(0).standard_normal((5, SETS[name][1]))
    np.testing.assert_allclose(C.equality_jacobian(c), _finite_difference(C.equality, c), atol=1e-7)
    assert np.abs(C.equality(C.sample(20, 0))).max() < 1e-10
    np.testing.assert_allclose(to_numpy(C.equality_jacobian(strict.asarray(c))), C.equality_jacobian(c))


@pytest.mark.parametrize("name", knowing("curvature"))
def test_curvature_of_the_equations_and_inequalities(name):
    C = fitted(name)
    c = np.random.default_rng(0).standard_normal((5, SETS[name][1]))
    kinds = [k for k in ("equality", "inequality") if hasattr(C, k)]
    nu = np.random.default_rng(1).standard_normal((5, sum(getattr(C, k)(c).shape[1] for k in kinds)))

    def pulled(x):
        J = np.concatenate([getattr(C, f"{k}_jacobian")(x) for k in kinds], axis=1)
        return np.einsum("mp,mpt->mt", nu, J)

    np.testing.assert_allclose(C.curvature(c, nu), _finite_difference(pulled, c), atol=1e-7)
    elsewhere = C.curvature(strict.asarray(c), strict.asarray(nu))
    np.testing.assert_allclose(to_numpy(elsewhere), C.curvature(c, nu))


@pytest.mark.parametrize("name", knowing("inequality"))
def test_jacobian_of_the_inequalities(name):
    C = fitted(name)
    c = np.random.default_rng(0).standard_normal((5, SETS[name][1]))
    np.testing.assert_allclose(C.inequality_jacobian(c), _finite_difference(C.inequality, c), atol=1e-7)
    assert C.inequality(C.sample(20, 0)).max() < 1e-10
    np.testing.assert_allclose(to_numpy(C.inequality_jacobian(strict.asarray(c))), C.inequality_jacobian(c))


@pytest.mark.parametrize("name", knowing("tangent", "retract"))
def test_tangent_and_retract(name):
    C = fitted(name)
    c = C.sample(30, 0)
    v = np.random.default_rng(0).standard_normal(c.shape)
    p = C.tangent(c, v)
    np.testing.assert_allclose(C.tangent(c, p), p, atol=1e-12)
    np.testing.assert_allclose(np.einsum("mpt,mt->mp", C.equality_jacobian(c), p), 0, atol=1e-12)
    for h in (1e-4, 1e-5):  # first order: the retraction of a tangent step is the step
        assert np.abs(C.retract(c, h * p) - c - h * p).max() < 100 * h**2
    assert C.contains(C.retract(c, p), 1e-10).all()


@pytest.mark.parametrize("name", SETS)
def test_is_a_scikit_learn_estimator(name):
    C, T = SETS[name]
    again = clone(C)
    assert repr(again) == repr(C) and set(again.get_params(deep=False)) == set(C.get_params(deep=False))
    C = again.fit(np.zeros((2, T)))
    copy = pickle.loads(pickle.dumps(C))
    c = np.random.default_rng(0).standard_normal((4, T))
    np.testing.assert_array_equal(copy.residual(c), C.residual(c))
    assert C.at(c) is C and C.rows(np.arange(2)) is C


@pytest.mark.parametrize(
    "C, T, message",
    [
        (Box(1.0, 0.0), 2, "empty set"),
        (Box([0.0, 0.0], 1.0), 3, "2 outputs.*3 columns"),
        (Box(np.nan, 1.0), 2, "NaN"),
        (Affine([[1.0, 1.0], [1.0, 1.0]], [0.0, 1.0]), 2, "empty set"),
        (Affine([[1.0, 1.0]], 0.0), 3, "2 outputs.*3 columns"),
        (Affine([[0.0, 0.0]], 0.0), 2, "not zero"),
        (Affine([[1.0, 0.0]], [0.0, 1.0]), 2, "one value per row"),
        (Sphere(0.0), 2, "positive"),
        (Sphere(-1.0), 2, "positive"),
        (Ball(1.0, center=[0.0, 0.0, 0.0]), 2, "3 outputs.*2 columns"),
        (Ellipsoid([1.0, -1.0]), 2, "positive"),
        (Ellipsoid([1.0, 1.0]), 3, "2 outputs.*3 columns"),
        (Simplex(0.0), 2, "total must be positive"),
        (Rotations(2), 9, "4 outputs.*9 columns"),
        (Rotations(), 5, "4 outputs.*5 columns"),
        (Stiefel(2, 3), 6, "1 <= p <= n"),
        (Stiefel(3, 2), 5, "6 outputs.*5 columns"),
        (PositiveSemidefinite(), 3, "1 outputs.*3 columns"),
        (PositiveSemidefinite(packed=True), 4, "3 outputs.*4 columns"),
        (CorrelationMatrices(), 3, "1 outputs.*3 columns"),
        (CorrelationMatrices(packed=True), 4, "3 outputs.*4 columns"),
        (CorrelationMatrices(floor=1.0), 4, "floor must lie"),
        (Hierarchy([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), 4, "3 outputs.*4 columns"),
        (Hierarchy(np.eye(2)), 2, "no output is a sum"),
        (Hierarchy([1.0, 2.0]), 2, "will not do"),
        (Monotone(gap=-1.0), 2, "gap must be"),
        (ConvexShape([0.0, 2.0, 1.0]), 3, "growing"),
        (ConvexShape(), 2, "three at least"),
        (Margins((2, 2), [1.0, 1.0], [1.0, 2.0]), 4, "empty set"),
        (Margins((2, 2), [1.0, -1.0]), 4, "none below 0"),
        (Margins((2, 2)), 4, "neither"),
        (Margins((2, 2), [1.0, 1.0]), 3, "4 outputs.*3 columns"),
        (Flow([("a", "b")], {"a": 1.0}), 1, "empty set"),
        (Flow([("a", "b")], {"a": 2.0, "b": -2.0}, capacity=1.0), 1, "empty set"),
        (Flow([("a", "b")], {"c": 1.0}), 1, "no edge touches"),
        (Flow([("a", "b")], lower=2.0, capacity=1.0), 1, "exceeds capacity"),
        (Flow([("a", "a")]), 1, "end where they begin"),
        (UnitQuaternions(), 4, "10 outputs.*4 columns"),
        (SE3(), 7, "12 outputs.*7 columns"),
        (PointCloud([[1.0, np.nan]]), 2, "NaN"),
        (PointCloud([[1.0, 2.0]]), 3, "2 outputs.*3 columns"),
        (PointCloud(np.empty((0, 2))), 2, "empty set"),
        (PointCloud([1.0, 2.0]), 2, "one row per point"),
        (Product([(Sphere(), [0, 1]), (Box(), [1])]), 3, "more than one place"),
        (Product([(Sphere(), [0, 3])]), 3, "no output 3"),
        (Product([(Sphere(), ["x", "y"])]), 3, "use column numbers"),
        (Product([(Sphere(), [])]), 3, "no outputs"),
        (Union([]), 2, "no members"),
        (Intersection([PointCloud([[1.0, 1.0]]), Box(2.0, 3.0)]), 2, "empty set"),
    ],
    ids=str,
)
def test_bad_parameters_are_explained(C, T, message):
    with pytest.raises(ValueError, match=message):
        C.fit(np.zeros((2, T)))


def test_projecting_never_divides_by_a_nonpositive_weight():
    """Reals and half-open boxes have no minimiser there, and answer with a point of the set."""
    a, b = np.array([[0.0, -1.0, 2.0]]), np.array([[1.0, 1.0, 1.0]])
    np.testing.assert_array_equal(fitted("reals").project(b, a), [[0.0, 0.0, 0.5]])
    np.testing.assert_array_equal(fitted("orthant").project(b, a), [[0.0, 0.0, 0.5]])
    np.testing.assert_array_equal(fitted("half box").project(b, a), [[0.0, -1.0, 0.5]])


def test_affine_with_negative_weights_uses_the_curvature_of_the_subspace():
    C = fitted("affine")
    a, b = np.array([[3.0, 3.0, -1.0]]), np.array([[1.0, -1.0, 0.5]])
    c = C.project(b, a)
    Z = C.null_
    assert (np.linalg.eigvalsh(Z.T @ np.diag(a[0]) @ Z) > 0).all()  # convex on C although not in R^3
    np.testing.assert_allclose((a * c - b)[0] @ Z, 0, atol=1e-12)
    flat = C.project(b, -np.abs(a))
    np.testing.assert_allclose(flat, C.nearest(np.zeros((1, 3))), atol=1e-12)


def test_rotations_are_the_best_rotations():
    """Kabsch: scipy finds the same rotation, and reflections are no members."""
    from scipy.spatial.transform import Rotation

    C = fitted("rotations")
    M = np.random.default_rng(0).standard_normal((50, 3, 3))
    found = C.nearest(M.reshape(50, 9)).reshape(50, 3, 3)
    for m, r in zip(M, found):
        best = Rotation.align_vectors(m.T, np.eye(3))[0].as_matrix()  # rows: columns of m against the axes
        np.testing.assert_allclose(r, best, atol=1e-10)
    assert C.residual(-np.eye(3).reshape(1, 9))[0] == pytest.approx(2.0)


def test_packed_semidefinite_projects_in_the_packed_distance():
    full, packed = PositiveSemidefinite().fit(np.zeros((1, 4))), PositiveSemidefinite(packed=True).fit(np.zeros((1, 3)))
    raw = np.array([[1.0, 2.0, -0.5]])
    p, f = packed.nearest(raw)[0], full.nearest(raw[:, [0, 1, 1, 2]])[0][[0, 1, 3]]
    x, y = np.meshgrid(np.linspace(0, 3, 601), np.linspace(0, 3, 601))
    boundary = np.stack([x, np.sqrt(x * y), y], -1).reshape(-1, 3)  # xy = z^2 holds every nearest point
    best = np.min(np.sum((boundary - raw) ** 2, axis=1))
    assert np.sum((p - raw) ** 2) <= best + 1e-12 < np.sum((f - raw) ** 2)


def test_cloud_takes_complete_rows_once_and_measures_distance():
    Y = np.array([[1.0, 2.0], [np.nan, 3.0], [1.0, 2.0], [0.0, 0.0]])
    C = PointCloud().fit(Y)
    np.testing.assert_array_equal(C.points_, [[1.0, 2.0], [0.0, 0.0]])
    np.testing.assert_allclose(C.residual(np.array([[1.0, 1.0], [0.0, 0.0]])), [1.0, 0.0])
    with pytest.raises(ValueError, match="no row of Y is complete"):
        PointCloud().fit(np.full((3, 2), np.nan))
    wide = np.random.default_rng(0).standard_normal((30, 15))  # beyond the k-d tree
    C = PointCloud(wide).fit(wide)
    assert C.tree_ is None and C.contains(wide).all() and (C.residual(wide + 0.1) > 0.1).all()


def test_product_resolves_names_and_frees_the_rest():
    C = Product([(Sphere(), ["sin", "cos"]), (Affine([1.0, -1.0], 0.0), [4, 0])])
    C.fit(np.zeros((2, 5)), outputs=["u", "cos", "z", "sin", "w"])
    assert [idx for _, idx in C.blocks_] == [[3, 1], [4, 0], [2]]
    assert isinstance(C.blocks_[-1][0], Reals)
    c = np.array([[7.0, 0.6, 99.0, 0.8, 7.0]])
    assert C.contains(c)[0] and not C.contains(c + 0.1)[0]
    np.testing.assert_allclose(C.equality(c), [[0.0, 0.0]], atol=1e-12)
    assert not hasattr(C, "inequality") and not hasattr(C, "tangent") and not C.convex
    with pytest.raises(ValueError, match="no output is called 'tan'"):
        Product([(Sphere(), ["tan", "cos"])]).fit(np.zeros((2, 5)), outputs=["u", "cos", "z", "sin", "w"])


def test_composed_sets_know_what_all_their_parts_know():
    T3 = np.zeros((1, 3))
    both = Intersection([Sphere(), Box(0.0, np.inf), Affine([1.0, 1.0, 1.0], 1.0)]).fit(T3)
    c = np.array([[0.5, -0.25, 1.0]])
    assert both.equality(c).shape == (1, 2) and both.inequality(c).shape == (1, 3)
    assert both.residual(c)[0] == pytest.approx(max(abs(0.25 + 0.0625 + 1 - 1), 0.25, 0.25))
    np.testing.assert_allclose(both.equality_jacobian(c), [[[1.0, -0.5, 2.0], [1.0, 1.0, 1.0]]])
    with pytest.raises(TypeError, match="cannot be sampled"):
        both.sample(3)
    opaque = Intersection([Sphere(), PositiveSemidefinite()]).fit(np.zeros((1, 4)))
    assert not hasattr(opaque, "equality")  # equations alone would describe a larger set
    finite = fitted("intersection")
    np.testing.assert_array_equal(finite.points_, CLOUD[(CLOUD >= -1).all(1)])
    assert not hasattr(finite, "equality") and not hasattr(both, "points_")
    boxes = Product([(Box(0.0, 1.0), [0]), (Ball(), [1, 2])]).fit(T3)
    assert boxes.convex and boxes.inequality(c).shape == (1, 3) and not hasattr(boxes, "equality")


class Moving(Sphere):
    """A sphere whose radius is the first input: a set that depends on x."""

    def at(self, X):
        bound = clone(self).fit(np.zeros((1, self.n_tasks_)))
        bound.scale = X[:, 0]
        return bound

    def rows(self, idx):
        bound = clone(self).fit(np.zeros((1, self.n_tasks_)))
        bound.scale = self.scale[idx]
        return bound

    def residual(self, c):
        return np.abs(np.linalg.norm(c, axis=1) - self.scale)


def test_binding_to_inputs_passes_through_and_changes_nothing():
    X = np.array([[1.0], [2.0], [3.0]])
    c = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    product = Product([(Moving(), [0, 1, 2])]).fit(c)
    for C in (product, Union([Moving(), Moving()]).fit(c), Intersection([Moving(), Reals()]).fit(c)):
        bound = C.at(X)
        assert bound is not C
        np.testing.assert_allclose(bound.residual(c), [0.0, 0.0, 2.0])
        np.testing.assert_allclose(bound.rows(np.array([2, 0])).residual(c[[2, 0]]), [2.0, 0.0])
        parts = C.blocks_ if isinstance(C, Product) else C.members_
        assert not any(hasattr(p[0] if isinstance(p, tuple) else p, "scale") for p in parts)


@pytest.mark.parametrize("method", ["project", "nearest", "residual", "equality", "inequality", "tangent", "retract"])
def test_no_rows_are_fine(method):
    for name in knowing(method):
        empty = np.zeros((0, SETS[name][1]))
        args = (empty, empty) if method in ("project", "tangent", "retract") else (empty,)
        assert getattr(fitted(name), method)(*args).shape[0] == 0
