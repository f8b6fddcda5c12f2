"""Closed forms: the set minimises the quadratic itself."""

from __future__ import annotations

from typing import Any

from lawful._array import array_namespace
from lawful.decoders.base import Decode, Decoder, Decoding, finish


class Projection(Decoder):
    """argmin over C of sum_t a_t c_t^2 - 2 b_t c_t by `C.project(b, a)` (`ex:ls-and-mtl`), any sign of a."""

    needs_objective = ("a", "b")
    needs_set = ("project",)

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        return finish(F, C, F.over(C))


class ConvexProjection(Projection):
    """The same by `C.project_convex(b, a)`, for sets whose closed form needs positive weights."""

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
    """

    needs_objective = ("form", "w")
    needs_set = ("project_form",)
