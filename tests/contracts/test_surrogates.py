"""Every way to factor x every property of the ridge it solves; then the surrogates built on them."""

from __future__ import annotations

import pickle

import array_api_strict as strict
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.utils.estimator_checks import parametrize_with_checks

from lawful._array import to_numpy
from lawful.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial, Precomputed
from lawful.losses import Square
from lawful.surrogates import KernelRidge, RegressorSurrogate, Surrogate, exact
from lawful.surrogates.exact import CholeskyFactor, SpectralFactor, distinct
from lawful.surrogates.primal import PrimalFactor
from lawful.tasks import Tasks

RNG = np.random.default_rng(0)
N, D, LAM = 20, 3, 0.03
X = RNG.standard_normal((N, D))
Z = np.stack([np.sin(X[:, 0]), X @ [1.0, -2.0, 0.5] + 3.0], axis=1) + 0.1 * RNG.standard_normal((N, 2))
W = RNG.uniform(0.2, 3.0, N)
XNEW = RNG.standard_normal((6, D))
ROWS = np.arange(N)

FACTORS = {
    "spectral": lambda sample, intercept: SpectralFactor(Linear(0.7), sample, intercept),
    "cholesky": lambda sample, intercept: CholeskyFactor(Linear(0.7), sample, LAM, intercept),
    "primal": lambda sample, intercept: PrimalFactor(Linear(0.7), sample, intercept),
    "spectral gaussian": lambda sample, intercept: SpectralFactor(Gaussian(2.0), sample, intercept),
    "cholesky gaussian": lambda sample, intercept: CholeskyFactor(Gaussian(2.0), sample, LAM, intercept),
}
each_factor = pytest.mark.parametrize("make", FACTORS.values(), ids=FACTORS.keys())
each_intercept = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])


def brute_force(kernel, X, Z, w, lam, intercept, Xnew):
    """The optimality conditions of the penalised problem, as one bordered linear system."""
    n = len(X)
    G = kernel(X, X) + w.sum() * lam * np.diag(1 / w)
    if not intercept:
        return kernel(Xnew, X) @ np.linalg.solve(G, Z)
    bordered = np.block([[G, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(bordered, np.vstack([Z, np.zeros((1, Z.shape[1]))]))
    return kernel(Xnew, X) @ solution[:n] + solution[n]


def make_sample(X=X, w=W, rows=ROWS):
    return distinct(X, rows, w, Linear())


@each_factor
@each_intercept
def test_factor_solves_the_weighted_ridge(make, intercept):
    factor = make(make_sample(), intercept)
    expected = brute_force(factor.kernel, X, Z, W, LAM, intercept, XNEW)
    np.testing.assert_allclose(factor.predict(XNEW, factor.solve(Z, LAM)), expected, atol=1e-10)
    alpha = factor.scores(XNEW, LAM)
    np.testing.assert_allclose(alpha @ Z, expected, atol=1e-10)
    if intercept:
        np.testing.assert_allclose(alpha.sum(1), 1, atol=1e-10)


@each_factor
@each_intercept
def test_loo_is_refitting_without_the_row(make, intercept):
    factor = make(make_sample(), intercept)
    residuals = factor.loo(Z, LAM)
    for i in range(N):
        keep = i != ROWS
        lam = LAM * W.sum() / W[keep].sum()  # n lambda is held fixed
        without = brute_force(factor.kernel, X[keep], Z[keep], W[keep], lam, intercept, X[i : i + 1])
        np.testing.assert_allclose(residuals[i], Z[i] - without[0], atol=1e-9)
    mse = factor.loo_mse(Z, np.full((1, 2), LAM))
    np.testing.assert_allclose(mse[0], np.average(residuals**2, axis=0, weights=W), rtol=1e-9)


@pytest.mark.parametrize("kind", ["spectral gaussian", "cholesky gaussian"])
@each_intercept
def test_large_samples_are_factored_in_pieces_to_the_same_numbers(kind, intercept, monkeypatch):
    monkeypatch.setattr(exact, "LARGE", N - 1)
    monkeypatch.setattr(exact, "MANY", N - 1)
    monkeypatch.setattr(exact, "PIECE", 7)  # 7 + 7 + 6 inputs
    pieces = FACTORS[kind](make_sample(), intercept)
    assert pieces.K is None, "the matrix itself is gone"
    # before the whole is computed, whose numbers would still lie in the memory that is asked for
    found = [pieces.loo(Z, LAM), pieces.scores(XNEW, LAM), pieces.variance(XNEW, LAM)]
    new = brute_force(pieces.kernel, X, Z, W, LAM, intercept, XNEW)
    np.testing.assert_allclose(pieces.predict(XNEW, pieces.solve(Z, LAM)), new, atol=1e-10)
    monkeypatch.undo()
    whole = FACTORS[kind](make_sample(), intercept)
    for here, expected in zip(found, [whole.loo(Z, LAM), whole.scores(XNEW, LAM), whole.variance(XNEW, LAM)]):
        np.testing.assert_allclose(here, expected, atol=1e-10)


@each_factor
@each_intercept
def test_kriging_variance_is_its_definition(make, intercept):
    factor = make(make_sample(), intercept)
    k, alpha = factor.kernel(XNEW, X), factor.scores(XNEW, LAM)
    G = factor.kernel(X, X) + W.sum() * LAM * np.diag(1 / W)
    expected = factor.kernel.diag(XNEW) - 2 * np.sum(alpha * k, 1) + np.sum((alpha @ G) * alpha, 1)
    np.testing.assert_allclose(factor.variance(XNEW, LAM)[:, 0], expected, atol=1e-9)


@each_factor
@each_intercept
def test_weight_two_is_a_row_repeated_twice(make, intercept):
    twice = np.concatenate([ROWS, ROWS[::2]])
    weights = np.where(ROWS % 2 == 0, 2.0, 1.0)
    one, two = make(make_sample(w=weights), intercept), make(make_sample(X, np.ones(len(twice)), twice), intercept)
    for got, expected in (
        (two.predict(XNEW, two.solve(Z[twice], LAM)), one.predict(XNEW, one.solve(Z, LAM))),
        (two.loo(Z[twice], LAM), one.loo(Z, LAM)[twice]),
        (two.variance(XNEW, LAM), one.variance(XNEW, LAM)),
        (two.loo_mse(Z[twice], np.full((1, 2), LAM)), one.loo_mse(Z, np.full((1, 2), LAM))),
    ):
        np.testing.assert_allclose(got, expected, atol=1e-10)


@each_intercept
def test_equal_inputs_with_different_labels(intercept):
    """Merging changes nothing in the fit, and leave-one-out leaves the whole input out."""
    twice, rng = np.concatenate([ROWS, [3, 3, 5]]), np.random.default_rng(1)
    labels, w = rng.standard_normal((N + 3, 2)), rng.uniform(0.5, 2.0, N + 3)
    factor = SpectralFactor(Gaussian(2.0), make_sample(X, w, twice), intercept)
    assert factor.p == N
    expected = brute_force(factor.kernel, X[twice], labels, w, LAM, intercept, XNEW)
    np.testing.assert_allclose(factor.predict(XNEW, factor.solve(labels, LAM)), expected, atol=1e-9)
    np.testing.assert_allclose(factor.scores(XNEW, LAM) @ labels, expected, atol=1e-9)
    keep = twice != 3
    lam = LAM * w.sum() / w[keep].sum()
    without = brute_force(factor.kernel, X[twice][keep], labels[keep], w[keep], lam, intercept, X[3:4])
    np.testing.assert_allclose(factor.loo(labels, LAM)[~keep], labels[~keep] - without, atol=1e-9)


@pytest.mark.parametrize("make", [FACTORS["spectral"], FACTORS["primal"]], ids=["spectral", "primal"])
@each_intercept
def test_lambda_path_is_one_lambda_at_a_time(make, intercept):
    factor = make(make_sample(), intercept)
    path = 10.0 ** np.linspace(-6, 2, 9)
    mse = factor.loo_mse(Z, path[:, None])
    for lam, row in zip(path, mse):
        single = CholeskyFactor(factor.kernel, factor.sample, lam, intercept)
        np.testing.assert_allclose(np.average(single.loo(Z, lam) ** 2, axis=0, weights=W), row, rtol=1e-8)
        np.testing.assert_allclose(
            factor.predict(XNEW, factor.solve(Z, [lam, 1.0]))[:, 0],
            single.predict(XNEW, single.solve(Z, lam))[:, 0],
            atol=1e-8,
        )


def convert(sample, xp):
    return type(sample)(xp.asarray(sample.X), sample.points, sample.group, xp.asarray(sample.weights), xp.asarray(sample.share))


def check_other_library(make, xp):
    rows = np.concatenate([ROWS, [2, 2]])
    sample = make_sample(X, np.concatenate([W, [1.0, 2.0]]), rows)
    here, there = make(sample, True), make(convert(sample, xp), True)
    labels = Z[rows]
    for name, args in (
        ("loo", (labels, LAM)),
        ("scores", (XNEW, LAM)),
        ("variance", (XNEW, LAM)),
        ("loo_mse", (labels, np.full((1, 2), LAM))),
    ):
        result = getattr(there, name)(xp.asarray(args[0]), args[1])
        np.testing.assert_allclose(to_numpy(result), getattr(here, name)(*args), atol=1e-9)
    result = there.predict(xp.asarray(XNEW), there.solve(xp.asarray(labels), LAM))
    assert isinstance(result, type(xp.asarray(XNEW)))
    np.testing.assert_allclose(to_numpy(result), here.predict(XNEW, here.solve(labels, LAM)), atol=1e-9)


@each_factor
def test_factors_on_the_strict_array_api(make):
    check_other_library(make, strict)


@pytest.mark.torch
@each_factor
def test_factors_on_torch(make):
    import torch

    check_other_library(make, torch)


@pytest.mark.torch
def test_kernel_ridge_tunes_and_predicts_in_torch():
    import torch

    def fit(asarray):
        labels, weights = [asarray(Z[:, t]) for t in range(2)], [asarray(np.ones(N))] * 2
        return KernelRidge(lam="auto").fit_tasks(Tasks(asarray(X), labels, [ROWS] * 2, weights))

    here, there = fit(np.asarray), fit(torch.asarray)
    # length scales this long are all alike, so rounding decides among them; what they achieve is what must agree
    np.testing.assert_allclose(there.loo_mse_, here.loo_mse_, rtol=0.05)
    result = there.predict_tasks(torch.asarray(XNEW))[1]
    assert isinstance(result, torch.Tensor)
    np.testing.assert_allclose(to_numpy(result), here.predict_tasks(XNEW)[1], atol=0.05)
    fixed = KernelRidge(Gaussian(2.0))
    expected = clone(fixed).fit_tasks(Tasks(X, [Z[:, 0]], [ROWS], [np.ones(N)]))
    got = fixed.fit_tasks(Tasks(torch.asarray(X), [torch.asarray(Z[:, 0])], [ROWS], [torch.ones(N)]))
    np.testing.assert_allclose(got.lam_, expected.lam_, rtol=1e-5)
    for name in ("predict_tasks", "variance"):
        one, two = getattr(got, name)(torch.asarray(XNEW)), getattr(expected, name)(XNEW)
        np.testing.assert_allclose(to_numpy(one[0]), two[0], atol=1e-6)


# KernelRidge


@pytest.mark.parametrize("lam", [1e-3, [1e-3, 1e-3]], ids=["one lambda", "one per task"])
def test_kernel_ridge_is_scikit_learns_without_intercept(lam):
    ours = KernelRidge(Gaussian(1.5), lam=lam, intercept=False).fit(X, Z)
    theirs = SklearnKernelRidge(alpha=N * 1e-3, kernel="rbf", gamma=1 / 1.5**2).fit(X, Z)
    np.testing.assert_allclose(ours.predict(XNEW), theirs.predict(XNEW), atol=1e-8)


def test_theorem_rates_and_groups():
    Y = Z.copy()
    Y[:4, 1] = np.nan
    ridge = KernelRidge(Gaussian(1.0), lam="consistent").fit(X, Y)
    np.testing.assert_allclose(ridge.lam_, [20**-0.25, 16**-0.25])
    assert ridge.groups_ == [[0], [1]]
    np.testing.assert_allclose(KernelRidge(Gaussian(1.0), lam="rate").fit(X, Z).lam_, 20**-0.5)
    alone = KernelRidge(Gaussian(1.0), lam="consistent").fit(X[4:], Z[4:, 1])
    np.testing.assert_allclose(ridge.predict(XNEW)[:, 1], alone.predict(XNEW), atol=1e-10)
    np.testing.assert_allclose(ridge.loo_mse_[1], alone.loo_mse_[0])
    assert [r.shape for r in ridge.residuals()] == [(20,), (16,)]


def test_precomputed_equals_its_kernel_with_missing_outputs():
    Y = Z.copy()
    Y[::3, 0] = np.nan
    kernel = Gaussian(1.5)
    direct = KernelRidge(kernel).fit(X, Y)
    given = KernelRidge(Precomputed()).fit(kernel(X, X), Y)
    np.testing.assert_allclose(given.predict(kernel(XNEW, X)), direct.predict(XNEW), atol=1e-6)
    assert not hasattr(given, "variance") and hasattr(direct, "variance")


def test_result_does_not_depend_on_the_order_of_rows():
    order = np.random.default_rng(3).permutation(N)
    one, two = KernelRidge().fit(X, Z), KernelRidge().fit(X[order], Z[order])
    for a, b in zip(one.kernels_, two.kernels_):
        np.testing.assert_array_equal(a.sigma, b.sigma)
    np.testing.assert_allclose(one.predict(XNEW), two.predict(XNEW), rtol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_variance_is_that_of_a_gaussian_process_in_units_of_its_leave_one_out_variance(intercept):
    """Var[f(x) | data] / mean_i Var[y_i | the others]: below 1 on the data, growing away from them."""
    lam, kernel = 0.01, Gaussian(1.0)
    ridge = KernelRidge(kernel, lam=lam, intercept=intercept).fit(X, Z)
    near, far = ridge.variance(X), ridge.variance(X + 100)
    assert near.shape == (N, 2)
    assert np.all(near < 1) and np.all(far > near.max())
    inverse, k = np.linalg.inv(kernel(X, X) + N * lam * np.eye(N)), kernel(XNEW, X)
    posterior, rest = 1 - np.sum(k @ inverse * k, axis=1), inverse
    if intercept:  # universal kriging: the constant has a flat prior
        drift, one = 1 - k @ inverse.sum(0), inverse.sum(0, keepdims=True)
        posterior, rest = posterior + drift**2 / inverse.sum(), inverse - one.T @ one / inverse.sum()
    expected = posterior / np.mean(1 / np.diag(rest))
    np.testing.assert_allclose(ridge.variance(XNEW), np.stack([expected] * 2, axis=1), rtol=1e-8)


def test_variance_of_one_row_is_one():
    np.testing.assert_allclose(KernelRidge(Gaussian(1.0), lam=0.01).fit(X[:1], Z[:1]).variance(XNEW), 1.0)


def test_linear_kernel_goes_through_its_features():
    ridge = KernelRidge(Linear(), lam=[0.01, 0.1]).fit(X, Z)
    assert isinstance(ridge._parts[0].factor, PrimalFactor)
    assert isinstance(KernelRidge(Linear(), lam=[0.01, 0.1]).fit(X[:3], Z[:3])._parts[0].factor, SpectralFactor)
    dual = KernelRidge(lambda A, B: A @ B.T + 1.0, lam=[0.01, 0.1]).fit(X, Z)
    np.testing.assert_allclose(ridge.predict(XNEW), dual.predict(XNEW), atol=1e-8)
    np.testing.assert_allclose(ridge.variance(XNEW), dual.variance(XNEW), atol=1e-8)
    np.testing.assert_allclose(ridge.loo_mse_, dual.loo_mse_, rtol=1e-8)


@pytest.mark.parametrize("kernel", [None, Laplacian(), Matern(2.5), Polynomial(), Linear()], ids=repr)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_rows_and_constant_outputs(kernel, n):
    Y = np.column_stack([np.full(n, 4.0), np.arange(n) * 1.0, np.zeros(n)])
    ridge = KernelRidge(kernel).fit(X[:n], Y)
    prediction = ridge.predict(XNEW)
    assert np.all(np.isfinite(prediction)) and np.all(ridge.lam_ > 0)
    np.testing.assert_allclose(prediction[:, 0], 4.0, atol=1e-6)
    np.testing.assert_allclose(prediction[:, 2], 0.0, atol=1e-12)
    assert np.all(np.isfinite(ridge.variance(XNEW)))


def test_all_inputs_equal():
    ridge = KernelRidge().fit(np.ones((5, 2)), np.arange(5.0))
    np.testing.assert_allclose(ridge.predict(XNEW[:, :2]), 2.0)
    np.testing.assert_allclose(ridge.residuals()[0], np.arange(5.0) - 2.0)


def test_default_kernel_can_be_set_and_searched():
    ridge = KernelRidge(lam=1e-3).set_params(kernel__sigma=2.0)
    assert isinstance(ridge.kernel, Gaussian) and ridge.kernel.sigma == 2.0
    search = GridSearchCV(KernelRidge(lam=1e-3), {"kernel__sigma": [0.1, 2.0]}, cv=4).fit(X, Z)
    assert search.best_params_ == {"kernel__sigma": 2.0}


def test_kernel_ridge_errors_say_what_would_do():
    for lam in ("best", -1.0, [1.0, 2.0, 3.0]):
        with pytest.raises(ValueError, match="would do"):
            KernelRidge(Gaussian(1.0), lam=lam).fit(X, Z)
    with pytest.raises(ValueError, match="no observation"):
        KernelRidge(Gaussian(1.0)).fit(X, np.column_stack([Z[:, 0], np.full(N, np.nan)]))
    with pytest.raises(ValueError, match="sigma='auto'"):
        KernelRidge(Gaussian("scale")).fit(X, Z)


@parametrize_with_checks([KernelRidge(), KernelRidge(Linear(), lam=0.1)])
def test_kernel_ridge_is_a_scikit_learn_regressor(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # without it the check of array API input skips itself
    check(estimator)


# the protocol, for every surrogate

SURROGATES = {
    "kernel ridge": KernelRidge(Gaussian(1.5)),
    "linear": KernelRidge(Linear(), lam=0.01),
    "least squares": RegressorSurrogate(LinearRegression()),
    "svr (one output)": RegressorSurrogate(make_pipeline(StandardScaler(), SVR())),
    "forest": RegressorSurrogate(RandomForestRegressor(10, random_state=0), cv=3),
}
each_surrogate = pytest.mark.parametrize("surrogate", SURROGATES.values(), ids=SURROGATES.keys())


def tasks(weights=None):
    """Square-loss encodings [1, y] of two tasks on all rows, and one on some."""
    rows = [ROWS, ROWS, ROWS[5:]]
    y = [Z[:, 0], Z[:, 1], Z[5:, 1]]
    return Tasks(X, y, rows, [np.ones(len(r)) if weights is None else weights[r] for r in rows]).encoded(Square())


@each_surrogate
def test_surrogate_protocol(surrogate):
    model = clone(surrogate)
    assert isinstance(model, Surrogate)
    assert model.fit_tasks(tasks(W)) is model
    predictions = model.predict_tasks(XNEW)
    assert [p.shape for p in predictions] == [(6, 2)] * 3
    for p in predictions:
        np.testing.assert_allclose(p[:, 0], 1.0, atol=1e-8)
    assert [r.shape for r in model.residuals()] == [(20,), (20,), (15,)]
    for residual, label in zip(model.residuals(), tasks().y):
        assert 0 < np.mean(residual**2) < 1.5 * np.var(label)
    again = pickle.loads(pickle.dumps(model)).predict_tasks(XNEW)
    for p, q in zip(predictions, again):
        np.testing.assert_array_equal(p, q)


@each_surrogate
def test_surrogate_with_one_row(surrogate):
    model = clone(surrogate).fit_tasks(Tasks(X, [np.array([7.0])], [ROWS[:1]], [np.ones(1)]).encoded(Square()))
    np.testing.assert_allclose(model.predict_tasks(XNEW)[0], np.tile([[1.0, 7.0]], (6, 1)))
    np.testing.assert_allclose(model.residuals()[0], 0.0)


def test_regressor_surrogate_is_the_regressor():
    for weights in (None, W):
        model = RegressorSurrogate(Ridge(0.5)).fit_tasks(tasks(weights))
        for t, r in enumerate(tasks().rows):
            direct = Ridge(0.5).fit(X[r], tasks().y[t], sample_weight=None if weights is None else W[r])
            np.testing.assert_allclose(model.predict_tasks(XNEW)[t][:, 1], direct.predict(XNEW), atol=1e-10)
    assert len(model.regressors_) == 2  # tasks on the same rows in one fit
    assert len(RegressorSurrogate(SVR()).fit_tasks(tasks()).regressors_) == 3
    piped = RegressorSurrogate(make_pipeline(StandardScaler(), Ridge(0.5))).fit_tasks(tasks(W))
    direct = make_pipeline(StandardScaler(), Ridge(0.5)).fit(X, Z[:, 0], ridge__sample_weight=W)
    np.testing.assert_allclose(piped.predict_tasks(XNEW)[0][:, 1], direct.predict(XNEW), atol=1e-10)


def test_regressor_surrogate_residuals_are_out_of_sample():
    """One-nearest-neighbour interpolates: its residuals are zero only in sample."""
    model = RegressorSurrogate(KNeighborsRegressor(1), cv=50).fit_tasks(tasks())
    gaps = ((X[:, None] - X[None]) ** 2).sum(2) + np.diag(np.full(N, np.inf))
    np.testing.assert_allclose(model.residuals()[0], Z[:, 0] - Z[gaps.argmin(1), 0])


@pytest.mark.parametrize(
    "regressor", [KNeighborsRegressor(2), make_pipeline(StandardScaler(), GaussianProcessRegressor())], ids=repr
)
def test_regressor_without_sample_weight_says_so(regressor):
    RegressorSurrogate(regressor).fit_tasks(tasks(np.full(N, 2.0)))
    with pytest.raises(ValueError, match="takes no sample_weight"):
        RegressorSurrogate(regressor).fit_tasks(tasks(W))
