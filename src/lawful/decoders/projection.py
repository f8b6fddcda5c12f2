"""Closed forms: the set minimises the quadratic itself."""

from __future__ import annotations

from typing import Any

from lawful._array import array_namespace
from lawful.decoders.base import Decode, Decoder, Decoding, finish


class Projection(Decoder):
    """argmin over C of sum_t a_t c_t^2 - 2 b_t c_t by `C.project(b, a)` (`ex:ls-and-mtl`), any sign of a.

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import Sphere
    >>> from lawful.decoders import Projection, decode
    >>> C = Sphere().fit(np.ones((1, 2)))
    >>> decode(F, C, Projection()).c.round(6)
    array([[0.6, 0.8]])
    """

    needs_objective = ("a", "b")
    needs_set = ("project",)

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        return finish(F, C, F.over(C))


class ConvexProjection(Projection):
    """The same by `C.project_convex(b, a)`, for sets whose closed form needs positive weights.

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import Monotone
    >>> from lawful.decoders import ConvexProjection, decode
    >>> decode(Quadratic.around(np.array([[4.0, 3.0]])), Monotone().fit(np.ones((1, 2))), ConvexProjection()).c
    array([[3.5, 3.5]])
    """

    needs_set = ("project_convex",)

    def missing(self, F: Any, C: Any) -> list[str]:
        lacks = super().missing(F, C)
        if not lacks and not bool(array_namespace(F.a).all(F.a > 0)):
            lacks.append("positive weights")
        return lacks

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        return finish(F, C, C.project_convex(F.b, F.a))


class FormProjection(Projection):
    """argmin over C of (c - w)' Q (c - w) by `C.project_form(Q, w)`: the square loss with a full output metric.

    Where all rows have the same Q, (T, T), the set factors it once, and a batch costs a few matrix products.

    >>> import numpy as np
    >>> from lawful import Affine
    >>> from lawful.decoders import FormProjection, decode
    >>> from lawful.losses import QuadraticForm
    >>> F = QuadraticForm(np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[3.0, 4.0]]))
    >>> decode(F, Affine([[1.0, 1.0]], 1.0).fit(np.ones((1, 2))), FormProjection()).c
    array([[ 1.5, -0.5]])
    """

    needs_objective = ("form", "w")
    needs_set = ("project_form",)
