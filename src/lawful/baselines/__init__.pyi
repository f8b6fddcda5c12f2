"""What `lawful.baselines` offers: read by type checkers, and at run time by `lawful._lazy`."""

from lawful.baselines.multitask import (
    ClusteredMTL,
    LatentTaskStructure,
    LinearRelations,
    MeanRegularized,
    OutputKernelLearning,
    ParametrizedRegressor,
    RelationshipLearning,
    SingleTask,
    WienerShrinkage,
    tune,
)
from lawful.baselines.ranking import (
    MatrixFactorizationRanker,
    PairwiseClassifiers,
    PairwiseRanker,
    Popularity,
    RankingFeatures,
    StructuralRanker,
)

__all__ = [
    "ClusteredMTL",
    "LatentTaskStructure",
    "LinearRelations",
    "MatrixFactorizationRanker",
    "MeanRegularized",
    "OutputKernelLearning",
    "PairwiseClassifiers",
    "PairwiseRanker",
    "ParametrizedRegressor",
    "Popularity",
    "RankingFeatures",
    "RelationshipLearning",
    "SingleTask",
    "StructuralRanker",
    "WienerShrinkage",
    "tune",
]
