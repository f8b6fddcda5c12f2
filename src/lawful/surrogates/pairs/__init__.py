"""All that learns comparisons: pairwise ridge, its prior means, factorisation of ratings, the kernel between queries."""

from lawful.surrogates.pairs.pairwise import PairwiseRidge

__all__ = ["PairwiseRidge"]
