"""What a law's graph shows by itself: which variables enter, which equations hang together, which laws are equal."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from lawful.sets.laws.graph import Graph, Sum


class Block(NamedTuple):
    """Outputs that hang together, and the numbers of the relations among them, for each kind."""

    outputs: list[int]
    relations: dict[str, list[int]]


def variables(graph: Graph, root: Sum, kind: str) -> list[int]:
    """The numbers of the variables of this kind ("y" or "x") in an expression."""
    nodes = (graph.nodes[i] for i in graph.reachable(root.terms))
    return sorted(node[1] for node in nodes if node[0] == kind)


def connected(outputs: dict[str, list[list[int]]], n_outputs: int) -> list[Block]:
    """Connected components of the graph in which each relation ties together its outputs."""
    leader = list(range(n_outputs))

    def find(t: int) -> int:
        while leader[t] != t:
            leader[t] = leader[leader[t]]
            t = leader[t]
        return t

    for rows in outputs.values():
        for row in rows:
            for t in row:
                leader[max(find(t), find(row[0]))] = min(find(t), find(row[0]))
    blocks = {t: Block([], {kind: [] for kind in outputs}) for t in range(n_outputs) if find(t) == t}
    for t in range(n_outputs):
        blocks[find(t)].outputs.append(t)
    for kind, rows in outputs.items():
        for p, row in enumerate(rows):
            blocks[find(row[0])].relations[kind].append(p)
    return list(blocks.values())


def restricted(graph: Graph, roots: list[Sum], outputs: list[int]) -> tuple[Graph, list[Sum]]:
    """The same expressions on a graph of their own, in which the outputs are numbered from 0."""
    other, number = Graph(), {t: k for k, t in enumerate(outputs)}
    new: dict[int, int] = {}
    for i in graph.reachable({i for root in roots for i in root.terms}):
        op, *rest = graph.nodes[i]
        if op == "y":
            new[i] = other.node("y", number[rest[0]])
        elif op == "sum":
            new[i] = other.node("sum", rest[0], tuple(sorted((new[j], w) for j, w in rest[1])))
        elif op == "pow":
            new[i] = other.node("pow", new[rest[0]], rest[1])
        elif graph.arguments(graph.nodes[i]):
            new[i] = other.node(op, *(new[j] for j in rest))
        else:
            new[i] = other.node(op, *rest)
    return other, [Sum(root.const, {new[j]: w for j, w in root.terms.items()}) for root in roots]


def fingerprints(graph: Graph, roots: list[Sum]) -> list[bytes]:
    """A short code for each expression, the same for the same expression in another graph."""
    codes: dict[int, bytes] = {}
    for number in graph.reachable({i for root in roots for i in root.terms}):
        node = graph.nodes[number]
        if node[0] == "sum":
            codes[number] = _of_sum(Sum(node[1], dict(node[2])), codes)
        elif graph.arguments(node):
            parts = [codes[i] for i in graph.arguments(node)]
            exponent = [str(node[2]).encode()] if node[0] == "pow" else []
            codes[number] = _code(node[0].encode(), *(sorted(parts) if node[0] == "mul" else parts), *exponent)
        else:
            codes[number] = _code(str(node).encode())
    return [_of_sum(root, codes) for root in roots]


def _of_sum(draft: Sum, codes: dict[int, bytes]) -> bytes:
    terms = sorted(codes[i] + draft.terms[i].hex().encode() for i in draft.terms)
    return _code(b"sum", (draft.const + 0.0).hex().encode(), *terms)


def _code(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"\0".join(parts), digest_size=16).digest()
