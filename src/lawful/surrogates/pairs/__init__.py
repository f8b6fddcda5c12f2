"""All that learns comparisons: pairwise ridge, its prior means, factorisation of ratings, the kernel between queries."""

from lawful._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
