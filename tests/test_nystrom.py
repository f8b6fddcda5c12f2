"""`NystromRidge` against the exact ridge, brute force over feature matrices, and itself in another order."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

import lawful._memory
from lawful import (
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    KernelRidge,
    NystromRidge,
    PointCloud,
    Sphere,
    Square,
    ZeroOne,
    load,
)
from lawful.datasets import make_arm
from lawful.kernels import Additive, Gaussian, Laplacian, Linear, Matern, Polynomial, Precomputed, Trend
from lawful.surrogates.blocks import Host, pivots
from lawful.surrogates.centres import leverage_scores
from lawful.surrogates.exact import CholeskyFactor, distinct
from lawful.surrogates.path import exact_path
from lawful.surrogates.statistics import layers
from lawful.tasks import Tasks

RNG = np.random.default_rng(0)
N = 150
X = RNG.uniform(-2, 2, (N, 3))
X[5] = X[6]  # equal inputs
XNEW = RNG.uniform(-2, 2, (11, 3))
Y = np.c_[np.cos(X[:, 0]), np.sin(X[:, 0] + X[:, 1]), X[:, 2]] + 0.05 * RNG.standard_normal((N, 3))
GAPS = np.where(RNG.uniform(size=Y.shape) < 0.2, np.nan, Y)
SENSORS = Y.copy()  # two patterns: the last output is missing on a third of the rows
SENSORS[: N // 3, 2] = np.nan
W = RNG.uniform(0.5, 2.0, N)
WT = RNG.uniform(0.5, 2.0, Y.shape)
ALL = {"n_centers": N, "lam": 1e-3}
KERNEL = Gaussian(2.0)

DATA = {
    "complete": (Y, None),
    "weights": (Y, W),
    "weights of each output": (Y, WT),
    "gaps": (GAPS, None),
    "gaps and weights": (GAPS, WT),
    "sensors": (SENSORS, None),
    "sensors and weights": (SENSORS, W),
}
each_data = pytest.mark.parametrize(("labels", "weights"), DATA.values(), ids=DATA.keys())


@each_data
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_with_all_rows_as_centres_it_is_the_exact_ridge(labels, weights, intercept, solver):
    exact = KernelRidge(KERNEL, lam=1e-3, intercept=intercept).fit(X, labels, weights)
    found = NystromRidge(KERNEL, intercept=intercept, solver=solver, tol=1e-12, block_size=40, **ALL).fit(X, labels, weights)
    np.testing.assert_allclose(found.predict(XNEW), exact.predict(XNEW), atol=1e-8)
    if solver == "direct":
        for ours, theirs in zip(found.residuals(), exact.residuals()):
            alone = np.ones(len(ours), dtype=bool)
            alone[5:7] = False  # the exact ridge leaves out inputs, these rows go together there
            if len(ours) == N:
                np.testing.assert_allclose(ours[alone], theirs[alone], atol=1e-7)


KERNELS = [
    Matern(1.5, 2.0), Matern(2.5, [1.0, 2.0, 3.0]), Matern(0.5, 2.0), Laplacian(3.0), Polynomial(3), Linear(),
    Additive([2.0, 1.5, 3.0]), Trend(1.0), lambda A, B: np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2)),
]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: getattr(type(k), "__name__", "f"))
def test_any_kernel(kernel):
    exact = KernelRidge(kernel, lam=1e-2).fit(X, GAPS)
    found = NystromRidge(kernel, n_centers=N, lam=1e-2).fit(X, GAPS)
    np.testing.assert_allclose(found.predict(XNEW), exact.predict(XNEW), atol=1e-7)


def test_fewer_centres_are_a_ridge_on_their_features():
    """scikit-learn's Nystroem features and Ridge, with the same centres."""
    found = NystromRidge(KERNEL, lam=1e-3, n_centers=30).fit(X, Y, W)
    C = found.centers_
    assert C.shape == (30, 3) and found.n_centers_ == 30
    K = KERNEL(C, C)
    s, U = np.linalg.eigh(K)
    phi = lambda A: KERNEL(A, C) @ (U / np.sqrt(s))  # noqa: E731
    ridge = Ridge(alpha=1e-3 * W.sum()).fit(phi(X), Y, W)
    np.testing.assert_allclose(found.predict(XNEW), ridge.predict(phi(XNEW)), atol=1e-7)
    theirs = Nystroem(gamma=0.25, n_components=N, random_state=0).fit(X)
    again = NystromRidge(KERNEL, **ALL).fit(X, Y)
    ridge = Ridge(alpha=1e-3 * N).fit(theirs.transform(X), Y)
    np.testing.assert_allclose(again.predict(XNEW), ridge.predict(theirs.transform(XNEW)), atol=1e-5)


def test_the_variance_is_that_of_the_exact_ridge():
    exact, found = (kind(KERNEL, lam=1e-3, **more).fit(X[10:], Y[10:]) for kind, more in
                    ((KernelRidge, {}), (NystromRidge, {"n_centers": N})))  # fmt: skip
    part = exact._parts[0]
    np.testing.assert_allclose(found._variance(XNEW), part.factor.variance(XNEW, part.lam), rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(found.variance(XNEW), exact.variance(XNEW), rtol=0.2)  # in units of an average of 1 / P_ii
    np.testing.assert_allclose(found.std(XNEW), exact.std(XNEW), rtol=0.25)
    np.testing.assert_allclose(found.noise_share(), exact.noise_share(), atol=0.1)
    _, std = found.predict(XNEW, return_std=True)
    np.testing.assert_array_equal(std, found.std(XNEW))
    assert np.all(found.std(XNEW + 100) > found.std(XNEW))


def test_intervals_cover():
    rng = np.random.default_rng(3)
    A = rng.uniform(-2, 2, (4000, 2))
    b = np.sin(2 * A[:, 0]) + 0.3 * rng.standard_normal(4000)
    model = NystromRidge(n_centers=100).fit(A[:3000], b[:3000])
    mean, std = model.predict(A[3000:], return_std=True)
    assert 0.86 < np.mean(np.abs(mean - b[3000:]) < 1.645 * std) < 0.94
    np.testing.assert_allclose(model.loo_mse_[0], np.mean((mean - b[3000:]) ** 2), rtol=0.15)
    np.testing.assert_allclose(np.mean(model.residuals()[0] ** 2), model.loo_mse_[0], rtol=0.05)


@each_data
def test_batches_are_all_rows_at_once(labels, weights):
    ridge = NystromRidge(KERNEL, lam=1e-3, centers=X[::4])
    once = clone(ridge).fit(X, labels, weights)
    batches = clone(ridge)
    for part in (slice(0, 60), slice(60, 61), slice(61, N)):
        batches.partial_fit(X[part], labels[part], None if weights is None else weights[part])
    np.testing.assert_allclose(batches.predict(XNEW), once.predict(XNEW), atol=1e-8)
    np.testing.assert_allclose(batches.std(XNEW), once.std(XNEW), rtol=1e-6)
    assert batches.n_seen_ == once.n_seen_ == np.isfinite(labels).any(axis=1).sum()


def test_residuals_of_a_batch_are_of_what_was_predicted_before():
    model = NystromRidge(KERNEL, lam=1e-3, n_centers=40).fit(X[:100], Y[:100])
    before = model.predict(X[100:])
    model.partial_fit(X[100:], Y[100:])
    np.testing.assert_allclose(np.stack(model.residuals(), axis=1), Y[100:] - before, atol=1e-12)


def test_an_output_may_be_missing_from_a_batch():
    ridge = NystromRidge(KERNEL, lam=1e-3, centers=X[::4])
    parts = [SENSORS[N // 3 :], SENSORS[: N // 3]]
    model = clone(ridge).partial_fit(X[N // 3 :], parts[0]).partial_fit(X[: N // 3], parts[1])
    np.testing.assert_allclose(model.predict(XNEW), clone(ridge).fit(X, SENSORS).predict(XNEW), atol=1e-8)


def test_a_tuned_lambda_keeps_its_noise_in_a_stream():
    model = NystromRidge(KERNEL, n_centers=40).fit(X[:100], Y[:100])
    before = model.lam_ * 100
    model.partial_fit(X[100:], Y[100:])
    np.testing.assert_allclose(model.lam_ * N, before)


def test_rows_that_count_twice_have_twice_the_weight():
    tasks = Tasks.of(X, GAPS)
    ridge = NystromRidge(KERNEL, lam=1e-3, centers=X[::4])
    twice = clone(ridge).fit_tasks(tasks.take(np.r_[np.arange(N), np.arange(50)]))
    weighted = clone(ridge).fit_tasks(Tasks.of(X, GAPS, np.r_[np.full(50, 2.0), np.ones(N - 50)]))
    for a, b in zip(twice.predict_tasks(XNEW), weighted.predict_tasks(XNEW)):
        np.testing.assert_allclose(a, b, atol=1e-10)


# ---------------------------------------------------------------------- cells and blocks


def test_rows_with_the_same_gaps_share_a_gram_matrix():
    (one,) = layers(Tasks.of(X, Y))
    assert one.rows is None and one.cells == [((0, 1, 2), None)]
    first, second = layers(Tasks.of(X, SENSORS))
    assert {first.cells[0][0], second.cells[0][0]} == {(0, 1), (0, 1, 2)}
    assert len(first.rows) + len(second.rows) == N  # every row once
    (scattered,) = layers(Tasks.of(X, GAPS), most=2)
    assert [key for key, _ in scattered.cells] == [(0,), (1,), (2,)]


def test_blocks_do_not_matter():
    found = [
        NystromRidge(KERNEL, lam=1e-4, n_centers=40, block_size=size).fit(X, GAPS, WT).predict(XNEW) for size in (7, 64, None)
    ]
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)
    np.testing.assert_allclose(found[0], found[2], atol=1e-9)


def test_threads_do_not_matter(monkeypatch):
    big = np.random.default_rng(1).uniform(-2, 2, (4000, 3))
    ridge = NystromRidge(KERNEL, lam=1e-4, n_centers=300)
    one = clone(ridge).fit(big, np.sin(big[:, 0])).predict(XNEW)
    init = Host.__init__

    def many(self, dtype="float64"):
        init(self, dtype)
        self.threads = 4

    monkeypatch.setattr(Host, "__init__", many)
    np.testing.assert_allclose(clone(ridge).fit(big, np.sin(big[:, 0])).predict(XNEW), one, atol=1e-9)


@pytest.mark.parametrize("lam", [1e-9, 1e-11])
def test_smooth_kernels_keep_their_small_directions(lam):
    """A Gram matrix of kernel values alone loses what is below 1e-8 of the largest eigenvalue: here the answer."""
    rng = np.random.default_rng(2)
    A, B = rng.uniform(-1, 1, (3000, 2)), rng.uniform(-1, 1, (200, 2))
    b = A[:, 0] ** 3 - A[:, 1] ** 4 + A[:, 0] * A[:, 1]
    kernel = Gaussian(12.0)
    model = NystromRidge(kernel, lam=lam, n_centers=200).fit(A, b)
    C = model.centers_
    K, G, H = kernel(C, C), kernel(A, C), kernel(B, C)
    G, H = G - G.mean(axis=0), H - G.mean(axis=0)
    s, U = np.linalg.eigh(K)
    T = U[:, s > 1e-13 * s.max()] / np.sqrt(s[s > 1e-13 * s.max()])
    stacked = np.concatenate([G @ T, np.sqrt(3000 * lam) * np.eye(T.shape[1])])  # least squares, nothing squared
    truth = H @ T @ np.linalg.lstsq(stacked, np.r_[b - b.mean(), np.zeros(T.shape[1])], rcond=None)[0] + b.mean()
    squared = H @ np.linalg.solve(G.T @ G + 3000 * lam * K + 1e-12 * np.eye(200), G.T @ (b - b.mean())) + b.mean()
    ours, plain = (np.abs(f - truth).max() for f in (model.predict(B), squared))
    assert model._engine.found.p > 3 and ours < 1e-3 and ours < 0.01 * plain


def test_pivots_are_a_cholesky_factor():
    found = pivots(Gaussian(4.0), X[:60], settled=3e-2)
    C = X[:60][found.order]
    K = Gaussian(4.0)(C, C)
    rest = K - found.L @ found.L.T
    assert 2 < found.p <= 15
    np.testing.assert_allclose(rest[: found.p], 0, atol=1e-12)
    assert np.diagonal(rest).max() <= 3e-2


def test_inputs_far_from_the_centres_are_exact_too():
    kernel = Gaussian(1e-4)  # |u|^2 is 1e8 and more: the expanded square would lose eight digits
    exact = KernelRidge(kernel, lam=1e-3).fit(X, Y)
    found = NystromRidge(kernel, **ALL).fit(X, Y)
    near = X + 3e-5
    np.testing.assert_allclose(found.predict(near), exact.predict(near), atol=1e-8)


# ---------------------------------------------------------------------- what is chosen


def test_single_precision_is_refined():
    model = NystromRidge(KERNEL, lam=1e-5, n_centers=60).fit(X, GAPS, WT)
    single = NystromRidge(KERNEL, lam=1e-5, n_centers=60, dtype="float32", tol=1e-9).fit(X, GAPS, WT)
    np.testing.assert_allclose(single.predict(XNEW), model.predict(XNEW), atol=1e-7)
    assert single.n_iter_ > 0
    with pytest.raises(ValueError, match="dtype='float64' would do"):
        single.partial_fit(X, GAPS)


def test_iterations_that_do_not_end_say_so():
    with pytest.warns(ConvergenceWarning, match="3 iterations left a relative residual of .* solver='direct'"):
        NystromRidge(KERNEL, lam=1e-7, n_centers=60, solver="cg", max_iter=3).fit(X, Y)


def test_iterations_end_where_the_direct_solution_is():
    big = np.random.default_rng(1).uniform(-2, 2, (3000, 3))
    labels = np.c_[np.sin(big[:, 0]), big[:, 1] ** 2] + 0.1 * np.random.default_rng(2).standard_normal((3000, 2))
    direct = NystromRidge(KERNEL, lam=1e-5, n_centers=150).fit(big, labels)
    found = NystromRidge(KERNEL, lam=1e-5, n_centers=150, solver="cg", tol=1e-10).fit(big, labels)
    np.testing.assert_allclose(found.predict(XNEW), direct.predict(XNEW), atol=1e-7)
    assert found.n_iter_ < 120 and not hasattr(found, "variance") and not hasattr(found, "update")
    np.testing.assert_allclose(found.loo_mse_, direct.loo_mse_, rtol=0.02)
    assert not hasattr(found, "partial_fit")
    found.set_params(solver="auto")  # as "auto" may have chosen
    with pytest.raises(ValueError, match="solver='direct' would do"):
        found.partial_fit(big, labels)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_lambda_by_cross_validation_and_by_held_out_rows(solver, held, monkeypatch):
    monkeypatch.setattr("lawful.surrogates.nystrom_fit.ENOUGH", 1000 if held else 10000)
    rng = np.random.default_rng(5)
    A = rng.uniform(-2, 2, (4000, 2))
    truth = lambda B: np.c_[np.sin(3 * B[:, 0]), B[:, 1]]  # noqa: E731
    b = truth(A) + rng.standard_normal((4000, 2)) * [0.05, 1.0]
    model = NystromRidge(Gaussian(1.0), n_centers=150, solver=solver).fit(A, b)
    B = rng.uniform(-2, 2, (500, 2))
    error = lambda m: np.mean((m.predict(B) - truth(B)) ** 2, axis=0)  # noqa: E731
    every = [NystromRidge(Gaussian(1.0), n_centers=150, lam=lam).fit(A, b) for lam in 10.0 ** np.arange(-8, 0)]
    assert np.all(error(model) < (2.0 if held else 1.6) * np.min([error(one) for one in every], axis=0))
    assert model.lam_[1] > model.lam_[0]
    if held:
        assert model.held_out_["error"].shape == model.held_out_["lam"].shape
    else:
        assert model.held_out_ is None


def test_evidence_finds_the_inputs_that_matter():
    rng = np.random.default_rng(6)
    A = rng.uniform(-2, 2, (1500, 4))
    b = np.sin(3 * A[:, 1]) + 0.1 * rng.standard_normal(1500)
    model = NystromRidge(n_centers=200).fit(A, b)
    sigma = model.kernel_.scales(4)
    assert np.argmin(sigma) == 1 and np.min(np.delete(sigma, 1)) > 4 * sigma[1]
    assert np.mean((model.predict(A) - np.sin(3 * A[:, 1])) ** 2) < 1e-3


def test_on_an_arm_it_is_as_good_as_the_exact_ridge():
    train, test = make_arm(2500, 3, noise=0.05, random_state=0), make_arm(1000, 3, random_state=1)
    model = NystromRidge(n_centers=1000).fit(train.X, train.Y)
    exact = KernelRidge(model.kernel_, lam=float(np.median(model.lam_))).fit(train.X, train.Y)
    ours, theirs = (np.mean((m.predict(test.X) - test.Y) ** 2 / test.Y.var(axis=0)) for m in (model, exact))
    assert ours < 1.05 * theirs


def test_leverage_scores_find_rows_that_no_others_resemble():
    rng = np.random.default_rng(0)
    A = np.concatenate([0.1 * rng.standard_normal((980, 2)), rng.uniform(-5, 5, (20, 2))])
    scores = leverage_scores(Gaussian(1.0), A, 1e-3, rng)
    K = Gaussian(1.0)(A, A)
    truth = np.diagonal(K @ np.linalg.inv(K + np.eye(1000)))
    assert np.corrcoef(np.log(scores), np.log(truth))[0, 1] > 0.9
    drawn = {
        name: NystromRidge(Gaussian(1.0), lam=1e-3, n_centers=60, centers=name).fit(A, A).centers_
        for name in ("uniform", "leverage")
    }
    lonely = {name: int((np.abs(C).max(axis=1) > 1).sum()) for name, C in drawn.items()}
    assert lonely["leverage"] > 3 * max(lonely["uniform"], 1)


def test_draws_are_the_same_unless_the_seed_is_not():
    ridge = NystromRidge(KERNEL, lam=1e-3, n_centers=20)
    np.testing.assert_array_equal(clone(ridge).fit(X, Y).predict(XNEW), clone(ridge).fit(X, Y).predict(XNEW))
    other = clone(ridge).set_params(random_state=7).fit(X, Y)
    assert not np.array_equal(other.centers_, clone(ridge).fit(X, Y).centers_)


# ---------------------------------------------------------------------- saving, searching, streaming


@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_a_state_is_the_model(solver, tmp_path):
    model = NystromRidge(KERNEL, lam=1e-3, n_centers=40, solver=solver).fit(X, GAPS, WT)
    model.save(tmp_path / "m.lawful")
    for again in (NystromRidge.from_state(model.state()), load(tmp_path / "m.lawful")):
        np.testing.assert_array_equal(again.predict(XNEW), model.predict(XNEW))
        np.testing.assert_array_equal(again.noise_share(), model.noise_share())
        with pytest.raises(ValueError, match="keeps no rows, so it has no residuals; fit it again"):
            again.residuals()
        if solver == "direct":
            np.testing.assert_allclose(again.std(XNEW), model.std(XNEW), rtol=1e-12)
            again.partial_fit(X, Y)
            expected = (
                clone(model).set_params(centers=model.centers_).fit(np.r_[X, X], np.r_[GAPS, Y], np.r_[WT, np.ones_like(WT)])
            )
            np.testing.assert_allclose(again.predict(XNEW), expected.predict(XNEW), atol=1e-8)
    with pytest.raises(ValueError, match=r"give what NystromRidge.state\(\) returned"):
        NystromRidge.from_state({"surrogate": "forest"})


def test_a_path_of_lambdas_is_fits_one_by_one():
    tasks = Tasks.of(X, GAPS, WT).encoded(Square())
    folds = [(np.arange(50, N), np.arange(50)), (np.arange(100), np.arange(100, N))]
    lams = np.array([[1e-4, 1e-3, 1e-2], [1e-2, 1e-2, 1e-5]])
    ridge = NystromRidge(KERNEL, n_centers=40)
    found = ridge.held_out(tasks, folds, lams=lams, residuals=True, variance=True)
    for h, (train, test) in zip(found, folds, strict=True):
        for l in range(2):
            one = clone(ridge).set_params(lam=lams[l]).fit_tasks(tasks.take(train))
            for t, scores in enumerate(one.predict_tasks(X[test])):
                np.testing.assert_allclose(h.scores[t][l], scores, atol=1e-5)
                np.testing.assert_allclose(h.residuals[t][l], one.residuals()[t], atol=1e-5)
            np.testing.assert_allclose(h.variance[l], one.variance(X[test]), rtol=1e-4)
            np.testing.assert_allclose(h.noise[l], one.noise_share(), atol=1e-5)


@pytest.mark.filterwarnings("ignore::lawful.GridEdgeWarning")
def test_a_search_over_lambdas_and_over_centres():
    circle = np.c_[np.cos(X[:, 0]), np.sin(X[:, 0])] + 0.05 * RNG.standard_normal((N, 2))
    model = ConstrainedRegressorCV(Sphere(), surrogate=NystromRidge(n_centers=40), kernels=[2.0], lams=[1e-5, 1e-3, 1e-1], cv=3)
    assert np.all(model.fit(X, circle).best_params_["lam"] < 0.1)
    np.testing.assert_allclose(np.linalg.norm(model.predict(XNEW), axis=1), 1, atol=1e-8)
    other = ConstrainedRegressorCV(surrogate=NystromRidge(KERNEL, lam=1e-4), grid={"n_centers": [3, 60]}, cv=3).fit(X, circle)
    assert other.best_params_["n_centers"] == 60


def test_a_lawful_stream():
    circle = np.c_[np.cos(X[:, 0]), np.sin(X[:, 0])] + 0.05 * RNG.standard_normal((N, 2))
    loss, ridge = Square(metric="identity"), NystromRidge(KERNEL, lam=1e-3, centers=X[::4])
    once = ConstrainedRegressor(Sphere(), loss=loss, surrogate=ridge).fit(X, circle)
    model = ConstrainedRegressor(Sphere(), loss=loss, surrogate=ridge)
    for part in (slice(0, 60), slice(60, N)):
        assert model.partial_fit(X[part], circle[part]) is model
    np.testing.assert_allclose(model.predict(XNEW), once.predict(XNEW), atol=1e-8)
    default = ConstrainedRegressor(Sphere())
    default.partial_fit(X[:60], circle[:60]).partial_fit(X[60:], circle[60:])
    assert default.surrogate is None and default.surrogate_choice_ == "NystromRidge: a stream"
    np.testing.assert_allclose(np.linalg.norm(default.predict(XNEW), axis=1), 1, atol=1e-8)
    sizes = np.diagonal(default.loss_.metric_) if np.ndim(default.loss_.metric_) == 2 else default.loss_.metric_
    assert np.all((sizes > 100) & (sizes < 1600))  # one over the squared error, whose noise is 0.05


def test_streams_that_cannot_be():
    circle = np.c_[np.cos(X[:, 0]), np.sin(X[:, 0])]
    with pytest.raises(AttributeError, match="partial_fit") as refused:
        ConstrainedRegressor(Sphere(), surrogate=KernelRidge(KERNEL, lam=1e-3)).partial_fit(X, circle)
    assert "surrogate=NystromRidge() would do" in str(refused.value.__cause__)
    model = ConstrainedRegressor(Sphere(), surrogate=NystromRidge(KERNEL, lam=1e-3)).partial_fit(X, circle)
    with pytest.raises(ValueError, match="y has 3 outputs, and the model was fitted on 2"):
        model.partial_fit(X, Y)
    signs = ConstrainedRegressor(PointCloud(), loss=ZeroOne(), surrogate=NystromRidge(KERNEL, lam=1e-3)).partial_fit(
        X, np.sign(circle)
    )
    with pytest.raises(ValueError, match=r"Square\(\) would do"):
        signs.partial_fit(X, np.sign(circle))


def test_the_default_surrogate_is_one_model_that_says_how_it_was_solved(monkeypatch):
    circle = np.c_[np.cos(X[:, 0]), np.sin(X[:, 0])] + 0.05 * RNG.standard_normal((N, 2))
    small = ConstrainedRegressor(Sphere()).fit(X[:40], circle[:40])
    assert isinstance(small.surrogate_, KernelRidge) and small.surrogate_choice_ == "KernelRidge: 40 rows, exact"
    monkeypatch.setattr("lawful.surrogates.factorise.LARGE", 100)
    monkeypatch.setattr("lawful.surrogates.factorise.WORK", 0.0)
    large = ConstrainedRegressor(Sphere()).fit(X, circle)
    assert isinstance(large.surrogate_, KernelRidge) and large.surrogate_choice_ == "KernelRidge: 150 rows, on 149 centres"
    given = ConstrainedRegressor(Sphere(), surrogate=KernelRidge(KERNEL, lam=1e-3)).fit(X, circle)
    assert given.surrogate_choice_ == "KernelRidge: given; 150 rows, exact"


# ---------------------------------------------------------------------- what cannot be


def test_too_little_memory_is_said_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(lawful._memory, "available_memory", lambda: 1e5)
    with pytest.raises(
        MemoryError,
        match=r"KernelRidge: the kernel matrix of 149 inputs needs about 213 kB and 100 kB are free; NystromRidge\(\)",
    ):
        KernelRidge(KERNEL, lam=1e-3).fit(X, Y)
    with pytest.raises(MemoryError, match=r"NystromRidge: 149 centres needs about .* fewer n_centers"):
        NystromRidge(KERNEL, lam=1e-3).fit(X, Y)
    KernelRidge(Linear(), lam=1e-3).fit(X, Y)  # four features need no such matrix


def test_memory_in_words():
    assert [lawful._memory.in_words(v) for v in (3e3, 2.5e7, 1.5e9, 8e12)] == ["3 kB", "25 MB", "1.5 GB", "8 TB"]
    assert lawful._memory.available_memory() > 1e6


BAD = {
    "centers of shape": {"centers": X[:, :2]},
    "centers='grid' is unknown": {"centers": "grid"},
    "n_centers=0 will not do": {"n_centers": 0},
    "solver='lu' is unknown": {"solver": "lu"},
    "dtype='half' is unknown": {"dtype": "half"},
    "block_size=0 will not do": {"block_size": 0},
    "tol=-1 will not do": {"tol": -1},
    "lam above zero and finite": {"lam": [1.0, 2.0]},
    "lam='small' is unknown": {"lam": "small"},
    "one kernel for all tasks": {"kernel": [Gaussian(1.0), Gaussian(2.0), Gaussian(3.0)]},
    "KernelRidge takes a Gram matrix": {"kernel": Precomputed()},
    "3 finite numbers, one for each output": {"intercept": [1.0]},
}


@pytest.mark.parametrize(("message", "parameters"), BAD.items(), ids=BAD.keys())
def test_bad_parameters(message, parameters):
    with pytest.raises(ValueError, match=message):
        NystromRidge(**({"kernel": KERNEL, "lam": 1e-3} | parameters)).fit(X, Y)


def test_bad_inputs():
    for bad in (np.nan, np.inf):
        spoilt = X.copy()
        spoilt[3, 1] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            NystromRidge(KERNEL, lam=1e-3).fit(spoilt, Y)
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            NystromRidge(KERNEL, lam=1e-3).fit(X, Y).predict(spoilt)
    with pytest.raises(ValueError, match="infinity"):
        NystromRidge(KERNEL, lam=1e-3).fit(X, np.where(Y > 1, np.inf, Y))
    with pytest.raises(ValueError, match="NaN or infinite at these inputs"):
        NystromRidge(Polynomial(3), lam=1e-3).fit(X * 1e150, Y)
    with pytest.raises(ValueError, match="3 features"):
        NystromRidge(KERNEL, lam=1e-3).fit(X, Y).partial_fit(X[:, :2], Y)


def test_progress_is_silent_unless_asked_for(capsys):
    NystromRidge(KERNEL, lam=1e-3).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    NystromRidge(KERNEL, lam=1e-3, verbose=True).fit(X, Y)
    assert "NystromRidge: statistics: 100%" in capsys.readouterr().err


@parametrize_with_checks(
    [NystromRidge(), NystromRidge(Gaussian(2.0), lam=0.003), NystromRidge(lam=1e-3, solver="cg", tol=1e-12)]
)
def test_scikit_learn_estimator(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check(estimator)


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Matern(1.5, 2.0), Laplacian(2.0)], ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("intercept", [True, False])
def test_an_exact_path_is_factor_by_factor(kernel, intercept):
    A, b = X[7:], Y[7:]
    lams = [1e-5, 1e-3, 1e-1]
    coef, beta = exact_path(kernel, A, b, lams, intercept=intercept)
    sample = distinct(A, np.arange(len(A)), np.ones(len(A)), kernel)
    for l, lam in enumerate(lams):
        factor = CholeskyFactor(kernel, sample, lam, intercept)
        expected = factor.predict(XNEW, factor.solve(b, lam))
        np.testing.assert_allclose(kernel(XNEW, A) @ coef[l] + beta[l], expected, atol=1e-8)
    with pytest.raises(ValueError, match=r"lam = 1.0e-30 is lost beside the kernel matrix"):
        exact_path(Gaussian(1e3), A, b, [1e-30])
