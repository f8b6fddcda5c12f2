"""PairwiseRanker: linear scorers learned from weighted comparisons, by the linear, hinge or logistic loss."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.linalg

from lawful.baselines.ranking._base import JointScorer
from lawful.baselines.ranking._newton import Solution, newton
from lawful.baselines.ranking._pairs import HingePairs, LogisticPairs, Pairs

__all__ = ["PairwiseRanker"]

LOSSES = ("linear", "hinge", "logistic")


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
    >>> from lawful.baselines.ranking.pairwise import PairwiseRanker
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
        self.loss = loss
        self.lam = lam
        self.theta = theta
        self.features = features
        self.scale = scale
        self.weights = weights
        self.n_parts = n_parts
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, R: Any = None, *, item_features: Any = None, coef_init: Any = None) -> Self:
        """Learn from X (n, d), one row per query, or None, and ratings.

        R              (n, D) ratings or relevances, larger is better; NaN means unrated. Sparse: a stored entry is a rating.
        item_features  (D, g) attributes of the items, such as genres, for the default features
        coef_init      (d,) where the iterations start; None: 0
        """
        if self.loss not in LOSSES:
            raise ValueError(f"PairwiseRanker: loss={self.loss!r} is unknown; choose one of {', '.join(LOSSES)}")
        lam, theta, tol = self._number("lam"), self._number("theta", zero=True), self._number("tol")
        max_iter = self._number("max_iter", whole=True)
        Phi, pairs = self._design(X, R, item_features)
        w = self._start(coef_init, Phi.shape[1])
        if self.loss == "linear":
            return self._keep(closed_form(pairs, Phi, lam, theta), max(tol, 1e-9))
        smooth = self.loss == "logistic"
        loss: Any = LogisticPairs(pairs) if smooth else HingePairs(pairs)
        options = {"tol": tol, "max_iter": max_iter, "verbose": self.verbose, "name": f"{self.loss} ranking"}
        return self._keep(newton(loss, Phi, lam, w, smooth=smooth, **options), tol)


def closed_form(pairs: Pairs, Phi: np.ndarray, lam: float, theta: float) -> Solution:
    """argmin of -g . Phi w + (theta / N) |Phi w|^2 + lam |w|^2, g from `Pairs.linear`."""
    d = Phi.shape[1]
    b = Phi.T @ pairs.linear()
    A = (theta / len(Phi)) * (Phi.T @ Phi)
    A.flat[:: d + 1] += lam
    w = scipy.linalg.solve(A, 0.5 * b, assume_a="pos")
    norm = float(np.linalg.norm(2 * (A @ w) - b))
    return Solution(w, float(w @ (A @ w) - b @ w), norm**2 / (4 * lam), norm, 1)
