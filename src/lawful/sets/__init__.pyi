"""What `lawful.sets` offers: read by type checkers, and at run time by `lawful._lazy`."""

from lawful.sets.algebra import Intersection, Product, Union
from lawful.sets.base import ConstraintSet
from lawful.sets.cloud import PointCloud
from lawful.sets.correlations import CorrelationMatrices
from lawful.sets.elementary import Affine, Box, Reals
from lawful.sets.equations import Equations
from lawful.sets.hierarchy import Hierarchy
from lawful.sets.learned.density import KernelSet
from lawful.sets.learned.equations import LearnedEquations
from lawful.sets.learned.table import LawTable, discover
from lawful.sets.learned.tangent import LocalTangent
from lawful.sets.learned.words import LearnedLaw
from lawful.sets.logic.law import Logic
from lawful.sets.manifolds import PositiveSemidefinite, Rotations, Stiefel
from lawful.sets.polyhedra import Flow, Margins
from lawful.sets.poses import SE3, UnitQuaternions
from lawful.sets.rankings import Rankings
from lawful.sets.relaxed import Inflated, Penalized
from lawful.sets.round import Ball, Ellipsoid, Sphere
from lawful.sets.shapes import ConvexShape, Monotone
from lawful.sets.simplex import Simplex

__all__ = [
    "SE3",
    "Affine",
    "Ball",
    "Box",
    "ConstraintSet",
    "ConvexShape",
    "CorrelationMatrices",
    "Ellipsoid",
    "Equations",
    "Flow",
    "Hierarchy",
    "Inflated",
    "Intersection",
    "KernelSet",
    "LawTable",
    "LearnedEquations",
    "LearnedLaw",
    "LocalTangent",
    "Logic",
    "Margins",
    "Monotone",
    "Penalized",
    "PointCloud",
    "PositiveSemidefinite",
    "Product",
    "Rankings",
    "Reals",
    "Rotations",
    "Simplex",
    "Sphere",
    "Stiefel",
    "Union",
    "UnitQuaternions",
    "discover",
]
