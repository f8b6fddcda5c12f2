"""Tuning by evidence: likelihood, gradient and information against dense formulas, then what they find."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from lawful import ConstrainedRegressor, KernelRidge, Sphere
from lawful.kernels import Additive, Gaussian, Laplacian, Matern, Trend
from lawful.surrogates import evidence as module
from lawful.surrogates import geometry as matrices_module
from lawful.surrogates import scoring as scoring_module
from lawful.surrogates.averaging import SAME, Tuner, alike, left_out, row_weights, tune, tune_together
from lawful.surrogates.evidence import Labels, evidence, leave_one_out, noise_path
from lawful.surrogates.exact import distinct
from lawful.surrogates.factorise import make_factor, regular_factor
from lawful.surrogates.geometry import Symmetric, geometry
from lawful.surrogates.scoring import Posterior, Prior, alone, without

RNG = np.random.default_rng(0)
P, D, N = 30, 3, 36
X = RNG.standard_normal((P, D))
W = RNG.uniform(0.5, 2.0, P)
W *= N / W.sum()
Y = np.sin(X[:, 0]) + 0.1 * RNG.standard_normal(P)
T, LOG_G = np.array([0.1, 0.6, 1.0]), -3.0
KERNELS = [Gaussian(), Matern(0.5), Matern(1.5), Matern(2.5), Laplacian()]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
each_intercept = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])


def labels(intercept, within=0.3):
    return Labels(X, W, Y, within, N, intercept)


def dense(kernel, t, log_g, w=W):
    """A, and P of the module's docstring."""
    A = clone(kernel).set_params(sigma=np.exp(t))(X, X) + np.exp(log_g) * np.diag(1 / w)
    B = np.linalg.inv(A)
    return A, B, B - np.outer(B.sum(1), B.sum(1)) / B.sum()


@each_kernel
@each_intercept
def test_slope_of_the_evidence(kernel, intercept):
    def f(x):
        return evidence(labels(intercept), geometry(kernel, X, x[:D]), x[D], slope=False).value

    x, h = np.append(T, LOG_G), 1e-5
    exact = evidence(labels(intercept), geometry(kernel, X, T), LOG_G).slope
    numeric = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(D + 1)]
    np.testing.assert_allclose(exact, numeric, rtol=1e-5, atol=1e-6)


@each_kernel
@each_intercept
def test_information_is_fishers(kernel, intercept, monkeypatch):
    """With many random vectors the estimate is the formula."""
    monkeypatch.setattr(module, "PROBES", 20_000)
    found = evidence(labels(intercept), geometry(kernel, X, T), LOG_G, groups=alone(D)).information
    _, B, P_ = dense(kernel, T, LOG_G)
    Q = P_ if intercept else B
    h = 1e-5
    A = [(dense(kernel, T + h * e, LOG_G)[0] - dense(kernel, T - h * e, LOG_G)[0]) / (2 * h) for e in np.eye(D)]
    A.append(np.exp(LOG_G) * np.diag(1 / W))
    free = P - intercept
    F = np.array([[np.trace(Q @ a @ Q @ b) - np.trace(Q @ a) * np.trace(Q @ b) / free for b in A] for a in A]) / 2
    F[-1, -1] += (N - P) / 2
    np.testing.assert_allclose(found, F, rtol=0.05, atol=0.05 * np.sqrt(np.outer(np.diag(F), np.diag(F))).max())


def test_evidence_without_constant_is_the_likelihood():
    """With s2 at its maximum, up to a constant: differences of f are differences of the density of the labels."""
    values, densities = [], []
    for t, log_g in ((T, LOG_G), (T + 0.5, -1.0), (T - 0.4, -6.0)):
        A = dense(Gaussian(), t, log_g, np.ones(P))[0]
        s2 = Y @ np.linalg.solve(A, Y) / P
        densities.append(-multivariate_normal(np.zeros(P), s2 * A).logpdf(Y))
        found = evidence(Labels(X, np.ones(P), Y, 0.0, P, False), geometry(Gaussian(), X, t), log_g, slope=False)
        values.append(found.value)
        assert found.s2 == pytest.approx(s2)
    np.testing.assert_allclose(np.diff(values), np.diff(densities), rtol=1e-8)


def test_evidence_with_constant_is_the_likelihood_of_contrasts():
    """Integrating the constant out is looking at differences of labels only."""
    contrasts = np.linalg.svd(np.ones((1, P)))[2][1:]
    values, densities = [], []
    for t, log_g in ((T, LOG_G), (T + 0.5, -1.0)):
        A = contrasts @ dense(Gaussian(), t, log_g, np.ones(P))[0] @ contrasts.T
        z = contrasts @ Y
        s2 = z @ np.linalg.solve(A, z) / (P - 1)
        densities.append(-multivariate_normal(np.zeros(P - 1), s2 * A).logpdf(z))
        lone = Labels(X, np.ones(P), Y, 0.0, P, True)
        values.append(evidence(lone, geometry(Gaussian(), X, t), log_g, slope=False).value)
    np.testing.assert_allclose(np.diff(values), np.diff(densities), rtol=1e-8)


def test_merging_equal_inputs_does_not_change_the_evidence():
    """Two labels at some inputs: f of the merged task is the density of all rows."""
    rng = np.random.default_rng(1)
    twice = np.r_[np.arange(P), np.arange(8)]
    y = Y[twice] + 0.2 * rng.standard_normal(len(twice))
    mean = np.bincount(twice, weights=y) / np.bincount(twice)
    within = float(np.sum((y - mean[twice]) ** 2))
    merged = Labels(X, np.bincount(twice).astype(float), mean, within, len(twice), False)
    values, densities = [], []
    for t, log_g in ((T, LOG_G), (T + 0.5, -1.0)):
        K = Gaussian(np.exp(t))(X[twice], X[twice]) + np.exp(log_g) * np.eye(len(twice))
        s2 = y @ np.linalg.solve(K, y) / len(twice)
        densities.append(-multivariate_normal(np.zeros(len(twice)), s2 * K).logpdf(y))
        values.append(evidence(merged, geometry(Gaussian(), X, t), log_g, slope=False).value)
    np.testing.assert_allclose(np.diff(values), np.diff(densities), rtol=1e-8)


@each_intercept
def test_a_path_of_noises_is_one_noise_at_a_time(intercept):
    two = [labels(intercept), Labels(X, W, Y**2, 0.1, N, intercept)]
    matrices, grid = geometry(Matern(2.5), X, T), np.array([-9.0, -4.0, 1.0])
    path = noise_path(two, matrices, grid)
    for i, log_g in enumerate(grid):
        for k, one in enumerate(two):
            assert path[i, k] == pytest.approx(evidence(one, matrices, log_g, slope=False).value, abs=1e-6)


def test_leave_one_out_residuals_and_their_sizes():
    lone = Labels(X, np.ones(P), Y, 0.0, P, True)
    residuals, sizes = leave_one_out(lone, geometry(Gaussian(), X, T), LOG_G)
    ridge = KernelRidge(Gaussian(np.exp(T)), lam=np.exp(LOG_G) / P).fit(X, Y)
    np.testing.assert_allclose(residuals, ridge.residuals()[0], atol=1e-8)
    P_ = dense(Gaussian(), T, LOG_G, np.ones(P))[2]
    np.testing.assert_allclose(sizes, np.sqrt(Y @ P_ @ Y / (P - 1) / np.diag(P_)))


@pytest.mark.parametrize("anchor", [None, np.array([0.3, 0.1, 2.0])], ids=["alone", "beside others"])
def test_prior_and_posterior_slopes(anchor):
    two = [labels(True), Labels(X, np.ones(P), Y**2, 0.0, P, True)]
    posterior = Posterior(Matern(2.5), two, Prior(D, 0.7, anchor))
    x, h = np.r_[T, -3.0, -1.0], 1e-5
    here = posterior.at(x)
    assert here.value == pytest.approx(posterior.value(x))
    numeric = [(posterior.value(x + h * e) - posterior.value(x - h * e)) / (2 * h) for e in np.eye(5)]
    np.testing.assert_allclose(here.slope, numeric, rtol=1e-4, atol=1e-5)
    end = posterior.descend(x, 40, gain=1e-6)
    assert np.abs(end.slope).max() < 0.05 and end.value < here.value
    assert np.linalg.eigvalsh(end.curvature).min() > 0


# ---------------------------------------------------------------------- what is found


def friedman(n, seed, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 10))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, y, y + noise * rng.standard_normal(n)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the peer's
def test_noisy_labels_with_irrelevant_inputs():
    """As good as scikit-learn's Gaussian process, and twice as good as leave-one-out."""
    new, truth, _ = friedman(500, 99)
    errors = []
    for seed in range(3):
        X, _, y = friedman(120, seed)
        kernel = ConstantKernel() * RBF(np.ones(10), (1e-2, 1e4)) + WhiteKernel()
        peer = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y)
        ours = [KernelRidge(tune=tune).fit(X, y) for tune in ("evidence", "loo")]
        errors.append([np.mean((m.predict(new) - truth) ** 2) for m in (peer, *ours)])
    peer, ours, loo = np.mean(errors, axis=0)
    assert ours < 1.1 * peer and ours < 0.8 * loo


def test_predictions_are_linear_in_the_labels_and_averages_of_members():
    X, _, y = friedman(60, 1)
    ridge = KernelRidge(tune="evidence").fit(X, y)
    members = ridge.members_[0]
    assert len(members) > 1 and sum(m.weight for m in members) == pytest.approx(1)
    assert all(a.weight >= b.weight >= 1e-2 for a, b in pairwise(members))
    new = X[:5] + 0.03
    alone = [KernelRidge(m.kernel, lam=m.lam).fit(X, y) for m in members]
    average = sum(m.weight * one.predict(new) for m, one in zip(members, alone))
    np.testing.assert_allclose(ridge.predict(new), average, rtol=1e-9)
    np.testing.assert_allclose(ridge.scores(new)[0] @ y, average, rtol=1e-9)
    residuals = sum(m.weight * one.residuals()[0] for m, one in zip(members, alone))
    np.testing.assert_allclose(ridge.residuals()[0], residuals, rtol=1e-8, atol=1e-9)


def test_a_task_with_five_observations_has_the_length_scales_of_the_others():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (80, 3))
    truth = np.sin(4 * X[:, :1]) * [1.0, 2.0]
    Y = truth + 0.05 * rng.standard_normal((80, 2))
    Y[5:, 1] = np.nan
    one, other = (kernel.sigma / X.std(axis=0) for kernel in KernelRidge(tune="evidence").fit(X, Y).kernels_)
    assert one[0] < one[1:].min() / 3
    assert np.all(np.abs(np.log(other / one)) < np.log(20)) and other[0] < other[1:].min()


def test_outliers_do_not_bend_length_scales():
    """Two gross outliers among 150: without the guard evidence explains them by length scales."""
    new, truth, _ = friedman(500, 99)
    ratios = []
    for seed in range(3):
        X, _, y = friedman(150, seed)
        clean = np.mean((KernelRidge(tune="evidence").fit(X, y).predict(new) - truth) ** 2)
        spoilt = y.copy()
        spoilt[[3, 70]] += [60.0, -60.0]
        ridge = KernelRidge(tune="evidence").fit(X, spoilt)
        ratios.append(np.mean((ridge.predict(new) - truth) ** 2) / truth.var())
        relevant = ridge.kernel_.sigma[:5].max()
        assert relevant < ridge.kernel_.sigma[5:].max()
        assert clean < 0.1 * truth.var()
    assert np.median(ratios) < 0.35


def test_an_outlier_is_not_hidden_among_many_inputs():
    """One label of 50 is off. Fifteen length scales can hide it from all other rows, whose residuals then look fine, while new
    rows are predicted worse than by the mean: by 3.5 to 7.5 variances on these draws before."""
    W = np.random.default_rng(1).standard_normal((15, 4)) / np.sqrt(15)

    def truth(x):
        h = x @ W
        return np.c_[np.sin(3 * h[:, 0]) + h[:, 1] * h[:, 2], np.tanh(2 * h[:, 3]) + h[:, 0] ** 2]

    for seed in (0, 2, 8):
        rng = np.random.default_rng(seed)
        X, new = rng.uniform(-1.73, 1.73, (50, 15)), rng.uniform(-1.73, 1.73, (400, 15))
        Y = truth(X) + 0.05 * rng.standard_normal((50, 2))
        Y[7, 1] += 20
        error = np.mean((KernelRidge().fit(X, Y).predict(new)[:, 1] - truth(new)[:, 1]) ** 2) / truth(new)[:, 1].var()
        assert error < 1.3


def test_noise_beside_outliers_is_no_less_than_that_of_the_other_rows():
    """Evidence alone lets outliers pass for signal where a kernel is local."""
    shares = []
    for _ in range(4):
        X = RNG.uniform(-1, 1, (100, 2))
        y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(100)
        y[:3] += [4.0, -5.0, 6.0]
        task, w = Labels(X, np.ones(100), y, 0.0, 100, True), np.r_[np.full(3, 0.01), np.full(97, 1.3)]
        tuner = Tuner((Gaussian(),), [task], None)
        robust = tuner.explore(replace(task, w=w), tuner.equal(Gaussian(), [task], Prior(2)), [Prior(2)])[:1]
        (settled,), (weighed,) = [tuner.found(Gaussian(), [task], Prior(2), robust[0].x, 0)], tuner.weighed(robust, task)
        noise = np.arange(-8.0, 3.0, 0.1)
        path = noise_path([task], geometry(Gaussian(), X, robust[0].theta), noise)[:, 0]
        settled = settled._replace(x=np.append(robust[0].theta, noise[np.argmin(path)]))
        assert weighed.log_g[0] >= robust[0].log_g[0] - 0.3 - 1e-9
        np.testing.assert_array_equal(weighed.theta, robust[0].theta)
        errors = []
        for one in (settled, weighed):
            sigma, lam = np.exp(one.theta), float(np.exp(one.log_g[0])) / 100
            ridge = KernelRidge(Gaussian(sigma), lam=lam).fit(X, y)
            new = np.random.default_rng(5).uniform(-1, 1, (300, 2))
            errors.append(np.mean((ridge.predict(new) - np.sin(3 * new[:, 0]) - new[:, 1]) ** 2))
        shares.append(errors[1] / errors[0])
    assert np.exp(np.mean(np.log(shares))) < 1


def test_weights_of_rows_see_outliers_and_nothing_in_gaussian_noise():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (150, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(150)
    task = Labels(X, np.ones(150), y, 0.0, 150, True)
    (best, *_) = tune((Gaussian(),), task, None, 1500)
    assert row_weights(best, left_out(task, best)) is None
    y = y.copy()
    y[[4, 90]] += [3.0, -3.0]
    weights = row_weights(best, left_out(Labels(X, np.ones(150), y, 0.0, 150, True), best))
    assert set(np.argsort(weights)[:2]) == {4, 90} and weights[[4, 90]].max() < 0.2


def test_weights_are_repetitions_and_have_no_scale():
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (40, 2))
    y = np.cos(X[:, 0]) + 0.1 * rng.standard_normal(40)
    w = rng.integers(1, 4, 40)
    rows = np.repeat(np.arange(40), w)
    weighted, repeated = KernelRidge(tune="evidence").fit(X, y, w), KernelRidge(tune="evidence").fit(X[rows], y[rows])
    scaled = KernelRidge(tune="evidence").fit(X, y, 1000.0 * w)
    for other in (repeated, scaled):
        np.testing.assert_allclose(other.predict(X), weighted.predict(X), atol=1e-7)


def test_standard_deviations_are_calibrated():
    inside = []
    for seed in range(4):
        X, _, y = friedman(200, seed)
        new, _, labels = friedman(400, 50 + seed)
        mean, std = KernelRidge(tune="evidence").fit(X, y).predict(new, return_std=True)
        assert mean.shape == std.shape == (400,)
        inside.append(np.mean(np.abs(labels - mean) < 1.645 * std))
    assert 0.86 < np.mean(inside) < 0.94


def test_standard_deviation_of_a_fixed_ridge_is_that_of_its_gaussian_process():
    lam, kernel = 0.01, Gaussian(1.5)
    ridge = KernelRidge(kernel, lam=lam, intercept=False).fit(X, Y)
    peer = GaussianProcessRegressor(RBF(1.5 / np.sqrt(2)), alpha=P * lam, optimizer=None).fit(X, Y)
    _, std = peer.predict(X + 0.3, return_std=True)
    ratio = ridge.predict(X + 0.3, return_std=True)[1] ** 2 / (std**2 + P * lam)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-8)  # up to the variance, which leave-one-out residuals give


def test_decode_carries_the_standard_deviation_before_the_law():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (60, 1))
    Y = np.c_[np.cos(X), np.sin(X)] + 0.05 * rng.standard_normal((60, 2))
    model = ConstrainedRegressor(Sphere()).fit(X, Y)
    d = model.decode([[0.0], [1.0], [9.0]])
    np.testing.assert_allclose(d.std, model.surrogate_.std(np.array([[0.0], [1.0], [9.0]])))
    assert np.all(d.std[2] > 3 * d.std[:2].max())
    frame = d.to_frame()
    np.testing.assert_allclose(frame[["y1_std", "y2_std"]], d.std)


def test_unknown_rules_of_tuning():
    with pytest.raises(ValueError, match="tune='luck' is unknown; choose one of 'evidence', 'loo'"):
        KernelRidge(tune="luck").fit(X, Y)


# ---------------------------------------------------------------------- kernels of structure


@pytest.mark.parametrize("block", [2**15, 50], ids=["at once", "in blocks"])
@pytest.mark.parametrize("kernel", [Additive(), Trend()], ids=["additive", "trend"])
def test_slopes_of_kernels_of_structure(kernel, block, monkeypatch):
    """As for the others, with the log odds of the share; and the matrix is that of the kernel itself."""
    monkeypatch.setattr(matrices_module, "BLOCK", block)
    monkeypatch.setattr(scoring_module, "SINGLE", np.inf)  # differences would be those of rounding
    posterior = Posterior(kernel, [labels(True)], Prior(D, 0.7))
    x = np.concatenate([T, [0.4] * kernel.extra, [LOG_G]])
    numeric = [(posterior.value(x + 1e-5 * e) - posterior.value(x - 1e-5 * e)) / 2e-5 for e in np.eye(len(x))]
    np.testing.assert_allclose(posterior.at(x).slope, numeric, rtol=1e-4, atol=1e-5)
    theta, V = x[: D + kernel.extra], RNG.standard_normal((P, 2))
    found = geometry(kernel, X, theta)
    moved = [
        (geometry(kernel, X, theta + 1e-5 * e).R - geometry(kernel, X, theta - 1e-5 * e).R) / 2e-5 for e in np.eye(len(theta))
    ]
    np.testing.assert_allclose(
        found.both(Symmetric(np.zeros((P, P)), np.zeros((0, P))), V, alone(D))[1], [dR @ V for dR in moved], atol=1e-6
    )
    own = {"share": 1 / (1 + np.exp(-0.4))} if kernel.extra else {"center": X.mean(axis=0)}
    itself = clone(kernel).set_params(sigma=np.exp(T), **own)
    np.testing.assert_allclose(found.R, itself(X, X), atol=1e-12)
    np.testing.assert_allclose(np.diag(found.R), itself.diag(X), atol=1e-12)
    W_ = V @ V.T
    h = [clone(itself).set_params(sigma=np.exp(T + 1e-5 * e))(X, X) - clone(itself).set_params(sigma=np.exp(T - 1e-5 * e))(X, X)
         for e in np.eye(D)]  # fmt: skip
    np.testing.assert_allclose(itself.contract(W_, X), [np.sum(W_ * dK) / 2e-5 for dK in h], rtol=1e-4, atol=1e-5)


def test_sums_of_functions_of_single_inputs_are_found():
    """Eight inputs and 80 rows: hopeless for a product of kernels, easy for a sum."""
    rng = np.random.default_rng(5)
    X, new = rng.uniform(-1, 1, (80, 8)), rng.uniform(-1, 1, (400, 8))
    truth = lambda x: np.sin(3 * x).sum(axis=1) + np.cos(4 * x[:, 0])  # noqa: E731
    y = truth(X) + 0.1 * rng.standard_normal(80)
    ridge, product = KernelRidge(tune="evidence").fit(X, y), KernelRidge(Gaussian(), tune="evidence").fit(X, y)
    assert isinstance(ridge.kernel_, Additive) and ridge.kernel_.share > 0.5
    errors = [np.mean((model.predict(new) - truth(new)) ** 2) for model in (ridge, product)]
    assert errors[0] < 0.3 * errors[1]
    alone = KernelRidge(Additive(), tune="evidence").fit(X, y)
    assert np.mean((alone.predict(new) - truth(new)) ** 2) < 0.3 * errors[1]


def test_linear_truths_have_a_trend_unless_the_constant_is_known():
    rng = np.random.default_rng(6)
    X = 1e5 + rng.standard_normal((60, 6))  # far from zero: the center takes care of it
    y = (X - 1e5) @ np.arange(1.0, 7.0) + rng.standard_normal(60)
    ridge = KernelRidge(tune="evidence").fit(X, y)
    assert any(isinstance(member.kernel, Trend) for member in ridge.members_[0])
    far = np.full((1, 6), 1e5 + 5.0)
    assert ridge.predict(far)[0] == pytest.approx(105.0, rel=0.1)
    np.testing.assert_array_equal(KernelRidge.from_state(ridge.state()).predict(far), ridge.predict(far))
    known = KernelRidge(tune="evidence", intercept=[0.0]).fit(X, y)
    assert not any(isinstance(member.kernel, Trend) for member in known.members_[0])


def test_inputs_without_a_say_are_left_out():
    """High signal, 12 inputs of which one matters: no finite length scale is long enough for the others."""
    rng = np.random.default_rng(7)
    X, new = rng.standard_normal((40, 12)), rng.standard_normal((300, 12))
    y = np.sin(2 * X[:, 0]) + 0.02 * rng.standard_normal(40)
    ridge = KernelRidge(tune="evidence").fit(X, y)
    assert ridge.kernel_.sigma[0] < 3 and ridge.kernel_.sigma[1:].min() > 1e3
    inside = np.abs(new[:, 0]) < 1.5
    assert np.mean((ridge.predict(new) - np.sin(2 * new[:, 0]))[inside] ** 2) < 1e-3


def test_prior_of_some_inputs():
    prior = Prior(4, keep=np.array([1, 3]))
    x = np.array([0.1, 0.2, 0.3, 0.4, -2.0])
    np.testing.assert_allclose(without(x, prior), [np.log(1e4), 0.2, np.log(1e4), 0.4, -2.0])
    assert prior(x[:4])[0] == Prior(2)(x[[1, 3]])[0]
    assert prior.volume(alone(4)) == pytest.approx(Prior(2).volume(alone(2)) + np.log(4 * 6))


def test_covariance_of_outputs_that_share_rows():
    """Correlated noise is found, gaps allowed; the diagonal is the square of std, and a saved ridge still knows it."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (200, 1))
    noise = rng.multivariate_normal(np.zeros(3), 0.04 * np.array([[1, 0.8, 0], [0.8, 1, 0], [0, 0, 1]]), 200)
    Y = np.c_[np.sin(X), np.cos(X), X**2 / 4] + noise
    Y[rng.random(Y.shape) < 0.2] = np.nan
    ridge = KernelRidge().fit(X, Y)
    _, cov = ridge.predict(X[:5], return_cov=True)
    np.testing.assert_allclose(np.sqrt(np.diagonal(cov, axis1=1, axis2=2)), ridge.predict(X[:5], return_std=True)[1])
    correlation = cov[0] / np.sqrt(np.outer(np.diag(cov[0]), np.diag(cov[0])))
    assert 0.6 < correlation[0, 1] < 0.95 and abs(correlation[0, 2]) < 0.25
    np.testing.assert_array_equal(KernelRidge.from_state(ridge.state()).covariance(X[:5]), cov)
    with pytest.raises(ValueError, match="one of them would do"):
        ridge.predict(X, return_std=True, return_cov=True)


def test_a_lambda_that_rounding_makes_singular_is_raised_until_it_is_not():
    X = np.linspace(0, 1, 60)[:, None]
    kernel = Gaussian(1.0)
    sample = distinct(X, np.arange(60), np.ones(60), kernel)
    with pytest.raises(ValueError, match="lam"):
        make_factor(kernel, sample, True, 1e-22)
    lam, factor = regular_factor(kernel, sample, True, np.full(2, 1e-22))
    assert np.all(lam == lam[0]) and 1e-22 < lam[0] <= 3e-8
    steps = np.log(lam[0] / 1e-22) / np.log(3)
    assert factor.lam == lam[0] and steps == pytest.approx(round(steps))
    again = make_factor(kernel, sample, True, float(lam[0]))
    np.testing.assert_array_equal(factor.L, again.L)


def test_shared_kernels_that_only_their_priors_tell_apart_are_one():
    """Each costs a factorisation of all rows: three priors of one family that end in one place are one member."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    Y = np.c_[np.sin(X).sum(axis=1), np.cos(X).sum(axis=1)]
    tasks = [Labels(X, np.ones(120), y, 0.0, 120, True) for y in Y.T]
    found = tune_together((Gaussian(), Matern(2.5)), tasks, None, 120, 0)
    pairs = [(a, b) for i, a in enumerate(found) for b in found[:i] if a.kernel is b.kernel]
    assert not any(alike(a, b, SAME) for a, b in pairs) and len(found) < 6
