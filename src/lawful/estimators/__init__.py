"""Estimators: where encode, regress and decode meet."""

from lawful._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
