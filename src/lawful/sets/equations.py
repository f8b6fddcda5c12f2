"""C(x) = {c : gamma(c, x) = 0, slack(c, x) <= 0}, from strings, sympy or Python callables (eq:constraint-set)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import sympy
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from lawful._array import Array, take_rows, to_numpy
from lawful.sets.base import ConstraintSet
from lawful.sets.names import check_used, highest_input, resolve
from lawful.sets.parser import parse
from lawful.sets.restore import restore
from lawful.sets.systems import ALLOWED, CallableSystem, SymbolicSystem

SYMPY_RELATIONS: dict[type, tuple[str, int]] = {
    sympy.Eq: ("=", 1), sympy.Le: ("<=", 1), sympy.Lt: ("<=", 1), sympy.Ge: ("<=", -1), sympy.Gt: ("<=", -1),
}  # fmt: skip


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

    Examples
    --------
    >>> import numpy as np
    >>> circle = Equations("y1**2 + y2**2 = 1").fit(np.zeros((1, 2)))
    >>> circle.residual(np.array([[1.0, 0.0], [2.0, 0.0]]))
    array([0., 3.])
    """

    def __init__(
        self,
        equations: Any = None,
        *,
        gamma: Callable[..., Any] | None = None,
        jacobian: Callable[..., Any] | None = None,
        slack: Callable[..., Any] | None = None,
        slack_jacobian: Callable[..., Any] | None = None,
    ) -> None:
        self.equations = equations
        self.gamma = gamma
        self.jacobian = jacobian
        self.slack = slack
        self.slack_jacobian = slack_jacobian

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
        if self.equations is None:
            self.system_: Any = CallableSystem(
                {"=": self.gamma, "<=": self.slack}, {"=": self.jacobian, "<=": self.slack_jacobian}
            )
            if not self.system_.depends_on_x:
                self.system_.check(self._probe(), None)
        else:
            self.system_ = self._symbolic(X, outputs, inputs)
        return self

    def _symbolic(self, X: Array | None, outputs: list[str] | None, inputs: list[str] | None) -> SymbolicSystem:
        given = self.equations
        items = list(given) if isinstance(given, list | tuple | set | np.ndarray) else [given]
        width = len(inputs) if inputs is not None else highest_input(items) if X is None else int(X.shape[1])
        resolved = resolve(self.n_tasks_, width, outputs, inputs)
        y = [sympy.Symbol(f"y{t + 1}", real=True) for t in range(self.n_tasks_)]
        x = [sympy.Symbol(f"x{j + 1}", real=True) for j in range(width)]
        names = {name: (y if kind == "y" else x)[k] for name, (kind, k) in resolved.known.items()}
        for item in items:
            check_used(item, resolved)
        relations: list[tuple[sympy.Expr, str]] = []
        for item in items:
            for expression, kind in parse(item, names) if isinstance(item, str) else _from_sympy(item, names):
                if not expression.free_symbols & set(y):
                    raise ValueError(
                        f"Equations: {item!s} does not constrain any output; known outputs: {', '.join(map(str, y))}"
                    )
                relations.append((expression, kind))
        if not relations:
            raise ValueError("Equations: the list of equations is empty; give at least one, or use Reals()")
        return SymbolicSystem(relations, y, x)

    def _probe(self) -> np.ndarray:
        rng = np.random.default_rng(0)
        return self.location_ + self.spread_ * rng.standard_normal((8, self.n_tasks_))

    # ------------------------------------------------------------------ the set for given inputs

    @property
    def depends_on_x(self) -> bool:  # type: ignore[override]
        return bool(self.system_.depends_on_x)

    def at(self, X: Array) -> Equations:
        if not self.depends_on_x:
            return self
        if isinstance(self.system_, SymbolicSystem) and X.shape[1] < len(self.system_.x):
            raise ValueError(f"Equations use input x{len(self.system_.x)}, but X has {X.shape[1]} columns")
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


def _from_sympy(item: Any, names: dict[str, sympy.Symbol]) -> list[tuple[sympy.Expr, str]]:
    """A sympy relation, or an expression that is to be zero, in our own symbols."""
    if isinstance(item, bool | sympy.logic.boolalg.BooleanAtom):
        raise ValueError(f"Equations: an equation that is always {item} was given; does it mention the outputs?")
    if not isinstance(item, sympy.Basic):
        raise TypeError(f"Equations: {item!r} is a {type(item).__name__}; give strings, sympy relations or callables (gamma=)")
    kind, sign = SYMPY_RELATIONS.get(type(item), ("=", 1))
    expression = sign * (item.lhs - item.rhs) if type(item) in SYMPY_RELATIONS else item  # type: ignore[attr-defined]
    unknown = sorted(str(s) for s in expression.free_symbols if str(s) not in names)
    if unknown:
        raise ValueError(f"Equations: unknown names {unknown} in {item}. Known names: {', '.join(names)}")
    strange = {node for node in sympy.preorder_traversal(expression) if not _understood(node)}
    if strange:
        raise ValueError(f"Equations: {sorted(map(str, strange))} in {item} are not understood; use gamma= for them")
    return [(expression.subs({s: names[str(s)] for s in expression.free_symbols}, simultaneous=True), kind)]


def _understood(node: Any) -> bool:
    if isinstance(node, sympy.Number | sympy.NumberSymbol):
        return bool(node.is_finite)
    return isinstance(node, sympy.Symbol | sympy.Add | sympy.Mul | sympy.Pow) or type(node) in ALLOWED
