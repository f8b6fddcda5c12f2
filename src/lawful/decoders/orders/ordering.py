r"""Orders: argmax over total orders of the weight of the pairs that the order respects, with a bound on what was missed.

S[p, q] is what it pays to put p before q. Only the skew part A = (S - S') / 2 matters, and the weight of a pair is |A[p, q]|
(for skew S that is |S[p, q]|). An order that puts p before q satisfies the pair if A[p, q] > 0 and violates it if A[p, q] < 0:

    value = sum of |A| over satisfied pairs,    objective = sum of |A| over violated pairs,    bound <= objective of any order.

Finding the best order is NP-hard (linear ordering, minimum feedback arc set). `order` offers a fast local search, an exact
integer programme for small D, and two classical rules. Its lower bounds of the weight that any order must violate are

* "dynamic": up to 13 items dynamic programming over subsets gives the optimum itself.
* "triangles": 3-cycles that share no weight are packed greedily, guided by a good order. A feasible dual of the triangle
  relaxation: never above it, any number of items. `True` looks at less than D^2 cycles, "tight" at as many as are of use.
* "lp": the triangle relaxation itself, by cutting planes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lawful._array import to_numpy
from lawful.decoders.orders._bounds import packed_triangles, subset_order
from lawful.decoders.orders._exact import SET_UP, SUBSETS, exact_order
from lawful.decoders.orders._insertion import eades_order, insertion_order, inspect, row_sums, skew_part, weights
from lawful.decoders.orders._search import improve, search

__all__ = ["METHODS", "Ordering", "check_matrix", "fast_insertion", "order", "rescaled", "summary", "tolerance"]

METHODS = ("insertion", "borda", "eades", "exact")
BOUNDS = (True, False, "tight", "lp")
FEW, SWEEPS = 400, (50, 3)  # up to FEW items sweeps go on until they gain nothing, 50 of them at most; for more items 3
EXACT_KICKS = 20  # per item, of the search that gives the integer programme its first order
FIRST = 0.4  # of the time, the most that it may take
SMALLEST, LARGEST = 1e-100, 1e100  # weights beyond are divided by a unit
CHEAP = 300  # up to so many items the packing of triangles is cheap enough to run to its end
ALL = 10**12  # visits: no limit


@dataclass(frozen=True)
class Ordering:
    """An order of D items and what is known about it.

    order         (D,) item numbers, best first
    positions     (D,) place of each item, 0 = best; with ties=True tied items share the first place of their group
    value         weight of the pairs that the order respects
    objective     weight of the pairs that it violates
    bound         no order violates less
    gap           (objective - bound) / objective, 0 when nothing is left to gain
    status        "optimal": proven; "heuristic": the method came to its end; "time_limit": the time did
    method        how the order was found
    bound_method  how the bound was found: "trivial" (it is 0), "triangles", "lp", "dynamic" or "integer"

    >>> from lawful.decoders import order
    >>> found = order([[0, 2, -1], [-2, 0, 3], [1, -3, 0]], "exact")  # a cycle
    >>> found.objective, found.bound, found.status
    (1.0, 1.0, 'optimal')
    """

    order: np.ndarray
    positions: np.ndarray
    value: float
    objective: float
    bound: float
    gap: float
    status: str
    method: str
    bound_method: str


def check_matrix(S: Any, name: str = "order") -> np.ndarray:
    """S as a float array (D, D), D >= 1, or an error that says what is wrong."""
    S = to_numpy(S)
    if S.ndim != 2 or S.shape[0] != S.shape[1]:
        raise ValueError(f"{name}: the matrix has shape {S.shape}; give a square one, row p and column q about the pair (p, q)")
    if S.shape[0] == 0:
        raise ValueError(f"{name}: the matrix is empty; there must be at least one item to order")
    if S.dtype not in (np.float32, np.float64):
        if S.dtype.kind not in "biuf":
            raise ValueError(f"{name}: the matrix has entries of type {S.dtype}; give real numbers")
        S = S.astype(np.float64)
    return np.ascontiguousarray(S)


def skew(S: np.ndarray, name: str = "order") -> tuple[np.ndarray, float, float]:
    """(A, largest |A|, unit): S itself, uncopied, when it is skew with a zero diagonal, else (S - S') / 2; see `rescaled`."""
    good, top = inspect(S)
    if good and not S.diagonal().any():
        return rescaled(S, top)
    if not np.isfinite(S).all():
        raise ValueError(f"{name}: the matrix contains NaN or infinities; a pair about which nothing is known has weight 0")
    S, _, unit = rescaled(S, float(np.abs(S).max()))
    A = skew_part(S)
    A, top, more = rescaled(A, float(np.abs(A).max()))
    return A, top, unit * more


def rescaled(A: np.ndarray, top: float) -> tuple[np.ndarray, float, float]:
    """(A, top, unit), both divided by a power of two where sums of entries as large as `top` would overflow, or vanish."""
    if top == 0 or SMALLEST <= top <= LARGEST:
        return A, top, 1.0
    unit = float(np.ldexp(1.0, int(np.frexp(top)[1]) - 1))
    return np.asarray(A, np.float64) / unit, top / unit, unit


def order(
    S: Any,
    method: str = "insertion",
    *,
    time_limit: float | None = None,
    random_state: Any = None,
    ties: bool = False,
    bound: bool | str = True,
    sweeps: int | None = None,
    kicks: int = 0,
) -> Ordering:
    """The best order found for the pair weights S (D, D).

    method        "insertion": Borda scores, then insertion sweeps, then, if there is a time limit, search until it ends;
                  "exact": integer programme, for about 60 items; "eades": Eades, Lin and Smyth; "borda": row sums
    time_limit    seconds; None: "insertion" ends with its sweeps and kicks, "exact" when it has proven the optimum. Many items
                  may be too many to even set up the programme in time: then the best order found comes with a weaker bound
    random_state  of the search; None means a fixed one: without a time limit the same S gives the same order always
    ties          items that are neighbours in the order and all of whose pairs have weight 0 share a position
    bound         True: a lower bound of the violated weight that costs about as much as the order; "tight": better and slower;
                  "lp": the triangle relaxation, for about 60 items; False: none, that is 0
    sweeps        insertion sweeps at most; None: 3 for more than 400 items, else until nothing is gained
    kicks         steps of iterated local search after the sweeps when there is no time limit

    The order never depends on `bound`. With kicks or a time limit up to 13 items are ordered optimally.

    Ties are broken the same way always: equal Borda scores by item number; of equally good places the nearest one, of two
    equally near the earlier. S in float32 is not copied to float64: large matrices decode faster in it.

    >>> from lawful.decoders import order
    >>> found = order([[0, 2, 1], [-2, 0, 3], [-1, -3, 0]])
    >>> found.order.tolist(), found.status
    ([0, 1, 2], 'optimal')
    """
    _check_options(method, time_limit, bound)
    begin = time.perf_counter()
    A, top, unit = skew(check_matrix(S))
    D = A.shape[0]
    tol = tolerance(A, top)
    report = partial(summary, A, method=method, ties=ties, unit=unit)
    rng = check_random_state(0 if random_state is None else random_state)
    found = eades_order(A) if method == "eades" else np.argsort(-row_sums(A), kind="stable")
    if method in ("insertion", "exact"):
        found = insertion_order(A, found, SWEEPS[D > FEW] if sweeps is None else sweeps, tol)[0]
    if method == "exact":
        end = np.inf if time_limit is None else begin + time_limit
        if D > SUBSETS:
            if (1 - FIRST) * (end - begin) < SET_UP * D**2:  # no time for the programme: let the search have it
                found = search(A, found, tol, (1 - FIRST) * (end - begin), rng)
            else:
                found = improve(A, found, tol, EXACT_KICKS * D, rng, begin + FIRST * (end - begin))
        proven = exact_order(A, found, max(end - time.perf_counter(), 0.0))
        status = "optimal" if proven.optimal else "time_limit"
        return report(proven.order, bound=proven.bound, bound_method="integer", status=status)
    limit, way, status = 0.0, "trivial", "heuristic"
    if bound is not False:
        start = time.perf_counter()
        limit, way = lower_bound(A, found, top, bound, time_limit)
        begin -= time.perf_counter() - start  # once more after the search: the better the order, the better the bound
    if method == "insertion" and (kicks or time_limit is not None):
        if D <= SUBSETS:
            found = subset_order(A)[0]
        elif time_limit is None:
            found = improve(A, found, tol, kicks, rng)
        else:
            status = "time_limit"
            found = search(A, found, tol, max(time_limit - (time.perf_counter() - begin), 0.0), rng)
        if way == "triangles":
            limit = max(limit, lower_bound(A, found, top, bound)[0])
    return report(found, bound=limit, bound_method=way, status=status)


def _check_options(method: str, time_limit: float | None, bound: bool | str) -> None:
    if method not in METHODS:
        raise ValueError(f"order: method={method!r} is unknown; use one of {', '.join(METHODS)}")
    if bound not in BOUNDS:
        raise ValueError(f"order: bound={bound!r} is unknown; use True, False, 'tight' or 'lp'")
    if time_limit is not None and not time_limit >= 0:
        raise ValueError(f"order: time_limit={time_limit!r} is no time; give seconds, or None for no limit")


def lower_bound(
    A: np.ndarray, found: np.ndarray, top: float, effort: bool | str = True, time_limit: float | None = None
) -> tuple[float, str]:
    """(bound, how it was found) for the skew matrix A, |A| <= top, and an order to be guided by."""
    D = A.shape[0]
    if top == 0 or D < 3:
        return 0.0, "trivial"  # nothing to violate, or nothing that need be
    if D <= SUBSETS:
        return subset_order(A)[1], "dynamic"
    if effort == "lp":
        return exact_order(A, found, time_limit, relaxed=True).bound, "lp"
    visits = ALL if effort == "tight" or D <= CHEAP else 2 * D * D // 3
    return packed_triangles(A, found, top, visits) * (1 - 1e-12), "triangles"


def tolerance(A: np.ndarray, top: float) -> float:
    """Gains below this are rounding: sums of D terms of size `top` (always added in float64)."""
    return 4 * float(np.finfo(np.float64).eps) * A.shape[0] * top


def summary(
    A: np.ndarray,
    found: np.ndarray,
    method: str,
    *,
    unit: float = 1.0,
    ties: bool = False,
    bound: float = 0.0,
    bound_method: str = "trivial",
    status: str = "heuristic",
) -> Ordering:
    """Everything measured on the order itself; `unit`: what A was divided by."""
    positions = np.empty(len(found), np.int64)
    positions[found] = np.arange(len(found))
    value, objective = weights(A, positions.astype(np.uint32))
    bound = min(max(bound, 0.0), objective)
    if status == "optimal" or objective - bound <= 1e-12 * (value + objective):
        bound, status = objective, "optimal"
    gap = (objective - bound) / objective if objective > 0 else 0.0
    if ties:
        positions = tied(A, found, positions)
    return Ordering(found, positions, unit * value, unit * objective, unit * bound, gap, status, method, bound_method)


def tied(A: np.ndarray, found: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Positions in which runs of neighbours without any weight between them share the first place of the run."""
    positions = positions.copy()
    first = 0
    for k in range(1, len(found)):
        if A[found[k], found[first:k]].any():
            first = k
        positions[found[k]] = first
    return positions


def fast_insertion(S: np.ndarray, sweeps: int) -> Ordering:
    """Borda, then insertion sweeps, for a matrix that is known to be skew; without a bound."""
    A, top, unit = rescaled(S, float(max(S.max(), -S.min())))
    if not top < np.inf:
        raise ValueError("order: the matrix contains NaN or infinities; ratings and inputs of a smaller scale would do")
    found = np.argsort(-row_sums(A), kind="stable")
    return summary(A, insertion_order(A, found, sweeps, tolerance(A, top))[0], "insertion", unit=unit)
