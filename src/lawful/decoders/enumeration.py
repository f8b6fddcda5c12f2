"""Finite sets: look at every point.

The costs of all points are matrix products (`F.costs`), taken a few rows at a time. When a row's weights are equal
the best point is the nearest one and a k-d tree finds it without looking at the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from lawful._array import Array, array_namespace, device_of, is_numpy_namespace, like, put_rows, take_rows
from lawful.decoders.base import Decode, Decoder, Decoding, finish
from lawful.losses.quadratic import Quadratic, QuadraticForm

CHUNK_BYTES = 2**26  # size of one table of costs
TREE_POINTS, TREE_TASKS = 2000, 12  # a tree pays for clouds larger than this, in dimensions smaller than this


def row_chunks(n_rows: int, width: int, reference: Array) -> list[Array]:
    """Row numbers in groups such that a float64 table of `width` columns stays within CHUNK_BYTES."""
    xp = array_namespace(reference)
    step = max(1, CHUNK_BYTES // (8 * max(width, 1)))
    place = device_of(reference)
    return [xp.arange(i, min(i + step, n_rows), device=place) for i in range(0, n_rows, step)]


class Enumeration(Decoder):
    """argmin over the points of a finite set, exactly; ties go to the lowest index.

    margin: how much more the second-best point costs. `points_` are taken to be distinct, as in a set.

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import PointCloud
    >>> from lawful.decoders import Enumeration, decode
    >>> C = PointCloud([[0.0, 1.0], [1.0, 0.0]]).fit(np.ones((1, 2)))
    >>> decode(F, C, Enumeration()).c.round(6)
    array([[0., 1.]])
    """

    needs_objective = ("costs",)
    needs_set = ("points_",)

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        center = F.center
        xp = array_namespace(center)
        points = like(C.points_, center)
        m = F.shape[0]
        index = xp.zeros(m, dtype=xp.int64, device=device_of(center))
        margin = xp.full_like(center[:, 0], xp.inf)
        open_rows = xp.arange(m, device=device_of(center))
        if self._tree_pays(F, points):
            open_rows, index, margin = self._by_tree(F, C, index, margin)
        width = points.shape[0] * (F.shape[1] if isinstance(F, QuadraticForm) else 1)  # a full metric needs a table per task
        for chunk in row_chunks(open_rows.shape[0], width, center):
            rows = take_rows(open_rows, chunk)
            found, gap = self._by_costs(F if rows.shape[0] == m else F.rows(rows), points)
            index, margin = put_rows(index, rows, found), put_rows(margin, rows, gap)
        # Measured on the points themselves: there are usually fewer of them than rows.
        measured = take_rows(C.relative(points), index), take_rows(C.residual(points), index)
        return finish(F, C, take_rows(points, index), margin=margin, measured=measured)

    def _by_costs(self, F: Any, points: Array) -> tuple[Array, Array]:
        xp = array_namespace(points)
        costs = F.costs(points)
        first = xp.argmin(costs, axis=1)
        if points.shape[0] == 1:
            return first, xp.full_like(costs[:, 0], xp.inf)
        numbers = xp.arange(points.shape[0], device=device_of(points))
        costs = xp.where(numbers[None, :] == first[:, None], xp.full_like(costs, xp.inf), costs)
        second = xp.argmin(costs, axis=1)
        return self._settle(F, points, first, second)

    def _settle(self, F: Any, points: Array, first: Array, second: Array) -> tuple[Array, Array]:
        """Compare the two best again without the cancellation of the expanded form."""
        xp = array_namespace(points)
        gap = F.value(take_rows(points, second)) - F.value(take_rows(points, first))
        swap = (gap < 0) | ((gap == 0) & (second < first))
        return xp.where(swap, second, first), xp.abs(gap)

    def _tree_pays(self, F: Any, points: Array) -> bool:
        n_points, n_tasks = points.shape
        large = n_points > TREE_POINTS and n_tasks <= TREE_TASKS and F.shape[0] > 0
        return large and isinstance(F, Quadratic) and is_numpy_namespace(array_namespace(points))

    def _by_tree(self, F: Any, C: Any, index: Array, margin: Array) -> tuple[Array, Array, Array]:
        """Solve the isotropic rows; ties are left open, as a tree does not know the lowest index."""
        easy = np.flatnonzero(F.isotropic())
        tree = getattr(C, "tree_", None) or cKDTree(C.points_)
        part = F.rows(easy)
        distance, near = tree.query(part.center, k=2)
        clear = distance[:, 1] > distance[:, 0] * (1 + 1e-9) + 1e-300
        solved, near = easy[clear], near[clear]
        found, gap = self._settle(F.rows(solved), C.points_, near[:, 0], near[:, 1])
        open_rows = np.setdiff1d(np.arange(F.shape[0]), solved)
        return open_rows, put_rows(index, solved, found), put_rows(margin, solved, gap)
