"""Sufficient statistics of ridges on M features: sums over rows, which add up over blocks, batches and machines.

For tasks observed on the same rows with the same weights w, with B = [1, Z] the constant and the encoded labels,

    gram = Psi' W Psi (M, M)        cross = Psi' W B (M, 1 + k)        own = B' W B (1 + k, 1 + k)

are all that a ridge needs of the data, for every lambda. The rows are never held at once: a block of kernel values is made,
summed and forgotten.

Tasks with gaps share kernel values, and sums where they can. A *cell* is a set of tasks on rows of theirs; every observed label
is in one cell, and the statistics of a task are the sum of those of its cells. Where few patterns of gaps occur (sensors that
come and go), rows with the same pattern are a cell, and every row enters one Gram matrix whatever T is. Where gaps are
scattered, the tasks with the same rows are a cell: a Gram matrix for each, from the same kernel values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tqdm import tqdm

from lawful._array import Array, to_numpy
from lawful.surrogates.blocks import Blocks, Host, Torch, slices
from lawful.tasks import Tasks

__all__ = ["Cell", "Layer", "Statistics", "accumulate", "layers", "take"]

PATTERNS = 16  # so many Gram matrices are worth their memory where each row then enters only one
BLOCK = 2**26  # bytes of kernel values at a time on the host: more gains nothing
DEVICE_BLOCK = 2**31  # on a device

Key = tuple[int, ...]


@dataclass
class Cell:
    """Sums over the rows of some tasks. The lower triangle of `gram` is what counts."""

    gram: Any
    cross: Any
    own: Any

    def plus(self, other: Cell) -> Cell:
        return Cell(self.gram + other.gram, self.cross + other.cross, self.own + other.own)

    def minus(self) -> Cell:
        return Cell(-self.gram, -self.cross, -self.own)


@dataclass
class Layer:
    """Rows of X (None: all), and the cells that they go to, each with the weights of these rows (None: all 1)."""

    rows: np.ndarray | None
    cells: list[tuple[Key, np.ndarray | None]]


class Statistics:
    """Cells by their tasks. `widths`: columns of Z of each task."""

    def __init__(self, M: int, widths: list[int]) -> None:
        self.M, self.widths = M, widths
        self.cells: dict[Key, Cell] = {}

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and skops, whose keys are words."""
        return vars(self) | {"cells": list(self.cells.items())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, cells=dict(state["cells"]))

    def add(self, key: Key, cell: Cell) -> None:
        self.cells[key] = self.cells[key].plus(cell) if key in self.cells else cell

    def plus(self, other: Statistics) -> Statistics:
        out = Statistics(self.M, self.widths)
        for part in (self, other):
            for key, cell in part.cells.items():
                out.add(key, cell)
        return out

    def without(self, other: Statistics) -> Statistics:
        """The sums of the rows that are in these and not in the others; a cell of the others need not be one of these."""
        negative = Statistics(self.M, self.widths)
        negative.cells = {key: cell.minus() for key, cell in other.cells.items()}
        return self.plus(negative)

    def groups(self) -> list[list[int]]:
        """Tasks that are in the same cells: one factorisation serves them."""
        found: dict[tuple[Key, ...], list[int]] = {}
        for t in range(len(self.widths)):
            found.setdefault(tuple(sorted(key for key in self.cells if t in key)), []).append(t)
        return list(found.values())

    def of(self, tasks: list[int]) -> Cell:
        """The sums of tasks that are in the same cells."""
        total: Cell | None = None
        for key, cell in self.cells.items():
            if tasks[0] not in key:
                continue
            starts = dict(zip(key, np.cumsum([1] + [self.widths[t] for t in key]).tolist()))
            at = [0] + [starts[t] + j for t in tasks for j in range(self.widths[t])]
            part = Cell(cell.gram, cell.cross[:, at], cell.own[at][:, at])
            total = part if total is None else total.plus(part)
        assert total is not None
        return total


def layers(
    tasks: Tasks, rows: np.ndarray | None = None, most: int = PATTERNS, groups: list[list[int]] | None = None
) -> list[Layer]:
    """How the rows are dealt to cells; of all rows, or of those chosen (in order, none twice).

    `most` is the number of Gram matrices that there is room for. `groups`: tasks with the same rows, where these rows are but a
    part of all: parts that are to be added are dealt alike, by patterns where there are at most `most`, else by these groups.
    """
    most = max(most, len(tasks.groups())) if groups is None else most
    groups = tasks.groups() if groups is None else groups
    n = tasks.n_rows
    chosen = None if rows is None else np.isin(np.arange(n), rows)
    if len(groups) == 1:
        seen = to_numpy(tasks.rows[0])
        weights = to_numpy(tasks.weights[0])
        if chosen is not None:
            seen, weights = seen[chosen[seen]], weights[chosen[seen]]
        whole = len(seen) == n
        return [Layer(None if whole else seen, [(tuple(groups[0]), None if np.all(weights == 1) else weights)])]
    table = np.zeros((n, len(groups)))
    for g, group in enumerate(groups):
        table[to_numpy(tasks.rows[group[0]]), g] = to_numpy(tasks.weights[group[0]])
    if chosen is not None:
        table[~chosen] = 0.0
    seen = np.flatnonzero(table.any(axis=1))
    table = table[seen]
    largest = table.max(axis=1)
    if np.all((table == 0) | (table == largest[:, None])):
        patterns, which = np.unique(np.packbits(table > 0, axis=1), axis=0, return_inverse=True)
        if len(patterns) <= most:
            out = []
            for k in range(len(patterns)):
                own = np.flatnonzero(which.reshape(-1) == k)
                key = tuple(sorted(t for g, group in enumerate(groups) if table[own[0], g] > 0 for t in group))
                weights = largest[own]
                out.append(Layer(seen[own], [(key, None if np.all(weights == 1) else weights)]))
            return out
    cells = [(tuple(group), table[:, g]) for g, group in enumerate(groups)]
    return [Layer(seen, [(key, weights) for key, weights in cells if weights.any()])]


def take(X: Array, rows: Any, where: Host | Torch) -> Array:
    """Rows of X for the hardware; a slice of an array costs nothing."""
    if isinstance(rows, slice) or not hasattr(X, "device") or isinstance(X, np.ndarray):
        return X[rows]
    return X[where.torch.as_tensor(rows, device=X.device)] if where.torch is not None else X[rows]


def accumulate(
    blocks: Blocks, X: Array, Z: list[Array], plan: list[Layer], places: list[np.ndarray], size: int, bar: tqdm | None = None
) -> Statistics:
    """The statistics of the rows of `plan`. places[t] (n,): the place of each row of X among those of task t."""
    where, widths = blocks.where, [z.shape[1] for z in Z]
    out = Statistics(blocks.M, widths)
    values = [to_numpy(z) for z in Z]
    for layer in plan:
        n = X.shape[0] if layer.rows is None else len(layer.rows)
        sums = {key: _zero_cell(blocks, key, widths) for key, _ in layer.cells}
        buffer = where.empty(min(size, max(n, 1)), blocks.M)
        for part in slices(n, size):
            rows = part if layer.rows is None else layer.rows[part]
            K = buffer[: part.stop - part.start]
            only = layer.cells[0][1] if len(layer.cells) == 1 else None
            root = None if only is None else np.sqrt(only[part])
            blocks.fill(take(X, rows, where), K, root)
            for key, weights in layer.cells:
                _add(sums[key], K, weights, part, rows, root, _labels(key, rows, values, places, widths), where)
            if bar is not None:
                bar.update(part.stop - part.start)
        for key, cell in sums.items():
            out.add(key, cell)
    return out


def _zero_cell(blocks: Blocks, key: Key, widths: list[int]) -> Cell:
    q = 1 + sum(widths[t] for t in key)
    return Cell(blocks.where.zeros(blocks.M, blocks.M), blocks.where.zeros(blocks.M, q), np.zeros((q, q)))


def _labels(key: Key, rows: Any, values: list[np.ndarray], places: list[np.ndarray], widths: list[int]) -> Any:
    """[1, Z] of the tasks of a cell, given a mask of its rows: what is not observed is never looked at."""

    def of(mask: Any) -> np.ndarray:
        columns = [values[t][places[t][rows][mask]] for t in key]
        return np.concatenate([np.ones((len(columns[0]), 1)), *columns], axis=1)

    return of


def _add(
    cell: Cell, K: Array, weights: np.ndarray | None, part: slice, rows: Any, root: np.ndarray | None, labels: Any, where: Any
) -> None:
    """One block into one cell. K is scaled by `root` already where this is the only cell."""
    mask: Any = slice(None)
    if weights is not None and root is None:
        w = weights[part]
        mask = np.flatnonzero(w > 0)
        if not mask.size:
            return
        root = np.sqrt(w[mask])
        K = K[mask] if where.torch is None else K[where.torch.as_tensor(mask, device=K.device)]
        K *= where.array(root)[:, None]
    B = labels(mask)
    B = B if root is None else B * root[:, None]
    where.gram(K, cell.gram)
    right = where.array(B)
    cell.cross += K.T @ right
    cell.own += B.T @ B


def places_of(tasks: Tasks) -> list[np.ndarray]:
    """For each task the place of every row of X among its own; tasks on the same rows share the array."""
    made: dict[bytes, np.ndarray] = {}
    out = []
    for r in tasks.rows:
        rows = to_numpy(r)
        key = rows.tobytes()
        if key not in made:
            made[key] = np.zeros(tasks.n_rows, dtype=np.intp)
            made[key][rows] = np.arange(len(rows))
        out.append(made[key])
    return out
