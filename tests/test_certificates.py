"""A certificate per row that cannot lie: each of these once found a row that was `ok` and broke the law, or was not optimal."""

from __future__ import annotations

import cvxpy
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.base import clone

from lawful import (
    Absolute,
    Affine,
    Ball,
    Box,
    ConstrainedRegressor,
    Equations,
    Hinge,
    Huber,
    Inflated,
    Intersection,
    KernelRidge,
    Logistic,
    Mixed,
    Penalized,
    Pinball,
    PositiveSemidefinite,
    Product,
    Reals,
    Rotations,
    Sphere,
    Square,
    Stiefel,
    project,
)
from lawful.decoders import Riemannian, decode
from lawful.decoders.dispatch import COMPOSED, NAMED, SIMPLE
from lawful.decoders.sqp import sequential_quadratic
from lawful.kernels import Gaussian
from lawful.losses import Loss
from lawful.losses.objective import SmoothObjective
from lawful.losses.quadratic import Quadratic, QuadraticForm


def reflections(m: int) -> np.ndarray:
    """Noisy reflections: the nearest orthogonal matrices are no rotations."""
    rng = np.random.default_rng(1)
    R = Rotations(3).fit(np.zeros((1, 9))).sample(m, 1).reshape(m, 3, 3)
    return (R * [1, 1, -1]).reshape(m, 9) + 0.1 * rng.standard_normal((m, 9))


def is_rotation(c: np.ndarray) -> np.ndarray:
    R = c.reshape(-1, 3, 3)
    return (np.abs(R.transpose(0, 2, 1) @ R - np.eye(3)).max(axis=(1, 2)) < 1e-7) & (np.linalg.det(R) > 0)


def test_rotations_in_a_product_with_a_full_metric():
    Y = np.c_[reflections(20), np.full(20, 0.5)]
    C = Product([(Rotations(3), range(9)), (Box(0, 1), [9])]).fit(Y)
    B = np.random.default_rng(2).standard_normal((20, 10, 10))
    F = QuadraticForm(B @ B.transpose(0, 2, 1) / 10 + np.eye(10), Y)
    d = decode(F, C)
    fine = d.status == "ok"
    assert fine.mean() > 0.9 and is_rotation(d.c[fine, :9]).all() and (d.residual[fine] < 1e-7).all()


@pytest.mark.parametrize("loss", ["square", "weighted", "absolute"])
def test_rotations_in_an_intersection(loss):
    Y = reflections(8)
    C = Intersection([Rotations(3), Box(-1, 1)])
    if loss == "absolute":
        X = np.arange(8.0)[:, None]
        ridge = KernelRidge(Gaussian(1.0), lam=1e-3)
        d = ConstrainedRegressor(C, loss=Absolute(), surrogate=ridge, on_failure="nan").fit(X, Y).decode(X)
    else:
        a = np.ones_like(Y) if loss == "square" else np.random.default_rng(3).uniform(0.3, 3.0, Y.shape)
        d = decode(Quadratic(a, a * Y), C.fit(Y))
    fine = d.status == "ok"
    assert is_rotation(d.c[fine]).all()
    assert fine.mean() > (0.5 if loss == "absolute" else 0.8)


def test_an_infeasible_row_of_an_intersection_with_inputs():
    C = Intersection([Equations("y1 + y2 = x1"), Box(0, 1)])
    points, X = np.full((3, 2), 0.4), np.array([[1.0], [5.0], [0.2]])
    d = project(points, C, X=X, certificate=True)
    assert d.status.tolist() == ["ok", "infeasible", "ok"]
    np.testing.assert_allclose(d.c[[0, 2]], [[0.5, 0.5], [0.1, 0.1]], atol=1e-9)


def test_a_lemniscate_of_size_x_in_an_intersection():
    """Every row against the best of a dense set of points of its own lemniscate."""
    rng = np.random.default_rng(4)
    X = rng.uniform(0.5, 2.0, (400, 1))
    s = np.linspace(0, 2 * np.pi, 200_001)
    curve = np.c_[np.sin(s), np.sin(s) * np.cos(s)]  # y1**4 = y1**2 - y2**2
    points = X * (curve[rng.integers(len(s), size=400)] + 0.2 * rng.standard_normal((400, 2)))
    C = Intersection([Equations("y1**4 = x1**2*(y1**2 - y2**2)"), Box(-3, 3)])
    d = project(points, C, X=X, certificate=True)
    best = [((x * curve[::20] - p) ** 2).sum(axis=1).min() for p, x in zip(points, X)]
    fine = d.status == "ok"
    assert fine.all()
    np.testing.assert_array_less(d.value, np.array(best) + 1e-6)


def test_a_refitted_set_forgets_its_former_law():
    rng = np.random.default_rng(5)
    Y = rng.standard_normal((200, 2))
    C = Equations("y1**2 + y2**2 = 1").fit(Y)
    project(Y, C)
    C.set_params(equations="(y1 - 3)**2 + y2**2 = 1").fit(Y)
    again = project(Y, C, certificate=True)
    fresh = project(Y, Equations("(y1 - 3)**2 + y2**2 = 1"), certificate=True)
    np.testing.assert_allclose(again.c, fresh.c, atol=1e-9)
    centre = np.array([3.0, 0.0])
    np.testing.assert_allclose(again.c, centre + (Y - centre) / np.linalg.norm(Y - centre, axis=1)[:, None], atol=1e-7)


def test_a_diagonal_metric_as_a_vector_and_as_a_matrix():
    X, Y = np.zeros((4, 1)), np.full((4, 2), 2.0)
    C = Product([(Penalized(Sphere(), 1.0), [0]), (Penalized(Sphere(), 1.0), [1])])
    ridge = KernelRidge(Gaussian(1.0), lam=1e-12)
    found = [
        ConstrainedRegressor(C, loss=Square(metric=metric), surrogate=ridge).fit(X, Y).predict(X[:1])
        for metric in ([1.0, 4.0], np.diag([1.0, 4.0]))
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


# ---------------------------------------------------------------------- names


def frame(**columns):
    return pd.DataFrame(columns)


def test_an_input_column_called_y1_is_no_output():
    X, Y = frame(y1=[1.0, 2.0, 3.0]), np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    with pytest.raises(ValueError, match=r"'y1' in .* is ambiguous"):
        ConstrainedRegressor(Equations("y1**2 + y2**2 = 1")).fit(X, Y)
    ConstrainedRegressor(Equations("y2 <= 2")).fit(X, Y)  # a law that does not use the name


def test_y1_inside_a_product_is_not_a_column_elsewhere():
    Y = frame(y2=[1.0, 2.0, 3.0], y1=[0.5, 0.2, 0.1], z=[0.1, 0.3, 0.2])
    X = np.arange(3.0)[:, None]
    with pytest.raises(ValueError, match="outside this block has that name"):
        ConstrainedRegressor(Product([(Equations("y1 = 7"), ["z"])])).fit(X, Y)
    model = ConstrainedRegressor(Product([(Equations("z = 7"), ["z"]), (Equations("y1 = 3"), ["y1"])])).fit(X, Y)
    np.testing.assert_allclose(model.predict(X)[:, [1, 2]], [[3.0, 7.0]] * 3)


def test_an_output_called_x1_beside_unnamed_inputs():
    Y = frame(x1=[0.3, 0.5, 0.2], b=[0.7, 0.5, 0.8])
    model = ConstrainedRegressor(Equations("x1 + b = 1")).fit(np.arange(3.0)[:, None], Y)
    np.testing.assert_allclose(model.predict([[0.5]]).sum(), 1.0)


def test_outputs_with_the_names_of_the_certificate():
    Y = frame(value=[0.3, 0.5, 0.2], status=[0.7, 0.5, 0.8])
    X = np.arange(3.0)[:, None]
    model = ConstrainedRegressor(Equations("value + status = 1")).fit(X, Y)
    table = model.decode(X).to_frame()
    np.testing.assert_allclose(table[["value", "status"]].to_numpy(), model.predict(X))
    assert table["decoding_status"].tolist() == ["ok"] * 3 and (table["decoding_value"] >= 0).all()


# ---------------------------------------------------------------------- relaxations and scales


def test_a_tube_says_how_far_from_the_law_it_went():
    F = Quadratic(np.ones((1, 2)), np.array([[3.0, 0.0]]))
    for norm in ("euclidean", "objective"):
        d = decode(F, Inflated(Sphere(), 0.1, norm).fit(np.ones((1, 2))))
        np.testing.assert_allclose(d.c, [[1.1, 0.0]])
        assert d.status[0] == "ok" and d.residual[0] == 0
        np.testing.assert_allclose(d.law_residual, 1.1**2 - 1)


@pytest.mark.parametrize("scale", [1e-12, 1e-7, 1e-3, 1.0, 1e5, 1e12])
@pytest.mark.parametrize("kind", ["sphere", "equations", "box", "callable", "product"])
def test_all_scales(kind, scale):
    rng = np.random.default_rng(6)
    points = scale * rng.standard_normal((40, 2))
    sets = {
        "sphere": Sphere(scale),
        "equations": Equations(f"y1**2 + y2**2 = {scale**2!r}"),
        "box": Intersection([Equations(f"y1 + y2 = {scale!r}"), Box(0, scale)]),
        "callable": Equations(gamma=lambda c: c[:, 0] ** 2 + c[:, 1] ** 2 - scale**2),
        "product": Product([(Sphere(scale), [1]), (Box(0, scale), [0])]),
    }
    d = project(points, sets[kind], certificate=True)
    C = sets[kind].fit(points)
    assert (d.status == "ok").all() and C.contains(d.c).all()
    unit = project(points / scale, {**sets, "sphere": Sphere(), "product": Product([(Sphere(), [1]), (Box(0, 1), [0])])}[kind]
                   if kind in ("sphere", "product") else
                   {"equations": Equations("y1**2 + y2**2 = 1"), "callable": Equations("y1**2 + y2**2 = 1"),
                    "box": Intersection([Equations("y1 + y2 = 1"), Box(0, 1)])}[kind])  # fmt: skip
    np.testing.assert_allclose(d.c / scale, unit, atol=1e-7)


@pytest.mark.parametrize("points", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e6, 1e12])
def test_a_law_of_another_size_than_the_points(scale, points):
    p = points * np.random.default_rng(7).standard_normal((30, 2))
    d = project(p, Equations(f"y1**2 + y2**2 = {scale**2!r}"), certificate=True)
    assert not (d.status == "infeasible").any()
    np.testing.assert_allclose(np.linalg.norm(d.c, axis=1), scale, rtol=1e-7)
    # Beyond that the direction of a point is lost in the rounding of its distance.
    assert scale / points > 1e8 or (d.status == "ok").mean() > 0.9


# ---------------------------------------------------------------------- optimality


def best_value(F, C, start):
    """A long multi-start of a general solver on the first row of F over {inequality <= 0} or {equality = 0}."""
    kinds = {"eq": "equality", "ineq": "inequality"}
    constraints = [
        {"type": kind, "fun": lambda c, name=name, s=s: s * getattr(C, name)(c[None])[0]}
        for kind, name, s in ((k, n, 1 if k == "eq" else -1) for k, n in kinds.items())
        if hasattr(C, name)
    ]
    value = lambda c: float(F.value(c[None])[0])  # noqa: E731
    ends = [minimize(value, s, constraints=constraints, method="SLSQP", options={"ftol": 1e-14, "maxiter": 500}) for s in start]
    found = [C.nearest(e.x[None])[0] for e in ends if np.isfinite(e.x).all()] + list(start)
    grid = np.concatenate([C.nearest(np.array(found)), C.sample(20_000, 0)])
    return min(F.value(grid[k : k + 1])[0] for k in np.argsort(F.costs(grid)[0])[:50])


def fitted(C, loss, T, n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    Y = 1.5 * np.stack([np.sin((t + 1) * X[:, 0]) for t in range(T)], axis=1) + 0.2 * rng.standard_normal((n, T))
    model = ConstrainedRegressor(C, loss=loss, surrogate=KernelRidge(Gaussian(0.7), lam=1e-2), on_failure="nan").fit(X, Y)
    return model, rng.uniform(-2, 2, (6, 1))


@pytest.mark.parametrize(
    "C, loss",
    [(Ball(), Absolute()), (Sphere(), Mixed([Pinball(0.3), Huber()])), (Ball(0.7), Mixed([Pinball(0.8), Absolute()]))],
)
def test_losses_with_corners_end_at_the_optimum(C, loss):
    model, X = fitted(C, loss, 2)
    F, d = model.objective(X), model.decode(X)
    assert (d.status == "ok").mean() > 0.9
    for i in np.flatnonzero(d.status == "ok"):
        row = F.rows(np.array([i]))
        best = best_value(row, model.constraint_, model.constraint_.sample(6, 1))
        size = float(np.ptp(row.costs(model.constraint_.sample(500, 2))))
        assert d.value[i] <= best + 1e-4 * size, (i, d.value[i], best)


def test_four_by_four_rotations_far_from_the_data():
    rng = np.random.default_rng(8)
    C = Rotations(4).fit(np.zeros((1, 16)))
    a = rng.uniform(0.2, 5.0, (60, 16))
    w = 0.3 * rng.standard_normal((60, 16))
    d = decode(Quadratic(a, a * w), C)
    longer = decode(Quadratic(a, a * w), C, Riemannian(n_starts=60, n_samples=4000))
    assert (d.status == "ok").all()
    np.testing.assert_array_less(d.value, longer.value * (1 + 1e-6))


def test_semidefinite_matrices_in_a_wide_metric():
    rng = np.random.default_rng(9)
    n, m = 3, 8
    w = rng.standard_normal((m, n * n))
    a = 10 ** rng.uniform(-3, 3, (m, n * n))
    d = decode(Quadratic(a, a * w), PositiveSemidefinite(3).fit(w))
    assert (d.status == "ok").all()
    for i in range(m):
        S = cvxpy.Variable((n, n), PSD=True)
        gap = cvxpy.multiply(np.sqrt(a[i]).reshape(n, n), S - w[i].reshape(n, n))
        best = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(gap))).solve(solver="CLARABEL")
        assert d.value[i] <= best * (1 + 1e-5) + 1e-9


@pytest.mark.parametrize("loss", [Hinge(), Logistic()])
def test_losses_without_a_minimum_stay_where_the_law_can_be_checked(loss):
    rng = np.random.default_rng(10)
    X = rng.uniform(-1, 1, (20, 1))
    Y = np.where(rng.uniform(size=(20, 2)) < 0.5, -1.0, 1.0)
    C = Equations("y1*y2 = 1")
    model = ConstrainedRegressor(C, loss=loss, surrogate=KernelRidge(Gaussian(0.5), lam=1e-2), on_failure="nan").fit(X, Y)
    F = model.objective(np.linspace(-1.5, 1.5, 40)[:, None])
    d = decode(F, model.constraint_)
    inside = d.status != "infeasible"
    assert inside.all() and np.abs(d.c).max() < 1e9
    np.testing.assert_allclose(d.c[:, 0] * d.c[:, 1], 1.0, rtol=1e-7)


class Cosh(Loss):
    """A smooth loss that knows its slope and nothing else."""

    def __call__(self, c, y):
        return np.cosh(c - y) - 1

    def derivative(self, c, y):
        return np.sinh(c - y)


def test_a_loss_with_a_derivative_and_no_curvature():
    model, X = fitted(Equations("y1**2 + y2**2 = 1"), Cosh(), 2)
    d = model.decode(X)
    F = model.objective(X)
    angle = np.linspace(0, 2 * np.pi, 20_001)
    circle = np.c_[np.cos(angle), np.sin(angle)]
    fine = d.status == "ok"
    assert fine.mean() > 0.7
    np.testing.assert_array_less(d.value[fine], F.costs(circle).min(axis=1)[fine] + 1e-6)


# ---------------------------------------------------------------------- the house


VOCABULARY = {
    "tol",
    "max_iter",
    "n_starts",
    "n_samples",
    "random_state",
    "chunk",
    "project",
    "dof",
    "temperature",
    "prior",
    "width",
}
VOCABULARY |= {"method", "sweeps", "time_limit", "verbose"}  # of orders


@pytest.mark.parametrize("decoder", (*COMPOSED, *SIMPLE, *NAMED.values()), ids=lambda d: type(d).__name__)
def test_decoders_are_estimators_with_one_vocabulary(decoder):
    assert set(decoder.get_params()) <= VOCABULARY
    assert repr(clone(decoder)) == repr(decoder)


@pytest.mark.parametrize(
    "C",
    [
        Equations("y1**2 + y2**2 = 1"),
        Intersection([Equations("y1 + y2 <= 1"), Box(0, 1)]),
        Inflated(Equations("y1*y2 = 1"), 0.2),
        Product([(Sphere(), [0]), (Box(0, 1), [1])]),
    ],
    ids=lambda C: type(C).__name__,
)
def test_decoding_writes_nothing_into_a_set(C):
    points = np.random.default_rng(11).standard_normal((6, 2))
    C.fit(points)
    before = {key: id(value) for key, value in C.__dict__.items()}
    first = decode(Quadratic(np.ones((6, 2)), points), C)
    assert {key: id(value) for key, value in C.__dict__.items()} == before
    again = decode(Quadratic(np.ones((6, 2)), points), C.fit(points))
    np.testing.assert_array_equal(first.c, again.c)


def test_a_tube_in_the_metric_of_an_estimator_contains_what_it_predicts():
    rng = np.random.default_rng(12)
    X = rng.uniform(-2, 2, (40, 1))
    Y = np.c_[np.cos(X), 3 * np.sin(X)] + 0.1 * rng.standard_normal((40, 2))
    for metric in ("residual", "residual_full"):
        model = ConstrainedRegressor(Inflated(Equations("y1**2 + (y2/3)**2 = 1"), 0.5, "objective"), loss=Square(metric)).fit(
            X, Y
        )
        d = model.decode(X)
        assert (d.status == "ok").all() and model.constraint_.contains(d.c, 1e-6).all() and (d.law_residual > 0).any()


@pytest.mark.parametrize("base", [Sphere(), Equations("y1**2 + y2**2 = 1"), Box(0, 1), PositiveSemidefinite(1)], ids=repr)
@pytest.mark.parametrize("relax", [None, 0.1, np.inf])
def test_what_is_not_finite_is_not_contained(base, relax):
    C = base if relax is None else Inflated(base, relax)
    T = 1 if isinstance(base, PositiveSemidefinite) else 2
    C = C.fit(np.ones((1, T)))
    bad = np.array([[np.nan, 1.0], [1.0, np.nan], [np.inf, 0.0], [0.0, -np.inf]])[:, :T][: 4 if T == 2 else 1]
    assert not C.contains(bad).any()


def test_the_certificate_of_a_substitute_is_that_of_the_substitute():
    X = np.arange(4.0)[:, None]
    law = Equations("tanh(y1) = 1")  # only in the limit
    for how in ("unconstrained", "nan"):
        d = ConstrainedRegressor(law, on_failure=how).fit(X, [0.1, 0.2, 0.3, 0.4]).decode(X)
        replaced = d.status != "ok"
        if how == "nan":
            assert all(np.isnan(v[replaced]).all() for v in (d.c, d.value, d.residual, d.law_residual, d.margin))
        else:
            off = np.abs(np.tanh(d.c[:, 0]) - 1)
            np.testing.assert_allclose(d.residual, off, atol=1e-12)
            np.testing.assert_allclose(d.law_residual, off, atol=1e-12)
            assert (d.status[off > 1e-3] == "infeasible").all()


def test_laws_far_from_zero_are_decoded_to_the_optimum():
    """A lemniscate moved far away: the optimum is judged by the distance to the prediction, not by that to 0."""
    rng = np.random.default_rng(13)
    s = rng.uniform(0, 2 * np.pi, 200)
    points = np.c_[np.sin(s), np.sin(s) * np.cos(s)] + 0.1 * rng.standard_normal((200, 2))
    here = project(points, Equations("y1**4 = y1**2 - y2**2"), certificate=True)
    far = project(points + 1e5, Equations("(y1 - 1e5)**4 = (y1 - 1e5)**2 - (y2 - 1e5)**2"), certificate=True)
    fine = far.status == "ok"
    assert fine.mean() > 0.8
    np.testing.assert_allclose(far.value[fine], here.value[fine], atol=1e-6)


def test_points_that_project_cannot_use():
    with pytest.raises(TypeError, match="give a set such as"):
        project([[1.0, 2.0]], "y1 = 1")
    with pytest.raises(ValueError, match="masked"):
        project(np.ma.masked_greater([[1.0, 9.0]], 5), Sphere())
    with pytest.raises(ValueError, match="other units"):
        project([[1e200, 1.0]], Sphere())
    C = Equations("a = 2*b").fit(np.ones((1, 2)), outputs=["a", "b"])
    np.testing.assert_allclose(project(pd.DataFrame({"b": [1.0], "a": [2.0]}), C), [[1.0, 2.0]])


def test_packed_matrices_are_projected_whatever_their_neighbours():
    """The short iteration of packed entries once ended when the largest row of the batch was done."""
    rng = np.random.default_rng(0)
    C = PositiveSemidefinite(2, packed=True).fit(np.zeros((1, 3)))
    z = rng.standard_normal((20, 3))
    beside = C.nearest(np.concatenate([z, 1e9 * rng.standard_normal((2, 3))]))[:20]
    assert np.abs(beside - np.concatenate([C.nearest(row[None]) for row in z])).max() < 1e-15
    matrix = cvxpy.Variable((2, 2), PSD=True)
    for row, found in zip(z[:4], beside):
        apart = cvxpy.hstack([matrix[0, 0] - row[0], matrix[0, 1] - row[1], matrix[1, 1] - row[2]])
        best = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(apart))).solve(solver=cvxpy.CLARABEL)
        assert abs(np.sum((found - row) ** 2) - best) < 1e-6


def test_a_convex_law_is_found_also_where_the_objective_is_not_convex():
    """Matrices with trace 1 and no negative eigenvalue; weights of a doubtful row may all be negative."""
    C = Intersection([PositiveSemidefinite(2, packed=True), Affine([[1.0, 0.0, 1.0]], [1.0])]).fit(np.eye(3))
    F = Quadratic(np.array([[-1.0, -2.0, -1.0], [1.0, -0.5, 2.0]]), np.array([[-5.0, 3.0, 2.0], [400.0, 0.0, -300.0]]))
    d = decode(F, C)
    assert (d.status == "not_converged").all() and C.contains(d.c).all()
    assert np.abs(d.c[:, 0] + d.c[:, 2] - 1).max() < 1e-7
    assert (d.c[:, 0] * d.c[:, 2] - d.c[:, 1] ** 2 > -1e-7).all()


def test_a_loss_with_corners_gives_an_empty_law_up_at_once(monkeypatch):
    """No point of the sphere is an orthonormal frame: sharper and sharper corners do not help to find one."""
    far = np.array([13.0, 16.0, 12.0, -25.7, -16.0, 0.3])
    Y = far / 2 + np.random.default_rng(0).standard_normal((4, 6))
    C = Intersection([Sphere(2.7, center=far), Stiefel(3, 2)]).fit(Y)
    losses = [Huber(), Huber(), Pinball(0.5), Absolute(), Absolute(), Huber()]
    searches = []

    def counted(F, *rest):
        searches.append(F.shape[0])
        return sequential_quadratic(F, *rest)

    monkeypatch.setattr("lawful.decoders.newton.sequential_quadratic", counted)
    d = decode(SmoothObjective(losses, [np.full((1, 4), 0.25)] * 6, list(Y.T)), C)
    assert (d.status == "infeasible").all()
    assert 0 < len(searches) <= 8  # 24 when every width was tried from every start


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-8, 0.0])
def test_a_law_of_ratios_from_near_the_origin(size):
    """No ratio has a value at the origin, yet the law has points next to it: y3/y4 in (0, 0.65] or below -1.55.

    Where the nearest direction is an axis, a pole of the law, no point is the nearest one; elsewhere it must be found.
    """
    rng = np.random.default_rng(0)
    C = Equations("(y3/y4) - (y4/y3) < -0.9").fit(rng.standard_normal((30, 4)))
    points = size * rng.standard_normal((50, 4))
    d = project(points, C, certificate=True)
    assert not (d.status == "infeasible").any()
    assert (d.c[:, 2] / d.c[:, 3] - d.c[:, 3] / d.c[:, 2] <= -0.9 + 1e-6).all()
    if not size:
        return
    angle = np.linspace(0, 2 * np.pi, 200_001)[1:-1] + 1e-7
    way = np.c_[np.cos(angle), np.sin(angle)]
    inside = way[:, 0] / way[:, 1] - way[:, 1] / way[:, 0] <= -0.9
    along = np.where(inside, np.maximum(points[:, 2:] @ way.T, 0), -size)
    attained = np.abs(way[np.argmax(along, axis=1)]).min(axis=1) > 1e-4
    assert attained.mean() > 0.4 and (d.status[attained] == "ok").all()
    best = np.sum(points[:, 2:] ** 2, axis=1) - np.max(along, axis=1) ** 2
    np.testing.assert_allclose(d.value[attained], best[attained], rtol=1e-3, atol=1e-6 * size**2)


def test_scores_that_cancel_carry_no_confidence():
    """Far outside the data scores are huge and their sum is rounding: its sign says nothing, and differed with the batch."""
    scores = np.array([[1e12, 8e3 - 1e12], [1e12, -1e12 - 2e4], [0.7, 0.2], [1e3, 1.0 - 1e3]])
    F = SmoothObjective([Absolute()], [scores], [np.array([0.0, 1.0])])
    assert F.doubtful.tolist() == [True, True, False, False]


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e11])
@pytest.mark.parametrize("gap", [0.1, 1e-3, 0.0, -1e-9, -1e-3])
def test_convex_sets_without_a_common_point_need_no_search(gap, scale, monkeypatch):
    """A plane between them proves it; sets that touch are searched as ever."""
    rng = np.random.default_rng(0)
    C = Intersection([Ball(scale, center=np.zeros(3)), Ball(scale, center=np.array([2 * scale * (1 + gap), 0, 0]))])
    C.fit(scale * rng.standard_normal((6, 3)))
    points = scale * rng.standard_normal((3, 3))
    if gap > 0:
        monkeypatch.setattr("lawful.decoders.newton.sequential_quadratic", None)
    d = project(points, C, weights=np.array([1.0, 2.0, 3.0]), certificate=True)
    assert (d.status == ("infeasible" if gap > 0 else "ok")).all()
    if gap > 0:
        assert (d.residual > 0).all()


@pytest.mark.parametrize("far", [1.0, 1e4, 1e8])
def test_a_small_set_in_a_large_one_is_not_taken_for_empty(far):
    """Labels of another size than the law set the units of the proof."""
    rng = np.random.default_rng(0)
    near = np.full(3, 0.3)
    C = Intersection([Ball(1e-6, center=near), Ball(1.0), Affine([[1.0, 1.0, 1.0]], [0.9])]).fit(
        far * rng.standard_normal((6, 3))
    )
    d = project(rng.standard_normal((3, 3)), C, weights=np.array([1.0, 2.0, 3.0]), certificate=True)
    assert (d.status == "ok").all() and np.abs(d.c.sum(axis=1) - 0.9).max() < 1e-7
    assert np.linalg.norm(d.c - near, axis=1).max() < 1.001e-6


def test_a_variance_that_rounding_swallowed_is_no_infinite_weight():
    """1 / 0 went into the weights, and eigenvalues of the row's form did not converge."""
    scores, variance = [np.array([[1.0, 0.3]])] * 3, np.array([[0.0, 0.02, 0.05]])
    for metric in (None, np.diag([1.0, 2.0, 3.0])):
        loss = Square(confidence="variance")
        loss.metric_ = metric
        for given in (variance, 0 * variance):
            F = loss.objective(scores, [None] * 3, given)
            d = decode(F, PositiveSemidefinite(2, packed=True).fit(np.zeros((1, 3))))
            assert np.isfinite(F.center).all() and np.isfinite(d.value).all() and (d.status == "ok").all()


def test_inequalities_that_take_no_part_bend_nothing():
    """One output between several curved bounds, some of them contradictory along the way: the nearest point of a grid."""
    law = ["-7.4 <= y1**2*x1 <= -0.1", "0.16 <= 0.568*y1**5 + y1**2 <= 0.35", "3/y1 <= -2.683"]
    rng = np.random.default_rng(0)
    X, w = rng.uniform(-1, -0.3, (60, 1)), rng.uniform(-3, 1, (60, 1))
    d = project(w, Equations(law).fit(w, X), X=X, certificate=True)
    grid = np.linspace(-1.3, -0.2, 200_001)[:, None]
    f = 0.568 * grid**5 + grid**2
    held = (f >= 0.16) & (f <= 0.35) & (3 / grid <= -2.683)
    for i in range(60):
        inside = (held & (grid**2 * X[i] >= -7.4) & (grid**2 * X[i] <= -0.1))[:, 0]
        assert d.status[i] == "ok"
        assert d.value[i] <= np.min((grid[inside] - w[i]) ** 2) + 1e-4


def test_a_full_metric_that_is_not_definite_over_no_law_at_all():
    Q = np.array([[[1.0, 0.0], [0.0, -1.0]], [[2.0, 0.1], [0.1, 1.0]]])
    d = decode(QuadraticForm(Q, np.ones((2, 2))), Reals().fit(np.zeros((3, 2))))
    assert d.status[1] == "ok" and np.isfinite(d.c).all()
    np.testing.assert_allclose(d.c[1], 1.0)


def test_a_convex_set_far_from_predictions_and_labels_is_found():
    """Matrices above 5580 in a box up to 5702, predictions near 0: in their units the set looked empty."""
    C = Intersection([PositiveSemidefinite(1, floor=5580.0), Box(3135.0, 5702.0)])
    d = project([[-0.0002], [1e-7], [6000.0]], C, certificate=True)
    assert (d.status == "ok").all()
    np.testing.assert_allclose(d.c[:, 0], [5580.0, 5580.0, 5702.0], rtol=1e-8)
    assert (project([[1e-7]], C, certificate=True).status == "ok").all()
