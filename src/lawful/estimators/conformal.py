"""ConformalRegressor: prediction sets inside the law that hold all outputs together as often as promised.

The set at x is C(x) intersected with a level set of the decode objective, whose metric follows the predictive variance at x;
see `lawful.uncertainty.levels` for the score, the ranks and the event that is covered. `predict_interval` is as in MAPIE,
`calibrate` (of a model that is fitted already) as in crepes; `alpha` is 1 - confidence_level.
"""

from __future__ import annotations

import warnings
from math import ceil
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from lawful._checks import check_choice, choice
from lawful.decoders import decode
from lawful.estimators.predictive import predictive
from lawful.estimators.regressor import ConstrainedRegressor
from lawful.folds import make_folds
from lawful.metrics import r2
from lawful.saving.models import Savable
from lawful.sets.typeset import LawShown
from lawful.tasks import check_inputs, check_outputs, check_weights
from lawful.uncertainty import PredictionSet, Ranks, level_of, scores_of
from lawful.uncertainty.target import precision_of

METHODS = ("split", "cv+", "jackknife+")
LABELS = ("auto", "lawful", "noisy")
CELLS = 2**22


class _Calibrated(NamedTuple):
    """What calibration rows say about a model that has not seen them."""

    scores: np.ndarray  # (n,) of the rows with any observed output
    on_law: np.ndarray  # (n,) whether their labels obey the law
    errors: np.ndarray  # (n, T) of the decoded prediction, in predictive standard deviations; NaN where not observed


class ConformalRegressor(LawShown, Savable, RegressorMixin, BaseEstimator):
    """Prediction sets that obey the law, with joint coverage 1 - alpha over all outputs.

    Parameters
    ----------
    estimator : ConstrainedRegressor, ConstrainedRegressorCV or any regressor, optional
        Any other regressor has no law: its sets are ellipsoids. None is `ConstrainedRegressor()`.
    alpha : float in (0, 1), default 0.1
        Sets hold the label with probability 1 - alpha at least. `predict_set` and the others take another one.
    method : {"split", "cv+", "jackknife+"}
        "split" learns on some rows and calibrates on the rest; coverage is guaranteed for exchangeable rows, at least 1 - alpha
        and at most 1/(n + 1) more. "cv+" and "jackknife+" use every row for both and fit once for each fold, or row, and once
        on all; coverage is about 1 - alpha and guaranteed above 1 - 2 alpha.
    cv : number, splitter or list of (train, test), optional
        The fraction of rows to calibrate on (split; default 0.3), the number of folds (cv+; default 5), or folds.
    labels : {"auto", "lawful", "noisy"}
        What is covered. "lawful": labels obey the law, and the event is that the label is in the set; a label off the law is
        in no set. "noisy": labels are off the law by noise, and the event is that the lawful part of the label, the point of
        C(x) nearest to it in the metric of the prediction, is in the set (so noise-free outputs are covered more often).
        "auto": "lawful" if all calibration labels obey the law to 1e-4 of its scale, else "noisy"; `labels_` says which.
    random_state : draws the rows to calibrate on, and the folds

    Attributes
    ----------
    estimator_ : what predicts, fitted on the training rows (split) or on all
    n_calibration_ : number of calibration scores
    labels_ : "lawful" or "noisy"
    models_ : the models of the folds ("cv+", "jackknife+"); empty for "split", where it is `estimator_` itself

    Missing outputs (NaN) are allowed: the score of such a row is that of the point of the law that agrees with the observed
    outputs and is nearest to the prediction. For rows with gaps like these coverage stays exact; for complete rows it is then
    approximate wherever the observed outputs and the law leave something open.

    Examples
    --------
    >>> import numpy as np
    >>> from lawful import ConformalRegressor, ConstrainedRegressor, Sphere
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (150, 1))
    >>> angle = X[:, 0] + 0.1 * rng.standard_normal(150)
    >>> Y = np.c_[np.cos(angle), np.sin(angle)]
    >>> model = ConformalRegressor(ConstrainedRegressor(Sphere()), alpha=0.1, random_state=0).fit(X, Y)
    >>> sets = model.predict_set([[0.0], [1.0]])
    >>> sets.kind, bool((sets.volume() < 1).all())  # arcs, of the 6.28 that the circle is long
    ('curves', True)
    >>> sets.intervals().shape
    (2, 2, 2)
    >>> model.contains([[0.0], [1.0]], [[1.0, 0.0], [1.0, 0.0]])
    array([ True, False])
    """

    def __init__(
        self,
        estimator: Any = None,
        alpha: float = 0.1,
        *,
        method: str = "split",
        cv: Any = None,
        labels: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.method = method
        self.cv = cv
        self.labels = labels
        self.random_state = random_state

    # ------------------------------------------------------------------ fit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn and calibrate from X (n, d) and y (n, T) or (n,), NaN = not observed; weights are for learning only."""
        choice(self, "method", METHODS)
        choice(self, "labels", LABELS)
        self._alpha(None)
        Y, names = check_outputs(y)
        Y = Y[:, None] if Y.ndim == 1 else Y
        X = X if hasattr(X, "iloc") else check_inputs(self, X, reset=True, allow_nan=True)  # the estimator knows about gaps
        if len(X) != len(Y):
            raise ValueError(f"X has {len(X)} rows and Y has {len(Y)}: inconsistent numbers of samples")
        weight = None if sample_weight is None else check_weights(sample_weight, *Y.shape)
        y = y if hasattr(y, "iloc") else np.asarray(y)
        folds = self._folds(X, Y, names or [f"y{t + 1}" for t in range(Y.shape[1])])
        models, parts = [], []
        for train, test in folds:
            models.append(self._fitted(X, y, weight, train))
            parts.append(_calibrated(models[-1], _safe_indexing(X, test), Y[test]))
        self.estimator_ = models[0] if self.method == "split" else self._fitted(X, y, weight, None)
        return self._settle([] if self.method == "split" else models, parts)

    def calibrate(self, X: Any, y: Any) -> Self:
        """Calibrate on these rows, which the model must not have learned from: `estimator`, if it is fitted, else what `fit`
        has learned. The method is then "split", whatever the parameter says."""
        choice(self, "labels", LABELS)
        self._alpha(None)
        if not hasattr(self, "estimator_"):
            if self.estimator is None or not hasattr(_lawful(self.estimator), "constraint_"):
                raise ValueError(
                    f"ConformalRegressor.calibrate: estimator={self.estimator!r} is not fitted; fit it first, or call fit(X, y)"
                )
            self.estimator_ = self.estimator
        Y = check_outputs(y)[0]
        return self._settle([], [_calibrated(self.estimator_, X, Y[:, None] if Y.ndim == 1 else Y)])

    def _settle(self, models: list[Any], parts: list[_Calibrated]) -> Self:
        on = np.concatenate([part.on_law for part in parts])
        self.labels_ = ("lawful" if on.all() else "noisy") if self.labels == "auto" else self.labels
        lawful = self.labels_ == "lawful"
        self.models_ = models
        self.scores_ = [np.where(part.on_law, part.scores, np.inf) if lawful else part.scores for part in parts]
        self.errors_ = [part.errors for part in parts]
        self.n_calibration_ = len(on)
        if not self.n_calibration_:
            raise ValueError("ConformalRegressor: no calibration row has an observed output; give rows with labels")
        model = _lawful(self.estimator_)
        self.n_outputs_, self.output_names_ = model.n_outputs_, model.output_names_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        needed = ceil(1 / self._alpha(None)) - 1
        if self.n_calibration_ < needed:
            warnings.warn(
                f"ConformalRegressor: {self.n_calibration_} calibration {'rows are' if self.n_calibration_ > 1 else 'row is'} "
                f"too few for alpha={self.alpha:g}, so that every set is the whole law; {needed} rows would do, or a larger "
                "alpha",
                UserWarning,
                stacklevel=3,
            )
        return self

    def _alpha(self, alpha: Any) -> float:
        value = self.alpha if alpha is None else alpha
        if isinstance(value, bool | str) or not np.isscalar(value) or not 0 < float(value) < 1:  # type: ignore[arg-type]
            raise ValueError(f"ConformalRegressor: alpha={value!r} will not do; give a number between 0 and 1, such as 0.1")
        return float(value)  # type: ignore[arg-type]

    def _folds(self, X: Any, Y: np.ndarray, names: list[str]) -> list[Any]:
        observed = ~np.isnan(Y)
        if self.method == "jackknife+":
            rows = np.arange(len(Y))
            alone = [i for i in rows if observed[i].any() and observed[rows != i].any(axis=0).all()]
            return [(rows[rows != i], np.array([i])) for i in alone]
        cv = self.cv if self.cv is not None else 0.3 if self.method == "split" else 5
        folds = make_folds(cv, X, observed, names, self.random_state)
        if folds is None or (self.method == "split" and len(folds) != 1):
            raise ValueError(
                f"ConformalRegressor: cv={self.cv!r} will not do for method={self.method!r}; give "
                + ("a fraction such as 0.3, or one (train, test)" if self.method == "split" else "a number of folds, or folds")
            )
        return folds

    def _fitted(self, X: Any, y: Any, weight: np.ndarray | None, rows: Any) -> Any:
        given = ConstrainedRegressor() if self.estimator is None else self.estimator
        if isinstance(given, type) or not hasattr(given, "get_params"):
            raise TypeError(
                f"ConformalRegressor: estimator={given!r} will not do; give a ConstrainedRegressor or another regressor, an "
                "instance, not the class"
            )
        if is_classifier(given):
            raise TypeError(
                f"ConformalRegressor: estimator={type(given).__name__} predicts classes or labels, and the sets are sets of "
                "numbers; give a regressor, or see predict_proba of the classifier"
            )
        lawful = hasattr(given, "constraint") and hasattr(given, "sample")
        model = clone(given) if lawful else ConstrainedRegressor(surrogate=clone(given))
        if rows is not None:
            X, y = _safe_indexing(X, rows), _safe_indexing(y, rows)
            weight = None if weight is None else weight[rows]
        return model.fit(X, y) if weight is None else model.fit(X, y, weight)

    # ------------------------------------------------------------------ predict

    def _blind(self) -> list[Any]:
        """The models that have not seen their calibration rows."""
        return self.models_ or [self.estimator_]

    def predict_set(self, X: Any, alpha: float | None = None) -> PredictionSet:
        """The prediction set of each row: an object with `contains`, `volume`, `intervals`, `sample_set` (and `order`)."""
        check_is_fitted(self, "scores_")
        alpha = self._alpha(alpha)
        levels = []
        for given, scores in zip(self._blind(), self.scores_):
            model = _lawful(given)
            floats, F = predictive(model, X)
            levels.append(level_of(F, model.constraint_.at(floats), scores, decode))
        model = _lawful(self.estimator_)
        C = model.constraint_.at(floats) if self.models_ else levels[0].C
        center = model._decoded(X)[1].c if self.models_ else levels[0].best
        strict = self.labels_ == "lawful"
        return PredictionSet(floats, C, Ranks(levels, alpha), np.asarray(center), decode, strict, list(self.output_names_))

    def contains(self, X: Any, Y: Any, alpha: float | None = None) -> np.ndarray:
        """(m,) one bool a row: whether the label Y (m, T) is in the set of its input; see `PredictionSet.contains`."""
        return self.predict_set(X, alpha).contains(check_outputs(Y)[0])

    def sample_set(self, X: Any, n: int = 100, alpha: float | None = None, random_state: Any = None) -> np.ndarray:
        """(m, n, T) points of each set, uniform on it."""
        return self.predict_set(X, alpha).sample_set(n, random_state)

    def volume(self, X: Any, alpha: float | None = None) -> np.ndarray:
        """(m,) arc length, area, volume or number of points of each set."""
        return self.predict_set(X, alpha).volume()

    def predict_interval(self, X: Any, alpha: float | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The predictions (m, T), and bounds (m, T, 2) of each output over its set, which hold for all outputs together."""
        return self.predict(X), self.predict_set(X, alpha).intervals()

    def predict_bound(self, X: Any, side: str = "upper", alpha: float | None = None, joint: bool = False) -> np.ndarray:
        """(m, T) one-sided bounds: with probability 1 - alpha an output is at most ("upper") or at least ("lower") this.

        Each output has its own bound, which says nothing about the others; with `joint` all bounds hold together.
        """
        check_is_fitted(self, "scores_")
        check_choice("ConformalRegressor.predict_bound", "side", side, ("upper", "lower"))
        alpha, sign = self._alpha(alpha), 1.0 if side == "upper" else -1.0
        found = []
        for given, known in zip(self._blind(), self.errors_):
            model = _lawful(given)
            floats, F = predictive(model, X)
            errors = sign * known
            if joint:
                worst = np.max(np.where(np.isnan(errors), -np.inf, errors), axis=1, keepdims=True)
                errors = np.where(np.isfinite(worst), worst, np.nan) + 0 * known[:1]
            c = decode(F, model.constraint_.at(floats)).c
            found.append((sign * np.asarray(c), 1 / np.sqrt(np.einsum("itt->it", precision_of(F))), errors))
        T = self.n_outputs_
        out = np.empty((len(found[0][0]), T))
        for t in range(T):
            out[:, t] = _upper([(c[:, t], std[:, t], e[~np.isnan(e[:, t]), t]) for c, std, e in found], alpha)
        return sign * out

    def predict(self, X: Any) -> np.ndarray:
        """Outputs that obey the law: (m, T), or (m,) when fitted on a single column."""
        check_is_fitted(self, "scores_")
        return self.estimator_.predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of the predictions, the mean over outputs; outputs that are NaN in y are left out."""
        return float(r2(y, self.predict(X), sample_weight=sample_weight))

    def _law(self) -> Any:
        """For notebooks."""
        model = _lawful(getattr(self, "estimator_", self.estimator))
        return getattr(model, "constraint_", getattr(model, "constraint", None))

    def _law_title(self) -> str:
        if not hasattr(self, "n_calibration_"):
            return super()._law_title()
        sets = f"sets of probability {1 - self._alpha(None):.4g}, {self.method}, {self.n_calibration_} calibration rows"
        return f"ConformalRegressor: {sets}, {self.labels_} labels; the law"

    def _example(self) -> tuple[Any, Any] | None:
        return _lawful(self.estimator_)._example()

    def _repeat(self, inputs: Any) -> Any:
        return _lawful(self.estimator_)._repeat(inputs)

    def _rehearse(self, X: Any) -> None:
        self.predict(X)
        self.predict_set(X[:1]).intervals()
        self.predict_bound(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _lawful(estimator: Any) -> Any:
    """The regressor itself, or the one that a search has found."""
    return getattr(estimator, "best_estimator_", estimator)


def _calibrated(estimator: Any, X: Any, Y: np.ndarray) -> _Calibrated:
    model = _lawful(estimator)
    floats, F = predictive(model, X)
    if Y.shape != F.shape:
        raise ValueError(f"ConformalRegressor: labels of shape {Y.shape} will not do; give {F.shape}, NaN where not observed")
    s, on, best = scores_of(F, model.constraint_.at(floats), Y, decode)
    known = ~np.isnan(s)
    errors = (Y - best) * np.sqrt(np.einsum("itt->it", precision_of(F)))
    return _Calibrated(s[known], on[known], errors[known])


def _upper(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], alpha: float) -> np.ndarray:
    """(m,) the ceil((1 - alpha)(n + 1))-th smallest of c_k(x) + e_i std_k(x) over the rows i of all folds k."""
    n = sum(len(e) for _, _, e in parts)
    place = ceil((1 - alpha) * (n + 1) - 1e-9)
    m = len(parts[0][0])
    if place > n:
        return np.full(m, np.inf)
    if len(parts) == 1:
        c, std, e = parts[0]
        return c + np.sort(e)[place - 1] * std
    out = np.empty(m)
    size = max(1, CELLS // n)
    for start in range(0, m, size):
        rows = slice(start, start + size)
        table = np.concatenate([c[rows, None] + std[rows, None] * e for c, std, e in parts], axis=1)
        out[rows] = np.partition(table, place - 1, axis=1)[:, place - 1]
    return out
