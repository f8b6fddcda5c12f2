"""What `lawful.experiments` offers: read by type checkers, and at run time by `lawful._lazy`."""

from lawful.experiments._base import Clock, Experiment, Options
from lawful.experiments._reproduce import reproduce
from lawful.experiments._runner import cores
from lawful.experiments._store import StoreError
from lawful.experiments.catalogue import EXPERIMENTS

NAMES: tuple[str, ...]

__all__ = ["EXPERIMENTS", "NAMES", "Clock", "Experiment", "Options", "StoreError", "cores", "reproduce"]
