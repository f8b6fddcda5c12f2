"""ConstrainedRegressorCV against brute force: every error it reports is that of an honest refit."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, ParameterGrid, ShuffleSplit, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from lawful import (
    Ball,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    Equations,
    Huber,
    Inflated,
    KernelRidge,
    Penalized,
    PointCloud,
    Sphere,
    Square,
    stack_tasks,
)
from lawful.datasets import make_curve
from lawful.decoders import decode
from lawful.estimators.evaluate import Evaluator
from lawful.estimators.selection import GridEdgeWarning, HeldOutLoss, choose_law
from lawful.folds import make_folds
from lawful.kernels import Gaussian, Laplacian, Linear, Matern, Precomputed
from lawful.surrogates import RegressorSurrogate, Surrogate
from lawful.tasks import Tasks

pytestmark = pytest.mark.filterwarnings("ignore::lawful.estimators.selection.GridEdgeWarning")

KERNELS = [Gaussian(1.0), Matern(2.5, sigma=1.5)]
LAMS = np.array([1e-6, 1e-4, 1e-2, 1.0])
DELTAS, MUS = np.array([0.5, 2.0]), np.array([0.3, 3.0])


def circle(n=30, missing=0.0, seed=0):
    data = make_curve("circle", n, noise=0.1, missing=missing, random_state=seed)
    return data.X, data.Y


def brute(model, X, Y, w, folds, kernel, intercept, lam, law):
    """Pooled held-out error of every output, by refitting from nothing."""
    losses, weights = np.zeros(Y.shape[1]), np.zeros(Y.shape[1])
    variance = np.array([np.cov(y[~np.isnan(y)], aweights=v[~np.isnan(y)], ddof=0) for y, v in zip(Y.T, w.T)])
    for train, test in folds:
        surrogate = KernelRidge(kernel, lam=lam, intercept=intercept)
        refit = ConstrainedRegressor(law, loss=model.loss, surrogate=surrogate, decoder=model.decoder)
        refit.fit(X[train], Y[train], w[train])
        p = refit.objective(X[test]).center if law is None else refit.predict(X[test])
        seen = ~np.isnan(Y[test])
        losses += np.where(seen, w[test] * (p - np.where(seen, Y[test], 0)) ** 2, 0).sum(axis=0)
        weights += np.where(seen, w[test], 0).sum(axis=0)
    return losses / weights / variance


def rows_of(model, **labels):
    table = model.cv_results_
    keep = np.ones(len(table["error"]), dtype=bool)
    for key, value in labels.items():
        column = table[key]
        same = np.isclose(column.astype(float), value) if isinstance(value, float) else column == value
        keep &= (column != column) if isinstance(value, float) and np.isnan(value) else same
    return table["error"][keep], table["mean_error"][keep]


@pytest.mark.parametrize("cv", [0.3, 4, KFold(3, shuffle=True, random_state=1), ShuffleSplit(1, test_size=0.3, random_state=0)])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_unconstrained_errors_are_those_of_refits(cv, missing):
    X, Y = circle(missing=missing)
    w = np.random.default_rng(0).uniform(0.5, 2, Y.shape)
    model = ConstrainedRegressorCV(Sphere(), kernels=KERNELS, lams=LAMS, intercepts=[True, False, [0.1, -0.2]], cv=cv)
    model.fit(X, Y, w)
    folds = make_folds(cv, X, ~np.isnan(Y), ["a", "b"])
    risks = {}
    for kernel in KERNELS:
        for intercept in (True, False, np.array([0.1, -0.2])):
            table = np.array([brute(model, X, Y, w, folds, kernel, intercept, lam, None) for lam in LAMS])
            for lam, errors in zip(LAMS, table):
                found, _ = rows_of(model, kernel=repr(kernel), intercept=str(intercept), lam=lam, law="none")
                np.testing.assert_allclose(found, errors, rtol=1e-8)
            risks[repr(kernel), str(intercept)] = table.min(axis=0).mean(), LAMS[table.argmin(axis=0)]
    best = min(risks, key=lambda key: risks[key][0])
    assert (repr(model.best_params_["kernel"]), str(model.best_params_["intercept"])) == best
    np.testing.assert_allclose(np.broadcast_to(model.best_params_["lam"], 2), risks[best][1])


@pytest.mark.parametrize(
    "loss", [None, Square("identity", "scores"), Square("residual_full", 0.5), Square("variance", "variance")]
)
@pytest.mark.parametrize("norm", ["objective", "euclidean"])
def test_constrained_errors_are_those_of_refits(loss, norm):
    X, Y = circle(24, missing=0.2)
    w = np.ones(Y.shape)
    law = Sphere()
    model = ConstrainedRegressorCV(
        law, kernels=KERNELS, lams=LAMS[1:3], deltas=DELTAS, mus=MUS, cv=3, select_on="constrained", loss=loss, norm=norm
    ).fit(X, Y)
    folds = make_folds(3, X, ~np.isnan(Y), ["a", "b"])
    laws = (
        {("exact", None): law}
        | {("delta", d): Inflated(law, d, norm) for d in DELTAS}
        | {("mu", m): Penalized(law, m) for m in MUS}
    )
    risks = {}
    for kernel in KERNELS:
        for lam in LAMS[1:3]:
            for (kind, value), relaxed in laws.items():
                errors = brute(model, X, Y, w, folds, kernel, True, lam, relaxed)
                label = {} if value is None else {kind: float(value)}
                found, mean = rows_of(model, kernel=repr(kernel), lam=lam, law=kind, **label)
                # the chosen candidate is listed again, with its relaxations
                np.testing.assert_allclose(found.reshape(-1, 2), np.tile(errors, (len(found) // 2, 1)), rtol=1e-8)
                np.testing.assert_allclose(mean, errors.mean(), rtol=1e-8)
                risks[repr(kernel), lam, kind, value] = errors.mean()
    best = min(risks, key=risks.__getitem__)
    assert (repr(model.best_params_["kernel"]), model.best_params_["lam"]) == best[:2]


def leave_one_out(model, X, Y, kernel, lam, law):
    """Held-out predictions of n refits: n lambda held fixed, the output metric that of all rows, equal inputs together."""
    loss = model.loss or Square()
    full = ConstrainedRegressor(law, loss=loss, surrogate=KernelRidge(kernel, lam=lam)).fit(X, Y)
    unit = full.surrogate_._loo_variance
    sizes = (~np.isnan(Y)).sum(axis=0)
    out = np.empty(Y.shape)
    for i in range(len(X)):
        keep = np.abs(X - X[i]).max(axis=1) > 0
        left = (~np.isnan(Y[keep])).sum(axis=0)
        refit = ConstrainedRegressor(law, loss=clone(loss), surrogate=KernelRidge(kernel, lam=lam * sizes / left))
        refit.fit(X[keep], Y[keep])
        s = refit.surrogate_
        variance = s.variance(X[i : i + 1]) * s._loo_variance / unit if full.loss_.needs_variance else None
        F = full.loss_.objective(s.predict_tasks(X[i : i + 1]), full.atoms_, variance)
        out[i] = F.center if law is None else decode(F, full.constraint_.at(X[i : i + 1])).c
    return out


@pytest.mark.parametrize(
    "loss", [None, Square("identity", "scores"), Square("residual", "variance"), Square("residual_full", 0.5)]
)
def test_leave_one_out_is_n_refits(loss):
    X, Y = circle(18, missing=0.3)
    X[5] = X[6]  # equal inputs are left out together
    Y[6, 0], Y[5, 0] = 0.3, np.nan
    law = Sphere()
    model = ConstrainedRegressorCV(law, kernels=[KERNELS[0]], lams=[1e-3], mus=[0.5], loss=loss).fit(X, Y)
    variance = np.nanvar(Y, axis=0)
    for kind, relaxed in (("none", None), ("exact", law), ("mu", Penalized(law, 0.5))):
        p = leave_one_out(model, X, Y, KERNELS[0], np.full(2, 1e-3), relaxed)
        errors = np.nanmean((p - Y) ** 2, axis=0) / variance
        np.testing.assert_allclose(rows_of(model, law=kind)[0], errors, rtol=1e-8)


def test_separate_inputs_per_task():
    """A task not observed at a held-out row predicts there as usual."""
    rng = np.random.default_rng(3)
    X1, X2 = rng.uniform(-3, 3, (14, 1)), rng.uniform(-3, 3, (11, 1))
    X, Y = stack_tasks([(X1, np.cos(X1[:, 0])), (X2, np.sin(X2[:, 0]))])
    law = Sphere()
    model = ConstrainedRegressorCV(law, kernels=[KERNELS[0]], lams=[1e-3], select_on="constrained").fit(X, Y)
    p = leave_one_out(model, X, Y, KERNELS[0], np.full(2, 1e-3), law)
    np.testing.assert_allclose(
        rows_of(model, law="exact")[0][:2], np.nanmean((p - Y) ** 2, axis=0) / np.nanvar(Y, axis=0), rtol=1e-8
    )
    folds = make_folds(4, X, ~np.isnan(Y), ["y1", "y2"])
    for t in range(2):  # every fold holds out its share of either task
        shares = [np.sum(~np.isnan(Y[test, t])) for _, test in folds]
        assert max(shares) - min(shares) <= 1


def test_agrees_with_grid_search():
    """Without intercept and law, this is scikit-learn's grid search."""
    from sklearn.kernel_ridge import KernelRidge as Reference

    X, Y = circle(60)
    cv = ShuffleSplit(1, test_size=0.3, random_state=2)
    sigmas, lams = np.logspace(-1, 1, 5), np.logspace(-6, 0, 5)
    ours = ConstrainedRegressorCV(
        None, kernels=sigmas, lams=lams, cv=cv, intercepts=False, lam_per_task=False, scoring="neg_mean_squared_error"
    ).fit(X, Y)
    grid = {"gamma": list(1 / sigmas**2), "alpha": list(42 * lams)}
    theirs = GridSearchCV(Reference(kernel="rbf"), grid, cv=cv, scoring="neg_mean_squared_error").fit(X, Y)
    np.testing.assert_allclose(ours.best_error_, -theirs.best_score_, rtol=1e-8)
    np.testing.assert_allclose(1 / ours.best_params_["kernel"].sigma ** 2, theirs.best_params_["gamma"])
    np.testing.assert_allclose(42 * ours.best_params_["lam"], theirs.best_params_["alpha"])


def test_smooth_kernels_are_searched_through_few_features():
    """The same errors from r features as from eigenvectors, for folds, intercepts and the law."""
    from lawful.kernels import Gaussian as Plain
    from lawful.surrogates import low_rank as module
    from lawful.surrogates.exact import distinct

    X, Y = circle(400)
    sample = distinct(X, np.arange(400), np.ones(400), Plain(1.0))
    smooth = module.low_rank(Plain(1.0), sample, 1e-9)
    phi = smooth.features(X)
    assert phi.shape[1] < 60
    np.testing.assert_allclose(phi @ phi.T, Plain(1.0)(X, X), atol=1e-10)
    assert module.low_rank(Plain(0.001), sample, 1e-9) is None  # nearly diagonal: nothing to gain
    assert module.low_rank(Plain(1.0), sample, 1e-14) is None  # small lambdas need every direction
    lams = np.logspace(-9, 0, 7)
    for options in ({"intercepts": [True, False]}, {"select_on": "constrained", "mus": [1.0]}):
        make = lambda: ConstrainedRegressorCV(Sphere(), kernels=[1.0, 3.0], lams=lams, cv=2, **options).fit(X, Y)  # noqa: B023, E731
        few = make()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "ROWS", 10**9)
            full = make()
        np.testing.assert_allclose(few.cv_results_["error"], full.cv_results_["error"], rtol=1e-6)
        assert few.best_params_["lam"] == pytest.approx(full.best_params_["lam"])


@pytest.mark.parametrize("select_on", ["unconstrained", "constrained"])
def test_sets_are_fitted_without_the_labels_they_are_judged_on(select_on):
    """A cloud of the training labels: were it to hold the held-out ones too, it would look better than any refit."""
    X, Y = circle(40)
    model = ConstrainedRegressorCV(PointCloud(), kernels=KERNELS[:1], lams=[1e-3], cv=4, select_on=select_on).fit(X, Y)
    folds = make_folds(4, X, ~np.isnan(Y), ["a", "b"])
    errors = brute(model, X, Y, np.ones(Y.shape), folds, KERNELS[0], True, 1e-3, PointCloud())
    found = rows_of(model, law="exact")[0].reshape(-1, 2)
    np.testing.assert_allclose(found, np.tile(errors, (len(found), 1)), rtol=1e-8)
    assert model.best_error_ == pytest.approx(errors.mean())


def test_leave_one_out_never_offers_a_row_its_own_label():
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(-1, 1, (40, 1)), rng.standard_normal((40, 2))
    X[7] = X[3]  # left out together
    judge = Evaluator(
        Tasks.of(X, Y), PointCloud(), Square(), None, None, HeldOutLoss(None, Y, np.ones(Y.shape)), np.empty(0), np.empty(0), ""
    )
    (parts,) = judge.laws
    assert sorted(np.concatenate([places for places, _ in parts])) == list(range(40))
    for places, law in parts:
        assert not {tuple(y) for y in Y[places]} & {tuple(p) for p in law.points_}
        assert (3 in places) == (7 in places)


class Means(Surrogate):
    """The least a surrogate can do: predict the weighted mean of every task, to a power."""

    def __init__(self, power=1.0):
        self.power = power

    def fit_tasks(self, tasks):
        self.means_ = [np.average(z, axis=0, weights=w) ** self.power for z, w in zip(tasks.Z, tasks.weights)]
        self._residuals = [y - np.average(y, weights=w) for y, w in zip(tasks.y, tasks.weights)]
        return self

    def predict_tasks(self, X):
        return [np.tile(m, (len(X), 1)) for m in self.means_]

    def residuals(self):
        return self._residuals


@pytest.mark.parametrize(
    ("surrogate", "grid"),
    [
        (LinearRegression(), None),
        (Ridge(), {"alpha": [1e-3, 1.0, 100.0]}),
        (make_pipeline(StandardScaler(), KNeighborsRegressor()), [{"kneighborsregressor__n_neighbors": [2, 5, 12]}]),
        (SVR(), {"C": [0.1, 10.0], "epsilon": [0.01, 0.5]}),
        (Means(), {"power": [1.0, 2.0]}),
        (RegressorSurrogate(Ridge(), cv=3), {"regressor__alpha": [1e-3, 100.0]}),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("select_on", ["unconstrained", "constrained"])
def test_any_surrogate_is_searched(surrogate, grid, select_on):
    X, Y = circle(30, missing=0.2)
    law = Ball(0.9)
    model = ConstrainedRegressorCV(law, surrogate=surrogate, grid=grid, mus=[0.3], select_on=select_on, random_state=1).fit(
        X, Y
    )
    folds = make_folds(5, X, ~np.isnan(Y), ["a", "b"], 1)  # no closed form: five folds
    risks = []
    settings = list(ParameterGrid(grid or {}))
    laws = [law, Penalized(law, 0.3)]
    for setting in settings:
        one = clone(surrogate).set_params(**setting)
        tables = []
        for candidate in laws if select_on == "constrained" else [None]:
            losses, seen = np.zeros(2), np.zeros(2)
            for train, test in folds:
                refit = ConstrainedRegressor(candidate, surrogate=one).fit(X[train], Y[train])
                p = refit.predict(X[test])
                losses += np.nansum((p - Y[test]) ** 2, axis=0)
                seen += (~np.isnan(Y[test])).sum(axis=0)
            tables.append((losses / seen / np.nanvar(Y, axis=0)).mean())
        risks.append(min(tables))
    best = settings[int(np.argmin(risks))]
    assert {key: model.best_params_[key] for key in best} == best
    if select_on == "unconstrained":
        found = model.cv_results_["mean_error"][model.cv_results_["law"] == "none"]
        np.testing.assert_allclose(found, np.repeat(risks, 2), rtol=1e-8)
    direct = ConstrainedRegressor(model.best_estimator_.constraint, surrogate=clone(surrogate).set_params(**best)).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), direct.predict(X))
    assert not hasattr(model, "lam_path_")


def test_leave_one_out_of_any_surrogate_refits():
    X, Y = circle(15)
    model = ConstrainedRegressorCV(surrogate=Ridge(0.1), cv="loo").fit(X, Y)
    p = cross_val_predict(Ridge(0.1), X, Y, cv=LeaveOneOut())
    np.testing.assert_allclose(model.best_error_, np.mean(np.mean((p - Y) ** 2, axis=0) / np.var(Y, axis=0)), rtol=1e-8)


def test_a_given_ridge_keeps_its_other_parameters():
    X, Y = circle(25)
    ridge = KernelRidge(scales="shared", max_tuning_rows=20)
    model = ConstrainedRegressorCV(Sphere(), surrogate=ridge, cv=3).fit(X, Y)
    chosen = model.best_estimator_.surrogate_
    assert chosen.scales == "shared" and chosen.max_tuning_rows == 20
    assert isinstance(model.best_params_["kernel"], Gaussian)
    assert ridge.kernel is None  # the user's own is untouched
    given = ConstrainedRegressorCV(Sphere(), surrogate=KernelRidge(Linear(), lam=1e-2, intercept=False), cv=3).fit(X, Y)
    assert repr(given.best_params_["kernel"]) == "Linear()"
    assert given.best_params_["lam"] == 1e-2 and given.best_params_["intercept"] is False
    both = ConstrainedRegressorCV(Sphere(), surrogate=KernelRidge(Linear(), lam=1e-2), kernels=KERNELS, lams=LAMS, cv=3).fit(
        X, Y
    )
    assert both.best_params_["kernel"] in KERNELS and both.best_params_["lam"] is not None
    for odd, words in ((KernelRidge(KERNELS), "one kernel after the other"), (KernelRidge(lam="rate"), "give lams")):
        with pytest.raises(ValueError, match=words):
            ConstrainedRegressorCV(Sphere(), surrogate=odd).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"surrogate": Ridge(), "kernels": [1.0]}, "kernels belong to a KernelRidge"),
        ({"surrogate": Ridge(), "lams": np.array([1.0, 2.0]), "intercepts": False}, "lams and intercepts belong"),
        ({"grid": {"alpha": [1.0]}}, "grid is for surrogates other than KernelRidge"),
        ({"surrogate": Ridge(), "grid": {"gamma": [1.0]}}, "grid names gamma, which Ridge does not have"),
        ({"surrogate": Ridge(), "grid": 3}, "no grid of parameters"),
        ({"surrogate": Ridge(), "grid": {"alpha": []}}, "no grid of parameters"),
        ({"surrogate": Ridge(), "loss": Square(confidence="variance")}, "predictive variance"),
    ],
)
def test_what_other_surrogates_cannot_have(options, words):
    X, Y = circle(20)
    with pytest.raises(ValueError, match=words):
        ConstrainedRegressorCV(Sphere(), **options).fit(X, Y)


def test_other_losses_and_scorings():
    X, Y = circle(30)
    law = PointCloud(Sphere().fit(Y).sample(50, random_state=0))
    model = ConstrainedRegressorCV(
        law, kernels=KERNELS, lams=LAMS[:2], cv=3, loss=Huber(0.1), select_on="constrained", scoring="neg_mean_absolute_error"
    ).fit(X, Y)
    folds = make_folds(3, X, ~np.isnan(Y), ["a", "b"])
    expected = 0.0
    for train, test in folds:
        refit = ConstrainedRegressor(law, loss=Huber(0.1), surrogate=KernelRidge(KERNELS[1], lam=LAMS[0])).fit(
            X[train], Y[train]
        )
        expected = expected + np.abs(refit.predict(X[test]) - Y[test]).sum(axis=0) / len(X)
    np.testing.assert_allclose(rows_of(model, kernel=repr(KERNELS[1]), lam=LAMS[0], law="exact")[0][:2], expected, rtol=1e-8)
    same = ConstrainedRegressorCV(
        law, kernels=KERNELS, lams=LAMS[:2], cv=3, loss=Huber(0.1), select_on="constrained", scoring=lambda c, y: abs(c - y)
    ).fit(X, Y)
    np.testing.assert_allclose(same.cv_results_["error"], model.cv_results_["error"])


def test_precomputed_kernel():
    X, Y = circle(25)
    K = Gaussian(1.0)(X, X)
    direct = ConstrainedRegressorCV(Sphere(), kernels=Gaussian(1.0), lams=LAMS, cv=3).fit(X, Y)
    through = ConstrainedRegressorCV(Sphere(), kernels=Precomputed(), lams=LAMS, cv=3).fit(K, Y)
    np.testing.assert_allclose(through.cv_results_["error"], direct.cv_results_["error"], rtol=1e-8)
    np.testing.assert_allclose(through.predict(K), direct.predict(X), atol=1e-8)


def test_the_best_estimator_is_a_refit_of_the_best_parameters():
    data = make_curve("lemniscate_printed", 60, noise=0.05, random_state=0)
    grid = np.logspace(-2, 2, 9)
    model = ConstrainedRegressorCV(Equations(data.equation), deltas=grid, mus=grid, cv=5, n_jobs=2).fit(data.X, data.Y)
    best = model.best_params_
    assert (best["delta"] is None) != (best["mu"] is None)  # this law is wrong: a relaxation was chosen
    law = (
        Inflated(Equations(data.equation), best["delta"], "objective")
        if best["delta"]
        else Penalized(Equations(data.equation), best["mu"])
    )
    ridge = KernelRidge(best["kernel"], lam=best["lam"], intercept=best["intercept"])
    refit = ConstrainedRegressor(law, surrogate=ridge).fit(data.X, data.Y)
    np.testing.assert_allclose(model.predict(data.X_test), refit.predict(data.X_test))
    np.testing.assert_allclose(model.decode(data.X_test).c, model.predict(data.X_test))
    assert model.score(data.X_test, data.Y_test) > 0.99
    chosen = min(e for e, law in zip(model.cv_results_["mean_error"], model.cv_results_["law"]) if law != "none")
    assert chosen <= model.best_error_ <= 1.5 * chosen


def test_auto_is_close_to_the_plain_regressor():
    data = make_curve("circle", 80, noise=0.05, random_state=1)
    auto = ConstrainedRegressorCV(Sphere()).fit(data.X, data.Y)
    plain = ConstrainedRegressor(Sphere()).fit(data.X, data.Y)
    np.testing.assert_allclose(auto.predict(data.X_test), plain.predict(data.X_test), atol=0.01)
    assert auto.lam_path_.lam.shape == auto.lam_path_.error.shape


def test_lambda_grids_follow_the_scale_of_the_kernel():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    Y = X @ rng.standard_normal((3, 2)) + 5 * rng.standard_normal((40, 2))
    small = ConstrainedRegressorCV(kernels=Linear(), cv=4).fit(X, Y)
    large = ConstrainedRegressorCV(kernels=Linear(bias=1000.0), cv=4).fit(1000 * X, Y)
    np.testing.assert_allclose(np.array(large.best_params_["lam"]), 1e6 * np.array(small.best_params_["lam"]), rtol=1e-6)


def test_the_paired_rule():
    rng = np.random.default_rng(0)
    noise = rng.uniform(size=200)  # common to all candidates: pairing removes it
    loose = np.array([0.0, 1.0, 2.0])
    losses = np.stack([noise + 0.001, noise + 0.0005, noise])
    assert choose_law(losses, loose, "one_se") == 2  # exact is surely worse, if only by little: then the best
    jitter = 0.1 * rng.standard_normal((3, 200))
    blurred = noise + jitter - jitter.mean(axis=1, keepdims=True) + np.array([[1e-4], [0], [1e-5]])
    assert choose_law(blurred, loose, "one_se") == 0
    assert choose_law(blurred, loose, "best") == 1
    assert choose_law(np.zeros((3, 5)), np.array([0.0, 2.0, 1.0]), "best") == 0
    d = losses[0] - losses[2] + jitter[0]  # the threshold itself, by hand
    doubtful = np.stack([losses[2] + d, losses[2] + 1, losses[2]])
    exact = d.sum() <= np.std(d, ddof=1) * np.sqrt(200)
    assert choose_law(doubtful, loose, "one_se") == (0 if exact or d.sum() <= 0 else 2)


def test_edges_of_grids_are_pointed_out():
    X, Y = circle(60)
    with pytest.warns(GridEdgeWarning, match="lams"):
        ConstrainedRegressorCV(Sphere(), kernels=[1.0], lams=[1e-1, 1, 10], cv=3).fit(X, Y)
    with pytest.warns(GridEdgeWarning, match="kernels"):
        ConstrainedRegressorCV(Sphere(), kernels=[0.01, 0.02, 0.05], cv=3).fit(X, Y)
    data = make_curve("lemniscate_printed", 100, noise=0.05, random_state=0)
    with pytest.warns(GridEdgeWarning, match="mus"):
        ConstrainedRegressorCV(Equations(data.equation), mus=[1e-3, 1e-2, 1e-1]).fit(data.X, data.Y)


@pytest.mark.filterwarnings("error")
def test_no_edge_without_reason():
    X, Y = circle(60)
    ConstrainedRegressorCV(Sphere(), kernels=np.logspace(-1, 2, 9), lams=np.logspace(-8, 0, 17), mus=[1e-2, 1, 1e2], cv=5).fit(
        X, Y
    )


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"lams": []}, "lams is an empty grid"),
        ({"lams": [1e-3, -1.0]}, "lams holds .*-1.0.* above 0"),
        ({"lams": "much"}, "no rule"),
        ({"lams": ["a"]}, "not a grid of numbers"),
        ({"kernels": []}, "kernels is an empty grid"),
        ({"kernels": [0.0, 1.0]}, "kernels holds"),
        ({"deltas": []}, "deltas is an empty grid"),
        ({"deltas": [-0.1]}, "deltas holds"),
        ({"mus": [np.nan]}, "mus holds"),
        ({"mus": [-1.0]}, "mus holds"),
        ({"cv": 1}, "cannot make cv=1 folds"),
        ({"cv": 1.5}, "no usable fraction"),
        ({"cv": "fold"}, "unknown cv"),
        ({"cv": [(np.arange(10), np.arange(5, 15))]}, "disjoint"),
        ({"cv": [(np.arange(10), np.array([99]))]}, "outside"),
        ({"cv": [(np.array([], int), np.arange(5))]}, "both need at least one"),
        ({"cv": object()}, "will not do"),
        ({"select_on": "both"}, "select_on='both' is unknown"),
        ({"rule": "two_se"}, "rule='two_se' is unknown"),
        ({"scoring": "accuracy"}, "unknown scoring"),
        ({"lam_per_task": True, "select_on": "constrained"}, "one lambda for all"),
        ({"intercepts": []}, "intercepts is empty"),
        ({"intercepts": [1.0, 2.0, 3.0]}, "2 finite numbers"),
        ({"norm": "taxicab", "deltas": [1.0]}, "unknown norm"),
    ],
)
def test_bad_parameters(parameters, words):
    X, Y = circle(20)
    with pytest.raises(ValueError, match=words):
        ConstrainedRegressorCV(Sphere(), **{"kernels": [1.0], "lams": [1e-3], "cv": 3} | parameters).fit(X, Y)


def test_a_fold_that_takes_a_task_away():
    X, Y = circle(20)
    Y[2:, 1] = np.nan
    with pytest.raises(ValueError, match="fold 0 leaves output 'y2' without any observation"):
        ConstrainedRegressorCV(Sphere(), kernels=[1.0], cv=[(np.arange(2, 20), np.arange(2))]).fit(X, Y)
    model = ConstrainedRegressorCV(Sphere(), kernels=[1.0], lams=[1e-3], cv=4).fit(X, Y)  # own folds know better
    assert np.isfinite(model.cv_results_["mean_error"]).all()


@pytest.mark.parametrize("cv", [2, 5, 0.3, 0.5])
def test_own_folds_keep_every_task(cv):
    rng = np.random.default_rng(0)
    for _ in range(30):
        n, T = rng.integers(6, 30), rng.integers(1, 6)
        observed = rng.uniform(size=(n, T)) < rng.uniform(0.1, 1)
        observed[rng.integers(n, size=T), np.arange(T)] = True
        if observed.any(axis=1).sum() < 6:
            continue
        folds = make_folds(cv, np.zeros((n, 1)), observed, list("abcdef"), rng.integers(1000))
        for train, test in folds:
            assert observed[train].any(axis=0).all()
            assert not np.intersect1d(train, test).size
        if isinstance(cv, int):
            held = np.concatenate([test for _, test in folds])
            assert len(np.unique(held)) == len(held)


def test_progress_and_determinism(capsys):
    X, Y = circle(20)
    make = lambda **options: ConstrainedRegressorCV(Sphere(), kernels=KERNELS, lams=LAMS, cv=3, **options).fit(X, Y)  # noqa: E731
    one, two = make(n_jobs=1), make(n_jobs=2, verbose=True)
    assert "kernels" in capsys.readouterr().err
    np.testing.assert_array_equal(one.cv_results_["error"], two.cv_results_["error"])
    assert not np.array_equal(one.cv_results_["error"], make(random_state=7).cv_results_["error"])


def test_table_is_tidy():
    X, Y = circle(20)
    model = ConstrainedRegressorCV(Sphere(), kernels=KERNELS, lams=LAMS, mus=MUS, cv=3).fit(
        X, pandas.DataFrame(Y, columns=["u", "v"])
    )
    frame = pandas.DataFrame(model.cv_results_)
    assert set(frame["output"]) == {"u", "v"}
    assert len(frame) == 2 * (len(KERNELS) * len(LAMS) + 1 + len(MUS))
    assert sorted(frame["law"].unique()) == ["exact", "mu", "none"]


def test_kernel_of_each_task():
    X, Y = circle(30)
    kernels = [Gaussian(0.7), Laplacian(1.3)]
    both = KernelRidge(kernels, lam=1e-3).fit(X, Y)
    for t, kernel in enumerate(kernels):
        np.testing.assert_allclose(both.predict(X)[:, t], KernelRidge(kernel, lam=1e-3).fit(X, Y[:, t]).predict(X))
    with pytest.raises(ValueError, match="1 kernels for 2 tasks"):
        KernelRidge(kernels[:1], lam=1e-3).fit(X, Y)
    with pytest.raises(ValueError, match="needs numbers for sigma"):
        KernelRidge([Gaussian(), Gaussian()], lam=1e-3).fit(X, Y)
