"""Closed forms: the set minimises the quadratic itself."""

from __future__ import annotations

from typing import Any

from lawful._array import Array, array_namespace, device_of
from lawful.decoders.base import Decode, Decoder, Decoding, finish

SAME = 1e-13  # relative spread below which weights count as equal


class Projection(Decoder):
    """argmin over C of sum_t a_t c_t^2 - 2 b_t c_t by `C.project(b, a)` (`ex:ls-and-mtl`), any sign of a."""

    needs_objective = ("a", "b")
    needs_set = ("project",)

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        return finish(F, C, C.project(F.b, F.a))


class FormProjection(Decoder):
    """argmin over C of (c - w)' Q (c - w) by `C.project_form(Q, w)`: the square loss with a full output metric."""

    needs_objective = ("Q", "w")
    needs_set = ("project_form",)

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        return finish(F, C, C.project_form(F.Q, F.w))


def isotropic(F: Any, any_sign: bool = False) -> Array:
    """(m,) rows where F(c) = q |c - center|^2 + const with q > 0, so that its minimiser is `C.nearest(center)`.

    This is the vector-valued setting, a_t(x) = a(x) for all t. With `any_sign` q may be anything.
    """
    center = F.center
    xp = array_namespace(center)
    if hasattr(F, "a"):
        q, spread = F.a[:, 0], xp.max(F.a, axis=1) - xp.min(F.a, axis=1)
    elif hasattr(F, "Q"):
        q = F.Q[:, 0, 0]
        eye = xp.eye(F.shape[1], dtype=center.dtype, device=device_of(center))
        spread = xp.max(xp.abs(F.Q - q[:, None, None] * eye[None, :, :]), axis=(1, 2))
    else:
        return xp.zeros(F.shape[0], dtype=xp.bool, device=device_of(center))
    return (spread <= SAME * xp.abs(q)) & ((q > 0) | any_sign)
