"""The two kinds of steps of a program: a function of blocks of rows of the table, and weighted sums of rows.

Sums are added term by term where there are few; beyond, they are a product with a matrix, dense or sparse. A dense product
would let one value that is not a number spoil its neighbours, so it is used where all values are finite.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lawful._array import Array, device_of, like

FEW_TERMS = 24  # up to so many in all, sums are added term by term
NAMES = {"mul": "multiply", "gmul": "multiply", "div": "divide", "power": "pow"}
NUMPY = {"pow": "power", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"}  # names before numpy 2

Rows = slice | np.ndarray  # of the table


class Elementwise:
    """One function on blocks of rows."""

    def __init__(self, op: str, arguments: list[Rows], lo: int, hi: int) -> None:
        self.op, self.arguments, self.lo, self.hi = op, arguments, lo, hi
        self.name = NAMES.get(op, op)
        self.function: Any = np.reciprocal if op == "inv" else getattr(np, NUMPY.get(self.name, self.name))

    def numpy(self, table: np.ndarray, out: np.ndarray) -> None:
        blocks = [table[rows] for rows in self.arguments]
        if self.op == "atan2":
            blocks = [block + 0.0 for block in blocks]  # -0.0, which no real number is, would turn pi to -pi
        self.function(*blocks, out=out)
        if self.op == "gmul":
            lost = np.isnan(out)
            if lost.any():
                out[lost & ((blocks[0] == 0) | (blocks[1] == 0))] = 0.0

    def anywhere(self, xp: Any, table: Array) -> Array:
        blocks = [take(xp, table, rows) for rows in self.arguments]
        if self.op == "inv":
            return 1.0 / blocks[0]
        if self.op == "atan2":
            return xp.atan2(blocks[0] + 0.0, blocks[1] + 0.0)
        if self.op == "gmul":
            product = blocks[0] * blocks[1]
            lost = xp.isnan(product) & ((blocks[0] == 0) | (blocks[1] == 0))
            return xp.where(lost, xp.zeros_like(product), product)
        return getattr(xp, self.name)(*blocks)


class Sums:
    """Several sums const + sum of weights times rows, the longest first."""

    def __init__(self, terms: list[list[tuple[int, float]]], const: np.ndarray, lo: int = 0) -> None:
        self.size, self.lo, self.hi = len(terms), lo, lo + len(terms)
        self.const = const[:, None] if const.any() else None
        lengths = [len(row) for row in terms]
        count = sum(lengths)
        pointers = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.fromiter((i for row in terms for i, _ in row), dtype=np.intp, count=count)
        weights = np.fromiter((w for row in terms for _, w in row), dtype=float, count=count)
        used, local = np.unique(rows, return_inverse=True)
        self.used = as_rows(used.tolist())
        # The j-th terms of the sums that have so many: these sums come first.
        self.layers: list[tuple[Rows, np.ndarray, Any]] = []
        for j in range(lengths[0] if count <= FEW_TERMS or lengths[0] <= 2 else 0):
            at = pointers[: sum(n > j for n in lengths)] + j
            w = weights[at][:, None]
            plain = np.add if (w == 1.0).all() else np.subtract if (w == -1.0).all() else None  # no need to multiply
            self.layers.append((as_rows(rows[at].tolist()), w, plain))
        self.paired = len(self.layers) > 1 and self.layers[0][2] is np.add and bool(self.layers[1][2])
        self.paired = self.paired and len(self.layers[1][1]) == self.size
        if not self.layers:
            self.matrix = scipy.sparse.csr_array((weights, local, pointers), shape=(self.size, len(used)))
            self.dense = self.matrix.toarray() if self.size * len(used) <= 6 * count else None

    def numpy(self, table: np.ndarray, out: np.ndarray) -> None:
        if self.layers:
            (first, weights, _), *rest = self.layers
            if self.paired:
                second, _, plain = rest.pop(0)
                plain(table[first], table[second], out=out)
            else:
                np.multiply(table[first], weights, out=out)
            for rows, weights, plain in rest:
                part = out[: len(weights)]
                if plain:
                    plain(part, table[rows], out=part)
                else:
                    np.add(part, table[rows] * weights, out=part)
        else:
            block = table[self.used]
            if self.dense is not None and np.isfinite(block).all():
                np.matmul(self.dense, block, out=out, casting="same_kind")
            else:
                out[:] = self.matrix @ block
        if self.const is not None:
            out += self.const

    def anywhere(self, xp: Any, table: Array) -> Array:
        if self.layers:
            blocks = [take(xp, table, rows) * like(weights, table) for rows, weights, _ in self.layers]
            total = blocks[0]
            for block in blocks[1:]:
                k = block.shape[0]
                total = xp.concat([total[:k, :] + block, total[k:, :]], axis=0)
        else:
            total = self._product(xp, take(xp, table, self.used))
        return total if self.const is None else total + like(self.const, table)

    def _product(self, xp: Any, block: Array) -> Array:
        if bool(xp.all(xp.isfinite(block))):
            return like(self.matrix.toarray(), block) @ block
        sums = []
        for p in range(self.size):
            part = slice(self.matrix.indptr[p], self.matrix.indptr[p + 1])
            rows = xp.take(block, index(xp, self.matrix.indices[part], block), axis=0)
            sums.append(xp.sum(rows * like(self.matrix.data[part], block)[:, None], axis=0))
        return xp.stack(sums, axis=0)


def as_rows(numbers: list[int]) -> Rows:
    """A slice where the rows follow each other (no copy is made then), else an index."""
    if numbers and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return slice(numbers[0], numbers[0] + len(numbers))
    return np.array(numbers, dtype=np.intp)


def index(xp: Any, rows: np.ndarray, reference: Array) -> Array:
    return xp.asarray(rows.astype(np.int64), device=device_of(reference))


def take(xp: Any, table: Array, rows: Rows) -> Array:
    return table[rows, :] if isinstance(rows, slice) else xp.take(table, index(xp, rows, table), axis=0)
