"""What `lawful.decoders` offers: read by type checkers, and at run time by `lawful._lazy`."""

from lawful.decoders.arcset import ArcSet, RankingDecoding
from lawful.decoders.assignments import Assignments
from lawful.decoders.base import AVERAGED, INFEASIBLE, LOW_CONFIDENCE, NOT_CONVERGED, OK, STATUS, Decoder, Decoding, stack
from lawful.decoders.chain import Chain
from lawful.decoders.conic import Conic
from lawful.decoders.convex import ConvexDescent
from lawful.decoders.coordinate import Coordinate
from lawful.decoders.dispatch import choose, decode, named
from lawful.decoders.enumeration import Enumeration
from lawful.decoders.newton import Newton
from lawful.decoders.orders import Ordering, order
from lawful.decoders.paths import relaxation_path
from lawful.decoders.points import project
from lawful.decoders.polyhedral import Polyhedral
from lawful.decoders.posterior import Posterior, Wiener
from lawful.decoders.projection import ConvexProjection, FormProjection, Projection
from lawful.decoders.riemannian import Riemannian
from lawful.decoders.sequence import decode_sequence

__all__ = [
    "AVERAGED",
    "INFEASIBLE",
    "LOW_CONFIDENCE",
    "NOT_CONVERGED",
    "OK",
    "STATUS",
    "ArcSet",
    "Assignments",
    "Chain",
    "Conic",
    "ConvexDescent",
    "ConvexProjection",
    "Coordinate",
    "Decoder",
    "Decoding",
    "Enumeration",
    "FormProjection",
    "Newton",
    "Ordering",
    "Polyhedral",
    "Posterior",
    "Projection",
    "RankingDecoding",
    "Riemannian",
    "Wiener",
    "choose",
    "decode",
    "decode_sequence",
    "named",
    "order",
    "project",
    "relaxation_path",
    "stack",
]
