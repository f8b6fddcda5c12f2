"""The paper's experiments, one package each: configurations -> rows -> report."""

from lawful.experiments._base import Clock, Experiment, Options
from lawful.experiments._reproduce import reproduce
from lawful.experiments._runner import cores
from lawful.experiments._store import StoreError
from lawful.experiments.theory import THEORY

EXPERIMENTS = {experiment.name: experiment for experiment in (THEORY,)}

__all__ = ["EXPERIMENTS", "Clock", "Experiment", "Options", "StoreError", "cores", "reproduce"]
