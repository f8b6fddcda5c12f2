"""Tables of ratings with gaps: checked, split, centred, compared.

A table R (n, D) has a row for every query (user) and a column for every item. Stored entries are ratings, all else is unrated.

    phi_u = (r_u - mean of r_u) / sqrt(|r_u - mean|^2 + damping)        over the items that u rated, 0 elsewhere

are the features of a profile: of norm below 1, and the damping makes short profiles alike to nobody.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from lawful.tasks import as_floats, check_size

__all__ = [
    "DAMPING",
    "as_ratings",
    "centred",
    "centred_squares",
    "centred_squares_at",
    "check_n_items",
    "check_training",
    "count_queries",
    "profile_features",
    "similarity",
    "split_profiles",
    "users_of",
    "with_data",
    "within_variance",
]

DAMPING = 10.0  # ratings: short profiles say less
MAX_ITEMS = 2**24  # some arrays hold a number for each item


def as_ratings(R: Any, n_items: int | None = None) -> sparse.csr_array:
    """R as a csr array of float64 with sorted columns, whose stored entries are the ratings. R itself is never changed."""
    if sparse.issparse(R):
        out = sparse.csr_array(R, dtype=np.float64, copy=True)
        stored = out.nnz
        out.sum_duplicates()
        if out.nnz != stored:
            raise ValueError("the ratings hold an entry twice; keep one rating for each user and item")
    else:
        dense = as_floats(R, "ratings")
        if dense.ndim != 2:
            raise ValueError(f"ratings have shape {dense.shape}; a table (users, items) is needed")
        users, items = np.nonzero(~np.isnan(dense))
        out = sparse.csr_array((dense[users, items], (users, items)), shape=dense.shape)
    if not np.isfinite(out.data).all():
        raise ValueError("stored ratings must be finite; leave unrated items out of the sparse matrix")
    if n_items is not None and out.shape[1] != n_items:
        raise ValueError(f"these ratings have {out.shape[1]} items, the fit had {n_items}; use the same columns")
    return out


def users_of(R: sparse.csr_array) -> np.ndarray:
    """The row of every stored entry."""
    return np.repeat(np.arange(R.shape[0]), np.diff(R.indptr))


def with_data(R: sparse.csr_array, data: np.ndarray) -> sparse.csr_array:
    """A matrix with the pattern of R and other values."""
    return sparse.csr_array((data, R.indices.copy(), R.indptr.copy()), shape=R.shape)


def check_n_items(who: str, n_items: int) -> None:
    """An error, before memory is asked for, when there cannot be so many items."""
    if n_items > MAX_ITEMS:
        raise ValueError(
            f"{who}: items are numbered up to {n_items - 1}, so there would be {n_items} of them; at most {MAX_ITEMS} will do: "
            "number them 0, 1, 2, ..., for example by numpy.unique(..., return_inverse=True)"
        )


def check_training(who: str, X: Any, R: sparse.csr_array) -> None:
    """Sizes that can be computed with: the number of items, and the squares of inputs and ratings."""
    check_n_items(who, R.shape[1])
    check_size(R.data, f"{who}: the ratings")
    if X is not None:
        check_size(X, f"{who}: X")


def count_queries(name: str, X: Any, profile: sparse.csr_array | None) -> int:
    """The number of new queries, on which X and their ratings must agree."""
    if X is None and profile is None:
        raise ValueError(f"{name}: neither X nor ratings are given; give X or ratings, to say which queries to rank for")
    m = len(X) if X is not None else profile.shape[0]  # type: ignore[union-attr]
    if profile is not None and profile.shape[0] != m:
        raise ValueError(
            f"X has {m} rows and the ratings of the new queries have {profile.shape[0]}: inconsistent numbers of queries; "
            "one row for each is needed"
        )
    return m


def centred(R: sparse.csr_array) -> np.ndarray:
    """Each stored rating less the mean of its query."""
    users = users_of(R)
    k = np.bincount(users, minlength=R.shape[0])
    return R.data - (np.bincount(users, R.data, R.shape[0]) / np.maximum(k, 1))[users]


def within_variance(R: sparse.csr_array) -> float:
    """Variance of a rating around the mean of its query."""
    return float(np.mean(centred(R) ** 2)) if R.nnz else 0.0


def profile_features(R: sparse.csr_array, damping: float) -> sparse.csr_array:
    """phi: centred ratings of each query, of norm below 1."""
    users, r = users_of(R), centred(R)
    norm = np.sqrt(np.bincount(users, r**2, R.shape[0]) + damping)
    return sparse.csr_array((r / np.where(norm > 0, norm, 1.0)[users], R.indices, R.indptr), shape=R.shape)


def similarity(profile: Any, R: Any, damping: float = DAMPING) -> np.ndarray:
    """(m, n) phi . phi' of the users `profile` (m, D) and the users R (n, D)."""
    return (profile_features(as_ratings(profile), damping) @ profile_features(as_ratings(R), damping).T).toarray()


def split_profiles(R: Any, fraction: float = 0.5, random_state: Any = 0) -> tuple[sparse.csr_array, sparse.csr_array]:
    """The ratings of each user in two: a random `fraction` of them (rounded down), the profile, and the others.

    Which ones depends on what was rated, not how.
    """
    R = as_ratings(R)
    shuffled = check_random_state(random_state).uniform(size=R.nnz)
    users = users_of(R)
    order = np.lexsort((shuffled, users))
    place = np.empty(R.nnz, dtype=np.int64)
    place[order] = np.arange(R.nnz) - R.indptr[users[order]]  # rank of each rating among those of its user
    inside = place < np.floor(fraction * np.diff(R.indptr))[users]
    parts = [sparse.csr_array((R.data[m], (users[m], R.indices[m])), shape=R.shape) for m in (inside, ~inside)]
    return parts[0], parts[1]


def centred_squares(R: sparse.csr_array, scores: np.ndarray) -> float:
    """Mean squared error of the ratings around the mean of each user."""
    return centred_squares_at(R, scores[users_of(R), R.indices])


def centred_squares_at(R: sparse.csr_array, predicted: np.ndarray) -> float:
    """The same for predictions of the stored ratings alone."""
    users, error = users_of(R), R.data - predicted
    count = np.maximum(np.diff(R.indptr), 1)
    return float(np.mean((error - (np.bincount(users, error, R.shape[0]) / count)[users]) ** 2))
