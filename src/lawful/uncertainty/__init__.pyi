"""What `lawful.uncertainty` offers: read by type checkers, and at run time by `lawful._lazy`."""

from lawful.uncertainty.drawing import draw
from lawful.uncertainty.levels import Ranks, level_of, scores_of
from lawful.uncertainty.prediction_set import PredictionSet
from lawful.uncertainty.samples import Samples, SamplingWarning

__all__ = ["PredictionSet", "Ranks", "Samples", "SamplingWarning", "draw", "level_of", "scores_of"]
