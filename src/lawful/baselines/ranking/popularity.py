"""The strong simple baselines that papers forget: one order for everybody, and matrix factorisation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse

from lawful._checks import choice, count, number
from lawful._ranker import training_ratings
from lawful.baselines.ranking._base import ScoreRanker
from lawful.surrogates.pairs.factorisation import AveragedFactorization, FactorizationParameters, ItemBias, MatrixFactorization
from lawful.surrogates.pairs.factorisation import Popularity as ShrunkMean

__all__ = ["MatrixFactorizationRanker", "Popularity"]

STATISTICS = ("mean", "bias", "count")


class Popularity(ScoreRanker):
    """The same order for every query, by a statistic of the items.

        "mean"    (sum of the ratings of i + damping mu) / (n_i + damping), mu the mean of all ratings: the shrunk item mean
        "bias"    the same of ratings less the damped mean of who gave them
        "count"   n_i, how often the item was rated

    damping=0 with "mean" is the plain item mean; an unrated item then has mu. X is accepted and not used.

    >>> from lawful.datasets import make_ratings, movielens_protocol
    >>> split = movielens_protocol(make_ratings(60, 20, n_ratings=12, random_state=0), n_train=40, n_test=20)
    >>> from lawful.baselines import Popularity
    >>> Popularity().fit(split.X_train, split.R_train).predict(split.X_test).shape
    (20, 20)
    """

    def __init__(self, statistic: str = "mean", damping: float = 5.0) -> None:
        self.statistic = statistic
        self.damping = damping

    def fit(self, X: Any, R: Any = None, *, item_features: Any = None) -> Self:
        """Learn from ratings R (n, D), sparse or with NaN where unrated; X may be None."""
        choice(self, "statistic", STATISTICS)
        damping = number(self, "damping", zero=self.statistic != "bias")
        _, R = training_ratings(self, X, R)
        if self.statistic == "count":
            self.item_scores_ = np.bincount(R.indices, minlength=R.shape[1]).astype(float)
        else:
            model = ShrunkMean(damping) if self.statistic == "mean" else ItemBias(damping, damping)
            self.item_scores_ = model.fit(R).item_scores_
        return self

    def _scores(self, X: Any, ratings: Any, m: int) -> np.ndarray:
        return np.tile(self.item_scores_, (m, 1))


class MatrixFactorizationRanker(ScoreRanker, FactorizationParameters):
    """Sort the items by mu + b_i + p_u . q_i, the mean of `n_models` factorisations by alternating least squares.

    A new query is folded in: p_u is the ridge regression of its own ratings on the factors of the items. Without ratings the
    item biases rank. X is accepted and not used.

    Parameters
    ----------
    n_factors, lam, count_power, damping, n_iter : as in `lawful.surrogates.pairs.factorisation.MatrixFactorization`
    n_models : factorisations that differ in their start only; averaging three of them ranks better than one
    random_state, n_jobs : n_jobs=None uses all cores

    Examples
    --------
    >>> from lawful.datasets import make_ratings, movielens_protocol
    >>> split = movielens_protocol(make_ratings(60, 20, n_ratings=12, random_state=0), n_train=40, n_test=20)
    >>> from lawful.baselines import MatrixFactorizationRanker
    >>> ranker = MatrixFactorizationRanker(n_factors=2).fit(split.X_train, split.R_train)
    >>> ranker.predict(split.X_test, ratings=split.profile_test).shape
    (20, 20)
    """

    def __init__(
        self,
        n_factors: int = 16,
        lam: float = 1.2,
        *,
        count_power: float = 0.5,
        damping: float = 5.0,
        n_iter: int = 8,
        n_models: int = 1,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(n_factors, lam, count_power=count_power, damping=damping, n_iter=n_iter, random_state=random_state)
        self.n_models = n_models
        self.n_jobs = n_jobs

    def fit(self, X: Any, R: Any = None, *, item_features: Any = None) -> Self:
        """Learn from ratings R (n, D), sparse or with NaN where unrated; X may be None."""
        n_factors, n_models = count(self, "n_factors"), count(self, "n_models")
        lam, damping = number(self, "lam"), number(self, "damping")
        power, n_iter = number(self, "count_power", zero=True), count(self, "n_iter")
        _, R = training_ratings(self, X, R)
        model = MatrixFactorization(n_factors, lam, count_power=power, damping=damping, n_iter=n_iter)
        self.model_ = AveragedFactorization(model, n_models, self.random_state, self.n_jobs).fit(R)
        return self

    def _scores(self, X: Any, ratings: Any, m: int) -> np.ndarray:
        return self.model_.fold_in(sparse.csr_array((m, self.n_items_)) if ratings is None else ratings)
