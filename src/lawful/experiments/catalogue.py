"""All experiments, by name, in the order of the report."""

from lawful.experiments.ranking import RANKING
from lawful.experiments.sarcos import SARCOS
from lawful.experiments.synthetic import SYNTHETIC
from lawful.experiments.theory import THEORY

EXPERIMENTS = {experiment.name: experiment for experiment in (SYNTHETIC, SARCOS, RANKING, THEORY)}
