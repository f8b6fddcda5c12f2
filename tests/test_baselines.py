"""What every baseline promises: the switch to `SingleTask`, its certificate, its errors, its four ways to solve."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from lawful import ConstrainedRegressor, KernelRidge, Sphere, Square, stack_tasks
from lawful.baselines import (
    ClusteredMTL,
    LatentTaskStructure,
    LinearRelations,
    MeanRegularized,
    OutputKernelLearning,
    ParametrizedRegressor,
    RelationshipLearning,
    SingleTask,
    WienerShrinkage,
    tune,
)
from lawful.baselines.multitask import _systems as systems
from lawful.baselines.multitask._alternate import alternate
from lawful.baselines.multitask._problem import make_problem
from lawful.baselines.multitask._structures import Clusters, Power, Relationship
from lawful.baselines.multitask._systems import CGSystem, DenseSystem, PrimalSystem, SharedSystem, make_system
from lawful.folds import make_folds
from lawful.kernels import Gaussian, Linear, Precomputed
from lawful.tasks import Tasks

T, D = 4, 3
W = np.random.default_rng(1).normal(size=(D, 1)) + 0.5 * np.random.default_rng(2).normal(size=(D, T))
SINGLE = [(t,) for t in range(T)]


def separate(seed=0, n=9):
    rng = np.random.default_rng(seed)
    return stack_tasks([(X, X @ W[:, t] + t + 0.3 * rng.normal(size=n)) for t, X in enumerate(rng.normal(size=(T, n, D)))])


def shared(seed=0, n=20, missing=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    Y = X @ W + np.arange(T) + 0.3 * rng.normal(size=(n, T))
    Y[rng.random(Y.shape) < missing] = np.nan
    return X, Y


def linear(X, Z):
    """The default kernel without its features."""
    return X @ Z.T


COUPLED = [
    MeanRegularized(lam=0.05),
    LinearRelations(np.diag([1.0, 2, 3, 4]) - 0.3, lam=0.05),
    ClusteredMTL(lam=0.05),
    RelationshipLearning(0.1, 0.05),
    OutputKernelLearning(lam=0.05, tol=1e-6),
    OutputKernelLearning(p=4 / 3, lam=0.05, tol=1e-6),
]


def name(model):
    return f"{type(model).__name__}-{getattr(model, 'p', '')}-{getattr(model, 'solver', '')}"


# ---------------------------------------------------------------------- without coupling: SingleTask


@pytest.mark.parametrize("kernel", [None, Gaussian(2.0)], ids=["linear", "Gaussian"])
@pytest.mark.parametrize(
    "model",
    [
        MeanRegularized(lam=0.2, mu=np.inf),
        LinearRelations(lam=0.2),
        LinearRelations(2 * np.eye(T), lam=0.1),
        LinearRelations(theta=np.sqrt(0.5) * np.eye(T), lam=0.1),
        ClusteredMTL(lam=0.1, eps_mean=2.0, eps_between=2.0, eps_within=2.0),
        RelationshipLearning(lam1=0.4, lam2=0.0),
        WienerShrinkage(lam=0.2, shrink=0.0, cloud=np.arange(8.0).reshape(2, T)),
        ParametrizedRegressor(lam=0.2, tol=1e-8),
    ],
    ids=name,
)
@pytest.mark.parametrize("data", [separate, shared])
def test_no_coupling_is_single_task(model, data, kernel):
    X, Y = data()
    alone = SingleTask(lam=0.2, kernel=kernel).fit(X, Y).predict(X)
    np.testing.assert_allclose(clone(model).set_params(kernel=kernel).fit(X, Y).predict(X), alone, atol=1e-6)


@pytest.mark.parametrize("model", [OutputKernelLearning(), OutputKernelLearning(p=8 / 7), LatentTaskStructure()], ids=name)
def test_learned_weight_of_a_single_task(model):
    """With one task there is nothing to couple: SingleTask with the lambda that the learned weight amounts to."""
    X, Y = separate()
    X, y = X[:9], Y[:9, 0]
    if isinstance(model, LatentTaskStructure):
        model.set_params(base_kernels=[Linear(0.0)], mu=np.inf)
    model.set_params(tol=1e-8).fit(X, y)
    weight = model.weights_ if isinstance(model, LatentTaskStructure) else model.task_matrix_
    np.testing.assert_allclose(model.predict(X), SingleTask(lam=model.lam / weight.item()).fit(X, y).predict(X), atol=1e-3)


def test_groups_of_one_task_each():
    X, Y = separate()
    model = LatentTaskStructure(mu=np.inf, base_kernels=[Linear(0.0)], groups=SINGLE, tol=1e-7).fit(X, Y)
    alone = SingleTask(lam=model.lam / model.weights_[:, 0]).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=1e-8)


# ---------------------------------------------------------------------- the optimum


@pytest.mark.parametrize("model", COUPLED, ids=name)
@pytest.mark.parametrize("kernel", [None, Gaussian(2.0)], ids=["linear", "Gaussian"])
def test_stationary(model, kernel):
    """f is least squares for the task matrix it reports: residual = lam alpha / omega, up to what the gap allows."""
    X, Y = separate()
    model = clone(model).set_params(kernel=kernel).fit(X, Y)
    scale = getattr(model, "scale_", 1.0)
    lam = 1.0 if isinstance(model, RelationshipLearning) else model.lam
    A = np.nan_to_num(Y - model.predict(X)) / (scale * lam * (~np.isnan(Y)).sum(axis=0))
    K = linear(X, X) if kernel is None else kernel(X, X)
    F = K @ A @ model.task_matrix_
    np.testing.assert_allclose(A.sum(axis=0), 0, atol=1e-10)  # the bias is the best
    np.testing.assert_allclose(scale * F + model.predict(X).mean(axis=0) - scale * F.mean(axis=0), model.predict(X), atol=1e-8)
    assert 0 <= model.gap_ <= 1e-5 * model.objective_


STRUCTURES = [Relationship(T, 0.1, 0.3), Relationship(T, 0.0, 0.3), Clusters(T, 0.2, 0.5, 4.0, 2), Power(T, 2), Power(T, 4)]


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda s: type(s).__name__)
def test_two_starts(structure):
    X, Y = separate()
    system = make_system(make_problem(Tasks.of(X, Y), None, True))
    root = np.random.default_rng(0).normal(size=(T, T))
    starts = [structure.start(), root @ root.T + 0.01 * np.eye(T)]
    found = [alternate(system, structure, 0.1, 1e-7, 2000, C=C) for C in starts]
    assert all(result.gap <= result.allowed for result in found)
    assert found[0].objective == pytest.approx(found[1].objective, rel=1e-6)


def price(structure, G, C):
    return float((np.linalg.inv(C) * G).sum()) + structure.cost(C)


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda s: type(s).__name__)
def test_structures_are_tight(structure):
    """value(G) = tr C^-1 G + cost at the best C, no other C is better, and support(M) is above every C."""
    rng = np.random.default_rng(0)
    others = []
    for _ in range(50):
        A = rng.normal(size=(T, T))
        others.append(structure.best(A @ A.T))
    for G in (others[0], np.cov(rng.normal(size=(T, 30)))):
        cost = partial(price, structure, G)
        if getattr(structure, "q", 2) == 2:
            assert cost(structure.best(G)) == pytest.approx(structure.value(G, G), rel=1e-9)
            assert all(cost(C) >= structure.value(G, C) * (1 - 1e-9) for C in others)
        assert all((G * C).sum() - structure.cost(C) <= structure.support(G) * (1 + 1e-9) for C in others)


def test_solvers_of_output_kernels_agree():
    X, Y = separate()
    for p in (2, 4 / 3):
        found = [
            OutputKernelLearning(p, 0.1, solver=s, tol=1e-7, kernel=k).fit(X, Y)
            for s in ("theta", "sdca")
            for k in (None, linear)
        ]
        for other in found[1:]:
            assert other.objective_ == pytest.approx(found[0].objective_, rel=1e-6)
            np.testing.assert_allclose(other.predict(X), found[0].predict(X), atol=5e-3)


# ---------------------------------------------------------------------- the four ways to solve


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("data", [separate(), shared(), shared(missing=0.3)], ids=["separate", "shared", "missing"])
def test_systems_agree(data, intercept):
    X, Y = data
    rng = np.random.default_rng(0)
    root = rng.normal(size=(T, 2))
    problems = [make_problem(Tasks.of(X, Y), kernel, intercept) for kernel in (None, linear)]
    systems = [PrimalSystem(problems[0], problems[0].features()), DenseSystem(problems[1]), CGSystem(problems[1], tol=1e-13)]
    systems += [SharedSystem(problems[1])] if problems[1].shared else []
    for C in (root @ root.T, np.eye(T) + 2.0):
        found = [system.solve(C, 0.1) for system in systems]
        for other in found[1:]:
            np.testing.assert_allclose(other.residual, found[0].residual, atol=1e-8)
            np.testing.assert_allclose(other.bias, found[0].bias, atol=1e-8)
            np.testing.assert_allclose(other.gram, found[0].gram, atol=1e-8)


def test_conjugate_gradients_inside_an_estimator(monkeypatch):
    X, Y = shared(missing=0.3)
    dense = RelationshipLearning(0.1, 0.05, kernel=Gaussian(2.0)).fit(X, Y)
    monkeypatch.setattr(systems, "DENSE_POINTS", 0)
    iterative = RelationshipLearning(0.1, 0.05, kernel=Gaussian(2.0)).fit(X, Y)
    assert iterative.objective_ == pytest.approx(dense.objective_, rel=2e-5)
    np.testing.assert_allclose(iterative.predict(X), dense.predict(X), atol=1e-2)


@pytest.mark.parametrize("model", [*COUPLED, SingleTask(), SingleTask(loss="epsilon"), WienerShrinkage(lam=0.1)], ids=name)
def test_precomputed_kernel(model):
    X, Y = shared()
    model = clone(model)
    plain = model.set_params(kernel=linear).fit(X, Y).predict(X[:5])
    K = linear(X, X)
    np.testing.assert_allclose(model.set_params(kernel=Precomputed()).fit(K, Y).predict(K[:5]), plain, atol=1e-6)


@pytest.mark.parametrize("model", COUPLED[2:], ids=name)
def test_tiny_lambda(model):
    """Nearly interpolating with a smooth kernel: the certificate holds where K A would drown in rounding."""
    X, Y = shared(n=60)
    model = clone(model).set_params(kernel=Gaussian(3.0), tol=1e-3)
    names = ("lam1", "lam2") if isinstance(model, RelationshipLearning) else ("lam",)
    model.set_params(**dict.fromkeys(names, 1e-9)).fit(X, Y)
    assert model.n_iter_ < 200 and model.gap_ <= 1e-3 * model.objective_ + 1e-9


def test_length_scales_are_tuned():
    X, Y = shared(n=40)
    model = MeanRegularized(lam=1e-3, kernel=Gaussian()).fit(X, Y)
    assert np.all(model.kernel_.sigma > 0) and model.score(X, Y) > 0.9


# ---------------------------------------------------------------------- data, weights, choice


@pytest.mark.parametrize(
    "model", [*COUPLED, LatentTaskStructure(), SingleTask(loss="epsilon"), ParametrizedRegressor()], ids=name
)
def test_missing_outputs_are_left_out(model):
    """Zero weight is the same as NaN, and inputs are not changed."""
    model = clone(model)
    X, Y = shared(missing=0.3)
    filled, seen = np.where(np.isnan(Y), 99.0, Y), ~np.isnan(Y)
    before = X.copy(), filled.copy()
    hidden = model.fit(X, filled, sample_weight=seen.astype(float)).predict(X)
    np.testing.assert_allclose(model.fit(X, Y).predict(X), hidden, atol=1e-6)
    assert np.array_equal(X, before[0]) and np.array_equal(filled, before[1])


def test_outputs_scale_and_shift_with_the_data():
    X, Y = separate()
    for model in [*COUPLED, LatentTaskStructure()]:
        base = model.fit(X, Y).predict(X)
        np.testing.assert_allclose(model.fit(X, 100 * Y + 7).predict(X), 100 * base + 7, atol=0.1)


def test_tune_and_grid_search():
    X, Y = separate()
    found = tune(MeanRegularized(), {"lam": [1e-3, 1e-1, 1e3], "mu": [0.1, 1.0]}, X, Y, cv=3)
    assert found.best_params["lam"] < 1e3 and found.errors.shape == (6, T)
    assert found.best_error == found.errors.mean(axis=1).min()
    np.testing.assert_array_equal(found.best_estimator.predict(X), MeanRegularized(**found.best_params).fit(X, Y).predict(X))
    folds = make_folds(3, X, ~np.isnan(Y), list("abcd"))
    search = GridSearchCV(MeanRegularized(), {"lam": [1e-3, 1e-1, 1e3]}, cv=folds).fit(X, Y)
    assert search.best_params_["lam"] < 1e3
    with pytest.raises(ValueError, match="number of folds"):
        tune(MeanRegularized(), {"lam": [1.0]}, X, Y, cv="loo")


def test_wiener_filter():
    """The formula, from the parts it reports; a cloud on a line pulls predictions onto it."""
    X, Y = separate()
    line = np.linspace(-1, 1, 50)[:, None] * np.ones(T)
    model = WienerShrinkage(cloud=line, lam=0.1).fit(X, Y)
    w = SingleTask(lam=0.1).fit(X, Y).predict(X)
    S, V = model.covariance_, np.diag(model.error_variance_)
    expected = model.mean_ + (w - model.mean_) @ np.linalg.solve(S + V, S)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-10)
    assert np.ptp(model.predict(X), axis=1).max() < 1e-10
    fixed = WienerShrinkage(cloud=line + 5, lam=1e6, base="cloud").fit(X, Y)  # nothing learned: the mean of the cloud
    np.testing.assert_allclose(fixed.predict(X), 5.0, atol=1e-3)


def test_self_is_a_special_case():
    """The one-liner of the package's documentation has the weights of SELF."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (30, 1))
    Y = np.column_stack([np.cos(X[:, 0]), np.sin(X[:, 0])]) + 0.2 * rng.normal(size=(30, 2))
    ridge = KernelRidge(Gaussian(1.0), lam=0.01, scales="shared", intercept=False)
    model = ConstrainedRegressor(Sphere(), surrogate=ridge, loss=Square(metric="identity")).fit(X, Y)
    K = Gaussian(1.0)(X, X)
    alpha = np.linalg.solve(K + 30 * 0.01 * np.eye(30), K)
    b = alpha.T @ Y  # on the circle sum alpha |c - y|^2 is smallest at b / |b|
    np.testing.assert_allclose(model.predict(X), b / np.linalg.norm(b, axis=1, keepdims=True), atol=1e-8)


def theta(h):
    return np.column_stack([np.cos(h), np.sin(h)])


def slope(h):
    return np.stack([-np.sin(h), np.cos(h)], axis=1)


def test_parametrized():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 2))
    Y = theta(X @ [[1.0], [2.0]]) + 0.05 * rng.normal(size=(40, 2))
    Y[::5, 0] = np.nan
    numeric = ParametrizedRegressor(theta, 1, lam=1e-4).fit(X, Y)
    given = ParametrizedRegressor(theta, 1, slope, lam=1e-4).fit(X, Y)
    np.testing.assert_allclose(np.linalg.norm(numeric.predict(X), axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(numeric.predict(X), given.predict(X), atol=1e-4)
    assert given.gradient_norm_ <= given.tol and given.objective_ == given.start_objectives_.min()
    np.testing.assert_allclose(np.abs(given.coef_[:, 0]), [1, 2], atol=0.1)
    np.testing.assert_allclose(theta(given.latent(X)), given.predict(X))


# ---------------------------------------------------------------------- it says so


@pytest.mark.parametrize(
    "model",
    [
        RelationshipLearning(0.1, 0.1, max_iter=1, tol=1e-9),
        ClusteredMTL(max_iter=1, tol=1e-9),
        OutputKernelLearning(max_iter=1, tol=1e-9),
        OutputKernelLearning(solver="sdca", max_iter=1, tol=1e-9),
        LatentTaskStructure(max_iter=1, tol=1e-9),
    ],
    ids=name,
)
def test_budget_spent_is_reported(model):
    with pytest.warns(ConvergenceWarning, match=r"1 iterations with a duality gap of \d"):
        model.fit(*separate())
    assert model.gap_ > 1e-9 * model.objective_ and model.n_iter_ == 1


def test_gradient_is_reported():
    X, Y = shared()
    model = ParametrizedRegressor(np.sin, T, max_iter=1, n_starts=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="relative gradient"):
        model.fit(X, Y)


def test_progress(capsys):
    X, Y = separate()
    verbose = [
        RelationshipLearning(verbose=True),
        OutputKernelLearning(solver="sdca", verbose=True),
        LatentTaskStructure(verbose=True),
    ]
    for model in [*verbose, ParametrizedRegressor(np.tanh, T, n_starts=2, verbose=True)]:
        model.fit(X, Y)
        assert "objective=" in capsys.readouterr().err


@pytest.mark.parametrize(
    "model, words",
    [
        (MeanRegularized(lam=0), "lam=0"),
        (MeanRegularized(mu=-1), "mu=-1"),
        (SingleTask(loss="hinge"), "hinge"),
        (SingleTask(loss="epsilon", lam="auto"), "leave-one-out"),
        (SingleTask(loss="epsilon", lam=[1.0, 2.0]), "each of 4"),
        (SingleTask(loss="epsilon", intercept=False), "always has a constant"),
        (LinearRelations(np.eye(3)), "symmetric matrix"),
        (LinearRelations(-np.eye(T)), "semidefinite"),
        (LinearRelations(np.eye(T), theta=np.eye(T)), "one of them"),
        (LinearRelations(theta=np.eye(3)), "theta has shape"),
        (ClusteredMTL(eps_mean=5.0), "out of order"),
        (ClusteredMTL(n_clusters=0), "n_clusters=0"),
        (RelationshipLearning(0, 0), "both zero"),
        (OutputKernelLearning(p=1.5), "2k/"),
        (OutputKernelLearning(p=1), "2k/"),
        (OutputKernelLearning(loss="epsilon", solver="theta"), "'sdca' always"),
        (LatentTaskStructure(p=3), "p=3"),
        (LatentTaskStructure(groups=[(0,), (1, 2)]), "in no group"),
        (LatentTaskStructure(groups=[(9,)]), "task numbers"),
        (ParametrizedRegressor(np.sin), "n_latent=None"),
        (ParametrizedRegressor(np.sin, 2), "theta returned shape"),
        (WienerShrinkage(), "no row of y"),
        (WienerShrinkage(cloud=np.ones((5, 2))), "cloud has shape"),
    ],
)
def test_errors_say_what_would_do(model, words):
    with pytest.raises(ValueError, match=words):
        model.fit(*separate())


def test_too_many_tasks_for_all_groups():
    X, Y = np.zeros((3, 1)), np.ones((3, 11))
    with pytest.raises(ValueError, match="2047 groups"):
        LatentTaskStructure().fit(X, Y)
