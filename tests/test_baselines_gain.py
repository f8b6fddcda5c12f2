"""On data made by its own assumption every baseline beats `SingleTask`, both tuned alike: same folds, same grid of lambda."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

from lawful import stack_tasks
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

T, D, N = 6, 8, 8
LAMS = np.logspace(-3, 1, 7)
THETA = np.array([[1.0, 0], [0, 1], [1, 1], [1, -1], [-1, 0.5], [0.5, 2]])


def linear(rng, W, n=N):
    """Tasks with inputs of their own, noise of half the size of the outputs, and what they would be without."""
    scale, d = np.sqrt((W**2).sum(axis=0)), len(W)
    sets = [(X, X @ W[:, t] + 0.5 * scale[t] * rng.normal(size=n)) for t, X in enumerate(rng.normal(size=(len(scale), n, d)))]
    X_test = rng.normal(size=(200, d))
    return *stack_tasks(sets), X_test, X_test @ W, None


def common_mean(rng):
    return linear(rng, rng.normal(size=(D, 1)) + 0.2 * rng.normal(size=(D, T)))


def clusters(rng):
    return linear(rng, np.repeat(rng.normal(size=(D, 2)), T // 2, axis=1) + 0.1 * rng.normal(size=(D, T)))


def low_rank(rng):
    return linear(rng, rng.normal(size=(D, 1)) @ rng.choice([-1.0, 1.0], (1, T)) + 0.1 * rng.normal(size=(D, T)))


def two_blocks(rng):
    """A sparse output kernel: tasks are related, with either sign, inside two blocks."""
    W = np.repeat(rng.normal(size=(D, 2)), T, axis=1) * rng.choice([-1.0, 1.0], 2 * T)
    return linear(rng, W + 0.05 * rng.normal(size=(D, 2 * T)))


def relations(rng):
    return linear(rng, rng.normal(size=(D, 2)) @ THETA.T)


def shared_features(rng):
    """Two groups of tasks, each with two inputs of twelve that matter, in nearly the same way for the tasks of a group."""
    W = np.zeros((12, T))
    W[:2, : T // 2] = 2 * rng.choice([-1, 1], (2, 1)) + 0.1 * rng.normal(size=(2, T // 2))
    W[2:4, T // 2 :] = 2 * rng.choice([-1, 1], (2, 1)) + 0.1 * rng.normal(size=(2, T // 2))
    return linear(rng, W, 12)


def column(j, X, Z):
    """The linear kernel of one input."""
    return np.outer(X[:, j], Z[:, j])


def circle(rng):
    X = rng.uniform(-1, 1, (N + 4, 2))
    X_test = rng.uniform(-1, 1, (200, 2))
    w = rng.normal(size=2)
    w *= 2.5 / np.linalg.norm(w)
    Y = on_circle(X @ w[:, None]) + 0.3 * rng.normal(size=(N + 4, 2))
    return X, Y, X_test, on_circle(X_test @ w[:, None]), None


def on_circle(h):
    return np.column_stack([np.cos(h[:, 0]), np.sin(h[:, 0])])


def cloud(rng):
    W = rng.normal(size=(D, 2)) @ THETA.T
    *data, _ = linear(rng, W)
    return *data, rng.normal(size=(300, D)) @ W


RIVALS = {
    "MeanRegularized": (common_mean, MeanRegularized(), {"mu": [0.05, 0.5]}),
    "ClusteredMTL": (clusters, ClusteredMTL(eps_mean=0.1, eps_between=0.2, eps_within=5.0, n_clusters=2), {}),
    "RelationshipLearning": (low_rank, RelationshipLearning(lam1=1e-3), {}),
    "OutputKernelLearning p=2": (low_rank, OutputKernelLearning(), {}),
    "OutputKernelLearning p=4/3": (two_blocks, OutputKernelLearning(p=4 / 3), {"lam": np.logspace(-2.5, 0.5, 13)}),
    "LinearRelations": (relations, LinearRelations(theta=THETA), {}),
    "LatentTaskStructure": (
        shared_features,
        LatentTaskStructure(p=1.2, d=1.0, tol=1e-2, base_kernels=[partial(column, j) for j in range(12)]),
        {},
    ),
    "ParametrizedRegressor": (circle, ParametrizedRegressor(on_circle, 1, n_starts=4), {}),
    "WienerShrinkage": (cloud, WienerShrinkage(), {}),
}


def errors(name, seed, every=1):
    """Squared error of the rival and of SingleTask, against the outputs without noise."""
    make, rival, extra = RIVALS[name]
    X, Y, X_test, truth, points = make(np.random.default_rng(seed))
    if points is not None:
        rival = clone(rival).set_params(cloud=points)
    lams = extra.get("lam", LAMS)[::every]
    grid = {**extra, ("lam2" if name == "RelationshipLearning" else "lam"): lams}
    found = [
        tune(rival, grid, X, Y, cv=4, random_state=seed).best_estimator,
        tune(SingleTask(), {"lam": lams}, X, Y, cv=4, random_state=seed).best_estimator,
    ]
    return [float(((model.predict(X_test) - truth) ** 2).mean()) for model in found]


@pytest.mark.parametrize("name", RIVALS)
def test_one_seed(name):
    rival, alone = errors(name, 100, every=2)
    assert rival < alone


@pytest.mark.slow
@pytest.mark.parametrize("name", RIVALS)
def test_eighteen_of_twenty_seeds(name):
    table = np.array([errors(name, seed) for seed in range(20)])
    won = int((table[:, 0] < table[:, 1]).sum())
    print(f"{name}: better in {won} of 20, mean squared error {table[:, 0].mean():.3f} against {table[:, 1].mean():.3f}")
    assert won >= 18
