r"""Total orders of D items (the paper's DAG(D)), as a set of pair variables.

The outputs are the D(D-1)/2 comparisons c_pq, p < q, in the order (0,1), (0,2), ..., (0,D-1), (1,2), ...: c_pq = +1 says that
p comes before q, -1 that q comes before p. C is the set of those that contradict each other nowhere: the arcs they draw have no
cycle. With ties c_pq = 0 draws no arc, which is the literal DAG(D); without, every pair is decided and an element of C is a
total order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lawful._array import Array, like, to_numpy
from lawful.sets.base import ConstraintSet


def n_items(n_pairs: int, who: str = "Rankings") -> int:
    """D from D(D-1)/2."""
    D = round((1 + (1 + 8 * n_pairs) ** 0.5) / 2)
    if n_pairs < 1 or n_pairs != D * (D - 1) // 2:
        raise ValueError(
            f"{who}: {n_pairs} outputs are not the pairs of any number of items; D items have D(D-1)/2: 1, 3, 6, 10, ..."
        )
    return D


class Rankings(ConstraintSet):
    """Orders of D items over the pair variables c_pq in {-1, +1}; with `ties`, acyclic comparisons in {-1, 0, +1}.

    D is learned from the number of outputs. `pairs()` says which output compares which items.

    >>> import numpy as np
    >>> from lawful import Rankings
    >>> ranks = Rankings().fit(np.array([[1.0, 1.0, 1.0]]))  # pairs (0, 1), (0, 2), (1, 2)
    >>> ranks.contains(np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0]]))  # 0 > 1 > 2 > 0 is a cycle
    array([ True, False])
    """

    def __init__(self, ties: bool = False) -> None:
        self.ties = ties

    def _learn(self, Y: Array) -> None:
        self.n_items_ = n_items(self.n_tasks_)
        Y = to_numpy(Y)
        wrong = ~np.isnan(Y) & ~np.isin(Y, (-1, 0, 1))
        if wrong.any():
            raise ValueError(
                f"Rankings: the outputs are comparisons, but Y contains {Y[wrong][0]:g}; give -1, +1, 0 (tie) or NaN (unknown)"
            )

    def of_items(self, n_items: int) -> Rankings:
        """The set over the pairs of so many items, without a table of outputs to learn the number from."""
        self.n_items_, self.n_tasks_ = n_items, n_items * (n_items - 1) // 2
        return self

    def _check_size(self) -> None:
        if hasattr(self, "location_"):  # else it was told the number of items, and the ranker looks at that
            super()._check_size()
        if self.n_tasks_ != self.n_items_ * (self.n_items_ - 1) // 2:
            raise ValueError(f"Rankings has {self.n_tasks_!r} pairs of {self.n_items_!r} items; fit it again")

    def pairs(self) -> np.ndarray:
        """(T, 2) the items p < q that each output compares."""
        return np.stack(np.triu_indices(self.n_items_, 1), axis=1)

    def encode(self, order: Any) -> np.ndarray:
        """The pair variables (m, T) of orders (m, D) of item numbers, best first; one order gives one row."""
        order = np.atleast_2d(np.asarray(order))
        if order.shape[1] != self.n_items_ or (np.sort(order, axis=1) != np.arange(self.n_items_)).any():
            raise ValueError(
                f"Rankings.encode: a row is not an order of {self.n_items_} items; give the numbers 0 to D-1, once each"
            )
        positions = np.argsort(order, axis=1)
        p, q = self.pairs().T
        return np.where(positions[:, p] < positions[:, q], 1.0, -1.0)

    def residual(self, c: Array) -> Array:
        """(m,) distance of the entries from {-1, +1} (or {-1, 0, 1}); at least 1 when the rounded comparisons have a cycle."""
        values = np.asarray(to_numpy(c), np.float64)
        rounded = np.clip(np.round(values), -1, 1) if self.ties else np.where(values >= 0, 1.0, -1.0)
        off = np.abs(values - rounded).max(axis=1)
        off = np.where(np.isnan(off), np.inf, off)
        p, q = self.pairs().T
        arcs = np.zeros((len(values), self.n_items_, self.n_items_), bool)
        arcs[:, p, q], arcs[:, q, p] = rounded > 0, rounded < 0
        return like(np.where(acyclic(arcs), off, np.maximum(off, 1.0)), c)

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Orders drawn uniformly; with ties each comparison is then forgotten with probability 1/3."""
        rng = check_random_state(random_state)
        orders = np.argsort(rng.uniform(size=(n, self.n_items_)), axis=1)
        c = self.encode(orders) if n else np.empty((0, self.n_tasks_))
        return np.where(rng.uniform(size=c.shape) < 1 / 3, 0.0, c) if self.ties else c


def acyclic(arcs: np.ndarray) -> np.ndarray:
    """(m,) whether each graph of (m, D, D) has no cycle: take away the sources until none is left."""
    alive = np.ones(arcs.shape[:2], bool)
    for _ in range(arcs.shape[1]):
        entered = (arcs & alive[:, :, None]).any(axis=1)
        alive = alive & entered
    return np.asarray(~alive.any(axis=1))
