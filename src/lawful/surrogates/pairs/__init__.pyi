"""What `lawful.surrogates.pairs` offers: read by type checkers, and at run time by `lawful._lazy`."""

from lawful.surrogates.pairs.comparisons import PairTasks
from lawful.surrogates.pairs.large import FrequentPairRidge
from lawful.surrogates.pairs.objective import PairObjective
from lawful.surrogates.pairs.pairwise import PairwiseRidge

__all__ = ["FrequentPairRidge", "PairObjective", "PairTasks", "PairwiseRidge"]
