"""Lower bounds of the weight that any order must violate.

* "dynamic": up to 13 items dynamic programming over subsets gives the optimum itself.
* "triangles": 3-cycles that share no weight are packed greedily, guided by a good order. A feasible dual of the triangle
  relaxation: never above it, any number of items. `True` looks at less than D^2 cycles, "tight" at as many as are of use.
* "lp": the triangle relaxation itself, by cutting planes.
"""

from __future__ import annotations

import numpy as np

from lawful.decoders._order_bounds import packed_triangles, subset_order
from lawful.decoders.ordering_ip import SUBSETS, exact_order

FEW = 300  # up to so many items the packing is cheap enough to run to its end
ALL = 10**12


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
    visits = ALL if effort == "tight" or D <= FEW else 2 * D * D // 3
    return packed_triangles(A, found, top, visits) * (1 - 1e-12), "triangles"
