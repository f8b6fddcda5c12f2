"""Matrix sets against finite differences, slow algorithms and definitions: correlations, rotations, poses, orders."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from lawful import SE3, CorrelationMatrices, PositiveSemidefinite, Rankings, Rotations, Stiefel, UnitQuaternions
from lawful.sets import correlations
from lawful.sets.poses import BASIS

rng = np.random.default_rng(0)


def symmetric(n, m=4, size=1.0):
    M = size * rng.standard_normal((m, n, n))
    return (M + M.transpose(0, 2, 1)) / 2


def fitted(C, T):
    return C.fit(np.zeros((1, T)))


def slopes(f, c, h=1e-6):
    """(m, P, T) central differences."""
    return np.stack([(f(c + h * e) - f(c - h * e)) / (2 * h) for e in np.eye(c.shape[1])], axis=-1)


def check_derivatives(C, c):
    """Jacobians and curvature against differences of what they are derivatives of, away from the set too."""
    for kind in ("equality", "inequality"):
        if hasattr(C, kind):
            np.testing.assert_allclose(
                getattr(C, f"{kind}_jacobian")(c), slopes(getattr(C, kind), c), atol=1e-7 * (1 + abs(c).max() ** 3)
            )
    if hasattr(C, "curvature"):
        width = [getattr(C, kind)(c).shape[1] if hasattr(C, kind) else 0 for kind in ("equality", "inequality")]
        nu = rng.standard_normal((len(c), sum(width)))

        def slope(c):
            parts = [getattr(C, f"{kind}_jacobian")(c) for kind in ("equality", "inequality") if hasattr(C, kind)]
            return np.einsum("mp,mpt->mt", nu, np.concatenate(parts, axis=1))

        np.testing.assert_allclose(C.curvature(c, nu), slopes(slope, c), atol=1e-6 * (1 + abs(c).max() ** 3))


# ---------------------------------------------------------------------- correlations


def alternating(M, floor, rounds=4000):
    """Higham's alternating projections with Dykstra's correction."""
    Y, change = M.copy(), np.zeros_like(M)
    for _ in range(rounds):
        R = Y - change
        d, P = np.linalg.eigh(R)
        X = (P * np.maximum(d, floor)) @ P.T
        change = X - R
        Y = X.copy()
        np.fill_diagonal(Y, 1.0)
    return Y


@pytest.mark.parametrize("floor", [0.0, 0.2])
@pytest.mark.parametrize("size", [0.5, 2.0])
def test_the_nearest_correlation_matrix(floor, size):
    M = symmetric(4, 3, size)
    found = fitted(CorrelationMatrices(floor=floor), 16).nearest(M.reshape(3, 16)).reshape(3, 4, 4)
    for R, one in zip(found, M):
        np.testing.assert_allclose(R, alternating(one, floor), atol=1e-6)
        np.testing.assert_array_equal(np.diag(R), 1.0)
        assert np.linalg.eigvalsh(R).min() >= floor - 1e-12
    upper = np.triu_indices(4, 1)
    with_ones = M.copy()
    with_ones[:, np.arange(4), np.arange(4)] = 1.0
    packed = fitted(CorrelationMatrices(packed=True, floor=floor), 6).nearest(M[:, *upper])
    for c, one in zip(packed, with_ones):
        np.testing.assert_allclose(c, alternating(one, floor)[upper], atol=1e-6)


def test_correlations_that_need_no_change_stay():
    C = fitted(CorrelationMatrices(), 9)
    R = C.sample(20, 0)
    np.testing.assert_allclose(C.nearest(R), R, atol=1e-12)
    assert C.residual(R).max() < 1e-12 and not C.nearest(R[:0]).size
    ranks = [np.linalg.matrix_rank(one, tol=1e-9) for one in R.reshape(-1, 3, 3)]
    assert {1, 2, 3} == set(ranks), "the boundary is visited"
    lifted = fitted(CorrelationMatrices(floor=0.3), 9).sample(20, 0).reshape(-1, 3, 3)
    assert np.linalg.eigvalsh(lifted).min() == pytest.approx(0.3, abs=1e-9)


def test_the_second_derivative_of_the_dual():
    """H is the derivative of diag (M + diag y)_+ in y."""
    M, y = symmetric(4, 3), rng.standard_normal((3, 4))
    d, P, R = correlations._positive(M, y)
    np.testing.assert_allclose(
        correlations._second(d, P),
        slopes(lambda y: np.diagonal(correlations._positive(M, y)[2], axis1=1, axis2=2), y),
        atol=1e-6,
    )
    for one, full in zip(R, M + np.einsum("mi,ij->mij", y, np.eye(4))):
        w, V = np.linalg.eigh(full)
        np.testing.assert_allclose(one, sum(max(a, 0) * np.outer(v, v) for a, v in zip(w, V.T)), atol=1e-12)
    twice = np.array([[2.0, 2.0, -1.0]])  # equal eigenvalues: Omega is 1 between positive ones
    np.testing.assert_allclose(correlations._second(twice, np.eye(3)[None]), [np.diag([1.0, 1.0, 0.0])], atol=1e-12)


def test_how_far_from_a_correlation_matrix():
    C = fitted(CorrelationMatrices(floor=0.1), 4)
    rows = np.array([[1, 0.5, 0.5, 1], [1, 0.5, 0.2, 1], [1.4, 0, 0, 1], [1, 1, 1, 1], [1, 1.5, 1.5, 1], [np.nan, 0, 0, 1]])
    np.testing.assert_allclose(C.residual(rows), [0, 0.3, 0.4, 0.1, 0.6, np.inf], atol=1e-12)
    packed = fitted(CorrelationMatrices(packed=True), 3)
    assert packed.n_ == 3 and fitted(CorrelationMatrices(packed=True), 10).n_ == 5
    np.testing.assert_allclose(packed.residual(np.array([[0.9, 0.9, -0.9], [0.1, 0.2, 0.3]])), [0.8, 0.0], atol=1e-12)
    for floor in (-0.1, 1.0):
        with pytest.raises(ValueError, match=r"floor must lie in \[0, 1\)"):
            fitted(CorrelationMatrices(floor=floor), 4)
    for wrong, T in ((CorrelationMatrices(3), 4), (CorrelationMatrices(packed=True), 5), (CorrelationMatrices(), 8)):
        with pytest.raises(ValueError, match="outputs, but Y has"):
            fitted(wrong, T)


def of_cone(cone, c):
    """offset - matrix c, and how far that is outside of the cone."""
    s = cone.offset - cone.matrix @ c
    if cone.kind == "zero":
        return abs(s).max()
    if cone.kind == "nonnegative":
        return max(-s.min(), 0.0)
    if cone.kind == "second_order":
        return max(np.linalg.norm(s[1:]) - s[0], 0.0)
    n = int(((8 * len(s) + 1) ** 0.5 - 1) / 2)
    S = np.zeros((n, n))
    k = 0
    for j in range(n):
        for i in range(j + 1):
            S[i, j] = S[j, i] = s[k] if i == j else s[k] / 2**0.5
            k += 1
    return max(-np.linalg.eigvalsh(S).min(), 0.0)


@pytest.mark.parametrize(
    ("C", "T"),
    [
        (CorrelationMatrices(floor=0.1), 9),
        (CorrelationMatrices(packed=True, floor=0.1), 3),
        (PositiveSemidefinite(floor=0.2), 9),
        (PositiveSemidefinite(packed=True, floor=-0.2), 6),
        (PositiveSemidefinite(1), 1),
    ],
    ids=repr,
)
def test_cones_say_what_the_set_says(C, T):
    C = fitted(C, T)
    inside, outside = C.sample(6, 1), C.nearest(2 * rng.standard_normal((6, T))) + 0.1 * rng.standard_normal((6, T))
    for c in inside:
        assert max(of_cone(cone, c) for cone in C.cones()) < 1e-9
    for c, off in zip(outside, C.residual(outside)):
        assert (max(of_cone(cone, c) for cone in C.cones()) > 1e-9) == (off > 1e-9)
    eigenvalues = [of_cone(C.cones()[0], c) for c in outside]
    M = C._matrix(outside)
    lowest = np.linalg.eigvalsh((M + M.transpose(0, 2, 1)) / 2)[:, 0]
    np.testing.assert_allclose(eigenvalues, np.maximum(C.floor - lowest, 0), atol=1e-9)


# ---------------------------------------------------------------------- semidefinite matrices


def test_the_nearest_semidefinite_matrix():
    M = rng.standard_normal((5, 3, 3))
    C = fitted(PositiveSemidefinite(floor=0.1), 9)
    for R, one in zip(C.nearest(M.reshape(5, 9)).reshape(5, 3, 3), M):
        w, V = np.linalg.eigh((one + one.T) / 2)
        np.testing.assert_allclose(R, (V * np.maximum(w, 0.1)) @ V.T, atol=1e-12)
    assert C.natural.tolist() == [1.0] * 9 and not C.nearest(np.zeros((0, 9))).size


def test_the_nearest_packed_matrix_is_nearest_in_its_own_entries():
    """Against projected gradients without end; the Frobenius projection counts entries off the diagonal twice and is not it."""
    C = fitted(PositiveSemidefinite(packed=True), 6)
    i, j = np.triu_indices(3)
    c = 2 * rng.standard_normal((6, 6))
    found = C.nearest(c)
    for one, target in zip(found, c):
        x = np.zeros(6)
        for _ in range(3000):  # a gradient in the metric in which clipping is the projection
            x = C.naturally_nearest((x - np.where(i == j, 1.0, 0.5) * (x - target))[None])[0]
        np.testing.assert_allclose(one, x, atol=1e-7)
    assert C.natural.tolist() == [1, 2, 2, 1, 2, 1]
    assert (np.linalg.norm(found - c, axis=1) <= np.linalg.norm(C.naturally_nearest(c) - c, axis=1) + 1e-12).all()
    assert abs(found - C.naturally_nearest(c)).max() > 0.01
    inside = C.sample(4, 2)
    np.testing.assert_allclose(C.nearest(inside), inside, atol=1e-12)


def test_how_far_from_semidefinite():
    C = fitted(PositiveSemidefinite(floor=0.5), 4)
    rows = np.array([[1, 0, 0, 1], [1, 0.3, 0.1, 1], [0.2, 0, 0, 2], [4, 0, 0, -1], [np.inf, 0, 0, 1]])
    np.testing.assert_allclose(C.residual(rows), [0, 0.2, 0.3, 1.5, np.inf], atol=1e-12)
    np.testing.assert_allclose(C.relative(rows), [0, 0.2, 0.15, 0.375, np.inf], atol=1e-12)
    small = np.array([[0.1, 0, 0, 0.2]])
    np.testing.assert_allclose(C.relative(small), 0.4 / 0.5)  # the floor is a size too
    packed = fitted(PositiveSemidefinite(packed=True), 3)
    np.testing.assert_array_equal(packed._matrix(np.array([[1.0, 2.0, 3.0]])), [[[1, 2], [2, 3]]])
    np.testing.assert_array_equal(packed._flat(np.array([[[1.0, 2.0], [2.0, 3.0]]])), [[1, 2, 3]])
    assert fitted(PositiveSemidefinite(packed=True), 10).n_ == 4 and fitted(PositiveSemidefinite(), 9).n_ == 3
    for wrong, T in ((PositiveSemidefinite(2), 9), (PositiveSemidefinite(packed=True), 4), (PositiveSemidefinite(), 8)):
        with pytest.raises(ValueError, match="outputs, but Y has"):
            fitted(wrong, T)
    with pytest.raises(ValueError, match="floor must be finite"):
        fitted(PositiveSemidefinite(floor=np.inf), 4)


def test_semidefinite_samples_have_every_rank():
    S = fitted(PositiveSemidefinite(floor=0.5), 9).sample(200, 0).reshape(-1, 3, 3)
    ranks = np.bincount([int((np.linalg.eigvalsh(one) > 0.5 + 1e-9).sum()) for one in S], minlength=4)
    assert ranks[0] == 0 and (ranks[1:] > 40).all()
    assert np.trace(S - 0.5 * np.eye(3), axis1=1, axis2=2).mean() == pytest.approx(
        2.0, rel=0.15
    )  # n (n + 1) / 2 squares over n


# ---------------------------------------------------------------------- rotations and frames


@pytest.mark.parametrize(
    ("C", "T"),
    [(Stiefel(3, 2), 6), (Stiefel(3, 3), 9), (Stiefel(2, 1), 2), (Rotations(), 4), (Rotations(3), 9), (Rotations(1), 1)],
    ids=repr,
)
def test_derivatives_of_frames(C, T):
    C = fitted(C, T)
    check_derivatives(C, rng.standard_normal((3, T)))


def test_the_determinant_of_four_dimensions():
    C = fitted(Rotations(4), 16)
    c, nu = rng.standard_normal((2, 16)), np.zeros((2, 11))
    nu[:, -1] = [1.0, -2.0]
    found = slopes(lambda c: nu[:, -1:] * C.inequality_jacobian(c)[:, 0, :], c)
    np.testing.assert_allclose(C.curvature(c, nu), found, atol=1e-6)
    np.testing.assert_allclose(C.inequality_jacobian(c), slopes(C.inequality, c), atol=1e-6)


def test_equations_of_frames():
    C = fitted(Stiefel(3, 2), 6)
    c = rng.standard_normal((2, 6))
    for g, M in zip(C.equality(c), c.reshape(2, 3, 2)):
        gram = M.T @ M
        np.testing.assert_allclose(g, [gram[0, 0] - 1, gram[0, 1], gram[1, 1] - 1])
    assert C.scales(c).tolist() == [[1.0] * 3] * 2 and C.constant_norm
    for n, p in ((2, 3), (3, 0)):
        with pytest.raises(ValueError, match="give 1 <= p <= n"):
            fitted(Stiefel(n, p), 6)
    with pytest.raises(ValueError, match=r"Stiefel\(3, 2\) describes 6 outputs"):
        fitted(Stiefel(3, 2), 5)


def test_the_nearest_rotation_and_its_neighbours():
    """In the plane by all angles; a reflection has its nearest rotation too."""
    C = fitted(Rotations(), 4)
    angle = np.linspace(-np.pi, np.pi, 20_001)
    turns = np.stack([np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)], axis=1)
    c = np.vstack([rng.standard_normal((6, 4)), [[1.0, 0.1, 0.0, -0.5]]])
    for R, one in zip(C.nearest(c), c):
        np.testing.assert_allclose(R, turns[np.argmin(((turns - one) ** 2).sum(axis=1))], atol=4e-4)
    assert C.residual(C.nearest(c)).max() < 1e-12
    np.testing.assert_allclose(C.residual(np.array([[1.0, 0, 0, -1.0], [1.0, 0, 0, 0.5]])), [2.0, 0.75])
    np.testing.assert_allclose(C.inequality(np.array([[1.0, 2.0, 3.0, 4.0]])), [[2.5]])
    three = fitted(Rotations(3), 9)
    R = three.sample(3, 0)
    np.testing.assert_allclose(np.linalg.det(R.reshape(3, 3, 3)), 1.0)
    turned = three.turned(R)
    assert len(turned) == 3
    for other in turned:  # half a turn away from it, and rotations too
        assert three.residual(other).max() < 1e-12
        np.testing.assert_allclose((other * R).sum(axis=1), -1.0, atol=1e-9)
    assert len(fitted(Stiefel(3, 2), 6).turned(rng.standard_normal((2, 6)))) == 1
    assert three.scales(R).shape == (3, 7) and (three.scales(R) == 1).all()


@pytest.mark.parametrize(("C", "T"), [(Stiefel(3, 2), 6), (Rotations(3), 9), (UnitQuaternions(), 10)], ids=repr)
def test_tangents_touch_and_retractions_follow_them(C, T):
    C = fitted(C, T)
    c, v = C.sample(3, 0), rng.standard_normal((3, T))
    along = C.tangent(c, v)
    np.testing.assert_allclose(C.tangent(c, along), along, atol=1e-9)
    np.testing.assert_allclose(np.einsum("mpt,mt->mp", C.equality_jacobian(c), along), 0.0, atol=1e-9)
    np.testing.assert_allclose(((v - along) * along).sum(axis=1), 0.0, atol=1e-9)
    h = 1e-5
    moved = C.retract(c, h * along)
    assert C.residual(moved).max() < 1e-10
    np.testing.assert_allclose((moved - c) / h, along, atol=1e-3)


# ---------------------------------------------------------------------- quaternions and poses


def turn_of(q):
    a, b, c, d = q / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (c * c + d * d), 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), 1 - 2 * (b * b + d * d), 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), 1 - 2 * (b * b + c * c)],
        ]
    )


def test_quaternions_there_and_back():
    q = rng.standard_normal((5, 4))
    c = UnitQuaternions.embed(q)
    np.testing.assert_allclose(UnitQuaternions.embed(-3 * q), c, atol=1e-14)
    unit = q / np.linalg.norm(q, axis=1, keepdims=True)
    np.testing.assert_allclose(UnitQuaternions.quaternions(c), unit * np.sign(unit[:, :1]), atol=1e-12)
    assert UnitQuaternions.quaternions(UnitQuaternions.embed([[0, -2.0, 1.0, 0]]))[0, 1] == pytest.approx(2 / 5**0.5)
    for one, row in zip(unit, c):
        np.testing.assert_allclose(np.einsum("k,kij->ij", row, BASIS), np.outer(one, one), atol=1e-12)
    distance = ((c[0] - c[1]) ** 2).sum()
    assert distance == pytest.approx(2 - 2 * (unit[0] @ unit[1]) ** 2)
    C = UnitQuaternions()  # of a set as of its class
    np.testing.assert_array_equal(C.quaternions(C.embed(q)), UnitQuaternions.quaternions(c))
    matrices = ((turn_of(q[0]) - turn_of(q[1])) ** 2).sum()
    assert matrices == pytest.approx(4 * distance), "distances are half those between the matrices"
    np.testing.assert_allclose(np.einsum("kij,lij->kl", BASIS, BASIS), np.eye(10), atol=1e-12)
    for wrong in (np.ones((2, 3)), np.ones(4), np.full((1, 4), np.inf)):
        with pytest.raises(ValueError, match="give finite ones"):
            UnitQuaternions.embed(wrong)
    with pytest.raises(ValueError, match="has no direction"):
        UnitQuaternions.embed(np.zeros((1, 4)))
    assert np.isnan(UnitQuaternions.embed([[np.nan, 1.0, 0.0, 0.0]])).all()


def test_equations_of_quaternions():
    C = fitted(UnitQuaternions(), 10)
    c = rng.standard_normal((3, 10))
    np.testing.assert_allclose(C.equality_jacobian(c), slopes(C.equality, c), atol=1e-7)
    P = np.einsum("mk,kij->mij", c, BASIS)
    np.testing.assert_allclose(C.equality(c)[:, :10], np.einsum("mij,kij->mk", P @ P - P, BASIS), atol=1e-12)
    np.testing.assert_allclose(C.equality(c)[:, 10], np.trace(P, axis1=1, axis2=2) - 1)
    assert C.scales(c).shape == (3, 11) and (C.scales(c) == 1).all() and C.constant_norm
    near, others = C.nearest(c), C.turned(c)
    assert len(others) == 3
    eigen = np.linalg.eigh(P)[1]
    for k, found in zip((3, 2, 1, 0), (near, *others)):
        q = np.stack([V[:, k] for V in eigen])
        np.testing.assert_allclose(found, UnitQuaternions.embed(q), atol=1e-9)
    assert all((np.linalg.norm(near - c, axis=1) <= np.linalg.norm(other - c, axis=1)).all() for other in others)
    with pytest.raises(ValueError, match="describes 10 outputs"):
        fitted(UnitQuaternions(), 9)


def test_poses():
    turns = np.stack([turn_of(q) for q in rng.standard_normal((2, 4))])
    poses = np.tile(np.eye(4), (2, 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = turns, rng.standard_normal((2, 3))
    c = SE3.embed(poses)
    np.testing.assert_array_equal(SE3.embed(poses[:, :3]), c)
    np.testing.assert_array_equal(SE3.matrices(c), poses)
    angle = np.arccos((np.trace(turns[0].T @ turns[1]) - 1) / 2)
    apart = np.linalg.norm(poses[0, :3, 3] - poses[1, :3, 3])
    assert SE3.distance(c[:1], c[1:])[0] == pytest.approx(np.hypot(angle, apart))
    np.testing.assert_array_equal(SE3().matrices(SE3().embed(poses)), poses)
    assert SE3().distance(c[:1], c[1:])[0] == SE3.distance(c[:1], c[1:])[0]
    assert SE3.distance(c[:1], c[1:], length=4.0)[0] == pytest.approx(np.hypot(angle, apart / 4))
    half = c[:1].copy()
    half[0, :9] = (turns[0] @ np.diag([1.0, -1.0, -1.0])).reshape(9)
    assert SE3.distance(c[:1], half)[0] == pytest.approx(np.pi)
    for wrong in (np.eye(4), np.ones((1, 4, 3))):
        with pytest.raises(ValueError, match=r"give \(m, 4, 4\) or \(m, 3, 4\)"):
            SE3.embed(wrong)
    with pytest.raises(ValueError, match="SE3 describes 12 outputs"):
        fitted(SE3(), 9)
    assert fitted(SE3(), 12).residual(c).max() < 1e-12


def test_orders_are_what_permutations_say():
    """All 64 ways to compare four items: 24 of them are orders."""
    C = Rankings().fit(np.zeros((1, 6)))
    pairs = [(p, q) for p in range(4) for q in range(p + 1, 4)]
    np.testing.assert_array_equal(C.pairs(), pairs)
    ways = np.array(np.meshgrid(*[[-1.0, 1.0]] * 6)).reshape(6, -1).T
    orders = {tuple(1.0 if order.index(p) < order.index(q) else -1.0 for p, q in pairs) for order in permutations(range(4))}
    assert [tuple(way) in orders for way in ways] == C.contains(ways).tolist() and len(orders) == 24
    assert C.residual(ways)[[tuple(way) not in orders for way in ways]].tolist() == [1.0] * 40
    for order in permutations(range(4)):
        assert tuple(C.encode(order)[0]) in orders and C.encode(order)[0, 0] == (1 if order.index(0) < order.index(1) else -1)
    off = C.encode([0, 1, 2, 3]) * [0.7, 1, 1, 1, 1, 1.2]
    np.testing.assert_allclose(C.residual(off), [0.3])
    assert np.isinf(C.residual(np.full((1, 6), np.nan)))[0]
    ties = Rankings(ties=True).fit(np.zeros((1, 3)))
    rows = np.array([[0, 0, 0], [1, 0, 1], [1, -1, 1], [0.4, 0, 0], [2.0, 0, 0], [1, -1, 0]], float)
    np.testing.assert_allclose(ties.residual(rows), [0, 0, 1, 0.4, 1, 0])
    drawn = Rankings(ties=True).fit(np.zeros((1, 6))).sample(600, 0)
    assert (drawn == 0).mean() == pytest.approx(1 / 3, abs=0.03) and (drawn == 1).mean() == pytest.approx(1 / 3, abs=0.03)
    plain = C.sample(600, 0)
    assert C.contains(plain).all() and len({tuple(row) for row in plain}) == 24 and C.sample(0).shape == (0, 6)
    with pytest.raises(ValueError, match="not an order of 4 items"):
        C.encode([0, 1, 1, 3])
    with pytest.raises(ValueError, match="not an order of 4 items"):
        C.encode([0, 1, 2])
    for T in (2, 4, 5):
        with pytest.raises(ValueError, match="not the pairs of any number of items"):
            Rankings().fit(np.zeros((1, T)))
    with pytest.raises(ValueError, match="Y contains 2"):
        Rankings().fit(np.array([[1.0, 2.0, np.nan]]))
    assert Rankings().of_items(5).n_tasks_ == 10 and Rankings().fit(np.zeros((1, 1))).n_items_ == 2
