"""Posterior means and Wiener's filter against brute force, their limits, and the fixed intercepts they are used with."""

import os
from pathlib import Path

import array_api_strict as strict
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor

from lawful import (
    Affine,
    Box,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    DecodingWarning,
    Equations,
    Huber,
    Inflated,
    KernelRidge,
    Penalized,
    PointCloud,
    Product,
    Reals,
    Rotations,
    Sphere,
    Square,
    Union,
    stack_tasks,
)
from lawful.datasets import load_sarcos
from lawful.decoders import Posterior, Wiener, decode
from lawful.decoders.atoms import density
from lawful.kernels import Gaussian, Linear
from lawful.losses import Quadratic, QuadraticForm

RNG = np.random.default_rng(0)
CLOUD = RNG.standard_normal((250, 3)) @ np.array([[1.0, 0.5, 0.2], [0, 1.0, -0.7], [0, 0, 0.4]])
W = CLOUD[:12] + 0.5 * RNG.standard_normal((12, 3))


def quadratic(scale=1.0, seed=1):
    """Rows with weights of their own, as objective, and the same as a stack of matrices."""
    a = scale * np.random.default_rng(seed).uniform(0.5, 20.0, W.shape)
    return Quadratic(a, a * W), np.stack([np.diag(row) for row in a])


def form(scale=1.0, seed=1):
    """Rows with a full metric."""
    B = np.random.default_rng(seed).standard_normal((*W.shape, 3))
    Q = scale * (B @ B.transpose(0, 2, 1) + 0.1 * np.eye(3))
    return QuadraticForm(Q, W), Q


OBJECTIVES = {"diagonal": quadratic, "full": form}


def by_hand(w, A, points, prior, dof=15.0, temperature=1.0, h=0.0, G=None):
    """The posterior mean of one row, in the words of the formulas."""
    Sigma = np.linalg.inv(A)
    total = Sigma + (0 if G is None else h * G)
    weights, means = [], []
    for c, p in zip(points, prior):
        q = (w - c) @ np.linalg.solve(total, w - c)
        likelihood = np.exp(-q / 2) if np.isinf(dof) else (1 + q / dof) ** (-(dof + len(w)) / 2)
        weights.append(p * likelihood ** (1 / temperature))
        means.append(c if G is None else c + h * G @ np.linalg.solve(total, w - c))
    return np.average(means, axis=0, weights=weights)


# ---------------------------------------------------------------------------------------------------- the formulas


@pytest.mark.parametrize("kind", OBJECTIVES)
@pytest.mark.parametrize(("dof", "temperature"), [(15.0, 1.0), (np.inf, 1.0), (3.0, 0.5), (np.inf, 4.0)])
def test_posterior_mean_of_a_cloud(kind, dof, temperature):
    F, A = OBJECTIVES[kind]()
    d = decode(F, PointCloud(CLOUD).fit(CLOUD), Posterior(dof=dof, temperature=temperature))
    expected = [by_hand(W[i], A[i], CLOUD, np.ones(250), dof, temperature) for i in range(len(W))]
    np.testing.assert_allclose(d.c, expected, atol=1e-12)
    assert d.status.tolist() == ["averaged"] * len(W)
    np.testing.assert_allclose(d.value, F.value(np.array(expected)))
    np.testing.assert_allclose(d.residual, np.linalg.norm(d.c[:, None] - CLOUD, axis=2).min(axis=1))


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_atoms_with_a_width(kind):
    """N(c_j, h G) instead of points; "auto" gives a small cloud h = 0.1."""
    F, A = OBJECTIVES[kind]()
    small = CLOUD[:40]
    G = np.cov(small.T, bias=True)
    C = PointCloud(small).fit(small)
    for decoder, h in [(Posterior(), 0.1), (Posterior(width=0.3, dof=np.inf), 0.3), (Posterior(width=0), 0.0)]:
        expected = [by_hand(W[i], A[i], small, np.ones(40), decoder.dof, 1.0, h, G) for i in range(len(W))]
        np.testing.assert_allclose(decode(F, C, decoder).c, expected, atol=1e-10)


def test_two_gaussian_atoms_are_a_mixture():
    """The posterior mean of a mixture of two Gaussians, by integrating over a grid."""
    points, prior = np.array([[-1.0], [2.0]]), [1.0, 3.0]
    h, w, a = 0.2, 0.4, 2.0
    G = np.average((points[:, 0] - 1.25) ** 2, weights=prior)  # covariance under the prior
    F, C = Quadratic(np.array([[a]]), np.array([[a * w]])), PointCloud(points).fit(points)
    z = np.linspace(-15, 15, 200_001)
    p = sum(k * np.exp(-((z - c) ** 2) / (2 * h * G)) for k, c in zip(prior, points[:, 0])) * np.exp(-a * (z - w) ** 2 / 2)
    d = decode(F, C, Posterior(dof=np.inf, width=h, prior=prior))
    np.testing.assert_allclose(d.c[0, 0], (p * z).sum() / p.sum(), atol=1e-8)


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_wiener(kind):
    F, A = OBJECTIVES[kind]()
    mu, G = CLOUD.mean(axis=0), np.cov(CLOUD.T, bias=True)
    d = decode(F, PointCloud(CLOUD).fit(CLOUD), "wiener")
    expected = [mu + G @ np.linalg.solve(G + np.linalg.inv(A[i]), W[i] - mu) for i in range(len(W))]
    np.testing.assert_allclose(d.c, expected, atol=1e-10)
    assert (d.status == "averaged").all()


def test_prior_weights():
    F, A = quadratic()
    prior = np.random.default_rng(3).uniform(size=250)
    C = PointCloud(CLOUD).fit(CLOUD)
    expected = [by_hand(W[i], A[i], CLOUD, prior) for i in range(len(W))]
    np.testing.assert_allclose(decode(F, C, Posterior(prior=prior)).c, expected, atol=1e-12)
    z = CLOUD / CLOUD.std(axis=0) * 250 ** (1 / 7)
    by_loops = [np.mean([np.exp(-((u - v) ** 2).sum() / 2) for v in z]) for u in z]
    np.testing.assert_allclose(density(CLOUD, np.full(250, 1 / 250)), by_loops, rtol=1e-10)
    expected = [by_hand(W[i], A[i], CLOUD, by_loops) for i in range(len(W))]
    np.testing.assert_allclose(decode(F, C, Posterior(prior="density")).c, expected, atol=1e-12)


def test_repeated_points_count_as_often_as_they_are_given():
    """points_ has no repetitions, the average does; weights are given for the rows as they were given."""
    F, A = quadratic()
    twice = np.concatenate([CLOUD, CLOUD[:100][::-1]])
    C = PointCloud(twice).fit(CLOUD)
    assert len(C.points_) == 250
    np.testing.assert_array_equal(C.points_[C.which_], twice)
    np.testing.assert_array_equal(C.counts_, np.r_[np.full(100, 2), np.ones(150)])
    expected = [by_hand(W[i], A[i], twice, np.ones(350)) for i in range(len(W))]
    np.testing.assert_allclose(decode(F, C, Posterior()).c, expected, atol=1e-12)
    prior = np.random.default_rng(4).uniform(size=350)
    expected = [by_hand(W[i], A[i], twice, prior) for i in range(len(W))]
    np.testing.assert_allclose(decode(F, C, Posterior(prior=prior)).c, expected, atol=1e-12)
    mu = twice.mean(axis=0)
    flat = decode(Quadratic(1e-12 * F.a, 1e-12 * F.b), C, "wiener").c
    np.testing.assert_allclose(flat, np.tile(mu, (len(W), 1)), atol=1e-9)


# ---------------------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_limits(kind):
    F, _ = OBJECTIVES[kind]()
    C = PointCloud(CLOUD).fit(CLOUD)
    nearest = decode(F, C)
    clear = nearest.margin > 1e-3
    cold = decode(F, C, Posterior(temperature=1e-6))
    np.testing.assert_allclose(cold.c[clear], nearest.c[clear], atol=1e-9)
    for decoder in (Posterior(temperature=1e12), Posterior(temperature=np.inf)):
        np.testing.assert_allclose(decode(F, C, decoder).c, np.tile(CLOUD.mean(axis=0), (len(W), 1)), atol=1e-9)
    gauss, nearly = decode(F, C, Posterior(dof=np.inf)), decode(F, C, Posterior(dof=1e9))
    np.testing.assert_allclose(nearly.c, gauss.c, atol=1e-6)
    sure, unsure = OBJECTIVES[kind](scale=1e10)[0], OBJECTIVES[kind](scale=1e-10)[0]
    np.testing.assert_allclose(decode(sure, C, "wiener").c, W, atol=1e-6)
    np.testing.assert_allclose(decode(unsure, C, "wiener").c, np.tile(CLOUD.mean(axis=0), (len(W), 1)), atol=1e-6)


def test_far_from_everything_nothing_underflows():
    far = Quadratic(np.full((2, 3), 1e6), np.full((2, 3), 1e12))
    for decoder in (Posterior(), Posterior(dof=np.inf), Posterior(temperature=1e-3), Wiener()):
        assert np.isfinite(decode(far, PointCloud(CLOUD).fit(CLOUD), decoder).c).all()


def test_no_smaller_error_than_the_posterior_mean():
    """Points of a cloud seen through noise: the mean beats the nearest point, Wiener and w itself."""
    rng = np.random.default_rng(5)
    angle = rng.uniform(0, 2 * np.pi, 1500)
    circle = np.c_[np.cos(angle), np.sin(angle)]
    cloud, truth = circle[:500], circle[500:]
    w = truth + 0.4 * rng.standard_normal(truth.shape)
    F, C = Quadratic(np.full_like(w, 1 / 0.16), w / 0.16), PointCloud(cloud).fit(cloud)
    errors = [
        np.mean((c - truth) ** 2) for c in (decode(F, C, Posterior(dof=np.inf)).c, decode(F, C, "wiener").c, decode(F, C).c, w)
    ]
    assert errors[0] < 0.95 * min(errors[1:])


# ---------------------------------------------------------------------------------------------------- sets that are sampled


def test_posterior_over_a_circle_is_an_integral():
    """Against quadrature over the angle."""
    F = Quadratic(np.full((4, 2), 10.0), 10.0 * np.array([[0.5, 0.2], [1.3, 0.0], [0.0, 0.1], [-0.7, 0.7]]))
    angle = np.linspace(-np.pi, np.pi, 20_001)[:-1]
    circle = np.c_[np.cos(angle), np.sin(angle)]
    p = (1 + F.costs(circle) / 15) ** (-17 / 2)
    expected = p @ circle / p.sum(axis=1, keepdims=True)
    for law, atol in ((Sphere(), 0.01), (Equations("y1**2 + y2**2 = 1"), 0.05)):  # Equations do not sample uniformly
        d = decode(F, law.fit(circle[::100]), Posterior(n_samples=20_000))
        np.testing.assert_allclose(d.c, expected, atol=atol)
        assert (d.status == "averaged").all()
        back = decode(F, law.fit(circle[::100]), Posterior(n_samples=20_000, project=True))
        np.testing.assert_allclose(back.c, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=atol)
        assert (back.residual < 1e-8).all()
        np.testing.assert_allclose(back.value, F.value(back.c))


def test_a_small_error_leads_to_the_projection():
    """Between the samples of a sphere, too: the nearest point is one of them."""
    w = 1.0001 * CLOUD[:5] / np.linalg.norm(CLOUD[:5], axis=1, keepdims=True)
    F, C = Quadratic(np.full_like(w, 1e8), 1e8 * w), Sphere().fit(CLOUD)
    np.testing.assert_allclose(decode(F, C, Posterior(n_samples=50)).c, decode(F, C).c, atol=1e-6)


def test_samples_are_reproducible():
    F, C = quadratic()[0], Sphere(2.0).fit(CLOUD)
    one, same, other = (decode(F, C, Posterior(n_samples=50, random_state=s)).c for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-6


def test_a_law_that_depends_on_x():
    """C(x) is sampled for each row: the same as decoding each row with its own law."""
    law = Equations("y1**2 + y2**2 = x1**2").fit(np.eye(2), inputs=["x1"])
    w = np.array([[0.9, 0.1], [0.2, 1.7], [-2.0, 2.0]])
    F, X = Quadratic(np.full_like(w, 20.0), 20 * w), np.array([[1.0], [2.0], [3.0]])
    d = decode(F, law.at(X), Posterior(n_samples=4000))
    for i, radius in enumerate(X[:, 0]):
        own = decode(F.rows(np.array([i])), Sphere(radius).fit(w), Posterior(n_samples=20_000)).c[0]
        np.testing.assert_allclose(d.c[i], own, atol=0.05 * radius)
    wiener = decode(F, law.at(X), Wiener(n_samples=4000))
    mu_G = [decode(F.rows(np.array([i])), Sphere(r).fit(w), Wiener(n_samples=20_000)).c[0] for i, r in enumerate(X[:, 0])]
    np.testing.assert_allclose(wiener.c, mu_G, atol=0.15)


def test_where_there_is_no_point_the_row_says_so():
    law = Equations("y1**2 + y2**2 = x1").fit(np.eye(2), inputs=["x1"])
    F = Quadratic(np.ones((2, 2)), np.array([[0.5, 0.5], [0.5, 0.5]]))
    for decoder in (Posterior(n_samples=20), Wiener(n_samples=20), Posterior(n_samples=20, project=True)):
        d = decode(F, law.at(np.array([[1.0], [-1.0]])), decoder)
        assert d.status.tolist() == ["ok" if decoder.project else "averaged", "infeasible"]
        assert np.isfinite(d.c).all()
    mixed = Union([Equations("y1**2 + y2**2 = x1"), Sphere()]).fit(np.eye(2), inputs=["x1"])
    with pytest.raises(TypeError, match=r"Posterior cannot sample Union for each input .*the default decoder needs no samples"):
        decode(F, mixed.at(np.ones((2, 1))), "posterior")


@pytest.mark.parametrize("law", [Rotations(2), Inflated(Rotations(2), 0.1), Union([Rotations(2), Sphere(3.0)])], ids=repr)
def test_other_sets(law):
    eye = np.eye(2).reshape(1, 4)
    F = Quadratic(np.full((1, 4), 1e4), 1e4 * eye)
    d = decode(F, law.fit(np.tile(eye, (5, 1))), Posterior(n_samples=4000))
    np.testing.assert_allclose(d.c, eye, atol=0.1)


def test_blocks_are_averaged_over_one_by_one():
    """A product with free outputs; with a metric that couples the blocks the product is sampled as a whole."""
    F, _ = quadratic()
    C = Product([(PointCloud(CLOUD[:, :2]), [0, 1])]).fit(CLOUD)
    d = decode(F, C, Posterior())
    own = decode(F.tasks([0, 1]), PointCloud(CLOUD[:, :2]).fit(CLOUD[:, :2]), Posterior())
    np.testing.assert_allclose(d.c, np.c_[own.c, W[:, 2]], atol=1e-12)
    box = Product([(Box(-1, 1), [0, 1]), (Box(0, 1), [2])]).fit(CLOUD)
    assert box.contains(decode(form()[0], box, Posterior()).c).all()
    np.testing.assert_array_equal(decode(F, Reals().fit(CLOUD), Posterior()).c, F.center)


# ---------------------------------------------------------------------------------------------------- edges


def test_outputs_without_confidence_are_left_out():
    """a_t(x) <= 0 says nothing about output t: its cost is dropped, and the row is doubtful."""
    a = np.array([[4.0, -2.0, 9.0]])
    F = Quadratic(a, a * W[:1])
    d = decode(F, PointCloud(CLOUD).fit(CLOUD), Posterior())
    q = (CLOUD[:, [0, 2]] - W[0, [0, 2]]) ** 2 @ a[0, [0, 2]]
    np.testing.assert_allclose(d.c[0], np.average(CLOUD, axis=0, weights=(1 + q / 15) ** -9), atol=1e-12)
    assert d.status[0] == "averaged" and F.doubtful[0]
    assert np.isfinite(decode(F, PointCloud(CLOUD).fit(CLOUD), "wiener").c).all()


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_rows_in_pieces(kind, monkeypatch):
    F, C = OBJECTIVES[kind]()[0], PointCloud(CLOUD).fit(CLOUD)
    whole = decode(F, C, "posterior")
    monkeypatch.setattr("lawful.decoders.enumeration.CHUNK_BYTES", 8 * 1500)
    pieces = decode(F, C, "posterior")
    np.testing.assert_allclose(pieces.c, whole.c, atol=1e-13)
    assert decode(F.rows(np.arange(0)), C, "posterior").c.shape == (0, 3)


def test_projection_of_the_mean():
    for F in (quadratic()[0], form()[0]):
        C = PointCloud(CLOUD).fit(CLOUD)
        for decoder in (Posterior, Wiener):
            mean, back = decode(F, C, decoder()).c, decode(F, C, decoder(project=True))
            G = Quadratic(F.a, F.a * mean) if hasattr(F, "a") else QuadraticForm(F.Q, mean)
            np.testing.assert_array_equal(back.c, CLOUD[G.costs(CLOUD).argmin(axis=1)])
            assert (back.residual == 0).all()


@pytest.mark.parametrize("decoder", [Posterior(), Posterior(width=0.2, dof=np.inf), Wiener()], ids=repr)
@pytest.mark.parametrize("kind", OBJECTIVES)
def test_another_array_library(decoder, kind):
    F, C = OBJECTIVES[kind]()[0], PointCloud(CLOUD).fit(CLOUD)
    if kind == "full":
        G = QuadraticForm(strict.asarray(F.Q), strict.asarray(F.w))
    else:
        G = Quadratic(strict.asarray(F.a), strict.asarray(F.b))
    for law in (C, Sphere(2.0).fit(CLOUD)):
        d = decode(G, law, decoder)
        assert d.c.__array_namespace__().__name__ == "array_api_strict"
        np.testing.assert_allclose(np.asarray(d.c), decode(F, law, decoder).c, atol=1e-10)


@pytest.mark.parametrize(
    ("decoder", "law", "error", "words"),
    [
        (Posterior(dof=0), PointCloud(CLOUD), ValueError, "dof=0 will not do; give a number above 0"),
        (Posterior(temperature=-1.0), PointCloud(CLOUD), ValueError, "temperature=-1.0 will not do"),
        (Posterior(temperature=np.nan), PointCloud(CLOUD), ValueError, "temperature=nan will not do"),
        (Posterior(width=-0.1), PointCloud(CLOUD), ValueError, "width=-0.1 will not do"),
        (Posterior(width="wide"), PointCloud(CLOUD), ValueError, "width='wide' will not do"),
        (Posterior(prior="flat"), PointCloud(CLOUD), ValueError, "unknown prior 'flat'"),
        (Posterior(prior=np.ones(3)), PointCloud(CLOUD), ValueError, r"shape \(3,\) will not do; .* each of the 250"),
        (Posterior(prior=-np.ones(250)), PointCloud(CLOUD), ValueError, "one weight >= 0"),
        (Posterior(n_samples=0), Sphere(), ValueError, "n_samples=0 will not do"),
        (Wiener(n_samples=2.5), Sphere(), ValueError, "Wiener: n_samples=2.5 will not do"),
        ("posteriour", Sphere(), ValueError, "unknown decoder 'posteriour'; choose one of posterior, wiener"),
        ("posterior", Affine([[1.0, 1.0, 1.0]]), TypeError, "Posterior would need a bounded set .Affine has no end"),
        ("wiener", Box(0), TypeError, "Wiener would need a bounded set .Box has no end"),
        ("posterior", Inflated(Sphere(), np.inf), TypeError, "bounded set .Inflated has no end"),
        ("posterior", Union([Sphere(), Affine([[1.0, 1.0, 1.0]])]), TypeError, "bounded set .Affine has no end"),
        ("posterior", Penalized(Sphere(), 0.1), TypeError, "Penalized allows every output: use its base set"),
    ],
)
def test_bad_input(decoder, law, error, words):
    with pytest.raises(error, match=words):
        decode(quadratic()[0], law.fit(CLOUD), decoder)


def test_only_quadratic_objectives_are_likelihoods():
    F = Huber().objective([np.ones((2, 3))] * 3, [np.arange(3.0)] * 3)
    with pytest.raises(TypeError, match=r"Posterior would need .*a quadratic objective .*use the Square loss"):
        decode(F, PointCloud(CLOUD).fit(CLOUD), "posterior")


# ---------------------------------------------------------------------------------------------------- in a model

X = RNG.uniform(-3, 3, (40, 1))
Y = np.c_[np.cos(X), np.sin(X)] + 0.2 * RNG.standard_normal((40, 2))
ANGLES = np.linspace(-np.pi, np.pi, 301)[:-1]
CIRCLE = np.c_[np.cos(ANGLES), np.sin(ANGLES)]
NEW = np.linspace(-3, 3, 30)[:, None]


@pytest.mark.parametrize("decoder", ["posterior", Posterior(temperature=0.7), "wiener"])
def test_in_a_model(decoder):
    loss = Square(confidence=0.5)
    model = ConstrainedRegressor(PointCloud(CIRCLE), loss=loss, surrogate=KernelRidge(Gaussian(1.0)), decoder=decoder)
    d = clone(model).fit(X, Y).decode(NEW)
    F = model.fit(X, Y).objective(NEW)
    np.testing.assert_allclose(d.c, decode(F, PointCloud(CIRCLE).fit(Y), decoder).c, atol=1e-12)
    if isinstance(decoder, Posterior) or decoder == "posterior":
        truth = np.c_[np.cos(NEW), np.sin(NEW)]
        assert np.mean((d.c - truth) ** 2) < 0.8 * np.mean((F.center - truth) ** 2)
        assert (d.residual < 0.2).all()
    if isinstance(decoder, Posterior):
        assert clone(model).set_params(decoder__temperature=0.1).decoder.temperature == 0.1


def test_confidence_between_none_and_variance():
    """a_t(x) = 1 / ((1 - s) + s variance_t(x)), times the metric."""
    ridge = KernelRidge(Gaussian(1.0), lam=1e-2)
    free = {
        s: ConstrainedRegressor(loss=Square("residual", s), surrogate=ridge).fit(X, Y) for s in (0, 0.3, 1, "none", "variance")
    }
    for name, s in (("none", 0), ("variance", 1)):
        np.testing.assert_allclose(free[s].objective(NEW).a, free[name].objective(NEW).a)
    model = free[0.3]
    variance = model.surrogate_.variance(NEW)
    np.testing.assert_allclose(model.objective(NEW).a, 1 / (0.7 + 0.3 * variance) / model.surrogate_.loo_mse_)
    np.testing.assert_allclose(model.objective(NEW).center, free["none"].objective(NEW).center)
    for wrong in (-0.1, 1.5, np.nan, "half", None):
        with pytest.raises(ValueError, match=r"unknown confidence .*, or a number between 0 and 1"):
            ConstrainedRegressor(loss=Square(confidence=wrong), surrogate=ridge).fit(X, Y)
    forest = RandomForestRegressor(n_estimators=2, random_state=0)
    with pytest.raises(ValueError, match=r"confidence=0\.5\) needs a predictive variance"):
        ConstrainedRegressor(loss=Square(confidence=0.5), surrogate=forest).fit(X, Y)


# ---------------------------------------------------------------------------------------------------- fixed intercepts

BETA = np.array([0.7, -0.3])
GAPS = np.where(RNG.uniform(size=Y.shape) < 0.3, np.nan, Y)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear()], ids=repr)
@pytest.mark.parametrize("lam", [0.01, [0.01, 0.3], "auto"], ids=str)
def test_fixed_intercept(kernel, lam):
    """beta + sum_i alpha_i(x) (y_i - beta), leave-one-out by refitting, and the variance of the ridge without a constant."""
    ridge = KernelRidge(kernel, lam=lam, intercept=BETA).fit(X, GAPS)
    plain = KernelRidge(kernel, lam=lam, intercept=False).fit(X, GAPS - BETA)
    np.testing.assert_allclose(ridge.lam_, plain.lam_)
    np.testing.assert_allclose(ridge.predict(NEW), plain.predict(NEW) + BETA, atol=1e-10)
    np.testing.assert_allclose(ridge.variance(NEW), plain.variance(NEW))
    for t in range(2):
        rows = np.flatnonzero(~np.isnan(GAPS[:, t]))
        x, y = X[rows], GAPS[rows, t]
        K, n = kernel(x, x), len(rows)
        alpha = np.linalg.solve(K + n * ridge.lam_[t] * np.eye(n), kernel(x, NEW))
        np.testing.assert_allclose(ridge.predict(NEW)[:, t], BETA[t] + alpha.T @ (y - BETA[t]), atol=1e-6)
        refitted = []
        for i in range(n):
            others = np.arange(n) != i
            system = K[np.ix_(others, others)] + n * ridge.lam_[t] * np.eye(n - 1)
            refitted.append(y[i] - BETA[t] - K[i, others] @ np.linalg.solve(system, y[others] - BETA[t]))
        np.testing.assert_allclose(ridge.residuals()[t], refitted, atol=1e-6)
        np.testing.assert_allclose(ridge.loo_mse_[t], np.mean(np.square(refitted)), rtol=1e-5)


def test_fixed_intercept_tunes_length_scales_on_what_is_left():
    ridge = KernelRidge(intercept=BETA).fit(X, Y)
    plain = KernelRidge(intercept=False).fit(X, Y - BETA)
    np.testing.assert_allclose(ridge.predict(NEW), plain.predict(NEW) + BETA, atol=1e-8)
    np.testing.assert_array_equal(KernelRidge(Gaussian(1.0), intercept=BETA).fit(X, Y).predict([[99.0]]), [BETA])


@pytest.mark.parametrize("confidence", ["none", "scores", 0.5])
def test_fixed_intercept_in_a_model(confidence):
    """Z = [1, y] minus [1, beta]: the scores are beta's encoding plus what was learned, so a = 1."""
    ridge = KernelRidge(Gaussian(1.0), lam=0.01, intercept=BETA)
    model = ConstrainedRegressor(PointCloud(CIRCLE), loss=Square(confidence=confidence), surrogate=ridge).fit(X, GAPS)
    center = KernelRidge(Gaussian(1.0), lam=0.01, intercept=False).fit(X, GAPS - BETA).predict(NEW) + BETA
    np.testing.assert_allclose(model.objective(NEW).center, center, atol=1e-10)
    np.testing.assert_array_equal([s[:, 0] for s in model.surrogate_.predict_tasks(NEW)], np.ones((2, len(NEW))))
    assert (model.decode([[99.0]]).status == "ok").all()
    ones = ConstrainedRegressor(surrogate=KernelRidge(Gaussian(1.0), lam=0.01, intercept=[0.0])).fit(X, np.ones(len(X)))
    np.testing.assert_array_equal(ones.surrogate_.predict_tasks(NEW)[0][:, 0], np.ones(len(NEW)))


@pytest.mark.parametrize("intercept", [[0.0], [0.0, np.nan], "mean", 3.0, None, [[0.0, 1.0]]], ids=repr)
def test_bad_intercepts(intercept):
    with pytest.raises(ValueError, match=r"KernelRidge\(intercept=.*will not do; give True, False or 2 finite numbers"):
        KernelRidge(intercept=intercept).fit(X, Y)


def test_fixed_intercepts_are_for_labels():
    with pytest.raises(ValueError, match="fixed intercept needs the labels themselves, as the Square loss"):
        ConstrainedRegressor(loss=Huber(), surrogate=KernelRidge(Gaussian(1.0), intercept=BETA)).fit(X, Y)


def test_doubtful_rows_warn_as_with_other_decoders():
    model = ConstrainedRegressor(
        PointCloud(CIRCLE),
        loss=Square(confidence="scores"),
        surrogate=KernelRidge(Gaussian(0.5), lam=1e-3, intercept=False),
        decoder="posterior",
    ).fit(X, Y)
    with pytest.warns(DecodingWarning, match="1 low_confidence"):
        c = model.predict([[50.0]])
    np.testing.assert_allclose(c, [CIRCLE.mean(axis=0)], atol=1e-8)


@pytest.mark.data
def test_sarcos_gains_seven_points_over_single_tasks():
    """15 training points for each of seven torques, a cloud of 1000 others: 8 splits, paired."""
    data = load_sarcos(Path(os.environ["LAWFUL_DATA"]) / "sarcos")
    gains = []
    for seed in range(8):
        order = np.random.default_rng(seed).permutation(len(data.X))
        own, cloud, test = order[:105].reshape(7, 15), data.Y[order[105:1105]], order[1105:]
        x, y = stack_tasks([(data.X[rows], data.Y[rows, t]) for t, rows in enumerate(own)])
        center, unit = x.mean(axis=0), x.std(axis=0)
        scores = []
        for law in (
            {},
            {
                "constraint": PointCloud(cloud),
                "decoder": "posterior",
                "loss": Square(confidence=0.5),
                "intercepts": [True, cloud.mean(axis=0)],
            },
        ):
            model = ConstrainedRegressorCV(
                kernels=Linear(),
                lams=np.logspace(-3, 3, 25),
                cv=5,
                select_on="constrained",
                lam_per_task=False,
                random_state=seed,
                **law,
            ).fit((x - center) / unit, y)
            scores.append(100 * model.score((data.X[test] - center) / unit, data.Y[test]))
        gains.append(scores[1] - scores[0])
    assert np.mean(gains) >= 7
    assert np.mean(np.array(gains) > 0) >= 0.75
