"""F_x(c), the function of the candidate c that the decoder minimises, for a batch of m inputs.

    F_x(c) = sum_t sum_k s_tk(x) l_t(c_t, y_tk)          (eq:estimator-multitask, atoms y_tk, scores s_tk)

Its shapes:

* `Objective` (and `SmoothObjective`): any loss, through its table of scores.
* `Quadratic` and `QuadraticForm` (`quadratic`): the square loss with a diagonal and with a full output metric.

Every one offers `shape`, `doubtful`, `center`, `value`, `costs`, `tasks`, `rows`; separable ones add `table`, those with a
gradient (`SmoothObjective` and the quadratic two) `gradient`, `curvature` (the diagonal of a majoriser), the
quadratic two `hessian`, the other `second` (its diagonal).
Objectives with corners are `kinked` and offer `rounded(width)`, the same with corners of that width. The quadratic two know
the output metric `unit` that is inside them and `mass` = sum_t a_t(x) before it was, and the operations that relaxations and
closed forms need: `softened`, `price`, `shifted`, `recentred`, `weigh`, `isotropic`, `over`. `doubtful` marks the rows whose
scores carry no usable confidence (some a_t(x) <= 0).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, take_rows, to_numpy
from lawful.losses.quadratic import TINY, positive_part_center


class Objective:
    """sum_t sum_k s_tk(x) l_t(c_t, y_tk): scores[t] (m, k_t), atoms[t] (k_t,), one loss per task.

    >>> import numpy as np
    >>> from lawful import ZeroOne
    >>> from lawful.losses import Objective
    >>> F = Objective([ZeroOne()], [np.array([[0.2, 0.8]])], [np.array([-1.0, 1.0])])
    >>> F.value(np.array([[1.0]]))  # the score of the labels that it misses
    array([0.2])
    """

    def __init__(self, losses: list[Any], scores: list[Array], atoms: list[Array], doubtful: Array | None = None) -> None:
        self.losses, self.scores, self.atoms = losses, scores, atoms
        self.shape: tuple[int, int] = (scores[0].shape[0], len(scores))
        if doubtful is None:
            xp = array_namespace(scores[0])
            sizes = [xp.sum(xp.abs(s), axis=1) for s in scores]
            # What is left of scores that cancel is rounding too.
            low = [xp.sum(s, axis=1) <= TINY * xp.where(size > 1, size, xp.ones_like(size)) for s, size in zip(scores, sizes)]
            doubtful = xp.any(xp.stack(low, axis=1), axis=1)
        self.doubtful = doubtful

    @property
    def center(self) -> Array:
        """A start for local search: the score-weighted mean of the atoms, not farther from them than they are wide."""
        xp = array_namespace(self.scores[0])
        a = xp.stack([xp.sum(s, axis=1) for s in self.scores], axis=1)
        b = xp.stack([s @ y for s, y in zip(self.scores, self.atoms)], axis=1)
        low, high = (xp.stack([edge(y) + side * _range(y) for y in self.atoms]) for edge, side in ((xp.min, -1), (xp.max, 1)))
        return xp.clip(positive_part_center(a, b), low[None, :], high[None, :])

    def _columns(self, c: Array, what: str) -> list[Array]:
        xp = array_namespace(c)
        return [
            xp.sum(s * getattr(loss, what)(c[:, t, None], y[None, :]), axis=1)
            for t, (loss, s, y) in enumerate(zip(self.losses, self.scores, self.atoms))
        ]

    def value(self, c: Array) -> Array:
        columns = self._columns(c, "__call__")
        return sum(columns[1:], start=columns[0])

    def table(self, t: int, v: Array) -> Array:
        """(m, len(v)): the cost of each value v for task t."""
        xp = array_namespace(v)
        return self.scores[t] @ xp.matrix_transpose(self.losses[t](v[:, None], self.atoms[t][None, :]))

    def costs(self, points: Array) -> Array:
        """(m, P): the cost of each candidate point."""
        columns = [self.table(t, points[:, t]) for t in range(self.shape[1])]
        return sum(columns[1:], start=columns[0])

    def tasks(self, idx: list[int]) -> Objective:
        losses, scores, atoms = ([xs[t] for t in idx] for xs in (self.losses, self.scores, self.atoms))
        return type(self)(losses, scores, atoms, self.doubtful)

    def rows(self, idx: Array) -> Objective:
        scores = [take_rows(s, idx) for s in self.scores]
        return type(self)(self.losses, scores, self.atoms, take_rows(self.doubtful, idx))


class SmoothObjective(Objective):
    """An `Objective` all of whose losses have a derivative.

    >>> import numpy as np
    >>> from lawful import Huber
    >>> from lawful.losses import SmoothObjective
    >>> F = SmoothObjective([Huber()], [np.array([[0.5, 0.5]])], [np.array([0.0, 1.0])])
    >>> F.gradient(np.array([[0.75]]))
    array([[0.25]])
    """

    @property
    def kinked(self) -> bool:
        """Whether some loss has corners, where a derivative says little."""
        return any(hasattr(loss, "rounded") for loss in self.losses)

    def rounded(self, width: float) -> SmoothObjective:
        """The same with corners rounded off over `width` times the range of each task's labels."""
        losses = [
            loss.rounded(width * _range(y)) if hasattr(loss, "rounded") else loss for loss, y in zip(self.losses, self.atoms)
        ]
        return SmoothObjective(losses, self.scores, self.atoms, self.doubtful)

    def gradient(self, c: Array) -> Array:
        return array_namespace(c).stack(self._columns(c, "derivative"), axis=1)

    def curvature(self, c: Array) -> Array:
        """Diagonal of a quadratic that touches F at c and lies above it (majorise-minimise).

        Terms with a positive score use the loss's own majoriser; terms with a negative score are concave or flat
        beside it and are bounded by their tangent, which adds no curvature. A loss that has none is differenced.
        """
        xp = array_namespace(c)
        columns = [
            xp.sum(xp.where(s > 0, s, xp.zeros_like(s)) * _majoriser(loss, c[:, t, None], y[None, :], _range(y)), axis=1)
            for t, (loss, s, y) in enumerate(zip(self.losses, self.scores, self.atoms))
        ]
        return xp.stack(columns, axis=1)

    def second(self, c: Array) -> Array:
        """(m, T) second derivatives, of either sign; there are no mixed ones."""
        xp = array_namespace(c)
        columns = [
            xp.sum(s * _second(loss, c[:, t, None], y[None, :], _range(y)), axis=1)
            for t, (loss, s, y) in enumerate(zip(self.losses, self.scores, self.atoms))
        ]
        return xp.stack(columns, axis=1)


def _range(atoms: Array) -> float:
    """The range of a task's labels, or their size when they are all the same."""
    values = np.asarray(to_numpy(atoms), dtype=float)
    return float(values.max() - values.min()) or float(np.abs(values).max()) or 1.0


def _second(loss: Any, c: Array, y: Array, size: float) -> Array:
    """The second derivative of a loss in c: its own, or a difference of the first."""
    if hasattr(loss, "second"):
        return loss.second(c, y)
    h = 1e-5 * size
    return (loss.derivative(c + h, y) - loss.derivative(c - h, y)) / (2 * h)


def _majoriser(loss: Any, c: Array, y: Array, size: float) -> Array:
    if hasattr(loss, "curvature"):
        return loss.curvature(c, y)
    found = _second(loss, c, y, size)
    xp = array_namespace(found)
    return xp.where(found > 1e-6 / size**2, found, xp.full_like(found, 1e-6 / size**2))
