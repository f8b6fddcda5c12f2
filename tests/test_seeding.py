"""The compiled loops of the seeds against the array-library version and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from lawful import Equations, project
from lawful.decoders import seeds
from lawful.losses.quadratic import Quadratic


class Plain:
    """An objective that only knows costs: takes the general route."""

    def __init__(self, F):
        self.costs = F.costs


@pytest.mark.parametrize("law", ["y1**4 = y1**2 - y2**2", "y1**2 + y2**2 + y3**2 = 1"])
@pytest.mark.parametrize("count", [1, 3, 8])
def test_graph_minima(law, count):
    T = 3 if "y3" in law else 2
    rng = np.random.default_rng(0)
    pool = seeds.pool_of(Equations(law).fit(rng.uniform(-1, 1, (50, T))))
    F = Quadratic(rng.uniform(-0.5, 2, (300, T)), rng.standard_normal((300, T)))
    rows, points = seeds.local_minima(F, pool.points, pool.neighbours, count)
    plain_rows, plain_points = seeds.local_minima(Plain(F), pool.points, pool.neighbours, count)
    np.testing.assert_array_equal(rows, plain_rows)
    np.testing.assert_array_equal(points, plain_points)


def test_spread_out_is_farthest_point_thinning():
    points = np.random.default_rng(1).standard_normal((200, 3))
    chosen = [0]
    for _ in range(29):
        distance = np.min(np.linalg.norm(points[:, None] - points[chosen], axis=2), axis=1)
        chosen.append(int(distance.argmax()))
    np.testing.assert_array_equal(seeds._spread_out(points, 30), chosen)


@pytest.mark.parametrize("spread", [(1.0, 0.25), (0.25, 1.0), (1.0, 0.1), (1.0, 1.0)], ids=str)
def test_a_crossing_has_two_branches_whatever_the_units(spread):
    """In units in which the branches cross at an acute angle they were taken for one, and every fifth row near it was wrong."""
    rng = np.random.default_rng(5)
    s = np.linspace(0, 2 * np.pi, 400_001)
    w = rng.standard_normal((1000, 2)) * 10 ** rng.uniform(-3, -0.5, (1000, 1))
    best = cKDTree(np.c_[np.sin(s), np.sin(s) * np.cos(s)]).query(w)[0] ** 2
    for _ in range(2):
        C = Equations("y1**4 = y1**2 - y2**2").fit(rng.standard_normal((64, 2)) * spread)
        d = project(w, C, certificate=True)
        assert (d.status == "ok").all() and (d.value <= best * (1 + 1e-3) + 1e-9).all()
