"""Sets say what they know, decoders say what they need; the first decoder of one ordered table whose needs are met solves."""

from __future__ import annotations

from functools import partial
from typing import Any

from lawful.decoders.arcset import ArcSet
from lawful.decoders.assignments import Assignments
from lawful.decoders.base import Decoder, Decoding
from lawful.decoders.chain import Chain
from lawful.decoders.compose import BestMember, Blocks, Inflation, LawBlocks, Penalty
from lawful.decoders.conic import Conic, NewtonConic, PiecewiseConic
from lawful.decoders.convex import ConvexDescent
from lawful.decoders.coordinate import Coordinate
from lawful.decoders.enumeration import Enumeration
from lawful.decoders.newton import Newton
from lawful.decoders.polyhedral import Polyhedral
from lawful.decoders.posterior import Posterior, Wiener
from lawful.decoders.projection import ConvexProjection, FormProjection, Projection
from lawful.decoders.riemannian import Riemannian

COMPOSED: tuple[Decoder, ...] = (Penalty(), Inflation(), Blocks(), BestMember())
SIMPLE: tuple[Decoder, ...] = (
    Assignments(),
    Projection(),
    ConvexProjection(),
    FormProjection(),
    Polyhedral(),
    LawBlocks(),
    Enumeration(),
    Chain(),
    Coordinate(),
    ConvexDescent(),
    PiecewiseConic(),
    Riemannian(),
    ArcSet(),
    NewtonConic(),
    Newton(),
    Conic(),
)


NAMED: dict[str, Decoder] = {"posterior": Posterior(), "wiener": Wiener()}


def named(decoder: Decoder | str | None) -> Decoder | None:
    """A decoder given by its name.

    >>> from lawful.decoders import named
    >>> named("wiener")
    Wiener()
    """
    if not isinstance(decoder, str):
        return decoder
    if decoder not in NAMED:
        raise ValueError(f"unknown decoder {decoder!r}; choose one of {', '.join(NAMED)}, or give a decoder such as Newton()")
    return NAMED[decoder]


def averages(decoder: Decoder | None) -> bool:
    """Whether a decoder averages over C as a whole instead of looking for its best point."""
    return bool(getattr(decoder, "whole", False))


def choose(F: Any, C: Any, decoder: Decoder | str | None = None) -> Decoder:
    """The decoder for this pair; a TypeError that says what each one lacks when there is none.

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import Sphere
    >>> from lawful.decoders import choose
    >>> choose(F, Sphere().fit(np.ones((1, 2))))
    Projection()
    """
    decoder = named(decoder)
    candidates = COMPOSED + (SIMPLE if decoder is None else (decoder,))
    if decoder is not None and averages(decoder):  # only blocks are averaged over one by one
        candidates = (Blocks(), decoder)
    for candidate in candidates:
        if not candidate.missing(F, C):
            return candidate
    losses = ", ".join(sorted({type(loss).__name__ for loss in getattr(F, "losses", [])})) or "Square"
    # Only those that come close are worth reading about, and composed sets only for composed sets.
    composed = hasattr(C, "base_") or hasattr(C, "blocks_")
    close = candidates if composed else [c for c in candidates if not isinstance(c, Penalty | Inflation | Blocks | BestMember)]
    if decoder is not None and averages(decoder):
        close = (decoder,)
    reasons = sorted(((candidate.missing(F, C), type(candidate).__name__) for candidate in close), key=lambda r: len(r[0]))
    fewest = len(reasons[0][0])
    why = "; ".join(f"{name} would need {' and '.join(lacks)}" for lacks, name in reasons if len(lacks) == fewest)
    raise TypeError(
        f"no decoder minimises the {losses} loss over {type(C).__name__}: {why}. "
        "Square works with every set, every loss works with PointCloud"
    )


def decode(F: Any, C: Any, decoder: Decoder | str | None = None) -> Decoding:
    """argmin over c in C of F(c), row by row, with a certificate. C is already bound to its inputs (`C.at(X)`).

    A chosen decoder, or the name of one ("posterior", "wiener"), is handed inward by composed sets (products, unions,
    relaxations). Decoders that average are handed the usual ones, to go back to C.

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import Sphere
    >>> from lawful.decoders import decode
    >>> d = decode(F, Sphere().fit(np.ones((1, 2))))
    >>> d.c, d.status
    (array([[0.6, 0.8]]), array(['ok'], dtype='<U14'))
    """
    solver = choose(F, C, decoder)
    return solver.solve(F, C, partial(decode, decoder=None if averages(solver) else decoder))
