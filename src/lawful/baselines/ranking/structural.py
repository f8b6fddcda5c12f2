"""StructuralRanker: the structural support vector machine for orders."""

from __future__ import annotations

from typing import Any, Self

from lawful.baselines.ranking._base import JointScorer
from lawful.baselines.ranking._newton import newton
from lawful.baselines.ranking._pairs import StructuralPairs
from lawful.baselines.ranking._planes import cutting_planes

__all__ = ["StructuralRanker"]

SOLVERS = ("newton", "cutting_plane")


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
    solver : "newton" (the slacks smoothed, with a falling width) or "cutting_plane" (one slack); the same minimum
    features, scale, weights, n_parts, random_state, verbose : as in `PairwiseRanker`. omega_u = 1 / (sum of all differences)
        with weights="pairs"; with "queries" every query's Delta is a share of its largest value
    tol : largest duality gap, as a share of the objective
    max_iter : Newton steps, or planes

    Attributes
    ----------
    coef_ (d,), features_ (the fitted feature map), center_, spread_ : the scorer
    objective_, gap_ : the objective, and how far it can be above the minimum (duality gap)
    n_iter_, gradient_norm_, n_pairs_, n_items_, item_names_, n_features_in_
    """

    def __init__(
        self,
        *,
        lam: float = 1e-5,
        solver: str = "newton",
        features: Any = None,
        scale: bool = True,
        weights: str = "pairs",
        n_parts: int = 2,
        tol: float = 1e-6,
        max_iter: int = 500,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.lam = lam
        self.solver = solver
        self.features = features
        self.scale = scale
        self.weights = weights
        self.n_parts = n_parts
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, R: Any = None, *, item_features: Any = None, coef_init: Any = None) -> Self:
        """Learn from X (n, d), one row per query, or None, and ratings R (n, D); as `PairwiseRanker.fit`."""
        if self.solver not in SOLVERS:
            raise ValueError(f"StructuralRanker: solver={self.solver!r} is unknown; choose one of {', '.join(SOLVERS)}")
        lam, tol, max_iter = self._number("lam"), self._number("tol"), self._number("max_iter", whole=True)
        Phi, pairs = self._design(X, R, item_features)
        w = self._start(coef_init, Phi.shape[1])
        options: Any = {"tol": tol, "max_iter": max_iter, "verbose": self.verbose, "name": "structural ranking"}
        loss = StructuralPairs(pairs)
        if self.solver == "newton":
            return self._keep(newton(loss, Phi, lam, w, smooth=False, **options), tol)
        return self._keep(cutting_planes(loss, Phi, lam, w, **options), tol)
