"""Ranking films for users by comparing them pair by pair: the paper's table `tab:ranking`."""

from lawful.experiments._base import Experiment
from lawful.experiments.ranking.pages import pages
from lawful.experiments.ranking.work import configurations, cost, describe, fields, load, run

RANKING = Experiment(
    "ranking",
    "MovieLens 100k, films ranked by pairwise comparisons",
    configurations,
    load,
    run,
    cost,
    pages,
    describe,
    fields,
    needs_data=True,
)
