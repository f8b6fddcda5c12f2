"""The plan of the ranking experiment, its data, and the dispatch of one unit of work: one part of one split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from lawful.datasets import fetch_movielens_100k
from lawful.datasets.ratings import make_ratings
from lawful.experiments._base import Clock, Options
from lawful.experiments.ranking import systems
from lawful.experiments.ranking.problem import Problem, make_problem
from lawful.experiments.ranking.small import small

PARTS: dict[str, Callable[[Problem, Clock], dict[str, Any]]] = {
    "nlmtl": systems.nlmtl,
    "self": systems.self_,
    "ours": systems.ours,
    "rankers": systems.rankers,
    "stl": systems.stl,
    "scores": systems.scores,
}
# Seconds on one core of a 2020s server, (A, B).
COST: dict[str, tuple[float, float]] = {
    "nlmtl": (36, 36),
    "self": (28, 29),
    "ours": (19, 18),
    "rankers": (17, 17),
    "stl": (8, 7),
    "scores": (4, 0.3),
    "mtrl": (45, 15),
}
FULL = {"train": 643, "test": 300, "films": 1682, "few": 30}
QUICK = {"train": 300, "test": 100, "films": 150, "few": 10}
GENERATED = {"train": 300, "test": 100, "films": 120, "few": 10}


def configurations(options: Options) -> list[dict[str, Any]]:
    """Trial by trial, so that a run that was stopped has whole trials: protocol A and B, part by part."""
    size = (GENERATED if options.data is None else QUICK) if options.quick else FULL
    return [
        {"trial": k, "seed": options.seed + k, "protocol": protocol, "part": part, **size}
        for k in range(options.trials)
        for protocol in ("A", "B")
        for part in COST
    ]


def load(options: Options) -> Bunch:
    """MovieLens 100k from the folder; for a quick look the most rated films, or generated ratings where there is no folder."""
    if options.data is None:
        if not options.quick:
            raise FileNotFoundError(
                "reproduce ranking: MovieLens 100k is needed (u.data, u.user, u.item, u.genre of ml-100k.zip, "
                "https://grouplens.org/datasets/movielens/100k/); unpack it and pass its folder with --data, or use --quick"
            )
        users = GENERATED["train"] + GENERATED["test"]
        return Bunch(generated=True, table=make_ratings(users, GENERATED["films"], random_state=options.seed))
    table = fetch_movielens_100k(folder=options.data)
    return Bunch(generated=False, table=among_most_rated(table, QUICK["films"]) if options.quick else table)


def among_most_rated(table: Any, n_films: int) -> Bunch:
    """The same data with the films that were rated most, and nothing else."""
    count = np.bincount(table.ratings.indices, minlength=table.ratings.shape[1])
    films = np.sort(np.argsort(-count, kind="stable")[:n_films])
    movies = Bunch(**{name: values[films] for name, values in table.movies.items()})
    return Bunch(ratings=sparse.csr_array(table.ratings[:, films]), users=table.users, movies=movies)


def describe(data: Bunch) -> list[str]:
    users, films = data.table.ratings.shape
    what = "generated ratings (a stand-in, not MovieLens)" if data.generated else "MovieLens 100k"
    return [f"{what}: {data.table.ratings.nnz} ratings of {films} films by {users} users"]


def run(configuration: dict[str, Any], data: Bunch, clock: Clock) -> dict[str, Any]:
    """One part of one split: all parts of a trial have the same training, validation and test users."""
    c = configuration
    problem = make_problem(data.table, c["protocol"], c["train"], c["test"], c["seed"])
    return small(problem, clock, c["few"]) if c["part"] == "mtrl" else PARTS[c["part"]](problem, clock)


def fields(configuration: dict[str, Any]) -> tuple[str, ...]:
    return ("chosen", "losses")


def cost(configuration: dict[str, Any]) -> float:
    c = configuration
    seconds = COST[c["part"]][c["protocol"] == "B"]
    if c["films"] == FULL["films"]:
        return seconds
    return seconds * (c["train"] + c["test"]) * c["films"] / ((FULL["train"] + FULL["test"]) * FULL["films"])
