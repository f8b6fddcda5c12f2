"""Equalities and inequalities as vectorised functions with derivatives: from sympy, or from a Python callable.

A system offers, for outputs c (m, T) and inputs X (m, d) or None:

    values(kind, c, X)        (m, P)       kind is "=" (gamma) or "<=" (slack)
    jacobian(kind, c, X)      (m, P, T)
    hessian(kind, c, X, nu)   (m, T, T)    sum_p nu_p times the Hessian of function p
    count(kind)               P
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy
from sympy.codegen.rewriting import create_expand_pow_optimization

from lawful._array import Array, array_namespace, device_of, like, to_numpy

KINDS = ("=", "<=")


def _elementwise(name: str, scalar: Callable[..., float]) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        arrays = [a for a in args if hasattr(a, "ndim")]
        if not arrays:
            return scalar(*args)
        xp = array_namespace(*arrays)
        return getattr(xp, name)(*(a if hasattr(a, "ndim") else xp.full_like(arrays[0], a) for a in args))

    return function


_NAMES = ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log", "sqrt")
NAMESPACE: dict[str, Any] = {n: _elementwise(n, getattr(math, n)) for n in _NAMES}
NAMESPACE |= {"Sign": _elementwise("sign", lambda v: float(np.sign(v))), "Magnitude": abs, "pi": math.pi, "E": math.e}
ALLOWED = {getattr(sympy, n) for n in _NAMES if n != "sqrt"} | {sympy.Abs, sympy.sign}


class Sign(sympy.Function):
    """The sign of a real expression; its derivative is taken to be 0."""

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        return sympy.Integer(0)


class Magnitude(sympy.Function):
    """|u| of a real expression: the derivative of sympy's own Abs asks for imaginary parts, or prints as a scalar function."""

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        return Sign(self.args[0])


EXPAND = create_expand_pow_optimization(8)


def _shared(expressions: list[sympy.Expr], **options: Any) -> tuple[list[Any], list[sympy.Expr]]:
    """Common subexpressions, and small integer powers as products: numpy's x**4 is slow."""
    pairs, reduced = sympy.cse(expressions, list=False)
    return [(symbol, EXPAND(e)) for symbol, e in pairs], [EXPAND(e) for e in reduced]


def _replaced(expression: sympy.Expr, functions: dict[Any, Any]) -> sympy.Expr:
    for old, new in functions.items():
        expression = expression.replace(old, new)
    return expression


class SymbolicSystem:
    """Expressions in the symbols of the outputs and the inputs; derivatives are symbolic and compiled once."""

    def __init__(self, relations: list[tuple[sympy.Expr, str]], y: list[sympy.Symbol], x: list[sympy.Symbol]) -> None:
        real = {sympy.Abs: Magnitude, sympy.sign: Sign}
        self.expressions = {kind: [_replaced(e, real) for e, k in relations if k == kind] for kind in KINDS}
        self.y, self.x = y, x
        used = set().union(*(e.free_symbols for e, _ in relations)) if relations else set()
        self.depends_on_x = bool(used & set(x))

    def count(self, kind: str) -> int:
        return len(self.expressions[kind])

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_compiled"}  # functions are rebuilt when needed

    def _function(self, kind: str, order: int) -> tuple[list[tuple[int, ...]], Callable[..., list[Any]]]:
        """Non-zero derivatives of this order: their positions, and one compiled function for all of them."""
        cache = self.__dict__.setdefault("_compiled", {})
        if (kind, order) not in cache:
            entries: list[tuple[tuple[int, ...], sympy.Expr]] = [((p,), e) for p, e in enumerate(self.expressions[kind])]
            for _ in range(order):
                entries = [
                    ((*position, t), derivative)
                    for position, e in entries
                    for t in range(position[1] if len(position) > 1 else 0, len(self.y))  # t <= s: Hessians are symmetric
                    if (derivative := sympy.diff(e, self.y[t])) != 0
                ]
            positions = [position for position, _ in entries]
            expressions = [e for _, e in entries]
            cache[kind, order] = (
                positions,
                sympy.lambdify([*self.y, *self.x], expressions, modules=[NAMESPACE], cse=_shared),
            )
        return cache[kind, order]

    def _evaluate(self, kind: str, order: int, c: Array, X: Array | None) -> list[tuple[tuple[int, ...], Any]]:
        positions, function = self._function(kind, order)
        columns = [c[:, t] for t in range(len(self.y))]
        # An unused input may be anything; 0 keeps the compiled signature the same for bound and unbound sets.
        columns += [0.0] * len(self.x) if X is None else [X[:, j] for j in range(len(self.x))]
        with np.errstate(all="ignore"):  # log(-1) on the way to a solution is judged by the residual, not by a warning
            return list(zip(positions, function(*columns)))

    def values(self, kind: str, c: Array, X: Array | None) -> Array:
        xp = array_namespace(c)
        out = xp.zeros((c.shape[0], self.count(kind)), dtype=c.dtype, device=device_of(c))
        for (p,), value in self._evaluate(kind, 0, c, X):
            out[:, p] = value
        return out

    def jacobian(self, kind: str, c: Array, X: Array | None) -> Array:
        xp = array_namespace(c)
        out = xp.zeros((c.shape[0], self.count(kind), len(self.y)), dtype=c.dtype, device=device_of(c))
        for (p, t), value in self._evaluate(kind, 1, c, X):
            out[:, p, t] = value
        return out

    def hessian(self, kind: str, c: Array, X: Array | None, nu: Array) -> Array:
        xp = array_namespace(c)
        T = len(self.y)
        out = xp.zeros((c.shape[0], T, T), dtype=c.dtype, device=device_of(c))
        for (p, t, s), value in self._evaluate(kind, 2, c, X):
            term = nu[:, p] * value
            out[:, t, s] = out[:, t, s] + term
            if s != t:
                out[:, s, t] = out[:, s, t] + term
        return out


class CallableSystem:
    """gamma(c) or gamma(c, X), vectorised over rows, with an optional Jacobian; checked against differences."""

    def __init__(self, functions: dict[str, Callable[..., Any] | None], jacobians: dict[str, Callable[..., Any] | None]):
        self.functions, self.jacobians = functions, jacobians
        self.sizes = dict.fromkeys(KINDS, 0)
        self.depends_on_x = any(f is not None and _takes_x(f) for f in functions.values())

    def count(self, kind: str) -> int:
        return self.sizes[kind]

    def check(self, c: np.ndarray, X: np.ndarray | None) -> None:
        """Run once on a few points: shapes, finiteness, and the Jacobian against central differences."""
        for kind in KINDS:
            if self.functions[kind] is None:
                continue
            value = self._call(self.functions[kind], c, X)
            if value.ndim != 2 or value.shape[0] != c.shape[0]:
                raise ValueError(
                    f"Equations: the callable returned shape {tuple(value.shape)} for {c.shape[0]} rows; "
                    "return (m,) or (m, P), one row of values for each row of c"
                )
            self.sizes[kind] = value.shape[1]
            numeric, spread = self._differences(kind, c, X, 1.0), self._differences(kind, c, X, 8.0)
            scale = 1 + np.abs(numeric).max(axis=(1, 2), initial=0.0)
            rough = np.abs(numeric - spread).max(axis=(1, 2), initial=0.0) / scale
            if self.jacobians[kind] is None:
                if np.median(rough) > 1e-3:
                    raise ValueError(
                        "Equations: the numerical Jacobian of the callable does not settle (is it smooth, deterministic and "
                        "vectorised over rows?); give jacobian=..., or write the equations as strings"
                    )
                continue
            given = to_numpy(self.jacobian(kind, c, X))
            if given.shape != numeric.shape:
                raise ValueError(
                    f"Equations: jacobian has shape {given.shape}, expected {numeric.shape} (rows, equations, outputs)"
                )
            if np.median(np.abs(given - numeric).max(axis=(1, 2)) / scale) > 1e-3:
                raise ValueError("Equations: the given jacobian disagrees with finite differences of gamma; check its formula")

    def _call(self, function: Any, c: Array, X: Array | None) -> Array:
        with np.errstate(all="ignore"):
            value = function(c, X) if _takes_x(function) else function(c)
        value = value if hasattr(value, "ndim") else np.asarray(value)
        return like(value, c)[:, None] if value.ndim == 1 else like(value, c)

    def _differences(self, kind: str, c: Array, X: Array | None, factor: float) -> Array:
        """Central differences with step eps^(1/3): error about eps^(2/3) relative."""
        xp = array_namespace(c)
        step = factor * 6e-6 * xp.where(abs(c) > 1, abs(c), xp.ones_like(c))
        columns = []
        for t in range(c.shape[1]):
            unit = xp.asarray([1.0 if s == t else 0.0 for s in range(c.shape[1])], dtype=c.dtype, device=device_of(c))
            ahead = self._call(self.functions[kind], c + step * unit, X)
            behind = self._call(self.functions[kind], c - step * unit, X)
            columns.append((ahead - behind) / (2 * step[:, t, None]))
        return xp.stack(columns, axis=2)

    def values(self, kind: str, c: Array, X: Array | None) -> Array:
        return self._call(self.functions[kind], c, X)

    def jacobian(self, kind: str, c: Array, X: Array | None) -> Array:
        function = self.jacobians[kind]
        if function is None:
            return self._differences(kind, c, X, 1.0)
        value = function(c, X) if _takes_x(function) else function(c)
        value = like(value, c)
        return value[:, None, :] if value.ndim == 2 else value

    def hessian(self, kind: str, c: Array, X: Array | None, nu: Array) -> Array:
        """Differences of J' nu; from a numerical Jacobian the step must be larger."""
        xp = array_namespace(c)
        step = (6e-6 if self.jacobians[kind] is not None else 1e-4) * xp.where(abs(c) > 1, abs(c), xp.ones_like(c))
        columns = []
        for t in range(c.shape[1]):
            unit = xp.asarray([1.0 if s == t else 0.0 for s in range(c.shape[1])], dtype=c.dtype, device=device_of(c))
            ahead = self.jacobian(kind, c + step * unit, X)
            behind = self.jacobian(kind, c - step * unit, X)
            change = xp.sum((ahead - behind) * nu[:, :, None], axis=1)
            columns.append(change / (2 * step[:, t, None]))
        H = xp.stack(columns, axis=2)
        return (H + xp.matrix_transpose(H)) / 2


def _takes_x(function: Any) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    return len(positional) >= 2
