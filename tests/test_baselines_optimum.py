"""The minima of the convex baselines, against cvxpy on small problems: an independent solver of the problem as printed."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from lawful import stack_tasks
from lawful.baselines import (
    ClusteredMTL,
    LatentTaskStructure,
    MeanRegularized,
    OutputKernelLearning,
    RelationshipLearning,
    SingleTask,
)

T, D = 4, 3


def data(seed):
    """Tasks with inputs and sizes of their own, around a common function."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(D, 1)) + 0.5 * rng.normal(size=(D, T))
    sets = []
    for t in range(T):
        X = rng.normal(size=(6 + 2 * t, D)) + t
        sets.append((X, X @ W[:, t] + t + 0.5 * rng.normal(size=len(X))))
    return sets


def loss(sets, W, b, scale=1.0):
    return sum(cp.sum_squares((y - y.mean()) / scale - X @ W[:, t] - b[t]) / len(y) for t, (X, y) in enumerate(sets))


def minimum(objective, constraints=()):
    problem = cp.Problem(cp.Minimize(objective), list(constraints))
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == "optimal"
    return problem.value


def coupled(W, C):
    return sum(cp.matrix_frac(W[j, :], C) for j in range(D))


def agree(model, sets, expected):
    X, Y = stack_tasks(sets)
    model.fit(X, Y)
    assert model.objective_ == pytest.approx(expected, rel=1e-4)
    assert 0 <= model.gap_ <= 1e-4 * expected
    # and the objective is that of the function it predicts with: its loss is part of it
    residual = np.nansum(np.nanmean((Y - model.predict(X)) ** 2, axis=0)) / getattr(model, "scale_", 1.0) ** 2
    assert residual < model.objective_


@pytest.mark.parametrize("mu", [0.2, 5.0])
def test_mean_regularized(mu):
    sets = data(0)
    w0, V, b = cp.Variable(D), cp.Variable((D, T)), cp.Variable(T)
    W = V + cp.reshape(w0, (D, 1), order="C") @ np.ones((1, T))
    expected = minimum(loss(sets, W, b) + 0.3 * (mu * cp.sum_squares(w0) + cp.sum_squares(V)))
    agree(MeanRegularized(lam=0.3, mu=mu), sets, expected)


@pytest.mark.parametrize("r", [1, 2, 3])
def test_clustered(r):
    sets = data(1)
    mean, between, within = 0.2, 0.5, 4.0
    U = np.full((T, T), 1 / T)
    W, b, S = cp.Variable((D, T)), cp.Variable(T), cp.Variable((T, T), PSD=True)
    limits = [S >> np.eye(T) / within, S << np.eye(T) / between]
    limits.append(cp.trace(S) == (T - r + 1) / within + (r - 1) / between)
    penalty = mean * cp.sum_squares(W @ np.ones(T)) / T + coupled(W @ (np.eye(T) - U), S)
    expected = minimum(loss(sets, W, b) + 0.2 * penalty, limits)
    agree(ClusteredMTL(0.2, mean, between, within, r), sets, expected)


@pytest.mark.parametrize("lam1, lam2", [(0.1, 0.3), (0.0, 1.0), (1.0, 0.05)])
def test_relationship(lam1, lam2):
    sets = data(2)
    W, b, Omega = cp.Variable((D, T)), cp.Variable(T), cp.Variable((T, T), PSD=True)
    objective = loss(sets, W, b) + lam1 / 2 * cp.sum_squares(W) + lam2 / 2 * coupled(W, Omega)
    agree(RelationshipLearning(lam1, lam2), sets, minimum(objective, [cp.trace(Omega) == 1]))


@pytest.mark.parametrize("solver", ["sdca", "theta"])
@pytest.mark.parametrize("p", [2, 4 / 3])
def test_output_kernel(solver, p):
    sets = data(3)
    scale = np.sqrt(np.mean([y.var() for _, y in sets]))
    W, b, Theta = cp.Variable((D, T)), cp.Variable(T), cp.Variable((T, T), PSD=True)
    power = cp.sum_squares(Theta) if p == 2 else cp.sum(cp.power(cp.abs(Theta), p))
    expected = minimum(loss(sets, W, b, scale) + 0.3 * (coupled(W, Theta) + power / p))
    agree(OutputKernelLearning(p, 0.3, solver=solver, tol=1e-5), sets, expected)


def test_output_kernel_in_a_tube():
    sets = [(X, y - y.mean()) for X, y in data(4)]
    scale = np.sqrt(np.mean([(y**2).mean() for _, y in sets]))
    W, Theta = cp.Variable((D, T)), cp.Variable((T, T), PSD=True)
    fit = 0
    for t, (X, y) in enumerate(sets):
        tube = 0.1 * np.sqrt((y**2).mean()) / scale
        fit += cp.sum(cp.pos(cp.abs(y / scale - X @ W[:, t]) - tube)) / len(y)
    expected = minimum(fit + 0.1 * (coupled(W, Theta) + cp.sum_squares(Theta) / 2))
    X, Y = stack_tasks(sets)
    model = OutputKernelLearning(2, 0.1, loss="epsilon", intercept=False, tol=1e-5).fit(X, Y)
    assert model.objective_ == pytest.approx(expected, rel=1e-4)


def test_support_vector_regression():
    X, y = data(5)[3]
    w, b = cp.Variable(D), cp.Variable()
    problem = cp.sum(cp.pos(cp.abs(y - X @ w - b) - 0.2 * y.std())) / len(y) + 0.05 * cp.sum_squares(w)
    minimum(problem)
    model = SingleTask(lam=0.05, loss="epsilon", epsilon=0.2, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.predict(X), X @ w.value + b.value, atol=1e-3 * y.std())


def test_latent_task_structure():
    sets = data(6)[:2]
    lam, mu, p, q = 0.1, 0.5, 1.5, 1.5
    groups = [(0,), (1,), (0, 1)]
    phi = [lambda X, j=j: X[:, [j]] for j in range(D)] + [lambda X: X]  # one linear kernel for each input, and all
    f = [cp.Variable(), cp.Variable()]  # the constants
    f = [b * np.ones(len(X)) for b, (X, _) in zip(f, sets)]
    norms = {}
    for w in groups:
        for j, features in enumerate(phi):
            d = 1 if j < D else D
            h0, h = cp.Variable(d), {t: cp.Variable(d) for t in w}
            norms[w, j] = cp.norm(cp.hstack([np.sqrt(mu) * h0, *h.values()]))
            for t in w:
                f[t] = f[t] + features(sets[t][0]) @ (h0 + h[t])
    size = {w: cp.norm(cp.hstack([norms[w, j] for j in range(len(phi))]), p) for w in groups}
    omega = sum(1.5 ** len(v) * cp.norm(cp.hstack([size[w] for w in groups if set(v) <= set(w)]), q) for v in groups)
    fit = sum(cp.sum_squares(y - f[t]) / len(y) for t, (_, y) in enumerate(sets))
    expected = minimum(fit + lam * cp.square(omega))
    agree(LatentTaskStructure(lam, mu, p, q, tol=1e-5), sets, expected)
