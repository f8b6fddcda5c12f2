"""Sets against dense grids and their definitions: what they contain, what is nearest, what they say of themselves."""

from __future__ import annotations

import inspect
from itertools import pairwise

import numpy as np
import pytest

import lawful
from lawful import (
    Affine,
    Ball,
    Box,
    ConvexShape,
    Ellipsoid,
    Equations,
    Flow,
    Hierarchy,
    Inflated,
    Intersection,
    Margins,
    Monotone,
    Penalized,
    PointCloud,
    Product,
    Reals,
    Simplex,
    Sphere,
    Union,
)
from lawful.sets.base import fraction, tolerance
from lawful.sets.elementary import per_task
from lawful.sets.polyhedra import independent
from lawful.sets.relaxed import length, near_point
from lawful.sets.round import in_unit_ball, on_unit_sphere

rng = np.random.default_rng(0)
ANGLE = np.linspace(-np.pi, np.pi, 40_001)
CIRCLE = np.c_[np.cos(ANGLE), np.sin(ANGLE)]
GRID = np.stack(np.meshgrid(*[np.linspace(-2, 2, 401)] * 2), axis=-1).reshape(-1, 2)


def fitted(C, T=2):
    return C.fit(np.zeros((1, T)))


def least(points, a, b):
    """The least of sum a c^2 - 2 b c over points."""
    return (a * points**2 - 2 * b * points).sum(axis=1).min()


def objective(c, a, b):
    return (a * c**2 - 2 * b * c).sum()


# ---------------------------------------------------------------------- what sets say of themselves


FLOW = Flow([("in", "a"), ("a", "out"), ("in", "out")], supply={"in": 3.0, "out": -3.0}, capacity=[1.0, 5.0, 5.0])
SAYS = {  # convex, polyhedral, quadratic, unbounded, relaxed; equality, inequality
    "Reals()": (Reals(), 2, "1111.", "0..."),
    "Box()": (Box(), 2, "1111.", ".."),
    "Box(0)": (Box(0), 2, "1111.", ".1"),
    "Box(0, 1)": (Box(0, 1), 2, "111..", ".1"),
    "Affine": (Affine([[1.0, 1.0]]), 2, "1111.", "1."),
    "Affine, a point": (Affine(np.eye(2), [1.0, 2.0]), 2, "111..", "1."),
    "Sphere": (Sphere(), 2, "..1..", "1."),
    "Ball": (Ball(), 2, "1.1..", ".1"),
    "Ellipsoid": (Ellipsoid([1.0, 2.0]), 2, "..1..", "1."),
    "solid": (Ellipsoid([1.0, 2.0], solid=True), 2, "1.1..", ".1"),
    "Simplex": (Simplex(), 2, "111..", "11"),
    "Monotone": (Monotone(), 3, "1111.", ".1"),
    "ConvexShape": (ConvexShape(), 3, "1111.", ".1"),
    "Hierarchy": (Hierarchy([[1, 1], [1, 0], [0, 1]]), 3, "1111.", "1."),
    "Hierarchy, nonnegative": (Hierarchy([[1, 1], [1, 0], [0, 1]], nonnegative=True), 3, "1111.", "11"),
    "Margins": (Margins((2, 2), [1, 1], [1, 1]), 4, "111..", "11"),
    "Flow": (FLOW, 3, "111..", "11"),
    "Flow without capacities": (Flow([(0, 1), (1, 0)]), 2, "1111.", "11"),
    "PointCloud": (PointCloud([[0.0, 0.0], [1.0, 0.0]]), 2, ".....", ".."),
    "Product": (Product([(Sphere(), [0, 1])]), 3, "..11.", "1."),
    "Product of boxes": (Product([(Box(0, 1), [0, 1])]), 2, "111..", ".1"),
    "Union": (Union([Sphere(), Box(0, 1)]), 2, ".....", ".."),
    "Intersection": (Intersection([Ball(), Box(0)]), 2, "1.1..", ".1"),
    "Intersection of halves": (Intersection([Box(0), Box(-1)]), 2, "1111.", ".1"),
    "Inflated": (Inflated(Sphere()), 2, "....1", ".."),
    "Inflated line": (Inflated(Affine([[1.0, 1.0]])), 2, "...11", ".."),
    "Inflated without end": (Inflated(Sphere(), np.inf), 2, "...11", ".."),
    "Penalized": (Penalized(Sphere()), 2, "...11", ".."),
    "Penalized, exact": (Penalized(Sphere(), 0.0), 2, "....1", ".."),
    "equations": (Equations("y1 + y2 = 1"), 2, "111..", "1."),
    "inequalities": (Equations("y1*y2 <= 1"), 2, "..1..", ".1"),
}


@pytest.mark.parametrize("name", SAYS)
def test_what_a_set_says_of_itself(name):
    C, T, says, functions = SAYS[name]
    C = C.fit(np.ones((1, T)))
    found = [C.convex, C.polyhedral, C.quadratic, C.unbounded, C.relaxed]
    assert "".join("1" if one else "." for one in found) == says
    assert hasattr(C, "equality") == hasattr(C, "equality_jacobian") == (functions[0] == "1")
    assert hasattr(C, "inequality") == hasattr(C, "inequality_jacobian") == (functions[1] == "1")
    assert not C.depends_on_x and not C.weighed


def test_sets_in_which_rows_have_weights_of_their_own():
    C = fitted(Inflated(Sphere(), norm="objective"))
    assert C.weighed and fitted(Inflated(Inflated(Sphere(), norm="objective"))).weighed
    assert fitted(Union([Sphere(), Inflated(Sphere(), norm="objective")])).weighed


DEFAULTS = {
    "Absolute": {},
    "Affine": {"b": 0.0},
    "Ball": {"radius": 1.0, "center": 0.0},
    "Box": {"lower": -np.inf, "upper": np.inf},
    "ConvexShape": {"positions": None, "concave": False},
    "CorrelationMatrices": {"n": None, "packed": False, "floor": 0.0},
    "Ellipsoid": {"center": 0.0, "solid": False},
    "Flow": {"supply": None, "capacity": np.inf, "lower": 0.0},
    "Hierarchy": {"nonnegative": False},
    "Huber": {"delta": 1.0},
    "Inflated": {"delta": 0.1, "norm": "euclidean"},
    "Margins": {"row_sums": None, "column_sums": None},
    "Monotone": {"increasing": True, "gap": 0.0},
    "Penalized": {"mu": 1.0},
    "Pinball": {"quantile": 0.5},
    "PointCloud": {"points": None},
    "PositiveSemidefinite": {"n": None, "packed": False, "floor": 0.0},
    "Rankings": {"ties": False},
    "Rotations": {"n": None},
    "Simplex": {"total": 1.0},
    "Sphere": {"radius": 1.0, "center": 0.0},
    "Square": {"metric": "auto", "confidence": "none"},
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_are_part_of_the_promise(name):
    parameters = inspect.signature(getattr(lawful, name)).parameters.values()
    assert {p.name: p.default for p in parameters if p.default is not p.empty} == DEFAULTS[name]


# ---------------------------------------------------------------------- where the outputs are


def test_every_set_knows_where_the_outputs_were():
    Y = np.array([[1.0, 5.0, np.nan, 0.0], [3.0, 5.0, np.nan, 0.0], [np.nan, 5.0, np.nan, 0.0]])
    C = Reals().fit(Y)
    np.testing.assert_allclose(C.location_, [2.0, 5.0, 0.0, 0.0])
    np.testing.assert_allclose(C.spread_, [1.0, 5.0, 1.0, 1.0])  # of constants their size, of zeros 1
    assert C.starts_.shape == (3, 4) and np.isfinite(C.starts_).all() and set(C.starts_[:, 0]) <= {1.0, 3.0}
    many = Reals().fit(np.arange(1000.0)[:, None])
    assert len(many.starts_) == 256 and len(np.unique(many.starts_)) == 256
    assert C.version_ is not Reals().fit(Y).version_


def test_fractions():
    violated = np.array([0.0, 0.0, 1.0, 3.0, np.inf, 1.0, 0.0])
    scale = np.array([2.0, 0.0, 0.0, 2.0, 1.0, np.inf, np.nan])
    np.testing.assert_array_equal(fraction(violated, scale), [0, 0, np.inf, 1.5, np.inf, np.inf, 0])


def test_single_precision_has_a_tolerance_of_its_own():
    assert tolerance(np.zeros(1)) == 1e-8 and tolerance(np.zeros(1), 1e-3) == 1e-3
    assert tolerance(np.zeros(1, np.float32)) == pytest.approx(100 * 2**-23)
    C = fitted(Sphere())
    assert C.contains([[1, 0], [1, 1]]).tolist() == [True, False]
    assert C.contains(np.array([[1 + 1e-6, 0.0]], np.float32))[0] and not C.contains(np.array([[1 + 1e-6, 0.0]]))[0]
    assert C.contains(np.array([[1.1, 0.0]]), tol=0.2)[0]
    for wrong in (np.ones(2), np.ones((1, 3))):
        with pytest.raises(ValueError, match=r"will not do; give \(m, 2\)"):
            C.contains(wrong)
    assert C.relative(np.array([[np.nan, 0.0], [np.inf, 0.0]])).tolist() == [np.inf, np.inf]


def test_one_number_for_all_or_one_for_each():
    assert per_task("Box", "lower", 2, 3).tolist() == [2, 2, 2] and per_task("Box", "lower", [1, 2], 2).tolist() == [1, 2]
    for wrong in ([[1.0]], np.nan, [1.0, np.nan]):
        with pytest.raises(ValueError, match="lower must be a number or a vector"):
            per_task("Box", "lower", wrong, 2)
    with pytest.raises(ValueError, match="Box describes 3 outputs, but Y has 2 columns"):
        per_task("Box", "lower", [1, 2, 3], 2)


# ---------------------------------------------------------------------- boxes and subspaces


@pytest.mark.parametrize(("lower", "upper"), [(-1.0, 0.5), (0.0, np.inf), (-np.inf, 1.0), ([-1.0, 0.5], [2.0, 0.5])])
def test_boxes_by_a_grid(lower, upper):
    """Any sign of a; where the box has no end there is no minimum for a <= 0, and the finite end is taken."""
    C = fitted(Box(lower, upper))
    inside = GRID[((C.lower_ <= GRID) & (C.upper_ >= GRID)).all(axis=1)]
    for _ in range(12):
        a, b = rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 2)
        c = C.project(b[None], a[None])[0]
        assert C.residual(c[None])[0] == 0
        for t in range(2):
            ends = [C.lower_[t], C.upper_[t]]
            if a[t] > 0:
                assert c[t] == pytest.approx(np.clip(b[t] / a[t], *ends))
            elif np.isfinite(ends).all():
                assert objective(c[t : t + 1][None], a[t], b[t]) == pytest.approx(
                    least(inside[:, t : t + 1], a[t], b[t]), abs=0.02
                )
            else:
                assert c[t] == (ends[0] if np.isfinite(ends[0]) else ends[1])


def test_how_boxes_are_written():
    C = fitted(Box([0.0, -2.0], [np.inf, 3.0]))
    c = np.array([[-1.0, 4.0], [2.0, 0.0]])
    np.testing.assert_array_equal(C.inequality(c), [[1, -6, 1], [-2, -2, -3]])
    np.testing.assert_array_equal(C.inequality_jacobian(c)[0], [[-1, 0], [0, -1], [0, 1]])
    np.testing.assert_array_equal(C.scales(c), [[1, 3, 3], [2, 3, 3]])
    assert C.interval(1) == (-2.0, 3.0) and C.interval(0) == (0.0, np.inf)
    np.testing.assert_array_equal(C.cones()[0].offset, [0, 2, 3])
    assert fitted(Box()).cones() == [] and C.unbounded
    for lower, upper in ((2.0, 1.0), (np.inf, np.inf), (-np.inf, -np.inf)):
        with pytest.raises(ValueError, match="Box is an empty set"):
            fitted(Box(lower, upper))
    assert fitted(Box(1.0, 1.0)).nearest(c).tolist() == [[1, 1], [1, 1]]
    drawn = Box([0.0, -2.0, -np.inf, -np.inf], [1.0, np.inf, 3.0, np.inf]).fit(np.zeros((1, 4))).sample(4000, 0)
    np.testing.assert_allclose(drawn.mean(axis=0), [0.5, -1.0, 2.0, 0.0], atol=0.07)
    assert drawn[:, 0].min() >= 0 and drawn[:, 0].max() <= 1 and drawn[:, 1].min() >= -2 and drawn[:, 2].max() <= 3


@pytest.mark.parametrize("signs", [(1, 1, 1), (1, 1, -1), (1, -1, -1)])
def test_subspaces_by_their_own_coordinates(signs):
    A, b = np.array([[1.0, 2.0, -1.0]]), np.array([1.5])
    C = fitted(Affine(A, b), 3)
    Z = np.linalg.svd(A)[2][1:].T
    start = A[0] * b[0] / (A[0] @ A[0])
    for _ in range(6):
        a, side = np.array(signs) * rng.uniform(0.5, 2, 3), rng.standard_normal(3)
        c = C.project(side[None], a[None])[0]
        assert A @ c == pytest.approx(b)
        H = Z.T @ np.diag(a) @ Z
        values, V = np.linalg.eigh(H)
        slope = V.T @ (Z.T @ (a * c - side))
        np.testing.assert_allclose(slope[values > 0], 0.0, atol=1e-9)  # no better point along upward curvature
        if all(s > 0 for s in signs):
            z = np.linalg.solve(H, Z.T @ (side - a * start))
            np.testing.assert_allclose(c, start + Z @ z, atol=1e-9)
        Q = np.diag(np.abs(a)) + 0.2
        w = rng.standard_normal(3)
        z = np.linalg.solve(Z.T @ Q @ Z, Z.T @ Q @ (w - start))
        np.testing.assert_allclose(C.project_form(Q, w[None])[0], start + Z @ z, atol=1e-9)
        np.testing.assert_allclose(C.project_form(Q[None], w[None])[0], start + Z @ z, atol=1e-9)
    np.testing.assert_allclose(C.nearest(start[None] + 2 * A), start[None], atol=1e-12)
    np.testing.assert_allclose(C.scales(np.array([[1.0, -2.0, 3.0]])), [[1 + 4 + 3 + 1.5]])


def test_directions_that_a_form_ignores_stay():
    C = fitted(Affine([[0.0, 0.0, 1.0]], 2.0), 3)
    Q = np.diag([1.0, 0.0, 1.0])
    w = np.array([[3.0, 4.0, 5.0]])
    np.testing.assert_allclose(C.project_form(Q, w), [[3.0, 4.0, 2.0]])
    np.testing.assert_allclose(C.project_form(Q[None], w), [[3.0, 4.0, 2.0]])


def test_equations_that_repeat_or_contradict():
    C = fitted(Affine([[1.0, 1.0], [2000.0, 2000.0], [0.0, 0.0]], [1.0, 2000.0, 0.0]))
    assert C.A_.shape == (1, 2) and C.A_[0, 0] / C.b_[0] == 1.0 and C.null_.shape == (2, 1)
    for A, b, message in (
        ([[1.0, 1.0], [1.0, 1.0]], [1.0, 1.1], "contradict each other"),
        ([[0.0, 0.0], [1.0, 1.0]], [1.0, 0.0], "a row of A is zero and its b is not"),
        ([[0.0, 0.0]], 0.0, "A not zero"),
        ([[1.0, np.inf]], 0.0, "must be finite"),
        ([[1.0, 1.0]], [1.0, 2.0], "give one value per row"),
        ([[1.0, 1.0, 1.0]], 0.0, "Affine describes 3 outputs"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(Affine(A, b))
    assert fitted(Affine([1.0, 1.0], 1.0)).sample(5, 0).sum(axis=1) == pytest.approx(np.ones(5))


# ---------------------------------------------------------------------- spheres


SIGNS = [(1.0, 2.0), (1.0, -0.5), (-1.0, -2.0), (0.0, 0.0), (1.0, 1.0), (0.0, 2.0)]


@pytest.mark.parametrize("a", SIGNS)
@pytest.mark.parametrize("b", [(0.3, -0.2), (5.0, 7.0), (0.0, 0.4), (0.4, 0.0), (0.0, 0.0), (-1e-9, 2.0)])
def test_the_sphere_and_the_ball_by_all_points(a, b):
    a, b = np.array(a), np.array(b)
    u = on_unit_sphere(a[None], b[None])[0]
    assert u @ u == pytest.approx(1, abs=1e-14)
    assert objective(u, a, b) <= least(CIRCLE, a, b) + 1e-12
    v = in_unit_ball(a[None], b[None])[0]
    disk = np.vstack([CIRCLE, GRID[(GRID**2).sum(axis=1) <= 1]])
    assert v @ v <= 1 + 1e-12 and objective(v, a, b) <= least(disk, a, b) + 1e-9


@pytest.mark.parametrize("solid", [False, True])
def test_ellipsoids_by_all_points(solid):
    C = fitted(Ellipsoid([2.0, 0.5], center=[1.0, -1.0], solid=solid))
    rim = np.array([1.0, -1.0]) + CIRCLE * [2.0, 0.5]
    inside = GRID[(((GRID - [1, -1]) / [2, 0.5]) ** 2).sum(axis=1) <= 1]
    points = np.vstack([rim, inside]) if solid else rim
    for _ in range(8):
        a, b = rng.uniform(-1, 2, 2), rng.uniform(-2, 2, 2)
        c = C.project(b[None], a[None])[0]
        assert objective(c, a, b) <= least(points, a, b) + 1e-9 and C.contains(c[None])[0]
        root = rng.standard_normal((2, 2))
        Q, w = root @ root.T + 0.01 * np.eye(2), rng.uniform(-3, 3, 2)
        values = np.einsum("it,ts,is->i", points - w, Q, points - w)
        for c in (C.project_form(Q, w[None])[0], C.project_form(Q[None], w[None])[0]):
            assert (c - w) @ Q @ (c - w) <= values.min() + 1e-9 and C.contains(c[None])[0]


def test_how_round_sets_are_written():
    C = fitted(Sphere(2.0, [1.0, 0.0]))
    c = np.array([[1.0, 3.0], [4.0, 4.0]])
    np.testing.assert_allclose(C.equality(c), [[5.0], [21.0]])
    np.testing.assert_allclose(C.equality_jacobian(c), 2 * (c - [1, 0])[:, None, :])
    np.testing.assert_allclose(C.curvature(c, np.array([[1.0], [-3.0]])), [2 * np.eye(2), -6 * np.eye(2)])
    np.testing.assert_allclose(C.scales(c), [[9 + 4], [25 + 4]], rtol=1e-4)
    far = fitted(Sphere(1.0, 1e9))
    on = np.array([[1e9 + 1.0, 1e9]])
    assert far.scales(on)[0, 0] == pytest.approx(2 + 16 * 2**-52 / 1e-8 * (2e9 + 1), rel=1e-6)
    solid = fitted(Ellipsoid([2.0, 4.0], [1.0, 0.0], solid=True))
    np.testing.assert_allclose(solid.inequality(c), [[9 / 16 - 1], [9 / 4]])
    np.testing.assert_allclose(solid.inequality_jacobian(c)[1, 0], [1.5, 0.5])
    np.testing.assert_allclose(solid.curvature(c, np.ones((2, 1)))[0], np.diag([0.5, 0.125]))
    (cone,) = solid.cones()
    np.testing.assert_allclose(cone.offset - cone.matrix @ c[1], [1.0, 1.5, 1.0])
    for wrong, message in (
        (Sphere(0.0), "must be positive and finite"),
        (Sphere(np.inf), "must be positive and finite"),
        (Ellipsoid([1.0, -1.0]), "must be positive and finite"),
        (Ball(1.0, np.inf), "center must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(wrong)


def test_moving_on_a_sphere_and_drawing_from_it():
    C = fitted(Ellipsoid([2.0, 1.0]), 2)
    c = C.sample(5, 0)
    v = rng.standard_normal((5, 2))
    along = C.tangent(c, v)
    np.testing.assert_allclose(np.einsum("mt,mt->m", C.equality_jacobian(c)[:, 0], along), 0.0, atol=1e-12)
    np.testing.assert_allclose(C.tangent(c, along), along, atol=1e-12)
    moved = C.retract(c, v)
    unit = (c + v) / [2, 1]
    np.testing.assert_allclose(moved, unit / np.linalg.norm(unit, axis=1, keepdims=True) * [2, 1])
    ball = fitted(Ball(2.0, 1.0), 3).sample(4000, 0)
    radius = np.linalg.norm(ball - 1.0, axis=1)
    assert radius.max() <= 2 and np.mean(radius < 1) == pytest.approx(1 / 8, abs=0.02), "uniform in the volume"
    np.testing.assert_allclose(np.linalg.norm(fitted(Sphere(3.0), 3).sample(10, 0), axis=1), 3.0)


# ---------------------------------------------------------------------- the simplex


def simplex_points(total, n=120):
    i, j = np.meshgrid(np.arange(n + 1), np.arange(n + 1))
    keep = i + j <= n
    i, j = i[keep], j[keep]
    return total * np.c_[i, j, n - i - j] / n


@pytest.mark.parametrize("total", [1.0, 2.5])
@pytest.mark.parametrize("signs", [(1, 1, 1), (1, 1, -1), (1, -1, -1), (-1, -1, -1), (1, 0, 1), (0, 0, 0)])
def test_the_simplex_by_a_grid(total, signs):
    C, points = fitted(Simplex(total), 3), simplex_points(total)
    for _ in range(10):
        a, b = np.array(signs) * rng.uniform(0.2, 2, 3), total * rng.uniform(-1.5, 1.5, 3)
        c = C.project(b[None], a[None])[0]
        assert c.min() >= 0 and c.sum() == pytest.approx(total, rel=1e-12)
        assert objective(c, a, b) <= least(points, a, b) + 1e-9
        assert objective(c, a, b) >= least(points, a, b) - 0.08 * total**2
    np.testing.assert_allclose(C.nearest(points[::500]), points[::500], atol=1e-12)


def test_how_the_simplex_is_written():
    C = fitted(Simplex(2.0), 3)
    c = np.array([[1.0, -0.5, 2.0]])
    np.testing.assert_allclose(C.equality(c), [[0.5]])
    np.testing.assert_allclose(C.inequality(c), -c)
    np.testing.assert_allclose(C.scales(c), [[5.5, 2, 2, 2]])
    np.testing.assert_array_equal(C.inequality_jacobian(c)[0], -np.eye(3))
    np.testing.assert_array_equal(C.equality_jacobian(c)[0], np.ones((1, 3)))
    drawn = C.sample(3000, 0)
    assert C.contains(drawn).all()
    np.testing.assert_allclose(drawn.mean(axis=0), 2 / 3, atol=0.03)
    assert drawn.var() == pytest.approx(4 * 2 / 36, rel=0.1)  # of a uniform part of a whole
    for total in (0.0, -1.0, np.inf):
        with pytest.raises(ValueError, match="total must be positive and finite"):
            fitted(Simplex(total))


# ---------------------------------------------------------------------- polyhedra


def test_shapes_are_written_by_neighbours():
    C = fitted(Monotone(gap=0.5), 3)
    np.testing.assert_array_equal(C.G_, [[1, -1, 0], [0, 1, -1]])
    np.testing.assert_array_equal(C.h_, [-0.5, -0.5])
    down = fitted(Monotone(increasing=False, gap=0.5), 3)
    np.testing.assert_array_equal(down.G_, -C.G_)
    for D, sign in ((C, 1), (down, -1)):
        drawn = D.sample(20, 0)
        assert (sign * np.diff(drawn, axis=1) >= 0.5).all()
        np.testing.assert_allclose(D.nearest(drawn), drawn)
        assert D.chain()[0] == sign and D.chain()[1].tolist() == [0, sign * 0.5, sign * 1.0]
    np.testing.assert_allclose(C.nearest(np.array([[1.0, 1.0, 3.0]])), [[0.75, 1.25, 3.0]])
    np.testing.assert_allclose(down.nearest(np.array([[1.0, 1.0, 3.0]])), [[5 / 3 + 0.5, 5 / 3, 5 / 3 - 0.5]])
    shape = fitted(ConvexShape([0.0, 1.0, 3.0, 4.0]), 4)
    np.testing.assert_allclose(shape.G_, [[-2 / 3, 1, -1 / 3, 0], [0, -1 / 3, 1, -2 / 3]])
    np.testing.assert_allclose(fitted(ConvexShape([0.0, 1.0, 3.0, 4.0], concave=True), 4).G_, -shape.G_)
    line = 2 * shape.positions_[None] - 1
    np.testing.assert_allclose(shape.inequality(line), 0.0, atol=1e-12)
    for concave, sign in ((False, 1), (True, -1)):
        drawn = fitted(ConvexShape([0.0, 1.0, 3.0, 4.0], concave), 4).sample(20, 0)
        slopes = np.diff(drawn, axis=1) / np.diff(shape.positions_)
        assert (sign * np.diff(slopes, axis=1) >= 0).all() and drawn[:, 0].std() > 0.5
    assert fitted(ConvexShape(), 3).positions_.tolist() == [0, 1, 2]
    for wrong, T, message in (
        (Monotone(gap=-1.0), 2, "gap must be finite and not negative"),
        (Monotone(gap=np.inf), 2, "gap must be finite and not negative"),
        (ConvexShape([0.0, 0.0, 1.0]), 3, "finite and growing"),
        (ConvexShape([0.0, 1.0, np.inf]), 3, "finite and growing"),
        (ConvexShape([[0.0, 1.0, 2.0]]), 3, "finite and growing"),
        (ConvexShape(), 2, "2 outputs have no shape"),
        (ConvexShape([0.0, 1.0, 2.0]), 4, "ConvexShape describes 3 outputs"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(wrong, T)


def test_isotonic_regression_by_all_partitions():
    """The best of all ways to cut the outputs into blocks of one value."""
    C = fitted(Monotone(), 4)
    for _ in range(10):
        w, a = rng.standard_normal(4), rng.uniform(0.2, 3, 4)
        best = np.inf
        for cuts in range(8):
            blocks = list(pairwise([0, *[k + 1 for k in range(3) if cuts >> k & 1], 4]))
            means = [np.average(w[i:j], weights=a[i:j]) for i, j in blocks]
            if (np.diff(means) >= 0).all():
                c = np.concatenate([[m] * (j - i) for m, (i, j) in zip(means, blocks)])
                if (a * (c - w) ** 2).sum() < best:
                    best, answer = (a * (c - w) ** 2).sum(), c
        np.testing.assert_allclose(C.project_convex((a * w)[None], a[None])[0], answer, atol=1e-12)


def test_tables_with_margins():
    C = fitted(Margins((2, 3), [1.0, 2.0], [0.5, 1.5, 1.0]), 6)
    assert C.A_.shape == (4, 6), "one of the five sums follows from the others"
    c = np.arange(6.0)[None]
    every = np.r_[c.reshape(2, 3).sum(axis=1), c.reshape(2, 3).sum(axis=0)] - [1.0, 2.0, 0.5, 1.5, 1.0]
    assert all(any(abs(one - known) < 1e-12 for known in every) for one in C.equality(c)[0])
    np.testing.assert_array_equal(C.inequality(c), -c)
    drawn = C.sample(20, 0).reshape(-1, 2, 3)
    assert drawn.min() >= -1e-9 and drawn[:, 0, 0].std() > 0.02
    np.testing.assert_allclose(drawn.sum(axis=2), [[1.0, 2.0]] * 20, atol=1e-9)
    np.testing.assert_allclose(drawn.sum(axis=1), [[0.5, 1.5, 1.0]] * 20, atol=1e-9)
    rows = fitted(Margins((2, 2), row_sums=[1.0, 3.0]), 4)
    np.testing.assert_array_equal(rows.A_, [[1, 1, 0, 0], [0, 0, 1, 1]])
    np.testing.assert_allclose(rows.scales(np.array([[1.0, -1.0, 2.0, 2.0]])), [[3, 7, 7, 7, 7, 7]])
    columns = fitted(Margins((2, 2), column_sums=[1.0, 3.0]), 4)
    np.testing.assert_array_equal(columns.A_, [[1, 0, 1, 0], [0, 1, 0, 1]])
    for wrong, message in (
        (Margins((2, 2)), "neither row_sums nor column_sums"),
        (Margins((2, 2), [1.0, 1.0], [1.0, 1.1]), "rows add up to 2, columns to 2.1"),
        (Margins((2, 2), [1.0, -1.0]), "none below 0"),
        (Margins((2, 2), [1.0]), "must be 2 finite numbers"),
        (Margins((2, 3), [1.0, 1.0]), "describes 6 outputs"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(wrong, 4)


def test_flows():
    C = fitted(FLOW, 3)
    c = np.array([[1.0, 1.0, 2.0], [0.5, 0.7, 2.0]])
    assert C.contains(c).tolist() == [True, False] and C.A_.shape == (2, 3)
    np.testing.assert_array_equal(C.h_, [0, 0, 0, 1, 5, 5])
    np.testing.assert_array_equal(C.G_, np.vstack([-np.eye(3), np.eye(3)]))
    drawn = C.sample(20, 0)
    assert C.contains(drawn).all() and drawn[:, 0].std() > 0.02
    balance = C.scales(np.array([[1.0, -1.0, 20.0]]))
    assert balance.shape == (1, 8) and (balance[0, 2:] == 20.0).all()
    assert (C.scales(c)[:, 2:] == 5.0).all()
    open_ = fitted(Flow([("a", "b"), ("b", "c")], supply={"a": None, "c": None}, lower=-np.inf), 2)
    np.testing.assert_array_equal(abs(open_.A_), [[1, 1]])
    assert (
        open_.unbounded and not len(open_.h_) and open_.contains(np.array([[2.0, 2.0], [2.0, 1.0]])).tolist() == [True, False]
    )
    for wrong, message in (
        (Flow([(0, 1), (1, 1)]), "end where they begin"),
        (Flow([(0, 1), (1, 2)], supply={7: 1.0}), "which no edge touches"),
        (Flow([(0, 1), (1, 2)], supply={0: 1.0}), "Flow is an empty set"),
        (Flow([(0, 1), (1, 2)], supply={0: 2.0, 2: -2.0}, capacity=1.0), "Flow is an empty set"),
        (Flow([(0, 1), (1, 2)], supply={0: np.inf}), "supply must be finite"),
        (Flow([(0, 1), (1, 2)], capacity=1.0, lower=2.0), r"lower exceeds capacity on edges \[0, 1\]"),
        (Flow([(0, 1)]), "Flow describes 1 outputs"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(wrong, 2)


def test_independent_rows():
    A = np.array([[1.0, 0.0, 1.0], [2.0, 0.0, 2.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    kept, sides = independent(A, np.arange(4.0))
    assert np.linalg.matrix_rank(kept) == len(kept) == 2 and all(
        A[int(k)].tolist() == row.tolist() for row, k in zip(kept, sides)
    )
    empty = np.zeros((0, 3))
    assert independent(empty, np.zeros(0))[0] is empty


# ---------------------------------------------------------------------- hierarchies


def test_reconciliation_is_generalised_least_squares():
    S = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    C = fitted(Hierarchy(S), 5)
    w = rng.standard_normal((4, 5))
    root = rng.standard_normal((5, 5))
    for Q in (np.eye(5), root @ root.T + 0.1 * np.eye(5), np.diag([1e-8, 1.0, 1e6, 1.0, 2.0])):
        expected = w @ (S @ np.linalg.solve(S.T @ Q @ S, S.T @ Q)).T
        np.testing.assert_allclose(C.project_form(Q, w), expected, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(C.project_form(np.tile(Q, (4, 1, 1)), w), expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(C.nearest(w), w @ (S @ np.linalg.pinv(S)).T, atol=1e-12)
    np.testing.assert_allclose(C.A_, [[1, 0, -1, -1, -1], [0, 1, -1, -1, 0]])
    np.testing.assert_allclose(C.basis_, S)
    mixed = fitted(Hierarchy([[1.0, 1.0], [1.0, -1.0], [2.0, 0.0]]), 3)  # no row is a single series of size 1
    assert mixed.A_.shape == (1, 3) and abs(mixed.equality(np.array([[3.0, 1.0, 4.0]]))).max() < 1e-12
    assert abs(mixed.equality(np.array([[3.0, 1.0, 5.0]]))).max() > 0.1
    drawn = fitted(Hierarchy(S, nonnegative=True), 5).sample(10, 0)
    assert drawn.min() >= 0 and not hasattr(fitted(Hierarchy(S, nonnegative=True), 5), "nearest")
    np.testing.assert_allclose(drawn[:, 0], drawn[:, 2:].sum(axis=1))


def test_covariances_of_forecasts():
    C = Hierarchy([[1, 1], [1, 0], [0, 1]])
    R = rng.standard_normal((30, 3))
    R[0, 0] = np.nan
    np.testing.assert_array_equal(C.covariance(method="ols"), np.eye(3))
    np.testing.assert_array_equal(C.covariance(method="wls_struct"), np.diag([2, 1, 1]))
    np.testing.assert_allclose(C.covariance(R, "wls_var"), np.diag(np.nanmean(R**2, axis=0)))
    shrunk = C.covariance(R)
    np.testing.assert_allclose(np.diag(shrunk), np.nanmean(R**2, axis=0))
    assert np.linalg.eigvalsh(shrunk).min() > 0
    for residuals, method in ((None, "shrink"), (R[:, :2], "shrink"), (R[:1], "wls_var")):
        with pytest.raises(ValueError, match="at least two of each output"):
            C.covariance(residuals, method)
    C.covariance(R[1:3], "wls_var")
    with pytest.raises(ValueError, match="unknown method 'mint'"):
        C.covariance(R, "mint")


def test_hierarchies_that_are_none():
    for S, message in (
        (np.eye(2), "no output is a sum of others"),
        (np.ones(2), "will not do; give a finite"),
        (np.zeros((0, 2)), "will not do; give a finite"),
        ([[np.nan, 1.0]], "will not do; give a finite"),
        (np.ones((3, 1)), "Hierarchy describes 3 outputs"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(Hierarchy(S), 2)
    with pytest.raises(ValueError, match="in a circle"):
        Hierarchy.from_groups({"a": ["b"], "b": ["a"]}, ["a", "b", "c"])
    with pytest.raises(ValueError, match=r"\['d'\] are not among the outputs"):
        Hierarchy.from_groups({"a": ["d"]}, ["a", "b"])


# ---------------------------------------------------------------------- points


def test_points_once_each_in_their_order():
    C = fitted(PointCloud([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [3.0, 4.0]]))
    assert (
        C.points_.tolist() == [[1, 0], [0, 0], [3, 4]] and C.which_.tolist() == [0, 1, 0, 2] and C.counts_.tolist() == [2, 1, 1]
    )
    c = np.array([[3.0, 4.5], [0.1, 0.0], [np.nan, 0.0]])
    np.testing.assert_allclose(C.residual(c), [0.5, 0.1, np.inf])
    np.testing.assert_allclose(C.relative(c), [0.1, np.inf, np.inf])
    assert C.relative(np.zeros((1, 2)))[0] == 0
    learned = PointCloud().fit(np.array([[1.0, 2.0], [np.nan, 1.0], [1.0, 2.0]]))
    assert learned.points_.tolist() == [[1.0, 2.0]]
    drawn = C.sample(300, 0)
    assert 0.2 < (drawn == [1, 0]).all(axis=1).mean() < 0.45, "points, not their repetitions, are drawn"
    wide = rng.standard_normal((6, 13))
    D = PointCloud(wide).fit(wide)
    assert D.tree_ is None and PointCloud(wide[:, :12]).fit(wide[:, :12]).tree_ is not None
    np.testing.assert_allclose(D.residual(wide + 1e-3), 1e-3 * 13**0.5)
    assert D.residual(wide[:0]).shape == (0,)
    for points, message in (
        (np.ones(2), "give one row per point"),
        (np.ones((0, 2)), "points has no rows"),
        ([[1.0, np.nan]], "give complete rows only"),
        (np.ones((1, 3)), "PointCloud describes 3 outputs"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(PointCloud(points))
    with pytest.raises(ValueError, match="no row of Y is complete"):
        PointCloud().fit(np.array([[np.nan, 1.0]]))


# ---------------------------------------------------------------------- tubes and prices


def test_tubes_by_the_distance_to_a_circle():
    C = fitted(Inflated(Sphere(), 0.25))
    c = np.array([[1.2, 0.0], [1.5, 0.0], [0.0, 0.5], [0.0, 0.0], [np.nan, 0.0]])
    np.testing.assert_allclose(C.residual(c), [0, 0.25, 0.25, 0.75, np.inf])
    np.testing.assert_allclose(C.relative(c), [0, 1.25 / 3.25, 0.6, 1, np.inf], rtol=1e-4)  # the circle's own scale counts
    np.testing.assert_allclose(C.law_residual(c[:2]), [0.44, 1.25])
    drawn = C.sample(2000, 0)
    distance = abs(np.linalg.norm(drawn, axis=1) - 1)
    assert distance.max() <= 0.25 + 1e-9 and C.contains(drawn).all() and distance.mean() > 0.08
    far = fitted(Inflated(Sphere(), 0.25, norm="objective")).in_metric(np.array([4.0, 1.0]))
    np.testing.assert_allclose(far.residual(np.array([[1.2, 0.0], [0.0, 1.2]])), [0.15, 0.0], atol=1e-9)
    everything = fitted(Inflated(Sphere(), np.inf))
    assert everything.residual(c).tolist() == [0, 0, 0, 0, np.inf]
    with pytest.raises(ValueError, match="cannot be sampled"):
        everything.sample(1)
    exact = fitted(Inflated(Sphere(), 0.0))
    assert exact.contains(np.array([[1.0, 0.0], [1.001, 0.0]])).tolist() == [True, False]
    for wrong, message in (
        (Inflated(Sphere(), -0.1), "needs delta >= 0"),
        (Inflated(Sphere(), np.nan), "needs delta >= 0"),
        (Inflated(Sphere(), 0.1, "manhattan"), "unknown norm"),
        (Penalized(Sphere(), -1.0), "needs mu >= 0"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(wrong)


def test_prices_allow_everything():
    C = fitted(Penalized(Sphere(), 2.0))
    c = np.array([[3.0, 0.0], [np.inf, 0.0]])
    assert C.relative(c).tolist() == [0.0, np.inf] and C.residual(c[:1]).tolist() == [8.0]
    assert fitted(Penalized(Sphere(), 0.0)).relative(c[:1])[0] > 0.5
    np.testing.assert_allclose(np.linalg.norm(C.sample(4, 0), axis=1), 1.0)


def test_lengths_in_a_metric():
    r = np.array([[3.0, 4.0], [0.0, 1.0]])
    np.testing.assert_allclose(length(r), [5, 1])
    np.testing.assert_allclose(length(r, np.array([1.0, 4.0])), [np.sqrt(9 + 64), 2])
    np.testing.assert_allclose(length(r, np.array([[1.0, 0.5], [0.5, 4.0]])), [np.sqrt(9 + 12 + 64), 2])
    np.testing.assert_allclose(length(r, np.array([[1.0, -1.0], [-1.0, 1.0]])), [1, 1])
    np.testing.assert_allclose(length(np.array([[1.0, 1.0]]), np.array([[1.0, -1.0 - 1e-17], [-1.0, 1.0]])), [0.0])


NEAR = {
    "circle": (Sphere(), CIRCLE),
    "equation": (Equations("y1**2 + y2**2 = 1"), CIRCLE),
    "points": (PointCloud([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])),
    "union": (Union([Sphere(0.5), Sphere(1.5)]), np.vstack([0.5 * CIRCLE, 1.5 * CIRCLE])),
    "blocks": (
        Product([(Box(0, 1), [1]), (Box(-1, 0.5), [0])]),
        GRID[(GRID >= [-1, 0]).all(axis=1) & (GRID <= [0.5, 1]).all(axis=1)],
    ),
    "tube": (Inflated(Sphere(), 0.2), GRID[abs(np.linalg.norm(GRID, axis=1) - 1) <= 0.2]),
}


METRICS = {"plain": None, "weights": np.array([1.0, 2.0]), "full": np.array([[1.0, 0.3], [0.3, 2.0]])}
# A tube in another metric is another tube; without a projection in a full metric, a point near the nearest is found.
ASKED = [(name, kind) for name in NEAR for kind in METRICS if (name, kind) not in (("tube", "weights"), ("tube", "full"))]
ASKED = [pair for pair in ASKED if pair not in (("equation", "full"), ("blocks", "full"))]


@pytest.mark.parametrize(("name", "kind"), ASKED)
def test_the_nearest_point_in_a_metric(name, kind):
    metric = METRICS[kind]
    C, points = NEAR[name]
    C = fitted(C)
    c = rng.uniform(-1.8, 1.8, (6, 2)) if name != "equation" else 1.2 * CIRCLE[::7000]
    found = near_point(C, c, metric)
    assert C.relative(found).max() < 1e-7
    for one, target in zip(found, c):
        best, mine = length(points - target, metric).min(), length((one - target)[None], metric)[0]
        assert mine <= best + (0.02 if name in ("tube", "blocks") else 1e-4)


# ---------------------------------------------------------------------- sets of sets


def test_products_put_blocks_in_their_places():
    C = Product([(Sphere(), ["c", "a"]), (Box(0, 1), ["d"])]).fit(np.zeros((1, 4)), outputs=["a", "b", "c", "d"])
    c = np.array([[3.0, 7.0, 4.0, 5.0]])
    np.testing.assert_allclose(C.nearest(c), [[0.6, 7.0, 0.8, 1.0]])
    np.testing.assert_allclose(C.project(c, np.ones((1, 4))), [[0.6, 7.0, 0.8, 1.0]])
    np.testing.assert_allclose(C.equality(c), [[24.0]])
    np.testing.assert_allclose(C.equality_jacobian(c), [[[6, 0, 8, 0]]])
    np.testing.assert_allclose(C.inequality(c), [[-5, 4]])
    np.testing.assert_allclose(C.inequality_jacobian(c), [[[0, 0, 0, -1], [0, 0, 0, 1]]])
    np.testing.assert_allclose(C.curvature(c, np.array([[2.0, 5.0, 7.0]])), [np.diag([4.0, 0, 4.0, 0])])
    np.testing.assert_allclose(C.residual(c), [24.0])
    np.testing.assert_allclose(C.relative(c), [4.0])  # of the box: 4 beyond 1; of the sphere 24 / 26
    drawn = C.sample(5, 0)
    np.testing.assert_allclose(drawn[:, 0] ** 2 + drawn[:, 2] ** 2, 1.0)
    assert ((drawn[:, 3] >= 0) & (drawn[:, 3] <= 1)).all()
    assert C.at(np.zeros((1, 1))) is C and C.rows(np.arange(1)) is C
    for blocks, message in (
        ([(Sphere(), [0, 1]), (Box(), [1])], r"outputs \[1\] are in more than one place"),
        ([(Sphere(), [0, 0])], r"outputs \[0\] are in more than one place"),
        ([(Sphere(), [])], "a block has no outputs"),
        ([(Sphere(), [4])], "there is no output 4, Y has 4 columns"),
        ([(Sphere(), [-1])], "there is no output -1"),
        ([(Sphere(), ["z"])], "no output is called 'z'"),
        ([(Sphere(), "ab")], "takes pairs of a set and its outputs"),
        ([(Sphere(), 3)], "takes pairs"),
        ([Sphere()], "takes pairs"),
    ):
        with pytest.raises(ValueError, match=message):
            Product(blocks).fit(np.zeros((1, 4)), outputs=["a", "b", "c", "d"])
    with pytest.raises(ValueError, match="fit got no names; use column numbers"):
        Product([(Sphere(), ["a"])]).fit(np.zeros((1, 4)))


def test_unions_are_as_good_as_their_best_member():
    C = fitted(Union([Sphere(1.0), Sphere(3.0)]))
    c = np.array([[1.5, 0.0], [2.9, 0.0]])
    np.testing.assert_allclose(C.residual(c), [1.25, 9 - 2.9**2])
    np.testing.assert_allclose(C.relative(c), [1.25 / 3.25, (9 - 2.9**2) / (9 + 2.9**2)], rtol=1e-4)
    radius = np.linalg.norm(C.sample(400, 0), axis=1)
    assert 120 < np.isclose(radius, 1).sum() < 280 and np.isclose(radius, 1).sum() + np.isclose(radius, 3).sum() == 400
    with pytest.raises(ValueError, match="Union has no members"):
        fitted(Union([]))


def test_intersections_are_as_bad_as_their_worst_member():
    C = fitted(Intersection([Ball(), Box(0, 0.6)]))
    c = np.array([[2.0, 0.5], [0.7, 0.1], [0.5, 0.5]])
    np.testing.assert_allclose(C.residual(c), [3.25, 0.1, 0.0], atol=1e-12)
    np.testing.assert_allclose(C.inequality(c)[0], [3.25, -2.0, -0.5, 1.4, -0.1])
    assert [cone.kind for cone in C.cones()] == ["second_order", "nonnegative"] and C.convex
    finite = fitted(Intersection([PointCloud([[0.1, 0.1], [0.9, 0.9], [0.2, -0.5]]), Box(0)]))
    assert finite.points_.tolist() == [[0.1, 0.1], [0.9, 0.9]] and finite.residual(np.array([[0.9, 0.8]]))[0] == pytest.approx(
        0.1
    )
    assert {tuple(row) for row in finite.sample(30, 0)} == {(0.1, 0.1), (0.9, 0.9)}
    with pytest.raises(ValueError, match="no point of PointCloud satisfies"):
        fitted(Intersection([PointCloud([[-1.0, 0.0]]), Box(0)]))
    with pytest.raises(TypeError, match="depends on x"):
        Intersection([PointCloud([[-1.0, 0.0]]), Equations("y1 = x1")]).fit(np.zeros((1, 2)), np.zeros((1, 1)))
    again = Intersection([PointCloud(), Box(0)]).fit(np.array([[1.0, 1.0]]))
    again.members = [Box(0), Ball()]
    assert not hasattr(again.fit(np.zeros((1, 2))), "points_"), "of an earlier fit"


def test_sets_of_sets_follow_their_inputs():
    moving = Equations("y1 = x1")
    for C in (Product([(moving, [0])]), Union([moving, Sphere()]), Intersection([moving, Box(-9, 9)]), Inflated(moving, 0.1)):
        C = C.fit(np.zeros((2, 2)), np.zeros((2, 1)))
        assert C.depends_on_x
        bound = C.at(np.array([[1.0], [2.0]]))
        assert bound is not C and bound.contains(np.array([[1.0, 0.5], [2.0, 0.5]])).all()
        assert not bound.contains(np.array([[2.5, 0.5], [2.5, 0.5]])).any()
        assert bound.rows(np.array([1])).contains(np.array([[2.0, 0.5]])).all()
