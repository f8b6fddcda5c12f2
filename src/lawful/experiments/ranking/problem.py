"""One split of the ratings, the held-out training users on which every system chooses its strength, and the losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from lawful.datasets import movielens_protocol
from lawful.decoders.orders import order
from lawful.metrics import rank_loss
from lawful.ratings import split_profiles

DENOMINATORS = ("N1", "N2", "N3")
HELD_OUT = 0.2  # of the training users, for the choice of lam and C
SIMILARITY = 30.0  # weight of the kernel between ratings where there are profiles: the default of ConstrainedRanker
SWEEPS = 3  # of the insertion decoder, likewise


@dataclass
class Users:
    """Features, known ratings and (of those who are evaluated) the ratings to be predicted."""

    X: np.ndarray
    profile: sparse.csr_array
    truth: sparse.csr_array


@dataclass
class Problem:
    """Who is learned from (X, R), who is tested, and the same in small: `X_fit, R_fit` and `validation`."""

    protocol: str
    seed: int
    X: np.ndarray
    R: sparse.csr_array
    test: Users
    X_fit: np.ndarray
    R_fit: sparse.csr_array
    validation: Users
    genres: np.ndarray

    @property
    def similarity(self) -> float:
        """Where test users have no profile (B), training users must not be compared by theirs either."""
        return SIMILARITY if self.protocol == "A" else 0.0

    @property
    def n_parts(self) -> int:
        """Likewise for the joint features of the scorers: with B they see no ratings of the query."""
        return 2 if self.protocol == "A" else 1


def make_problem(data: Any, protocol: str, n_train: int, n_test: int, seed: int) -> Problem:
    """The split of this seed. Validation users are treated like test users: half of their ratings is profile (none with B)."""
    split = movielens_protocol(data, protocol, n_train=n_train, n_test=n_test, random_state=seed)
    shuffled = np.random.default_rng([seed, 1]).permutation(n_train)
    held = round(HELD_OUT * n_train)
    out, rest = np.sort(shuffled[:held]), np.sort(shuffled[held:])
    profile, truth = split_profiles(split.R_train[out], random_state=seed)
    if protocol == "B":
        profile = sparse.csr_array(profile.shape)
    return Problem(
        protocol=protocol,
        seed=seed,
        X=split.X_train,
        R=split.R_train,
        test=Users(split.X_test, split.profile_test, split.R_eval),
        X_fit=split.X_train[rest],
        R_fit=split.R_train[rest],
        validation=Users(split.X_train[out], profile, truth),
        genres=data.movies.genres.astype(float),
    )


def by_denominator(loss: Callable[[str], float]) -> dict[str, float]:
    """{"N1": ..., "N2": ..., "N3": ...}, six digits."""
    return {d: round(float(loss(d)), 6) for d in DENOMINATORS}


def losses(truth: Any, **prediction: Any) -> dict[str, float]:
    """Rank losses of an order or of scores."""
    return by_denominator(lambda d: rank_loss(truth, denominator=d, **prediction))


def choose(grid: tuple, loss: Callable[[Any], float]) -> Any:
    """The member of the grid with the least loss on the validation users; the first of equals."""
    return grid[int(np.argmin([loss(member) for member in grid]))]


def orders(model: Any, users: Users, methods: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Rank positions (m, D) by several decoders of a fitted ranker: S(x) is made once for all of them."""

    F, found = model.objective(users.X, users.profile), []
    with F.threads() as threads:
        for rows, skew in F.skews(threads):

            def decode(i: int, skew: Callable[[int], np.ndarray] = skew) -> list[np.ndarray]:
                S = skew(i)
                return [order(S, method, sweeps=SWEEPS, bound=False).order for method in methods]

            found += threads.map(decode, rows)
    return {method: np.argsort(np.array(found)[:, k], axis=1) for k, method in enumerate(methods)}
