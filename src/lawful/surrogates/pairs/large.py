"""Comparisons of more items, for more queries, than matrices n x n or D x D allow: factors, and ridges for frequent pairs.

    S_pq(x) = w (F_p(x) - F_q(x)) + z(x) . beta_pq                               the last term for frequent pairs only
    F_i(x)  = mu + b_i + p(x) . q_i + z(x) . g_i                                 a factor prior, module `wide_factors`
    beta_t  = (Z_t' Z_t + r_t I)^{-1} Z_t' (y_t - w (F_p - F_q)),  r_t = kappa or n_t lam

z(x) = (1, scaled columns of X) are the features of the linear kernel of `PairwiseRidge`, k(x, x') = z(x) . z(x'), and

    Z_t' (Z_t Z_t' + r I)^{-1} y = (Z_t' Z_t + r I)^{-1} Z_t' y,

so that a frequent pair has the very scores which `PairwiseRidge` with similarity=0 would give it, from r numbers instead of
n_t. Which pairs are frequent is counted item by item, and the least count is the smallest for which there are at most
`max_pairs`, by default a quarter of the number of ratings: the others have too few observations to say much beside their prior,
w (F_p - F_q).

    memory   ratings, (n + D)(k + d) for the factors, max_pairs (1 + d) for the pairs: linear in the ratings
    time     ratings x k^2 for each round of the factorisation; one pass of counting over all sum_u n_u^2 / 2 observations,
             and (1 + d)^2 for each observation of a frequent pair

New queries are ordered over their candidates, of which S is formed: c x c numbers. Without candidates a query has those `TOP`
items of largest F for candidates, and the others follow in the order of F.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lawful._checks import choice, number
from lawful._memory import require_memory
from lawful._threads import Threads, n_threads, on_threads
from lawful.ratings import as_ratings, count_queries, users_of, with_data
from lawful.surrogates.base import Surrogate
from lawful.surrogates.pairs._frequent import candidate_skew, fit_frequent, frequent, histogram, listed_scores
from lawful.surrogates.pairs._table import cut
from lawful.surrogates.pairs._targets import choose_kappa, observations, slope_of_ratings, spread
from lawful.surrogates.pairs.comparisons import PairTasks
from lawful.surrogates.pairs.pairwise import CHOICES, check_pairs
from lawful.surrogates.pairs.query_kernel import Standardized
from lawful.surrogates.pairs.wide_factors import ByItem, Scorer, WideFactors, select_wide

__all__ = ["CandidateObjective", "FrequentPairRidge"]

LEAST = 8  # observations of a pair below which a ridge of its own is not worth its memory
COUNTED = 4096  # counts beyond are alike
TOP = 500  # candidates of a query that has none named
BLOCKS = 32  # of items, for threads to even out


class FrequentPairRidge(Surrogate):
    """The ridges above, from ratings.

    Parameters
    ----------
    prior : "factors" or None
    constant : bool
        Whether z begins with a 1.
    ridge, lam, kappa, targets, pair_weight : as in `PairwiseRidge`; kappa="auto" is the one of least leave-one-out error on a
        sample of pairs. pair_weight="counts" takes the expected number n_p n_q / n for a pair that is not frequent
    n_models : int
        Factorisations to average; their size and ridge are chosen on a sample of the queries.
    max_pairs : int or None
        Frequent pairs at most; None: a quarter of the number of ratings.
    random_state : of the factorisations
    n_jobs : int or None
        Threads; None or -1 means all cores.

    Attributes
    ----------
    n_items_, n_tasks_ (frequent pairs), n_unobserved_ (all other pairs), least_ (observations of a frequent pair at least),
    kappa_, slope_, prior_ (`WideFactors` or None), coef_ (n_tasks_, r), factors_ (the parameters that were chosen)
    """

    def __init__(
        self,
        prior: Any = "factors",
        *,
        constant: bool = True,
        ridge: str = "kappa",
        lam: float = 1.0,
        kappa: Any = "auto",
        targets: str = "scaled",
        pair_weight: str | None = "counts",
        n_models: int = 2,
        max_pairs: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.prior = prior
        self.constant = constant
        self.ridge = ridge
        self.lam = lam
        self.kappa = kappa
        self.targets = targets
        self.pair_weight = pair_weight
        self.n_models = n_models
        self.max_pairs = max_pairs
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ------------------------------------------------------------------ fit

    def fit(self, X: Any, R: Any) -> Self:
        """X (n, d) float array or None; R (n, D) ratings, NaN or not stored = unrated."""
        return self.fit_tasks(PairTasks.read(X, R))

    def fit_tasks(self, tasks: PairTasks) -> Self:  # type: ignore[override]
        """The factors, then a ridge for every frequent pair."""
        self._check_parameters(tasks)
        R: Any = tasks.ratings
        threads = n_threads(self.n_jobs)
        n, self.n_items_ = R.shape
        self.scale_ = None if tasks.X is None else Standardized().fit(tasks.X)
        Z = self._features(tasks.X, n)
        self.prior_, self.slope_, self.factors_ = None, 0.0, None
        values = with_data(R, R.data / spread(R)[users_of(R)]) if self.targets == "scaled" else R
        g = np.zeros(R.nnz)
        if self.prior == "factors":
            attributes = np.ascontiguousarray(Z[:, int(self.constant) :])
            model = select_wide(R, attributes, self.random_state, self.n_jobs)
            self.factors_ = {name: model.get_params()[name] for name in ("n_factors", "lam")}
            self.prior_ = WideFactors(model, self.n_models, self.random_state, self.n_jobs).fit(R, attributes)
            f = self.prior_.training_scores(R, attributes)
            self.slope_ = slope_of_ratings(values, f, self.targets == "sign")
            g = np.multiply(f, self.slope_, out=f)
        self.rate_ = np.bincount(R.indices, minlength=self.n_items_) / np.sqrt(n)
        self._fit_pairs(values, g, Z, threads)
        self.n_tasks_ = len(self.partner_)
        self.n_unobserved_ = self.n_items_ * (self.n_items_ - 1) // 2 - self.n_tasks_
        return self

    def _check_parameters(self, tasks: PairTasks) -> None:
        for name in ("ridge", "targets", "pair_weight"):
            choice(self, name, CHOICES[name])
        choice(self, "prior", ("factors", None))
        number(self, "lam")
        if not (isinstance(self.kappa, str) and self.kappa == "auto"):
            number(self, "kappa")
        if tasks.ratings is None:
            raise ValueError(
                "FrequentPairRidge: comparisons one by one are not what it learns from; give ratings R, or use PairwiseRidge"
            )

    def _features(self, X: Any, n: int) -> np.ndarray:
        """z (n, r)."""
        one = np.ones((n, int(self.constant)))
        return np.ascontiguousarray(one if self.scale_ is None or X is None else np.hstack([one, self.scale_.features(X)]))

    def _fit_pairs(self, values: Any, g: np.ndarray, Z: np.ndarray, threads: int) -> None:
        """Count, choose, solve."""
        by_item = ByItem.of(values)
        index = (
            by_item.raters.astype(np.int32), by_item.ptr.astype(np.int64), by_item.order.astype(np.int64),
            values.indptr.astype(np.int64), values.indices.astype(np.int32),
        )  # fmt: skip
        work = np.bincount(values.indices, np.diff(values.indptr)[users_of(values)], self.n_items_)  # steps of the count
        blocks = cut(np.concatenate([[0], np.cumsum(work)]), BLOCKS)
        counts = [np.zeros(COUNTED + 1, dtype=np.int64) for _ in blocks]
        on_threads(lambda job: histogram(job[0][0], job[0][1], index, job[1]), zip(blocks, counts), threads)
        most = max(values.nnz // 4, 1) if self.max_pairs is None else int(self.max_pairs)
        larger = np.cumsum(np.sum(counts, axis=0)[::-1])[::-1]  # pairs with so many observations or more
        fits = np.flatnonzero(larger <= most)
        self.least_ = max(LEAST, int(fits[0]) if fits.size else COUNTED + 1)
        if self.least_ > COUNTED:  # so many pairs with thousands of observations each: the last count is open-ended
            self.least_ = COUNTED
        sizes = np.zeros(self.n_items_ + 1, dtype=np.int64)
        nothing = np.empty(0, dtype=np.int32)
        on_threads(lambda b: frequent(b[0], b[1], index, self.least_, sizes, nothing, nothing), blocks, threads)
        self.start_ = np.concatenate([[0], np.cumsum(sizes[:-1])])
        total = int(self.start_[-1])
        self.partner_, self.sizes_ = np.empty(total, np.int32), np.empty(total, np.int32)
        if total:
            on_threads(
                lambda b: frequent(b[0], b[1], index, self.least_, self.start_, self.partner_, self.sizes_), blocks, threads
            )
        sign = self.targets == "sign"
        ridge = np.array([0.0, self.lam])
        if self.ridge == "kappa":
            measured = isinstance(self.kappa, str)
            self.kappa_ = choose_kappa(observations(values, g, sign), None, Z)[0] if measured else float(self.kappa)
            ridge = np.array([self.kappa_, 0.0])
        self.coef_ = np.empty((total, Z.shape[1]))
        on_threads(
            lambda b: fit_frequent(
                b[0], b[1], index, values.data, g, sign, Z, ridge, self.start_, self.partner_, self.sizes_, self.coef_
            ),
            blocks, threads,
        )  # fmt: skip

    # ------------------------------------------------------------------ scores

    def _inputs(self, X: Any, ratings: Any) -> tuple[np.ndarray, Scorer]:
        """z (m, r) and the scores w F of new queries."""
        check_is_fitted(self, "coef_")
        profile = None if ratings is None else as_ratings(ratings, self.n_items_)
        m = count_queries(type(self).__name__, X, profile)
        if X is None and self.scale_ is not None:
            raise ValueError("FrequentPairRidge was fitted with X, so new queries need X too")
        Z = self._features(X, m)
        if self.prior_ is None:
            nothing = Scorer(np.zeros((m, 1)), np.zeros((self.n_items_, 1)), np.zeros((1, self.n_items_)), np.zeros(m, int))
            return Z, nothing
        found = self.prior_.scorer(profile, np.ascontiguousarray(Z[:, int(self.constant) :]))
        return Z, found._replace(left=self.slope_ * found.left, bias=self.slope_ * found.bias)

    def objective(self, X: Any, ratings: Any = None, items: np.ndarray | None = None) -> CandidateObjective:
        """What an order of each new query is to minimise.

        items: sorted item numbers for all queries, or (m, c), a row for each query with -1 after the last.
        """
        Z, scorer = self._inputs(X, ratings)
        return CandidateObjective(self, Z, scorer, items)

    def pair_scores(self, X: Any, pairs: Any, ratings: Any = None) -> np.ndarray:
        """(m, P) S_pq(x) of chosen pairs (P, 2)."""
        pairs = check_pairs(pairs, self.n_items_)
        Z, scorer = self._inputs(X, ratings)
        left, right = np.ascontiguousarray(pairs.T)
        f = [scorer.left @ scorer.right[side].T + scorer.bias[scorer.kind][:, side] for side in (left, right)]
        out = np.empty((len(Z), len(pairs)))
        start, partner, sizes, coef, rate, by_count = self.table()
        listed_scores(left, right, f[0], f[1], Z, start, partner, sizes, coef, rate, by_count, out)
        return out

    def predict_tasks(self, X: Any) -> list[np.ndarray]:
        """S_pq(x) (m, 1) of every pair p < q, in the order of `lawful.sets.Rankings`: for a few items."""
        return list(self.pair_scores(X, np.stack(np.triu_indices(self.n_items_, 1), axis=1)).T[:, :, None])

    def table(self) -> Any:
        """The frequent pairs, as compiled code reads them."""
        return self.start_, self.partner_, self.sizes_, self.coef_, self.rate_, self.pair_weight == "counts"

    def after_load(self) -> None:
        """Compiled code believes these numbers: those from a file are looked at first."""
        fits = len(self.start_) == self.n_items_ + 1 and self.start_[0] == 0 and self.start_[-1] == len(self.partner_)
        fits &= bool((np.diff(self.start_) >= 0).all()) and len(self.sizes_) == len(self.coef_) == len(self.partner_)
        fits &= self.coef_.ndim == 2 and self.coef_.dtype == np.float64 and len(self.rate_) == self.n_items_
        if not fits:
            raise ValueError("FrequentPairRidge: the table of pairs does not fit the number of items; fit the model again")


class CandidateObjective:
    """The weight of the pairs that an order puts the wrong way round, over the candidates of each query.

    items   (d,) for all, or (m, c) for each query, padded by -1
    tail(i) the items that follow the candidates of query i whatever their order; none unless there were no candidates
    """

    def __init__(self, model: FrequentPairRidge, Z: np.ndarray, scorer: Scorer, items: np.ndarray | None) -> None:
        self.model, self.Z, self.scorer = model, Z, scorer
        self.n_threads = n_threads(model.n_jobs)
        self.tails: np.ndarray | None = None
        D, m = model.n_items_, len(Z)
        if items is None and D <= TOP:
            items = np.arange(D)
        if items is None:
            require_memory(
                type(model).__name__, 24.0 * m * D, f"an order of all {D} items for {m} queries",
                "name candidates (items=), ask for fewer queries at a time, or use recommend",
            )  # fmt: skip
            order = np.argsort(-scorer.all(slice(None)), axis=1, kind="stable")
            items, self.tails = np.sort(order[:, :TOP], axis=1), order[:, TOP:]
        self.items = items
        self.n_items = items.shape[-1]
        self.shape = m, self.n_items * (self.n_items - 1) // 2

    def __len__(self) -> int:
        return self.shape[0]

    def candidates(self, i: int) -> np.ndarray:
        """The candidates of query i."""
        mine = self.items if self.items.ndim == 1 else self.items[i]
        return mine[mine >= 0]

    def tail(self, i: int) -> np.ndarray:
        return np.empty(0, dtype=np.int64) if self.tails is None else self.tails[i]

    def threads(self) -> Threads:
        return Threads(self.n_threads)

    def skews(self, threads: Threads) -> Iterator[tuple[Sequence[int], Callable[[int], np.ndarray]]]:
        """One block of all queries, and S(x_i) in a buffer of the calling thread, which its next call overwrites."""
        start, partner, sizes, coef, rate, by_count = self.model.table()
        buffers = threading.local()

        def skew(i: int) -> np.ndarray:
            items = self.candidates(i)
            if not hasattr(buffers, "S") or len(buffers.S) != len(items):
                buffers.S = np.empty((len(items), len(items)))
            f = self.scorer.of(i, items)
            candidate_skew(items, f, self.Z[i], start, partner, sizes, coef, rate, by_count, buffers.S)
            return buffers.S

        yield range(len(self)), skew
