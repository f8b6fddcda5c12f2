"""A factor prior for any number of queries and items: memory and time linear in the number of ratings.

    r_ui = mu + b_u + b_i + p_u . q_i + z_u . g_i

by alternating ridge regressions: a query's ratings on (q_i, 1), an item's on (p_u, z_u, 1), where z_u are given features of the
query (none: the plain factorisation). A query that has rated nothing is scored by item regressions on (z_u, 1) alone, because
g_i is fitted to what p_u leaves. Several models that differ in their start are averaged.

Training scores leave the rating at hand out of p_u, in closed form. It stays in q_i and g_i, one among n_i; that is of order
1 / n_i, and who learns from these scores should look at items with many ratings only.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state

from lawful._threads import n_threads, on_threads
from lawful.ratings import centred_squares_at
from lawful.surrogates.pairs._als import half_step, leave_one_out
from lawful.surrogates.pairs._frequent import entry_products
from lawful.surrogates.pairs.factorisation import FactorizationParameters, Popularity

__all__ = ["ByItem", "WideFactorization", "WideFactors", "select_wide"]

GRID = {"n_factors": [8, 16], "lam": [0.3, 0.6, 1.2, 2.4]}
SAMPLE = 20_000_000  # ratings on which the grid is compared; items with fewer than they have would ask for too large a ridge


class ByItem(NamedTuple):
    """The ratings in the order of the items: `order` of the entries, offsets, the query of each."""

    order: np.ndarray
    ptr: np.ndarray
    raters: np.ndarray

    @classmethod
    def of(cls, R: sparse.csr_array) -> ByItem:
        entry = sparse.csr_array((np.arange(R.nnz), R.indices, R.indptr), shape=R.shape).tocsc()
        entry.sort_indices()
        return cls(entry.data, entry.indptr, entry.indices)


class WideFactorization(FactorizationParameters):
    """One such model; the parameters are those of `MatrixFactorization`."""

    def fit(self, R: sparse.csr_array, Z: np.ndarray, by_item: ByItem | None = None) -> Self:
        by_item = ByItem.of(R) if by_item is None else by_item
        (n, D), k, d = R.shape, int(self.n_factors), Z.shape[1]
        self.mean_ = float(R.data.mean())
        self.item_bias_ = Popularity(self.damping).fit(R).item_scores_ - self.mean_
        B = np.zeros((D, k + d))  # q_i, g_i
        B[:, :k] = 0.1 * check_random_state(self.random_state).standard_normal((D, k))
        A, user_bias = np.zeros((n, k + d)), np.zeros(n)  # p_u, z_u
        A[:, k:] = Z
        P = np.zeros((n, k))
        for _ in range(self.n_iter):
            self.item_factors_, self.item_weights_ = np.ascontiguousarray(B[:, :k]), np.ascontiguousarray(B[:, k:])
            half_step(R.indptr, R.indices, self._left(R, Z), self.item_factors_, *self._ridge(k), P, user_bias)
            A[:, :k] = P
            y = R.data - self.mean_
            y -= np.repeat(user_bias, np.diff(R.indptr))
            half_step(by_item.ptr, by_item.raters, y[by_item.order], A, *self._ridge(k + d), B, self.item_bias_)
        self.item_factors_, self.item_weights_ = np.ascontiguousarray(B[:, :k]), np.ascontiguousarray(B[:, k:])
        self.cold_weights_, self.cold_bias_ = np.zeros((D, d)), np.zeros(D)
        half_step(
            by_item.ptr, by_item.raters, y[by_item.order], np.ascontiguousarray(Z), *self._ridge(d),
            self.cold_weights_, self.cold_bias_,
        )  # fmt: skip
        return self

    def _ridge(self, k: int) -> tuple[np.ndarray, np.ndarray, float]:
        return np.full(k, float(self.lam)), np.full(k, float(self.count_power)), float(self.damping)

    def _left(self, R: sparse.csr_array, Z: np.ndarray) -> np.ndarray:
        """What mu, b_i and z_u . g_i leave of each rating."""
        left = np.empty(R.nnz)
        entry_products(R.indptr, R.indices, Z, self.item_weights_, left)
        left += self.item_bias_[R.indices]
        np.subtract(R.data - self.mean_, left, out=left)
        return left

    def leave_one_out(self, R: sparse.csr_array, Z: np.ndarray) -> np.ndarray:
        """At each rating (u, i): mu + b_i + p . q_i + z . g_i with p from the other ratings of u."""
        left, out = self._left(R, Z), np.empty(R.nnz)
        leave_one_out(R.indptr, R.indices, left, self.item_factors_, *self._ridge(self.item_factors_.shape[1]), False, out)
        return R.data - left + out

    def user_factors(self, R: sparse.csr_array, Z: np.ndarray) -> np.ndarray:
        """(m, k) p of queries with these ratings."""
        k = self.item_factors_.shape[1]
        P = np.zeros((R.shape[0], k))
        half_step(R.indptr, R.indices, self._left(R, Z), self.item_factors_, *self._ridge(k), P, np.zeros(R.shape[0]))
        return P


class WideFactors:
    """The average of `n_models` of them; `model` holds the parameters."""

    def __init__(self, model: WideFactorization, n_models: int, random_state: Any, n_jobs: int | None) -> None:
        self.model, self.n_models, self.random_state, self.n_jobs = model, n_models, random_state, n_jobs

    def fit(self, R: sparse.csr_array, Z: np.ndarray) -> Self:
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_models)
        models = [WideFactorization(**{**self.model.get_params(), "random_state": int(seed)}) for seed in seeds]
        by_item = ByItem.of(R)
        self.models_ = on_threads(lambda model: model.fit(R, Z, by_item), models, n_threads(self.n_jobs))
        return self

    def training_scores(self, R: sparse.csr_array, Z: np.ndarray) -> np.ndarray:
        """F at every training rating, the rating left out of p."""
        return sum(on_threads(lambda model: model.leave_one_out(R, Z), self.models_, n_threads(self.n_jobs))) / self.n_models

    def scorer(self, ratings: sparse.csr_array | None, Z: np.ndarray) -> Scorer:
        """The scores of queries, item by item when they are asked for."""
        warm = np.zeros(len(Z), dtype=bool) if ratings is None else np.diff(ratings.indptr) > 0
        left, right, bias, cold_bias = [], [], 0.0, 0.0
        for model in self.models_:
            P = np.zeros((len(Z), model.item_factors_.shape[1]))
            if ratings is not None:
                P = model.user_factors(ratings, Z)
            left += [P, Z * warm[:, None], Z * ~warm[:, None]]
            right += [model.item_factors_, model.item_weights_, model.cold_weights_]
            bias, cold_bias = bias + model.mean_ + model.item_bias_, cold_bias + model.mean_ + model.cold_bias_
        J = self.n_models
        return Scorer(np.hstack(left) / J, np.hstack(right), np.stack([cold_bias / J, bias / J]), warm.astype(np.int64))


class Scorer(NamedTuple):
    """F_i(x_u) = left_u . right_i + bias[kind_u, i]."""

    left: np.ndarray
    right: np.ndarray
    bias: np.ndarray
    kind: np.ndarray

    def of(self, u: int, items: np.ndarray) -> np.ndarray:
        """Of one query."""
        return self.right[items] @ self.left[u] + self.bias[self.kind[u], items]

    def all(self, rows: slice) -> np.ndarray:
        """(m, D) of some queries."""
        return self.left[rows] @ self.right.T + self.bias[self.kind[rows]]


def select_wide(R: sparse.csr_array, Z: np.ndarray, random_state: Any, n_jobs: int | None) -> WideFactorization:
    """The model of the grid with the least error for new queries, whose every rating is predicted from their others.

    Fitted to a sample of the queries (about `SAMPLE` ratings), judged on a quarter as many others.
    """
    rng = check_random_state(random_state)
    order = rng.permutation(R.shape[0])
    size = min(int(SAMPLE / max(R.nnz / R.shape[0], 1)), int(0.8 * R.shape[0])) or 1
    inside, outside = np.sort(order[:size]), np.sort(order[size : size + max(size // 4, 1)])
    train, test = R[inside], R[outside]
    by_item = ByItem.of(train)
    seed = int(rng.randint(2**31 - 1))

    def error(parameters: dict[str, Any]) -> float:
        model = WideFactorization(**parameters, random_state=seed).fit(train, Z[inside], by_item)
        return centred_squares_at(test, model.leave_one_out(test, Z[outside]))

    candidates = list(ParameterGrid(GRID))
    errors = on_threads(error, candidates, n_threads(n_jobs))
    return WideFactorization(**candidates[int(np.argmin(errors))])
