"""Affine equalities and inequalities: the batched active set against an interior-point method, row by row."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from tests.pace import within

from lawful import (
    Affine,
    Box,
    Ellipsoid,
    Equations,
    Inflated,
    Intersection,
    PositiveSemidefinite,
    Product,
    project,
)
from lawful.decoders import decode
from lawful.decoders.conic import Conic
from lawful.decoders.dispatch import choose
from lawful.decoders.polyhedral import Polyhedral
from lawful.losses.quadratic import Quadratic, QuadraticForm


def law(rng, T, P, R, redundant):
    """Equations and inequalities that hold at a point, some of them written twice."""
    center = rng.uniform(-1, 1, T)
    texts = []
    for p in range(P + R):
        row = np.round(rng.normal(size=T) * (rng.random(T) < 0.7), 2)
        row[rng.integers(T)] = 1.5
        left = " + ".join(f"{w!r}*y{t + 1}" for t, w in enumerate(row.tolist()))
        level = float(row @ center)
        if p < P:
            texts.append(f"{left} = {level!r}")
            if redundant:
                texts.append(f"2*({left}) = {2 * level!r}")
        else:
            texts.append(f"{left} <= {level + rng.uniform(0, 0.5)!r}")
            if redundant:
                texts.append(f"3*({left}) <= {3 * (level + 0.5)!r}")
    return texts, center


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("form", ["equal", "shared", "each", "full", "full each"])
def test_as_good_as_an_interior_point_method(seed, form):
    rng = np.random.default_rng(seed)
    T = int(rng.integers(2, 9))
    P, R = int(rng.integers(0, T)), int(rng.integers(0, 2 * T))
    texts, center = law(rng, T, P, R + (P == 0), seed % 2 == 1)
    m = 40
    w = center + rng.standard_normal((m, T)) * 10 ** rng.uniform(-2, 1, (m, 1))
    C = Equations(texts).fit(w)
    if form.startswith("full"):
        root = rng.normal(size=(m if "each" in form else 1, T, T)) + 2 * np.eye(T)
        F = QuadraticForm(np.broadcast_to(root @ np.swapaxes(root, 1, 2), (m, T, T)), w)
    else:
        a = {"equal": np.ones((1, T)), "shared": rng.uniform(0.1, 5, (1, T)), "each": rng.uniform(0.1, 5, (m, T))}[form]
        a = a * rng.uniform(0.5, 2, (m, 1))
        F = Quadratic(a, a * w)
    assert isinstance(choose(F, C), Polyhedral)
    d, slow = decode(F, C), Conic().solve(F, C, decode)
    assert (d.status == "ok").all()
    assert C.contains(d.c).all()
    good = slow.status == "ok"
    assert good.sum() > m // 2
    assert np.abs(d.value - slow.value)[good].max() <= 1e-7 * (1 + np.abs(slow.value[good]).max())
    alone = decode(F.rows(np.array([3])), C)
    np.testing.assert_allclose(alone.c[0], d.c[3], atol=1e-10)


def test_the_inputs_may_enter_coefficients_and_sides():
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, (50, 2))
    texts = ["x1*y1 + y2 - y3 = x2", "y1 <= 0.4*x2", "y3 >= -x1", "y1 + y2 + y3 + y4 <= 1"]
    w = rng.standard_normal((50, 4))
    C = Equations(texts).fit(w, X).at(X)
    a = rng.uniform(0.5, 2, (50, 4))
    F = Quadratic(a, a * w)
    d, slow = decode(F, C), Conic().solve(F, C, decode)
    assert (d.status == "ok").all()
    np.testing.assert_allclose(d.c, slow.c, atol=1e-7)
    np.testing.assert_allclose(d.c[7:8], project(w[7:8], Equations(texts), weights=a[7:8], X=X[7:8]), atol=1e-9)


def test_an_empty_set_is_infeasible_and_its_neighbours_are_not():
    X = np.array([[1.0], [-1.0]])
    C = Equations(["y1 + y2 = x1", "y1 >= 0", "y2 >= 0"]).fit(np.zeros((2, 2)), X).at(X)
    w = np.array([[3.0, 0.0], [3.0, 0.0]])
    d = decode(Quadratic(np.ones((2, 2)), w), C)
    assert d.status.tolist() == ["ok", "infeasible"]
    np.testing.assert_allclose(d.c[0], [1.0, 0.0], atol=1e-12)
    d = project(w, Equations(["y1 + y2 = 1", "y1 + y2 = 2"]), certificate=True)
    assert (d.status == "infeasible").all()


def test_negative_weights_are_left_to_the_general_decoder():
    C = Equations(["y1 + y2 = 1", "0 <= y1 <= 2"]).fit(np.zeros((2, 2)))
    F = Quadratic(np.array([[1.0, 1.0], [-3.0, 1.0]]), np.array([[0.2, 0.1], [0.2, 0.1]]))
    d = decode(F, C)
    assert C.contains(d.c).all()
    grid = np.linspace(0, 2, 2001)
    best = np.min([F.value(np.array([[y, 1 - y]] * 2)) for y in grid], axis=0)
    assert (d.value <= best + 1e-9).all()


def test_bounds_are_met_exactly():
    rng = np.random.default_rng(1)
    c = project(
        rng.standard_normal((500, 6)), Equations(["y1 + y2 + y3 + y4 + y5 + y6 = 1"] + [f"y{t} >= 0" for t in range(1, 7)])
    )
    assert (c >= 0).all() and (c == 0).any()
    np.testing.assert_allclose(c.sum(axis=1), 1, atol=1e-14)
    both = project(rng.standard_normal((100, 3)), Intersection([Affine([[1.0, 1.0, 1.0]], 1.0), Box(0, 0.6)]))
    assert (both >= 0).all() and (both <= 0.6).all()


@pytest.mark.parametrize("seed", range(6))
def test_a_singular_metric_is_solved_and_as_well_as_by_an_interior_point_method(seed):
    """Fewer rows than outputs leave a covariance of low rank; outputs may be of very different sizes."""
    rng = np.random.default_rng(seed)
    T, m = 5, 12
    unit = 10.0 ** rng.integers(-4, 5, T)
    B = rng.standard_normal((m, 2, T)) / unit
    Q, w = np.swapaxes(B, 1, 2) @ B, rng.standard_normal((m, T)) * unit
    C = Box(-0.3 * unit, 0.5 * unit).fit(w)
    d = Polyhedral().solve(QuadraticForm(Q, w), C, None)
    assert (d.status == "ok").all() and C.contains(d.c).all()
    # The same in units of the outputs, by a solver that has nothing in common with it.
    scaled = QuadraticForm(Q * unit[:, None] * unit, w / unit)
    best = Conic().solve(scaled, Box(np.full(T, -0.3), np.full(T, 0.5)).fit(w / unit), None)
    assert (d.value <= best.value + 1e-8 * (1e-3 + best.value)).all()


def test_a_tube_around_a_box_in_a_singular_metric_does_not_take_long():
    """Over 100 s before: every step of its search began a search from many starts."""
    rng = np.random.default_rng(3)
    B = rng.standard_normal((2, 2, 4))
    w = rng.standard_normal((2, 4)) * np.array([1.0, 1e10, 1e10, 1e10])
    C = Inflated(Product([(Box(-1e9, 4e9), [1, 2, 3])]), 1e9, norm="euclidean").fit(w)
    with within(20):  # compilation included
        d = decode(QuadraticForm(np.swapaxes(B, 1, 2) @ B, w), C)
    assert (d.status == "ok").all() and C.contains(d.c).all()


@pytest.mark.parametrize("solid", [False, True])
def test_round_sets_in_a_metric_graded_over_fifteen_orders(solid):
    """One precise output among noisy ones: LAPACK lost the noisy ones' eigenvalues, and a row alone was another point."""
    rng = np.random.default_rng(0)
    T, m = 6, 40
    B = rng.standard_normal((m, T, T)) / np.array([1.0, 1, 3e-8, 1, 1, 1])
    Q, w = np.swapaxes(B, 1, 2) @ B + np.diag([0.5, 0.5, 1e14, 0.5, 0.5, 0.5]), rng.standard_normal((m, T))
    C = Ellipsoid(rng.uniform(0.5, 2, T), center=0.2 * rng.standard_normal(T), solid=solid).fit(w)
    together = decode(QuadraticForm(Q, w), C)
    assert (together.status == "ok").all()
    for i in range(m):
        alone = decode(QuadraticForm(Q[i : i + 1], w[i : i + 1]), C)
        np.testing.assert_allclose(alone.c[0], together.c[i], rtol=0, atol=1e-9)
    # Stationary: what is left of the gradient along the surface, in units in which the metric is even.
    unit = np.sqrt(np.diagonal(Q, axis1=1, axis2=2))
    slope = np.einsum("mts,ms->mt", Q, together.c - w) / unit
    normal = (together.c - C.center_) / C.axes_**2 / unit
    along = (slope * normal).sum(axis=1, keepdims=True) / (normal**2).sum(axis=1, keepdims=True)
    left = np.abs(slope - along * normal).max(axis=1)
    outside = C.residual(w) > 0 if solid else np.ones(m, bool)
    assert (left[outside] <= 1e-6 * np.abs(slope).max(axis=1)[outside]).all()


@pytest.mark.parametrize("full", [False, True])
def test_rows_with_weights_that_differ_only_in_a_light_output_are_not_the_same(full):
    """An output in a large unit has a tiny weight; that it is tiny in both rows does not make them alike."""
    unit = np.array([1e-12, 1e11])
    Q = np.array([[[1.0, 0.7], [0.7, 2.0]], [[1.0, 0.7], [0.7, 1.0]], [[1.0, 0.0], [0.0, 3.0]]]) / unit / unit[:, None]
    w = np.array([[5.0, -1.0]] * 3) * unit
    C = Equations(f"y1/{unit[0]} + 0.5*y2/{unit[1]} = 1.2").fit(w)
    diagonal = np.diagonal(Q, axis1=1, axis2=2)
    F = QuadraticForm(Q, w) if full else Quadratic(diagonal, diagonal * w)
    together = decode(F, C)
    assert isinstance(choose(F, C), Polyhedral) and (together.status == "ok").all()
    for i in range(3):
        alone = decode(F.rows(np.array([i])), C)
        np.testing.assert_allclose(together.c[i] / unit, alone.c[0] / unit, rtol=1e-9)
    ones = np.ones(2)
    plain = QuadraticForm(Q * unit * unit[:, None], w / unit) if full else Quadratic(diagonal * unit**2, diagonal * w * unit)
    same = decode(plain, Equations("y1 + 0.5*y2 = 1.2").fit(w / unit * ones))
    np.testing.assert_allclose(together.c / unit, same.c, rtol=1e-7)


def test_singular_metrics_with_equations_of_very_different_scales():
    """Outputs that equations fix leave a metric of the others that is not singular; one redundant equation is among them."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3, 3)) * np.array([[1.0], [1e8], [1e-3]])
    A = np.concatenate([A, 2 * A[:1]])
    law = Product([(Affine(A, A @ [0.3, -0.2, 0.5]), [0, 1, 2]), (Box([-0.3, -1.5], [0.7, 0.4]), [3, 4])])
    law.fit(rng.standard_normal((6, 5)))
    root = rng.standard_normal((40, 3, 5))  # rank 3 of 5
    Q, w = np.swapaxes(root, 1, 2) @ root, 2 * rng.standard_normal((40, 5))
    d = decode(QuadraticForm(Q, w), law)
    assert (d.status == "ok").all()
    for i in range(40):
        free = minimize(
            lambda t, i=i: (np.r_[0.3, -0.2, 0.5, t] - w[i]) @ Q[i] @ (np.r_[0.3, -0.2, 0.5, t] - w[i]),
            [0.0, 0.0], bounds=[(-0.3, 0.7), (-1.5, 0.4)], method="L-BFGS-B", tol=1e-14,
        )  # fmt: skip
        assert d.value[i] <= free.fun * (1 + 1e-7)
        alone = decode(QuadraticForm(Q[i : i + 1], w[i : i + 1]), law)
        np.testing.assert_allclose(alone.c[0], d.c[i], atol=1e-8)


def test_light_outputs_beside_heavy_ones():
    """An interior point that stops at 1e-11 of the heaviest weight has not looked at the others."""
    w = np.array([[0.10003621, -0.01147625, -0.01147625, 0.11924318]])
    law = PositiveSemidefinite(2, packed=False, floor=0.1).fit(w)
    a = np.array([[1e14, 2500.0, 2500.0, 2340.0]])
    d = decode(Quadratic(a, a * w), law)
    assert d.status[0] == "ok"
    # The heavy output is where it is wanted; the others follow from det(M - 0.1) = 0 there.
    gap = d.c[0, 0] - w[0, 0]
    assert abs(gap) < 1e-6

    def rest(b):
        return 5000.0 * (b - w[0, 1]) ** 2 + 2340.0 * (0.1 + b**2 / (d.c[0, 0] - 0.1) - w[0, 3]) ** 2

    best = minimize_scalar(rest, bounds=(-0.01, 0.0), method="bounded", options={"xatol": 1e-14})
    assert d.value[0] <= 1e14 * gap**2 + best.fun * (1 + 1e-6)


def test_a_small_answer_in_large_units():
    """Labels of 1e10 do not blur a projection onto a set of size 1: the answer is found again in its own unit."""
    law = Intersection([PositiveSemidefinite(2, packed=True), Box(-0.5, 0.5)])
    law.fit(1e10 * np.random.default_rng(0).standard_normal((6, 3)))
    d = project(np.zeros((1, 3)), law, certificate=True)
    assert d.status[0] == "ok" and np.abs(d.c).max() < 1e-6
