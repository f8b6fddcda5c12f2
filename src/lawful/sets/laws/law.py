"""From the items of a law, strings or sympy objects, to a compiled system; equal laws are compiled once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from lawful.sets.laws.graph import Graph
from lawful.sets.laws.symbolic import from_sympy
from lawful.sets.parser import Relation, Variable, check_length, parse
from lawful.sets.systems import CompiledSystem


def compile_law(items: Sequence[Any], names: Mapping[str, Variable], n_outputs: int, n_inputs: int) -> CompiledSystem:
    """The system of all relations in `items`. The same strings with the same names give the same object."""
    check_length(items)
    if all(isinstance(item, str) for item in items):
        return _compiled(tuple(items), tuple(names.items()), n_outputs, n_inputs)
    return _compile(items, names, n_outputs, n_inputs)


@lru_cache(maxsize=64)
def _compiled(items: tuple[str, ...], names: tuple[tuple[str, Variable], ...], n_outputs: int, n_inputs: int) -> CompiledSystem:
    return _compile(items, dict(names), n_outputs, n_inputs)


def _compile(items: Sequence[Any], names: Mapping[str, Variable], n_outputs: int, n_inputs: int) -> CompiledSystem:
    graph = Graph()
    relations: list[Relation] = []
    for item in items:
        for expression, kind in parse(item, names, graph) if isinstance(item, str) else [from_sympy(item, names, graph)]:
            if not any(graph.degree[i] for i in expression.terms):
                outputs = ", ".join(f"y{t + 1}" for t in range(n_outputs))
                raise ValueError(f"Equations: {item!s} does not constrain any output; known outputs: {outputs}")
            relations.append((expression, kind))
    if not relations:
        raise ValueError("Equations: the list of equations is empty; give at least one, or use Reals()")
    return CompiledSystem(graph, relations, n_outputs, n_inputs)
