"""Linear ordering: total orders of items from what it pays to put one before the other."""

from lawful._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
