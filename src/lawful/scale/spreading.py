"""The second pass over a table: sums of kernel values, made where the rows are, and added up in a tree.

What a `NystromRidge` needs of n rows are K'WK, K'WZ and Z'WZ on M centres (`lawful.surrogates.statistics`). Centres and kernel
go to every worker once; a worker turns a partition into its sums, 8 M^2 bytes whatever the partition is; sums meet in a tree.
A partition of b rows costs b M^2 operations and sends 8 M^2 bytes: from some ten thousand rows on, traffic is nothing.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from lawful._memory import in_words
from lawful.scale.graphs import FAN, computed, dask, shared, tree
from lawful.scale.looking import Look
from lawful.scale.tables import WHO, Form, Table, read
from lawful.surrogates.blocks import Host
from lawful.surrogates.engine import Engine
from lawful.surrogates.statistics import Statistics, accumulate, layers, places_of
from lawful.tasks import Tasks

__all__ = ["Spread", "alone", "require_room"]


@dataclass
class _Recipe:
    """All that a worker needs to know beside its rows."""

    form: Form
    engine: Engine
    loss: Any
    bases: list[np.ndarray] | None
    groups: list[list[int]]
    most: int


@dataclass(frozen=True)
class Spread:
    """All rows of a table, as `Tasks.elsewhere` of a sample of them."""

    table: Table
    known: Look
    loss: Any = None

    @property
    def n_seen(self) -> int:
        return self.known.n_seen

    @property
    def counts(self) -> np.ndarray:
        """(T,) observations."""
        return self.known.counts

    @property
    def weights(self) -> np.ndarray:
        """(T,) their weights."""
        return self.known.weights

    def encoded(self, loss: Any, atoms: list[Any]) -> Spread:
        if any(a is not None for a in atoms):
            raise ValueError(
                f"{WHO} needs a loss whose encoding does not depend on the labels, and {loss!r} has atoms; Square() would do"
            )
        return replace(self, loss=loss)

    def sums(self, engine: Engine, bases: list[np.ndarray] | None) -> Statistics:
        """The statistics of all rows; `bases` are taken off their encoded labels."""
        require_room(engine, self.known.cells)
        recipe = shared(_Recipe(self.table.form, alone(engine), self.loss, bases, self.known.groups, self.known.most))
        part = dask().delayed(_sums_of)
        return computed(tree([part(i, *xyw, recipe) for i, xyw in enumerate(self.table.parts)], _added))


def _sums_of(at: int, x: Any, y: Any, w: Any, recipe: _Recipe) -> Statistics:
    """The statistics of one partition."""
    rows, engine = read(at, x, y, w, recipe.form), recipe.engine
    seen = rows.W.any(axis=1)
    X, Y, W = (rows.X, rows.Y, rows.W) if seen.all() else (rows.X[seen], rows.Y[seen], rows.W[seen])
    tasks = Tasks.of(X, Y, W if len(W) else None, empty=True)
    if recipe.loss is not None:
        tasks = tasks.encoded(recipe.loss)
    Z = tasks.Z if recipe.bases is None else [z - base[None, :] for z, base in zip(tasks.Z, recipe.bases)]
    plan = layers(tasks, None, recipe.most, recipe.groups)
    return accumulate(engine.blocks, X, Z, plan, places_of(tasks), engine.size)


def _added(parts: list[Statistics]) -> Statistics:
    return reduce(Statistics.plus, parts)


def alone(engine: Engine) -> Engine:
    """The same for a worker, whose other threads have work of their own; without what it can make again."""
    where = Host(engine.dtype)
    where.threads = 1
    same = copy(engine)
    same.where, same.blocks, same._whitening = where, copy(engine.blocks), None
    same.blocks.where = where
    same._double = same.blocks if engine.dtype == "float64" else None
    return same


def require_room(engine: Engine, cells: int) -> None:
    """A `MemoryError` before the work begins, where the limit of a worker (of the first few) is below what sums alone take."""
    try:
        workers = dask().distributed.get_client().scheduler_info()["workers"].values()
    except ValueError:  # no client: threads of this process, for which the engine has asked
        return
    limits = [worker["memory_limit"] / max(worker["nthreads"], 1) for worker in workers if worker["memory_limit"]]
    needed = 8.0 * engine.M * (engine.M * cells * (FAN + 1) + engine.size)
    if limits and needed > min(limits):
        raise MemoryError(
            f"{WHO}: {FAN + 1} times {cells} Gram matrices of {engine.M} centres and a block of kernel values need about "
            f"{in_words(needed)} for each thread of a worker, which may take {in_words(min(limits))}; fewer n_centers, a "
            "smaller block_size or larger workers would do"
        )
