"""Laws that are given as sympy objects, on the same graph. Nobody has one without having imported sympy."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from lawful.sets.laws.graph import Draft, Graph, LawError, Sum

NAMES = ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log", "Abs", "sign")


def from_sympy(item: Any, names: Mapping[str, tuple[str, float]], graph: Graph) -> tuple[Sum, str]:
    """A sympy relation, or an expression that is to be zero, as (expression, kind)."""
    sympy: Any = sys.modules.get("sympy")
    if isinstance(item, bool) or (sympy and isinstance(item, sympy.logic.boolalg.BooleanAtom)):
        raise ValueError(f"Equations: an equation that is always {item} was given; does it mention the outputs?")
    if sympy is None or not isinstance(item, sympy.Basic):
        raise TypeError(f"Equations: {item!r} is a {type(item).__name__}; give strings, sympy relations or callables (gamma=)")
    unknown = sorted(str(s) for s in item.free_symbols if str(s) not in names)
    if unknown:
        raise ValueError(f"Equations: unknown names {unknown} in {item}. Known names: {', '.join(names)}")
    try:
        return _relation(sympy, item, names, graph)
    except LawError as error:
        raise ValueError(f"Equations: {item} {error}") from error


def _relation(sympy: Any, item: Any, names: Mapping[str, tuple[str, float]], graph: Graph) -> tuple[Sum, str]:
    kind = {sympy.Eq: "=", sympy.Le: "<=", sympy.Lt: "<=", sympy.Ge: ">=", sympy.Gt: ">="}.get(type(item))
    if kind is None:
        return _expression(sympy, item, names, graph), "="
    left, right = (_expression(sympy, side, names, graph) for side in (item.lhs, item.rhs))
    if kind == ">=":
        left, right = right, left
    return graph.add(left, right, -1.0), "=" if kind == "=" else "<="


def _expression(sympy: Any, expression: Any, names: Mapping[str, tuple[str, float]], graph: Graph) -> Sum:
    """Arguments first, with a stack in place of recursion; equal sub-expressions are read once."""
    functions = {getattr(sympy, name): name.lower() for name in NAMES}
    done: dict[Any, Sum] = {}
    stack = [expression]
    while stack:
        top = stack[-1]
        missing = [] if top in done else [a for a in top.args if a not in done and not _leaf(sympy, top)]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        if top not in done:
            done[top] = graph.as_sum(
                _build(sympy, top, [done[a].copy() for a in top.args if a in done], functions, names, graph)
            )
    return done[expression].copy()


def _leaf(sympy: Any, node: Any) -> bool:
    return isinstance(node, sympy.Number | sympy.NumberSymbol | sympy.Symbol)


def _build(
    sympy: Any, node: Any, arguments: list[Sum], functions: dict[Any, str], names: Mapping[str, tuple[str, float]], graph: Graph
) -> Draft:
    if isinstance(node, sympy.Number | sympy.NumberSymbol) and node.is_finite:
        return graph.constant(float(node))
    if isinstance(node, sympy.Symbol):
        return graph.variable(*names[str(node)])
    if isinstance(node, sympy.Add | sympy.Mul):
        combine = graph.add if isinstance(node, sympy.Add) else graph.multiply
        total: Draft = arguments[0]
        for argument in arguments[1:]:
            total = combine(total, argument)
        return total
    if isinstance(node, sympy.Pow):
        return graph.power(*arguments)
    if type(node) in functions:
        return graph.apply(functions[type(node)], *arguments)
    raise LawError(f"has {node}, which is not understood; use gamma= for it")
