"""What every constraint set C in R^T is, and what it may know.

Every set offers

* `fit(Y, X=None, outputs=None, inputs=None)`: learn the number of outputs T (`n_tasks_`) and anything else from training
  outputs (NaN = missing) and inputs; `outputs` and `inputs` are column names. Every fitted set knows where the outputs were
  seen: `location_`, `spread_`, `starts_` (some complete rows). `version_` is new with each fit: decoders keep what they
  compute about a set under it, and write nothing into the set.
* `at(X)`: the set for these inputs (itself unless it depends on x: `depends_on_x`); `rows(idx)`: the same for some of the rows.
* `residual(c)`: (m,) violation in the units of the law, 0 inside; `relative(c)`: the same as a fraction of the law's own scale,
  by which `contains(c, tol)` and the certificate of every decoder are measured; `law_residual(c)`: the violation of the exact
  law inside a relaxation (`residual` where nothing is relaxed).
* `sample(n, random_state)`: points of C.

and, where mathematics has it, any of these capabilities, which the decoders ask for by name:

* `project(b, a)`: argmin over C of sum_t a_t c_t^2 - 2 b_t c_t, row by row, *any sign of a* (exact);
  `project_convex(b, a)`: the same for positive a only;
* `project_form(Q, w)`: argmin over C of (c - w)' Q (c - w), Q (m, T, T) or one for all rows, (T, T);
* `equality(c)` (m, P) and `equality_jacobian(c)` (m, P, T): equality(c) = 0, the paper's gamma;
* `inequality(c)` (m, R) and `inequality_jacobian(c)`: inequality(c) <= 0; together they are the whole of C;
* `curvature(c, nu)`: sum over all those functions, equalities first, of nu_p times their Hessian;
* `scales(c)` (m, P + R): how large the terms of each function are at c, which is what "zero" is measured by;
* `nearest(c)`: Euclidean projection, with `convex = True` when the set is convex;
* `snap(c)`: c with outputs that the law fixes, or bounds, exactly where they are but for rounding;
* `cones()`: a convex set as {c : offset - matrix c in a cone}; `polyhedral = True` when all of them are linear;
* `tangent(c, v)` and `retract(c, v)`: projection on the tangent space and a step that stays on the manifold; `turned(c)`: other
  likely local minima than `nearest(c)`;
* `best(costs)` and `marginals(logits)`: over assignments of true and false, the cheapest one and the sums of their weights;
* `points_`: all elements of a finite set; `interval(t)`: bounds of a separable set; `pairs()`: an order over pair variables;
* `blocks_`, `members_` (with `is_union` for a union), `base_`: the parts of a composed set;
* `constant_norm`: all points are equally long; `unbounded`: the set has no end, so there is no average over it.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from lawful._array import Array, array_namespace, to_numpy
from lawful._small import peak
from lawful.sets.restore import constraints, roundoff, violation
from lawful.sets.typeset import LawShown

TOL = 1e-8  # a point is in C when no function is off by more than this fraction of its scale
ROUNDING = (
    16 * float(np.finfo(float).eps) / TOL
)  # so much of the size of what cancels inside a function is rounding, in units of TOL
HIDDEN = 1e-4  # a function that is not written out may hide larger terms that cancel: less of |J| |c| is its scale
STARTS = 256


class Version:
    """An identity, new with each fit. Without slots: skops saves only objects that it can look into."""


class ConstraintSet(LawShown, BaseEstimator):
    """A closed set C of admissible outputs. See the module's docstring for the interface.

    >>> import numpy as np
    >>> from lawful import Sphere
    >>> C = Sphere().fit(np.ones((1, 2)))
    >>> C.residual(np.array([[0.6, 0.8], [0.0, 2.0]])), C.contains(np.array([[0.6, 0.8]]))
    (array([0., 3.]), array([ True]))
    """

    convex: Any = False
    polyhedral: Any = False  # whether `cones` are all linear: affine equalities and inequalities, and nothing else
    quadratic: Any = False  # whether equality and inequality are polynomials of degree 2 in the outputs, at most
    depends_on_x: Any = False
    unbounded: Any = False
    relaxed: Any = False  # whether there is a tube or a penalty inside
    weighed: Any = False  # whether there is a tube inside that is measured in the weights of each row, which only F knows
    n_tasks_: int
    location_: np.ndarray
    spread_: np.ndarray
    starts_: np.ndarray
    not_saved: tuple[str, ...] = ("version_",)  # made anew when a model is loaded

    def fit(
        self, Y: Array, X: Array | None = None, *, outputs: list[str] | None = None, inputs: list[str] | None = None
    ) -> Self:
        """Learn T, and whatever else the set needs, from outputs (m, T), NaN = missing, and inputs (m, d)."""
        self._look(Y)
        self._learn(Y)
        return self

    def _look(self, Y: Array) -> None:
        """Where the outputs are: their place and size, and up to 256 of them, gaps filled from the same column."""
        Y = np.asarray(to_numpy(Y), dtype=np.float64)
        self.n_tasks_ = int(Y.shape[1])
        self.version_ = Version()
        rng = np.random.default_rng(0)
        seen = np.isfinite(Y)
        columns = [Y[seen[:, t], t] if seen[:, t].any() else np.zeros(1) for t in range(self.n_tasks_)]
        self.location_ = np.array([column.mean() for column in columns])
        spread, size = np.array([column.std() for column in columns]), np.abs(self.location_)
        self.spread_ = np.where(spread > 1e-12 * size, spread, np.where(size > 0, size, 1.0))
        rows = rng.permutation(len(Y))[:STARTS]
        self.starts_ = Y[rows].copy()
        for t, column in enumerate(columns):
            gaps = ~seen[rows, t]
            self.starts_[gaps, t] = rng.choice(column, gaps.sum())

    def __copy__(self) -> Self:
        """A shallow copy that shares everything: what is bound to inputs is one, and must cost nothing."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def after_load(self) -> None:
        """Make what is not saved, once it is known that the number of outputs is that of the arrays: room is made for it."""
        self._check_size()
        self.version_ = Version()

    def _check_size(self) -> None:
        if len(self.location_) != self.n_tasks_:
            raise ValueError(
                f"{type(self).__name__} has {self.n_tasks_!r} outputs and knows {len(self.location_)}; fit it again"
            )

    def _law(self) -> Self:
        return self

    def _learn(self, Y: Array) -> None:
        """Hook for subclasses: check T against the parameters and prepare constants."""

    def at(self, X: Array) -> Self:
        """The set C(x) of each row of X; a set that does not depend on x returns itself."""
        return self

    def rows(self, idx: Array) -> Self:
        """The set restricted to some of the rows it was bound to by `at`."""
        return self

    def residual(self, c: Array) -> Array:
        """(m,) violation of the law in its own units: the largest |equality| or positive inequality; 0 means inside."""
        xp = array_namespace(c)
        if not (hasattr(self, "equality") or hasattr(self, "inequality")):
            return xp.zeros_like(c[:, 0])
        return peak(violation(self, c))

    def relative(self, c: Array) -> Array:
        """(m,) the violation as a fraction of the law's own scale: the size of what cancels in each function at c.

        Infinite where c, or the law at c, is not a number.
        """
        xp = array_namespace(c)
        if hasattr(self, "equality") or hasattr(self, "inequality"):
            worst = peak(fraction(violation(self, c), self._sizes_of_terms(c)))
        else:
            worst = self.residual(c)
        good = xp.isfinite(peak(c)) & ~xp.isnan(worst)
        return xp.where(good, worst, xp.full_like(worst, xp.inf))

    def measured(self, c: Array) -> tuple[Array, Array]:
        """(m,), (m,): `relative` and `residual` at c, for sets that know both at the price of one."""
        return self.relative(c), self.residual(c)

    def _sizes_of_terms(self, c: Array) -> Array:
        """`scales(c)` of a set that has it; else the size of the terms of each function as far as its derivatives tell."""
        if hasattr(self, "scales"):
            return self.scales(c)
        _, jacobian, _ = constraints(self, c)
        return HIDDEN * roundoff(jacobian, c)

    def contains(self, c: Array, tol: float = TOL) -> Array:
        """(m,) whether each row satisfies the law to `tol` of the law's own scale (single precision: to what it can hold)."""
        if not hasattr(c, "dtype") or (isinstance(c, np.ndarray) and c.dtype.kind != "f"):
            c = np.asarray(c, dtype=np.float64)
        if c.ndim != 2 or c.shape[1] != self.n_tasks_:
            raise ValueError(
                f"{type(self).__name__}.contains: outputs of shape {c.shape} will not do; give (m, {self.n_tasks_})"
            )
        return self.relative(c) <= tolerance(c, tol)

    def in_metric(self, metric: np.ndarray | None) -> Self:
        """Told to every set by an estimator: the output metric, (T,) or (T, T), for tubes that measure in it; None: equal."""
        return self

    def law_residual(self, c: Array) -> Array:
        """(m,) violation of the law without its relaxations."""
        return self.residual(c)

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """n points of the set (not uniform unless said so)."""
        raise TypeError(f"{type(self).__name__} cannot be sampled; PointCloud or Equations can")

    def _complete_rows(self, Y: Array) -> np.ndarray:
        Y = to_numpy(Y)
        return Y[~np.isnan(Y).any(axis=1)]


def tolerance(c: Array, tol: float = TOL) -> float:
    """tol, or a hundred roundings where the numbers of c are coarser than that."""
    return max(tol, 100 * float(array_namespace(c).finfo(c.dtype).eps))


def fraction(violated: Array, scale: Array) -> Array:
    """violated / scale, with 0 / 0 = 0, x / 0 = inf and inf / anything = inf."""
    xp = array_namespace(violated)
    usable = (scale > 0) & xp.isfinite(scale) & xp.isfinite(violated)
    ratio = xp.where(usable, violated, xp.ones_like(violated)) / xp.where(usable, scale, xp.ones_like(scale))
    ratio = xp.where(usable, ratio, xp.full_like(ratio, xp.inf))
    return xp.where(violated == 0, xp.zeros_like(ratio), ratio)


def check_width(name: str, expected: int, n_tasks: int) -> None:
    """One wording for every set whose parameters fix the number of outputs."""
    if expected != n_tasks:
        raise ValueError(f"{name} describes {expected} outputs, but Y has {n_tasks} columns; give it matching parameters")
