"""The two kinds of steps of a program: a function of blocks of rows of the table, and weighted sums of rows.

Sums are added term by term where there are few; beyond, they are a product with a matrix, dense or sparse. A dense product
would let one value that is not a number spoil its neighbours, so it is used where all values are finite.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from lawful._array import Array, device_of, like

FEW_TERMS = 24  # up to so many in all, sums are added term by term
SMALL, LARGE = 2048, 2**22  # a matrix of fewer entries is dense even if it has zeros; one of more is never made dense
NAMES = {"mul": "multiply", "gmul": "multiply", "div": "divide", "power": "pow"}
NUMPY = {"pow": "power", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"}  # names before numpy 2

Rows = slice | np.ndarray  # of the table


POLES = {  # where a function has none, though floating point gives it an infinite value there
    "div": lambda a, b: b == 0,
    "inv": lambda a: a == 0,
    "log": lambda a: a == 0,
    "power": lambda a, b: (a == 0) & (b < 0),
}


class Elementwise:
    """One function on blocks of rows; with `exact` (a law, not its derivatives) it does not exist at its poles."""

    def __init__(self, op: str, arguments: list[Rows], lo: int, hi: int, exact: bool = False) -> None:
        self.op, self.arguments, self.lo, self.hi = op, arguments, lo, hi
        self.pole: Any = POLES.get(op) if exact else None
        self.name = NAMES.get(op, op)
        self.function: Any = np.reciprocal if op == "inv" else getattr(np, NUMPY.get(self.name, self.name))

    def numpy(self, table: np.ndarray, out: np.ndarray) -> None:
        blocks = [table[rows] for rows in self.arguments]
        if self.op == "atan2":
            blocks = [block + 0.0 for block in blocks]  # -0.0, which no real number is, would turn pi to -pi
        self.function(*blocks, out=out)
        if self.pole is not None:
            at = self.pole(*blocks)
            if at.any():
                out[at] = np.nan
        if self.op == "gmul":
            lost = np.isnan(out)
            if lost.any():
                out[lost & ((blocks[0] == 0) | (blocks[1] == 0))] = 0.0

    def anywhere(self, xp: Any, table: Array) -> Array:
        blocks = [take(xp, table, rows) for rows in self.arguments]
        value = self._value(xp, blocks)
        return value if self.pole is None else xp.where(self.pole(*blocks), xp.full_like(value, xp.nan), value)

    def _value(self, xp: Any, blocks: list[Array]) -> Array:
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
        self.lengths = np.array([len(row) for row in terms])
        count = int(self.lengths.sum())
        rows = np.fromiter((i for row in terms for i, _ in row), dtype=np.intp, count=count)
        weights = np.fromiter((w for row in terms for _, w in row), dtype=float, count=count)
        used, local = np.unique(rows, return_inverse=True)
        self.used = as_rows(used.tolist())
        self.matrix = scipy.sparse.csr_array(
            (weights, local, np.concatenate([[0], np.cumsum(self.lengths)])), shape=(self.size, len(used))
        )
        self.short = count <= FEW_TERMS
        small = self.size * len(used) <= max(SMALL, 6 * count)
        self.dense = self.matrix.toarray() if small and not self.short else None

    @cached_property
    def layers(self) -> list[tuple[Rows, np.ndarray, Any]]:
        """The j-th terms, j = 0, 1, ..., of those sums that have so many: (rows, weights, np.add if the weights are 1)."""
        layers: list[tuple[Rows, np.ndarray, Any]] = []
        rows = np.arange(self.used.start, self.used.stop) if isinstance(self.used, slice) else self.used
        for j in range(self.lengths[0]):
            at = self.matrix.indptr[:-1][self.lengths > j] + j
            w = self.matrix.data[at][:, None]
            plain = np.add if (w == 1.0).all() else np.subtract if (w == -1.0).all() else None
            layers.append((as_rows(rows[self.matrix.indices[at]].tolist()), w, plain))
        return layers

    @cached_property
    def paired(self) -> bool:
        """Whether the first two layers are plain and equally long: one addition then, no copy."""
        if len(self.layers) < 2 or self.layers[0][2] is not np.add:
            return False
        return self.layers[1][2] is not None and len(self.layers[1][1]) == self.size

    def numpy(self, table: np.ndarray, out: np.ndarray) -> None:
        if self.short:
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
        block = None if self.short or self.size * self.matrix.shape[1] > LARGE else take(xp, table, self.used)
        if block is not None and bool(xp.all(xp.isfinite(block))):
            total = like(self.matrix.toarray(), table) @ block
        else:
            blocks = [take(xp, table, rows) * like(weights, table) for rows, weights, _ in self.layers]
            total = blocks[0]
            for block in blocks[1:]:
                k = block.shape[0]
                total = xp.concat([total[:k, :] + block, total[k:, :]], axis=0)
        return total if self.const is None else total + like(self.const, table)


def as_rows(numbers: list[int]) -> Rows:
    """A slice where the rows follow each other (no copy is made then), else an index."""
    if numbers and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return slice(numbers[0], numbers[0] + len(numbers))
    return np.array(numbers, dtype=np.intp)


def index(xp: Any, rows: np.ndarray, reference: Array) -> Array:
    return xp.asarray(rows.astype(np.int64), device=device_of(reference))


def take(xp: Any, table: Array, rows: Rows) -> Array:
    return table[rows, :] if isinstance(rows, slice) else xp.take(table, index(xp, rows, table), axis=0)
