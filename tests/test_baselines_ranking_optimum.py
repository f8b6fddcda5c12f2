"""Ranking baselines: fast sums against loops over pairs, minima against a general solver, certificates, starts, solvers."""

import itertools
import warnings

import cvxpy as cp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from lawful.baselines.ranking import PairwiseRanker, StructuralRanker
from lawful.baselines.ranking._pairs import HingePairs, LogisticPairs, StructuralPairs, make_pairs

LOSSES = {
    "hinge": lambda a, m: a * np.maximum(1 - m, 0),
    "logistic": lambda a, m: a * np.logaddexp(0, -m),
    "structural": lambda a, m: np.maximum(a - 2 * m, 0),
}
KINDS = {"hinge": HingePairs, "logistic": LogisticPairs, "structural": StructuralPairs}


def ratings(kind, seed, n=9):
    """Ratings of some queries, a few levels or all different; one query has a single rating, one has ties only."""
    rng = np.random.default_rng(seed)
    query = np.concatenate([np.repeat(np.arange(4), n), [4], np.repeat(5, 3)])
    r = rng.integers(1, 6, len(query)).astype(float) if kind == "levels" else 100 + rng.standard_normal(len(query))
    r[query == 5] = 2.0
    mixed = rng.permutation(len(query))
    return query[mixed], r[mixed]


def pair_list(query, r):
    """(p, q, r_p - r_q) of all pairs with r_p > r_q, in units of their mean, and the sum of the differences in each query."""
    found = [(p, q, r[p] - r[q]) for p, q in itertools.permutations(range(len(r)), 2) if query[p] == query[q] and r[p] > r[q]]
    mean = np.mean([a for _, _, a in found])
    found = [(p, q, a / mean) for p, q, a in found]
    mass = {u: sum(a for p, _, a in found if query[p] == u) for u in np.unique(query[[p for p, _, _ in found]])}
    return found, mass


def omega(weights, mass, u):
    return 1 / sum(mass.values()) if weights == "pairs" else 1 / (len(mass) * mass[u])


def positive_part(z, mu):
    """Smoothed value, slope, curvature."""
    inside = 0 < z < mu
    value = z * z / (2 * mu) if inside else max(z - mu / 2, 0.0) if z >= mu else 0.0
    return value, z / mu if inside else float(z > 0), 1 / mu if inside else 0.0


@pytest.mark.parametrize("weights", ["pairs", "queries"])
@pytest.mark.parametrize("levels", ["levels", "all different"])
@pytest.mark.parametrize(
    ("kind", "mu"), [("logistic", 0.0), *itertools.product(["hinge", "structural"], [0.0, 0.3, 5.0])], ids=str
)
def test_sums_equal_loops_over_pairs(kind, mu, levels, weights):
    query, r = ratings(levels, seed=1)
    rng = np.random.default_rng(2)
    s, v = 2 * rng.standard_normal(len(r)), rng.standard_normal(len(r))
    found, mass = pair_list(query, r)
    exact = smooth = linear = 0.0
    grad, hess = np.zeros(len(r)), np.zeros(len(r))
    for p, q, a in found:
        w, m = omega(weights, mass, query[p]), s[p] - s[q]
        exact += w * LOSSES[kind](a, m)
        if kind == "logistic":
            sigma = 1 / (1 + np.exp(m))
            slope, bend = -w * a * sigma, w * a * sigma * (1 - sigma)
            smooth += w * LOSSES[kind](a, m)
        else:
            z, factor, step = (1 - m, w * a, 1.0) if kind == "hinge" else (a - 2 * m, w, 2.0)
            value, slope, bend = positive_part(z, mu)
            smooth, linear = smooth + factor * value, linear + factor * slope * z
            slope, bend = -factor * step * slope, factor * step**2 * bend
        grad[p], grad[q] = grad[p] + slope, grad[q] - slope
        hess[p], hess[q] = hess[p] + bend * (v[p] - v[q]), hess[q] - bend * (v[p] - v[q])
    pairs = make_pairs(query, r, weights, "test")
    e, loss = pairs.entries, KINDS[kind](pairs)
    got = loss.sums(s[e], mu)
    assert pairs.n_pairs == len(found) and set(query[e]) == {0, 1, 2, 3}
    assert got[:2] == pytest.approx((exact, smooth), rel=1e-10)
    assert np.allclose(got[3], grad[e], atol=1e-12)
    if kind != "logistic":
        assert got[2] == pytest.approx(linear, rel=1e-10)
    if kind == "logistic" or mu:
        assert np.allclose(loss.curvature(s[e], mu, v[e]), hess[e], atol=1e-12)


def test_the_linear_loss_collapses():
    query, r = ratings("levels", seed=3)
    s = np.random.default_rng(4).standard_normal(len(r))
    found, mass = pair_list(query, r)
    for weights in ("pairs", "queries"):
        pairs = make_pairs(query, r, weights, "test")
        loop = sum(omega(weights, mass, query[p]) * a * (s[p] - s[q]) for p, q, a in found)
        assert pairs.linear() @ s[pairs.entries] == pytest.approx(loop, rel=1e-10)


def test_logistic_curvature_of_far_scores():
    """Exponentials of these scores overflow."""
    pairs = make_pairs(np.zeros(6, dtype=int), np.array([1.0, 2, 3, 1, 2, 3]), "pairs", "test")
    s, v = np.array([0.0, 1.0, -1.0, 900.0, 901.0, 899.5]), np.arange(6.0)
    h, loss = 1e-5, LogisticPairs(pairs)
    numeric = (loss.sums(s + h * v)[3] - loss.sums(s - h * v)[3]) / (2 * h)
    assert np.allclose(loss.curvature(s, 0.0, v), numeric, atol=1e-9) and np.abs(numeric).max() > 1e-2


def test_the_most_violated_constraint_is_an_order():
    """The slack of the structural loss, a sum over pairs, is the maximum over all orders of the rated items."""
    rng = np.random.default_rng(5)
    for r in (np.array([3.0, 1, 2, 3, 1]), rng.standard_normal(5)):
        s = rng.standard_normal(5)
        pairs = make_pairs(np.zeros(5, dtype=int), r, "pairs", "test")
        slack = StructuralPairs(pairs).sums(s[pairs.entries], 0.0)[0] / pairs.omega[0]
        rated = [(p, q) for p, q in itertools.permutations(range(5), 2) if r[p] > r[q]]
        r = r / np.mean([r[p] - r[q] for p, q in rated])
        best = max(
            sum(r[p] - r[q] - 2 * (s[p] - s[q]) for p, q in rated if place[p] > place[q])
            for place in itertools.permutations(range(5))
        )
        assert slack == pytest.approx(best, rel=1e-12)


# ------------------------------------------------------------------------------------------------------------- minima


def joint(X, profile, rows, items):
    """Five features of a query and an item."""
    V = np.random.default_rng(6).standard_normal((8, 4))
    return np.column_stack([X[rows] * V[items][:, :3], V[items][:, 3], np.sin(3 * items) + X[rows, 0]])


def small(seed=7, n=7):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    rows, items = np.divmod(np.arange(8 * n), 8)
    s = joint(X, None, rows, items) @ [1.0, -1.0, 0.5, 0.5, 0.3]
    R = np.clip(np.round(3 + s + 0.7 * rng.standard_normal(8 * n)), 1, 5).reshape(n, 8)
    R[rng.uniform(size=R.shape) < 0.3] = np.nan
    return X, R


def model(kind, **options):
    options = {"features": joint, "n_parts": 1, "scale": False, "lam": 1e-3, **options}
    if kind.startswith("structural"):
        return StructuralRanker(**options)
    return PairwiseRanker(kind, **options)


def differences(X, R, weights):
    """phi_p - phi_q, r_p - r_q and omega of all pairs, and the features of all ratings in queries that have pairs."""
    rows, items = np.nonzero(~np.isnan(R))
    Phi, r = joint(X, None, rows, items), R[rows, items]
    found, mass = pair_list(rows, r)
    d = np.array([Phi[p] - Phi[q] for p, q, _ in found])
    w = np.array([omega(weights, mass, rows[p]) for p, _, _ in found])
    return d, np.array([a for _, _, a in found]), w, Phi[np.isin(rows, list(mass))]


@pytest.mark.parametrize("lam", [1e-4, 1e-1])
@pytest.mark.parametrize("weights", ["pairs", "queries"])
@pytest.mark.parametrize("kind", ["linear", "hinge", "logistic", "structural"])
def test_objective_is_that_of_a_general_solver(kind, weights, lam):
    X, R = small()
    d, a, w, Phi = differences(X, R, weights)
    v = cp.Variable(d.shape[1])
    m = d @ v
    loss = {
        "linear": lambda: -cp.sum(cp.multiply(w * a, m)) + 0.02 / len(Phi) * cp.sum_squares(Phi @ v),
        "hinge": lambda: cp.sum(cp.multiply(w * a, cp.pos(1 - m))),
        "logistic": lambda: cp.sum(cp.multiply(w * a, cp.logistic(-m))),
        "structural": lambda: cp.sum(cp.multiply(w, cp.pos(a - 2 * m))),
    }[kind.split()[0]]()
    reference = cp.Problem(cp.Minimize(loss + lam * cp.sum_squares(v))).solve(solver=cp.CLARABEL)
    options = {"theta": 0.02} if kind == "linear" else {}
    found = model(kind, weights=weights, lam=lam, tol=1e-7, **options).fit(X, R)
    assert found.objective_ == pytest.approx(reference, rel=1e-6, abs=1e-8)
    assert found.gap_ <= 1e-7 * abs(found.objective_)
    assert np.allclose(found.coef_, v.value, atol=2e-3 * (1 + np.abs(v.value).max()))


@pytest.mark.parametrize("kind", ["hinge", "logistic", "structural"])
def test_two_starts_one_minimum(kind):
    X, R = small(8, n=30)
    starts = [None, 5 * np.random.default_rng(9).standard_normal(5)]
    one, two = (model(kind, tol=1e-8, max_iter=2000).fit(X, R, coef_init=w) for w in starts)
    assert one.objective_ == pytest.approx(two.objective_, rel=2e-8)
    assert np.allclose(one.coef_, two.coef_, atol=1e-3)


@pytest.mark.parametrize("kind", ["linear", "hinge", "logistic", "structural"])
def test_optimality(kind):
    """The objective is what it says, no point near is lower than the gap allows, and a smooth gradient vanishes."""
    X, R = small(10, n=30)
    found = model(kind).fit(X, R)
    d, a, w, Phi = differences(X, R, "pairs")

    def objective(v):
        if kind == "linear":
            return -(w * a) @ (d @ v) + 1e-4 * np.mean((Phi @ v) ** 2) + 1e-3 * v @ v
        return w @ LOSSES[kind](a, d @ v) + 1e-3 * v @ v

    assert found.objective_ == pytest.approx(objective(found.coef_), rel=1e-9)
    rng = np.random.default_rng(11)
    for size in (1e-4, 1e-2, 1.0):
        for step in size * rng.standard_normal((50, 5)):
            assert objective(found.coef_ + step) >= found.objective_ - found.gap_ - 1e-12
    if kind in ("linear", "logistic"):
        h = 1e-5 * np.eye(5)
        numeric = [(objective(found.coef_ + e) - objective(found.coef_ - e)) / 2e-5 for e in h]
        assert np.linalg.norm(numeric) <= found.gradient_norm_ + 1e-7
        assert found.gradient_norm_**2 / (4 * found.lam) == pytest.approx(found.gap_, abs=1e-15)


def test_a_full_gap_is_never_silent():
    X, R = small(13, n=30)
    for kind in ("hinge", "logistic", "structural"):
        with pytest.warns(ConvergenceWarning, match=r"stopped after 1 iterations with a gap of \d"):
            found = model(kind, max_iter=1).fit(X, R)
        assert found.n_iter_ == 1 and found.gap_ > 1e-6 * found.objective_
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert model(kind).fit(X, R).objective_ >= found.objective_ - found.gap_


def test_more_features_than_are_factored(monkeypatch):
    """Beyond that size conjugate gradients are preconditioned by a diagonal."""
    X, R = small(14, n=30)
    reference = model("hinge").fit(X, R).objective_
    monkeypatch.setattr("lawful.baselines.ranking._newton.DENSE", 2)
    assert model("hinge").fit(X, R).objective_ == pytest.approx(reference, rel=2e-6)


@pytest.mark.parametrize("kind", ["linear", "hinge", "logistic", "structural"])
def test_the_scale_of_ratings_makes_no_difference(kind):
    X, R = small(15, n=30)
    found = [model(kind).fit(X, scale * R + shift) for scale, shift in ((1.0, 0.0), (1e-6, 0.0), (1e6, -3e6))]
    for other in found[1:]:
        assert other.objective_ == pytest.approx(found[0].objective_, rel=2e-6)
        assert np.allclose(other.coef_, found[0].coef_, rtol=1e-2, atol=1e-3)
