"""C(x) = {c : gamma(c, x) = 0, slack(c, x) <= 0}, from strings, sympy or Python callables (eq:constraint-set)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from lawful._array import Array, array_namespace, put_rows, take_rows, to_numpy
from lawful._small import peak
from lawful.sets.base import ConstraintSet, Version, fraction, tolerance
from lawful.sets.coefficients import Estimation, Profile
from lawful.sets.cones import Cone
from lawful.sets.elementary import Reals
from lawful.sets.laws.law import compile_law
from lawful.sets.names import Names, Unknown, check_used, highest_input, read_unknown, resolve, with_numbers
from lawful.sets.parser import check_length
from lawful.sets.restore import functions, positive, restore, violation
from lawful.sets.systems import CallableSystem, CompiledSystem

SNAP = 1e-11  # of the largest output of a row: so much is rounding


def _has(kind: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(self, "system_") and self.system_.count(kind) > 0


class Equations(ConstraintSet):
    """Outputs that satisfy equations and inequalities, which may depend on the inputs.

    Parameters
    ----------
    equations : str, sympy expression or relation, or list of them
        Outputs are called y1, y2, ... and inputs x1, x2, ...; with DataFrames their column names work too (in backticks
        when they are not plain names). `=` is an equality, `<=` and `>=` may be chained: "0 <= y1 <= 3".
    gamma, slack : callable, optional
        f(c) or f(c, X), vectorised over rows, returning (m,) or (m, P): gamma = 0 and slack <= 0.
    jacobian, slack_jacobian : callable, optional
        Their derivatives in c, (m, P, T); None means checked central differences.
    unknown : list of str, or dict {name: None, (low, high) or a number to begin with}, optional
        Names in the equations that stand for numbers which nobody knows. `fit` estimates them from the labels and, where there
        are any, the inputs (`sets.coefficients` has the mathematics): labels may be noisy and have gaps.
    noise : float, (T,) or (T, T), optional
        Standard deviation, or covariance, of the labels' noise for that, up to a factor. None: what a smooth regression on
        the inputs leaves; without inputs, in proportion to the spread of each output.

    Attributes
    ----------
    unknown_, unknown_std_ : dict {name: estimate}, {name: standard error}; NaN for one that ends at its bound
    unknown_covariance_ : (K, K) of the estimates

    Examples
    --------
    >>> import numpy as np
    >>> circle = Equations("y1**2 + y2**2 = 1").fit(np.zeros((1, 2)))
    >>> circle.residual(np.array([[1.0, 0.0], [2.0, 0.0]]))
    array([0., 3.])

    A circle whose radius nobody knows:

    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(0, 6.28, 300)
    >>> Y = 1.5 * np.c_[np.cos(t), np.sin(t)] + 0.05 * rng.standard_normal((300, 2))
    >>> ring = Equations("y1**2 + y2**2 = r**2", unknown={"r": (0, 10)}).fit(Y)
    >>> print(f"{ring.unknown_['r']:.3f} +- {ring.unknown_std_['r']:.3f}")
    1.498 +- 0.003
    """

    def __init__(
        self,
        equations: Any = None,
        *,
        gamma: Callable[..., Any] | None = None,
        jacobian: Callable[..., Any] | None = None,
        slack: Callable[..., Any] | None = None,
        slack_jacobian: Callable[..., Any] | None = None,
        unknown: Any = None,
        noise: Any = None,
    ) -> None:
        self.equations = equations
        self.gamma = gamma
        self.jacobian = jacobian
        self.slack = slack
        self.slack_jacobian = slack_jacobian
        self.unknown = unknown
        self.noise = noise

    # ------------------------------------------------------------------ reading the law

    def fit(
        self, Y: Array, X: Array | None = None, *, outputs: list[str] | None = None, inputs: list[str] | None = None
    ) -> Self:
        """Read the equations for outputs Y (m, T), NaN = missing; `outputs`, `inputs` are column names.

        `inputs` may be any list of names; without it the inputs x1, x2, ... up to the highest one used are known.
        """
        self._look(Y)
        self._X: Array | None = None
        if (self.equations is None) == (self.gamma is None and self.slack is None):
            raise ValueError(
                "Equations needs either equations (strings or sympy) or callables (gamma=, slack=), one of the two"
            )
        if self.equations is None and self.unknown:
            raise ValueError(
                "Equations: unknown coefficients need equations as strings or sympy, not callables (gamma=, slack=)"
            )
        if self.equations is None:
            self.system_: Any = CallableSystem(
                {"=": self.gamma, "<=": self.slack}, {"=": self.jacobian, "<=": self.slack_jacobian}, self.spread_
            )
            if not self.system_.depends_on_x:
                self.system_.check(self._probe(), None)
        else:
            self.system_ = self._compile(Y, X, outputs, inputs)
        return self

    not_saved = ("version_", "system_", "_X", "_estimation")

    def after_load(self) -> None:
        super().after_load()
        self._X = None
        self.system_ = self._recompiled()

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and skops: a whole law is its words, and is compiled again."""
        state = dict(super().__getstate__())
        state.pop("_estimation", None)
        if "known_" in state:
            state.pop("system_")
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "known_" in state:
            self.system_ = self._recompiled()

    def _recompiled(self) -> CompiledSystem:
        """From the words, which are all that is kept."""
        return compile_law(self._items(), self.known_, self.n_tasks_, self.n_inputs_)

    def _items(self) -> list[Any]:
        given = self.equations
        return list(given) if isinstance(given, list | tuple | set | np.ndarray) else [given]

    def _compile(self, Y: Array, X: Array | None, outputs: list[str] | None, inputs: list[str] | None) -> CompiledSystem:
        items = self._items()
        check_length(items)
        width = len(inputs) if inputs is not None else highest_input(items) if X is None else int(X.shape[1])
        names = resolve(self.n_tasks_, width, outputs, inputs)
        for item in items:
            check_used(item, names)
        self.known_, self.n_inputs_ = names.known, width
        if self.unknown:
            self._estimate(read_unknown(self.unknown, items, names), items, names, Y, X)
        return compile_law(items, self.known_, self.n_tasks_, width)

    # ------------------------------------------------------------------ coefficients that nobody knows

    def _estimate(self, unknown: Unknown, items: list[Any], names: Names, Y: Array, X: Array | None) -> None:
        """The estimates become numbers of the law."""
        further = {name: ("y", self.n_tasks_ + k) for k, name in enumerate(unknown.names)}
        system = compile_law(items, names.known | further, self.n_tasks_ + len(further), self.n_inputs_)
        labels = np.asarray(to_numpy(Y), np.float64)
        inputs = None if X is None else np.asarray(to_numpy(X), np.float64)
        self._estimation = Estimation.of(system, unknown, labels, inputs, self.noise, self.location_, self.spread_)
        found = self._estimation.found
        self.unknown_ = {name: float(value) for name, value in zip(unknown.names, found.theta)}
        self.unknown_std_ = {name: float(value) for name, value in zip(unknown.names, found.std)}
        self.unknown_covariance_ = found.covariance
        self.known_ = names.known | {name: ("number", value) for name, value in self.unknown_.items()}

    def profile(self, name: str, values: Any = None, points: int = 31) -> Profile:
        """How well other values of an unknown coefficient agree with the labels, the others solved for.

        `values`, or `points` of them up to five standard errors from the estimate. A table for a plot, with the
        `interval` of each level; only right after `fit`, as a saved model has no labels.

        >>> import numpy as np
        >>> x = np.linspace(0, 1, 100)[:, None]
        >>> Y = np.c_[np.exp(x), np.exp(x) * 0.5] + 0.02 * np.random.default_rng(0).standard_normal((100, 2))
        >>> law = Equations("y2 = k*y1", unknown=["k"]).fit(Y, x)
        >>> low, high = law.profile("k").interval()
        >>> bool(low < 0.5 < high)
        True
        """
        if not hasattr(self, "_estimation"):
            raise ValueError("Equations.profile needs unknown coefficients and the labels of `fit`; fit once more")
        return self._estimation.profile(name, values, points)

    def to_equations(self) -> ConstraintSet:
        """The law with its estimates written in, to be used without estimating them anew."""
        if not hasattr(self, "unknown_"):
            return Equations(self.equations) if self.equations is not None else self
        return Equations([with_numbers(item, self.unknown_) for item in self._items()])

    def _probe(self) -> np.ndarray:
        rng = np.random.default_rng(0)
        return self.location_ + self.spread_ * rng.standard_normal((8, self.n_tasks_))

    # ------------------------------------------------------------------ its parts

    def separate(self) -> list[tuple[ConstraintSet, list[int]]]:
        """Outputs that no relation ties together, directly or through a third, as sets of their own; free ones are one.

        A single part, or a law that cannot be read (a callable), gives an empty list. See `bound_as`.
        """
        blocks = self.system_.blocks if isinstance(self.system_, CompiledSystem) else []
        if len(blocks) < 2:
            return []
        tied = [block for block in blocks if any(block.relations.values())]
        free = [t for block in blocks if not any(block.relations.values()) for t in block.outputs]
        parts: list[tuple[ConstraintSet, list[int]]] = [
            (self._part(self.system_.block(block), block.outputs), block.outputs) for block in tied
        ]
        return [*parts, (Reals().fit(self.starts_[:, free]), free)] if free else parts

    def bound_as(self, part: ConstraintSet) -> ConstraintSet:
        """A part for the inputs that this set is bound to."""
        return part if self._X is None else part.at(self._X)

    def _part(self, system: CompiledSystem, outputs: list[int]) -> Equations:
        part = copy.copy(self)
        part.system_, part.n_tasks_, part.version_, part._X = system, len(outputs), Version(), None
        part.__dict__.pop("known_", None)  # its words are those of the whole
        part.location_, part.spread_, part.starts_ = self.location_[outputs], self.spread_[outputs], self.starts_[:, outputs]
        return part

    # ------------------------------------------------------------------ the set for given inputs

    @property
    def depends_on_x(self) -> bool:  # type: ignore[override]
        return bool(self.system_.depends_on_x)

    def at(self, X: Array) -> Equations:
        if not self.depends_on_x:
            return self
        if isinstance(self.system_, CompiledSystem) and X.shape[1] < self.system_.n_inputs:
            raise ValueError(f"Equations use input x{self.system_.n_inputs}, but X has {X.shape[1]} columns")
        bound = copy.copy(self)
        bound._X = X
        if isinstance(self.system_, CallableSystem) and not self.system_.sizes["="] + self.system_.sizes["<="] and len(X):
            rows = np.arange(8) % len(X)
            self.system_.check(self._probe(), to_numpy(X)[rows])
        return bound

    def rows(self, idx: Array) -> Equations:
        if self._X is None:
            return self
        part = copy.copy(self)
        part._X = take_rows(self._X, idx)
        return part

    def _need_x(self) -> None:
        if self.depends_on_x and self._X is None:
            raise ValueError("Equations depend on the inputs: bind them first with .at(X)")

    @available_if(_has("="))
    def equality(self, c: Array) -> Array:
        self._need_x()
        return self.system_.values("=", c, self._X)

    @available_if(_has("="))
    def equality_jacobian(self, c: Array) -> Array:
        return self.system_.jacobian("=", c, self._X)

    @available_if(_has("<="))
    def inequality(self, c: Array) -> Array:
        self._need_x()
        return self.system_.values("<=", c, self._X)

    @available_if(_has("<="))
    def inequality_jacobian(self, c: Array) -> Array:
        return self.system_.jacobian("<=", c, self._X)

    def relative(self, c: Array) -> Array:
        return self.measured(c)[0]

    @np.errstate(all="ignore")  # outside its domain a law is not a number, and so is its size
    def measured(self, c: Array) -> tuple[Array, Array]:
        """See `ConstraintSet`; what is obeyed to a fraction of its terms alone needs no closer look."""
        self._need_x()
        xp = array_namespace(c)
        known = self.system_.measured(c)
        if known is None:
            off = positive(functions(self, c), self.system_.count("="))
            known = peak(off / self._sizes("terms", c)), peak(off)
        found, residual = known
        rest = xp.nonzero(~(found <= tolerance(c)))[0]
        if rest.shape[0]:
            some, part = take_rows(c, rest), self.rows(rest)
            off = violation(part, some)
            worst = peak(fraction(off, part.scales(some)))
            worst = xp.where(xp.isfinite(peak(some)) & ~xp.isnan(worst), worst, xp.full_like(worst, xp.inf))
            found, residual = put_rows(found, rest, worst), put_rows(residual, rest, peak(off))
        return found, residual

    def scales(self, c: Array) -> Array:
        """The size of the terms of each relation, as it is written; of a callable, what its derivatives tell."""
        return self._sizes("scales", c)

    def _sizes(self, what: str, c: Array) -> Array:
        parts = [getattr(self.system_, what)(kind, c, self._X) for kind in ("=", "<=") if self.system_.count(kind)]
        return parts[0] if len(parts) == 1 else array_namespace(c).concat(parts, axis=1)

    @property
    def polyhedral(self) -> bool:  # type: ignore[override]
        """Whether all relations are affine in the outputs, whatever the inputs do."""
        system = getattr(self, "system_", None)
        return isinstance(system, CompiledSystem) and all(affine.all() for affine in system.affine.values())

    convex = polyhedral

    @property
    def quadratic(self) -> bool:  # type: ignore[override]
        system = getattr(self, "system_", None)
        return isinstance(system, CompiledSystem) and system.quadratic

    @available_if(lambda self: self.polyhedral)
    def cones(self) -> list[Cone]:
        """The affine relations of a law that has no others."""
        self._need_x()
        parts = [(kind, *self.system_.affine_part(kind, self._X)) for kind in ("=", "<=") if self.system_.count(kind)]
        return [Cone("zero" if kind == "=" else "nonnegative", A, -b) for kind, A, b in parts]

    def snap(self, c: Array) -> Array:
        """c with outputs that are fixed, or at a bound, exactly there if they are so up to rounding of the row."""
        pins = self.system_.pins if isinstance(self.system_, CompiledSystem) else None
        return c if pins is None else pins.snap(c, self._X, SNAP * peak(c))

    def curvature(self, c: Array, nu: Array) -> Array:
        """(m, T, T) sum over all functions, equalities first, of nu_p times their Hessian."""
        n = self.system_.count("=")
        parts = []
        if n:
            parts.append(self.system_.hessian("=", c, self._X, nu[:, :n]))
        if self.system_.count("<="):
            parts.append(self.system_.hessian("<=", c, self._X, nu[:, n:]))
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """n points of the set: random starts around the training outputs, moved onto it. Not uniform.

        For a set bound to inputs (`at(X)`), n must be the number of rows: one point for each.
        """
        self._need_x()
        rng = check_random_state(random_state)
        found: list[np.ndarray] = []
        for _ in range(10):
            wide = self.location_ + self.spread_ * rng.uniform(-2.5, 2.5, (n, self.n_tasks_))
            c, _ = restore(self, wide, self.spread_)
            good = self.contains(c)
            if self._X is not None:
                if n != self._X.shape[0]:
                    raise ValueError(f"Equations bound to {self._X.shape[0]} inputs give that many samples, not {n}")
                return c
            found.append(c[good])
            if sum(map(len, found)) >= n:
                return np.concatenate(found)[:n]
        raise ValueError(f"Equations: found {sum(map(len, found))} of {n} points; the set may be empty")
