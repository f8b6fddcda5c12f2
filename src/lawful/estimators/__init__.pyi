"""What `lawful.estimators` offers: read by type checkers, and at run time by `lawful._lazy`."""

from lawful.decoders import RankingDecoding
from lawful.estimators.base import DecodingError, DecodingWarning
from lawful.estimators.classifier import ConstrainedClassifier
from lawful.estimators.conformal import ConformalRegressor
from lawful.estimators.ranker import ConstrainedRanker
from lawful.estimators.regressor import ConstrainedRegressor
from lawful.estimators.search import ConstrainedRegressorCV
from lawful.estimators.selection import GridEdgeWarning

__all__ = [
    "ConformalRegressor",
    "ConstrainedClassifier",
    "ConstrainedRanker",
    "ConstrainedRegressor",
    "ConstrainedRegressorCV",
    "DecodingError",
    "DecodingWarning",
    "GridEdgeWarning",
    "RankingDecoding",
]
