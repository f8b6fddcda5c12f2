"""The paper's experiments, one package each: configurations -> rows -> report."""

from lawful.experiments._base import Clock, Experiment, Options
from lawful.experiments._reproduce import reproduce
from lawful.experiments._runner import cores
from lawful.experiments._store import StoreError
from lawful.experiments.ranking import RANKING
from lawful.experiments.sarcos import SARCOS
from lawful.experiments.synthetic import SYNTHETIC
from lawful.experiments.theory import THEORY

EXPERIMENTS = {experiment.name: experiment for experiment in (SYNTHETIC, SARCOS, RANKING, THEORY)}

__all__ = ["EXPERIMENTS", "Clock", "Experiment", "Options", "StoreError", "cores", "reproduce"]
