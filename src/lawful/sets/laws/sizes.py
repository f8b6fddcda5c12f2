"""How large the terms of a law are at a point: what "zero" means there.

A relation is const + sum_i w_i node_i. Its *terms* are |const| + sum_i |w_i node_i|; a law is obeyed when it is off by no more
than a small fraction of them. That says nothing where a single term is to vanish, (y1 + y2)*(y1 - y2) = 0 or sin(y1) = 0:
what cancels there cancels inside the term. Two more numbers, carried from the variables to the relation, speak for it:

    rounding  e    what a relative change of one unit in every variable and constant does, to first order:
                   e(a + b) = e(a) + e(b),  e(a b) = |a| e(b) + |b| e(a),  e(f(a)) = |f'(a)| e(a) + |f(a)|
    reach     M    how large the expression would be without cancellation, functions with a bounded range counting as 1:
                   M(a + b) = M(a) + M(b),  M(a b) = M(a) M(b)

eps e is what floating point cannot avoid. It is allowed, unless it is more than a small fraction of M: a law so steep that no
number obeys it is not obeyed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, device_of
from lawful.sets.laws.graph import Graph, Sum

Triple = tuple[Array, Array, Array]  # value, e, M


def sizes(graph: Graph, roots: list[Sum], c: Array, X: Array | None) -> tuple[Array, Array, Array]:
    """(m, P) terms, e and M of every relation."""
    xp = array_namespace(c)
    known: dict[int, Triple] = {}
    ones = xp.ones(c.shape[0], dtype=c.dtype, device=device_of(c))
    given = {"y": c, "x": X}
    with np.errstate(all="ignore"):
        for number in graph.reachable(i for root in roots for i in root.terms):
            node = graph.nodes[number]
            if node[0] in given:
                v = given[node[0]][:, node[1]]
                known[number] = (v, abs(v), abs(v))
            elif node[0] == "sum":
                known[number] = _sum(ones, node[1], [(known[i], w) for i, w in node[2]])
            else:
                arguments = node[1:2] if node[0] == "pow" else node[1:]
                extra = node[2:] if node[0] == "pow" else ()
                known[number] = _apply(xp, node[0], [known[i] for i in arguments], *extra)
        found = []
        for root in roots:
            parts = [(known[i], w) for i, w in root.terms.items()]
            terms = sum((abs(w * v) for (v, _, _), w in parts), start=abs(root.const) * ones)
            found.append((terms, *_sum(ones, root.const, parts)[1:]))
    return tuple(xp.stack([triple[k] for triple in found], axis=1) for k in range(3))  # type: ignore[return-value]


def _sum(ones: Array, const: float, parts: list[tuple[Triple, float]]) -> Triple:
    v = const * ones
    e = M = abs(const) * ones
    for (value, rounding, reach), w in parts:
        v, e, M = v + w * value, e + abs(w) * rounding, M + abs(w) * reach
    return v, e, M


def _apply(xp: Any, op: str, arguments: list[Triple], power: int = 0) -> Triple:
    a, e, M = arguments[0]
    if op == "pow":
        return a**power, power * abs(a) ** (power - 1) * e, M**power
    if op in ("mul", "div", "power", "atan2"):
        b, f, N = arguments[1]
        if op == "mul":
            return a * b, abs(a) * f + abs(b) * e, M * N
        if op == "div":
            return a / b, e / abs(b) + abs(a) * f / b**2, M / abs(b)
        if op == "power":
            v = a**b
            moved = abs(b * v) * e / xp.where(a != 0, abs(a), xp.ones_like(a)) + xp.where(a > 0, abs(xp.log(a) * v), 0 * v) * f
            return v, moved + abs(v), abs(v)
        square = a**2 + b**2
        v = xp.atan2(a, b)
        return v, (abs(b) * e + abs(a) * f) / square + abs(v), xp.ones_like(a)
    v, slope = _VALUES[op](xp, a), _SLOPES[op](xp, a)
    moved = abs(slope) * e
    if op == "sqrt":  # at 0 the slope is infinite, but the root of a rounding error is not
        moved = xp.minimum(xp.where(xp.isnan(moved), xp.full_like(moved, xp.inf), moved), xp.sqrt(e / EPS))
        return v, moved + v, xp.sqrt(M)
    one = xp.ones_like(M)
    reach = M if op == "abs" else abs(v) if op in ("exp", "inv", "sign") else abs(v) + xp.minimum(M, one)
    return v, moved + abs(v), reach + one if op in ("log", "acos", "cos") else reach


EPS = float(np.finfo(float).eps)
Function = Callable[[Any, Array], Array]
_VALUES: dict[str, Function] = {
    name: (lambda xp, a, name=name: getattr(xp, name)(a))  # type: ignore[misc]
    for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "abs", "sign")
} | {"inv": lambda xp, a: 1 / a}
_SLOPES: dict[str, Function] = {
    "sin": lambda xp, a: xp.cos(a),
    "cos": lambda xp, a: xp.sin(a),
    "tan": lambda xp, a: 1 + xp.tan(a) ** 2,
    "asin": lambda xp, a: 1 / xp.sqrt(1 - a**2),
    "acos": lambda xp, a: 1 / xp.sqrt(1 - a**2),
    "atan": lambda xp, a: 1 / (1 + a**2),
    "sinh": lambda xp, a: xp.cosh(a),
    "cosh": lambda xp, a: xp.sinh(a),
    "tanh": lambda xp, a: 1 - xp.tanh(a) ** 2,
    "exp": lambda xp, a: xp.exp(a),
    "log": lambda xp, a: 1 / a,
    "sqrt": lambda xp, a: 0.5 / xp.sqrt(a),
    "abs": lambda xp, a: xp.ones_like(a),
    "sign": lambda xp, a: xp.zeros_like(a),
    "inv": lambda xp, a: 1 / a**2,
}
