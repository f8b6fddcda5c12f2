"""Multitask baselines with inputs, outputs and penalties of any size: a right answer or a clear error, never anything else."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

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
)
from lawful.kernels import Gaussian

MODELS = [
    SingleTask(),
    SingleTask(lam="auto"),
    SingleTask(loss="epsilon"),
    MeanRegularized(),
    LinearRelations(),
    ClusteredMTL(),
    RelationshipLearning(),
    OutputKernelLearning(),
    OutputKernelLearning(solver="sdca", max_iter=50),
    OutputKernelLearning(loss="epsilon", max_iter=50),
    ParametrizedRegressor(),
    WienerShrinkage(),
    LatentTaskStructure(max_iter=50),
]
WEIGHTS = ("lam", "lam1", "lam2", "mu", "eps_mean", "eps_within", "shrink", "d")


def name(model):
    return repr(model).replace(" ", "")


def draw(n=30):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    Y = X @ rng.standard_normal((3, 3)) + 0.05 * rng.standard_normal((n, 3))
    Y[rng.uniform(size=Y.shape) < 0.3] = np.nan
    return X, Y


def answer(model, X, Y):
    """Finite predictions, or None where the model refused in words."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", UserWarning)
            found = clone(model).fit(X, Y).predict(X)
    except np.linalg.LinAlgError:
        raise AssertionError("a LinAlgError is no clear error") from None
    except ValueError as error:
        assert any(who in str(error) for who in (type(model).__name__, "output 'y1'", "KernelRidge", "lam = ", "inputs"))
        assert ";" in str(error)  # what would do
        return None
    assert np.isfinite(found).all()
    return found


@pytest.mark.parametrize("kernel", [None, Gaussian(2.0)], ids=["linear", "Gaussian"])
@pytest.mark.parametrize("model", MODELS, ids=name)
def test_inputs_and_outputs_of_any_size(model, kernel):
    X, Y = draw()
    if kernel is not None and "kernel" in model.get_params():
        model = clone(model).set_params(kernel=kernel)
    for size in (1e160, 1e-160, 1e300, 1e-300):
        answer(model, size * X, Y)
        answer(model, X, size * Y)
    for size in (1e-12, 1e12):
        assert answer(model, X, size * Y) is not None
        assert answer(model, size * X, Y) is not None


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_penalties_of_any_size(model):
    X, Y = draw()
    for parameter in WEIGHTS:
        if not isinstance(model.get_params().get(parameter, ""), str):
            for value in (1e300, 1e-300, 1e-12, 1e12):
                answer(clone(model).set_params(**{parameter: value}), X, Y)
            for value in (-1.0, np.nan, "much", None, True):
                assert answer(clone(model).set_params(**{parameter: value}), X, Y) is None


@pytest.mark.parametrize("model", [m for m in MODELS if "max_iter" in m.get_params()], ids=name)
@pytest.mark.parametrize("parameter", ["max_iter", "n_starts", "n_clusters"])
def test_counts_that_are_none(model, parameter):
    if parameter not in model.get_params():
        return
    X, Y = draw()
    for value in (0, -1, 2.5, None, "many"):
        with pytest.raises(ValueError, match=f"{type(model).__name__}: {parameter}=.* will not do; give a whole number"):
            clone(model).set_params(**{parameter: value}).fit(X, Y)


@pytest.mark.parametrize("y", [np.full(20, 3.0), np.zeros(20), np.full(20, 1e-9)], ids=["three", "zero", "small"])
def test_a_constant_output(y):
    X = draw()[0][:20]
    for model in MODELS:
        found = answer(model, X, y)
        assert found is not None and np.allclose(found, y, rtol=1e-6, atol=1e-12 * np.abs(y).max()), model


def latent_data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    return X, X @ rng.standard_normal((4, 3)) + 0.1 * rng.standard_normal((40, 3))


@pytest.mark.parametrize("exponent", [1.001, 1.0001, 1 + 1e-7])
def test_exponents_near_one_are_certified_by_a_bound_that_does_not_underflow(exponent):
    """Once a gap of 0 after one round, at three times the minimum."""
    X, Y = latent_data()
    near = LatentTaskStructure(p=1.01, q=1.01, tol=1e-5).fit(X, Y)
    model = LatentTaskStructure(p=exponent, q=exponent).fit(X, Y)
    assert 0 < model.gap_ <= 1e-3 * model.objective_
    assert abs(model.objective_ - near.objective_) < 0.01 * near.objective_


def test_latent_structure_stops_when_the_gap_no_longer_shrinks():
    X, Y = latent_data()
    with warnings.catch_warnings():  # whether rounding leaves a gap to warn of depends on the processor
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LatentTaskStructure(d=1e-6, lam=1.0, tol=1e-6).fit(X, Y)
    assert model.n_iter_ < 200 and model.gap_ < 1e-5 * model.objective_  # all 2000 rounds before, for the same gap
