"""One test per Example of the paper, named by its LaTeX label, against brute force over a dense set."""

import numpy as np
import pytest

from lawful import ConstrainedRegressor, Equations, Inflated, KernelRidge, Penalized, PointCloud, Sphere, Square
from lawful.decoders import decode
from lawful.kernels import Gaussian
from lawful.losses import Quadratic

ANGLES = np.linspace(-np.pi, np.pi, 100_001)[:-1]
CIRCLE = np.c_[np.cos(ANGLES), np.sin(ANGLES)]
PAPER = Square(metric="identity", confidence="scores")


def ridge(lam=1e-3, sigma=1.0):
    """The paper's surrogate: no intercept, K + n lambda I."""
    return KernelRidge(Gaussian(sigma), lam=lam, intercept=False)


def scores(X, X_new, lam, sigma=1.0):
    """alpha(x) = (K + n lambda I)^{-1} K_x, by hand."""
    K, Kx = Gaussian(sigma)(X, X), Gaussian(sigma)(X, X_new)
    return np.linalg.solve(K + len(X) * lam * np.eye(len(X)), Kx).T


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X, X_new = rng.uniform(-3, 3, (40, 1)), rng.uniform(-3, 3, (50, 1))
    return X, np.c_[np.cos(X), np.sin(X)] + 0.1 * rng.standard_normal((40, 2)), X_new


def brute(cost):
    """The cheapest point of the dense circle for each row of an (m, P) table."""
    return cost.min(axis=1)


def test_ex_ls_and_C(data):
    """Vector-valued regression: argmin over C of sum_i alpha_i |c - y_i|^2 is the projection of b(x)/a(x)."""
    X, Y, X_new = data
    alpha = scores(X, X_new, 1e-3)
    a, b = alpha.sum(1, keepdims=True), alpha @ Y
    assert (a > 0).all()
    model = ConstrainedRegressor(Sphere(), loss=PAPER, surrogate=ridge()).fit(X, Y)
    c = model.predict(X_new)
    np.testing.assert_allclose(c, (b / a) / np.linalg.norm(b / a, axis=1, keepdims=True), atol=1e-10)

    def risk(points):
        return np.stack([(alpha * ((p - Y) ** 2).sum(1)).sum(1) for p in points], axis=1)

    dense = CIRCLE[::50]
    mine = np.array([(alpha[i] * ((c[i] - Y) ** 2).sum(1)).sum() for i in range(len(c))])
    assert (mine <= risk(dense).min(axis=1) + 1e-12).all()


def test_ex_ls_and_mtl(data):
    """Each task on its own inputs: the projection in the metric A(x) = diag(a_t(x))."""
    X, Y, X_new = data
    Y = Y.copy()
    Y[:25, 0], Y[20:, 1] = np.nan, np.nan
    rows = [np.arange(25, 40), np.arange(20)]
    alphas = [scores(X[r], X_new, 1e-3) for r in rows]
    a = np.stack([alpha.sum(1) for alpha in alphas], axis=1)
    b = np.stack([alpha @ Y[r, t] for t, (alpha, r) in enumerate(zip(alphas, rows))], axis=1)
    assert np.abs(a[:, 0] - a[:, 1]).max() > 0.01  # the weights differ, so this is not the plain projection
    for constraint in (Sphere(), Equations("y1**2 + y2**2 = 1")):
        model = ConstrainedRegressor(constraint, loss=PAPER, surrogate=ridge(), on_failure="raise").fit(X, Y)
        c = model.predict(X_new)
        cost = (a * c**2 - 2 * b * c).sum(1)
        best = brute(a @ (CIRCLE**2).T - 2 * b @ CIRCLE.T)
        assert (cost <= best + 1e-9).all()


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.3])
def test_ex_ls_and_perturbations_delta(data, delta):
    """f_delta = f_0 + r min(1, delta / |r|), vector-valued case."""
    X, Y, X_new = data
    fit = lambda C: ConstrainedRegressor(C, loss=PAPER, surrogate=ridge()).fit(X, Y)  # noqa: E731
    exact = fit(Sphere())
    F = exact.objective(X_new)
    f0, r = exact.predict(X_new), F.b / F.a - exact.predict(X_new)
    expected = f0 + r * np.minimum(1, delta / np.linalg.norm(r, axis=1, keepdims=True))
    np.testing.assert_allclose(fit(Inflated(Sphere(), delta)).predict(X_new), expected, atol=1e-6)


@pytest.mark.parametrize("mu", [0.01, 0.5, 3.0, 100.0])
def test_ex_ls_and_perturbations_mu(data, mu):
    """f_mu = f_0 + r mu / (T + mu) (erratum E3: mu/(1 + mu) belongs to the summed loss)."""
    X, Y, X_new = data
    fit = lambda C: ConstrainedRegressor(C, loss=PAPER, surrogate=ridge()).fit(X, Y)  # noqa: E731
    exact = fit(Sphere())
    F = exact.objective(X_new)
    f0 = exact.predict(X_new)
    expected = f0 + (F.b / F.a - f0) * mu / (2 + mu)
    np.testing.assert_allclose(fit(Penalized(Sphere(), mu)).predict(X_new), expected, atol=1e-10)


def weighted_rows(seed, m=40):
    rng = np.random.default_rng(seed)
    a, w = rng.uniform(0.2, 3.0, (m, 2)), rng.standard_normal((m, 2)) * 1.2
    return Quadratic(a, a * w)


@pytest.mark.parametrize("mu", [0.1, 0.7, 5.0])
@pytest.mark.parametrize(
    "base", [Sphere(), Equations("y1**2 + y2**2 = 1"), PointCloud(CIRCLE[::20])], ids=["sphere", "eq", "cloud"]
)
def test_nonlinear_mtl_and_violations_mu(mu, base):
    """The last Example of the Appendix, corrected (E2): min_z sum a (z - w)^2 + (sum a) |z - Pi_C z|^2 / mu."""
    F = weighted_rows(1)
    z = decode(F, Penalized(base, mu).fit(CIRCLE[:3])).c
    kappa = F.a.sum(1) / mu

    def price(z):
        return (F.a * (z - F.b / F.a) ** 2).sum(1) + kappa * (np.linalg.norm(z, axis=1) - 1) ** 2

    # Brute force: for each c of the circle the best z is known (a convex quadratic), so scan c.
    best = np.full(len(z), np.inf)
    for c in CIRCLE[::20]:
        best_z = (F.b + kappa[:, None] * c) / (F.a + kappa[:, None])
        best = np.minimum(best, (F.a * (best_z - F.b / F.a) ** 2).sum(1) + kappa * ((best_z - c) ** 2).sum(1))
    assert (price(z) <= best + 1e-5).all()


@pytest.mark.parametrize("delta", [0.05, 0.3])
@pytest.mark.parametrize(
    "base", [Sphere(), Equations("y1**2 + y2**2 = 1"), PointCloud(CIRCLE[::400])], ids=["sphere", "eq", "cloud"]
)
def test_unequal_weights_in_the_tube(delta, base):
    """C_delta for unequal a_t (not in the paper): no point of a dense grid of the tube is cheaper."""
    F = weighted_rows(2)
    C = Inflated(base, delta).fit(CIRCLE[:3])
    d = decode(F, C)
    points = base.points if isinstance(base, PointCloud) else CIRCLE[::100]
    if isinstance(base, PointCloud):
        reach = np.min(np.linalg.norm(d.c[:, None] - points[None], axis=2), axis=1)
    else:
        reach = np.abs(np.linalg.norm(d.c, axis=1) - 1)
    assert (reach <= delta + 1e-7).all()
    angles, radii = np.linspace(0, 2 * np.pi, 60, endpoint=False), np.linspace(0, delta, 9)
    disc = np.concatenate([r * np.c_[np.cos(angles), np.sin(angles)] for r in radii])
    grid = (points[:, None] + disc[None]).reshape(-1, 2)
    best = np.concatenate([F.rows(np.array([i])).costs(grid).min(axis=1) for i in range(F.shape[0])])
    assert (d.value <= best + 1e-6).all()


def test_relaxations_have_the_right_limits(data):
    X, Y, X_new = data
    fit = lambda C: ConstrainedRegressor(C, surrogate=ridge()).fit(X, Y).predict(X_new)  # noqa: E731
    exact, free = fit(Sphere()), fit(None)
    np.testing.assert_allclose(fit(Inflated(Sphere(), 0.0)), exact, atol=1e-12)
    np.testing.assert_allclose(fit(Inflated(Sphere(), 1e6)), free, atol=1e-8)
    np.testing.assert_allclose(fit(Penalized(Sphere(), 1e-9)), exact, atol=1e-7)
    np.testing.assert_allclose(fit(Penalized(Sphere(), 1e12)), free, atol=1e-7)
