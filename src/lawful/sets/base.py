"""What every constraint set C in R^T is, and what it may know.

Every set offers

* `fit(Y, outputs=None, inputs=None)`: learn the number of outputs T (`n_tasks_`) and anything else from training
  outputs (NaN = missing); `outputs` and `inputs` are column names.
* `at(X)`: the set for these inputs (itself unless it depends on x); `rows(idx)`: the same for some of the rows.
* `residual(c)`: (m,) how far each row is from satisfying the law, 0 inside; `contains(c, tol)`.
* `sample(n, random_state)`: points of C.

and, where mathematics has it, any of these capabilities, which the decoders ask for by name:

* `project(b, a)`: argmin over C of sum_t a_t c_t^2 - 2 b_t c_t, row by row, *any sign of a* (exact);
* `equality(c)` (m, P) and `equality_jacobian(c)` (m, P, T): equality(c) = 0, the paper's gamma;
* `inequality(c)` (m, R) and `inequality_jacobian(c)`: inequality(c) <= 0;
* `curvature(c, nu)`: sum over all those functions, equalities first, of nu_p times their Hessian;
* `nearest(c)`: Euclidean projection, with `convex = True` when the set is convex;
* `tangent(c, v)` and `retract(c, v)`: projection on the tangent space and a step that stays on the manifold;
* `points_`: all elements of a finite set; `interval(t)`: bounds of a separable set;
* `blocks_`, `members_`, `base_`: the parts of a composed set.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from lawful._array import Array, array_namespace, to_numpy
from lawful._small import peak


class ConstraintSet(BaseEstimator):
    """A closed set C of admissible outputs. See the module's docstring for the interface."""

    convex = False

    def fit(
        self, Y: Array, X: Array | None = None, *, outputs: list[str] | None = None, inputs: list[str] | None = None
    ) -> Self:
        """Learn T, and whatever else the set needs, from outputs (m, T), NaN = missing, and inputs (m, d)."""
        self.n_tasks_ = int(Y.shape[1])
        self._learn(Y)
        return self

    def _learn(self, Y: Array) -> None:
        """Hook for subclasses: check T against the parameters and prepare constants."""

    def at(self, X: Array) -> ConstraintSet:
        """The set C(x) of each row of X; a set that does not depend on x returns itself."""
        return self

    def rows(self, idx: Array) -> ConstraintSet:
        """The set restricted to some of the rows it was bound to by `at`."""
        return self

    def residual(self, c: Array) -> Array:
        """(m,) violation of the law: the largest |equality| or positive inequality; 0 means inside."""
        xp = array_namespace(c)
        worst = xp.zeros_like(c[:, 0])
        if hasattr(self, "equality"):
            worst = xp.maximum(worst, peak(self.equality(c)))
        if hasattr(self, "inequality"):
            worst = xp.maximum(worst, xp.max(self.inequality(c), axis=1))
        return worst

    def contains(self, c: Array, tol: float = 1e-8) -> Array:
        """(m,) whether each row satisfies the law to `tol`."""
        return self.residual(c) <= tol

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """n points of the set (not uniform unless said so)."""
        raise TypeError(f"{type(self).__name__} cannot be sampled; PointCloud or Equations can")

    def _complete_rows(self, Y: Array) -> np.ndarray:
        Y = to_numpy(Y)
        return Y[~np.isnan(Y).any(axis=1)]


def check_width(name: str, expected: int, n_tasks: int) -> None:
    """One wording for every set whose parameters fix the number of outputs."""
    if expected != n_tasks:
        raise ValueError(f"{name} describes {expected} outputs, but Y has {n_tasks} columns; give it matching parameters")
