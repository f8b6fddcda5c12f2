"""ConstrainedRegressor: several outputs that obey a law, learned from data with gaps."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lawful.decoders import Decoding, decode
from lawful.estimators.base import LawfulEstimator, calibrate
from lawful.estimators.predictive import predictive
from lawful.estimators.recent import Recent
from lawful.surrogates import NystromRidge
from lawful.tasks import Tasks
from lawful.uncertainty import Samples, draw


def _streams(model: Any) -> bool:
    surrogate = getattr(model, "surrogate_", model.surrogate)
    if surrogate is not None and not hasattr(surrogate, "update"):
        raise AttributeError(
            f"{type(model).__name__}.partial_fit: {type(surrogate).__name__} cannot learn from more rows; "
            "surrogate=NystromRidge() would do"
        )
    return True


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
        averaged by their evidence, for each output its own, solved exactly or on centres as rows are few or many. "auto" is
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

    @available_if(_streams)
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
            self.surrogate_choice_ = f"{type(self.surrogate_).__name__}: " + ("given" if given is not None else "a stream")
            batch = Tasks.read(self, X, y, sample_weight, self.surrogate_, reset=False)
            self._recent = Recent(batch, self.surrogate_.residuals())
            return self
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

    def predictive(self, X: Any) -> Any:
        """The Gaussian prediction before the law, N(w(x), S(x)), as F_x(c) = (c - w)' S^-1 (c - w); `center` is w.

        Standard deviations are those of a new observation at x (`decode(X).std`); see `lawful.estimators.predictive`.
        """
        check_is_fitted(self)
        return predictive(self, X)[1]

    def sample(self, X: Any, n: int = 100, random_state: Any = None, thin: int = 3) -> Samples:
        """(m, n, T) draws from the prediction restricted to the law, so that any function of the outputs has an error bar.

        The density is proportional to N(c; w(x), S(x)) (see `predictive`) with respect to the Hausdorff measure of C(x) in
        the outputs' own units: arc length, area, volume, or counting for a finite set. Draws are independent on finite and
        affine sets and on curves; elsewhere they come from Markov chains on C(x), and `acceptance`, `ess` and `rhat` of the
        result, one a row, say how well these have mixed (`SamplingWarning` where they have not). All of them obey the law;
        rows without a decoded point on the law are NaN.

        thin : steps of a chain from one draw to the next

        >>> import numpy as np
        >>> from lawful import ConstrainedRegressor, Sphere
        >>> X = np.linspace(-3, 3, 40)[:, None]
        >>> Y = np.c_[np.cos(X), np.sin(X)] + 0.05 * np.random.default_rng(0).standard_normal((40, 2))
        >>> draws = ConstrainedRegressor(Sphere()).fit(X, Y).sample([[0.0], [1.0]], 500, random_state=0)
        >>> draws.shape, bool(abs((draws**2).sum(axis=2) - 1).max() < 1e-8)
        ((2, 500, 2), True)
        >>> angle = np.arctan2(draws[:, :, 1], draws[:, :, 0])  # any function of the outputs
        >>> angle.mean(axis=1).round(1), bool((angle.std(axis=1) < 0.1).all())
        (array([0., 1.]), True)
        """
        check_is_fitted(self)
        X, F = predictive(self, X)
        C = self.constraint_.at(X)
        return draw(F, C, decode(F, C).c, n, random_state, thin)

    def decode(  # type: ignore[override]
        self, X: Any, sample: int | None = None, random_state: Any = None, *, sequence: bool = False
    ) -> Decoding:
        """Predictions with a certificate per row: c, value, residual, status, iterations, margin; and std, before the law.

        `std` is computed when it is first asked for. With `sample`, also so many draws from the prediction restricted to the
        law, (m, sample, T): `decode(X, sample=100).samples`. sequence: the rows follow each other (a trajectory): where several
        branches of the law fit about equally well, one is followed, with as few jumps as there can be. A margin is negative
        where another branch fits that row better.
        """
        d = super().decode(X, sequence=sequence)
        return d if sample is None else d.with_(samples=self.sample(X, sample, random_state))
