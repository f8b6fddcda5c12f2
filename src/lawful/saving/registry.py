"""The classes that a model file may name, and no others: a fixed list of this library's own.

A class is looked up when a file or a model has it, so that neither saving nor loading brings in what a model does not use. What
a file says is never imported: it only chooses from this list.
"""

from __future__ import annotations

from importlib import import_module

__all__ = ["class_of", "name_of"]

HOMES: dict[str, tuple[str, ...]] = {
    "lawful.estimators": (
        *("ConformalRegressor", "ConstrainedClassifier", "ConstrainedRanker", "ConstrainedRegressor", "ConstrainedRegressorCV"),
    ),
    "lawful.surrogates": ("KernelRidge", "NystromRidge", "PairwiseRidge", "Portfolio", "RegressorSurrogate", "Trees"),
    "lawful.surrogates.labels": ("LabelClassifiers", "LabelRegressions"),
    "lawful.surrogates.logistic": ("LabelLogistic",),
    "lawful.surrogates.encoders": ("Numbers",),
    "lawful.sets": (
        *("Affine", "Ball", "Box", "Ellipsoid", "Equations", "Inflated", "Intersection", "Penalized", "PointCloud"),
        *("ConvexShape", "CorrelationMatrices", "Flow", "Hierarchy", "Margins", "Monotone", "SE3", "UnitQuaternions"),
        *("KernelSet", "LearnedEquations", "LocalTangent", "Logic"),
        *("PositiveSemidefinite", "Product", "Rankings", "Reals", "Rotations", "Simplex", "Sphere", "Stiefel", "Union"),
    ),
    "lawful.sets.learned.patches": ("Patches",),
    "lawful.sets.learned.words": ("LearnedLaw",),
    "lawful.losses": ("Absolute", "Hinge", "Huber", "Logistic", "Mixed", "Pinball", "Square", "ZeroOne"),
    "lawful.kernels": ("Additive", "Gaussian", "Laplacian", "Linear", "Matern", "Polynomial", "Precomputed", "Trend"),
    "lawful.decoders": (
        *("ArcSet", "Assignments", "Chain", "Conic", "ConvexDescent", "ConvexProjection", "Coordinate", "Enumeration"),
        *("FormProjection", "Newton", "Polyhedral", "Posterior", "Projection", "Riemannian", "Wiener"),
    ),
    # the parts of a fitted ranker
    "lawful.surrogates.pairs.factorisation": ("AveragedFactorization", "ItemBias", "MatrixFactorization", "Popularity"),
    "lawful.surrogates.pairs.priors": ("AttributeRidge", "ColdPrior", "FactorPrior"),
    "lawful.surrogates.pairs.kernel_prior": ("KernelPrior",),
    "lawful.surrogates.pairs.query_kernel": ("QueryKernel", "Standardized"),
    "lawful.surrogates.pairs._table": ("PairTable",),
    "lawful.surrogates.pairs.large": ("FrequentPairRidge",),
    "lawful.surrogates.pairs.wide_factors": ("WideFactorization", "WideFactors"),
}
HOME = {name: home for home, names in HOMES.items() for name in names}


def class_of(name: str) -> type | None:
    """The class of this name, None for one that is not listed."""
    return getattr(import_module(HOME[name]), name) if name in HOME else None


def name_of(thing: object) -> str | None:
    """The name of the class of a thing, None where that is not one of the listed ones (a subclass is not)."""
    name = type(thing).__name__
    return name if type(thing).__module__.startswith("lawful.") and class_of(name) is type(thing) else None
