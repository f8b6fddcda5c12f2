"""ConstrainedClassifier: labels that obey a logic, learned from data with gaps."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from lawful._checks import check_choice
from lawful.decoders import INFEASIBLE, NOT_CONVERGED, Decoding, decode, stack
from lawful.estimators.base import DecodingWarning
from lawful.losses import Hinge, Logistic, Loss, ZeroOne
from lawful.losses.choices import Choices
from lawful.saving.models import Savable, as_plain
from lawful.sets import Logic
from lawful.sets.typeset import LawShown
from lawful.surrogates.labels import as_label_surrogate
from lawful.surrogates.logistic import LabelLogistic
from lawful.tasks import Tasks, as_floats, check_weights, read_inputs, rows_of

__all__ = ["ConstrainedClassifier"]

LOSSES = ("auto", "subset", "hamming", "hinge", "logistic")
CELLS = 2**22  # log-odds in one batch of predictions


def _knows_probabilities(model: Any) -> bool:
    surrogate = getattr(model, "surrogate_", None) or model._surrogate()
    return bool(surrogate.probabilistic)


class ConstrainedClassifier(LawShown, Savable, ClassifierMixin, BaseEstimator):
    """Predict labels that obey a `Logic`, from one classifier a label.

    Each label has log-odds s_t(x), learned on the rows on which it is known. The labels are taken as independent but for the
    logic: P(c | x) is proportional to prod_t exp(s_t(x) c_t) on the assignments c in {0, 1}^T that obey, and 0 elsewhere.

    Parameters
    ----------
    constraint : Logic, optional
        `Logic(["dog -> animal", "exactly_one(a, b, c)", "at_most(2, p, q, r)"])`; None means that anything goes.
    surrogate : scikit-learn classifier or regressor, KernelRidge or Portfolio, optional
        What learns the log-odds. None means logistic regression on standardised inputs, label by label and then, starting from
        there, all labels together under the logic (where nothing ties them together, scikit-learn's); with a tuned Gaussian
        kernel beside the inputs where held-out rows are clearly likelier so (`surrogate_.kernel_`). Regressors, `KernelRidge`
        among them, are calibrated on held-out rows.
    loss : {"auto", "subset", "hamming", "hinge", "logistic"} or a Loss
        What a prediction is best for. "auto" is "hamming" where probabilities are known and exact (`Logic.exact_`), which has
        the better F1 and nearly as many rows right as "subset", and "subset" elsewhere. Labels that the default surrogate has
        learned together are then predicted above `thresholds_`, at most 1/2, at which each is predicted as often as by a
        linear classifier of its own: above 1/2 alone rare labels would never be. The choices: the most probable
        assignment ("subset": a row is right or wrong as a whole); the fewest wrong labels on average ("hamming": by the
        probabilities of `predict_proba`); or the assignment that agrees best with the scores, sum_t w_t l(s_t(x), c_t) with
        labels in {-1, 1} ("hinge", "logistic", any `Loss`; `ZeroOne()` is the nearest assignment to the labels that each
        classifier gives on its own).
    weights : (T,) or (T, 2), or {label: number or pair}, optional
        What a wrong label costs: one number, or (false alarm, miss). Not for "subset".
    n_jobs : how many classifiers are fitted at once (joblib).

    Attributes
    ----------
    classes_ : names of the labels (0, 1, ... where they have none), or the classes
    loss_ : the loss, "hamming" or "subset" where it was "auto"
    thresholds_ : (T,) the probabilities above which "hamming" predicts labels, as far as the logic lets it: 1/2 but for "auto"
    constraint_, surrogate_, output_names_, n_features_in_, feature_names_in_

    Notes
    -----
    y is an indicator matrix (n, T) of 0 and 1, NaN where a label is not known, as an array or a DataFrame, whose columns name
    the labels. A single column y (n,) of classes is understood as well: its labels are the classes, exactly one of which holds.

    Examples
    --------
    >>> import numpy as np
    >>> from lawful import ConstrainedClassifier, Logic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 2))
    >>> Y = np.c_[X[:, 0] > 0, (X[:, 0] > 0) & (X[:, 1] > 0)].astype(float)  # animal, dog
    >>> Y[::5, 0] = np.nan  # not known
    >>> model = ConstrainedClassifier(Logic("dog -> animal", labels=["animal", "dog"])).fit(X, Y)
    >>> p = model.predict_proba(X)
    >>> bool((p[:, 1] <= p[:, 0]).all())
    True
    """

    def __init__(
        self,
        constraint: Any = None,
        *,
        surrogate: Any = None,
        loss: Any = "auto",
        weights: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.constraint = constraint
        self.surrogate = surrogate
        self.loss = loss
        self.weights = weights
        self.n_jobs = n_jobs

    # ------------------------------------------------------------------ fit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from X (n, d) and y (n, T), NaN = not known, or classes (n,). sample_weight (n,), or (n, T) for labels."""
        if y is None:
            raise ValueError("This estimator requires y to be passed, but the target y is None")
        law, surrogate = self._law(), self._surrogate()
        self._check_loss(surrogate)
        y = y.toarray() if sparse.issparse(y) else y if hasattr(y, "columns") or np.ma.isMaskedArray(y) else np.asarray(y)
        self._single = self._is_single(y)
        if self._single:
            given = self._fit_classes(X, y, sample_weight, law, surrogate)
        else:
            given = self._fit_labels(X, y, sample_weight, law, surrogate)
        self.loss_ = self._chosen(surrogate)
        self._costs_of_errors()  # weights that do not fit fail here, not in predict
        first = rows_of(given, slice(0, 1))
        self._decode(first)
        self._first = first.copy() if isinstance(first, np.ndarray) else None  # the example of a saved model
        return self

    def _fit_labels(self, X: Any, y: Any, sample_weight: Any, law: Logic, surrogate: Any) -> Any:
        tasks = Tasks.read(self, X, y, sample_weight, surrogate)
        for t, values in enumerate(tasks.y):
            wrong = values[(values != 0) & (values != 1)]
            if wrong.size:
                raise ValueError(
                    f"ConstrainedClassifier: label {tasks.output_names[t]!r} has the value {wrong[0]:g}; labels are 0 and 1, "
                    "and NaN where they are not known"
                )
        Y = tasks.Y
        self.constraint_ = law.fit(Y, outputs=tasks.names)
        names = tasks.names or self.constraint_.labels_
        self.output_names_ = names or tasks.output_names
        self.classes_ = np.arange(len(tasks)) if names is None else np.array(names, dtype=object)
        self._warn_of_violations(Y)
        self.surrogate_ = surrogate.fit_labels(tasks, self.constraint_)
        return tasks.inputs_of(surrogate)

    def _fit_classes(self, X: Any, y: Any, sample_weight: Any, law: Logic, surrogate: Any) -> Any:
        floats, given = read_inputs(self, X, surrogate, reset=True)
        y = np.asarray(y)
        if y.ndim == 2:
            warnings.warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning, stacklevel=3)
            y = y[:, 0]
        if len(y) != len(floats):
            raise ValueError(f"X has {len(floats)} rows and y has {len(y)}: inconsistent numbers of samples")
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or infinity; classes must be known (labels in columns may be NaN)")
        check_classification_targets(y)
        weight = check_weights(sample_weight, len(y), 1)[:, 0]
        seen = weight > 0
        self.classes_, numbers = np.unique(y[seen], return_inverse=True)
        if len(self.classes_) > 1 or sample_weight is None:
            self.output_names_ = [str(c) for c in self.classes_]
        else:
            raise ValueError(
                "ConstrainedClassifier: rows of positive weight have one class only; give weight to rows of another one"
            )
        self.constraint_ = law.exclusive(self.output_names_).fit(
            np.eye(len(self.classes_))[numbers], outputs=self.output_names_
        )
        kept = rows_of(given, np.flatnonzero(seen))
        self.surrogate_ = surrogate.fit_classes(kept, numbers, weight[seen])
        return given

    def _is_single(self, y: Any) -> bool:
        """Whether y is one column of classes rather than an indicator matrix."""
        shape = np.shape(y)
        if len(shape) != 2 or shape[1] != 1 or hasattr(y, "columns"):
            return len(shape) == 1
        try:
            values = as_floats(y, "y")
        except ValueError:
            return True  # words
        return not bool(np.isin(values[~np.isnan(values)], (0, 1)).all())

    def _law(self) -> Logic:
        if self.constraint is None:
            return Logic()
        if not isinstance(self.constraint, Logic):
            raise TypeError(
                f"ConstrainedClassifier: constraint={self.constraint!r} will not do; give Logic(['dog -> animal', ...]) or None"
            )
        law = clone(self.constraint)
        if tuple(law.values) != (0, 1):
            raise ValueError(f"ConstrainedClassifier: labels are 0 and 1; leave values={law.values!r} out of the Logic")
        return law

    def _surrogate(self) -> Any:
        if self.surrogate is None:
            return LabelLogistic(n_jobs=self.n_jobs)
        given = self.surrogate
        if isinstance(given, type) or not hasattr(given, "get_params") or not hasattr(given, "fit"):
            raise TypeError(
                f"ConstrainedClassifier: surrogate={given!r} will not do; give any scikit-learn classifier or KernelRidge(), "
                "an instance, not the class"
            )
        return as_label_surrogate(clone(given), self.n_jobs)

    def _check_loss(self, surrogate: Any) -> None:
        if not isinstance(self.loss, Loss):
            check_choice("ConstrainedClassifier", "loss", self.loss, LOSSES)
        if self.loss == "hamming" and not surrogate.probabilistic:
            raise ValueError(
                f'ConstrainedClassifier: loss="hamming" needs probabilities, which {type(self.surrogate).__name__} lacks'
                '; give loss="hinge" or "subset", or wrap it in CalibratedClassifierCV'
            )
        if self.loss == "subset" and self.weights is not None:
            raise ValueError(
                'ConstrainedClassifier: a row is right or wrong as a whole for loss="subset", so weights mean nothing; '
                'give loss="hamming"'
            )

    def _chosen(self, surrogate: Any) -> Any:
        if not (isinstance(self.loss, str) and self.loss == "auto"):
            return self.loss
        if self.weights is not None and not surrogate.probabilistic:
            raise ValueError(
                "ConstrainedClassifier: weights need probabilities, which "
                f'{type(self.surrogate).__name__} lacks; give loss="hinge", or wrap it in CalibratedClassifierCV'
            )
        sure = self.weights is not None or self.constraint_.exact_
        return "hamming" if sure and surrogate.probabilistic else "subset"

    def _warn_of_violations(self, Y: np.ndarray) -> None:
        complete = np.flatnonzero(~np.isnan(Y).any(axis=1))
        bad = complete[~self.constraint_.contains(Y[complete])]
        if len(bad):
            named = self.constraint_.violated(Y[bad[:1]])[0][0]
            warnings.warn(
                f"{len(bad)} of {len(complete)} complete rows of y do not obey the logic (row {bad[0]}: {named[:200]!r}); "
                "predictions will",
                UserWarning,
                stacklevel=4,
            )

    def _costs_of_errors(self) -> tuple[np.ndarray, np.ndarray]:
        """(T,) and (T,): what false alarms and misses of each label cost."""
        T, given = len(self.output_names_), self.weights
        if given is None:
            return np.ones(T), np.ones(T)
        if isinstance(given, dict):
            unknown = [name for name in given if name not in self.output_names_]
            if unknown:
                raise ValueError(f"ConstrainedClassifier: weights name {unknown[0]!r}, which is no label; drop it")
            pairs = [np.broadcast_to(np.asarray(given.get(name, 1.0), float), 2) for name in self.output_names_]
            weights = np.stack(pairs)
        else:
            weights = np.asarray(given, float)
            weights = np.stack([weights, weights], axis=1) if weights.ndim == 1 else weights
        if weights.shape != (T, 2) or not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError(
                f"ConstrainedClassifier: weights of shape {np.shape(given)} will not do; give {T} numbers, 0 or above, or {T} "
                "pairs (false alarm, miss), or a dict of them by label"
            )
        return weights[:, 0], weights[:, 1]

    # ------------------------------------------------------------------ predict

    def _scores(self, given: Any) -> np.ndarray:
        """(m, T) log-odds before the logic."""
        return self.surrogate_.log_classes(given) if self._single else self.surrogate_.log_odds(given)

    def _objective(self, s: np.ndarray) -> Choices:
        alarm, miss = self._costs_of_errors()
        if isinstance(self.loss_, str) and self.loss_ == "hamming":
            q, tau = self.constraint_.marginals(s), self.thresholds_
            return Choices(2 * (1 - tau) * miss * q, 2 * tau * alarm * (1 - q))
        if isinstance(self.loss_, str) and self.loss_ == "subset":
            if self._single:
                return Choices(np.zeros_like(s), -s)
            return Choices(np.logaddexp(0, s), np.logaddexp(0, -s))
        loss = {"hinge": Hinge(), "logistic": Logistic()}.get(self.loss_) if isinstance(self.loss_, str) else self.loss_
        if self._single:
            s = s - np.log1p(-np.exp(np.minimum(s, -1e-12))) if self.surrogate_.probabilistic else s
        said = np.where(s > 0, 1.0, -1.0) if isinstance(loss, ZeroOne) else s
        assert loss is not None
        return Choices(miss * loss(said, np.full_like(s, -1.0)), alarm * loss(said, np.full_like(s, 1.0)))

    @property
    def thresholds_(self) -> np.ndarray:
        """(T,) probabilities above which labels are predicted, as far as the logic lets them; see `loss`."""
        free = isinstance(self.loss, str) and self.loss == "auto" and self.weights is None
        half = np.full(len(self.output_names_), 0.5)
        return getattr(self.surrogate_, "thresholds_", half) if free and not self._single else half

    def _decode(self, given: Any) -> Decoding:
        return decode(self._objective(self._scores(given)), self.constraint_)

    def _inputs(self, X: Any) -> list[Any]:
        """X, checked, in batches as the surrogate takes them."""
        check_is_fitted(self)
        given = read_inputs(self, X, self.surrogate_)[1]
        size = max(
            256, CELLS // max(len(self.output_names_), int(getattr(getattr(self.surrogate_, "surrogate_", None), "n_rows_", 1)))
        )
        return [rows_of(given, slice(i, i + size)) for i in range(0, given.shape[0], size)]

    def decode(self, X: Any) -> Decoding:
        """Labels with a certificate per row: c, value, residual, status, margin, and the gap that a search may have left."""
        d = stack([self._decode(batch) for batch in self._inputs(X)]).with_(names=tuple(self.output_names_))
        bad = {name: int((d.code == k).sum()) for name, k in (("infeasible", INFEASIBLE), ("not proven", NOT_CONVERGED))}
        if any(bad.values()):
            found = ", ".join(f"{k} {name}" for name, k in bad.items() if k)
            warnings.warn(f"{found} of {len(d.code)} rows; see decode(X).gap", DecodingWarning, stacklevel=3)
        return d

    def predict(self, X: Any) -> np.ndarray:
        """(m, T) labels 0 or 1 that obey the logic, or (m,) classes."""
        return self._labels(self.decode(X).c)

    def _labels(self, c: np.ndarray) -> np.ndarray:
        return self.classes_[c.argmax(axis=1)] if self._single else c.astype(np.int64)

    @available_if(_knows_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """(m, T) the probability of each label given the logic, or (m, K) of each class."""
        parts = [self.constraint_.marginals(self._scores(batch)) for batch in self._inputs(X)]
        if not self.constraint_.exact_:
            warnings.warn(
                "probabilities are approximate: the formulas tie too many labels together for exact sums, and these are means "
                "over random walks among assignments that obey, usually off by 0.01 and by more where such assignments lie far "
                "apart; fewer or shorter formulas would do",
                UserWarning,
                stacklevel=2,
            )
        p = np.concatenate(parts)
        return p / p.sum(axis=1, keepdims=True) if self._single else p

    def decision_function(self, X: Any) -> np.ndarray:
        """(m, T) log-odds of each label *before* the logic; of classes log p_k, for two of them their difference (m,)."""
        s = np.concatenate([self._scores(batch) for batch in self._inputs(X)])
        return s[:, 1] - s[:, 0] if self._single and s.shape[1] == 2 else s

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows that are right as a whole; labels that are NaN in y are left out."""
        if self._single:
            return float(super().score(X, y, sample_weight))
        known = as_floats(y.toarray() if sparse.issparse(y) else y, "y")
        right = (np.isnan(known) | (self.predict(X) == known)).all(axis=1)
        return float(np.average(right, weights=sample_weight))

    # ------------------------------------------------------------------ conventions

    def _example(self) -> tuple[Any, Any] | None:
        return None if self._first is None else (self._first, self._repeat(self._first))

    def _repeat(self, inputs: Any) -> Any:
        return as_plain(self._scores(inputs))

    def _rehearse(self, X: Any) -> None:
        for batch in self._inputs(X):
            self._labels(self._decode(batch).c)
            if _knows_probabilities(self):
                self.constraint_.marginals(self._scores(batch))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        if self.surrogate is None or hasattr(self.surrogate, "get_params"):
            tags.input_tags.allow_nan = bool(getattr(self._surrogate(), "allow_nan", False))
        return tags
