"""Scores of items for users from their ratings alone: popularity, item bias, matrix factorisation.

    r_ui = mu + b_u + b_i + p_u . q_i        by alternating ridge regressions (ALS); a new user is folded in by one of them

A *scorer* has

* `fit(R)`: R (n, D) ratings, sparse (a stored entry is a rating, zero included; all else is unrated) or dense with NaN
* `fold_in(profile)`: (m, D) scores for users who were not in the fit, from the ratings in their profiles

Only differences of scores within a user mean something, so no scorer adds what is constant for a user.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from lawful._checks import check_finite, in_range
from lawful._threads import n_threads, on_threads
from lawful.ratings import as_ratings, centred_squares, split_profiles, users_of, with_data
from lawful.surrogates.pairs._als import half_step, leave_one_out

__all__ = [
    "AveragedFactorization",
    "ItemBias",
    "MatrixFactorization",
    "Popularity",
    "select_factorization",
]

GRIDS = [
    {"n_factors": [16, 32], "lam": [0.9, 1.2, 1.6], "count_power": [0.5]},
    {"n_factors": [16, 32], "lam": [0.1, 0.14, 0.18], "count_power": [1.0]},
]


class _SameForAll(BaseEstimator):
    """Scores that are the same for every user: `item_scores_` (D,)."""

    item_scores_: np.ndarray

    def fold_in(self, profile: Any) -> np.ndarray:
        """(m, D) scores; the profile gives only the number of users."""
        check_is_fitted(self)
        return np.tile(self.item_scores_, (as_ratings(profile, len(self.item_scores_)).shape[0], 1))

    def scores(self, ratings: Any = None, X: Any = None) -> np.ndarray:
        """(m, D) scores; `ratings` or `X` gives the number of users, which is 1 when both are None."""
        check_is_fitted(self)
        if ratings is not None:
            return self.fold_in(ratings)
        return np.tile(self.item_scores_, (1 if X is None else np.shape(X)[0], 1))


class Popularity(_SameForAll):
    """F_i = (sum of the ratings of i + damping mu) / (n_i + damping), mu the mean rating: the shrunk item mean."""

    def __init__(self, damping: float = 5.0) -> None:
        self.damping = damping

    def fit(self, R: Any, X: Any = None) -> Self:
        R = as_ratings(R)
        count = np.bincount(R.indices, minlength=R.shape[1])
        mean = R.data.mean() if R.nnz else 0.0
        total = np.bincount(R.indices, weights=R.data - mean, minlength=R.shape[1])
        self.item_scores_ = mean + total / np.maximum(count + self.damping, 1e-300)
        return self


class ItemBias(_SameForAll):
    """F_i = mu + b_i in the model r_ui = mu + b_u + b_i, damped: who rates strictly counts accordingly.

        b_u = sum_i (r_ui - mu) / (n_u + user_damping),     b_i = sum_u (r_ui - mu - b_u) / (n_i + item_damping)

    `training_scores()` gives at each rating (u, i) the same F_i fitted without any rating of user u. All of mu, b_v and b_i
    are affine in mu, so leaving a user out needs no second fit.
    """

    def __init__(self, user_damping: float = 5.0, item_damping: float = 5.0) -> None:
        self.user_damping = user_damping
        self.item_damping = item_damping

    def fit(self, R: Any, X: Any = None) -> Self:
        if not self.user_damping > 0 or not self.item_damping > 0:
            raise ValueError("ItemBias needs user_damping and item_damping above 0, else an unrated item has no score")
        R = as_ratings(R)
        users, D = users_of(R), R.shape[1]
        n_u, n_i = np.diff(R.indptr), np.bincount(R.indices, minlength=D)
        total = np.bincount(users, weights=R.data, minlength=R.shape[0])
        # r_ui - mu - b_u = e_ui - mu g_u with e and g free of mu
        e = R.data - (total / (n_u + self.user_damping))[users]
        g = (self.user_damping / (n_u + self.user_damping))[users]
        sum_e = np.bincount(R.indices, weights=e, minlength=D)
        sum_g = np.bincount(R.indices, weights=g, minlength=D)
        mean = total.sum() / max(R.nnz, 1)
        self.item_scores_ = mean + (sum_e - mean * sum_g) / (n_i + self.item_damping)
        # The same without user u: his entries leave every sum, and mu.
        i = R.indices
        rest = ((total.sum() - total) / np.maximum(R.nnz - n_u, 1))[users]
        without = rest + (sum_e[i] - e - rest * (sum_g[i] - g)) / (n_i[i] - 1 + self.item_damping)
        self.training_scores_ = with_data(R, without)
        return self

    def training_scores(self) -> sparse.csr_array:
        """At each training rating (u, i): F_i fitted without user u."""
        check_is_fitted(self)
        return self.training_scores_


class FactorizationParameters(BaseEstimator):
    """k, the ridges, the rounds and the start of an alternating factorisation; see `MatrixFactorization`."""

    def __init__(
        self,
        n_factors: int = 16,
        lam: float = 1.2,
        *,
        count_power: float = 0.5,
        damping: float = 5.0,
        n_iter: int = 8,
        random_state: Any = 0,
    ) -> None:
        self.n_factors = n_factors
        self.lam = lam
        self.count_power = count_power
        self.damping = damping
        self.n_iter = n_iter
        self.random_state = random_state


class MatrixFactorization(FactorizationParameters):
    """r_ui = mu + b_u + b_i + p_u . q_i by ALS, with fold-in of new users.

    Each round regresses, by ridge, every user's ratings on the factors of the items (and a constant b_u), then every item's on
    those of its users. A vector fitted to n ratings has the ridge lam n^count_power, a bias has `damping`.

    Parameters
    ----------
    n_factors, lam, damping : k, and the ridges above
    count_power : 0 (the same ridge for all), 1 (weighted by the counts) or between; 1/2 ranked best
    n_iter : rounds
    random_state : of the first item factors; the result is a function of it and of the data

    Attributes
    ----------
    mean_ (mu), item_bias_ (D,), item_factors_ (D, k), user_bias_ (n,) and user_factors_ (n, k) of the training users
    """

    def fit(self, R: Any, X: Any = None) -> Self:
        if not (self.n_factors >= 1 and self.lam > 0 and self.damping > 0 and self.n_iter >= 1):
            raise ValueError("MatrixFactorization needs n_factors and n_iter of at least 1, lam and damping above 0")
        R = as_ratings(R)
        (n, D), k = R.shape, int(self.n_factors)
        users, items = users_of(R), R.indices
        turned = sparse.csr_array((np.arange(R.nnz), items, R.indptr), shape=R.shape).tocsc()  # stable, unlike a sort linear
        by_item, item_ptr, raters = turned.data, turned.indptr, turned.indices
        self.mean_ = float(R.data.sum() / max(R.nnz, 1))
        y = R.data - self.mean_
        Q = 0.1 * check_random_state(self.random_state).standard_normal((D, k))
        P, user_bias = np.zeros((n, k)), np.zeros(n)
        bias = ItemBias(self.damping, self.damping).fit(R).item_scores_ - self.mean_
        with in_range("MatrixFactorization"):
            for _ in range(self.n_iter):
                half_step(R.indptr, items, y - bias[items], Q, *self._ridge(), P, user_bias)
                half_step(item_ptr, raters, (y - user_bias[users])[by_item], P, *self._ridge(), Q, bias)
            check_finite("MatrixFactorization", Q, bias)
        self.item_factors_, self.item_bias_ = Q, bias
        self.user_factors_, self.user_bias_ = P, user_bias
        return self

    def _ridge(self) -> tuple[np.ndarray, np.ndarray, float]:
        k = int(self.n_factors)
        return np.full(k, float(self.lam)), np.full(k, float(self.count_power)), float(self.damping)

    def _residuals(self, R: sparse.csr_array) -> np.ndarray:
        return R.data - self.mean_ - self.item_bias_[R.indices]

    def user_factors(self, profile: Any) -> np.ndarray:
        """(m, k) factors p of new users, from their profiles; zeros without ratings."""
        check_is_fitted(self)
        R = as_ratings(profile, len(self.item_bias_))
        P = np.zeros((R.shape[0], int(self.n_factors)))
        half_step(R.indptr, R.indices, self._residuals(R), self.item_factors_, *self._ridge(), P, np.zeros(R.shape[0]))
        return P

    def fold_in(self, profile: Any) -> np.ndarray:
        """(m, D) scores mu + b_i + p . q_i of new users."""
        return self.user_factors(profile) @ self.item_factors_.T + (self.mean_ + self.item_bias_)

    def scores(self, ratings: Any = None, X: Any = None) -> np.ndarray:
        """As `fold_in`; without ratings the item scores mu + b_i for each row of X (one row when X is None)."""
        check_is_fitted(self)
        if ratings is not None:
            return self.fold_in(ratings)
        return np.tile(self.mean_ + self.item_bias_, (1 if X is None else np.shape(X)[0], 1))

    def leave_one_out(self, R: Any) -> sparse.csr_array:
        """At each rating (u, i) of *new* users: mu + b_i + p . q_i with p folded in from their other ratings."""
        check_is_fitted(self)
        R = as_ratings(R, len(self.item_bias_))
        out = np.zeros(R.nnz)
        leave_one_out(R.indptr, R.indices, self._residuals(R), self.item_factors_, *self._ridge(), False, out)
        return with_data(R, self.mean_ + self.item_bias_[R.indices] + out)


class AveragedFactorization(BaseEstimator):
    """The mean of the scores of `n_models` factorisations that differ in their start only."""

    def __init__(self, model: Any = None, n_models: int = 3, random_state: Any = 0, n_jobs: int | None = None) -> None:
        self.model = model
        self.n_models = n_models
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, R: Any, X: Any = None) -> Self:
        R = as_ratings(R)
        models = restarts(self.model, self.n_models, self.random_state)
        self.models_ = on_threads(lambda model: model.fit(R), models, n_threads(self.n_jobs))
        return self

    def fold_in(self, profile: Any) -> np.ndarray:
        """(m, D) mean scores of new users."""
        check_is_fitted(self)
        return np.mean([model.fold_in(profile) for model in self.models_], axis=0)


def restarts(model: Any, n_models: int, random_state: Any) -> list[MatrixFactorization]:
    """Copies of `model` (None: the default) with seeds drawn from random_state."""
    if n_models < 1:
        raise ValueError(f"n_models={n_models!r}; at least one model is needed")
    seeds = check_random_state(random_state).randint(2**31 - 1, size=n_models)
    base = MatrixFactorization() if model is None else model
    return [clone_with(base, random_state=int(seed)) for seed in seeds]


def clone_with(model: Any, **changes: Any) -> Any:
    return type(model)(**{**model.get_params(deep=False), **changes})


def select_factorization(
    R: Any,
    grid: Any = None,
    *,
    loss: Callable[[Any, np.ndarray], float] | None = None,
    validation: float = 0.2,
    n_splits: int = 3,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> MatrixFactorization:
    """The `MatrixFactorization` of a grid with the least validation loss, fitted to all of R; `validation_loss_` holds all.

    In each of `n_splits` splits a share `validation` of the users stays out of the fit; half of their ratings is folded in and
    the loss is taken on the other half. `loss(R_true, scores)` is smaller when better; None: squared error around each user's
    mean. The default grid holds both ridges that grow like the root of the counts and ridges weighted by the counts.
    """
    R, rng = as_ratings(R), check_random_state(random_state)
    loss = centred_squares if loss is None else loss
    candidates = list(ParameterGrid(GRIDS if grid is None else grid))
    held = max(1, round(validation * R.shape[0]))
    if held >= R.shape[0]:
        raise ValueError(f"validation={validation} leaves none of {R.shape[0]} users for the fit; choose less")
    total = np.zeros(len(candidates))
    for _ in range(n_splits):
        order = rng.permutation(R.shape[0])
        train = R[np.sort(order[held:])]
        profile, rest = split_profiles(R[np.sort(order[:held])], random_state=rng)

        def one(parameters: dict[str, Any], train: Any = train, profile: Any = profile, rest: Any = rest) -> float:
            return loss(rest, MatrixFactorization(**parameters).fit(train).fold_in(profile))

        total += on_threads(one, candidates, n_threads(n_jobs))
    model = MatrixFactorization(**candidates[int(np.argmin(total))]).fit(R)
    model.validation_loss_ = list(zip(candidates, total / n_splits))
    return model
