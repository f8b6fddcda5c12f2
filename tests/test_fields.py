"""The laws of other fields: equal to the formulas and tools that these fields use, and never beaten by them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.spatial.transform import Rotation
from sklearn.isotonic import IsotonicRegression

import lawful
from lawful import (
    SE3,
    Affine,
    Box,
    ConstrainedRegressor,
    ConvexShape,
    CorrelationMatrices,
    Flow,
    Hierarchy,
    Intersection,
    KernelRidge,
    Margins,
    Monotone,
    Rotations,
    Square,
    UnitQuaternions,
    project,
)
from lawful.decoders import decode
from lawful.kernels import Gaussian
from lawful.losses.quadratic import Quadratic, QuadraticForm

TREE = {"all": ["north", "south"], "north": ["a", "b"], "south": ["c", "d", "e"]}
SERIES = ["all", "north", "south", "a", "b", "c", "d", "e"]


def mint(S, W, w):
    """S (S' W^-1 S)^-1 S' W^-1 w, as it is written."""
    Q = np.linalg.inv(W)
    return w @ (S @ np.linalg.solve(S.T @ Q @ S, S.T @ Q)).T


def covariance(T, rng):
    B = rng.standard_normal((T, T + 3))
    return B @ B.T / T


def test_a_hierarchy_with_a_full_covariance_is_mint():
    rng = np.random.default_rng(0)
    law = Hierarchy.from_groups(TREE, SERIES)
    for seed in range(5):
        W, w = covariance(8, np.random.default_rng(seed)), 100 * rng.standard_normal((50, 8))
        d = project(w, law, metric=np.linalg.inv(W), certificate=True)
        assert (d.status == "ok").all() and d.residual.max() <= 1e-10
        np.testing.assert_allclose(d.c, mint(law.S, W, w), rtol=0, atol=1e-8)


@pytest.mark.parametrize("method", ["ols", "wls_struct", "wls_var", "shrink"])
def test_covariances_of_the_mint_family(method):
    rng = np.random.default_rng(1)
    law = Hierarchy.from_groups(TREE, SERIES)
    residuals = rng.standard_normal((60, 5)) @ law.S.T + 0.3 * rng.standard_normal((60, 8))
    residuals[3, 2] = np.nan
    W = law.covariance(residuals, method)
    assert np.linalg.eigvalsh(W).min() > 0
    if method in ("wls_var", "shrink"):
        np.testing.assert_allclose(np.diagonal(W), np.nanmean(residuals**2, axis=0))
    w = 10 * rng.standard_normal((20, 8))
    np.testing.assert_allclose(project(w, law, metric=np.linalg.inv(W)), mint(law.S, W, w), rtol=0, atol=1e-8)
    with pytest.raises(ValueError, match="choose one of ols"):
        law.covariance(residuals, "mint")
    with pytest.raises(ValueError, match="at least two of each output"):
        law.covariance(residuals[:1], "shrink")


def test_series_of_any_size_keep_their_digits():
    """Millions beside units: exact in rational arithmetic, for a hierarchy of three."""
    from fractions import Fraction

    W = np.diag([1e12, 1e12, 1.0])
    w = np.array([[5e6, 3e6, 7.0]])
    c = project(w, Hierarchy([[1, 1], [1, 0], [0, 1]]), metric=np.linalg.inv(W))[0]
    # lambda = (w0 - w1 - w2) / (sum of variances); c = w -+ variance * lambda
    lam = Fraction(5_000_000 - 3_000_000 - 7) / Fraction(2 * 10**12 + 1)
    exact = [5_000_000 - 10**12 * lam, 3_000_000 + 10**12 * lam, 7 + lam]
    np.testing.assert_allclose(c, [float(x) for x in exact], rtol=1e-10)


def fitted(law, metric, seed=0, n=40):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    bottom = np.c_[np.sin(3 * X[:, 0]), X[:, 1] ** 2, X[:, 0] * X[:, 1], np.cos(2 * X[:, 1]), X[:, 0]]
    Y = bottom @ law.S.T + 0.3 * rng.standard_normal((n, 8))
    model = ConstrainedRegressor(law, loss=Square(metric), surrogate=KernelRidge(Gaussian(1.0), lam=1e-2))
    return model.fit(X, Y), rng.uniform(-1, 1, (30, 2))


@pytest.mark.parametrize("metric", ["identity", "residual", "residual_full", "covariance"])
def test_metrics_of_the_square_loss_are_generalised_least_squares(metric):
    """What a learner does with a hierarchy is MinT of its own base forecasts, whichever covariance it is given or finds."""
    law = Hierarchy.from_groups(TREE, SERIES)
    given = np.linalg.inv(covariance(8, np.random.default_rng(5))) if metric == "covariance" else metric
    model, X = fitted(law, given)
    Q = model.loss_.metric_
    Q = np.eye(8) if Q is None else np.diag(Q) if Q.ndim == 1 else Q
    base = model.objective(X).center
    expected = mint(law.S, np.linalg.inv(Q), base)
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-8)
    if metric == "covariance":
        np.testing.assert_array_equal(Q, given)


def test_the_predictive_variance_at_x_is_weighted_least_squares_at_x():
    law = Hierarchy.from_groups(TREE, SERIES)
    model, X = fitted(law, "residual")
    model.set_params(loss=Square("residual", confidence="variance")).fit(*_data(law))
    F = model.objective(X)
    found = model.predict(X)
    for i in range(len(X)):
        expected = mint(law.S, np.diag(1 / F.a[i]), F.center[i : i + 1])
        np.testing.assert_allclose(found[i : i + 1], expected, rtol=0, atol=1e-8)
    assert np.ptp(F.a / F.a[:, :1], axis=0).max() >= 0 and np.ptp(F.a[:, 0]) > 0  # it does change with x


def _data(law, seed=0, n=40):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, rng.standard_normal((n, 5)) @ law.S.T + 0.3 * rng.standard_normal((n, 8))


def test_affine_laws_are_generalised_least_squares_too():
    """The same with an offset: c = w - W A' (A W A')^-1 (A w - b)."""
    rng = np.random.default_rng(3)
    A, b, W, w = rng.standard_normal((2, 5)), rng.standard_normal(2), covariance(5, rng), rng.standard_normal((20, 5))
    expected = w - (w @ A.T - b) @ np.linalg.solve(A @ W @ A.T, A @ W)
    np.testing.assert_allclose(project(w, Affine(A, b), metric=np.linalg.inv(W)), expected, rtol=0, atol=1e-10)


def test_hierarchies_that_are_never_negative():
    rng = np.random.default_rng(2)
    law = Hierarchy.from_groups(TREE, SERIES, nonnegative=True)
    W, w = covariance(8, rng), rng.standard_normal((20, 8))
    Q = np.linalg.inv(W)
    d = project(w, law, metric=Q, certificate=True)
    assert (d.status == "ok").all() and d.c.min() >= 0 and (d.c == 0).any()
    for c, point in zip(d.c, w):  # Karush, Kuhn and Tucker, in the bottom series
        slope = law.S.T @ Q @ (c - point)
        bottom = c[3:]
        assert slope.min() >= -1e-8 and np.abs(slope * bottom).max() <= 1e-8


def test_groups():
    with pytest.raises(ValueError, match=r"\['west'\] are not among"):
        Hierarchy.from_groups({"all": ["west", "a"]}, ["all", "a"])
    with pytest.raises(ValueError, match="circle"):
        Hierarchy.from_groups({"x": ["y"], "y": ["x"]}, ["x", "y"])
    crossed = Hierarchy.from_groups(
        {"all": ["a", "b", "c"], "odd": ["a", "c"], "early": ["a", "b"]}, ["all", "odd", "early", *"abc"]
    )
    c = project(np.random.default_rng(0).standard_normal((9, 6)), crossed)
    np.testing.assert_allclose(c[:, :3], np.c_[c[:, 3:].sum(1), c[:, 3] + c[:, 5], c[:, 3] + c[:, 4]], atol=1e-12)


@pytest.mark.parametrize("bad", [np.eye(3), -np.eye(8), np.ones(8), np.full((8, 8), np.nan), np.triu(np.ones((8, 8)))], ids=str)
def test_metrics_that_are_none(bad):
    with pytest.raises(ValueError, match="project: metric"):
        project(np.zeros((2, 8)), Hierarchy.from_groups(TREE, SERIES), metric=bad)
    with pytest.raises(ValueError, match="give one of them"):
        project(np.zeros((2, 8)), Hierarchy.from_groups(TREE, SERIES), metric=np.eye(8), weights=np.ones(8))


@pytest.mark.parametrize("increasing", [True, False])
def test_monotone_is_isotonic_regression(increasing):
    rng = np.random.default_rng(0)
    w, a = rng.standard_normal((40, 12)), rng.uniform(0.01, 10, (40, 12))
    d = project(w, Monotone(increasing), weights=a, certificate=True)
    assert (d.status == "ok").all() and (d.iterations == 0).all()
    for i in range(40):
        usual = IsotonicRegression(increasing=increasing).fit(np.arange(12), w[i], sample_weight=a[i]).predict(np.arange(12))
        np.testing.assert_allclose(d.c[i], usual, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "law", [Monotone(gap=0.3), Monotone(False, gap=0.3), ConvexShape(), ConvexShape(concave=True)], ids=str
)
def test_shapes_in_any_metric_are_the_minimum(law):
    rng = np.random.default_rng(1)
    T = 7
    C = law.fit(np.zeros((1, T)))
    w, Q = rng.standard_normal((15, T)), np.linalg.inv(covariance(T, rng))
    a = rng.uniform(0.1, 3, (15, T))
    for F, H in ((QuadraticForm(Q, w), [Q] * 15), (Quadratic(a, a * w), list(map(np.diag, a)))):
        d = decode(F, C)
        assert (d.status == "ok").all() and C.contains(d.c).all()
        for i in range(15):
            slope = 2 * H[i] @ (d.c[i] - w[i])
            # no feasible direction goes down: a linear programme over the cone of directions
            tight = C.G_[C.G_ @ d.c[i] - C.h_ > -1e-9]
            best = linprog(slope, tight, np.zeros(len(tight)), bounds=(-1, 1)).fun if len(tight) else -np.abs(slope).sum()
            assert best >= -1e-7


def test_monotone_with_weights_of_any_sign_is_left_to_general_decoders():
    a = np.array([[1.0, -0.1, 1.0]])
    d = decode(Quadratic(a, np.array([[0.5, 0.2, 0.4]])), Monotone().fit(np.zeros((1, 3))))
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 2, 61)] * 3, indexing="ij"), -1).reshape(-1, 3)
    grid = grid[(np.diff(grid) >= 0).all(1)]
    best = np.min(grid**2 @ a[0] - 2 * grid @ [0.5, 0.2, 0.4])
    assert (np.diff(d.c) >= -1e-12).all() and d.c[0] ** 2 @ a[0] - 2 * d.c[0] @ [0.5, 0.2, 0.4] <= best + 1e-9


def test_convex_and_rising():
    w = np.random.default_rng(0).standard_normal((20, 6))
    d = project(w, Intersection([ConvexShape(), Monotone(), Box(0.0, 1.0)]), certificate=True)
    assert (d.status == "ok").all()
    assert np.diff(d.c).min() >= -1e-8 and np.diff(d.c, n=2).min() >= -1e-8 and d.c.min() >= 0


def higham(M, steps=20_000):
    """Alternating projections with Dykstra's correction (Higham 2002)."""
    Y, D = M.copy(), np.zeros_like(M)
    for _ in range(steps):
        R = Y - D
        values, V = np.linalg.eigh(R)
        X = (V * np.maximum(values, 0)) @ V.T
        D, Y = X - R, X - np.diag(np.diag(X) - 1)
        if np.abs(X - Y).max() < 1e-13:
            break
    return Y


@pytest.mark.parametrize("n", [2, 3, 6])
def test_correlations_are_highams(n):
    rng = np.random.default_rng(n)
    M = rng.uniform(-1, 1, (8, n, n)) * rng.choice([1.0, 3.0], (8, 1, 1))
    M = (M + M.transpose(0, 2, 1)) / 2
    M[:, np.arange(n), np.arange(n)] = 1.0
    d = project(M.reshape(8, -1), CorrelationMatrices(), certificate=True)
    assert (d.status == "ok").all()
    for found, m in zip(d.c, M):
        np.testing.assert_allclose(found.reshape(n, n), higham(m), rtol=0, atol=1e-7)
    i, j = np.triu_indices(n, 1)
    np.testing.assert_allclose(project(M[:, i, j], CorrelationMatrices(packed=True)), d.c.reshape(8, n, n)[:, i, j], atol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e6])
def test_correlations_carry_their_certificate(scale):
    """R = M + diag y + Z with Z >= 0 and ZR = 0 is the condition of optimality of a convex problem."""
    rng = np.random.default_rng(0)
    n = 8
    M = scale * rng.standard_normal((20, n, n))
    M = (M + M.transpose(0, 2, 1)) / 2
    R = project(M.reshape(20, -1), CorrelationMatrices()).reshape(20, n, n)
    np.testing.assert_array_equal(R[:, np.arange(n), np.arange(n)], 1.0)
    for r, m in zip(R, M):
        gap = r - m
        y = np.array([gap[k] @ r[k] for k in range(n)])  # Z R = 0: diag(gap R) = diag(y R) = y
        Z = gap - np.diag(y)
        assert np.linalg.eigvalsh(Z).min() >= -1e-7 * (1 + scale) and np.abs(Z @ r).max() <= 1e-7 * (1 + scale)


def test_correlations_in_a_metric_of_their_own():
    rng = np.random.default_rng(0)
    w, a = rng.uniform(-1.5, 1.5, (4, 6)), rng.uniform(0.2, 5, (4, 6))
    C = CorrelationMatrices(packed=True, floor=0.05).fit(w)
    for F in (Quadratic(a, a * w), QuadraticForm(np.linalg.inv(covariance(6, rng)), w)):
        d = decode(F, C)
        assert (d.status == "ok").all() and C.contains(d.c).all()
        rivals = C.nearest(np.repeat(d.c, 200, axis=0) + 0.05 * rng.standard_normal((800, 6)))
        values = F.rows(np.repeat(np.arange(4), 200)).value(rivals).reshape(4, 200)
        assert (d.value <= values.min(axis=1) + 1e-9).all()


@pytest.mark.parametrize("law", ["margins", "flow"])
def test_tables_and_flows_are_the_minimum(law):
    rng = np.random.default_rng(0)
    edges = [(i, j) for i in range(4) for j in range(4) if i < j]
    laws = {
        "margins": Margins((3, 4), [1.0, 2.0, 3.0], [1.5, 1.5, 1.0, 2.0]),
        "flow": Flow(edges, {0: 3.0, 3: -3.0}, capacity=rng.uniform(1, 2, 6)),
    }
    T = {"margins": 12, "flow": 6}[law]
    C = laws[law].fit(np.zeros((1, T)))
    w, Q = 2 * rng.standard_normal((10, T)), np.linalg.inv(covariance(T, rng))
    d = decode(QuadraticForm(Q, w), C)
    assert (d.status == "ok").all() and C.contains(d.c).all()
    for c, point in zip(d.c, w):
        slope = Q @ (c - point)
        assert slope @ C._corner(-slope) >= slope @ c - 1e-7  # Frank and Wolfe's gap is 0
    free = scipy_minimum(Q, w[0], C)
    np.testing.assert_allclose(d.c[0], free, atol=1e-5)


def scipy_minimum(Q, w, C):
    conditions = [{"type": "eq", "fun": lambda c: C.A_ @ c - C.b_}, {"type": "ineq", "fun": lambda c: C.h_ - C.G_ @ c}]
    start = C.sample(1, 0)[0]
    return minimize(lambda c: (c - w) @ Q @ (c - w), start, constraints=conditions, tol=1e-14, options={"maxiter": 1000}).x


def test_whole_margins_have_whole_corners():
    C = Margins((3, 3), [2, 1, 3], [1, 3, 2]).fit(np.zeros((1, 9)))
    for direction in np.random.default_rng(0).standard_normal((20, 9)):
        corner = C._corner(direction)
        np.testing.assert_allclose(corner, corner.round(), atol=1e-9)


def test_samples_of_a_table_visit_all_of_it():
    C = Margins((2, 2), [0.5, 0.5], [0.5, 0.5]).fit(np.zeros((1, 4)))
    first = C.sample(2000, 0)[:, 0]
    assert first.min() < 0.02 and first.max() > 0.48 and abs(first.mean() - 0.25) < 0.02


def test_quaternions_are_rotations_in_other_coordinates():
    rng = np.random.default_rng(0)
    q = rng.standard_normal((30, 5, 4))
    q /= np.linalg.norm(q, axis=2, keepdims=True)
    share = rng.dirichlet(np.ones(5), 30)
    mean = np.einsum("ms,mst->mt", share, np.stack([UnitQuaternions.embed(rows) for rows in q]))
    found = UnitQuaternions.quaternions(project(mean, UnitQuaternions()))
    R = Rotation.from_quat(q.reshape(-1, 4)).as_matrix().reshape(30, 5, 9)
    turned = project(np.einsum("ms,mst->mt", share, R), Rotations(3)).reshape(30, 3, 3)
    np.testing.assert_allclose(Rotation.from_quat(found).as_matrix(), turned, atol=1e-10)


def test_signs_of_labels_do_not_matter():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 1))
    q = Rotation.from_rotvec(np.c_[3 * X, X**2, 1 + 0 * X]).as_quat()
    model = ConstrainedRegressor(UnitQuaternions(), surrogate=KernelRidge(Gaussian(1.0), lam=1e-6))
    flipped = q * rng.choice([-1.0, 1.0], (60, 1))
    new = np.linspace(-0.9, 0.9, 25)[:, None]
    a, b = (model.fit(X, UnitQuaternions.embed(y)).predict(new) for y in (q, flipped))
    np.testing.assert_allclose(a, b, atol=1e-8)
    truth = Rotation.from_rotvec(np.c_[3 * new, new**2, 1 + 0 * new])
    angle = (Rotation.from_quat(UnitQuaternions.quaternions(a)) * truth.inv()).magnitude()
    assert angle.max() < 0.02
    with pytest.raises(ValueError, match="is 0 and has no direction"):
        UnitQuaternions.embed(np.zeros((1, 4)))


def test_poses():
    rng = np.random.default_rng(0)
    M = SE3.matrices(SE3().fit(np.zeros((1, 12))).sample(20, 0))
    np.testing.assert_array_equal(SE3.matrices(SE3.embed(M)), M)
    assert SE3.distance(SE3.embed(M), SE3.embed(M)).max() == 0
    turn = Rotation.from_rotvec(0.3 * np.eye(3)[rng.integers(0, 3, 20)]).as_matrix()
    moved = M.copy()
    moved[:, :3, :3], moved[:, :3, 3] = turn @ M[:, :3, :3], M[:, :3, 3] + [0.0, 0.8, 0.0]
    np.testing.assert_allclose(SE3.distance(SE3.embed(M), SE3.embed(moved), length=2.0), 0.5, atol=1e-12)
    noisy = SE3.embed(M) + 0.1 * rng.standard_normal((20, 12))
    c = project(noisy, SE3())
    np.testing.assert_allclose(c[:, :9], project(noisy[:, :9], Rotations(3)), atol=1e-14)
    np.testing.assert_array_equal(c[:, 9:], noisy[:, 9:])


@pytest.mark.parametrize(
    "law, T",
    [
        (Hierarchy.from_groups(TREE, SERIES), 8),
        (Hierarchy.from_groups(TREE, SERIES, nonnegative=True), 8),
        (Monotone(gap=0.1), 4),
        (ConvexShape([0.0, 1.0, 3.0]), 3),
        (CorrelationMatrices(packed=True), 3),
        (Margins((2, 2), [0.5, 0.5], [0.25, 0.75]), 4),
        (Flow([("a", "b"), ("a", "b")], {"a": 1.0, "b": -1.0}), 2),
        (UnitQuaternions(), 10),
        (SE3(), 12),
    ],
    ids=lambda x: str(x)[:40],
)
def test_models_with_these_laws_are_saved(law, T, tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(-1, 1, (20, 1)), rng.standard_normal((20, T))
    model = ConstrainedRegressor(law, surrogate=KernelRidge(Gaussian(1.0), lam=0.1)).fit(X, Y)
    model.save(tmp_path / "model.lawful")
    again = lawful.load(tmp_path / "model.lawful")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert (model.decode(X).status == "ok").all()
