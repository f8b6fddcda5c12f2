"""Estimators: where encode, regress and decode meet."""

from lawful.estimators.base import DecodingError, DecodingWarning
from lawful.estimators.regressor import ConstrainedRegressor
from lawful.estimators.search import ConstrainedRegressorCV
from lawful.estimators.selection import GridEdgeWarning

__all__ = ["ConstrainedRegressor", "ConstrainedRegressorCV", "DecodingError", "DecodingWarning", "GridEdgeWarning"]
