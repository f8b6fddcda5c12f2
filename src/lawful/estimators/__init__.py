"""Estimators: where encode, regress and decode meet."""

from lawful.estimators.base import DecodingError, DecodingWarning
from lawful.estimators.regressor import ConstrainedRegressor

__all__ = ["ConstrainedRegressor", "DecodingError", "DecodingWarning"]
