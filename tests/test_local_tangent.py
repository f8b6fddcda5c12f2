"""The surface of a cloud: its dimension is found, its projections are exact, it ends where the cloud ends."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from lawful import ConstrainedRegressor, KernelSet, LocalTangent, PointCloud
from lawful.datasets import make_curve


def swiss_roll(rng, n):
    u = 1.5 * np.pi * (1 + 2 * rng.uniform(size=n))
    return np.c_[u * np.cos(u), 21 * rng.uniform(size=n), u * np.sin(u)]


def test_swiss_roll_is_a_surface_and_beats_the_nearest_point():
    rng = np.random.default_rng(0)
    cloud = swiss_roll(rng, 600) + 0.3 * rng.standard_normal((600, 3))
    test = swiss_roll(rng, 300)
    C = LocalTangent().fit(cloud)
    assert C.dimension_ == 2
    assert C.validation_[2, C.neighbours_] < C.validation_["nearest point"]
    off = np.sqrt(np.mean((C.nearest(test) - test) ** 2))
    nearest = np.sqrt(np.mean((cloud[cKDTree(cloud).query(test)[1]] - test) ** 2))
    assert off < 0.5 * nearest


@pytest.mark.parametrize("weights", ["positive", "any sign"])
def test_projection_is_never_beaten_by_a_point_of_the_set(weights):
    rng = np.random.default_rng(0)
    C = LocalTangent(dimension=2, neighbours=12).fit(swiss_roll(rng, 150))
    a = rng.standard_normal((40, 3))
    a = np.abs(a) + 0.01 if weights == "positive" else a
    b = 10 * rng.standard_normal((40, 3))
    c = C.project(b, a)
    assert C.contains(c).all()
    rivals = C.sample(20_000, 1)
    value = np.sum(c * (a * c - 2 * b), axis=1)
    others = (a @ (rivals**2).T - 2 * b @ rivals.T).min(axis=1)
    assert (value <= others + 1e-9 * np.abs(others)).all()


def test_it_ends_where_the_cloud_ends():
    t = np.linspace(0, np.pi, 80)
    C = LocalTangent(dimension=1).fit(np.c_[np.cos(t), np.sin(t)])
    below = C.nearest(np.array([[1.0, -5.0], [-1.0, -5.0]]))
    assert (below[:, 1] > -0.2).all() and (np.abs(np.linalg.norm(below, axis=1) - 1) < 0.02).all()
    middle = C.nearest(np.array([[0.0, 2.0]]))
    np.testing.assert_allclose(middle, [[0.0, 1.0]], atol=0.04)  # the distance between points


def test_units_of_the_outputs_do_not_matter():
    rng = np.random.default_rng(0)
    cloud, unit = swiss_roll(rng, 200), np.array([1e3, 1.0, 1e-4])
    a, b = (LocalTangent(dimension=2).fit(cloud), LocalTangent(dimension=2).fit(cloud * unit))
    np.testing.assert_allclose(a.patches_.centre, b.patches_.centre, rtol=1e-6)


def test_a_regressor_is_better_with_it_than_with_the_cloud():
    data = make_curve("circle", 100, noise=0.03, random_state=0)
    errors = []
    for C in (LocalTangent(), PointCloud()):
        d = ConstrainedRegressor(C).fit(data.X, data.Y).decode(data.X_test)
        assert (d.status == "ok").all()
        errors.append(np.mean((d.c - data.Y_test) ** 2))
    assert errors[0] < 0.5 * errors[1]


@pytest.mark.parametrize(
    "C, message",
    [
        (LocalTangent(dimension=3), "dimension=3"),
        (LocalTangent(neighbours=1), "neighbours=1"),
        (LocalTangent([[1.0, np.nan], [0.0, 1.0], [2.0, 2.0]]), "finite"),
        (LocalTangent([[1.0, 2.0, 3.0]]), "3 outputs"),
    ],
)
def test_bad_parameters_are_explained(C, message):
    with pytest.raises(ValueError, match=message):
        C.fit(np.random.default_rng(0).standard_normal((10, 2)))


def test_full_metrics_find_the_best_of_all_discs():
    """Against many points of every disc."""
    rng = np.random.default_rng(1)
    u = rng.uniform(-1, 1, (120, 2))
    cloud = np.c_[u, u[:, 0] ** 2 - 0.5 * u[:, 1]] * np.array([1.0, 10.0, 0.1])
    C = LocalTangent(cloud, dimension=2, neighbours=12).fit(cloud)
    B = rng.standard_normal((30, 3, 3)) / C.unit_
    Q, w = np.swapaxes(B, 1, 2) @ B, cloud[:30] + 0.3 * C.unit_ * rng.standard_normal((30, 3))
    c = C.project_form(Q, w)
    assert C.contains(c).all()
    points = C.sample(40_000, random_state=0)
    for i in range(30):
        best = np.einsum("nt,ts,ns->n", points - w[i], Q[i], points - w[i]).min()
        mine = (c[i] - w[i]) @ Q[i] @ (c[i] - w[i])
        assert mine <= best + 1e-12
        assert mine >= best - 0.05 * (1 + best)
    np.testing.assert_allclose(C.project_form(Q[0], w), C.project_form(np.tile(Q[0], (30, 1, 1)), w), rtol=1e-12)
    diagonal = rng.uniform(0.5, 2, (30, 3)) / C.unit_**2
    forms = diagonal[:, :, None] * np.eye(3)
    np.testing.assert_allclose(C.project_form(forms, w), C.project(diagonal * w, diagonal), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("learned", [LocalTangent, KernelSet])
def test_outputs_without_inputs_are_points_of_the_cloud(learned):
    t = np.linspace(0, np.pi, 80)
    arc = np.c_[np.cos(t), np.sin(t)]
    seen, unseen = arc[:40], np.r_[arc[40:], [[np.nan, 0.0]]]  # rows with gaps are left out
    both, whole = learned(extra=unseen).fit(seen), learned(arc).fit(seen)
    np.testing.assert_allclose(both.residual(arc), whole.residual(arc), atol=1e-9)
    alone = learned().fit(seen)
    assert alone.residual(arc[-1:])[0] > 0.1 > both.residual(arc[-1:])[0]
    with pytest.raises(ValueError, match="columns"):
        learned(extra=np.zeros((5, 3))).fit(seen)
