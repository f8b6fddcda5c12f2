"""Tables of ratings with gaps: checked, split, and worked on by threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.utils import check_random_state


def as_ratings(R: Any, n_items: int | None = None) -> sparse.csr_array:
    """R as a csr array of float64 with sorted columns, whose stored entries are the ratings. R itself is never changed."""
    if sparse.issparse(R):
        out = sparse.csr_array(R, dtype=np.float64, copy=True)
        stored = out.nnz
        out.sum_duplicates()
        if out.nnz != stored:
            raise ValueError("the ratings hold an entry twice; keep one rating for each user and item")
    else:
        dense = np.asarray(R, dtype=np.float64)
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


def on_threads(work: Callable[[Any], Any], jobs: Any, n_jobs: int | None) -> list[Any]:
    """[work(job) for job in jobs] on threads: the kernels release the interpreter lock. None means all cores."""
    with ThreadPoolExecutor(effective_n_jobs(-1 if n_jobs is None else n_jobs)) as pool:
        return list(pool.map(work, jobs))


def split_profiles(R: Any, fraction: float = 0.5, random_state: Any = 0) -> tuple[sparse.csr_array, sparse.csr_array]:
    """The ratings of each user in two: a random `fraction` of them (rounded down), the profile, and the others."""
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
    users = users_of(R)
    error = R.data - scores[users, R.indices]
    count = np.maximum(np.diff(R.indptr), 1)
    return float(np.mean((error - (np.bincount(users, error, R.shape[0]) / count)[users]) ** 2))
