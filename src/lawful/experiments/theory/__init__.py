"""The theorems, made visible: rates, the comparison inequality, the constant q, and what a law is worth."""

from lawful.experiments._base import Experiment
from lawful.experiments.theory.pages import pages
from lawful.experiments.theory.work import configurations, cost, describe, fields, load, run

THEORY = Experiment("theory", "the theorems, measured", configurations, load, run, cost, pages, describe, fields)
