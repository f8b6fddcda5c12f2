"""All that learns comparisons: pairwise ridge, its prior means, factorisation of ratings, the kernel between queries."""

from lawful.surrogates.pairs.comparisons import PairTasks
from lawful.surrogates.pairs.objective import PairObjective
from lawful.surrogates.pairs.pairwise import PairwiseRidge

__all__ = ["PairObjective", "PairTasks", "PairwiseRidge"]
