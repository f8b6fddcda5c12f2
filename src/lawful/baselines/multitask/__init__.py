"""Multitask regression: a matrix of relations between the tasks, given or learned, and what it is compared with."""

from lawful._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
