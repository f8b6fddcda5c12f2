"""One test per Proposition, Lemma and Theorem of the paper, named by its LaTeX label."""

import numpy as np
import pytest

from lawful import (
    Absolute,
    Box,
    ConstrainedRegressor,
    Hinge,
    Huber,
    KernelRidge,
    Logistic,
    Pinball,
    PointCloud,
    Sphere,
    Square,
)
from lawful.kernels import Gaussian
from lawful.losses.base import Loss

PAPER = Square(metric="identity", confidence="scores")
V = np.array([[0.0, 0.0, 1.0], [0.0, -2.0, 0.0], [0.0, 0.0, 0.0]])  # erratum E6: entry (3, 1) is 0


def psi(y):
    return np.stack([y**2, y, np.ones_like(y)], axis=-1)


def truth(x):
    return np.stack([np.cos(x), np.sin(x)], axis=-1)


def sample(n, seed, noise=0.3):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-np.pi, np.pi, n)
    return x[:, None], truth(x) + noise * rng.standard_normal((n, 2))


def excess_risk(f, x):
    """E(f) - E(f*) for the loss c^2 - 2 c y: the mean of (f_t - f*_t)^2 over x and tasks, since f* = E[y|x] is in C."""
    return np.mean((f - truth(x)) ** 2)


def test_prop_nl_mtl_solution():
    """The minimiser of the expected risk is argmin_C sum_t <psi(c_t), V g*_t(x)>, here the noise-free circle."""
    x = np.linspace(-3, 3, 41)
    g = psi(truth(x))
    g[..., 0] += 0.09  # E[y^2] = f*^2 + noise variance
    angles = np.linspace(-np.pi, np.pi, 20001)
    circle = truth(angles)
    cost = np.einsum("pti,ij,xtj->xp", psi(circle), V, g)
    np.testing.assert_allclose(circle[cost.argmin(axis=1)], truth(x), atol=1e-3)


@pytest.mark.parametrize("loss", [Square(), Absolute(), Huber(0.5), Pinball(0.3), Logistic(), Hinge()], ids=repr)
def test_prop_nl_mtl_loss_trick(loss):
    """f(x) = argmin_C sum_t sum_i alpha_it(x) loss(c_t, y_it), the weights from separate data sets per task."""
    X, Y = sample(60, 1)
    Y[:25, 0], Y[40:, 1] = np.nan, np.nan
    lam, points = 1e-2, truth(np.linspace(-np.pi, np.pi, 200))
    if isinstance(loss, Square):
        loss = PAPER
    surrogate = KernelRidge(Gaussian(1.0), lam=lam, intercept=False)
    model = ConstrainedRegressor(PointCloud(points), loss=loss, surrogate=surrogate).fit(X, Y)
    X_new = np.linspace(-2.5, 2.5, 30)[:, None]
    total = np.zeros((30, 200))
    for t in range(2):
        seen = ~np.isnan(Y[:, t])
        K, Kx = Gaussian(1.0)(X[seen], X[seen]), Gaussian(1.0)(X[seen], X_new)
        alpha = np.linalg.solve(K + seen.sum() * lam * np.eye(seen.sum()), Kx)
        total += alpha.T @ loss(points[None, :, t], Y[seen, t][:, None])
    np.testing.assert_allclose(model.predict(X_new), points[total.argmin(axis=1)], atol=1e-12)


@pytest.mark.parametrize("loss", [Square(), Huber(0.5), Logistic(), Hinge(), Absolute()], ids=repr)
def test_teo_smooth(loss):
    """Losses of y - y' or y y' are SELF: on any finite set of labels l(y, y') = <psi(y), V psi(y')> with indicators psi."""
    y = np.linspace(-1, 1, 17)
    table = loss(y[:, None], y[None, :])
    encoded, atoms = Loss.encode(loss, y)
    np.testing.assert_allclose(encoded @ loss(atoms[:, None], atoms[None, :]) @ encoded.T, table)
    # and the expansion is that of a continuous kernel on [-1, 1]: its singular values are summable, so they decay
    fine = np.linspace(-1, 1, 400)
    s = np.linalg.svd(loss(fine[:, None], fine[None, :]), compute_uv=False)
    assert s[40:].sum() < 0.05 * s.sum()


@pytest.mark.parametrize("n", [30, 100, 400])
def test_teo_comparison_inequality(n):
    """E(f) - E(f*) <= q sqrt(mean_t |g_t - g*_t|^2), both sides computed, where g* is known."""
    X, Y = sample(n, n)
    x = np.linspace(-np.pi, np.pi, 2001)
    ridge = lambda: KernelRidge(Gaussian(1.0), lam=n**-0.5, intercept=False)  # noqa: E731
    f = ConstrainedRegressor(Sphere(), loss=PAPER, surrogate=ridge()).fit(X, Y).predict(x[:, None])
    g = ridge().fit(X, np.concatenate([psi(Y[:, t]) for t in range(2)], axis=1)).predict(x[:, None])
    g = g.reshape(len(x), 2, 3)
    g_star = psi(truth(x))
    g_star[..., 0] += 0.3**2
    q = 2 * np.sqrt((4 + 1) / 2)  # lem:q-for-sphere with B = 1, T = 2
    bound = q * np.sqrt(np.mean(np.sum((g - g_star) ** 2, axis=-1)))
    assert 0 < excess_risk(f, x) <= bound


@pytest.mark.parametrize("T", [1, 2, 5, 20])
@pytest.mark.parametrize("B", [1.0, 2.0])
def test_lem_q_for_sphere(T, B):
    """q = 2 sup_C sqrt(mean_t |V* psi(c_t)|^2): exact values and the bounds of the lemma."""

    def size(c):
        return 2 * np.sqrt(np.mean(np.sum((psi(c) @ V) ** 2, axis=-1), axis=-1))

    corners = np.full((1, T), B)
    sphere = np.concatenate([Sphere(B).fit(np.zeros((1, T))).sample(20000, 0), B * np.eye(T)])
    box = np.concatenate([Box(-B, B).fit(np.zeros((1, T))).sample(20000, 0), corners])
    q_box, q_sphere = 2 * np.sqrt(4 * B**2 + B**4), 2 * np.sqrt((4 * B**2 + B**4) / T)
    np.testing.assert_allclose(size(box).max(), q_box)
    np.testing.assert_allclose(size(sphere).max(), q_sphere)
    assert q_box <= 2 * np.sqrt(5) * B**2 + 1e-12
    assert q_sphere <= 2 * np.sqrt(5) * B**2 / np.sqrt(T) + 1e-12


def excess_by_n(lam, sizes, seeds=5):
    x = np.linspace(-np.pi, np.pi, 1001)
    risks = []
    for n in sizes:
        fits = []
        for seed in range(seeds):
            X, Y = sample(n, 1000 * seed + n)
            surrogate = KernelRidge(Gaussian(1.0), lam=lam, intercept=False)
            fits.append(
                excess_risk(ConstrainedRegressor(Sphere(), loss=PAPER, surrogate=surrogate).fit(X, Y).predict(x[:, None]), x)
            )
        risks.append(np.mean(fits))
    return np.array(risks)


def test_teo_universality():
    """lambda_t = n_t^(-1/4) (lam="consistent"): the excess risk goes to 0."""
    risk = excess_by_n("consistent", [25, 100, 400, 1600])
    assert (np.diff(risk) < 0).all()
    assert risk[-1] < 0.25 * risk[0]


def test_teo_bound():
    """lambda_t = n_t^(-1/2) (lam="rate") and g* in the hypothesis space: excess risk of order n^(-1/4) or better."""
    sizes = np.array([25, 100, 400, 1600])
    risk = excess_by_n("rate", sizes)
    slope = np.polyfit(np.log(sizes), np.log(risk), 1)[0]
    assert slope <= -0.25
