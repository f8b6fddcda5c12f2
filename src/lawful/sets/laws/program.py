"""Evaluation of a graph over a batch: a flat list of steps on a table with one row for each value, one column for each point.

Nodes of the same depth and the same kind are one step: forty products of outputs are one multiplication of two (40, m)
blocks, a hundred balances one product with a matrix. Sums choose, by their number of terms, between adding term
by term, a dense and a sparse matrix (see steps.py).

Long batches are cut so that the table stays in the processor's cache.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, device_of, like
from lawful.sets.laws.graph import VARIABLES, Graph, Sum
from lawful.sets.laws.steps import SMALL, Elementwise, Rows, Sums, as_rows, index, take

CELLS, CUT = 2**16, 128  # a batch is cut to so many cells of the table, but not to fewer points
NARROW = 16


class Program:
    """An array (m, *shape) whose entries, counted along a row, are outputs[k] = const + sum of weights times nodes.

    Entries that are not listed are zero; entry mirror[k] is the same as k.
    """

    def __init__(
        self, graph: Graph, outputs: dict[int, Sum], shape: tuple[int, ...], mirror: dict[int, int] | None = None
    ) -> None:
        self.shape, self.width = shape, math.prod(shape)
        self.template = np.zeros(self.width)
        for column, output in outputs.items():
            self.template[[column, (mirror or {}).get(column, column)]] = output.const
        varying = {column: output for column, output in outputs.items() if output.terms}
        schedule = _Schedule(graph, {i for output in varying.values() for i in output.terms})
        self.inputs, self.constants, self.steps, self.rows = schedule.inputs, schedule.constants, schedule.steps, schedule.rows
        ordered = sorted(varying, key=lambda column: (-len(varying[column].terms), column))
        terms = [[(schedule.row[i], w) for i, w in varying[column].terms.items()] for column in ordered]
        self.final = Sums(terms, np.array([varying[column].const for column in ordered])) if terms else None
        self.fixed = np.setdiff1d(np.flatnonzero(self.template), [*ordered, *(mirror[k] for k in ordered if mirror)])
        self.places: list[tuple[Rows, Rows]] = [(as_rows(ordered), slice(0, len(ordered)))]
        other = [k for k, column in enumerate(ordered) if mirror and mirror[column] != column]
        if mirror and other:
            self.places.append((as_rows([mirror[ordered[k]] for k in other]), as_rows(other)))
        self.matrix, self.shifted = self._as_matrix(), bool(self.template.any())

    def _as_matrix(self) -> np.ndarray | None:
        """Where all entries are sums of variables of one kind, and not many are zero: variables @ matrix + template."""
        if self.final is None or self.steps or len(self.inputs) != 1 or len(self.constants):
            return None
        if self.rows * self.width > max(SMALL, 6 * self.final.matrix.nnz):
            return None
        matrix = np.zeros((self.rows, self.width))
        for columns, rows in self.places:
            matrix[:, columns] = self.final.matrix.toarray().T[:, rows]
        return matrix

    def __call__(self, c: Array, X: Array | None, nu: Array | None = None, v: Array | None = None) -> Array:
        """(m, *shape), in the library, type and place of c."""
        given = {"y": c, "x": X, "nu": nu, "v": v}
        if type(c) is np.ndarray:
            return self._numpy(given)
        xp = array_namespace(c)
        if self.final is None:
            return xp.broadcast_to(xp.reshape(like(self.template, c), (1, *self.shape)), (c.shape[0], *self.shape))
        return xp.reshape(self._elsewhere(xp, given), (c.shape[0], *self.shape))

    def uses(self, kind: str) -> bool:
        """Whether variables of this kind ("y", "x", "nu") enter."""
        return any(kind == used for used, _, _ in self.inputs)

    def _numpy(self, given: dict[str, Any]) -> np.ndarray:
        c = given["y"] = given["y"] if given["y"].dtype.kind == "f" else given["y"].astype(float)
        m = c.shape[0]
        if self.final is None:
            return np.broadcast_to(self.template.astype(c.dtype, copy=False).reshape(self.shape), (m, *self.shape))
        if self.matrix is not None:
            kind, columns, _ = self.inputs[0]
            used = given[kind][:, columns]
            if np.isfinite(used).all():
                product = used @ self.matrix.astype(c.dtype, copy=False)
                if self.shifted:
                    product += self.template
                return product.reshape((m, *self.shape))
        out = np.zeros((m, self.width), dtype=c.dtype)
        if self.fixed.size > NARROW:
            out[:] = self.template
        else:
            for column in self.fixed:  # along the batch: numpy's inner loop is then the long one
                out[:, column] = self.template[column]
        cut = max(1, min(m, max(CUT, CELLS // (self.rows + self.final.size))))
        whole = np.empty((self.rows + self.final.size, cut), dtype=c.dtype)
        with np.errstate(all="ignore"):  # log(-1) on the way to a solution is judged by the residual, not by a warning
            for start in range(0, m, cut):
                stop = min(m, start + cut)
                part = whole if stop - start == cut else whole[:, : stop - start]
                table, block = part[: self.rows], part[self.rows :]
                self._fill(table, given, start, stop)
                for step in self.steps:
                    step.numpy(table, table[step.lo : step.hi])
                self.final.numpy(table, block)
                for columns, rows in self.places:
                    _write(out[start:stop], columns, block[rows])
        return out.reshape((m, *self.shape))

    def _fill(self, table: np.ndarray, given: dict[str, Any], start: int, stop: int) -> None:
        row = 0
        for kind, numbers, size in self.inputs:
            table[row : row + size] = given[kind][start:stop].T[numbers]
            row += size
        if len(self.constants):
            table[row : row + len(self.constants)] = self.constants[:, None]

    def _elsewhere(self, xp: Any, given: dict[str, Any]) -> Array:
        """The same with any library of the standard."""
        c = given["y"]
        blocks = [take(xp, xp.matrix_transpose(given[kind]), numbers) for kind, numbers, _ in self.inputs]
        if len(self.constants):
            blocks.append(xp.broadcast_to(like(self.constants, c)[:, None], (len(self.constants), c.shape[0])))
        first = xp.concat(blocks, axis=0)
        rest = xp.zeros((self.rows - first.shape[0], c.shape[0]), dtype=c.dtype, device=device_of(c))
        table = xp.concat([first, rest], axis=0)
        with np.errstate(all="ignore"):
            for step in self.steps:
                table[step.lo : step.hi, :] = step.anywhere(xp, table)
            assert self.final is not None
            block = self.final.anywhere(xp, table)
        whole = xp.broadcast_to(like(self.template, c)[:, None], (self.width, c.shape[0]))
        return xp.matrix_transpose(_put(xp, whole, block, self.places))


class Directions:
    """An array (m, K, T) from a program for the derivatives of K functions in a direction: all T unit vectors, row by row."""

    def __init__(self, graph: Graph, slopes: list[Sum]) -> None:
        self.program = Program(graph, dict(enumerate(slopes)), (len(slopes),))
        self.uses = self.program.uses

    def __call__(self, c: Array, X: Array | None, nu: Array | None = None) -> Array:
        xp = array_namespace(c)
        m, T = c.shape
        unit = xp.eye(T, dtype=c.dtype, device=device_of(c))[None, :, :]

        def spread(values: Array | None) -> Array | None:
            if values is None:
                return None
            return xp.reshape(xp.broadcast_to(values[:, None, :], (m, T, values.shape[1])), (m * T, values.shape[1]))

        v = xp.reshape(xp.broadcast_to(unit, (m, T, T)), (m * T, T))
        flat = self.program(spread(c), spread(X), spread(nu), v)
        return xp.matrix_transpose(xp.reshape(flat, (m, T, flat.shape[1])))


class _Schedule:
    """Rows of the table for all nodes that are needed, and the steps that fill them."""

    def __init__(self, graph: Graph, roots: set[int]) -> None:
        self.exact = graph.exact
        self.tasks: list[tuple[Any, ...]] = []  # (op, *arguments); arguments are numbers of tasks
        self.index: dict[tuple[Any, ...], int] = {}
        self.depth: list[int] = []
        task: dict[int, int] = {}
        for number in graph.reachable(roots):
            task[number] = self._lower(graph.nodes[number], task)
        layers: dict[tuple[int, str], list[int]] = {}
        for k, (op, *_) in enumerate(self.tasks):
            layers.setdefault((self.depth[k], op), []).append(k)
        self.place: dict[int, int] = {}
        self.inputs = [self._place_inputs(layers, kind) for kind in VARIABLES if (0, kind) in layers]
        constants = layers.pop((0, "const"), [])
        self._put(constants)
        self.constants = np.array([self.tasks[k][1] for k in constants])
        self.steps = [self._step(op, layers[depth, op]) for depth, op in sorted(layers) if depth]
        self.rows = len(self.place)
        self.row = {number: self.place[k] for number, k in task.items()}

    def _lower(self, node: tuple[Any, ...], task: dict[int, int]) -> int:
        op = node[0]
        if op in VARIABLES:
            return self._task(0, op, node[1])
        if op == "sum" and not node[2]:
            return self._task(0, "const", node[1])
        if op == "sum":
            terms = tuple((task[i], w) for i, w in node[2])
            return self._task(1 + max(self.depth[k] for k, _ in terms), "sum", node[1], terms)
        if op == "pow":
            return self._whole_power(task[node[1]], node[2])
        return self._nest(op, *(task[i] for i in node[1:]))

    def _whole_power(self, base: int, k: int) -> int:
        """By squaring: y**5 = (y**2)**2 * y."""
        bits = bin(k)[3:]
        result = base
        for bit in bits:
            result = self._nest("mul", result, result)
            if bit == "1":
                result = self._nest("mul", result, base)
        return result

    def _nest(self, op: str, *arguments: int) -> int:
        return self._task(1 + max(self.depth[k] for k in arguments), op, *arguments)

    def _task(self, depth: int, *key: Any) -> int:
        if key not in self.index:
            self.index[key] = len(self.tasks)
            self.tasks.append(key)
            self.depth.append(depth)
        return self.index[key]

    def _put(self, tasks: list[int]) -> int:
        first = len(self.place)
        for k in tasks:
            self.place[k] = len(self.place)
        return first

    def _place_inputs(self, layers: dict[tuple[int, str], list[int]], kind: str) -> tuple[str, Rows, int]:
        tasks = sorted(layers.pop((0, kind)), key=lambda k: self.tasks[k][1])
        self._put(tasks)
        return kind, as_rows([self.tasks[k][1] for k in tasks]), len(tasks)

    def _step(self, op: str, tasks: list[int]) -> Sums | Elementwise:
        if op == "sum":
            tasks.sort(key=lambda k: -len(self.tasks[k][2]))
            terms = [[(self.place[i], w) for i, w in self.tasks[k][2]] for k in tasks]
            lo = self._put(tasks)
            return Sums(terms, np.array([self.tasks[k][1] for k in tasks]), lo)
        tasks.sort(key=lambda k: [self.place[i] for i in self.tasks[k][1:]])
        arguments = [as_rows([self.place[i] for i in column]) for column in zip(*(self.tasks[k][1:] for k in tasks))]
        lo = self._put(tasks)
        return Elementwise(op, arguments, lo, lo + len(tasks), self.exact)


def _write(out: np.ndarray, columns: Rows, block: np.ndarray) -> None:
    """out[:, columns] = block', column by column when there are few."""
    if len(block) > NARROW:
        out[:, columns] = block.T
        return
    numbers = range(columns.start, columns.stop) if isinstance(columns, slice) else columns
    for column, row in zip(numbers, block):
        out[:, column] = row


def _put(xp: Any, whole: Array, block: Array, places: list[tuple[Rows, Rows]]) -> Array:
    """A copy of `whole` with rows replaced: one gather from both, because scatter is not in the standard."""
    source = np.arange(whole.shape[0])
    for columns, rows in places:
        source[columns] = whole.shape[0] + np.arange(block.shape[0])[rows]
    return xp.take(xp.concat([whole, block], axis=0), index(xp, source, block), axis=0)
