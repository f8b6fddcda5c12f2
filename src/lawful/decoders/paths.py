"""Whole paths of relaxed answers, C_delta for many delta and l_mu for many mu, from one projection wherever that is exact.

With c = argmin over C of F, the answer over C_delta is c + r min(1, delta / |r|), r = w - c, in the norm of the objective and,
where the weights of a row are equal, in the Euclidean one. The answer under l_mu starts from the projection in softened weights
a kappa / (a + kappa); where these are proportional to the weights a themselves (equal a_t before the output metric, which is
what Square(confidence="none") always has) that projection is c again. Everything else is decoded value by value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lawful._array import Array, array_namespace
from lawful.decoders.base import Decoder
from lawful.decoders.compose import clip, not_quadratic
from lawful.decoders.dispatch import averages, decode, named
from lawful.losses.quadratic import SAME, Quadratic
from lawful.sets.relaxed import Inflated, Penalized


def relaxation_path(
    F: Any,
    C: Any,
    deltas: Iterable[float] = (),
    mus: Iterable[float] = (),
    norm: str = "objective",
    decoder: Decoder | str | None = None,
) -> tuple[Array, Array, Array]:
    """The answers over C_delta for each delta (n_deltas, m, T), under l_mu for each mu (n_mus, m, T), and over C itself (m, T).

    `C` is a fitted set, bound to its inputs (`C.at(X)`); `norm` is that of `Inflated`. The answers are those of decoding
    `Inflated(C, delta, norm)` and `Penalized(C, mu)`.

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import Sphere
    >>> from lawful.decoders import relaxation_path
    >>> tubes, prices, exact = relaxation_path(F, Sphere().fit(np.ones((1, 2))), deltas=[0.5], mus=[2.0])
    >>> tubes[0].round(6), prices[0].round(6), exact
    (array([[0.9, 1.2]]), array([[1.8, 2.4]]), array([[0.6, 0.8]]))
    """
    decoder = named(decoder)
    tubes = [Inflated(C, delta, norm).around(C) for delta in deltas]
    prices = [Penalized(C, mu).around(C) for mu in mus]
    exact = decode(F, C, decoder).c
    quadratic, averaged = not not_quadratic(F), averages(decoder)
    xp = array_namespace(exact)
    # Decoders that average over C do so over C_delta too: their answers are no projections to be clipped.
    equal = quadratic and norm == "euclidean" and bool(xp.all(F.isotropic()))
    short = quadratic and not averaged and (norm == "objective" or equal)
    free = F.center if quadratic else exact

    def tube(T: Any) -> Array:
        if not short:
            return decode(F, T, decoder).c
        return free if T.delta == xp.inf else clip(F, exact, T.delta, equal)

    proportional = quadratic and not averaged and bool(xp.all(_proportional(F)))

    def soft(P: Any) -> Array:
        if not proportional:
            return decode(F, P, decoder).c
        if P.mu in (0, xp.inf):
            return free if P.mu else exact
        _, back, exists = F.softened(F.price(P.mu))
        return xp.where(exists[:, None], back(exact), exact)

    found = [[tube(T) for T in tubes], [soft(P) for P in prices]]
    none = xp.reshape(exact, (1, *exact.shape))[:0, :, :]
    path_delta, path_mu = (xp.stack(some) if some else none for some in found)
    return path_delta, path_mu, exact


def _proportional(F: Any) -> Array:
    """(m,) rows whose quadratic form is a multiple of the output metric, so that l_mu only rescales it."""
    xp = array_namespace(F.center)
    if isinstance(F, Quadratic):
        a = F.a / F.unit[None, :]
        return xp.max(a, axis=1) - xp.min(a, axis=1) <= SAME * xp.max(xp.abs(a), axis=1)
    scale = xp.sqrt(xp.linalg.diagonal(F.unit))
    size = scale[:, None] * scale[None, :]
    multiple = F.Q[:, 0, 0] / F.unit[0, 0]
    apart = xp.max(xp.abs(F.Q - multiple[:, None, None] * F.unit[None, :, :]) / size[None, :, :], axis=(1, 2))
    return apart <= SAME * xp.abs(multiple)
