"""One test per erratum of the paper: what is printed, what is true, and that the library does the latter."""

import numpy as np
import pytest

from lawful import Equations, KernelRidge, Penalized, Sphere
from lawful.datasets import make_curve
from lawful.decoders import decode
from lawful.kernels import Gaussian
from lawful.losses import Logistic, Quadratic

ANGLES = np.linspace(-np.pi, np.pi, 20_001)[:-1]
CIRCLE = np.c_[np.cos(ANGLES), np.sin(ANGLES)]


@pytest.mark.parametrize(("curve", "violation"), [("lemniscate", 0), ("lemniscate_tall", 0), ("lemniscate_printed", 0.75)])
def test_e1_the_printed_lemniscate_violates_its_equation(curve, violation):
    data = make_curve(curve, 10, n_test=20000, random_state=0)
    worst = Equations(data.equation).fit(data.Y).residual(data.Y_test).max()
    np.testing.assert_allclose(worst, violation, atol=1e-3)


def test_e2_numerator_of_f_mu():
    """(f_mu)_t = (b_t + kappa f0_t)/(a_t + kappa); the printed b_t/a_t in the numerator costs more."""
    rng = np.random.default_rng(0)
    a, b, mu = rng.uniform(0.3, 1.2, (50, 2)), rng.standard_normal((50, 2)), 0.7
    z = decode(Quadratic(a, b), Penalized(Sphere(), mu).fit(b)).c
    kappa = a.sum(1, keepdims=True) / mu
    f0 = Sphere().fit(b).project(b / (a + kappa), a / (a + kappa))
    printed = (b / a + kappa * f0) / (a + kappa)

    def price(z):
        return (a * (z - b / a) ** 2).sum(1) + kappa[:, 0] * (np.linalg.norm(z, axis=1) - 1) ** 2

    np.testing.assert_allclose(z, (b + kappa * f0) / (a + kappa), atol=1e-12)
    assert (price(z) <= price(printed) + 1e-12).all()
    assert (price(printed) - price(z)).max() > 0.1


def test_e3_scale_of_mu():
    """Equal weights: the residual shrinks by mu/(T + mu), not mu/(1 + mu)."""
    w, mu = np.array([[0.3, 0.4]]), 2.0
    z = decode(Quadratic(np.ones_like(w), w), Penalized(Sphere(), mu).fit(w)).c
    f0 = w / 0.5
    np.testing.assert_allclose(z, f0 + (w - f0) * mu / (2 + mu), atol=1e-12)


@pytest.mark.parametrize("constraint", [Sphere(), Equations("y1**2 + y2**2 = 1")], ids=["closed form", "newton"])
def test_e4_negative_scores(constraint):
    """For a < 0 the minimiser of a|c|^2 - 2 b.c over the circle is b/|b|, while projecting b/a gives -b/|b|."""
    rng = np.random.default_rng(1)
    b = rng.standard_normal((20, 2))
    F = Quadratic(np.full_like(b, -0.5), b)
    d = decode(F, constraint.fit(CIRCLE[::100]))
    np.testing.assert_allclose(d.c, b / np.linalg.norm(b, axis=1, keepdims=True), atol=1e-6)
    assert (d.status == "low_confidence").all()
    # mixed signs: against enumeration
    G = Quadratic(rng.standard_normal((200, 2)), rng.standard_normal((200, 2)))
    d = decode(G, constraint.fit(CIRCLE[::100]))
    assert (d.value <= G.costs(CIRCLE).min(axis=1) + 1e-6).all()


def test_e5_the_penalty_belongs_to_the_prediction():
    """As printed the distance is that of the label: a constant in c, so mu would change nothing."""
    rng = np.random.default_rng(2)
    y, alpha, c = rng.standard_normal((30, 2)), rng.uniform(size=30), CIRCLE[::200] * 0.7
    loss = ((c[:, None] - y) ** 2).sum(-1)
    label = (np.linalg.norm(y, axis=1) - 1) ** 2
    for mu in (0.01, 1.0):
        assert (loss @ alpha).argmin() == ((loss + label / mu) @ alpha).argmin()
    # The library penalises the prediction: mu does change it.
    w = np.array([[0.5, 0.2]])
    small, large = (decode(Quadratic(np.ones_like(w), w), Penalized(Sphere(), mu).fit(w)).c for mu in (0.01, 100.0))
    assert abs(np.linalg.norm(small) - 1) < 0.01 < abs(np.linalg.norm(large) - 1)


def test_e6_operator_of_the_square_loss():
    """V with a 1 in entry (3, 1) adds 1 to |V* psi|^2, so q_S would not fall with T."""
    y = np.linspace(-2, 2, 9)
    psi = np.stack([y**2, y, np.ones_like(y)], axis=1)
    right = np.array([[0.0, 0, 1], [0, -2, 0], [0, 0, 0]])
    printed = right + np.array([[0.0, 0, 0], [0, 0, 0], [1, 0, 0]])
    np.testing.assert_allclose(((psi @ right) ** 2).sum(1), 4 * y**2 + y**4)
    np.testing.assert_allclose(((psi @ printed) ** 2).sum(1), 1 + 4 * y**2 + y**4)
    np.testing.assert_allclose(psi @ right @ psi.T, y[:, None] ** 2 - 2 * y[:, None] * y)


@pytest.mark.parametrize("T", [2, 7])
def test_e7_constant_of_the_sphere(T):
    """q_S = 2 sqrt((4 B^2 + B^4)/T); the B sqrt(4 + B^2) at the end of the proof lacks 2/sqrt(T)."""
    B = 1.5
    points = np.concatenate([Sphere(B).fit(np.zeros((1, T))).sample(5000, 0), B * np.eye(T)])
    measured = 2 * np.sqrt(np.mean(4 * points**2 + points**4, axis=1)).max()
    np.testing.assert_allclose(measured, 2 * np.sqrt((4 * B**2 + B**4) / T))
    np.testing.assert_allclose(measured, B * np.sqrt(4 + B**2) * 2 / np.sqrt(T))


def test_e8_cauchy_schwarz_before_the_supremum():
    """Supremum per task and then the sum is larger than the supremum of the sum, so q would not be what is stated."""
    c = Sphere().fit(np.zeros((1, 3))).sample(20000, 0)
    size = 4 * c**2 + c**4
    assert np.sqrt(size.max(axis=0).sum()) > 1.2 * np.sqrt(size.sum(axis=1).max())


@pytest.mark.parametrize("T", [2, 10])
def test_e9_union_bound(T):
    """T 8 exp(-eta) = 8 exp(-tau) needs eta = tau + log T; eta = tau log T is too small for small tau."""
    tau = 1.0
    np.testing.assert_allclose(T * 8 * np.exp(-(tau + np.log(T))), 8 * np.exp(-tau))
    if T == 2:
        assert T * 8 * np.exp(-tau * np.log(T)) > 8 * np.exp(-tau)


def test_e10_self_needs_lipschitz_losses():
    """A jump in the loss (derivative 0 almost everywhere, yet not Lipschitz) has slowly decaying singular values."""
    y = np.linspace(-1, 1, 300)
    jump = (y[:, None] > y[None, :]).astype(float)
    smooth = np.logaddexp(0, -y[:, None] * y[None, :])
    tail = [np.linalg.svd(table, compute_uv=False)[20:].sum() for table in (jump, smooth)]
    assert tail[0] > 10
    assert tail[1] < 1e-6


def test_e11_equivalence_needs_the_range_of_theta():
    """With A = (theta theta')^+ the part of f outside range(theta) is not penalised at all."""
    theta = np.array([[1.0], [1.0]])
    A = np.linalg.pinv(theta @ theta.T)
    outside = np.array([1.0, -1.0])
    np.testing.assert_allclose(outside @ A @ outside, 0, atol=1e-12)
    # so the regularised fit to y = (1, -1) reproduces it, while every f = theta h has f_1 = f_2
    np.testing.assert_allclose(np.linalg.solve(np.eye(2) + 5.0 * A, outside), outside)


def test_e12_sets_are_closed():
    """A strict inequality has no minimiser on its edge; it is read as its closure."""
    C = Equations("y1 < 1").fit(np.zeros((1, 1)))
    d = decode(Quadratic(np.ones((1, 1)), np.full((1, 1), 3.0)), C)
    np.testing.assert_allclose(d.c, 1.0)
    assert d.status[0] == "ok"


def test_e13_rate_is_tau_plus_log_T_squared():
    """The bound carries (tau + log T)^2: theorem's tau^2 log T is smaller and not implied."""
    tau, T = 1.0, 100
    assert (tau + np.log(T)) ** 2 > tau**2 * np.log(T)


def test_misprint_logistic():
    """log(1 + exp(-y y')): the printed log(1 - exp(-y y')) is not even real for y y' < 0."""
    y = np.array([-1.0, 1.0])
    np.testing.assert_allclose(Logistic()(y, -y), np.log1p(np.exp(1.0)))
    with np.errstate(invalid="ignore"):
        assert np.isnan(np.log(1 - np.exp(1.0)))


def test_scores_underflow_far_from_the_data():
    """b/a is NaN where the Gaussian kernel underflows; the scores are looked at before any division."""
    X = np.linspace(-1, 1, 10)[:, None]
    far = np.array([[50.0]])
    ridge = KernelRidge(Gaussian(0.5), lam=1e-3, intercept=False).fit(X, np.c_[np.cos(X), np.sin(X)])
    assert np.abs(ridge.predict(far)).max() < 1e-300
    from lawful import ConstrainedRegressor, DecodingWarning

    model = ConstrainedRegressor(Sphere(), surrogate=KernelRidge(Gaussian(0.5), lam=1e-3, intercept=False))
    model.fit(X, np.c_[np.cos(X), np.sin(X)])
    with pytest.warns(DecodingWarning, match="1 low_confidence"):
        d = model.decode(far)
    assert d.status[0] == "low_confidence"
    np.testing.assert_allclose(np.linalg.norm(d.c), 1.0)
