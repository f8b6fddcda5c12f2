"""Sets say what they know, decoders say what they need; the first decoder of one ordered table whose needs are met solves."""

from __future__ import annotations

from functools import partial
from typing import Any

from lawful.decoders.base import Decoder, Decoding
from lawful.decoders.compose import BestMember, Blocks, Inflation, Penalty
from lawful.decoders.convex import ConvexDescent
from lawful.decoders.coordinate import Coordinate
from lawful.decoders.enumeration import Enumeration
from lawful.decoders.newton import Newton
from lawful.decoders.projection import FormProjection, Projection
from lawful.decoders.riemannian import Riemannian

COMPOSED: tuple[Decoder, ...] = (Penalty(), Inflation(), Blocks(), BestMember())
SIMPLE: tuple[Decoder, ...] = (
    Projection(),
    FormProjection(),
    Enumeration(),
    Coordinate(),
    ConvexDescent(),
    Riemannian(),
    Newton(),
)


def choose(F: Any, C: Any, decoder: Decoder | None = None) -> Decoder:
    """The decoder for this pair; a TypeError that says what each one lacks when there is none."""
    candidates = COMPOSED + (SIMPLE if decoder is None else (decoder,))
    for candidate in candidates:
        if not candidate.missing(F, C):
            return candidate
    losses = ", ".join(sorted({type(loss).__name__ for loss in getattr(F, "losses", [])})) or "Square"
    # Only those that come close are worth reading about, and composed sets only for composed sets.
    named = candidates if hasattr(C, "base_") or hasattr(C, "blocks_") else candidates[len(COMPOSED) :]
    reasons = sorted(((candidate.missing(F, C), type(candidate).__name__) for candidate in named), key=lambda r: len(r[0]))
    fewest = len(reasons[0][0])
    why = "; ".join(f"{name} would need {' and '.join(lacks)}" for lacks, name in reasons if len(lacks) == fewest)
    raise TypeError(
        f"no decoder minimises the {losses} loss over {type(C).__name__}: {why}. "
        "Square works with every set, every loss works with PointCloud"
    )


def decode(F: Any, C: Any, decoder: Decoder | None = None) -> Decoding:
    """argmin over c in C of F(c), row by row, with a certificate. C is already bound to its inputs (`C.at(X)`).

    A chosen decoder is handed inward by composed sets (products, unions, relaxations).
    """
    return choose(F, C, decoder).solve(F, C, partial(decode, decoder=decoder))
