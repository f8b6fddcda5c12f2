"""Derivatives on the graph.

A reverse sweep over the nodes of g, last to first, hands each node's adjoint dg/dnode on to its arguments; what arrives at
the outputs is the gradient, in a few nodes for each node of g, however deep or long the expression is. Adjoints are sums of
nodes themselves, so that constants, zeros and equal parts stay visible: the gradient of an affine equation is a row of
numbers, and that of a bilinear one a row of sums of outputs.

    Jacobian     one sweep for each relation
    Hessian      of the Lagrangian sum_p nu_p g_p: one sweep from all relations at once, started with nu_p, gives its gradient,
                 and one sweep for each of that gradient's entries a row; only the upper half is computed

Where many relations share much, or everything depends on everything, that would be long: after `BUDGET` steps it is given up
for one forward sweep, the derivative in a direction v, which is then evaluated for all T unit vectors v.

At kinks and borders: |u|' = sign(u), sign' = 0; sqrt'(0), log'(0), asin'(1), ... are infinite, but a product of adjoints in
which the other factor is 0 counts as 0 (the derivative of sqrt(y1**2 + y2**2) at 0 is 0, one of its subgradients).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable

from lawful.sets.laws.graph import Draft, Graph, Product, Sum

BUDGET = 200_000  # steps of reverse sweeps (a term of a sum is one, any other node FACTOR of them): tenths of a second
FACTOR = 10
SOME = 8  # sweeps after which the cost of all of them is foretold

Gradient = dict[int, Sum]  # output t -> derivative, absent where it is zero


class TooLong(Exception):
    """The budget of steps is used up."""


class Reverse:
    """Reverse sweeps over a graph, until the budget is used up."""

    def __init__(self, graph: Graph, budget: float) -> None:
        self.graph, self.budget = graph, budget

    def expect(self, done: int, of: int) -> None:
        """Give up early: where the first sweeps foretell that all of them together are far beyond the budget."""
        if done == SOME and (BUDGET - self.budget) / done * of > 2 * BUDGET:
            raise TooLong

    def gradient(self, seeds: dict[int, Sum], first: int = 0) -> Gradient:
        """d/dy_t, for t >= first, of the sum over the seeds {node: adjoint} of adjoint * node."""
        graph = self.graph
        adjoints = {i: a.copy() for i, a in seeds.items() if graph.degree[i]}
        queue = [-i for i in adjoints]
        heapq.heapify(queue)
        found: Gradient = {}

        def adjoint_of(child: int) -> Sum:
            if child not in adjoints:
                adjoints[child] = Sum()
                heapq.heappush(queue, -child)
            return adjoints[child]

        while queue:
            number = -heapq.heappop(queue)
            adjoint, node = adjoints.pop(number), graph.nodes[number]
            self.budget -= len(node[2]) if node[0] == "sum" else FACTOR
            if self.budget < 0:
                raise TooLong
            if adjoint.const == 0.0 and not adjoint.terms:
                continue
            if node[0] == "y":
                if node[1] >= first:
                    found[node[1]] = adjoint
                continue
            adjoint = _short(graph, adjoint)
            if node[0] != "sum":
                for child, partial in partials(graph, number):
                    if graph.degree[child]:
                        graph.add(adjoint_of(child), graph.multiply(adjoint.copy(), partial))
                continue
            term, times = next(iter(adjoint.terms.items()), (-1, 0.0))
            for child, weight in node[2]:  # written out: long sums are most of the work
                if not graph.degree[child]:
                    continue
                share = adjoint_of(child)
                if term < 0:
                    share.const += weight * adjoint.const
                    continue
                total = share.terms.get(term, 0.0) + weight * times
                if total == 0.0 and graph.total[term]:
                    share.terms.pop(term, None)
                else:
                    share.terms[term] = total
        return found


def jacobian(graph: Graph, roots: list[Sum]) -> list[Gradient]:
    """The gradient of each relation."""
    reverse, found = Reverse(graph, BUDGET), []
    for root in roots:
        found.append(reverse.gradient({i: Sum(w) for i, w in root.terms.items()}))
        reverse.expect(len(found), len(roots))
    return found


def lagrangian(graph: Graph, roots: list[Sum]) -> Gradient:
    """The gradient of sum_p nu_p g_p, without the parts that are affine in the outputs."""
    seeds: dict[int, Sum] = {}
    for p, root in enumerate(roots):
        for i, weight in root.terms.items():
            if graph.degree[i] > 1:
                seeds[i] = graph.add(seeds.get(i, Sum()), graph.variable("nu", p), weight)
    return Reverse(graph, math.inf).gradient(seeds)


def hessian(graph: Graph, slopes: Gradient) -> dict[tuple[int, int], Sum]:
    """Upper half, t <= s, of the derivatives of the slopes; entries that are always zero are absent."""
    reverse, entries = Reverse(graph, BUDGET), {}
    for done, (t, slope) in enumerate(slopes.items(), start=1):
        row = reverse.gradient({i: Sum(w) for i, w in slope.terms.items()}, first=t)
        entries.update({(t, s): entry for s, entry in row.items()})
        reverse.expect(done, len(slopes))
    return entries


def directional(graph: Graph, roots: list[Sum]) -> list[Sum]:
    """The derivatives of the roots in the direction of the variables ("v", t), by one forward sweep."""
    tangents: dict[int, Sum] = {}
    for number in graph.reachable({i for root in roots for i in root.terms}):
        node = graph.nodes[number]
        if not graph.degree[number]:
            continue
        tangent = Sum()
        if node[0] == "y":
            tangent = graph.variable("v", node[1])
        elif node[0] == "sum":
            tangent = _combined(graph, tangents, node[2])
        else:
            for child, partial in partials(graph, number):
                if child in tangents:
                    tangent = graph.add(tangent, graph.multiply(tangents[child].copy(), partial))
        tangents[number] = _short(graph, tangent)
    return [_combined(graph, tangents, root.terms.items()) for root in roots]


def _combined(graph: Graph, drafts: dict[int, Sum], weights: Iterable[tuple[int, float]]) -> Sum:
    """sum_i weight_i draft_i over those there are; written out, as they mostly have one term each."""
    found, total = Sum(), graph.total
    for number, weight in weights:
        draft = drafts.get(number)
        if draft is None:
            continue
        if draft.const != 0.0 or len(draft.terms) != 1:
            found = graph.add(found, draft, weight)
            continue
        ((i, w),) = draft.terms.items()
        new = found.terms.get(i, 0.0) + weight * w
        if new == 0.0 and total[i]:
            found.terms.pop(i, None)
        else:
            found.terms[i] = graph.real(new)
    return found


def _short(graph: Graph, draft: Sum) -> Sum:
    """The same as at most one term, whatever its length."""
    return draft if len(draft.terms) + (draft.const != 0.0) <= 1 else Sum(0.0, {graph.freeze(draft): 1.0})


def partials(graph: Graph, number: int) -> list[tuple[int, Draft]]:
    """The arguments of a node with its derivatives in them."""
    op, *arguments = graph.nodes[number]
    u = arguments[0]
    if op in ("mul", "gmul"):
        v = arguments[1]
        return [(u, _node(v)), (v, _node(u))]
    if op == "pow":
        k = arguments[1]
        return [(u, Product(float(k), [u if k == 2 else graph.node("pow", u, k - 1)]))]
    if op == "div":
        v = arguments[1]
        return [(u, graph.divide(Sum(1.0), _node(v))), (v, graph.scale(graph.divide(_node(number), _node(v)), -1.0))]
    if op == "power":
        return _power(graph, number, u, arguments[1])
    if op == "atan2":
        v = arguments[1]
        square = graph.add(graph.power(_node(u), Sum(2.0)), graph.power(_node(v), Sum(2.0)))
        return [
            (u, graph.divide(_node(v), square.copy())),
            (v, graph.scale(graph.divide(_node(u), square), -1.0)),
        ]
    return [(u, FUNCTIONS[op](graph, _node(u), _node(number)))] if op in FUNCTIONS else []


def _node(number: int) -> Sum:
    return Sum(0.0, {number: 1.0})


def _power(graph: Graph, number: int, base: int, exponent: int) -> list[tuple[int, Draft]]:
    """u**v: v u**(v - 1) and u**v log(u)."""
    lower = graph.add(_value(graph, exponent), Sum(-1.0))
    in_base = graph.multiply(_value(graph, exponent), graph.power(_value(graph, base), lower))
    if not graph.degree[exponent]:
        return [(base, in_base)]
    return [(base, in_base), (exponent, graph.multiply(_node(number), graph.apply("log", _value(graph, base))))]


def _value(graph: Graph, number: int) -> Sum:
    """A node as a draft; a constant as a number."""
    node = graph.nodes[number]
    return Sum(node[1], dict(node[2])) if node[0] == "sum" else _node(number)


def _one_minus_square(graph: Graph, u: Draft) -> Sum:
    return graph.add(Sum(1.0), graph.power(u, Sum(2.0)), -1.0)


def _inverse_root(graph: Graph, u: Draft) -> Draft:
    return graph.divide(Sum(1.0), graph.apply("sqrt", _one_minus_square(graph, u)))


# Derivatives of the functions of one argument u, with value f.
FUNCTIONS: dict[str, Callable[[Graph, Draft, Draft], Draft]] = {
    "sin": lambda g, u, f: g.apply("cos", u),
    "cos": lambda g, u, f: g.scale(g.apply("sin", u), -1.0),
    "tan": lambda g, u, f: g.add(Sum(1.0), g.power(f, Sum(2.0))),
    "asin": lambda g, u, f: _inverse_root(g, u),
    "acos": lambda g, u, f: g.scale(_inverse_root(g, u), -1.0),
    "atan": lambda g, u, f: g.divide(Sum(1.0), g.add(Sum(1.0), g.power(u, Sum(2.0)))),
    "sinh": lambda g, u, f: g.apply("cosh", u),
    "cosh": lambda g, u, f: g.apply("sinh", u),
    "tanh": lambda g, u, f: _one_minus_square(g, f),
    "exp": lambda g, u, f: f,
    "log": lambda g, u, f: g.divide(Sum(1.0), u),
    "sqrt": lambda g, u, f: g.divide(Sum(0.5), f),
    "abs": lambda g, u, f: g.apply("sign", u),
    "inv": lambda g, u, f: g.scale(g.power(f, Sum(2.0)), -1.0),
}
