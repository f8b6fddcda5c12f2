"""Linear scorers f(u, i) = w . phi(u, i), learned from weighted comparisons: pairwise losses, and the structural one."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import scipy.linalg
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from lawful._checks import check_finite, choice, count, in_range, number
from lawful._ranker import training_ratings
from lawful.baselines.ranking._base import ScoreRanker
from lawful.baselines.ranking._newton import Solution, newton
from lawful.baselines.ranking._pairs import HingePairs, LogisticPairs, Pairs, StructuralPairs, make_pairs
from lawful.baselines.ranking.features import evaluate, make_features, training_features

__all__ = ["PairwiseRanker", "StructuralRanker"]

LOSSES = ("linear", "hinge", "logistic")
ENTRIES = 2**18  # features of this many (query, item) pairs are held at once in predict


class JointScorer(ScoreRanker):
    """f(u, i) = w . phi(u, i): features of query and item together, standardised on the training ratings."""

    def __init__(
        self,
        lam: float,
        features: Any,
        scale: bool,
        weights: str,
        n_parts: int,
        tol: float,
        max_iter: int,
        random_state: Any,
        verbose: int,
    ) -> None:
        self.lam = lam
        self.features = features
        self.scale = scale
        self.weights = weights
        self.n_parts = n_parts
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def _check(self) -> None:
        """Refuse parameters of one's own before any data are read."""

    def _minimise(self, pairs: Pairs, Phi: np.ndarray, lam: float, w: np.ndarray, options: dict[str, Any]) -> Solution:
        raise NotImplementedError

    def fit(self, X: Any, R: Any = None, *, item_features: Any = None, coef_init: Any = None) -> Self:
        """Learn from X (n, d), one row per query, or None, and ratings.

        R              (n, D) ratings or relevances, larger is better; NaN means unrated. Sparse: a stored entry is a rating.
        item_features  (D, g) attributes of the items, such as genres, for the default features
        coef_init      (d,) where the iterations start; None: 0
        """
        self._check()
        lam, tol, max_iter = number(self, "lam"), number(self, "tol"), count(self, "max_iter")
        Phi, pairs = self._design(X, R, item_features)
        w, name = self._start(coef_init, Phi.shape[1]), type(self).__name__
        with in_range(name):
            found = self._minimise(pairs, Phi, lam, w, {"tol": tol, "max_iter": max_iter, "verbose": self.verbose})
            check_finite(name, found.w, found.objective)
        return self._keep(found, tol)

    def _design(self, X: Any, R: Any, item_features: Any) -> tuple[np.ndarray, Pairs]:
        """Features of the training ratings, in the order of the pairs."""
        name = type(self).__name__
        n_parts = count(self, "n_parts")
        X, R = training_ratings(self, X, R)
        self.features_ = make_features(self.features, name).fit(X, R, item_features)
        Phi, query = training_features(self.features_, X, R, n_parts, self.random_state)
        hint = (
            f"; only ratings of the same of n_parts={n_parts} parts are compared, n_parts=1 compares all" if n_parts > 1 else ""
        )
        pairs = make_pairs(query, R.data, self.weights, name, hint)
        Phi = Phi[pairs.entries]
        self.center_, self.spread_ = np.zeros(Phi.shape[1]), np.ones(Phi.shape[1])
        if self.scale:
            self.center_, spread = Phi.mean(axis=0), Phi.std(axis=0)
            flat = spread <= 1e-12 * (np.abs(self.center_) + 1e-300)
            self.spread_ = np.where(flat, np.inf, spread)  # a column that never changes says nothing
        self.n_pairs_ = pairs.n_pairs
        return (Phi - self.center_) / self.spread_, pairs

    def _start(self, coef_init: Any, d: int) -> np.ndarray:
        if coef_init is None:
            return np.zeros(d)
        w = np.array(coef_init, dtype=float)
        if w.shape != (d,) or not np.isfinite(w).all():
            raise ValueError(f"coef_init has shape {w.shape}; {d} finite numbers are needed, one for each feature")
        return w

    def _keep(self, found: Solution, tol: float) -> Self:
        self.coef_, self.objective_, self.gap_ = found.w, float(found.objective), float(found.gap)
        self.gradient_norm_, self.n_iter_ = float(found.gradient_norm), int(found.n_iter)
        if not found.gap <= max(tol, found.rounding) * abs(found.objective):
            warnings.warn(
                f"{type(self).__name__} stopped after {found.n_iter} iterations with a gap of {found.gap:.2e} "
                f"({found.gap / max(abs(found.objective), 1e-300):.1e} of the objective); raise max_iter, tol or lam",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _scores(self, X: Any, ratings: Any, m: int) -> np.ndarray:
        D = self.n_items_
        profile = sparse.csr_array((m, D)) if ratings is None else ratings
        out, size = np.empty((m, D)), max(1, ENTRIES // D)
        for lo in range(0, m, size):
            hi = min(lo + size, m)
            rows, items = np.divmod(np.arange((hi - lo) * D), D)
            Phi = evaluate(self.features_, None if X is None else X[lo:hi], profile[lo:hi], rows, items)
            out[lo:hi] = (((Phi - self.center_) / self.spread_) @ self.coef_).reshape(hi - lo, D)
        return out


class PairwiseRanker(JointScorer):
    """Sort the items by f(u, i) = w . phi(u, i), with w from a convex surrogate of the weighted pairwise loss.

        min over w of  sum_u omega_u sum_{r_up > r_uq} (r_up - r_uq) l(f(u, p) - f(u, q)) + lam |w|^2

        "linear"     l(m) = -m, and + theta times the mean of f(u, p)^2    Duchi, Mackey & Jordan 2010
        "hinge"      l(m) = max(0, 1 - m)                                  Herbrich, Graepel & Obermayer 1999
        "logistic"   l(m) = log(1 + exp(-m))                               Dekel, Manning & Singer 2004

    The weights omega (r_up - r_uq) of all pairs add up to 1. The pairs are never listed: the linear loss collapses to
    n_u sum_p (r_up - mean) f(u, p) and is solved in closed form; the hinge is summed over sorted scores, the logistic loss
    query by query, and both are minimised by truncated Newton steps.

    Parameters
    ----------
    loss : "linear", "hinge" or "logistic"
    lam : weight of |w|^2
    theta : weight of the mean squared score in the linear loss, which has no minimum without; not used by the others
    features : None (`RankingFeatures`), a feature map or a function phi(X, profile, rows, items), see
        `lawful.baselines.ranking.features`
    scale : whether to centre the features and scale them to variance 1 on the training ratings
    weights : "pairs": every pair counts by its difference of ratings; "queries": all queries count the same
    n_parts : parts into which the ratings of a training query are dealt; features at one part see the others only, and only
        ratings of the same part are compared. 1: features see no ratings of the query, all its pairs are used
    tol : largest gap to the minimum, as a share of the objective
    max_iter : Newton steps
    random_state : of the parts
    verbose : 1 shows progress

    Attributes
    ----------
    coef_ (d,), features_ (the fitted feature map), center_, spread_ : the scorer
    objective_, gap_ : the objective, and how far it can be above the minimum: a duality gap for the hinge,
        |gradient|^2 / (4 lam) for the others
    gradient_norm_ : of the objective (hinge: of the smoothed one at its last point)
    n_iter_, n_pairs_, n_items_, item_names_, n_features_in_

    Examples
    --------
    >>> import numpy as np
    >>> from lawful.baselines import PairwiseRanker
    >>> rng = np.random.default_rng(0)
    >>> V = rng.standard_normal((30, 3))  # items
    >>> X = rng.standard_normal((60, 3))  # queries
    >>> R = X * [2.0, 1.0, 0.5] @ V.T + 0.1 * rng.standard_normal((60, 30))
    >>> R[rng.uniform(size=R.shape) < 0.7] = np.nan  # not rated
    >>> ranker = PairwiseRanker("logistic", features=lambda X, profile, u, i: X[u] * V[i], n_parts=1)
    >>> bool(ranker.fit(X[:40], R[:40]).score(X[40:], R[40:]) > 0.9)
    True
    """

    def __init__(
        self,
        loss: str = "logistic",
        *,
        lam: float = 1e-5,
        theta: float = 1e-4,
        features: Any = None,
        scale: bool = True,
        weights: str = "pairs",
        n_parts: int = 2,
        tol: float = 1e-6,
        max_iter: int = 200,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        super().__init__(lam, features, scale, weights, n_parts, tol, max_iter, random_state, verbose)
        self.loss = loss
        self.theta = theta

    def _check(self) -> None:
        choice(self, "loss", LOSSES)
        number(self, "theta", zero=True)

    def _minimise(self, pairs: Pairs, Phi: np.ndarray, lam: float, w: np.ndarray, options: dict[str, Any]) -> Solution:
        if self.loss == "linear":
            return closed_form(pairs, Phi, lam, float(self.theta))
        smooth = self.loss == "logistic"
        return newton(
            (LogisticPairs if smooth else HingePairs)(pairs), Phi, lam, w, smooth=smooth, name=f"{self.loss} ranking", **options
        )


def closed_form(pairs: Pairs, Phi: np.ndarray, lam: float, theta: float) -> Solution:
    """argmin of -g . Phi w + (theta / N) |Phi w|^2 + lam |w|^2, g from `Pairs.linear`."""
    d = Phi.shape[1]
    b = Phi.T @ pairs.linear()
    A = (theta / len(Phi)) * (Phi.T @ Phi)
    A.flat[:: d + 1] += lam
    w = scipy.linalg.solve(A, 0.5 * b, assume_a="pos")
    norm = float(np.linalg.norm(2 * (A @ w) - b))
    return Solution(w, float(w @ (A @ w) - b @ w), norm**2 / (4 * lam), norm, 1, rounding=1e-9)


class StructuralRanker(JointScorer):
    """Structural SVM (Tsochantaridis et al. 2005) with the weighted pairwise loss.

        min over w of  sum_u omega_u xi_u + lam |w|^2
        xi_u = max over orders c of  Delta(r_u, c) - w . [Psi(u, r_u) - Psi(u, c)]
        Psi(u, c) = sum of phi(u, p) - phi(u, q) over the rated pairs that c puts in the order p, q
        Delta(r, c) = sum of r_p - r_q over the pairs with r_p > r_q that c puts the other way round

    Flipping the pair (p, q) changes the bracket by 2 (f(u, p) - f(u, q)), f = w . phi, so that

        xi_u = sum_{r_p > r_q} max(0, h_p - h_q),      h = r_u - 2 f(u, .)

    and the most violated c flips the pairs with h_p > h_q: it sorts the items by growing h. So the maximum over all sign
    patterns is attained by an order, and nothing is lost by taking pairs one by one. Ratings are taken in units of the mean
    difference of a rated pair, so that their scale makes no difference; at w = 0 the objective is 1.

    Parameters
    ----------
    lam : weight of |w|^2
    features, scale, weights, n_parts, random_state, verbose : as in `PairwiseRanker`. omega_u = 1 / (sum of all differences)
        with weights="pairs"; with "queries" every query's Delta is a share of its largest value
    tol : largest duality gap, as a share of the objective
    max_iter : Newton steps

    Attributes
    ----------
    coef_ (d,), features_ (the fitted feature map), center_, spread_ : the scorer
    objective_, gap_ : the objective, and how far it can be above the minimum (duality gap)
    n_iter_, gradient_norm_, n_pairs_, n_items_, item_names_, n_features_in_

    Examples
    --------
    >>> from lawful.datasets import make_ratings, movielens_protocol
    >>> split = movielens_protocol(make_ratings(60, 20, n_ratings=12, random_state=0), n_train=40, n_test=20)
    >>> from lawful.baselines import StructuralRanker
    >>> StructuralRanker(max_iter=20, tol=1e-2).fit(split.X_train, split.R_train).predict(split.X_test).shape
    (20, 20)
    """

    def __init__(
        self,
        *,
        lam: float = 1e-5,
        features: Any = None,
        scale: bool = True,
        weights: str = "pairs",
        n_parts: int = 2,
        tol: float = 1e-6,
        max_iter: int = 500,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        super().__init__(lam, features, scale, weights, n_parts, tol, max_iter, random_state, verbose)

    def _minimise(self, pairs: Pairs, Phi: np.ndarray, lam: float, w: np.ndarray, options: dict[str, Any]) -> Solution:
        return newton(StructuralPairs(pairs), Phi, lam, w, smooth=False, name="structural ranking", **options)
