"""The last step of every decoder: points that miss the law by rounding are put on it, and no point is moved further."""

from __future__ import annotations

import numpy as np
import pytest

from lawful import Sphere
from lawful.decoders.base import NEAR, polish
from lawful.losses import Quadratic


class Far(Sphere):
    """A sphere whose way back is somewhere else: on it, but turned by an angle."""

    def __init__(self, angle: float) -> None:
        super().__init__()
        self.angle = angle

    def nearest(self, c):
        a = np.arctan2(c[:, 1], c[:, 0]) + self.angle / 2  # it is asked twice
        return np.stack([np.cos(a), np.sin(a)], axis=1)


def polished(law, c):
    c = np.asarray(c, dtype=float)
    return polish(Quadratic.around(c), law.fit(np.eye(2)), c, np.zeros(len(c), dtype=bool))


@pytest.mark.parametrize("angle", [0.0, 0.3 * NEAR, -0.3 * NEAR])
def test_what_rounding_did_is_undone(angle):
    c = np.array([[np.cos(1.0), np.sin(1.0)], [np.cos(2.0), np.sin(2.0)]]) * (1 + 0.3 * NEAR)
    found, relative, residual = polished(Far(angle), c)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-15)
    assert relative.max() < 1e-15 and residual.max() < 1e-15
    assert np.abs(found - c).max() <= NEAR


@pytest.mark.parametrize("angle", [3 * NEAR, -3 * NEAR, 0.5, np.pi])
def test_no_other_answer_is_given(angle):
    """Further away than rounding reaches there may be a point of C, but it is not the nearest one."""
    c = np.array([[np.cos(1.0), np.sin(1.0)], [np.cos(2.0), np.sin(2.0)]]) * (1 + 0.3 * NEAR)
    found, relative, _ = polished(Far(angle), c)
    np.testing.assert_array_equal(found, c)
    assert (relative > 1e-8).all()


def test_averaged_rows_stay_where_they_are():
    c = np.array([[2.0, 0.0], [1 + 0.3 * NEAR, 0.0]])
    found = polish(Quadratic.around(c), Sphere().fit(np.eye(2)), c, np.array([True, False]))[0]
    np.testing.assert_array_equal(found, [[2.0, 0.0], [1.0, 0.0]])
