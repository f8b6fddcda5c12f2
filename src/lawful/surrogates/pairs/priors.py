"""Prior means for rankings: what is believed of the items before the query's kernel says anything.

A *prior* is an estimator with

* `fit(R, X=None)`: R (n, D) sparse ratings, a stored entry is a rating and everything else is unrated; X (n, d) the queries
* `training_scores()`: csr with the pattern of R. At each rating (u, i) it holds F_i(u) *out of sample*: what the prior would
  have said about item i without having seen rating (u, i). In-sample scores would explain the training pairs with the
  very noise in them and leave nothing true for the kernel to learn.
* `scores(ratings=None, X=None)`: (m, D) scores F_i(x) of new queries from their profiles, a sparse (m, D) matrix of
  ratings; without ratings the prior falls back on what it knows of the items (or uses X).

Only differences F_p - F_q within a user count. A term that is constant for a user must stay out of `training_scores`: fitted
without rating (u, i) it would differ from item to item and carry the left-out ratings into the differences.

A function can be a prior too: `CrossFitted(score)` calls it on parts of the data so that its training scores are out of sample.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from lawful._threads import n_threads, on_threads
from lawful.ratings import as_ratings, users_of, with_data
from lawful.surrogates.pairs._als import half_step, leave_one_out
from lawful.surrogates.pairs.factorisation import ItemBias, restarts

__all__ = ["ColdPrior", "CrossFitted", "FactorPrior", "Prior", "make_prior"]


@runtime_checkable
class Prior(Protocol):
    """Structural type of a prior; see the module's docstring."""

    def fit(self, R: Any, X: Any = None) -> Self: ...

    def training_scores(self) -> sparse.csr_array: ...

    def scores(self, ratings: Any = None, X: Any = None) -> np.ndarray: ...


def make_prior(prior: Any) -> Any:
    """An unfitted prior from a name ("item_bias", "factors"), a prior, or a function; None stays None.

    A function score(R, profile) is wrapped in `CrossFitted`, an estimator is copied.
    """
    if prior is None:
        return None
    if isinstance(prior, str):
        if prior not in PRIORS:
            raise ValueError(
                f"unknown prior {prior!r}; choose {' or '.join(map(repr, PRIORS))}, or give an object with fit, "
                "training_scores and scores, or a function score(R, profile)"
            )
        return PRIORS[prior]()
    if isinstance(prior, Prior) and not isinstance(prior, type):
        return clone(prior) if isinstance(prior, BaseEstimator) else prior
    if callable(prior) and not isinstance(prior, type):
        return CrossFitted(prior)
    raise TypeError(
        f"{prior!r} is not a prior: it needs fit(R, X), training_scores() and scores(ratings, X), or to be a function "
        "score(R, profile)"
    )


class CrossFitted(BaseEstimator):
    """A prior from a function score(R, profile) -> (m, D): scores of m users with these profiles, learned from R.

    The function may only look at its arguments. For the training scores users are dealt into `n_folds` folds and the ratings of
    each into `n_parts` parts; at the ratings of one part a user's score comes from R without his fold and from a profile
    without that part. The function is called n_folds + 1 times (and once for each call of `scores`).
    """

    def __init__(self, score: Callable[[Any, Any], Any], n_folds: int = 5, n_parts: int = 10, random_state: Any = 0) -> None:
        self.score = score
        self.n_folds = n_folds
        self.n_parts = n_parts
        self.random_state = random_state

    def fit(self, R: Any, X: Any = None) -> Self:
        R, rng = as_ratings(R), check_random_state(self.random_state)
        fold = deal(R.shape[0], self.n_folds, rng)
        users, part = users_of(R), rng.randint(self.n_parts, size=R.nnz)
        out = np.empty(R.nnz)
        for f in np.unique(fold):
            entries = np.flatnonzero(fold[users] == f)
            place = np.cumsum(fold == f) - 1  # a user's row inside the fold
            rows, m = place[users[entries]], int((fold == f).sum())
            profiles = [_only(R, entries[part[entries] != j], rows[part[entries] != j], m) for j in range(self.n_parts)]
            found = self._call(R[fold != f], sparse.csr_array(sparse.vstack(profiles)))
            out[entries] = found[part[entries] * m + rows, R.indices[entries]]
        self.ratings_, self.training_scores_ = R, with_data(R, out)
        return self

    def _call(self, R: Any, profile: Any) -> np.ndarray:
        found = np.asarray(self.score(R, profile), dtype=float)
        if found.shape != profile.shape or not np.isfinite(found).all():
            raise ValueError(
                f"the prior's function returned scores of shape {found.shape}; finite ones of shape {profile.shape} are needed"
            )
        return found

    def training_scores(self) -> sparse.csr_array:
        """The out-of-sample scores at the training ratings."""
        check_is_fitted(self)
        return self.training_scores_

    def scores(self, ratings: Any = None, X: Any = None) -> np.ndarray:
        """(m, D) scores; without ratings from empty profiles."""
        check_is_fitted(self)
        D = self.ratings_.shape[1]
        empty = sparse.csr_array((1 if X is None else np.shape(X)[0], D))
        return self._call(self.ratings_, empty if ratings is None else as_ratings(ratings, D))


def _only(R: sparse.csr_array, entries: np.ndarray, rows: np.ndarray, m: int) -> sparse.csr_array:
    return sparse.csr_array((R.data[entries], (rows, R.indices[entries])), shape=(m, R.shape[1]))


def deal(n: int, n_folds: int, rng: Any) -> np.ndarray:
    """A fold for each of n users, the folds of equal size up to one."""
    if n_folds < 2 or n < 2:
        raise ValueError(f"out-of-sample scores need two users and two folds at least; there are {n} users, {n_folds} folds")
    return rng.permutation(n) % min(n_folds, n)


GAMMA = 0.5


class AttributeRidge:
    """For each item, kernel ridge regression of residual ratings on the users' attributes X.

        k(x, x') = exp(-|z - z'|^2 / 2),   z = (x - mean) / root mean square norm;    ridge kappa / weight

    in `n_components` Nystroem features, so that any number of users costs a small system per item. Columns of X count as they
    are scaled. The constant has a ridge of its own.
    """

    def __init__(self, X: np.ndarray, kappa: float, weight: float, constant: float, n_components: int, seed: int) -> None:
        self.center = X.mean(axis=0)
        norm = np.sqrt(np.mean(np.sum((X - self.center) ** 2, axis=1)))
        self.scale = norm if norm > 0 else 1.0
        size = min(n_components, len(X))
        found = Nystroem(gamma=GAMMA, n_components=size, random_state=seed).fit((X - self.center) / self.scale)
        self.points, self.whiten = found.components_, found.normalization_.T
        self.ridge = np.full(size, kappa / weight), np.zeros(size), kappa / constant
        self.features = self.transform(X)

    def transform(self, X: Any) -> np.ndarray:
        Z = (np.asarray(X, dtype=float) - self.center) / self.scale
        return np.ascontiguousarray(rbf_kernel(Z, self.points, gamma=GAMMA) @ self.whiten)

    def fit(self, R: sparse.csr_array, F: np.ndarray, keep: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The slope w of the ratings in F, and coefficients (D, r) and constants (D,) of what w F leaves, from users `keep`."""
        users = users_of(R)
        entries = np.flatnonzero(keep[users])
        users, items, count = users[entries], R.indices[entries], np.maximum(np.diff(R.indptr), 1)

        def centred(v: np.ndarray) -> np.ndarray:
            return v - (np.bincount(users, v, len(count)) / count)[users]

        f, y = centred(F[entries]), centred(R.data[entries])
        squares = np.sum(count[users] * f * f)  # a user's pairs: n times the centred sum
        w = float(np.sum(count[users] * f * y) / squares) if squares > 0 else 0.0
        order = np.argsort(items, kind="stable")
        ptr = np.concatenate([[0], np.cumsum(np.bincount(items, minlength=R.shape[1]))])
        coef, constant = np.zeros((R.shape[1], self.features.shape[1])), np.zeros(R.shape[1])
        half_step(ptr, users[order], (y - w * f)[order], self.features, *self.ridge, coef, constant)
        return w, coef, constant

    def held_out(self, R: sparse.csr_array, F: np.ndarray) -> np.ndarray:
        """At every rating (u, i): w F + a_i(x_u) with a_i fitted without user u, in closed form."""
        users, items, count = users_of(R), R.indices, np.maximum(np.diff(R.indptr), 1)
        f, y = (v - (np.bincount(users, v, len(count)) / count)[users] for v in (F, R.data))
        w, _, _ = self.fit(R, F, np.ones(R.shape[0], dtype=bool))
        order = np.argsort(items, kind="stable")
        ptr = np.concatenate([[0], np.cumsum(np.bincount(items, minlength=R.shape[1]))])
        without, out = np.empty(R.nnz), np.empty(R.nnz)
        leave_one_out(ptr, users[order], (y - w * f)[order], self.features, *self.ridge, True, without)
        out[order] = without
        return w * F + out


class ColdPrior:
    """F_i(x) = w s_i + a_i(x): what items are worth to everyone, and what the attributes of a query add; it ignores ratings.

    Made by `FactorPrior` for queries that have rated nothing: s_i are its item scores mu + b_i, a_i its regression on X, fitted
    to what `ItemBias` leaves (which ranked better than what s_i leave). F holds s_i at every rating from models without the
    user; a_i is left out in closed form.
    """

    def __init__(self, ridge: AttributeRidge, R: sparse.csr_array, F: np.ndarray, item_scores: np.ndarray) -> None:
        bias = ItemBias().fit(R).training_scores().data
        w, self.coef_, constant = ridge.fit(R, bias, np.ones(R.shape[0], dtype=bool))
        self.ridge_, self.item_scores_ = ridge, w * item_scores + constant
        self.training_scores_ = with_data(R, w * (F - bias) + ridge.held_out(R, bias))

    def fit(self, R: Any, X: Any = None) -> Self:
        """It is fitted already, to the ratings of the prior that it belongs to."""
        return self

    def training_scores(self) -> sparse.csr_array:
        """The out-of-sample scores at the training ratings."""
        return self.training_scores_

    def scores(self, ratings: Any = None, X: Any = None) -> np.ndarray:
        """(m, D) scores from attributes; without X the item scores, and `ratings` gives only the number of users."""
        if X is None:
            return np.tile(self.item_scores_, (1 if ratings is None else as_ratings(ratings).shape[0], 1))
        return self.item_scores_ + self.ridge_.transform(X) @ self.coef_.T


class FactorPrior(BaseEstimator):
    """The mean of several ALS models (with their item biases), and what the attributes X of a user add to it.

        F_i(x) = w mean_j (mu + b_i + p . q_i)_j + a_i(x)

    p is folded in from the profile; a_i is a kernel ridge regression, item by item, of what the factors leave of the training
    ratings (only when X is given to `fit`). For a query without a profile a_i is fitted to what the item scores mu + b_i leave
    (`ColdPrior`), because a profile has already told much of what X says.

    Training scores: for user u the models are fitted without the fold of users to which u belongs and p is folded in without
    the rating at hand; a_i is fitted to residuals of the other folds, each from a model that saw neither that fold nor u's.

    Parameters
    ----------
    model : an unfitted `MatrixFactorization`; None: the default one
    n_models, n_folds : models to average, folds of users
    kappa, weight, constant : ridge of a_i, weights of its kernel and of its constant; weight=0 leaves X out
    n_components : Nystroem features of the kernel on X
    random_state, n_jobs : n_jobs=None uses all cores
    """

    def __init__(
        self,
        model: Any = None,
        *,
        n_models: int = 3,
        n_folds: int = 5,
        kappa: float = 40.0,
        weight: float = 2.0,
        constant: float = 0.2,
        n_components: int = 64,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.n_models = n_models
        self.n_folds = n_folds
        self.kappa = kappa
        self.weight = weight
        self.constant = constant
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, R: Any, X: Any = None) -> Self:
        R, rng = as_ratings(R), check_random_state(self.random_state)
        users, models = users_of(R), restarts(self.model, self.n_models, rng)
        fold = deal(R.shape[0], self.n_folds, rng)
        folds = range(int(fold.max()) + 1)
        use_x = X is not None and self.weight > 0
        # The models without one fold, and for a_i one model without each pair of folds.
        jobs: list[Any] = [((), j) for j in range(self.n_models)] + [((f,), j) for f in folds for j in range(self.n_models)]
        jobs += [(pair, 0) for pair in combinations(folds, 2)] if use_x else []

        def work(job: Any) -> Any:
            out, j = job
            model = clone(models[j]).fit(R[~np.isin(fold, out)] if out else R)
            if not out:
                return model
            return {f: model.leave_one_out(R[fold == f]).data for f in out}, model.mean_ + model.item_bias_

        found = dict(zip(jobs, on_threads(work, jobs, n_threads(self.n_jobs))))
        self.models_ = [found[(), j] for j in range(self.n_models)]
        F = np.empty(R.nnz)
        for f in folds:
            F[fold[users] == f] = np.mean([found[(f,), j][0][f] for j in range(self.n_models)], axis=0)
        self.slope_: float = 1.0
        self.attributes_: tuple[np.ndarray, np.ndarray] | None = None
        self.cold_: ColdPrior | None = None
        if use_x:
            F = self._attributes(R, np.asarray(X, dtype=float), F, fold, found, rng.randint(2**31 - 1))
        self.training_scores_ = with_data(R, F)
        return self

    def _attributes(self, R: Any, X: np.ndarray, F: np.ndarray, fold: np.ndarray, found: dict, seed: int) -> np.ndarray:
        """Fit a_i; return the training scores with it."""
        ridge = AttributeRidge(X, self.kappa, self.weight, self.constant, self.n_components, seed)
        users, out = users_of(R), np.empty(R.nnz)

        def without(f: int) -> tuple[float, np.ndarray, np.ndarray]:
            rest = np.zeros(R.nnz)
            for g in range(int(fold.max()) + 1):
                if g != f:
                    rest[fold[users] == g] = found[(min(f, g), max(f, g)), 0][0][g]
            return ridge.fit(R, rest, fold != f)

        for f, (w, coef, constant) in enumerate(on_threads(without, range(int(fold.max()) + 1), n_threads(self.n_jobs))):
            e = np.flatnonzero(fold[users] == f)
            items = R.indices[e]
            added = np.einsum("ec,ec->e", ridge.features[users[e]], coef[items])
            out[e] = w * F[e] + added + constant[items]
        everyone = np.ones(R.shape[0], dtype=bool)
        self.slope_, coef, constant = ridge.fit(R, F, everyone)
        self.attributes_ = coef, constant
        self.ridge_, many = ridge, range(self.n_models)
        item_scores = np.stack([np.mean([found[(f,), j][1] for j in many], axis=0) for f in range(int(fold.max()) + 1)])
        all_scores = np.mean([model.mean_ + model.item_bias_ for model in self.models_], axis=0)
        self.cold_ = ColdPrior(ridge, R, item_scores[fold[users], R.indices], all_scores)
        return out

    def training_scores(self) -> sparse.csr_array:
        """The out-of-sample scores at the training ratings."""
        check_is_fitted(self)
        return self.training_scores_

    def scores(self, ratings: Any = None, X: Any = None) -> np.ndarray:
        """(m, D) scores from profiles, from attributes, or both; item scores when there is neither."""
        check_is_fitted(self)
        F = np.mean([model.scores(ratings, X) for model in self.models_], axis=0)
        if self.attributes_ is None or self.cold_ is None:
            return F
        cold = np.ones(len(F), dtype=bool) if ratings is None else np.diff(as_ratings(ratings).indptr) == 0
        coef, constant = self.attributes_
        out = self.slope_ * F + constant
        if X is not None:
            out += self.ridge_.transform(X) @ coef.T
        if cold.any():
            out[cold] = self.cold_.scores(X=None if X is None else np.asarray(X)[cold])
        return out


PRIORS: dict[str, Callable[[], Any]] = {"item_bias": ItemBias, "factors": FactorPrior}
