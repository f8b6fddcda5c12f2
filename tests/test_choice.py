"""Which law should be learned: by held-out rows, and never one that does not help."""

from __future__ import annotations

import numpy as np
import pytest

from lawful import ConstrainedRegressor, KernelSet, LearnedEquations, LocalTangent, choose_law


def ellipse(n=150, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 6.28, (n, 1))
    return x, np.c_[2 * np.cos(x), np.sin(x)] + 0.02 * rng.standard_normal((n, 2))


def test_equations_where_there_are_some():
    x, Y = ellipse()
    for inputs in (None, x):
        found = choose_law(Y, inputs, folds=3)
        assert found.name == "equations"
        assert found.errors["equations"].mean() < found.errors["no law"].mean()
    assert "<-" in str(found)
    assert found.to_frame()["chosen"].sum() == 1
    model = ConstrainedRegressor(found.constraint).fit(x, Y)
    assert model.constraint_.equations_ == ["y1**2 + 4*y2**2 = 4"]


def test_a_surface_beats_no_law():
    found = choose_law(ellipse()[1], candidates={"surface": LocalTangent()}, folds=3)
    assert found.name == "surface"
    assert found.errors["surface"].mean() < 0.9 * found.errors["no law"].mean()


def test_no_law_in_a_cloud():
    Y = np.random.default_rng(0).standard_normal((150, 3))
    found = choose_law(Y, candidates={"equations": LearnedEquations(), "region": KernelSet()}, folds=3)
    assert found.name != "equations"
    assert found.errors["equations"] == pytest.approx(found.errors["no law"])


def test_a_candidate_that_cannot_be_fitted_is_remarked():
    Y = ellipse(40)[1]
    found = choose_law(Y, candidates={"bad": LearnedEquations(x_dependent=True)}, folds=3)
    assert found.name == "no law"
    assert "needs the inputs" in found.remarks[0]


def test_refused():
    with pytest.raises(ValueError, match="too few"):
        choose_law(np.zeros((5, 2)))
    with pytest.raises(ValueError, match="shape"):
        choose_law(np.zeros(5))


def test_a_surface_where_equations_tell_only_half():
    """A helix obeys y1^2 + y2^2 = 1, and one more law that no polynomial of low degree is."""
    t = np.random.default_rng(1).uniform(0, 9, 250)
    Y = np.c_[np.cos(t), np.sin(t), t / 4] + 0.02 * np.random.default_rng(2).standard_normal((250, 3))
    found = choose_law(Y, candidates={"equations": LearnedEquations(degree=2), "surface": LocalTangent()}, folds=3)
    assert found.errors["equations"].mean() < found.errors["no law"].mean()
    assert found.name == "surface"


def test_outputs_without_inputs_help_to_choose():
    x, Y = ellipse(24)
    more = ellipse(300, seed=1)[1]
    alone, helped = (choose_law(Y, x, candidates={"surface": LocalTangent()}, folds=3, extra=e) for e in (None, more))
    assert helped.errors["surface"].mean() < alone.errors["surface"].mean()
    assert len(helped.constraint.extra) == 300
