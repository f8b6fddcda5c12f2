"""What `lawful.baselines.ranking` offers: read by type checkers, and at run time by `lawful._lazy`."""

from lawful.baselines.ranking.classifiers import PairwiseClassifiers
from lawful.baselines.ranking.features import RankingFeatures
from lawful.baselines.ranking.popularity import MatrixFactorizationRanker, Popularity
from lawful.baselines.ranking.scorers import PairwiseRanker, StructuralRanker

__all__ = [
    "MatrixFactorizationRanker",
    "PairwiseClassifiers",
    "PairwiseRanker",
    "Popularity",
    "RankingFeatures",
    "StructuralRanker",
]
