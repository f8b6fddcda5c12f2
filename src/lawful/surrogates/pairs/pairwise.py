"""All D(D-1)/2 comparisons of D items, learned at once: one kernel ridge problem per pair of items.

    task t = (p, q), p < q        its queries are those that rated both; n_t of them
    y_t,u  = r_up - r_uq          ties enter with y = 0
    c_t    = (K_t + r_t I)^{-1} (y_t - w (F_p - F_q)),     r_t = n_t lam ("n_lambda") or kappa ("kappa": lam_t = kappa / n_t)
    S_pq(x) = w (F_p(x) - F_q(x)) + sum_u k(x, x_u) c_t,u,           S_qp = -S_pq

F is an optional prior mean (module `priors`) and w its slope of least squares over the training pairs. Over total orders the
risk of the weighted pairwise loss (`eq:estimator-multitask` with |y| 1{c != sign y}) depends on S(x) alone: the best
order is the one whose pairs have the largest sum of S_pq(x). A missing comparison costs nothing, so the risk weights each pair
by the chance that both items are rated: `pair_weight="counts"` multiplies S_pq by n_t + 1.

With missing="zero" an unseen comparison counts as a tie: the vector-valued case, one alpha(x) = (K + r I)^{-1} k(x) from all
queries and S_pq(x) = sum_u alpha_u(x) y_t,u. Of a pair that nobody compared S says what the prior says, 0 without one.

A new query that has rated nothing (a cold start) is another problem: what the training queries' ratings explain of their own
comparisons, through the similarity or a factor prior, says nothing of it, and coefficients fitted to what these leave are wrong
for it. With similarity="auto" such queries have a fit of their own where the training queries rated most items (complete
rankings), `cold_`: without the similarity, its prior the one of least rank loss, leaving one query out, which is honest there:
that of the factors for such queries, item bias, none, or, where that is clearly better, a tuned kernel (`KernelPrior`). Where
queries rated few items, what their own ratings explain is little, and the fit with the similarity was the better one for new
queries too (MovieLens).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Self

import numpy as np
import scipy.linalg
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from lawful._checks import choice, number
from lawful._threads import blas_threads, n_threads
from lawful.ratings import as_ratings, count_queries, users_of, with_data
from lawful.surrogates.base import Surrogate
from lawful.surrogates.pairs._table import PairTable, check_definite, table_of_comparisons, table_of_ratings
from lawful.surrogates.pairs._targets import (
    FIXED,
    MORE_PAIRS,
    PAIRS,
    Sample,
    choose_complete,
    choose_kappa,
    least_clearly,
    lookup,
    observations,
    prior_loss,
    slope_of_comparisons,
    slope_of_ratings,
    spread,
)
from lawful.surrogates.pairs.comparisons import Comparisons, PairTasks
from lawful.surrogates.pairs.kernel_prior import KernelPrior
from lawful.surrogates.pairs.objective import EachObjective, MixedObjective, PairObjective
from lawful.surrogates.pairs.priors import make_prior
from lawful.surrogates.pairs.query_kernel import QueryKernel

__all__ = ["PairwiseRidge"]

Gram = Callable[[], np.ndarray]  # made when it is asked for
Choice = Callable[[int, np.ndarray | None], tuple[float, np.ndarray]]  # kappa by so many pairs of a grid, losses of queries
SIMILARITY = 30.0  # "auto"; it measured well on MovieLens
COMPLETE = 0.5  # share of the items that queries have rated from which on new ones get a fit of their own; of MovieLens 4 %

CHOICES = {
    "ridge": ("n_lambda", "kappa"),
    "targets": ("scaled", "difference", "sign"),
    "missing": ("skip", "zero"),
    "pair_weight": (None, "counts"),
}


class PairwiseRidge(Surrogate):
    """Kernel ridge regression of every comparison of two items, from ratings or from comparisons.

    Parameters
    ----------
    prior : None, "item_bias", "factors" or an object with fit, training_scores and scores
    kernel : a kernel of `lawful.kernels` or a function k(X, Z) -> (n, m); None: linear on scaled columns, 1 on
        average
    constant : bool
        Add 1 to the kernel: a feature that is the same for every query.
    similarity : float or "auto"
        Weight of the kernel between the queries' ratings; 0 leaves it out. "auto": 30, and queries without ratings have a fit
        of their own, `cold_`, if there is X and the prior is None or a name.
    ridge, lam, kappa : "n_lambda": r_t = n_t lam; "kappa": r_t = kappa, and "auto" is the one of least leave-one-out
        error on a sample of pairs, or 100 when similarity > 0 (which leave-one-out cannot judge)
    targets : "difference": r_p - r_q; "scaled": the same divided by the (damped) spread of the query's ratings; "sign"
    missing : "skip": a task has only the queries that rated both; "zero": all queries, unseen comparisons as ties
    pair_weight : None or "counts" (S_pq times n_t + 1)
    max_memory : float
        Bytes that the coefficients may take. Beyond, they are computed again in blocks whenever queries are scored.
    n_jobs : int or None
        Threads; None or -1 means all cores.

    Attributes
    ----------
    n_items_, n_tasks_ (pairs that were compared), n_unobserved_ (pairs that never were), n_observations_, slope_ (w),
    kappa_, prior_, kernel_, table_, streamed_,
    cold_ (the `PairwiseRidge` for queries without ratings, or None)

    Notes
    -----
    The Gram matrix between the training queries is dense, 8 n^2 bytes: fine for ten thousand queries, not for a million.

    Examples
    --------
    >>> import numpy as np
    >>> from lawful.surrogates import PairwiseRidge
    >>> X, R = np.eye(4), np.array([[3.0, 2.0, 1.0]] * 4)
    >>> PairwiseRidge().fit(X, R).pair_scores(X[:1], [(0, 1), (2, 0)]).round(3)
    array([[ 0.5, -1. ]])
    """

    def __init__(
        self,
        prior: Any = None,
        *,
        kernel: Any = None,
        constant: bool = True,
        similarity: Any = 0.0,
        ridge: str = "n_lambda",
        lam: float = 1.0,
        kappa: Any = "auto",
        targets: str = "difference",
        missing: str = "skip",
        pair_weight: str | None = None,
        max_memory: float = 4e9,
        n_jobs: int | None = None,
    ) -> None:
        self.prior = prior
        self.kernel = kernel
        self.constant = constant
        self.similarity = similarity
        self.ridge = ridge
        self.lam = lam
        self.kappa = kappa
        self.targets = targets
        self.missing = missing
        self.pair_weight = pair_weight
        self.max_memory = max_memory
        self.n_jobs = n_jobs

    # ------------------------------------------------------------------ fit

    def fit(self, X: Any, R: Any = None, *, comparisons: Any = None, n_items: int | None = None) -> Self:
        """X (n, d) float array or None; R (n, D) ratings, NaN or not stored = unrated; or comparisons.

        comparisons: rows (query, winner, loser[, weight]), whole numbers from 0. The weights of the same query and pair add up
        (against each other if both won); weight 0 is a tie. n_items: D, if some items were never compared.
        """
        return self.fit_tasks(PairTasks.read(X, R, comparisons, n_items))

    def fit_tasks(self, tasks: PairTasks) -> Self:  # type: ignore[override]
        """One kernel ridge problem per pair of items, from data that are checked."""
        self._check_parameters()
        K, choose, table_of = self._problem(tasks)
        if self.ridge == "kappa":
            given = [float(self.kappa)] if not isinstance(self.kappa, str) else [FIXED] if self.similarity_ else None
            self.kappa_ = choose(PAIRS, None)[0] if given is None else given[0]
        ridge = np.array([0.0, self.lam]) if self.ridge == "n_lambda" else np.array([self.kappa_, 0.0])
        self.table_ = table_of(ridge if self.missing == "skip" else np.empty(0))
        if self.table_.n_tasks == 0 and self.n_items_ > 1:
            raise ValueError("no query rated two items, so there is nothing to compare; at least one must")
        self.smoother_ = None
        if self.missing == "zero":
            gram = K()
            gram[np.diag_indices(len(gram))] += len(gram) * self.lam if self.ridge == "n_lambda" else self.kappa_
            try:
                self.smoother_ = scipy.linalg.cho_factor(gram, lower=True, overwrite_a=True)
            except np.linalg.LinAlgError:
                check_definite(1)
        self.n_tasks_, self.n_observations_ = self.table_.n_tasks, self.table_.n_observations
        self.n_unobserved_ = self.n_items_ * (self.n_items_ - 1) // 2 - self.n_tasks_
        self.streamed_ = self.table_.streamed
        self.cold_ = self._fit_cold(tasks)
        return self

    def _fit_cold(self, tasks: PairTasks) -> PairwiseRidge | None:
        """The fit for queries without ratings, by the prior of least held-out rank loss; None where this one does."""
        named = self.prior is None or isinstance(self.prior, str)
        if not isinstance(self.similarity, str) or tasks.X is None or not named:
            return None
        if tasks.table(values=False).nnz < COMPLETE * tasks.n_queries * tasks.n_items:
            return None
        common = {**self.get_params(deep=False), "similarity": 0.0}
        priors = [self.prior_.cold_, "item_bias", None] if self.prior == "factors" else [self.prior]
        if self.prior == "factors" and self.kernel is None and KernelPrior.affordable(tasks.table(values=False)):
            priors.append(KernelPrior())
        models = [PairwiseRidge(**{**common, "prior": prior}) for prior in priors]
        if self.ridge == "kappa":
            found = [model._held_out_loss(tasks) for model in models]
            best = least_clearly([loss for _, loss in found], len(priors) - isinstance(priors[-1], KernelPrior))
            models = [models[best].set_params(kappa=found[best][0])]
        return models[0].fit_tasks(tasks)

    def _held_out_loss(self, tasks: PairTasks) -> tuple[float, np.ndarray]:
        """kappa, the best of a grid unless it is given, and its held-out rank loss, query by query."""
        _, choose, _ = self._problem(tasks)
        return choose(MORE_PAIRS, None if isinstance(self.kappa, str) else np.array([float(self.kappa)]))

    def _problem(self, tasks: PairTasks) -> tuple[Gram, Choice, Callable[[np.ndarray], PairTable]]:
        """The Gram matrix, a choice of kappa, and the table of all tasks as a function of the ridge; empty: unsolved.

        Fits the kernel and the prior on the way.
        """
        self.n_queries_, self.n_items_ = tasks.n_queries, tasks.n_items
        self.similarity_ = SIMILARITY if isinstance(self.similarity, str) else float(self.similarity)
        ratings = tasks.table(values=self.prior is not None or self.similarity_ > 0 or self.targets == "scaled")
        self.kernel_ = QueryKernel(self.kernel, float(self.constant), self.similarity_).fit(tasks.X, ratings)
        K = cache(self.kernel_.gram)
        f = self._fit_prior(ratings, tasks.X)
        scale = spread(ratings) if self.targets == "scaled" else np.ones(self.n_queries_)
        if tasks.comparisons is None:
            return K, *self._from_ratings(ratings, scale, f, K)
        return K, *self._from_comparisons(tasks.comparisons, ratings, scale, f, K)

    def after_load(self) -> None:
        """Compiled code believes the numbers in the table: one from a file is looked at first."""
        self.table_.check(self.n_items_, self.n_queries_)

    def _check_parameters(self) -> None:
        for name, choices in CHOICES.items():
            choice(self, name, choices)
        for name in (
            ("lam", "max_memory") if isinstance(self.kappa, str) and self.kappa == "auto" else ("lam", "max_memory", "kappa")
        ):
            number(self, name)
        if not (isinstance(self.similarity, str) and self.similarity == "auto"):
            number(self, "similarity", zero=True)

    def _fit_prior(self, ratings: sparse.csr_array, X: Any) -> np.ndarray | None:
        """F at every stored rating, out of sample; None without a prior."""
        self.prior_ = make_prior(self.prior)
        self.slope_ = 0.0
        if self.prior_ is None:
            return None
        if isinstance(self.prior, str) and "n_jobs" in self.prior_.get_params():
            self.prior_.set_params(n_jobs=self.n_jobs)
        self.prior_.fit(ratings, X)
        F = sparse.csr_array(self.prior_.training_scores())
        if not F.has_sorted_indices:
            F = F.sorted_indices()
        if F.shape != ratings.shape or not (
            np.array_equal(F.indptr, ratings.indptr) and np.array_equal(F.indices, ratings.indices)
        ):
            raise ValueError(
                f"the prior {self.prior_!r} has training scores of another pattern than the ratings; one per rating is needed"
            )
        return np.asarray(F.data, dtype=float)

    def _from_ratings(self, R: sparse.csr_array, scale: np.ndarray, f: np.ndarray | None, K: Gram) -> tuple[Choice, Any]:
        sign = self.targets == "sign"
        values = with_data(R, R.data / scale[users_of(R)])
        if f is not None:
            self.slope_ = slope_of_ratings(values, f, sign)
        g = np.zeros(R.nnz) if f is None else self.slope_ * f

        def table_of(ridge: np.ndarray) -> PairTable:
            kept = K() if ridge.size else np.empty((0, 0))  # not needed again
            with blas_threads(1):
                return table_of_ratings(values, g, sign, kept, ridge, n_threads(self.n_jobs), self.max_memory)

        def choose(pairs: int, grid: np.ndarray | None) -> tuple[float, np.ndarray]:
            if sign or R.nnz < R.shape[0] * R.shape[1]:
                return self._choose(observations(values, g, sign, pairs), K, grid, prior_loss(R, g))
            features = self.kernel_.features()
            V, F = values.data.reshape(R.shape), g.reshape(R.shape)
            kappa, rows, held = choose_complete(V, F, None if features is not None else K(), features, grid)
            return kappa, prior_loss(R[rows], held.ravel())

        return choose, table_of

    def _choose(self, sample: Sample, K: Gram, grid: np.ndarray | None, without: np.ndarray) -> tuple[float, np.ndarray]:
        """kappa by a sample of pairs, and its held-out rank loss; `without` is that of the prior alone."""
        features = self.kernel_.features()
        kappa, added = choose_kappa(sample, None if features is not None else K(), features, grid)
        return kappa, without + added

    def _from_comparisons(
        self, seen: Comparisons, R: sparse.csr_array, scale: np.ndarray, f: np.ndarray | None, K: Gram
    ) -> tuple[Choice, Any]:
        y = np.sign(seen.y) if self.targets == "sign" else seen.y / scale[seen.users]
        df = np.zeros(len(y))
        if f is not None:
            F = with_data(R, f)
            df = lookup(F, seen.users, seen.low) - lookup(F, seen.users, seen.high)
            self.slope_ = slope_of_comparisons(y, df)

        wrong = np.abs(y) * (1 - np.sign(y * df * self.slope_)) / 2
        lost, total = (np.bincount(seen.users, v, self.n_queries_) for v in (wrong, np.abs(y)))
        without = lost / max(float(np.mean(total)), 1e-300)
        sample = Sample(seen.users, seen.low, seen.high, y, self.slope_ * df)

        def table_of(ridge: np.ndarray) -> PairTable:
            listed = seen.low, seen.high, seen.users, y - self.slope_ * df
            return table_of_comparisons(self.n_items_, *listed, self.n_queries_, K(), ridge, n_threads(self.n_jobs))

        return lambda _, grid: self._choose(sample, K, grid, without), table_of

    # ------------------------------------------------------------------ scores

    def _cold_rows(self, X: Any, ratings: Any) -> np.ndarray | None:
        """Which queries have rated nothing; None where these need no fit of their own."""
        check_is_fitted(self, "table_")
        if self.cold_ is None or X is None:
            return None
        return np.ones(len(X), dtype=bool) if ratings is None else np.diff(as_ratings(ratings, self.n_items_).indptr) == 0

    def objective(self, X: Any, ratings: Any = None, items: np.ndarray | None = None) -> Any:
        """What an order of each new query is to minimise; items: sorted item numbers, S is then over these alone.

        A row of them for each query, (m, c) padded by -1, gives each its own.
        """
        if items is not None and items.ndim == 2:
            return EachObjective(self.objective(X, ratings, np.unique(items[items >= 0])), items)
        cold = self._cold_rows(X, ratings)
        if self.cold_ is not None and cold is not None and cold.any():
            parts = [(cold, self.cold_.objective(X[cold], None, items))]
            if not cold.all():
                parts.append((~cold, self.objective(X[~cold], as_ratings(ratings)[~cold], items)))
            return parts[0][1] if cold.all() else MixedObjective(parts)
        k, f = self._inputs(X, ratings)
        table = self.table_ if items is None else self.table_.among(items)
        f = f if items is None else np.ascontiguousarray(f[:, items])
        items = np.arange(self.n_items_) if items is None else items
        return PairObjective(table, k, f, items, self.pair_weight == "counts", n_threads(self.n_jobs), self.max_memory)

    def _inputs(self, X: Any, ratings: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """What the scores of new queries are made of: kernel rows or alphas (m, n), and w F (m, D)."""
        check_is_fitted(self, "table_")
        profile = None if ratings is None else as_ratings(ratings, self.n_items_)
        m = count_queries(type(self).__name__, X, profile)
        if X is None and self.kernel_.X_ is not None:
            raise ValueError("PairwiseRidge was fitted with X, so new queries need X too")
        k = self.kernel_.cross(X, profile, m)
        if self.smoother_ is not None:
            k = np.ascontiguousarray(scipy.linalg.cho_solve(self.smoother_, k.T).T)
        if self.prior_ is None:
            return k, np.zeros((m, self.n_items_))
        F = np.asarray(self.prior_.scores(ratings=profile, X=X), dtype=float)
        if len(F) == 1 and m > 1:
            F = np.repeat(F, m, axis=0)
        if F.shape != (m, self.n_items_) or not np.isfinite(F).all():
            raise ValueError(
                f"the prior {self.prior_!r} returned scores of shape {F.shape}; finite ones of shape {(m, self.n_items_)} "
                "are needed"
            )
        return k, self.slope_ * F

    def predict_tasks(self, X: Any) -> list[np.ndarray]:
        """S_pq(x) (m, 1) of every pair p < q, in the order of `lawful.sets.Rankings`: for a few items."""
        scores = self.pair_scores(X, np.stack(np.triu_indices(self.n_items_, 1), axis=1))
        return list(scores.T[:, :, None])

    def skew(self, X: Any, ratings: Any = None, items: np.ndarray | None = None) -> np.ndarray:
        """S(x) (D, D) of one query, X (1, d)."""
        F = self.objective(X, ratings, items)
        if len(F) != 1:
            raise ValueError(f"PairwiseRidge.skew is for one query, and {len(F)} were given; `objective` takes any number")
        with F.threads() as threads:
            ((_, skew),) = F.skews(threads)
            return skew(0)

    def pair_scores(self, X: Any, pairs: Any, ratings: Any = None) -> np.ndarray:
        """(m, P) S_pq(x) of chosen pairs (P, 2), without forming S."""
        pairs = check_pairs(pairs, self.n_items_)
        cold = self._cold_rows(X, ratings)
        if self.cold_ is not None and cold is not None and cold.any():
            found = np.empty((len(X), len(pairs)))
            found[cold] = self.cold_.pair_scores(X[cold], pairs)
            if not cold.all():
                found[~cold] = self.pair_scores(X[~cold], pairs, as_ratings(ratings)[~cold])
            return found
        k, f = self._inputs(X, ratings)
        left, right = pairs.T
        v, sizes = self.table_.chosen_scores(k, np.minimum(left, right), np.maximum(left, right))
        out = f[:, left] - f[:, right] + np.sign(right - left) * v
        return out * (sizes + 1) if self.pair_weight == "counts" else out


def check_pairs(pairs: Any, n_items: int) -> np.ndarray:
    """(P, 2) whole numbers in 0 .. D - 1."""
    pairs = np.asarray(pairs)
    pairs = pairs[None, :] if pairs.shape == (2,) else pairs
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise ValueError(f"pairs have shape {pairs.shape} and type {pairs.dtype}; give whole numbers of shape (P, 2)")
    if ((pairs < 0) | (pairs >= n_items)).any():
        raise ValueError(f"pairs name items outside 0 .. {n_items - 1}")
    return pairs.astype(np.int64)
