"""Sarcos (tab:real-data): seven torques of a robot arm from 15 points each, every system of the table run anew."""

from lawful.experiments._base import Experiment
from lawful.experiments.sarcos.pages import pages
from lawful.experiments.sarcos.work import configurations, cost, describe, fields, load, run

SARCOS = Experiment(
    "sarcos", "seven torques of a robot arm", configurations, load, run, cost, pages, describe, fields, needs_data=True
)

__all__ = ["SARCOS"]
