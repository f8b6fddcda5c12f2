"""What `lawful.plots` offers: read by type checkers, and at run time by `lawful._lazy`."""

from lawful.plots.canvas import LAW, LAWFUL, LAWLESS, OKABE_ITO
from lawful.plots.confidence import ConfidenceDisplay
from lawful.plots.histograms import MarginDisplay, ResidualDisplay
from lawful.plots.laws import draw_law
from lawful.plots.learning import LearningCurveDisplay
from lawful.plots.paths import PathDisplay
from lawful.plots.predictions import PredictionDisplay
from lawful.plots.rankings import RankingDisplay
from lawful.plots.uncertain import plot_curves, plot_draws, plot_sets

__all__ = [
    "LAW",
    "LAWFUL",
    "LAWLESS",
    "OKABE_ITO",
    "ConfidenceDisplay",
    "LearningCurveDisplay",
    "MarginDisplay",
    "PathDisplay",
    "PredictionDisplay",
    "RankingDisplay",
    "ResidualDisplay",
    "draw_law",
    "plot_curves",
    "plot_draws",
    "plot_sets",
]
