"""The decoders of simple sets against brute force, scipy and each other."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone

from lawful._array import to_numpy
from lawful.decoders.assignments import Assignments
from lawful.decoders.base import LOW_CONFIDENCE, NOT_CONVERGED, OK
from lawful.decoders.chain import Chain
from lawful.decoders.conic import Conic
from lawful.decoders.convex import ConvexDescent
from lawful.decoders.coordinate import Coordinate
from lawful.decoders.enumeration import Enumeration
from lawful.decoders.projection import FormProjection, Projection
from lawful.decoders.riemannian import Riemannian
from lawful.losses.objective import Objective, SmoothObjective
from lawful.losses.quadratic import Quadratic, QuadraticForm
from lawful.losses.regression import Pinball
from lawful.sets.algebra import Product
from lawful.sets.cloud import PointCloud
from lawful.sets.elementary import Affine, Box, Reals
from lawful.sets.logic.law import Logic
from lawful.sets.manifolds import PositiveSemidefinite, Rotations, Stiefel
from lawful.sets.round import Ball, Ellipsoid, Sphere
from lawful.sets.shapes import Monotone
from lawful.sets.simplex import Simplex


class LogCosh:
    """A smooth robust loss, close to |c - y|."""

    def __call__(self, c, y):
        return abs(c - y) + np.log1p(np.exp(-2 * abs(c - y))) - np.log(2)

    def derivative(self, c, y):
        return np.tanh(c - y)

    def curvature(self, c, y):
        return np.ones_like(c - y)


class Absolute:
    def __call__(self, c, y):
        return abs(c - y)

    def breakpoints(self, atoms):
        return atoms


class Hinge:
    def __call__(self, c, y):
        gap = 1 - c * y
        return (gap + abs(gap)) / 2

    def breakpoints(self, atoms):
        return np.asarray([-1.0, 1.0])


def set_(C, T):
    return clone(C).fit(np.zeros((1, T)))


def solve(decoder, F, C):
    assert decoder.missing(F, C) == []
    return decoder.solve(F, C, None)


def quadratic(m, T, seed=0, signed=False, xp=np):
    rng = np.random.default_rng(seed)
    a = rng.uniform(0.1, 3.0, (m, T)) * (np.sign(rng.uniform(-1, 4, (m, T))) if signed else 1)
    return Quadratic(xp.asarray(a), xp.asarray(a * rng.standard_normal((m, T))))


def form(m, T, seed=0, xp=np):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((m, T, T))
    return QuadraticForm(xp.asarray(B @ B.transpose(0, 2, 1) / T + 0.1 * np.eye(T)), xp.asarray(rng.standard_normal((m, T))))


def smooth(m, T, k=6, seed=0):
    rng = np.random.default_rng(seed)
    atoms = [rng.standard_normal(k) * 2 for _ in range(T)]
    return SmoothObjective([LogCosh()] * T, [rng.uniform(0.05, 1, (m, k)) for _ in range(T)], atoms)


def pinballs(m, T, k=9, seed=0, signed=False, xp=np):
    """Quantiles 1/(T+1), ..., T/(T+1), each of labels of its own."""
    rng = np.random.default_rng(seed)
    scores = [rng.uniform(-0.4 if signed else 0.05, 1, (m, k)) for _ in range(T)]
    losses = [Pinball((t + 1) / (T + 1)) for t in range(T)]
    return Objective(losses, [xp.asarray(s) for s in scores], [xp.asarray(rng.standard_normal(k)) for _ in range(T)])


PAIRS = [
    (Chain(), pinballs, Monotone(), 4),
    (Chain(), pinballs, Monotone(increasing=False, gap=0.2), 3),
    (Projection(), quadratic, Sphere(), 3),
    (Projection(), quadratic, Simplex(), 4),
    (FormProjection(), form, Affine([1.0, 1.0, 1.0, 1.0], 1.0), 4),
    (FormProjection(), form, Ellipsoid([1.0, 2.0, 3.0]), 3),
    (Enumeration(), quadratic, PointCloud(np.random.default_rng(0).standard_normal((50, 3))), 3),
    (Enumeration(), form, PointCloud(np.random.default_rng(0).standard_normal((50, 3))), 3),
    (Assignments(), quadratic, Logic(["y1 -> y2", "at_most(2, y2, y3, y4)"]), 5),
    (ConvexDescent(), quadratic, Simplex(), 4),
    (ConvexDescent(), form, Ball(), 3),
    (ConvexDescent(), quadratic, PositiveSemidefinite(packed=True), 6),
    (ConvexDescent(), form, Product([(Ball(), [0, 2]), (Simplex(), [1, 3])]), 4),
    (Riemannian(), quadratic, Rotations(), 4),
    (Riemannian(), quadratic, Rotations(), 9),
    (Riemannian(), form, Stiefel(3, 2), 6),
    (Riemannian(), form, Sphere(), 3),
]


@pytest.mark.parametrize("decoder, make, C, T", PAIRS, ids=lambda p: getattr(p, "__name__", str(p).split(" object")[0]))
def test_contract(decoder, make, C, T):
    """Feasible, never beaten by samples, independent of the batch, the same in another array library."""
    F, C = make(23, T), set_(C, T)
    d = solve(decoder, F, C)
    assert d.c.shape == (23, T) and (d.status == "ok").all()
    assert C.contains(d.c).all() and (d.residual <= 1e-8).all() and (d.margin >= 0).all()
    np.testing.assert_allclose(d.value, F.value(d.c))
    assert (d.value <= F.costs(C.sample(1000, random_state=1)).min(1) + 1e-9).all()
    assert solve(decoder, make(0, T), C).c.shape == (0, T)
    order = np.random.default_rng(0).permutation(23)
    np.testing.assert_allclose(solve(decoder, F.rows(order), C).c, d.c[order], atol=1e-8)
    single = np.concatenate([solve(decoder, F.rows(np.array([i])), C).c for i in range(5)])
    np.testing.assert_allclose(single, d.c[:5], atol=1e-8)
    elsewhere = solve(decoder, make(23, T, xp=strict), C)
    np.testing.assert_allclose(to_numpy(elsewhere.c), d.c, atol=1e-7)
    assert elsewhere.c.__array_namespace__().__name__ == "array_api_strict"
    np.testing.assert_array_equal(elsewhere.status, d.status)


@pytest.mark.torch
@pytest.mark.parametrize("decoder, make, C, T", PAIRS, ids=lambda p: getattr(p, "__name__", str(p).split(" object")[0]))
def test_torch(decoder, make, C, T):
    import torch

    C = set_(C, T)
    d = solve(decoder, make(23, T, xp=torch), C)
    assert isinstance(d.c, torch.Tensor)
    np.testing.assert_allclose(d.c.numpy(), solve(decoder, make(23, T), C).c, atol=1e-7)


def scipy_best(F, i, C, start):
    row = F.rows(np.array([i]))
    found = minimize(
        lambda c: row.value(c[None])[0],
        start,
        jac=lambda c: row.gradient(c[None])[0],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
        constraints=[
            {"type": kind, "fun": lambda c, f=f, s=s: s * f(c[None])[0], "jac": lambda c, j=j, s=s: s * j(c[None])[0]}
            for kind, s, f, j in C
        ],
    )
    return found.x


@pytest.mark.parametrize("make", [quadratic, form, smooth], ids=lambda f: f.__name__)
@pytest.mark.parametrize("C, T", [(Simplex(2.0), 4), (Ball(0.7, center=0.2), 3)], ids=["simplex", "ball"])
def test_convex_descent_matches_scipy(make, C, T):
    C, F = set_(C, T), make(12, T, seed=5)
    d = solve(ConvexDescent(), F, C)
    laws = [("ineq", -1.0, C.inequality, C.inequality_jacobian)]
    if hasattr(C, "equality"):
        laws.append(("eq", 1.0, C.equality, C.equality_jacobian))
    for i in range(12):
        best = scipy_best(F, i, laws, C.nearest(F.center[i : i + 1])[0])
        np.testing.assert_allclose(d.c[i], best, atol=2e-7)
    if make is quadratic:
        np.testing.assert_allclose(d.c, C.project(F.b, F.a), atol=1e-9)
    if make is form and hasattr(C, "project_form"):
        np.testing.assert_allclose(d.c, C.project_form(F.Q, F.w), atol=1e-9)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("make", [quadratic, form], ids=lambda f: f.__name__)
def test_convex_descent_on_semidefinite_matrices_matches_scipy(make, packed):
    """S = L L' makes the cone unconstrained; scipy then needs only a gradient."""
    T = 3 if packed else 4
    C, F = set_(PositiveSemidefinite(packed=packed), T), make(10, T, seed=2)
    d = solve(ConvexDescent(), F, C)
    for i in range(10):
        row = F.rows(np.array([i]))

        def value(l, row=row):
            L = l.reshape(2, 2)
            return row.value(C._flat((L @ L.T)[None]))[0]

        starts = np.random.default_rng(i).standard_normal((4, 4))
        best = min((minimize(value, s, tol=1e-14) for s in starts), key=lambda r: r.fun)
        assert d.value[i] <= best.fun + 1e-10
        L = best.x.reshape(2, 2)
        np.testing.assert_allclose(d.c[i], C._flat((L @ L.T)[None])[0], atol=1e-5)


def test_convex_descent_closed_rows_and_failures():
    C = set_(Ball(), 3)
    a = np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]])
    F = Quadratic(a, a * np.array([[3.0, 4.0, 0.0]]))
    d = solve(ConvexDescent(), F, C)
    np.testing.assert_allclose(d.c[0], [0.6, 0.8, 0.0])
    assert d.iterations[0] == 0 and d.iterations[1] > 0
    np.testing.assert_array_equal(F.isotropic(), [True, False])
    early = solve(ConvexDescent(max_iter=2), F, C)
    np.testing.assert_array_equal(early.code, [OK, NOT_CONVERGED])
    doubtful = solve(ConvexDescent(), Quadratic(-a, a), C)
    assert (doubtful.code == LOW_CONFIDENCE).all() and C.contains(doubtful.c).all()
    flat = solve(ConvexDescent(), Quadratic(0 * a, np.ones_like(a)), C)
    np.testing.assert_allclose(flat.c, 3**-0.5, atol=1e-7)
    assert ConvexDescent().missing(F, set_(Sphere(), 3)) == ["Sphere is not convex"]
    assert "PointCloud.nearest" in ConvexDescent().missing(F, PointCloud(np.eye(3)).fit(np.eye(3)))


def test_riemannian_beats_many_random_rotations():
    C, F = set_(Rotations(), 9), quadratic(40, 9, seed=3)
    d = solve(Riemannian(), F, C)
    assert (d.status == "ok").all() and C.contains(d.c, 1e-12).all()
    assert (d.value <= F.costs(C.sample(20_000, random_state=0)).min(1)).all()
    gradient = C.tangent(d.c, F.gradient(d.c))
    assert np.abs(gradient).max() < 1e-7 * np.abs(F.gradient(d.c)).max()
    assert np.isfinite(d.margin).any()


def test_riemannian_angle_matches_a_dense_grid():
    """Rotations of the plane are one angle."""
    C, F = set_(Rotations(), 4), quadratic(30, 4, seed=1, signed=True)
    t = np.linspace(0, 2 * np.pi, 100_001)
    grid = np.stack([np.cos(t), -np.sin(t), np.sin(t), np.cos(t)], axis=1)
    d = solve(Riemannian(), F, C)
    best = F.costs(grid).min(1)
    np.testing.assert_allclose(d.value, best, atol=1e-7)
    assert (d.code == np.where((F.a <= 0).any(1), LOW_CONFIDENCE, OK)).all()


def test_riemannian_equal_weights_of_any_sign():
    """On a manifold of constant norm the sign of a does not matter (erratum E4): the answer is nearest(b)."""
    C = set_(Rotations(), 9)
    b = np.random.default_rng(0).standard_normal((3, 9))
    F = Quadratic(np.array([[1.0], [-1.0], [0.0]]) * np.ones((3, 9)), b)
    d = solve(Riemannian(), F, C)
    np.testing.assert_array_equal(d.iterations, 0)
    np.testing.assert_allclose(d.c, C.nearest(b))
    assert (d.value <= F.costs(C.sample(5000, 0)).min(1)).all()


def test_riemannian_smooth_loss_and_margin():
    """Two symmetric wells on the circle: the margin is their gap."""
    C = set_(Sphere(), 2)
    F = Quadratic(np.array([[1.0, 3.0]]), np.array([[1e-3, 0.0]]))
    d = solve(Riemannian(), F, C)
    np.testing.assert_allclose(d.c, [[1.0, 0.0]], atol=1e-6)
    assert d.margin[0] == pytest.approx(4e-3, rel=1e-3)
    F = smooth(20, 2, seed=4)
    t = np.linspace(0, 2 * np.pi, 50_001)
    best = F.costs(np.c_[np.cos(t), np.sin(t)]).min(1)
    np.testing.assert_allclose(solve(Riemannian(), F, C).value, best, atol=1e-6)
    early = solve(Riemannian(max_iter=1), F, C)
    assert (early.code == NOT_CONVERGED).all() and C.contains(early.c).all()


def test_enumeration_is_the_argmin_with_its_margin():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((30, 4))
    points[10] = points[3]
    C = PointCloud(points).fit(points)
    for F in (quadratic(50, 4, signed=True), form(50, 4), smooth(50, 4)):
        table = np.stack([F.value(np.tile(p, (50, 1))) for p in C.points_], axis=1)
        d = solve(Enumeration(), F, C)
        np.testing.assert_array_equal(d.c, C.points_[table.argmin(1)])
        two = np.sort(table, axis=1)[:, :2]
        np.testing.assert_allclose(d.margin, two[:, 1] - two[:, 0], atol=1e-12)
        assert (d.residual == 0).all() and (d.margin > 0).all()
    alone = PointCloud(points[:1]).fit(points)
    assert np.isinf(solve(Enumeration(), quadratic(5, 4), alone).margin).all()


def test_enumeration_in_chunks_and_by_tree(monkeypatch):
    rng = np.random.default_rng(0)
    points = rng.standard_normal((3000, 3))
    C = PointCloud(points).fit(points)
    a = np.where(rng.random((200, 1)) < 0.5, 2.0, rng.uniform(0.5, 2, (200, 3)))  # half the rows have equal weights
    F = Quadratic(a, a * rng.standard_normal((200, 3)))
    assert 50 < F.isotropic().sum() < 150
    by_tree = solve(Enumeration(), F, C)
    monkeypatch.setattr("lawful.decoders.enumeration.TREE_POINTS", 10**9)
    dense = solve(Enumeration(), F, C)
    monkeypatch.setattr("lawful.decoders.enumeration.CHUNK_BYTES", 8 * 3000 * 7)
    chunked = solve(Enumeration(), F, C)
    for other in (by_tree, chunked):
        np.testing.assert_array_equal(other.c, dense.c)
        np.testing.assert_allclose(other.margin, dense.margin, atol=1e-12)
    np.testing.assert_array_equal(dense.c, points[F.costs(points).argmin(1)])


@pytest.mark.parametrize("tree", [True, False])
def test_enumeration_ties_go_to_the_lowest_index(tree, monkeypatch):
    monkeypatch.setattr("lawful.decoders.enumeration.TREE_POINTS", 10 if tree else 10**9)
    grid = np.stack(np.meshgrid(*[np.arange(8.0)] * 3, indexing="ij"), -1).reshape(-1, 3)
    C = PointCloud(grid).fit(grid)
    F = Quadratic(np.ones((2, 3)), np.array([[2.5, 2.5, 2.5], [3.0, 3.5, 3.0]]))
    d = solve(Enumeration(), F, C)
    np.testing.assert_array_equal(d.c, [[2.0, 2.0, 2.0], [3.0, 3.0, 3.0]])
    np.testing.assert_array_equal(d.margin, 0.0)


def test_projection_reports_doubtful_rows_and_needs():
    F = quadratic(30, 3, signed=True)
    d = solve(Projection(), F, set_(Sphere(), 3))
    np.testing.assert_array_equal(d.code, np.where((F.a <= 0).any(1), LOW_CONFIDENCE, OK))
    assert Projection().missing(form(2, 3), set_(Sphere(), 3)) == ["QuadraticForm.a", "QuadraticForm.b"]
    assert FormProjection().missing(form(2, 3), set_(Simplex(), 3)) == ["Simplex.project_form"]


@pytest.mark.parametrize("C", [Reals(), Box(-0.4, 0.3), Box([-np.inf, 0.2], [0.1, np.inf])], ids=str)
@pytest.mark.parametrize("loss", [LogCosh(), Absolute()], ids=["smooth", "piecewise"])
def test_coordinate_matches_a_dense_search(C, loss):
    rng = np.random.default_rng(0)
    C = set_(C, 2)
    atoms = [np.sort(rng.standard_normal(7)) for _ in range(2)]
    F = Objective([loss] * 2, [rng.uniform(0.1, 1, (25, 7)) for _ in range(2)], atoms)
    d = solve(Coordinate(), F, C)
    assert (d.status == "ok").all() and C.contains(d.c, 0.0).all()
    for t in range(2):
        low, high = np.clip(C.interval(t), -4, 4)
        for i in range(25):

            def cost(v, t=t, i=i):
                return F.table(t, np.atleast_1d(v))[i]

            grid = np.concatenate([np.linspace(low, high, 4001), np.clip(atoms[t], low, high)])
            at = grid[cost(grid).argmin()]
            assert cost(d.c[i, t])[0] <= cost(at)[0] + 1e-13
            if isinstance(loss, Absolute):
                assert d.c[i, t] == pytest.approx(at, abs=0)  # a weighted median is an atom, exactly
            else:
                slope = np.sum(F.scores[t][i] * loss.derivative(d.c[i, t], atoms[t]))
                inside = low < d.c[i, t] < high
                assert abs(slope) < 3e-7 if inside else slope * (d.c[i, t] - (low + high) / 2) <= 0


def test_coordinate_plateaus_margins_and_unbounded_scores():
    C = set_(Reals(), 1)
    labels = [np.array([-1.0, 1.0])]
    sure = Objective([Hinge()], [np.array([[1.0, 0.0], [0.0, 1.0], [0.3, 0.7]])], labels)
    d = solve(Coordinate(), sure, C)
    np.testing.assert_allclose(d.c[:, 0], [-1.0, 1.0, 1.0])  # the near end of each plateau, not its artificial end
    assert (d.status == "ok").all() and np.isinf(d.margin).all()
    falling = Objective([Absolute()], [np.array([[-1.0, 0.5]])], [np.array([0.0, 1.0])])
    assert solve(Coordinate(), falling, C).code[0] == NOT_CONVERGED
    boxed = solve(Coordinate(), falling, set_(Box(-5.0, 2.0), 1))
    assert boxed.code[0] == LOW_CONFIDENCE and boxed.c[0, 0] == -5.0
    wells = Objective([Absolute()], [np.array([[1.0, -0.9, 1.1]])], [np.array([-1.0, 0.0, 1.0])])
    d = solve(Coordinate(), wells, C)
    costs = wells.table(0, np.array([-1.0, 1.0]))[0]
    assert d.c[0, 0] == 1.0 and d.margin[0] == pytest.approx(costs[0] - costs[1])
    assert Coordinate().missing(sure, set_(Sphere(), 1)) == ["Sphere.interval"]


@pytest.mark.parametrize("law", [Monotone(), Monotone(gap=0.3), Monotone(increasing=False)], ids=str)
def test_chains_are_what_linear_programming_finds(law):
    C, F = set_(law, 5), pinballs(20, 5)
    d = solve(Chain(), F, C)
    np.testing.assert_allclose(d.value, solve(Conic(), F, C).value, atol=1e-7)
    assert (d.status == "ok").all()


def test_chains_with_negative_scores_are_the_best_of_all():
    """Every rising choice of corners, one by one; and an objective that falls without end is no answer."""
    C, F = set_(Monotone(), 3), pinballs(40, 3, k=5, signed=True)
    v = np.sort(np.concatenate(F.atoms))
    rising = np.array([(a, b, c) for i, a in enumerate(v) for j, b in enumerate(v[i:], i) for c in v[j:]])
    d = solve(Chain(), F, C)
    good = (d.code == OK) | (d.code == LOW_CONFIDENCE)
    assert good.sum() > 10
    np.testing.assert_allclose(d.value[good], F.costs(rising).min(axis=1)[good], atol=1e-12)
    falling = Objective([Pinball(0.5)] * 2, [np.array([[-1.0]])] * 2, [np.array([0.0])] * 2)
    assert solve(Chain(), falling, set_(Monotone(), 2)).code[0] == NOT_CONVERGED
    assert "piecewise linear losses" in Chain().missing(quadratic(2, 3), C)


def test_coordinate_runs_on_another_array_library():
    rng = np.random.default_rng(0)
    atoms, scores = [rng.standard_normal(5)] * 2, [rng.uniform(0.1, 1, (6, 5)) for _ in range(2)]
    C = set_(Box(-0.5, 0.5), 2)
    here = solve(Coordinate(), Objective([Absolute()] * 2, scores, atoms), C)
    there = Objective([Absolute()] * 2, [strict.asarray(s) for s in scores], [strict.asarray(y) for y in atoms])
    np.testing.assert_allclose(to_numpy(solve(Coordinate(), there, C).c), here.c, atol=1e-12)


@pytest.mark.parametrize("decoder, make, C, T", PAIRS, ids=lambda p: getattr(p, "__name__", str(p).split(" object")[0]))
def test_single_precision_stays_single_and_converges(decoder, make, C, T):
    F, C = make(23, T), set_(C, T)
    if isinstance(F, Objective):
        single = Objective(F.losses, *([np.float32(x) for x in xs] for xs in (F.scores, F.atoms)))
    else:
        single = type(F)(*(np.float32(x) for x in ((F.a, F.b) if hasattr(F, "a") else (F.Q, F.w))))
    d = solve(decoder, single, C)
    assert d.c.dtype == np.float32 and (d.status == "ok").all()
    np.testing.assert_allclose(d.value, solve(decoder, F, C).value, atol=1e-4)
