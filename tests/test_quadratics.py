"""The objectives of the square loss and of two-valued outputs, against their definitions row by row."""

from __future__ import annotations

import numpy as np
import pytest

from lawful.losses.choices import Choices
from lawful.losses.quadratic import Quadratic, QuadraticForm

rng = np.random.default_rng(0)
M, T = 5, 3
W = rng.standard_normal((M, T))
A = rng.uniform(0.5, 2, (M, T))
ROOT = rng.standard_normal((M, T, T))
Q = ROOT @ ROOT.transpose(0, 2, 1) + 0.1 * np.eye(T)
C = rng.standard_normal((M, T))
BLOCKS = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 3.0]])

OBJECTIVES = {
    "weights": (Quadratic(A, A * W), np.einsum("mt,ts->mts", A, np.eye(T))),
    "around": (Quadratic.around(W, A), np.einsum("mt,ts->mts", A, np.eye(T))),
    "around, equal": (Quadratic.around(W), np.broadcast_to(np.eye(T), (M, T, T))),
    "form": (QuadraticForm(Q, W), Q),
    "shared form": (QuadraticForm(BLOCKS, W), np.broadcast_to(BLOCKS, (M, T, T))),
}
each = pytest.mark.parametrize(("F", "matrix"), OBJECTIVES.values(), ids=OBJECTIVES.keys())


def distance(matrix, r):
    """r' Q r, a row at a time."""
    return np.array([x @ q @ x for q, x in zip(matrix, r)])


@each
def test_value_gradient_and_hessian(F, matrix):
    np.testing.assert_allclose(F.value(C), distance(matrix, C - W), rtol=1e-12)
    np.testing.assert_allclose(F.center, W, rtol=1e-12)
    np.testing.assert_allclose(F.gradient(C), 2 * np.einsum("mts,ms->mt", matrix, C - W), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(F.hessian(C), 2 * matrix)
    np.testing.assert_allclose(F.weigh(C), np.einsum("mts,ms->mt", matrix, C), rtol=1e-12)
    bound = F.curvature(C)[:, :, None] * np.eye(T) - 2 * matrix
    assert np.linalg.eigvalsh(bound).min() > -1e-12, "the diagonal lies above the Hessian"


@each
def test_costs_of_all_points_at_every_row(F, matrix):
    points = rng.standard_normal((4, T))
    expected = np.array([distance(np.broadcast_to(q, (4, T, T)), points - w) for q, w in zip(matrix, W)])
    np.testing.assert_allclose(F.costs(points), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in OBJECTIVES for kind in ("equal", "weights", "matrix") if kind != "matrix" or "form" in name],
)
def test_softened_is_the_least_over_all_moves(name, kind):
    """min over r of F(c + r) + r' K r, by the linear system of its gradient; a diagonal objective takes weights."""
    F, matrix = OBJECTIVES[name]
    K = {"equal": np.full((M, T), 0.7), "weights": rng.uniform(0.5, 2, (M, T)), "matrix": Q[::-1] + np.eye(T)}[kind]
    full = K if K.ndim == 3 else K[:, :, None] * np.eye(T)
    soft, back, exists = F.softened(K)
    z = np.array([np.linalg.solve(q + k, q @ w + k @ c) for q, k, w, c in zip(matrix, full, W, C)])
    np.testing.assert_allclose(back(C), z, rtol=1e-9)
    np.testing.assert_allclose(soft.value(C), distance(matrix, z - W) + distance(full, z - C), rtol=1e-9)
    assert exists.all()


def test_without_a_minimiser_softening_says_so():
    F = Quadratic(np.array([[1.0, -2.0], [1.0, -2.0]]), np.zeros((2, 2)))
    assert F.doubtful.tolist() == [True, True]
    assert F.softened(np.array([[1.0, 1.0], [1.0, 3.0]]))[2].tolist() == [False, True]
    np.testing.assert_allclose(F.value(np.ones((2, 2))), [-1.0, -1.0])
    assert F.isotropic().tolist() == [False, False]
    flat = Quadratic(np.array([[-1.0, -1.0]]), np.zeros((1, 2)))
    assert not flat.isotropic()[0] and flat.isotropic(any_sign=True)[0]


@each
def test_moved_objectives(F, matrix):
    r = rng.standard_normal((M, T))
    np.testing.assert_allclose(F.shifted(r).value(C), F.value(C + r), rtol=1e-9)
    np.testing.assert_allclose(F.recentred(C).value(W), distance(matrix, W - C), rtol=1e-9)
    np.testing.assert_allclose(F.rows(np.array([3, 1])).value(C[[3, 1]]), F.value(C)[[3, 1]], rtol=1e-12)


def test_price_is_the_mass_over_mu_times_the_metric():
    unit = np.array([2.0, 1.0, 0.5])
    np.testing.assert_allclose(Quadratic(A, A * W, unit=unit).price(0.25), 4 * (A / unit).sum(1)[:, None] * unit)
    form = QuadraticForm(Q, W, unit=BLOCKS, weights=A)
    np.testing.assert_allclose(form.price(0.25), 4 * A.sum(1)[:, None, None] * BLOCKS)


def test_tasks_that_the_metric_ties_cannot_be_taken_apart():
    F = QuadraticForm(BLOCKS, W, unit=BLOCKS, weights=A)
    assert F.couples([0]) and F.couples([1, 2]) and not F.couples([2]) and not F.couples([0, 1, 2])
    with pytest.raises(TypeError, match="couples these tasks"):
        F.tasks([0, 2])
    part = F.tasks([1, 0])
    np.testing.assert_allclose(part.value(C[:, [1, 0]]) + F.tasks([2]).value(C[:, [2]]), F.value(C), rtol=1e-12)
    np.testing.assert_array_equal(part.unit, [[1.0, 0.5], [0.5, 2.0]])
    np.testing.assert_array_equal(part.weights, A[:, [1, 0]])
    by_rows = QuadraticForm(np.broadcast_to(BLOCKS, (M, T, T)) * np.arange(1, M + 1)[:, None, None], W)
    assert by_rows.couples([0]) and not by_rows.couples([2])
    np.testing.assert_allclose(
        by_rows.tasks([0, 1]).value(C[:, :2]) + by_rows.tasks([2]).value(C[:, 2:]), by_rows.value(C), rtol=1e-12
    )
    weights = Quadratic(A, A * W, unit=np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(weights.tasks([2, 0]).value(C[:, [2, 0]]), (A * (C - W) ** 2)[:, [2, 0]].sum(1), rtol=1e-9)
    assert weights.tasks([2, 0]).unit.tolist() == [3.0, 1.0]


def test_rows_keep_what_was_factored():
    F = QuadraticForm(Q, W)
    F.softened(np.full((M, T), 0.5))  # factors Q
    part, fresh = F.rows(np.array([2, 0])), QuadraticForm(Q[[2, 0]], W[[2, 0]])
    K = np.full((2, T), 0.3)
    np.testing.assert_allclose(part.softened(K)[1](C[:2]), fresh.softened(K)[1](C[:2]), rtol=1e-9)


def test_isotropic_rows_of_a_form():
    forms = np.stack([np.eye(2), 2 * np.eye(2), np.diag([1.0, 1.1]), -np.eye(2)])
    F = QuadraticForm(forms, np.zeros((4, 2)))
    assert F.isotropic().tolist() == [True, True, False, False]
    assert F.isotropic(any_sign=True).tolist() == [True, True, False, True]


def test_choices_are_sums_of_the_costs_of_what_is_said():
    false, true = rng.uniform(size=(M, T)), rng.uniform(size=(M, T))
    F = Choices(false, true)
    said = rng.integers(0, 2, (M, T)).astype(float)
    by_hand = [sum(true[i, t] if said[i, t] else false[i, t] for t in range(T)) for i in range(M)]
    np.testing.assert_allclose(F.value(said), by_hand)
    assert (F.value(F.center) <= F.value(said)).all() and set(F.center.ravel()) <= {0.0, 1.0}
    np.testing.assert_allclose(np.diag(F.costs(said)), F.value(said))
    np.testing.assert_array_equal(F.table(1, np.array([0.0, 1.0])), np.c_[false[:, 1], true[:, 1]])
    np.testing.assert_allclose(F.tasks([2]).value(said[:, [2]]) + F.tasks([0, 1]).value(said[:, :2]), F.value(said))
    np.testing.assert_allclose(F.rows(np.array([4, 0])).value(said[[4, 0]]), F.value(said)[[4, 0]])
    assert F.shape == (M, T) and not F.doubtful.any()
