"""What a loss is: a formula l(c, y), a way to encode labels, and the objective it makes of the scores.

Every loss offers

* `__call__(c, y)`: the loss of predicting c where y was observed, elementwise;
* `encodings(y)`: the columns Z_t that the surrogate regresses, and the atoms they stand for (`encode(y)` for one task);
* `objective(scores, atoms, variance=None)`: F_x, what the decoder minimises;
* `center(scores, atoms)`: the unconstrained prediction alone, before anything was calibrated.

and, where its formula has it, any of these capabilities, which are asked for by name:

* `derivative(c, y)`: dl/dc, or a subgradient where there is a kink;
* `curvature(c, y)`: the second derivative in c of a quadratic that touches l at c and lies above it (a majoriser). With
  `derivative` alone a loss has slopes but no such quadratic: decoders that need both then leave it to others;
* `breakpoints(atoms)`: where a piecewise smooth loss has its kinks, the candidates of a coordinate-wise minimum;
* `calibrate(tasks, surrogate)`: learn from the fitted regressions (an output metric, say);
* `needs_variance`: whether `objective` wants the surrogate's predictive variance;
* `regresses_labels`: whether the unconstrained prediction is the regression of the labels themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from lawful._array import Array, array_namespace, device_of
from lawful.losses.objective import Objective, SmoothObjective


class Loss(BaseEstimator):
    """l(c, y) of one output. A new loss is one formula, `__call__`; see the module's docstring for what it may add.

    >>> import numpy as np
    >>> from lawful.losses import Absolute
    >>> Z, atoms = Absolute().encode(np.array([5.0, 7.0, 5.0]))
    >>> Z.tolist(), atoms.tolist()
    ([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [5.0, 7.0])
    """

    def __call__(self, c: Array, y: Array) -> Array:
        raise NotImplementedError

    def check(self) -> None:
        """An error where a parameter will not do; most losses have none."""

    def encode(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The loss trick, exactly: indicators of the distinct labels ("atoms").

        With all labels different the indicators are the identity and their regression is alpha(x) itself; with
        labels in {-1, 0, 1} there are three columns.
        """
        self.check()
        atoms, which = np.unique(y, return_inverse=True)
        return np.eye(len(atoms))[which.ravel()], atoms

    def objective(self, scores: list[Array], atoms: list[Any], variance: Array | None = None) -> Any:
        """F_x for a batch, from the regressed encodings of every task."""
        return separable_objective([self] * len(scores), scores, atoms)

    def calibrate(self, tasks: Any, surrogate: Any) -> None:
        """Learn what the loss needs from `lawful.tasks.Tasks` and their fitted regressions (an output metric, say).

        Most need nothing.
        """

    def encodings(self, y: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray | None]]:
        """Encode the labels of every task."""
        pairs = [self.encode(y_t) for y_t in y]
        return [Z for Z, _ in pairs], [atoms for _, atoms in pairs]

    @property
    def regresses_labels(self) -> bool:
        """Whether the unconstrained prediction is the regression of the labels themselves, which then need no encoding."""
        return False

    def center(self, scores: list[Array], atoms: list[Any]) -> Array:
        """(m, T) the unconstrained prediction, from the regressed encodings of every task; needs no `calibrate`."""
        return self.objective(scores, atoms).center

    @property
    def needs_variance(self) -> bool:
        """Whether `objective` wants the surrogate's predictive variance."""
        return False


def separable_objective(losses: list[Any], scores: list[Array], atoms: list[Any]) -> Objective:
    """The table of scores as an objective; smooth when every loss is."""
    kind = SmoothObjective if all(hasattr(loss, "derivative") for loss in losses) else Objective
    xp = array_namespace(scores[0])
    return kind(losses, scores, [xp.asarray(y, dtype=s.dtype, device=device_of(s)) for s, y in zip(scores, atoms)])
