"""Rating data as a ranking problem: which users are queries, what their features may see, what is evaluated.

A   a random half of a test user's ratings is the profile, which features may use; the other half is evaluated
B   no profile: demographics only; the same half is evaluated
C   leaky: the profile holds the evaluated ratings too. It shows how much a leak flatters; it is never a result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse.linalg
from scipy import sparse
from sklearn.utils import Bunch, check_random_state

from lawful.ratings import DAMPING, profile_features, similarity, split_profiles

__all__ = ["demographics", "movielens_protocol"]

FEATURES = ("demographics", "similarity", "factors")


class Protocol(Bunch):
    """The parts of an experiment. Its printed form says whether features have seen the evaluated ratings."""

    def __repr__(self) -> str:
        parts = (
            f"protocol {self.protocol}: {self.R_train.shape[0]} training users, {self.R_eval.shape[0]} test users, "
            f"{self.profile_test.nnz} profile ratings, {self.R_eval.nnz} evaluated; features: {', '.join(self.features)}"
        )
        return f"LEAKY, not a result: features have seen the evaluated ratings; {parts}" if self.leaky else parts

    __str__ = __repr__


def demographics(users: Any, train: Any) -> tuple[np.ndarray, list[str]]:
    """(n, 23) age, gender, occupation (one-hot), centred on the users `train`; each of the three has total variance 1 there.

    A variable and not a column gets unit variance: scaled column by column, rare occupations would outweigh everything.
    """
    names = np.unique(users.occupation)
    blocks = {
        "age": users.age[:, None].astype(float),
        "gender": (users.gender == "F")[:, None].astype(float),
        "occupation": (users.occupation[:, None] == names).astype(float),
    }
    scaled = []
    for block in blocks.values():
        centred = block - block[train].mean(axis=0)
        spread = np.sqrt(np.sum(np.var(block[train], axis=0)))
        scaled.append(centred / spread if spread > 0 else centred)
    return np.hstack(scaled), ["age", "gender", *(f"occupation={name}" for name in names)]


def movielens_protocol(
    data: Any,
    protocol: str = "A",
    *,
    n_train: int = 643,
    n_test: int | None = 300,
    profile: float = 0.5,
    features: Any = ("demographics",),
    damping: float = DAMPING,
    n_factors: int = 16,
    random_state: Any = 0,
) -> Protocol:
    """Training queries, test queries with their profiles, and the ratings that are evaluated.

    Parameters
    ----------
    data : what `fetch_movielens_100k` returns, or any Bunch with `ratings` and (for demographics) `users`
    protocol : "A", "B" or "C", see the module; C is marked leaky
    n_train, n_test : users drawn without replacement; n_test=None: all others
    profile : share of a test user's ratings in the profile
    features : any of "demographics", "similarity" (to each training user), "factors" (the profile on the leading right
        singular vectors of the training ratings). `ConstrainedRanker` and the priors use profiles by themselves, so that
        demographics suffice for them; the others are for methods that see X only.
    damping : of the similarity

    Returns
    -------
    Bunch with X_train, R_train, profile_train, X_test, profile_test, R_eval, train_users, test_users, feature_names, features,
    protocol, leaky. With "B" profile_test holds nothing.

    Notes
    -----
    A training user's features must follow the law of a test user's: they are computed from a random share `profile` of his
    ratings (`profile_train`), and his similarity to himself, which a test user does not have, is replaced by the mean
    similarity of the others to him. `R_train` still holds all his ratings.

    Examples
    --------
    >>> from lawful.datasets import make_ratings, movielens_protocol
    >>> movielens_protocol(make_ratings(60, 20, n_ratings=12, random_state=0), n_train=40, n_test=20)
    protocol A: 40 training users, 20 test users, 98 profile ratings, 102 evaluated; features: demographics
    """
    features = (features,) if isinstance(features, str) else tuple(features)
    if protocol not in ("A", "B", "C"):
        raise ValueError(f"unknown protocol {protocol!r}; choose 'A' (profile half), 'B' (demographics only) or 'C' (leaky)")
    if not features or not set(features) <= set(FEATURES):
        raise ValueError(f"features={features!r}: choose one or more of {', '.join(FEATURES)}")
    if protocol == "B" and features != ("demographics",):
        raise ValueError(f"protocol 'B' has no profiles, so features={features!r} cannot be computed; use ('demographics',)")
    R = sparse.csr_array(data.ratings, dtype=float, copy=True)
    R.sort_indices()
    n, n_test = R.shape[0], R.shape[0] - n_train if n_test is None else n_test
    if not (n_train >= 1 and n_test >= 1 and n_train + n_test <= n):
        raise ValueError(f"{n_train} training and {n_test} test users were asked for; the data have {n}")
    if not 0 < profile < 1:
        raise ValueError(f"profile={profile!r} must lie strictly between 0 and 1, so that something is left to evaluate")
    rng = check_random_state(random_state)
    order = rng.permutation(n)
    train, test = order[:n_train], order[n_train : n_train + n_test]
    R_train, R_test = R[train], R[test]
    half, R_eval = split_profiles(R_test, profile, rng)
    own, _ = split_profiles(R_train, profile, rng)
    seen = {"A": half, "B": sparse.csr_array(half.shape), "C": R_test}[protocol]

    X_train, X_test, names = [], [], []
    for kind in features:
        if kind == "demographics":
            X, labels = demographics(data.users, train)
            a, b = X[train], X[test]
        elif kind == "similarity":
            a, b = similarity(own, R_train, damping), similarity(seen, R_train, damping)
            labels = [f"similarity to user {u}" for u in train]
            np.fill_diagonal(a, (a.sum(axis=0) - np.diag(a)) / max(n_train - 1, 1))
        else:
            k = min(n_factors, min(R_train.shape) - 1)
            start = np.ones(min(R_train.shape))  # a fixed start: the result is a function of the data
            V = scipy.sparse.linalg.svds(profile_features(R_train, damping), k=k, v0=start)[2][::-1].T
            a, b = profile_features(own, damping) @ V, profile_features(seen, damping) @ V
            labels = [f"factor {j}" for j in range(k)]
        X_train.append(a)
        X_test.append(b)
        names += labels
    return Protocol(
        protocol=protocol,
        leaky=protocol == "C",
        features=features,
        feature_names=names,
        X_train=np.hstack(X_train),
        R_train=R_train,
        profile_train=own,
        X_test=np.hstack(X_test),
        profile_test=seen,
        R_eval=R_eval,
        train_users=train,
        test_users=test,
    )
