"""ConstrainedRanker: a consistent order of all items for every query, learned from ratings or comparisons with gaps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lawful._checks import choice, count
from lawful._memory import in_words
from lawful._ranker import Ranker, check_items, item_names, new_queries, training_queries
from lawful.decoders import ArcSet
from lawful.decoders.arcset import RankingDecoding
from lawful.decoders.orders import METHODS
from lawful.estimators.base import LawfulEstimator
from lawful.kernels import Precomputed
from lawful.sets import Rankings
from lawful.surrogates.pairs import FrequentPairRidge, PairTasks, PairwiseRidge

__all__ = ["ConstrainedRanker"]


class ConstrainedRanker(Ranker, LawfulEstimator):
    """Rank items for a query: every pair of items is a task, and the predicted comparisons must form a total order.

        f(x) = argmin over total orders of the weight |S_pq(x)| of the pairs ranked against the sign of S_pq(x)
        S_pq(x) = w (F_p(x) - F_q(x)) + sum_i k(x, x_i) c_i,pq          (see `lawful.surrogates.pairs.pairwise`)

    The defaults are those that measured best. The paper's estimator (one kernel ridge problem per pair, nothing else):

        ConstrainedRanker(prior=None, similarity=0, ridge="n_lambda", targets="difference", pair_weight=None)

    and its predecessor, the vector-valued one in which missing comparisons count as ties: the same with missing="zero".

    It is made of a surrogate (`PairwiseRidge`, with the parameters from `prior` to `pair_weight`), a set (`Rankings`) and a
    decoder (`ArcSet`). Where a matrix between all queries, or all items, would not fit into `max_memory`, the surrogate is
    `FrequentPairRidge`: memory and time are then linear in the ratings. `surrogate_choice_` says which, and why.

    Parameters
    ----------
    prior : None, "item_bias", "factors" or an object with fit, training_scores and scores
        What is believed of the items before the kernel speaks. "factors" also uses the ratings of a new query.
    kernel : a kernel of `lawful.kernels`, a function k(X, Z) -> (n, m), or None
        On the queries' features. None: linear, columns scaled so that k(x, x) is 1 on average.
    constant : bool
        Add 1 to the kernel, so that "everyone prefers p to q" can be learned.
    similarity : float or "auto"
        Weight of the kernel between the ratings of two queries; 0: only X counts. "auto": 30; but where the
        training queries have rated at least half of the items, queries that have rated nothing are served by a fit of their
        own (`surrogate_.cold_`), without the similarity and with the prior and kappa that leave-one-out finds best. (Not where
        `prior` is an object of yours, or X is None.)
    ridge, lam, kappa : "kappa": the ridge of a pair is kappa; "auto" is 100, or without the similarity the best of a grid by
        leave-one-out on a sample of pairs. "n_lambda": it is lam times the number of its queries
    targets : "scaled" (differences of ratings, over the query's spread), "difference" or "sign"
    missing : "skip": a pair is learned from the queries that rated both; "zero": an unseen comparison is a tie
    pair_weight : "counts": S_pq is multiplied by 1 + the number of queries that rated both; None: it is not
    pairs : "auto", "all" or "frequent"
        Which pairs have a task: all that anyone compared (`PairwiseRidge`), or those that many did, beside the factor prior for
        the others (`FrequentPairRidge`: ratings, a linear kernel, no similarity). "auto" goes by size.
    decoder : "insertion", "eades", "borda", "exact", a function S (D, D) -> items in order, or an `ArcSet`, which then has the
        parameters `sweeps`, `time_limit`, `random_state` and `verbose` of its own
    sweeps : int
        Sweeps of the insertion search.
    time_limit : float or None
        Seconds per query for "insertion" (which then searches on) and "exact".
    max_memory : float
        Bytes for the coefficients; beyond, they are computed again in blocks when queries are scored. Also what the matrices
        between queries and between items may take before pairs="auto" means "frequent".
    random_state : of a search with a time limit
    n_jobs : int or None
        Threads; None or -1 means all cores.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    surrogate_, constraint_ : the fitted surrogate, the set of `Rankings`
    surrogate_choice_ : which surrogate that is, and why
    n_items_, item_names_, n_tasks_ (pairs compared at least once), n_unobserved_ (pairs never compared), n_features_in_

    Examples
    --------
    >>> import numpy as np
    >>> from lawful import ConstrainedRanker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 2))
    >>> R = X @ rng.standard_normal((2, 6)) + 0.1 * rng.standard_normal((80, 6))
    >>> R[rng.uniform(size=R.shape) < 0.5] = np.nan  # not rated
    >>> ranker = ConstrainedRanker().fit(X[:60], R[:60])
    >>> ranker.predict(X[60:]).shape
    (20, 6)
    >>> bool(ranker.score(X[60:], R[60:]) > 0.9)
    True
    """

    def __init__(
        self,
        prior: Any = "factors",
        *,
        kernel: Any = None,
        constant: bool = True,
        similarity: Any = "auto",
        ridge: str = "kappa",
        lam: float = 1.0,
        kappa: Any = "auto",
        targets: str = "scaled",
        missing: str = "skip",
        pair_weight: str | None = "counts",
        pairs: str = "auto",
        decoder: Any = "insertion",
        sweeps: int = 3,
        time_limit: float | None = None,
        max_memory: float = 4e9,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
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
        self.pairs = pairs
        self.decoder = decoder
        self.sweeps = sweeps
        self.time_limit = time_limit
        self.max_memory = max_memory
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    constraint = loss = surrogate = None  # they follow from the parameters
    _defaults: dict[str, Any] = {}

    # ------------------------------------------------------------------ fit

    def fit(self, X: Any, R: Any = None, *, comparisons: Any = None, n_items: int | None = None) -> Self:
        """Learn from X (n, d), one row per query, and ratings or comparisons.

        X            (n, d), or None if the ratings are all there is
        R            (n, D) ratings or relevances, larger is better; NaN means unrated. Sparse: a stored entry is a rating.
        comparisons  instead of R: rows (query, winner, loser[, weight]), numbers from 0. They need not be complete nor agree:
                     what a query says twice about a pair adds up, what it says against itself cancels, weight 0 is a tie
        n_items      D, where comparisons do not mention the last items
        """
        self._decoder()  # an unknown one fails here, not in predict
        X = training_queries(self, X)
        tasks = PairTasks.read(X, R, comparisons, n_items)
        self.constraint_ = Rankings().of_items(tasks.n_items)
        surrogate, self.surrogate_choice_ = self._chosen(tasks)
        self.surrogate_ = surrogate.fit_tasks(tasks)
        self.n_items_, self.item_names_ = tasks.n_items, item_names(R)
        self.n_tasks_, self.n_unobserved_ = self.surrogate_.n_tasks_, self.surrogate_.n_unobserved_
        self._first = None if X is None else X[:1].copy()  # the example of a saved model
        return self

    def _repeat(self, inputs: Any) -> Any:
        F = self.surrogate_.objective(inputs)  # checked inputs: names were for the user
        return self._decoder().orders(F, self.constraint_, bound=False).positions.ravel()

    def after_load(self) -> None:
        """Orders make room for their items: their number is that of the scores, which have looked at theirs."""
        if not self.constraint_.n_items_ == self.n_items_ == self.surrogate_.n_items_:
            raise ValueError("ConstrainedRanker: its orders are of other items than its scores; fit the model again")

    def _rehearse(self, X: Any) -> None:
        self.decode(X[:1], bound=False)  # an order may take long

    def _chosen(self, tasks: PairTasks) -> tuple[Any, str]:
        """An unfitted surrogate, and why it is that one."""
        choice(self, "pairs", ("auto", "all", "frequent"))
        n, D = tasks.n_queries, tasks.n_items
        needed = 8.0 * n**2 + 4.0 * D**2
        missed = [name for name, fine in self._frequent_can(tasks).items() if not fine]
        size = f"matrices of {n} queries and {D} items take {in_words(needed)} (max_memory: {in_words(self.max_memory)})"
        if self.pairs == "all" or (self.pairs == "auto" and (needed <= self.max_memory or missed)):
            return self._with_parameters(PairwiseRidge), f"PairwiseRidge: {'given' if self.pairs == 'all' else size}"
        if missed:
            raise ValueError(
                f"ConstrainedRanker: pairs='frequent' cannot do with this {', '.join(missed)}; leave the default, or take "
                "pairs='all'"
            )
        return self._with_parameters(FrequentPairRidge), f"FrequentPairRidge: {'given' if self.pairs == 'frequent' else size}"

    def _frequent_can(self, tasks: PairTasks) -> dict[str, bool]:
        """Whether `FrequentPairRidge` has what each of these parameters asks for."""
        return {
            "kernel": self.kernel is None,
            "prior": self.prior is None or (isinstance(self.prior, str) and self.prior == "factors"),
            "similarity": isinstance(self.similarity, str) or self.similarity == 0,
            "missing": self.missing == "skip",
            "comparisons": tasks.comparisons is None,
        }

    def _with_parameters(self, kind: Any) -> Any:
        mine = self.get_params(deep=False)
        return kind(**{name: mine[name] for name in kind().get_params(deep=False) if name in mine and name != "random_state"})

    def _decoder(self) -> ArcSet:
        if isinstance(self.decoder, ArcSet):
            self.decoder.solver(0, bound=False)
            return self.decoder
        if not callable(self.decoder) and not (isinstance(self.decoder, str) and self.decoder in METHODS):
            raise ValueError(
                f"ConstrainedRanker: decoder={self.decoder!r} is unknown; choose one of {', '.join(METHODS)}, or give a "
                "function of S (D, D) that returns the items in order, best first"
            )
        found = ArcSet(
            self.decoder,
            sweeps=count(self, "sweeps", 0),
            time_limit=self.time_limit,
            random_state=self.random_state,
            verbose=self.verbose,
        )
        found.solver(0, bound=False)
        return found

    # ------------------------------------------------------------------ predict

    def decode(  # type: ignore[override]
        self, X: Any, ratings: Any = None, *, items: Any = None, bound: bool = True
    ) -> RankingDecoding:
        """Orders with a certificate per query: order, positions, value, objective, bound, gap, status.

        ratings  (m, D) what the new queries have already rated, if anything: used by the prior and the similarity
        items    candidates, item numbers; the others are left out of the order. (m, c): a row for each query, padded by -1.
                 None: all
        bound    whether to compute the lower bound (else 0)
        """
        F = self.objective(X, ratings, items=items)
        return replace(self._decoder().orders(F, self.constraint_, bound=bound), names=self.item_names_)

    def objective(self, X: Any, ratings: Any = None, *, items: Any = None) -> Any:  # type: ignore[override]
        """What the decoder minimises, for every query (for a look inside; `decode` does the work)."""
        check_is_fitted(self, "surrogate_")
        X, ratings, m = new_queries(self, X, ratings)
        return self.surrogate_.objective(X, ratings, None if items is None else check_items(items, self.n_items_, m))

    def predict(self, X: Any, ratings: Any = None) -> np.ndarray:  # type: ignore[override]
        """(m, D) rank positions, 0 = best: a total order for every query."""
        return self.decode(X, ratings, bound=False).positions

    def _best(self, X: Any, ratings: Any, items: Any) -> np.ndarray:
        return self.decode(X, ratings, items=items, bound=False).order

    def pair_scores(self, X: Any, pairs: Any, ratings: Any = None) -> np.ndarray:
        """S_pq(x) of chosen pairs (P, 2): (m, P), or (P,) for a single query given as x (d,). S_pq > 0: p before q."""
        check_is_fitted(self, "surrogate_")
        single = X is not None and np.ndim(X) == 1
        X, ratings, _ = new_queries(self, np.asarray(X)[None, :] if single else X, ratings)
        scores = self.surrogate_.pair_scores(X, pairs, ratings)
        return scores[0] if single else scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, Precomputed)
        return tags
