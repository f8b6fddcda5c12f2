"""lawful: learn several outputs that must obey a law.

>>> from lawful import ConstrainedRegressor, Equations
>>> model = ConstrainedRegressor(Equations("y1**2 + y2**2 = 1"))
"""

from lawful import baselines, datasets, decoders, estimators, kernels, losses, metrics, rankings, sets, surrogates, theory
from lawful.decoders import Decoding, Posterior, Wiener, project
from lawful.estimators import (
    ConstrainedRanker,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    DecodingError,
    DecodingWarning,
    GridEdgeWarning,
    RankingDecoding,
)
from lawful.losses import Absolute, Hinge, Huber, Logistic, Mixed, Pinball, Square, ZeroOne
from lawful.sets import (
    Affine,
    Ball,
    Box,
    Ellipsoid,
    Equations,
    Inflated,
    Intersection,
    Penalized,
    PointCloud,
    PositiveSemidefinite,
    Product,
    Rankings,
    Reals,
    Rotations,
    Simplex,
    Sphere,
    Stiefel,
    Union,
)
from lawful.surrogates import KernelRidge
from lawful.tasks import stack_tasks

__version__ = "0.1.0"

__all__ = [
    "Absolute",
    "Affine",
    "Ball",
    "Box",
    "ConstrainedRanker",
    "ConstrainedRegressor",
    "ConstrainedRegressorCV",
    "Decoding",
    "DecodingError",
    "DecodingWarning",
    "Ellipsoid",
    "Equations",
    "GridEdgeWarning",
    "Hinge",
    "Huber",
    "Inflated",
    "Intersection",
    "KernelRidge",
    "Logistic",
    "Mixed",
    "Penalized",
    "Pinball",
    "PointCloud",
    "PositiveSemidefinite",
    "Posterior",
    "Product",
    "RankingDecoding",
    "Rankings",
    "Reals",
    "Rotations",
    "Simplex",
    "Sphere",
    "Square",
    "Stiefel",
    "Union",
    "Wiener",
    "ZeroOne",
    "baselines",
    "datasets",
    "decoders",
    "estimators",
    "kernels",
    "losses",
    "metrics",
    "project",
    "rankings",
    "sets",
    "stack_tasks",
    "surrogates",
    "theory",
]
