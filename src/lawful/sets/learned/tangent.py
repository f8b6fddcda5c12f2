"""The surface that a cloud of outputs lies on, without an equation for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from sklearn.utils import check_random_state

from lawful._array import Array, like, to_numpy
from lawful.sets.base import ConstraintSet, fraction
from lawful.sets.learned.observed import observed
from lawful.sets.learned.patches import Patches, fitted

NEIGHBOURS = (8, 15, 30)
HELD_OUT = 150  # points that judge a dimension and a number of neighbours
TRIED = 600  # discs while choosing


class LocalTangent(ConstraintSet):
    """The manifold of a cloud: discs along it, fitted to neighbouring points by moving least squares.

    Where `PointCloud` allows the observed outputs only, this allows what lies between them; it ends where the cloud ends.
    Outputs are measured in units of their spread. See `lawful.sets.learned.patches` for the mathematics.

    Parameters
    ----------
    points : (N, T) array, optional
        The cloud; None: the complete rows of the training outputs.
    dimension : "auto" or int, default "auto"
        Of the manifold. "auto" (with neighbours="auto"): held-out points are moved by the distance between neighbours, in a
        random direction, and projected; the smallest dimension is taken that brings them back as well as the best, to one
        standard error.
    neighbours : "auto" or int, default "auto"
        How many points a disc is fitted to.
    max_patches : int, default 1000
        Discs, at points drawn at random where there are more; all points take part in the fits.
    extra : (m, T) array, optional
        More outputs, for which there are no inputs: points of the cloud beside those of the training outputs.

    Attributes
    ----------
    dimension_, neighbours_ : int
    validation_ : dict of (dimension, neighbours) -> root mean square error of the points brought back, in units of the spread;
        "nearest point" and "as it is" are the rivals. Empty if nothing was to choose.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0, np.pi, 60)
    >>> C = LocalTangent(dimension=1).fit(np.c_[np.cos(t), np.sin(t)])
    >>> np.round(np.linalg.norm(C.nearest(np.array([[0.7, 0.8], [0.0, 3.0]])), axis=1), 2)
    array([1., 1.])
    >>> C.nearest(np.array([[0.9, -1.0]])).round(1)  # the arc ends at (1, 0)
    array([[ 1. , -0.1]])
    """

    def __init__(
        self,
        points: Any = None,
        dimension: Any = "auto",
        neighbours: Any = "auto",
        max_patches: int = 1000,
        *,
        extra: Any = None,
    ) -> None:
        self.points = points
        self.dimension = dimension
        self.neighbours = neighbours
        self.max_patches = max_patches
        self.extra = extra

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and skops, whose keys are words."""
        state = dict(super().__getstate__())
        return state | {"validation_": list(state["validation_"].items())} if "validation_" in state else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state | {"validation_": dict(state["validation_"])} if "validation_" in state else state)

    def _learn(self, Y: Array) -> None:
        cloud = np.unique(observed("LocalTangent", self.points, self.extra, Y, self.n_tasks_), axis=0)
        if len(cloud) < 3 or not np.isfinite(cloud).all():
            raise ValueError(f"LocalTangent needs at least 3 different finite points, got {len(cloud)}; give more of them")
        T = self.n_tasks_
        if self.dimension != "auto" and not 1 <= int(self.dimension) <= T:
            raise ValueError(f"LocalTangent: dimension={self.dimension!r} will not do; give 'auto' or a number from 1 to {T}")
        if self.neighbours != "auto" and int(self.neighbours) < 3:
            raise ValueError(f"LocalTangent: neighbours={self.neighbours!r} will not do; give 'auto' or at least 3")
        spread = cloud.std(axis=0)
        self.unit_ = np.where(spread > 1e-12 * np.abs(cloud).max(axis=0), spread, 1.0)
        scaled = cloud / self.unit_
        rng = np.random.default_rng(0)
        self.validation_: dict[Any, float] = {}
        self.dimension_, self.neighbours_ = self._choose(scaled, rng)
        centres = scaled[np.sort(rng.permutation(len(scaled))[: int(self.max_patches)])]
        self.patches_: Patches = fitted(scaled, centres, self.dimension_, self.neighbours_)

    def _choose(self, cloud: np.ndarray, rng: np.random.Generator) -> tuple[int, int]:
        n, T = cloud.shape
        dimensions = list(range(1, T)) or [1] if self.dimension == "auto" else [int(self.dimension)]
        counts = [k for k in NEIGHBOURS if k < n] or [n] if self.neighbours == "auto" else [int(self.neighbours)]
        pairs = [(d, k) for d in dimensions for k in counts if k > d + 1] or [(dimensions[0], counts[-1])]
        if len(pairs) == 1:
            return pairs[0]
        order = rng.permutation(n)
        held = order[: min(HELD_OUT, n // 5 + 1)]
        train, test = cloud[order[len(held) :]], cloud[held]
        tree = cKDTree(train)
        step = np.median(tree.query(test)[0]) / np.sqrt(T)
        moved = test + step * rng.standard_normal(test.shape)
        centres = train[:TRIED]
        ones = np.ones_like(moved)
        squares = {(d, k): np.mean((fitted(train, centres, d, k).minimise(moved, ones) - test) ** 2, axis=1) for d, k in pairs}
        self.validation_ = {pair: float(np.sqrt(np.mean(s))) for pair, s in squares.items()}
        best = min(pairs, key=lambda pair: self.validation_[pair])
        for d in dimensions:  # the smallest dimension that is not worse by more than one standard error, row by row
            same = min((pair for pair in pairs if pair[0] == d), key=lambda pair: self.validation_[pair], default=best)
            worse = squares[same] - squares[best]
            if worse.mean() <= worse.std() / np.sqrt(len(worse)):
                best = same
                break
        self.validation_["nearest point"] = float(np.sqrt(np.mean((train[tree.query(moved)[1]] - test) ** 2)))
        self.validation_["as it is"] = float(np.sqrt(np.mean((moved - test) ** 2)))
        return best

    # ------------------------------------------------------------------ what a set knows

    def project(self, b: Array, a: Array) -> Array:
        """argmin over all discs, exact up to rounding, for weights of any sign."""
        scaled_b, scaled_a = (np.asarray(to_numpy(x), np.float64) for x in (b, a))
        return like(self.patches_.minimise(scaled_b * self.unit_, scaled_a * self.unit_**2) * self.unit_, b)

    def project_form(self, Q: Array, w: Array) -> Array:
        """argmin of (c - w)' Q (c - w) over all discs; Q (m, T, T), or one for all rows."""
        form, center = (np.asarray(to_numpy(x), np.float64) for x in (Q, w))
        form = np.broadcast_to(form, (len(center), *form.shape[-2:])) * self.unit_[:, None] * self.unit_
        b = np.einsum("mts,ms->mt", form, center / self.unit_)
        return like(self.patches_.minimise(b, form) * self.unit_, w)

    def nearest(self, c: Array) -> Array:
        c_ = np.asarray(to_numpy(c), np.float64)
        return like(self.patches_.minimise(c_ * self.unit_, np.tile(self.unit_**2, (len(c_), 1))) * self.unit_, c)

    def residual(self, c: Array) -> Array:
        """Distance to the nearest disc."""
        return like(self._distance(c)[0], c)

    def relative(self, c: Array) -> Array:
        """Distance to the nearest disc, as a fraction of the length of its nearest point and of the spread of the cloud."""
        distance, size = self._distance(c)
        return fraction(like(distance, c), like(size + np.linalg.norm(self.unit_), c))

    def _distance(self, c: Array) -> tuple[np.ndarray, np.ndarray]:
        queries = np.asarray(to_numpy(c), np.float64)
        good = np.asarray(np.isfinite(queries).all(axis=1))
        safe = np.where(good[:, None], queries, 0.0)
        near = self.nearest(safe)
        return np.where(good, np.linalg.norm(safe - near, axis=1), np.inf), np.linalg.norm(near, axis=1)

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Uniform in discs drawn at random."""
        rng = check_random_state(random_state)
        which = rng.randint(len(self.patches_.centre), size=n)
        v = rng.standard_normal((n, self.dimension_))
        v *= (rng.uniform(size=(n, 1)) ** (1 / self.dimension_)) / np.linalg.norm(v, axis=1, keepdims=True)
        return self.patches_.points(which, v * self.patches_.radius[which][:, None]) * self.unit_
