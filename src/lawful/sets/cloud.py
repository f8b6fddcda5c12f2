"""A finite set of admissible outputs: the paper's Sarcos experiment, where C is a sample of observed vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_random_state

from lawful._array import Array, like, to_numpy
from lawful.sets.base import ConstraintSet, check_width, fraction

TREE_DIMENSION = 12  # beyond this a k-d tree visits most points and a matrix product is faster


class PointCloud(ConstraintSet):
    """{p_1, ..., p_N}: the rows of `points`, or the complete rows of the training outputs when None.

    `points_` holds them once each, in order of first appearance (a set has no repetitions); `which_` says which of them each
    given row is, and `counts_` how often each was given, for decoders that average (`decoders.Posterior`).

    >>> from lawful import PointCloud, project
    >>> project([[0.9, 0.2]], PointCloud([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    array([[1., 0.]])
    """

    not_saved = ("version_", "tree_")

    def __init__(self, points: Any = None) -> None:
        self.points = points

    def _learn(self, Y: Array) -> None:
        given = self.points is not None
        points = np.asarray(to_numpy(self.points), np.float64) if given else self._complete_rows(Y)
        if points.ndim != 2:
            raise ValueError(f"PointCloud: points have shape {points.shape}; give one row per point")
        check_width("PointCloud", points.shape[1], self.n_tasks_)
        if points.shape[0] == 0:
            what = "points has no rows" if given else "no row of Y is complete"
            raise ValueError(f"PointCloud is an empty set: {what}; give the admissible outputs as points")
        if not np.isfinite(points).all():
            raise ValueError("PointCloud: points contain NaN or infinities; give complete rows only")
        _, first, group = np.unique(points, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        self.points_ = points[first[order]]
        self.which_ = np.argsort(order)[group.reshape(-1)]
        self.counts_ = np.bincount(self.which_, minlength=len(first))
        self._plant()

    def _plant(self) -> None:
        self.tree_ = cKDTree(self.points_) if self.n_tasks_ <= TREE_DIMENSION else None

    def after_load(self) -> None:
        super().after_load()
        self._plant()

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and skops: the tree is planted again."""
        return {name: value for name, value in super().__getstate__().items() if name != "tree_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "points_"):
            self._plant()

    def residual(self, c: Array) -> Array:
        """Distance to the nearest point."""
        return like(self._near(c)[0], c)

    def relative(self, c: Array) -> Array:
        """Distance to the nearest point, as a fraction of that point's length."""
        distance, point = self._near(c)
        return fraction(like(distance, c), like(np.linalg.norm(point, axis=1), c))

    def _near(self, c: Array) -> tuple[np.ndarray, np.ndarray]:
        """Distance to the nearest point, and that point; infinite where c is not finite."""
        queries = np.asarray(to_numpy(c), np.float64)
        good = np.asarray(np.isfinite(queries).all(axis=1))
        safe = np.where(good[:, None], queries, 0.0)
        if self.tree_ is not None:
            found = self.points_[self.tree_.query(safe)[1]]
        elif len(safe):
            found = self.points_[pairwise_distances_argmin(safe, self.points_)]
        else:
            found = safe
        return np.where(good, np.linalg.norm(safe - found, axis=1), np.inf), found

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Points drawn uniformly with replacement."""
        return self.points_[check_random_state(random_state).randint(len(self.points_), size=n)]
