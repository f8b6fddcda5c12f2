"""The compiled loops of the seeds against the array-library version and brute force."""

from __future__ import annotations

import numpy as np
import pytest

from lawful import Equations
from lawful.decoders import seeds
from lawful.losses.objective import Quadratic


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
