"""ConstrainedRegressor: several outputs that obey a law, learned from data with gaps."""

from __future__ import annotations

from typing import Any, Self

from lawful.estimators.base import LawfulEstimator, calibrate
from lawful.estimators.recent import Recent
from lawful.surrogates import NystromRidge
from lawful.tasks import Tasks


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
        averaged by their evidence; beyond 5000 rows `NystromRidge()`, the same on 2000 centres. "auto" is
        `Portfolio()`: kernel ridge, boosted trees and linear ridge, mixed for each output
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
    surrogate_choice_ : which surrogate that is, and why
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

    not_saved = ("_recent",)

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
        self.__dict__.pop("_recent", None)
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from more rows, which need not fit in memory together. The first call is `fit`, with `NystromRidge()` where no
        surrogate is given; kernel, centres, the law (where that is learned from labels) and label encodings are those of it.

        Predictions are those of one fit on all rows with that kernel and those centres. The output metric is measured on the
        last few thousand rows, by what was predicted for them before they were learned from.
        """
        if not hasattr(self, "surrogate_"):
            given = self.surrogate
            try:
                self.surrogate = NystromRidge() if given is None else given
                self.fit(X, y, sample_weight)
            finally:
                self.surrogate = given
            self._need_update()
            self.surrogate_choice_ = f"{type(self.surrogate_).__name__}: " + ("given" if given is not None else "a stream")
            batch = Tasks.read(self, X, y, sample_weight, self.surrogate_, reset=False)
            self._recent = Recent(batch, self.surrogate_.residuals())
            return self
        self._need_update()
        tasks = Tasks.read(self, X, y, sample_weight, self.surrogate_, reset=False)
        if len(tasks) != self.n_outputs_:
            raise ValueError(f"y has {len(tasks)} outputs, and the model was fitted on {self.n_outputs_}; give the same ones")
        tasks = tasks.encoded(self.loss_)
        if any(a is not None for a in (*self.atoms_, *tasks.atoms)):
            raise ValueError(
                f"partial_fit needs a loss whose encoding does not depend on the labels, and {self.loss_!r} has atoms; "
                "Square() would do"
            )
        self.surrogate_.update(tasks)
        last = Recent(tasks, self.surrogate_.residuals())
        self._recent = last if getattr(self, "_recent", None) is None else self._recent.then(last)
        calibrate(self.loss_, self._recent.tasks, self._recent.calibration(self.surrogate_), self.constraint_)
        self.constraint_.in_metric(getattr(self.loss_, "metric_", None))
        return self

    def _need_update(self) -> None:
        if not hasattr(self.surrogate_, "update"):
            raise TypeError(
                f"{type(self).__name__}.partial_fit: {type(self.surrogate_).__name__} cannot learn from more rows; "
                "surrogate=NystromRidge() would do"
            )
