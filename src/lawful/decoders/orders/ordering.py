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
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lawful._array import to_numpy
from lawful.decoders.orders._bounds import packed_triangles, subset_order
from lawful.decoders.orders._exact import SUBSETS, exact_order
from lawful.decoders.orders._insertion import eades_order, insertion_order, inspect, row_sums, skew_part, weights
from lawful.decoders.orders._search import improve, search

__all__ = ["METHODS", "Ordering", "check_matrix", "fast_insertion", "order", "summary", "tolerance"]

METHODS = ("insertion", "borda", "eades", "exact")
BOUNDS = (True, False, "tight", "lp")
FEW, SWEEPS = 400, (50, 3)  # up to FEW items sweeps go on until they gain nothing, 50 of them at most; for more items 3
EXACT_KICKS = 20  # per item, of the search that gives the integer programme its first order
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


def skew(S: np.ndarray, name: str = "order") -> tuple[np.ndarray, float]:
    """(A, largest |A|): S itself, uncopied, when it is skew with a zero diagonal, else (S - S') / 2."""
    good, top = inspect(S)
    if good and not S.diagonal().any():
        return S, top
    if not np.isfinite(S).all():
        raise ValueError(f"{name}: the matrix contains NaN or infinities; a pair about which nothing is known has weight 0")
    A = skew_part(S)
    return A, float(np.abs(A).max())


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
    time_limit    seconds; None: "insertion" ends with its sweeps and kicks, "exact" when it has proven the optimum
    random_state  of the search; None means a fixed one: without a time limit the same S gives the same order always
    ties          items that are neighbours in the order and all of whose pairs have weight 0 share a position
    bound         True: a lower bound of the violated weight that costs about as much as the order; "tight": better and slower;
                  "lp": the triangle relaxation, for about 60 items; False: none, that is 0
    sweeps        insertion sweeps at most; None: 3 for more than 400 items, else until nothing is gained
    kicks         steps of iterated local search after the sweeps when there is no time limit

    The order never depends on `bound`. With kicks or a time limit up to 13 items are ordered optimally.

    Ties are broken the same way always: equal Borda scores by item number; of equally good places the nearest one, of two
    equally near the earlier. S in float32 is not copied to float64: large matrices decode faster in it.
    """
    _check_options(method, time_limit, bound)
    begin = time.perf_counter()
    A, top = skew(check_matrix(S))
    D = A.shape[0]
    tol = tolerance(A, top)
    rng = check_random_state(0 if random_state is None else random_state)
    found = eades_order(A) if method == "eades" else np.argsort(-row_sums(A), kind="stable")
    if method in ("insertion", "exact"):
        found = insertion_order(A, found, SWEEPS[D > FEW] if sweeps is None else sweeps, tol)[0]
    if method == "exact":
        if D > SUBSETS:
            found = improve(A, found, tol, EXACT_KICKS * D, rng)
        left = None if time_limit is None else max(time_limit - (time.perf_counter() - begin), 0.0)
        proven = exact_order(A, found, left)
        status = "optimal" if proven.optimal else "time_limit"
        return summary(A, proven.order, method, ties=ties, bound=proven.bound, bound_method="integer", status=status)
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
    return summary(A, found, method, ties=ties, bound=limit, bound_method=way, status=status)


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
    ties: bool = False,
    bound: float = 0.0,
    bound_method: str = "trivial",
    status: str = "heuristic",
) -> Ordering:
    """Everything measured on the order itself."""
    positions = np.empty(len(found), np.int64)
    positions[found] = np.arange(len(found))
    value, objective = weights(A, positions.astype(np.uint32))
    bound = min(max(bound, 0.0), objective)
    if status == "optimal" or objective - bound <= 1e-12 * (value + objective):
        bound, status = objective, "optimal"
    gap = (objective - bound) / objective if objective > 0 else 0.0
    if ties:
        positions = tied(A, found, positions)
    return Ordering(found, positions, value, objective, bound, gap, status, method, bound_method)


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
    """Borda, then insertion sweeps, for a matrix that is known to be skew and finite; without a bound."""
    found = np.argsort(-row_sums(S), kind="stable")
    top = float(max(S.max(), -S.min()))
    return summary(S, insertion_order(S, found, sweeps, tolerance(S, top))[0], "insertion")
