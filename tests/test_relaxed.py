"""Relaxed sets: C_delta and l_mu against brute force, their limits, and whole paths of them from one projection."""

import array_api_strict as strict
import numpy as np
import pytest
from tests.pace import within

from lawful import (
    ConstrainedRegressor,
    Equations,
    Huber,
    Inflated,
    KernelRidge,
    Penalized,
    PointCloud,
    PositiveSemidefinite,
    Product,
    Sphere,
    Square,
    Union,
    project,
)
from lawful.decoders import decode, relaxation_path
from lawful.decoders.newton import Newton
from lawful.kernels import Gaussian
from lawful.losses import Quadratic, QuadraticForm
from lawful.sets.relaxed import length, near_point

ANGLES = np.linspace(-np.pi, np.pi, 2001)[:-1]
CIRCLE = np.c_[np.cos(ANGLES), np.sin(ANGLES)]
DELTAS, MUS = (0.0, 0.02, 0.3, 1.5, np.inf), (0.0, 0.05, 0.8, 20.0, np.inf)
BASES = {
    "sphere": Sphere(),
    "equations": Equations("y1**2 + y2**2 = 1"),
    "cloud": PointCloud(CIRCLE[::250]),
    "union": Union([Sphere(), Sphere(0.3)]),
}


def objective(kind, m=25, seed=0):
    """Rows of the square loss: one weight a row, a weight for each output, the metric of the outputs, or a full one."""
    rng = np.random.default_rng(seed)
    w, unit = rng.standard_normal((m, 2)) * 1.2, np.array([0.4, 3.0])
    if kind == "equal":
        a = np.repeat(rng.uniform(0.2, 3.0, (m, 1)), 2, axis=1)
        return Quadratic(a, a * w)
    if kind == "metric":
        a = np.repeat(rng.uniform(0.2, 3.0, (m, 1)), 2, axis=1) * unit
        return Quadratic(a, a * w, unit=unit)
    if kind == "unequal":
        a = rng.uniform(0.2, 3.0, (m, 2)) * unit
        return Quadratic(a, a * w, unit=unit)
    M = np.array([[0.7, -0.4], [-0.4, 1.3]])
    root = np.sqrt(rng.uniform(0.2, 3.0, (m, 2 if kind == "form, unequal" else 1)))
    return QuadraticForm(root[:, :, None] * M * root[:, None, :], w, unit=M, weights=root * np.ones(2))


def clouds(kind):
    return objective(kind), PointCloud(CIRCLE[::40]).fit(CIRCLE)


@pytest.mark.parametrize("norm", ["objective", "euclidean"])
@pytest.mark.parametrize("kind", ["equal", "metric", "unequal", "form", "form, unequal"])
@pytest.mark.parametrize("base", BASES)
def test_the_path_is_what_decoding_one_by_one_gives(base, kind, norm):
    """relaxation_path = Inflated and Penalized decoded for each value, to 1e-8."""
    F, C = objective(kind, m=8), BASES[base].fit(CIRCLE[::50])
    deltas, mus = (DELTAS, MUS) if norm == "objective" else ((0.3, np.inf), ())
    tubes, soft, exact = relaxation_path(F, C, deltas, mus, norm=norm)
    assert tubes.shape == (len(deltas), 8, 2)
    assert soft.shape == (len(mus), 8, 2)
    np.testing.assert_allclose(exact, decode(F, C).c, atol=1e-12)
    for delta, z in zip(deltas, tubes):
        np.testing.assert_allclose(z, decode(F, Inflated(C, delta, norm).around(C)).c, atol=1e-8)
    for mu, z in zip(mus, soft):
        np.testing.assert_allclose(z, decode(F, Penalized(C, mu).around(C)).c, atol=1e-8)


class Counting(Newton):
    """Newton that counts how often it is called."""

    calls = 0

    def solve(self, F, C, decode):
        Counting.calls += 1
        return super().solve(F, C, decode)


@pytest.mark.parametrize(
    ("kind", "norm", "decodes"),
    [("equal", "euclidean", 1), ("metric", "objective", 1), ("form", "objective", 1), ("unequal", "objective", 4)],
)
def test_a_path_costs_one_projection_where_that_is_exact(kind, norm, decodes):
    """Also for laws that only Newton solves; unequal weights need one decode for each mu that is neither 0 nor inf."""
    Counting.calls = 0
    C = BASES["equations"].fit(CIRCLE[::50])
    extra = 0 if decodes == 1 else 1  # mu = 0 is decoded again
    relaxation_path(objective(kind, m=5), C, DELTAS, MUS, norm=norm, decoder=Counting())
    assert Counting.calls == decodes + extra


def test_the_tube_in_the_norm_of_the_objective():
    """No c + r with |r|_A <= delta is cheaper, over a dense grid of c and r."""
    for kind in ("unequal", "form, unequal"):
        F, C = clouds(kind)
        for delta in (0.1, 0.6):
            z = relaxation_path(F, C, [delta])[0][0]
            A = F.hessian(F.center) / 2
            best = np.full(len(z), np.inf)
            for u in 0.999 * np.array([0, 0.5, 1])[:, None, None] * CIRCLE[::40]:
                for one in np.atleast_2d(u):
                    r = delta * np.linalg.solve(np.linalg.cholesky(A).transpose(0, 2, 1), one[:, None])[:, :, 0]
                    for c in C.points_:
                        best = np.minimum(best, F.value(c + r))
            near = np.array([[F.value(z[i] - p + F.center)[i] for p in C.points_] for i in range(len(z))])
            assert (np.sqrt(near.min(axis=1)) <= delta + 1e-9).all()  # z is in the tube
            assert (F.value(z) <= best + 1e-12).all()


@pytest.mark.parametrize("delta", [0.05, 0.4])
def test_unequal_weights_need_the_secular_equation(delta):
    """For one point c the answer is r_t = a_t (w_t - c_t)/(a_t + nu) with |r| = delta; clipping is worse."""
    F = objective("unequal")
    point = np.array([[0.3, -0.2]])
    z = decode(F, Inflated(PointCloud(point), delta).fit(point)).c
    for i in range(F.shape[0]):
        a, gap = F.a[i], F.center[i] - point[0]
        low, high = 0.0, 1e6
        for _ in range(200):
            nu = (low + high) / 2
            low, high = (nu, high) if np.linalg.norm(a * gap / (a + nu)) > delta else (low, nu)
        r = a * gap / (a + low) if np.linalg.norm(gap) > delta else gap
        np.testing.assert_allclose(z[i], point[0] + r, atol=1e-8)
    clipped = point + (F.center - point) * np.minimum(1, delta / np.linalg.norm(F.center - point, axis=1, keepdims=True))
    assert (F.value(z) <= F.value(clipped) + 1e-12).all()
    assert (F.value(clipped) - F.value(z)).max() > 1e-3


@pytest.mark.parametrize("kind", ["unequal", "form, unequal"])
def test_penalty_against_brute_force(kind):
    """No (z, c) is cheaper in F(z) + kappa |z - c|^2_unit, kappa = sum_t a_t / mu (E2, E3)."""
    F, C = clouds(kind)
    unit = np.diag(F.unit) if F.unit.ndim == 1 else F.unit
    A = F.hessian(F.center) / 2
    for mu in (0.3, 4.0):
        z = decode(F, Penalized(C, mu).fit(CIRCLE)).c
        K = (F.mass / mu)[:, None, None] * unit

        def cost(z, c, K=K):
            return F.value(z) + np.einsum("mi,mij,mj->m", z - c, K, z - c)

        rhs = (A @ F.center[:, :, None])[:, :, 0]
        best = [
            cost(np.linalg.solve(A + K, rhs[:, :, None] + (K @ c)[:, :, None])[:, :, 0], np.broadcast_to(c, z.shape))
            for c in C.points_
        ]
        mine = [cost(z, np.broadcast_to(c, z.shape)) for c in C.points_]
        np.testing.assert_allclose(np.min(mine, axis=0), np.min(best, axis=0), atol=1e-12)


@pytest.mark.parametrize("kind", ["equal", "unequal", "form, unequal"])
@pytest.mark.parametrize("base", BASES)
def test_limits(base, kind):
    """delta and mu -> 0: the exact constraint; -> inf: none. 0 and inf themselves are accepted."""
    F, C = objective(kind, m=10), BASES[base].fit(CIRCLE[::50])
    exact, free = decode(F, C), F.center
    for relaxed, expected in [
        (Inflated(C, 0.0), exact.c),
        (Inflated(C, 1e-9), exact.c),
        (Inflated(C, 1e-9, "objective"), exact.c),
        (Inflated(C, 100.0), free),
        (Inflated(C, 100.0, "objective"), free),
        (Inflated(C, np.inf), free),
        (Inflated(C, np.inf, "objective"), free),
        (Penalized(C, 0.0), exact.c),
        (Penalized(C, 1e-10), exact.c),
        (Penalized(C, 1e12), free),
        (Penalized(C, np.inf), free),
    ]:
        d = decode(F, relaxed.around(C))
        np.testing.assert_allclose(d.c, expected, atol=1e-6, err_msg=repr(relaxed))
        assert np.isfinite(d.residual).all()
        assert (d.status == "ok").all()


def test_rows_without_a_positive_weight_stay_in_the_set():
    """Where the quadratic has no minimum the law is all there is; the row says low_confidence."""
    F = Quadratic(np.array([[-0.5, 1.0], [1.0, 1.0]]), np.array([[0.3, 0.4], [0.1, 0.1]]))
    C = Sphere().fit(CIRCLE)
    d = decode(F, Inflated(C, 0.1, "objective").fit(CIRCLE))
    np.testing.assert_allclose(np.linalg.norm(d.c[0]), 1.0)
    assert d.status.tolist() == ["low_confidence", "ok"]
    far = decode(F, Inflated(C, np.inf).fit(CIRCLE))
    np.testing.assert_array_equal(far.c, F.center)


def test_sets_in_sets_and_blocks():
    """A tube around a tube is a wider tube; a relaxed block leaves the other blocks exact."""
    F = objective("equal", m=6)
    twice = decode(F, Inflated(Inflated(Sphere(), 0.1), 0.2).fit(CIRCLE)).c
    np.testing.assert_allclose(twice, decode(F, Inflated(Sphere(), 0.3).fit(CIRCLE)).c, atol=1e-7)
    nested, far = Inflated(Inflated(Sphere(), 0.1), 0.2).fit(CIRCLE), np.array([[2.0, 0.0], [1.2, 0.0]])
    np.testing.assert_allclose(length(far - near_point(nested, far)), [0.7, 0.0], atol=1e-12)
    np.testing.assert_allclose(nested.residual(np.array([[2.0, 0.0]])), 0.7)
    Y = np.c_[CIRCLE, CIRCLE]
    G = Quadratic(np.ones((4, 4)), 1.5 * Y[:4])
    d = decode(G, Product([(Penalized(Sphere(), 2.0), [0, 1]), (Sphere(), [2, 3])]).fit(Y))
    np.testing.assert_allclose(np.linalg.norm(d.c[:, :2], axis=1), 1.25)
    np.testing.assert_allclose(np.linalg.norm(d.c[:, 2:], axis=1), 1.0)


def test_sample_and_contains():
    tube = Inflated(Sphere(), 0.2).fit(CIRCLE)
    points = tube.sample(200, 0)
    assert tube.contains(points).all()
    assert np.abs(np.linalg.norm(points, axis=1) - 1).max() > 0.1
    assert Inflated(Sphere(), np.inf).fit(CIRCLE).contains(100 * CIRCLE).all()
    assert Penalized(Sphere(), 0.1).fit(CIRCLE).contains(2 * CIRCLE).all()
    assert not Penalized(Sphere(), 0.0).fit(CIRCLE).contains(2 * CIRCLE).any()
    np.testing.assert_allclose(np.linalg.norm(Penalized(Sphere()).fit(CIRCLE).sample(5, 0), axis=1), 1.0)


def test_a_large_cloud_is_decoded_in_pieces(monkeypatch):
    F, C = clouds("unequal")
    whole = decode(F, Inflated(C, 0.2).fit(CIRCLE))
    monkeypatch.setattr("lawful.decoders.enumeration.CHUNK_BYTES", 8 * 50 * 4)
    pieces = decode(F, Inflated(C, 0.2).fit(CIRCLE))
    np.testing.assert_allclose(pieces.c, whole.c, atol=1e-12)
    np.testing.assert_allclose(pieces.value, whole.value, atol=1e-12)


@pytest.mark.parametrize("norm", ["objective", "euclidean"])
def test_another_array_library(norm):
    F, C = objective("unequal", m=6), Sphere().fit(CIRCLE)
    G = Quadratic(strict.asarray(F.a), strict.asarray(F.b), unit=strict.asarray(F.unit))
    here, there = relaxation_path(F, C, (0.1, np.inf), (0.5,), norm), relaxation_path(G, C, (0.1, np.inf), (0.5,), norm)
    for mine, theirs in zip(here, there):
        assert theirs.__array_namespace__().__name__ == "array_api_strict"
        np.testing.assert_allclose(np.asarray(theirs), mine, atol=1e-10)


def test_in_a_model_the_path_is_what_predict_returns():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (30, 1))
    Y = np.c_[np.cos(X), np.sin(X)] + 0.1 * rng.standard_normal((30, 2))
    Y[:10, 0] = np.nan
    for loss in (Square(), Square("residual_full"), Square("identity", "scores")):
        ridge = KernelRidge(Gaussian(1.0), lam=1e-3)
        model = ConstrainedRegressor(Sphere(), loss=loss, surrogate=ridge).fit(X, Y)
        tubes, soft, exact = relaxation_path(model.objective(X), model.constraint_, [0.7], [0.7])
        for constraint, expected in [
            (Sphere(), exact),
            (Inflated(Sphere(), 0.7, "objective"), tubes[0]),
            (Penalized(Sphere(), 0.7), soft[0]),
            (Penalized(Sphere(), np.inf), model.objective(X).center),
        ]:
            other = ConstrainedRegressor(constraint, loss=loss, surrogate=ridge).fit(X, Y)
            np.testing.assert_allclose(other.predict(X), expected, atol=1e-8)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Inflated(Sphere(), -0.1).fit(CIRCLE), ValueError, "delta >= 0, got -0.1; 0 is the exact constraint"),
        (lambda: Inflated(Sphere(), np.nan).fit(CIRCLE), ValueError, "delta >= 0, got nan"),
        (lambda: Inflated(Sphere(), 0.1, "max").fit(CIRCLE), ValueError, "unknown norm 'max'; choose"),
        (lambda: Penalized(Sphere(), -1.0).fit(CIRCLE), ValueError, "mu >= 0, got -1.0; 0 is the exact constraint"),
        (lambda: Inflated(Sphere(), np.inf).fit(CIRCLE).sample(3), ValueError, "cannot be sampled; give a finite delta"),
        (lambda: relaxation_path(objective("equal"), Sphere().fit(CIRCLE), [-1.0]), ValueError, "delta >= 0"),
        (lambda: relaxation_path(objective("equal"), Sphere().fit(CIRCLE), decoder="newtn"), ValueError, "unknown decoder"),
        (
            lambda: relaxation_path(
                Huber().objective([np.ones((2, 3))] * 2, [np.arange(3.0)] * 2), PointCloud(CIRCLE).fit(CIRCLE), [0.1]
            ),
            TypeError,
            "Inflation would need a quadratic objective .*use the Square loss",
        ),
    ],
)
def test_bad_input(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize("norm", ["euclidean", "objective"])
def test_a_tube_around_a_tube_of_the_same_norm_is_one_tube(norm):
    rng = np.random.default_rng(8)
    points, weights = rng.standard_normal((40, 2)), rng.uniform(0.5, 2, (40, 2))
    base = Equations("y1**2 + 4*y2**2 = 1")
    one = Inflated(base, 0.35, norm).fit(points)
    two = Inflated(Inflated(base, 0.1, norm), 0.25, norm).fit(points)
    F = Quadratic(weights, weights * points)
    d, e = decode(F, one), decode(F, two)
    assert (d.status == e.status).all() and (d.status == "ok").all()
    np.testing.assert_allclose(e.c, d.c, atol=1e-9)
    np.testing.assert_allclose(e.law_residual, d.law_residual, atol=1e-9)


def test_a_tube_whose_base_is_not_found_holds_nothing():
    """No distance is known to a set of which no point was found; it is not 0."""
    tube = Inflated(Equations("y1*y2**3 = 2"), 1e-6).fit(np.array([[1.0, 1.0], [2.0, 1.0]]))
    assert not tube.contains(np.array([[6e16, -3e-17]]))[0]


def test_a_tube_thinner_than_rounding_is_the_set():
    law = Equations(["y1**2 + y2**2 = 1e24", "y3 = y1"]).fit(1e12 * np.ones((3, 3)))
    points = 1e12 * np.random.default_rng(0).standard_normal((4, 3))
    weights = np.array([[1.0, 2.0, 3.0]])
    tube = project(points, Inflated(law, 1e-6).fit(1e12 * np.ones((3, 3))), weights=weights, certificate=True)
    exact = project(points, law, weights=weights)
    assert (tube.status == "ok").all()
    np.testing.assert_allclose(tube.c, exact, rtol=1e-9)


def test_tubes_around_packed_matrices_are_quick():
    rng = np.random.default_rng(0)
    law = Inflated(PositiveSemidefinite(3, packed=True), 0.03).fit(rng.standard_normal((10, 6)))
    with within(5):
        d = project(rng.standard_normal((3, 6)), law, weights=np.exp(2 * rng.standard_normal((3, 6))), certificate=True)
    assert (d.status == "ok").all()
