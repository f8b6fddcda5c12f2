"""Label logic: with two values a label has, any separable objective is a cost of being true, and the set minimises that."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import array_namespace, device_of, like, to_numpy
from lawful.decoders.base import Decode, Decoder, Decoding, finish

__all__ = ["Assignments"]


class Assignments(Decoder):
    """argmin over assignments that obey a `Logic` by `C.best(costs)`.

    `gap` of the decoding says how much lower, at most, the value of another assignment may be; rows where it is not 0 (integer
    programming ran out of time) are reported as not_converged. margin: how much more the second-best assignment costs, where
    that is known.

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import Logic
    >>> from lawful.decoders import Assignments, decode
    >>> C = Logic(["y1 -> y2"]).fit(np.array([[0.0, 1.0]]))
    >>> decode(Quadratic.around(np.array([[0.9, 0.2]])), C, Assignments()).c
    array([[1., 1.]])
    """

    needs_objective = ("table",)
    needs_set = ("best", "marginals")

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        reference = F.center
        xp, place = array_namespace(reference), device_of(reference)
        false, true = (float(v) for v in C.values)
        values = like(np.array([false, true]), reference)
        tables = [to_numpy(F.table(t, values)) for t in range(F.shape[1])]
        costs = np.stack([table[:, 1] - table[:, 0] for table in tables], axis=1)
        good = np.isfinite(costs).all(axis=1)
        found, margin, gap = C.best(np.where(good[:, None], costs, 0.0))
        d = finish(
            F,
            C,
            like(np.where(found, true, false), reference),
            proven=xp.asarray((gap == 0) & good, device=place),
            margin=like(margin, reference),
        )
        return d.with_(gap=like(gap, reference))
