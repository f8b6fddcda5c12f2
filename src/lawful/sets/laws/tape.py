"""A law and its derivatives as one list of instructions on numbers, for compiled code.

The table has one row for each output, each multiplier nu, each input that enters, and then one for each instruction, in an
order in which arguments come first. Values, the entries of the Jacobian and those of the Lagrangian's Hessian that are not
always zero are rows of the table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lawful.sets.laws.derivatives import TooLong, hessian, jacobian, lagrangian
from lawful.sets.laws.graph import Graph, Sum

OPS = (
    "sum", "mul", "gmul", "div", "power", "atan2", "pow", "inv", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "exp", "log", "sqrt", "abs", "sign",
)  # fmt: skip
CODE = {name: k for k, name in enumerate(OPS)}
LONGEST = 150_000  # instructions and terms of sums


@dataclass(frozen=True)
class Tape:
    """Instruction k fills row first + k: op[k] of the rows a[k], b[k]; a sum is const[k] + the terms a[k] ... b[k] - 1."""

    op: np.ndarray
    a: np.ndarray
    b: np.ndarray
    const: np.ndarray
    term: np.ndarray  # rows of the terms of sums
    weight: np.ndarray
    first: int
    inputs: np.ndarray  # columns of X that enter, in the rows after outputs and multipliers
    values: np.ndarray  # rows of the relations' values, equalities first
    slopes: np.ndarray  # (entries, 3): relation, output, row
    bends: np.ndarray  # (entries, 3): output t >= output s, row

    @property
    def rows(self) -> int:
        return self.first + len(self.op)


def tape_of(graph: Graph, roots: list[Sum], n_outputs: int) -> Tape | None:
    """The tape of all relations; None where it would be very long."""
    graph = graph.for_derivatives()
    try:
        rows = jacobian(graph, roots)
        entries = hessian(graph, lagrangian(graph, roots))
    except TooLong:
        return None
    wanted = [*roots, *(e for row in rows for e in row.values()), *entries.values()]
    nodes = graph.reachable({i for draft in wanted for i in draft.terms})
    if (
        sum(len(graph.nodes[i][2]) if graph.nodes[i][0] == "sum" else 1 for i in nodes)
        + sum(len(draft.terms) for draft in wanted)
        > LONGEST
    ):
        return None
    writer = _Writer(graph, nodes, n_outputs, len(roots))
    values = [writer.sum(root) for root in roots]
    slopes = [(p, t, writer.sum(e)) for p, row in enumerate(rows) for t, e in sorted(row.items())]
    bends = [(max(t, s), min(t, s), writer.sum(e)) for (t, s), e in sorted(entries.items())]
    return writer.tape(values, slopes, bends)


class _Writer:
    def __init__(self, graph: Graph, nodes: list[int], n_outputs: int, n_relations: int) -> None:
        self.inputs = sorted(graph.nodes[i][1] for i in nodes if graph.nodes[i][0] == "x")
        base = {"y": 0, "nu": n_outputs, "x": n_outputs + n_relations}
        self.first = base["x"] + len(self.inputs)
        self.code: list[tuple[int, int, int, float]] = []
        self.term: list[int] = []
        self.weight: list[float] = []
        self.row: dict[int, int] = {}
        for number in nodes:
            op, *arguments = graph.nodes[number]
            if op in base:
                self.row[number] = base[op] + (self.inputs.index(arguments[0]) if op == "x" else arguments[0])
            elif op == "sum":
                self.row[number] = self.sum(Sum(arguments[0], dict(arguments[1])))
            elif op == "pow":
                self.row[number] = self._write(op, self.row[arguments[0]], arguments[1])
            else:
                self.row[number] = self._write(op, *(self.row[i] for i in arguments))

    def _write(self, op: str, a: int, b: int = 0, const: float = 0.0) -> int:
        self.code.append((CODE[op], a, b, const))
        return self.first + len(self.code) - 1

    def sum(self, draft: Sum) -> int:
        if draft.const == 0.0 and len(draft.terms) == 1:
            ((number, weight),) = draft.terms.items()
            if weight == 1.0:
                return self.row[number]
        begin = len(self.term)
        self.term += [self.row[i] for i in draft.terms]
        self.weight += draft.terms.values()
        return self._write("sum", begin, len(self.term), draft.const)

    def tape(self, values: list[int], slopes: list[tuple[int, int, int]], bends: list[tuple[int, int, int]]) -> Tape:
        op, a, b, const = zip(*self.code) if self.code else ((), (), (), ())
        return Tape(
            np.array(op, dtype=np.int32),
            np.array(a, dtype=np.int32),
            np.array(b, dtype=np.int32),
            np.array(const, dtype=np.float64),
            np.array(self.term, dtype=np.int32),
            np.array(self.weight, dtype=np.float64),
            self.first,
            np.array(self.inputs, dtype=np.int64),
            np.array(values, dtype=np.int32),
            np.array(slopes, dtype=np.int32).reshape(-1, 3),
            np.array(bends, dtype=np.int32).reshape(-1, 3),
        )
