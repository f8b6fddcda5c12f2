r"""Orders for anyone with a weight matrix: minimum feedback arc set and linear ordering.

W[p, q] is the weight of the arc p -> q. An order of the items cuts the arcs into those that point forward and the feedback arcs
that point back; without the latter no cycle is left. Minimising their weight and maximising the weight above the diagonal
are the same problem, NP-hard. Both functions return an order with a bound on what is possible, so that you know how far from
the best it can be.

>>> from lawful.rankings import linear_ordering
>>> linear_ordering([[0, 3, 1], [1, 0, 4], [2, 0, 0]]).order.tolist()
[0, 1, 2]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from lawful.decoders.orders import Ordering, check_matrix, order, rescaled

__all__ = ["FeedbackArcSet", "LinearOrdering", "Ordering", "linear_ordering", "minimum_feedback_arc_set", "order"]

KICKS, FEW = 20, 500  # steps of iterated local search per item when there is no time limit, for up to FEW items


@dataclass(frozen=True)
class FeedbackArcSet:
    """arcs (k, 2): from, to; without them the graph has no cycle and `order` is a topological order of the rest.

    weight: of the arcs together; bound: no feedback arc set weighs less; gap: (weight - bound) / weight; status: "optimal",
    "heuristic" or "time_limit"; method and bound_method: how order and bound were found.

    >>> from lawful.rankings import minimum_feedback_arc_set
    >>> found = minimum_feedback_arc_set([[0, 3, 0], [0, 0, 2], [1, 0, 0]])
    >>> found.arcs.tolist(), found.weight, found.bound
    ([[2, 0]], 1.0, 1.0)
    """

    arcs: np.ndarray
    order: np.ndarray
    weight: float
    bound: float
    gap: float
    status: str
    method: str
    bound_method: str


@dataclass(frozen=True)
class LinearOrdering:
    """order: item numbers, first to last; value: sum of W above the diagonal in that order; bound: no order reaches more.

    gap: (bound - value) / |value|; status: "optimal", "heuristic" or "time_limit"; method, bound_method: how they were found.

    >>> from lawful.rankings import linear_ordering
    >>> found = linear_ordering([[0, 3, 1], [1, 0, 4], [2, 0, 0]])
    >>> found.value, found.bound
    (8.0, 8.0)
    """

    order: np.ndarray
    value: float
    bound: float
    gap: float
    status: str
    method: str
    bound_method: str


def _dense(W: Any, name: str) -> tuple[np.ndarray, float]:
    """W in units of `unit`, which is 1 unless its entries are too large to be added up, or too small."""
    W = check_matrix(W.toarray() if issparse(W) else W, name).astype(np.float64)
    if not np.isfinite(W).all():
        raise ValueError(f"{name}: the matrix contains NaN or infinities; give 0 where there is no arc")
    W, _, unit = rescaled(W, float(np.abs(W).max()))
    return W, unit


def _solve(W: np.ndarray, method: str, time_limit: float | None, random_state: Any, bound: bool | str) -> Ordering:
    kicks = KICKS * len(W) if len(W) <= FEW else 0
    A = (W - W.T) / 2
    return order(A, method, time_limit=time_limit, random_state=random_state, bound=bound, kicks=kicks)


def minimum_feedback_arc_set(
    W: Any,
    method: str = "insertion",
    *,
    time_limit: float | None = None,
    random_state: Any = None,
    bound: bool | str = True,
) -> FeedbackArcSet:
    """Arcs of small total weight whose removal leaves no cycle.

    W: (D, D) non-negative weights, dense or scipy sparse; 0 means no arc. A loop p -> p is always a feedback arc.
    method: "insertion" (local search), "exact" (integer programme, about 60 items), "eades", "borda"; the other parameters are
    those of `lawful.decoders.orders.order`.

    >>> from lawful.rankings import minimum_feedback_arc_set
    >>> minimum_feedback_arc_set([[0, 3, 0], [0, 0, 2], [1, 0, 0]]).order.tolist()
    [0, 1, 2]
    """
    name = "minimum_feedback_arc_set"
    W, unit = _dense(W, name)
    if (W < 0).any():
        p, q = np.argwhere(W < 0)[0]
        raise ValueError(
            f"{name}: the weight of the arc {p} -> {q} is {unit * W[p, q]:g}; removing arcs of negative weight always pays. "
            "Give non-negative weights: an arc p -> q of weight -w is an arc q -> p of weight w; linear_ordering takes any sign"
        )
    found = _solve(W, method, time_limit, random_state, bound)
    place = np.argsort(found.order)
    p, q = np.nonzero(W)
    back = place[p] >= place[q]
    weight = float(W[p[back], q[back]].sum())
    # Of two opposite arcs the lighter goes in any case; the difference of the two is what the order decides.
    unavoidable = float(np.triu(np.minimum(W, W.T)).sum())
    limit = weight if found.status == "optimal" else min(unavoidable + 2 * found.bound, weight)
    return FeedbackArcSet(
        arcs=np.stack([p[back], q[back]], axis=1),
        order=found.order,
        weight=unit * weight,
        bound=unit * limit,
        gap=(weight - limit) / weight if weight > 0 else 0.0,
        status=found.status,
        method=found.method,
        bound_method=found.bound_method,
    )


def linear_ordering(
    W: Any,
    time_limit: float | None = None,
    random_state: Any = None,
    *,
    method: str = "insertion",
    bound: bool | str = True,
) -> LinearOrdering:
    """An order of rows and columns that makes the sum of W above the diagonal large.

    W: (D, D), weights of any sign, dense or scipy sparse; the diagonal does not count. Within `time_limit` seconds the search
    uses all cores; without, it makes a fixed number of steps and the same W gives the same order always.

    >>> from lawful.rankings import linear_ordering
    >>> linear_ordering([[0, 3, 1], [1, 0, 4], [2, 0, 0]]).order.tolist()
    [0, 1, 2]
    """
    W, unit = _dense(W, "linear_ordering")
    found = _solve(W, method, time_limit, random_state, bound)
    value = float(np.triu(W[np.ix_(found.order, found.order)], 1).sum())
    limit = value + 2 * (found.objective - found.bound)
    gap = (limit - value) / abs(value) if value else float(limit > value)
    return LinearOrdering(found.order, unit * value, unit * limit, gap, found.status, found.method, found.bound_method)
