"""Rankings as a set of pair variables, decoded: the costs of a row become one matrix, and the order of it is the answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, device_of, like, to_numpy
from lawful.decoders import orders  # loads its compiled kernels on first use
from lawful.decoders.base import NOT_CONVERGED, OK, Decode, Decoder, Decoding, finish

__all__ = ["ArcSet", "net_costs"]

PROVE = 30  # items up to which the decoder proves its answer


def net_costs(after: Array, tie: Array, before: Array) -> Array:
    """S' for comparisons that may be left open, from the costs of c_pq = -1, 0 and +1 (arrays of any one shape).

    Whatever the order, a pair that p leads may be given +1 or 0, whichever is cheaper, and one that q leads -1 or 0. So the
    literal DAG(D) is total orders with S'_pq = min(cost(-1), cost(0)) - min(cost(+1), cost(0)); S alone is not enough.
    """
    xp = array_namespace(after, tie, before)
    return xp.minimum(after, tie) - xp.minimum(before, tie)


class ArcSet(Decoder):
    """Rankings over pair variables: each row's costs become a matrix S, `order` orders it, the pairs are read off.

    Proven optimal for up to 30 items (status ok); beyond, the answer obeys the law and is reported as not_converged.
    """

    needs_objective = ("table",)
    needs_set = ("pairs",)

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        p, q = C.pairs().T
        D, (m, T) = C.n_items_, F.shape
        reference = F.center
        values = like(np.array([-1.0, 0.0, 1.0]), reference)
        cost = np.stack([to_numpy(F.table(t, values)) for t in range(T)], axis=1).astype(np.float64)  # (m, T, 3)
        after, tie, before = cost[:, :, 0], cost[:, :, 1], cost[:, :, 2]
        gain = net_costs(after, tie, before) if C.ties else after - before
        c, code = np.empty((m, T)), np.empty(m, np.int64)
        for row in range(m):
            S = np.zeros((D, D))
            S[p, q], S[q, p] = gain[row], -gain[row]
            found = orders.order(S, "exact" if D <= PROVE else "insertion")
            ahead = found.positions[p] < found.positions[q]
            c[row] = np.where(ahead, 1.0, -1.0)
            if C.ties:  # an arc that costs more than none is not drawn
                c[row] = np.where(tie[row] < np.where(ahead, before[row], after[row]), 0.0, c[row])
            code[row] = OK if found.status == "optimal" else NOT_CONVERGED
        xp = array_namespace(reference)
        return finish(F, C, like(c, reference), code=xp.asarray(code, device=device_of(reference)))
