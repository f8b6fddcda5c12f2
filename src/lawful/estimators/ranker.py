"""ConstrainedRanker: a consistent order of all items for every query, learned from ratings or comparisons with gaps."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from tqdm import tqdm

from lawful.estimators._ranking import RankingDecoding, collect, solver
from lawful.kernels import Precomputed
from lawful.metrics import rank_loss
from lawful.ratings import as_ratings
from lawful.surrogates.pairs.pairwise import PairwiseRidge

__all__ = ["ConstrainedRanker"]


class ConstrainedRanker(BaseEstimator):
    """Rank items for a query: every pair of items is a task, and the predicted comparisons must form a total order.

        f(x) = argmin over total orders of the weight |S_pq(x)| of the pairs ranked against the sign of S_pq(x)
        S_pq(x) = w (F_p(x) - F_q(x)) + sum_i k(x, x_i) c_i,pq          (see `lawful.surrogates.pairs.pairwise`)

    The defaults are those that measured best. The paper's estimator (one kernel ridge problem per pair, nothing else):

        ConstrainedRanker(prior=None, similarity=0, ridge="n_lambda", targets="difference", pair_weight=None)

    and its predecessor, the vector-valued one in which missing comparisons count as ties: the same with missing="zero".

    Parameters
    ----------
    prior : None, "item_bias", "factors" or an object with fit, training_scores and scores
        What is believed of the items before the kernel speaks. "factors" also uses the ratings of a new query.
    kernel : a kernel of `lawful.kernels`, a function k(X, Z) -> (n, m), or None
        On the queries' features. None: linear, columns scaled so that k(x, x) is 1 on average.
    constant : bool
        Add 1 to the kernel, so that "everyone prefers p to q" can be learned.
    similarity : float
        Weight of the kernel between the ratings of two queries; 0: only X counts.
    ridge, lam, kappa : "kappa": the ridge of a pair is kappa; "auto" is 100, or with similarity=0 the best of a grid by
        leave-one-out on a sample of pairs. "n_lambda": it is lam times the number of its queries
    targets : "scaled" (differences of ratings, over the query's spread), "difference" or "sign"
    missing : "skip": a pair is learned from the queries that rated both; "zero": an unseen comparison is a tie
    pair_weight : "counts": S_pq is multiplied by 1 + the number of queries that rated both; None: it is not
    decoder : "insertion", "eades", "borda", "exact", or a function S (D, D) -> items in order
    sweeps : int
        Sweeps of the insertion search.
    time_limit : float or None
        Seconds per query for "insertion" (which then searches on) and "exact".
    max_memory : float
        Bytes for the coefficients; beyond, they are computed again in blocks when queries are scored.
    random_state : of a search with a time limit
    n_jobs : int or None
        Threads; None or -1 means all cores.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    surrogate_ : the fitted `PairwiseRidge`
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
        similarity: float = 30.0,
        ridge: str = "kappa",
        lam: float = 1.0,
        kappa: Any = "auto",
        targets: str = "scaled",
        missing: str = "skip",
        pair_weight: str | None = "counts",
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
        self.decoder = decoder
        self.sweeps = sweeps
        self.time_limit = time_limit
        self.max_memory = max_memory
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ------------------------------------------------------------------ fit

    def fit(self, X: Any, R: Any = None, *, comparisons: Any = None, n_items: int | None = None) -> Self:
        """Learn from X (n, d), one row per query, and ratings or comparisons.

        X            (n, d), or None if the ratings are all there is
        R            (n, D) ratings or relevances, larger is better; NaN means unrated. Sparse: a stored entry is a rating.
        comparisons  instead of R: rows (query, winner, loser[, weight]), numbers from 0. They need not be complete nor agree:
                     what a query says twice about a pair adds up, what it says against itself cancels, weight 0 is a tie
        n_items      D, where comparisons do not mention the last items
        """
        self._solver(0, bound=False)  # an unknown decoder fails here, not in predict
        if not (isinstance(self.sweeps, int | np.integer) and self.sweeps >= 0):
            raise ValueError(f"ConstrainedRanker: sweeps={self.sweeps!r} must be a whole number, 0 or above")
        if X is not None:
            X = validate_data(self, X, dtype=np.float64)
        else:
            for name in ("n_features_in_", "feature_names_in_"):  # of an earlier fit
                self.__dict__.pop(name, None)
        columns = getattr(R, "columns", None)
        self.surrogate_ = PairwiseRidge(**{name: getattr(self, name) for name in PairwiseRidge().get_params(deep=False)}).fit(
            X, R, comparisons=comparisons, n_items=n_items
        )
        self.n_items_ = self.surrogate_.n_items_
        self.n_tasks_, self.n_unobserved_ = self.surrogate_.n_tasks_, self.surrogate_.n_unobserved_
        self.item_names_ = tuple(columns) if columns is not None else None
        return self

    def _solver(self, m: int, bound: bool) -> Any:
        seeds = (
            check_random_state(self.random_state).randint(2**31 - 1, size=m) if self.random_state is not None else np.zeros(m)
        )
        return solver(self.decoder, sweeps=self.sweeps, time_limit=self.time_limit, bound=bound, seeds=seeds)

    def _inputs(self, X: Any, ratings: Any) -> tuple[Any, Any]:
        check_is_fitted(self, "surrogate_")
        if X is not None:
            if not hasattr(self, "n_features_in_"):
                raise ValueError("ConstrainedRanker was fitted without X, so it cannot use X; pass ratings of the new queries")
            X = validate_data(self, X, dtype=np.float64, reset=False)
        return X, None if ratings is None else as_ratings(ratings, self.n_items_)

    # ------------------------------------------------------------------ predict

    def decode(self, X: Any, ratings: Any = None, *, items: Any = None, bound: bool = True) -> RankingDecoding:
        """Orders with a certificate per query: order, positions, value, objective, bound, gap, status.

        ratings  (m, D) what the new queries have already rated, if anything: used by the prior and the similarity
        items    candidates, item numbers; the others are left out of the order. None: all
        bound    whether to compute the lower bound (else 0)
        """
        X, ratings = self._inputs(X, ratings)
        chosen = None if items is None else check_items(items, self.n_items_)
        m = len(X) if X is not None else ratings.shape[0] if ratings is not None else 0
        solve = self._solver(m, bound)
        with tqdm(total=m, desc="decode", disable=not self.verbose) as bar:

            def work(i: int, S: np.ndarray) -> Any:
                found = solve(i, S)
                bar.update()
                return found

            found = self.surrogate_.each_skew(work, X, ratings, chosen)
        return collect(found, np.arange(self.n_items_) if chosen is None else chosen, self.n_items_, self.item_names_)

    def predict(self, X: Any, ratings: Any = None) -> np.ndarray:
        """(m, D) rank positions, 0 = best: a total order for every query."""
        return self.decode(X, ratings, bound=False).positions

    def recommend(self, X: Any, k: int = 10, ratings: Any = None, *, exclude: Any = None, items: Any = None) -> np.ndarray:
        """(m, k) the best items for each query, best first; -1 where fewer than k are left.

        exclude: (m, D) ratings of items not to be recommended (every rating counts, whatever its value), or booleans.
        """
        if k < 1:
            raise ValueError(f"ConstrainedRanker: k={k!r} items cannot be recommended; k must be 1 or more")
        best = self.decode(X, ratings, items=items, bound=False).order
        out = np.full((len(best), k), -1, dtype=np.int64)
        gone = None if exclude is None else seen_items(exclude, (len(best), self.n_items_))
        for i, row in enumerate(best):
            left = row if gone is None else row[~np.isin(row, gone[i])]
            out[i, : min(k, len(left))] = left[:k]
        return out

    def pair_scores(self, X: Any, pairs: Any, ratings: Any = None) -> np.ndarray:
        """S_pq(x) of chosen pairs (P, 2): (m, P), or (P,) for a single query given as x (d,). S_pq > 0: p before q."""
        single = X is not None and np.ndim(X) == 1
        X, ratings = self._inputs(np.asarray(X)[None, :] if single else X, ratings)
        scores = self.surrogate_.pair_scores(X, pairs, ratings)
        return scores[0] if single else scores

    def score(self, X: Any, R: Any, ratings: Any = None) -> float:
        """1 - normalised rank loss: the mean over queries of the share of the weight |r_p - r_q| that is ordered rightly."""
        truth = as_ratings(R, self.n_items_ if hasattr(self, "n_items_") else None)
        positions = self.predict(X, ratings)
        if truth.shape[0] != len(positions):
            raise ValueError(f"X has {len(positions)} rows and R has {truth.shape[0]}: inconsistent numbers of queries")
        losses = rank_loss(truth, positions, per_query=True)
        losses = losses[~np.isnan(losses)]  # queries with nothing to order
        return 1.0 - float(losses.mean()) if losses.size else float("nan")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.pairwise = isinstance(self.kernel, Precomputed)
        return tags


def check_items(items: Any, n_items: int) -> np.ndarray:
    """Candidates, sorted, each once."""
    chosen = np.asarray(items)
    if chosen.ndim != 1 or chosen.size == 0 or not np.issubdtype(chosen.dtype, np.integer):
        raise ValueError(f"items have shape {chosen.shape} and type {chosen.dtype}; give a list of item numbers")
    if chosen.min() < 0 or chosen.max() >= n_items:
        raise ValueError(f"items name numbers outside 0 .. {n_items - 1}")
    return np.unique(chosen).astype(np.int64)


def seen_items(exclude: Any, shape: tuple[int, int]) -> list[np.ndarray]:
    """The excluded items of every query."""
    if not sparse.issparse(exclude) and np.asarray(exclude).dtype == bool:
        exclude = np.where(np.asarray(exclude), 1.0, np.nan)
    seen = as_ratings(exclude, shape[1])
    if seen.shape[0] != shape[0]:
        raise ValueError(f"exclude has {seen.shape[0]} rows for {shape[0]} queries; one row for each is needed")
    return np.split(seen.indices, seen.indptr[1:-1])
