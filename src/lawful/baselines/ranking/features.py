"""Features phi(u, i) of a query and an item together, for scorers f(u, i) = w . phi(u, i).

A *feature map* is either a function

    phi(X, profile, rows, items) -> (E, d)

of the queries' attributes X (m, p) or None, their profiles, a csr matrix (m, D) whose stored entries are ratings, and E entries
(rows[e], items[e]); or an object with

* `fit(X, R, item_features)`: what it wants to know of the training data
* `transform(X, profile, rows, items, users=None)`: the features of entries. `users` (m,) says which training queries these
  are; None: new ones. What a training query said itself must then be left out of what is told about the items.

**No leak.** A feature that has seen the rating it is to explain ruins the fit. Leaving out single ratings is not enough: a
mean without the rating at hand falls when that rating is high, so differences of such features carry the rating after all.
`training_features` therefore deals the ratings of a query into parts. At the ratings of one part the features come from a
profile that holds the other parts only, as for a new query, and only ratings of the same part are ever compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from lawful.ratings import DAMPING, as_ratings, centred, profile_features, users_of, within_variance
from lawful.surrogates.pairs.factorisation import ItemBias
from lawful.surrogates.pairs.query_kernel import Standardized

__all__ = ["RankingFeatures", "training_features"]

BLOCK = 2**23  # entries of the dense tables (queries, training queries) and (queries, items) held at once


class RankingFeatures(BaseEstimator):
    """Features in the spirit of Duchi, Mackey & Jordan (2010), from X, the ratings and attributes of the items.

        what others think of the item    bias of the item (rating less that of its raters), log of its number of ratings
        attributes of the item           the columns of `item_features` (genres), if any
        the query's taste for them       mean over the item's attributes of the query's mean residual rating there
        neighbours                       mean rating by queries alike to this one, and by queries unlike it
        attributes of the query          mean rating of the item by queries weighted with the linear kernel of X; the log of
                                         the profile's length (and X, see `products`) times bias and log count of the item

    A rating is taken less the mean of its query; means are shrunk by `damping` ratings. Statistics of an item leave out the
    training query at hand.

    Parameters
    ----------
    damping : pseudo-counts of every mean
    products : bool
        Whether to add products of the columns of X with bias and log count of the item; they cost time and ranked no better.

    Attributes
    ----------
    feature_names_ : list of str

    Examples
    --------
    >>> from lawful.datasets import make_ratings, movielens_protocol
    >>> split = movielens_protocol(make_ratings(60, 20, n_ratings=12, random_state=0), n_train=40, n_test=20)
    >>> from lawful.baselines import RankingFeatures
    >>> features = RankingFeatures().fit(split.X_train, split.R_train)
    >>> features.transform(split.X_test, split.profile_test, [0, 0], [3, 4]).shape[0]
    2
    """

    def __init__(self, damping: float = 5.0, products: bool = False) -> None:
        self.damping = damping
        self.products = products

    def fit(self, X: Any, R: Any, item_features: Any = None) -> Self:
        if not self.damping > 0:
            raise ValueError(f"RankingFeatures(damping={self.damping!r}) leaves unrated items without a mean; give more than 0")
        R = as_ratings(R)
        D = R.shape[1]
        self.bias_ = ItemBias(self.damping, self.damping).fit(R)
        self.ratings_ = R
        self.count_ = np.bincount(R.indices, minlength=D)
        self.similarity_damping_ = DAMPING * within_variance(R)
        self.profiles_ = profile_features(R, self.similarity_damping_)
        self.centred_ = sparse.csr_array((centred(R), R.indices, R.indptr), shape=R.shape)
        self.rated_ = sparse.csr_array((np.ones(R.nnz), R.indices, R.indptr), shape=R.shape)
        self.scale_ = None if X is None else Standardized().fit(np.asarray(X, dtype=float))
        names = [
            "item bias",
            "log count",
            "neighbours alike",
            "neighbours unlike",
            "log profile x bias",
            "log profile x log count",
        ]
        if self.scale_ is not None:
            Z = self.scale_.features(np.asarray(X, dtype=float))
            self.attributes_ = Z
            self.by_attribute_ = self.centred_.T @ Z  # (D, p) sums of ratings times attributes
            names += ["alike by X"]
            if self.products:
                names += [f"x{k} x {what}" for what in ("bias", "log count") for k in range(Z.shape[1])]
        self.genres_ = check_item_features(item_features, D)
        if self.genres_ is not None:
            names += [*(f"item {k}" for k in range(self.genres_.shape[1])), "taste"]
        self.feature_names_ = names
        return self

    def transform(self, X: Any, profile: Any, rows: Any, items: Any, users: Any = None) -> np.ndarray:
        """(E, d) features of the entries (rows, items) of m queries."""
        check_is_fitted(self)
        rows, items = np.asarray(rows), np.asarray(items)
        profile = as_ratings(profile, len(self.count_))
        m, (n, D) = profile.shape[0], self.ratings_.shape
        out = np.empty((len(rows), len(self.feature_names_)))
        size = max(1, BLOCK // max(n, D))
        order = np.argsort(rows, kind="stable")
        for lo in range(0, m, size):
            hi = min(lo + size, m)
            e = order[np.searchsorted(rows, lo, sorter=order) : np.searchsorted(rows, hi, sorter=order)]
            if len(e):
                part = slice(lo, hi)
                own = None if users is None else np.asarray(users)[part]
                out[e] = self._block(None if X is None else X[part], profile[part], rows[e] - lo, items[e], own)
        return out

    def _block(self, X: Any, profile: sparse.csr_array, rows: np.ndarray, items: np.ndarray, users: Any) -> np.ndarray:
        bias, count, said = self._items(rows, items, users)
        like, unlike = self._neighbours(profile, users)
        length, logs = np.log1p(np.diff(profile.indptr))[rows], np.log1p(count)
        out = np.empty((len(rows), len(self.feature_names_)))
        out[:, 0], out[:, 1], out[:, 2], out[:, 3] = bias, logs, like[rows, items], unlike[rows, items]
        out[:, 4], out[:, 5], at = length * bias, length * logs, 6
        if self.scale_ is not None:
            p = self.attributes_.shape[1]
            Z = (np.zeros((profile.shape[0], p)) if X is None else self.scale_.features(np.asarray(X, dtype=float)))[rows]
            total = np.einsum("ep,ep->e", Z, self.by_attribute_[items])
            if users is not None:
                total -= said * np.einsum("ep,ep->e", Z, self.attributes_[users[rows]])
            out[:, at] = total / (count + self.damping)
            at += 1
            if self.products:
                np.multiply(Z, bias[:, None], out=out[:, at : at + p])
                np.multiply(Z, logs[:, None], out=out[:, at + p : at + 2 * p])
                at += 2 * p
        if self.genres_ is not None:
            out[:, at:-1] = self.genres_[items]
            out[:, -1] = self._taste(profile, rows, items, users)
        return out

    def _items(self, rows: np.ndarray, items: np.ndarray, users: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Bias and count of the items, without the query itself, and what it said (its centred rating; 0 if none)."""
        bias, count = self.bias_.item_scores_[items], self.count_[items].astype(float)
        if users is None:
            return bias, count, np.zeros(len(items))
        at, found = locate(self.ratings_, np.asarray(users)[rows], items)
        bias = np.where(found, self.bias_.training_scores_.data[at], bias)
        return bias, count - found, np.where(found, self.centred_.data[at], 0.0)

    def _neighbours(self, profile: sparse.csr_array, users: Any) -> tuple[np.ndarray, np.ndarray]:
        """(m, D) mean centred rating by the training queries that are alike, and by those that are unlike."""
        S = (profile_features(profile, self.similarity_damping_) @ self.profiles_.T).toarray()
        if users is not None:
            S[np.arange(len(S)), users] = 0.0
        means = []
        for weight in (np.maximum(S, 0.0), np.maximum(-S, 0.0)):
            typical = weight.sum(axis=1, keepdims=True) / np.maximum((weight > 0).sum(axis=1, keepdims=True), 1)
            below = weight @ self.rated_ + self.damping * typical
            means.append((weight @ self.centred_) / np.where(below > 0, below, 1.0))
        return means[0], means[1]

    def _taste(self, profile: sparse.csr_array, rows: np.ndarray, items: np.ndarray, users: Any) -> np.ndarray:
        """Mean over the attributes of an item of the query's mean residual rating of items with that attribute."""
        genres, who = self.genres_, users_of(profile)
        assert genres is not None
        residual = profile.data - self._items(who, profile.indices, users)[0]
        residual = centred(sparse.csr_array((residual, profile.indices, profile.indptr), shape=profile.shape))
        size = np.abs(genres)
        likes = sparse.csr_array((residual, profile.indices, profile.indptr), shape=profile.shape) @ genres
        seen = sparse.csr_array((np.ones(profile.nnz), profile.indices, profile.indptr), shape=profile.shape) @ size
        return np.einsum("eg,eg->e", (likes / (seen + self.damping))[rows], genres[items]) / np.maximum(
            size[items].sum(axis=1), 1e-300
        )


def locate(R: sparse.csr_array, rows: np.ndarray, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the entries (rows, items) are stored in R, and whether they are (else the place is any)."""
    keys = users_of(R).astype(np.int64) * R.shape[1] + R.indices
    wanted = np.asarray(rows, dtype=np.int64) * R.shape[1] + items
    at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    return at, keys[at] == wanted if len(keys) else np.zeros(len(wanted), dtype=bool)


def check_item_features(item_features: Any, D: int) -> np.ndarray | None:
    if item_features is None:
        return None
    table = item_features.toarray() if sparse.issparse(item_features) else np.asarray(item_features)
    if table.ndim != 2 or len(table) != D:
        raise ValueError(f"item_features have shape {table.shape}; one row for each of the {D} items is needed")
    table = table.astype(float)
    if not np.isfinite(table).all():
        raise ValueError("item_features hold NaN or infinity; fill them in, or leave the column out")
    return table


class FunctionFeatures:
    """A function phi(X, profile, rows, items) as a feature map without a fit."""

    def __init__(self, phi: Callable[..., Any]) -> None:
        self.phi = phi

    def fit(self, X: Any, R: Any, item_features: Any = None) -> Self:
        if item_features is not None:
            raise ValueError("features is a function, which does not see item_features; let it know them by itself")
        return self

    def transform(self, X: Any, profile: Any, rows: Any, items: Any, users: Any = None) -> np.ndarray:
        return self.phi(X, profile, rows, items)


def make_features(features: Any, who: str) -> Any:
    """An unfitted feature map from None (the default one), a map or a function."""
    if features is None:
        return RankingFeatures()
    if isinstance(features, type) or not (callable(features) or (hasattr(features, "fit") and hasattr(features, "transform"))):
        raise TypeError(
            f"{who}: features={features!r} is no feature map; give None, an object with fit(X, R, item_features) and "
            "transform(X, profile, rows, items, users), or a function phi(X, profile, rows, items)"
        )
    if hasattr(features, "fit"):
        return clone(features) if isinstance(features, BaseEstimator) else features
    return FunctionFeatures(features)


def evaluate(feature_map: Any, X: Any, profile: Any, rows: np.ndarray, items: np.ndarray, users: Any = None) -> np.ndarray:
    """The features of entries, checked."""
    Phi = np.asarray(feature_map.transform(X, profile, rows, items, users=users), dtype=float)
    if Phi.ndim != 2 or len(Phi) != len(rows) or not np.isfinite(Phi).all():
        raise ValueError(f"the feature map gave an array of shape {Phi.shape}; finite numbers ({len(rows)}, d) are needed")
    return Phi


def training_features(feature_map: Any, X: Any, R: Any, n_parts: int, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
    """Phi (nnz, d) at the ratings of R in their order, and the number of the (query, part) in which each may be compared."""
    R = as_ratings(R)
    users, n = users_of(R), R.shape[0]
    shuffled = check_random_state(random_state).uniform(size=R.nnz)
    order = np.lexsort((shuffled, users))
    part = np.empty(R.nnz, dtype=np.int64)
    part[order] = (np.arange(R.nnz) - R.indptr[users[order]]) % n_parts
    Phi: np.ndarray | None = None
    for k in range(n_parts):
        e, rest = np.flatnonzero(part == k), part != k
        profile = sparse.csr_array((R.data[rest], (users[rest], R.indices[rest])), shape=R.shape)
        found = evaluate(feature_map, X, profile, users[e], R.indices[e], users=np.arange(n))
        Phi = np.empty((R.nnz, found.shape[1])) if Phi is None else Phi
        Phi[e] = found
    assert Phi is not None
    return Phi, users * n_parts + part
