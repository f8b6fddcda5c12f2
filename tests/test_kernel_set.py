"""Level sets of a density: most new points are inside, the inside is left alone, the outside comes to the border."""

from __future__ import annotations

import numpy as np
import pytest

from lawful import ConstrainedRegressor, KernelSet, project


def ring(n, seed):
    rng = np.random.default_rng(seed)
    t, r = rng.uniform(-np.pi, np.pi, n), rng.uniform(0.7, 1.0, n)
    return np.c_[r * np.cos(t), 100 * r * np.sin(t)]


def test_new_points_are_inside_as_often_as_promised():
    for coverage in (0.8, 0.95):
        C = KernelSet(coverage=coverage).fit(ring(500, 0))
        assert abs(C.contains(ring(2000, 1)).mean() - coverage) < 0.06
    assert not C.contains(np.array([[0.0, 0.0], [2.0, 0.0], [np.nan, 0.0]])).any()


def test_projection_leaves_the_inside_and_goes_to_the_border():
    C = KernelSet().fit(ring(400, 0))
    inside = C.sample(20, 0)
    np.testing.assert_allclose(project(inside, C, weights=[1.0, 1e-4]), inside, atol=1e-6)
    outside = ring(40, 3) * 1.6
    d = project(outside, C, weights=[1.0, 1e-4], certificate=True)
    assert (d.status == "ok").all() and C.contains(d.c).all()
    assert np.abs(C.inequality(d.c)).max() < 1e-5
    rivals = C.sample(5000, 1)
    unit = np.array([1.0, 0.01])
    away = np.linalg.norm((d.c - outside) * unit, axis=1)
    nearest = np.linalg.norm((rivals[None] - outside[:, None]) * unit, axis=2).min(axis=1)
    assert (away <= nearest + 1e-6).mean() >= 0.95


def test_a_regressor_stays_where_outputs_were_seen():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (150, 1))
    Y = np.c_[np.tanh(3 * X[:, 0]), X[:, 0] ** 2] + 0.05 * rng.standard_normal((150, 2))
    model = ConstrainedRegressor(KernelSet()).fit(X, Y)
    d = model.decode(rng.uniform(-2, 2, (60, 1)))
    assert (d.status == "ok").mean() >= 0.95 and model.constraint_.contains(d.c[d.status == "ok"]).all()


@pytest.mark.parametrize(
    "options, message",
    [({"coverage": 0.0}, "coverage"), ({"bandwidth": -1.0}, "bandwidth"), ({"points": [[1.0, 2.0, 3.0]]}, "3 outputs")],
)
def test_bad_parameters_are_explained(options, message):
    with pytest.raises(ValueError, match=message):
        KernelSet(**options).fit(ring(20, 0))


def test_repeated_points_do_not_make_the_set_a_list():
    Y = np.repeat(ring(40, 0), 3, axis=0)
    C = KernelSet().fit(Y)
    assert C.bandwidth_ > 0 and C.contains(Y).mean() > 0.9
