"""STL for rankings: one classifier for every pair of items, each by itself. What it says need not be consistent."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from lawful._checks import choice, number
from lawful._ranker import new_queries, training_ratings
from lawful.baselines.ranking._machines import answer
from lawful.ratings import as_ratings
from lawful.surrogates.pairs.query_kernel import QueryKernel

__all__ = ["PairwiseClassifiers", "pair_loss", "rated_pairs"]

LOSSES = ("hinge", "square")
UNDECIDED = {"error": 1.0, "half": 0.5}


class PairwiseClassifiers(BaseEstimator):
    """One machine per pair of items (p, q), learned from the queries that rated both, blind to all other pairs.

        "hinge"    min over f of 1/2 |f|^2 + C sum_u |r_up - r_uq| max(0, 1 - sign(r_up - r_uq) f(x_u))     a weighted SVM
        "square"   min over f of sum_u (r_up - r_uq - f(x_u))^2 + n_pq lam |f|^2                            kernel ridge

    The sign of f_pq(x) says which item comes first. This is the STL of the paper's ranking table, "individual SVMs trained for
    each pairwise comparison". There is no order behind the answers: p before q, q before r and r before p may all be said. A
    pair that nobody rated (hinge: rated differently) has no machine and answers 0, undecided. The square machines are the tasks
    of `ConstrainedRanker(prior=None, ridge="n_lambda", targets="difference")` before its decoder makes an order of them.

    D items have D (D - 1) / 2 machines, of which few are ever asked: `fit` keeps the ratings and the kernel matrix, and a
    machine is trained when a pair is asked for.

    Parameters
    ----------
    loss : "hinge" or "square"
    C : weight of the errors of a hinge machine
    lam : ridge of a square machine, times the number of its examples
    kernel, constant, similarity : the kernel between queries, as in `ConstrainedRanker`
    tol : largest duality gap of a hinge machine, as a share of its objective
    max_iter : passes over the examples of a hinge machine

    Attributes
    ----------
    n_items_, n_features_in_, kernel_
    gap_, n_iter_ : the largest share and the most passes of all machines asked so far

    Examples
    --------
    >>> import numpy as np
    >>> from lawful.baselines.ranking.classifiers import PairwiseClassifiers
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 2))
    >>> R = X @ rng.standard_normal((2, 5)) + 0.1 * rng.standard_normal((60, 5))
    >>> model = PairwiseClassifiers(similarity=0.0).fit(X[:40], R[:40])
    >>> model.predict_pairs(X[40:42], [[0, 1, 3], [0, 3, 1], [1, 0, 4]]).shape
    (3,)
    >>> model.rank_loss(X[40:], R[40:]) < 0.2
    True
    """

    def __init__(
        self,
        loss: str = "hinge",
        *,
        C: float = 0.01,
        lam: float = 1.0,
        kernel: Any = None,
        constant: bool = True,
        similarity: float = 30.0,
        tol: float = 1e-3,
        max_iter: int = 1000,
    ) -> None:
        self.loss = loss
        self.C = C
        self.lam = lam
        self.kernel = kernel
        self.constant = constant
        self.similarity = similarity
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, R: Any = None) -> Self:
        """Learn from X (n, d), one row per query, or None, and ratings R (n, D), NaN or not stored = unrated."""
        choice(self, "loss", LOSSES)
        for parameter in ("C", "lam", "tol", "max_iter"):
            number(self, parameter)
        number(self, "similarity", zero=True)
        X, R = training_ratings(self, X, R)
        self.kernel_ = QueryKernel(self.kernel, float(self.constant), float(self.similarity)).fit(X, R)
        self.gram_ = self.kernel_.gram()
        columns = R.tocsc()
        columns.sort_indices()
        self.columns_ = columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data
        self.gap_, self.n_iter_ = 0.0, 0
        return self

    def decision_function(self, X: Any, pairs: Any, ratings: Any = None) -> np.ndarray:
        """(E,) f_pq(x) for the rows (query, p, q) of `pairs` (E, 3), `query` a row of X; above 0: p comes before q.

        ratings  (m, D) what the new queries have already rated, if anything: used by the similarity
        """
        check_is_fitted(self, "gram_")
        name = type(self).__name__
        if X is None and ratings is not None and hasattr(self, "n_features_in_"):
            raise ValueError(f"{name} was fitted with X, so new queries need X too")
        X, profile, m = new_queries(self, X, ratings)
        query, p, q = check_triples(pairs, m, self.n_items_).T
        cross = self.kernel_.cross(X, profile, m)
        key = np.minimum(p, q) * self.n_items_ + np.maximum(p, q)
        order = np.argsort(key, kind="stable")
        kinds, start = np.unique(key[order], return_index=True)
        scores = np.zeros(len(key))
        square = self.loss == "square"
        worst, most, bad = answer(
            np.append(start, len(key)), kinds // self.n_items_, kinds % self.n_items_, np.ascontiguousarray(query[order]),
            *self.columns_, self.gram_, cross, square, float(self.lam if square else self.C), float(self.tol),
            int(self.max_iter), scores,
        )  # fmt: skip
        if bad:
            raise ValueError(f"{name}: {bad} kernel matrices are not positive definite; a positive definite kernel would do")
        if worst > self.tol:
            warnings.warn(
                f"{name}: after {most} passes the largest duality gap is {worst:.1e} of its objective; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.gap_, self.n_iter_ = max(self.gap_, float(worst)), max(self.n_iter_, int(most))
        out = np.empty(len(key))
        out[order] = scores
        return np.where(p < q, out, -out)

    def predict_pairs(self, X: Any, pairs: Any, ratings: Any = None) -> np.ndarray:
        """(E,) 1: p before q; -1: q before p; 0: undecided, for the rows (query, p, q) of `pairs`."""
        return np.sign(self.decision_function(X, pairs, ratings)).astype(np.int64)

    def rank_loss(
        self, X: Any, R: Any, ratings: Any = None, *, denominator: str = "N1", undecided: str = "error", per_query: bool = False
    ) -> Any:
        """The loss of the answers about all pairs that each query rated differently, see `pair_loss`."""
        pairs, _ = rated_pairs(R)
        answers = self.predict_pairs(X, pairs, ratings)
        return pair_loss(R, answers, denominator=denominator, undecided=undecided, per_query=per_query)

    def score(self, X: Any, R: Any, ratings: Any = None) -> float:
        """1 - `rank_loss`, N1, undecided pairs as half an error."""
        return 1.0 - self.rank_loss(X, R, ratings, undecided="half")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def rated_pairs(R: Any) -> tuple[np.ndarray, np.ndarray]:
    """The pairs that each query rated differently: rows (query, p, q), p < q, and r_p - r_q. Query by query.

    >>> rated_pairs([[5.0, 3.0, float("nan"), 3.0]])[0].tolist()
    [[0, 0, 1], [0, 0, 3]]
    """
    R = as_ratings(R)
    triples, gaps = [np.empty((0, 3), dtype=np.int64)], [np.empty(0)]
    for u in range(R.shape[0]):
        part = slice(R.indptr[u], R.indptr[u + 1])
        i, j = np.triu_indices(part.stop - part.start, 1)
        gap = R.data[part][i] - R.data[part][j]
        i, j, gap = i[gap != 0], j[gap != 0], gap[gap != 0]
        items = R.indices[part].astype(np.int64)
        triples.append(np.stack([np.full(len(i), u), items[i], items[j]], axis=1))
        gaps.append(gap)
    return np.concatenate(triples), np.concatenate(gaps)


def pair_loss(R_true: Any, answers: Any, *, denominator: str = "N1", undecided: str = "error", per_query: bool = False) -> Any:
    """`lawful.metrics.rank_loss` of answers that come pair by pair: no order is needed behind them.

        loss = mean over queries of  sum of |r_p - r_q| 1{answer != sign(r_p - r_q)} / denominator

    Parameters
    ----------
    R_true : (m, D) ratings, sparse or dense with NaN where unrated
    answers : (E,) numbers whose sign answers the pairs of `rated_pairs(R_true)`, in that order; 0: undecided
    denominator : "N1": the weight of the pairs; "N2": the number of rated pairs, ties included; "N3": without ties
    undecided : "error" (as in the 0-1 loss 1{c != sign y}) or "half", like a coin's guess
    per_query : return the ratios (m,), NaN where a query has no pair to be ordered
    """
    if denominator not in ("N1", "N2", "N3"):
        raise ValueError(f"unknown denominator {denominator!r}; choose 'N1', 'N2' or 'N3'")
    if undecided not in UNDECIDED:
        raise ValueError(f"unknown undecided {undecided!r}; choose 'error' or 'half'")
    R = as_ratings(R_true)
    pairs, gap = rated_pairs(R)
    answers = np.asarray(answers, dtype=float)
    if answers.shape != gap.shape or not np.isfinite(answers).all():
        raise ValueError(f"answers have shape {answers.shape}; {len(gap)} finite numbers are needed, one for each rated pair")
    m, query = R.shape[0], pairs[:, 0]
    wrong = np.where(answers == 0, UNDECIDED[undecided], (np.sign(answers) != np.sign(gap)).astype(float))
    lost, weight = np.bincount(query, np.abs(gap) * wrong, m), np.bincount(query, np.abs(gap), m)
    rated = np.diff(R.indptr)
    below = {"N1": weight, "N2": rated * (rated - 1) / 2, "N3": np.bincount(query, minlength=m)}[denominator]
    ordered = weight > 0
    if per_query:
        return np.where(ordered, lost / np.where(ordered, below, 1.0), np.nan)
    if not ordered.any():
        raise ValueError("pair_loss: no query has two items with different ratings; there is nothing to compare")
    return float(np.mean(lost[ordered] / below[ordered]))


def check_triples(pairs: Any, m: int, n_items: int) -> np.ndarray:
    """(E, 3) whole numbers: a query of 0 .. m - 1 and two different items."""
    pairs = np.asarray(pairs)
    if pairs.ndim != 2 or pairs.shape[1] != 3 or not np.issubdtype(pairs.dtype, np.integer):
        raise ValueError(f"pairs have shape {pairs.shape} and type {pairs.dtype}; give rows (query, p, q) of whole numbers")
    if pairs.size and (pairs.min() < 0 or pairs[:, 0].max() >= m or pairs[:, 1:].max() >= n_items):
        raise ValueError(f"pairs name queries outside 0 .. {m - 1} or items outside 0 .. {n_items - 1}")
    if (pairs[:, 1] == pairs[:, 2]).any():
        raise ValueError("pairs compare an item with itself; p and q must differ")
    return pairs.astype(np.int64)
