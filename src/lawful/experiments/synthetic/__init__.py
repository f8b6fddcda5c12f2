"""The paper's synthetic experiment: two tasks on a circumference or a lemniscate (fig:synth-boxplot)."""

from lawful.experiments._base import Experiment
from lawful.experiments.synthetic.pages import pages
from lawful.experiments.synthetic.work import configurations, cost, describe, fields, load, run

SYNTHETIC = Experiment("synthetic", "two tasks on a curve", configurations, load, run, cost, pages, describe, fields)

__all__ = ["SYNTHETIC"]
