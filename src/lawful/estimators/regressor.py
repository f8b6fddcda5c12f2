"""ConstrainedRegressor: several outputs that obey a law, learned from data with gaps."""

from __future__ import annotations

from typing import Any, Self

from lawful.estimators.base import LawfulEstimator


class ConstrainedRegressor(LawfulEstimator):
    """Predict outputs that lie in a constraint set C (eq:estimator-multitask).

        f(x) = argmin_{c in C} sum_t sum_i alpha_it(x) loss(c_t, y_it)

    Parameters
    ----------
    constraint : ConstraintSet, optional
        The law: `Equations("y1**2 + y2**2 = 1")`, `Sphere()`, `PointCloud(points)`, ... None means no constraint.
    loss : Loss, optional
        None means `Square()`, with the output metric that measures best; the paper's is
        `Square(metric="identity", confidence="scores")`.
    surrogate : KernelRidge, "auto", Portfolio or any scikit-learn regressor, optional
        What learns the unconstrained part. None means `KernelRidge()`: kernels with a length scale per input, tuned and
        averaged by their evidence. "auto" is `Portfolio()`: kernel ridge, boosted trees and linear ridge, mixed for each output
        by their held-out errors; X may then be a DataFrame with categories and gaps. Any regressor or pipeline is made lawful.
    decoder : Decoder or {"posterior", "wiener"}, optional
        None picks the right one for the loss and the set. "posterior" averages over a cloud (or samples of the set) by how well
        each point explains the prediction, "wiener" shrinks towards its mean; both may leave C, see `decode(X).residual`.
    on_failure : {"warn", "raise", "nan", "unconstrained"}
        What to do about rows whose answer could not be certified (status "infeasible" or "not_converged"): keep the best
        found and warn, raise, return NaN, or return the unconstrained prediction.

    Attributes
    ----------
    surrogate_, loss_, constraint_ : the fitted parts
    n_outputs_, output_names_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> from lawful import ConstrainedRegressor, Equations
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (60, 1))
    >>> Y = np.c_[np.cos(X), np.sin(X)] + 0.05 * rng.standard_normal((60, 2))
    >>> Y[::3, 0] = np.nan  # not observed
    >>> model = ConstrainedRegressor(Equations("y1**2 + y2**2 = 1")).fit(X, Y)
    >>> c = model.predict([[0.0], [1.0]])
    >>> bool(abs((c**2).sum(axis=1) - 1).max() < 1e-8)
    True
    """

    def __init__(
        self,
        constraint: Any = None,
        *,
        loss: Any = None,
        surrogate: Any = None,
        decoder: Any = None,
        on_failure: str = "warn",
    ) -> None:
        self.constraint = constraint
        self.loss = loss
        self.surrogate = surrogate
        self.decoder = decoder
        self.on_failure = on_failure

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from X (n, d) and y (n, T) or (n,); NaN in y means not observed. sample_weight (n,) or (n, T)."""
        return self._fit(X, y, sample_weight)
