"""The regress step for labels that are true or false: s_t(x), the log-odds that label t is true, each label on its own.

* `LabelClassifiers`: any scikit-learn classifier, by its probabilities p (or its margins, where it knows no probabilities).
  n rows cannot show that something never happens: p becomes (n p + 1) / (n + 2), by the rule of succession, before its log-odds
  are taken, so that no label is beyond doubt and the logic can overrule it.
* `LabelRegressions`: any regression of the 0-1 labels g_t(x), with log-odds a_t + b_t g_t(x) that are fitted to *held-out*
  predictions (Platt): least squares says where a label is likely, not how likely.

Labels that are not known (NaN) are learned without their rows. A label that never varies has log((k + 1) / (n - k + 1)).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from lawful.surrogates.base import Surrogate
from lawful.surrogates.regressor import RegressorSurrogate
from lawful.tasks import Tasks, rows_of

__all__ = ["LabelClassifiers", "LabelRegressions", "as_label_surrogate", "constant_log_odds"]

STEPS, RIDGE = 50, 1e-6  # of Newton's method for (a, b), in units of standardised predictions
STEEP = 100.0  # log-odds of predictions that separate the labels: as sure as one can be


def constant_log_odds(y: np.ndarray, weights: np.ndarray) -> float:
    """The log-odds of a label about which nothing but its frequency is known."""
    return float(np.log((weights @ y + 1) / (weights @ (1 - y) + 1)))


class LabelClassifiers(BaseEstimator):
    """Clones of a scikit-learn classifier: one a label, or one for all labels with the same rows if it takes several."""

    raw = True

    def __init__(self, classifier: Any, n_jobs: int | None = None) -> None:
        self.classifier = classifier
        self.n_jobs = n_jobs

    @property
    def allow_nan(self) -> bool:
        """As the classifier says; what a pipeline does with gaps its first step must know, which cannot be asked."""
        return isinstance(self.classifier, Pipeline) or bool(get_tags(self.classifier).input_tags.allow_nan)

    @property
    def probabilistic(self) -> bool:
        return hasattr(self.classifier, "predict_proba")

    def fit_labels(self, tasks: Tasks, law: Any = None) -> Self:
        X = tasks.inputs_of(self)
        tags = get_tags(self.classifier)
        together = tags.target_tags.multi_output or bool(tags.classifier_tags and tags.classifier_tags.multi_label)
        varying = [t for t, y in enumerate(tasks.y) if y.min() != y.max()]
        self.constants_ = np.array([constant_log_odds(y, w) for y, w in zip(tasks.y, tasks.weights)])
        self.counts_ = np.array([w.sum() for w in tasks.weights])
        groups = [[t for t in group if t in varying] for group in tasks.groups()] if together else [[t] for t in varying]
        self.members_ = [group for group in groups if group]
        self.classifiers_ = Parallel(n_jobs=self.n_jobs)(
            delayed(_fitted)(
                self.classifier,
                rows_of(X, tasks.rows[group[0]]),
                np.stack([tasks.y[t] for t in group], axis=1).astype(int),
                tasks.weights[group[0]],
            )
            for group in self.members_
        )
        return self

    def fit_classes(self, X: Any, y: np.ndarray, weights: np.ndarray) -> Self:
        """One label for every row, of K classes: log p_k in place of log-odds."""
        self.counts_ = np.array([weights.sum()])
        self.constants_ = np.zeros(int(y.max()) + 1)
        self.members_, self.classifiers_ = [], []
        if len(self.constants_) > 1:
            self.members_ = [list(range(len(self.constants_)))]
            self.classifiers_ = [_fitted(self.classifier, X, y[:, None], weights)]
        return self

    def log_odds(self, X: Any) -> np.ndarray:
        """(m, T) log-odds of each label."""
        out = np.tile(self.constants_, (X.shape[0], 1))
        for group, classifier in zip(self.members_, self.classifiers_):
            if self.probabilistic:
                n = self.counts_[group]
                p = (n * _probabilities(classifier, X, len(group)) + 1) / (n + 2)
                out[:, group] = np.log(p) - np.log1p(-p)
            else:
                out[:, group] = np.reshape(classifier.decision_function(X), (X.shape[0], -1))
        return _finite(out, self.classifier)

    def log_classes(self, X: Any) -> np.ndarray:
        """(m, K) log of the probability of each class; margins where the classifier knows no probabilities."""
        m, K = X.shape[0], len(self.constants_)
        if not self.classifiers_:
            return np.zeros((m, K))
        classifier = self.classifiers_[0]
        if self.probabilistic:
            return np.log((self.counts_[0] * _finite(classifier.predict_proba(X), classifier) + 1) / (self.counts_[0] + K))
        margin = np.reshape(_finite(classifier.decision_function(X), classifier), (m, -1))
        return np.hstack([np.zeros((m, 1)), margin]) if margin.shape[1] == 1 and K == 2 else margin


class LabelRegressions(BaseEstimator):
    """A `Surrogate`, or any regressor, of 0-1 labels, calibrated on held-out predictions."""

    probabilistic = True

    def __init__(self, surrogate: Any) -> None:
        self.surrogate = surrogate

    @property
    def raw(self) -> bool:
        return bool(getattr(self.surrogate, "raw", False))

    @property
    def allow_nan(self) -> bool:
        return bool(getattr(self.surrogate, "allow_nan", False))

    def fit_labels(self, tasks: Tasks, law: Any = None) -> Self:
        self.surrogate_ = clone(self.surrogate).fit_tasks(tasks)
        lines = []
        for y, residual, w in zip(tasks.y, self.surrogate_.residuals(), tasks.weights):
            lines.append(_platt(y - np.asarray(residual, float).reshape(len(y)), y, w))
        self.lines_ = np.array(lines)
        return self

    def fit_classes(self, X: Any, y: np.ndarray, weights: np.ndarray) -> Self:
        K = int(y.max()) + 1
        return self.fit_labels(Tasks.of(X, np.eye(K)[y], weights))

    def log_odds(self, X: Any) -> np.ndarray:
        g = np.hstack([np.reshape(z, (X.shape[0], -1)) for z in self.surrogate_.predict_tasks(X)])
        return np.clip(self.lines_[:, 0] + self.lines_[:, 1] * g, -STEEP, STEEP)

    def log_classes(self, X: Any) -> np.ndarray:
        return np.log(expit(self.log_odds(X)))


def as_label_surrogate(given: Any, n_jobs: int | None) -> LabelClassifiers | LabelRegressions:
    """What learns the labels: a classifier by its probabilities, everything else by regression."""
    if isinstance(given, Surrogate) or hasattr(given, "fit_tasks"):
        return LabelRegressions(given)
    if get_tags(given).estimator_type == "classifier":
        return LabelClassifiers(given, n_jobs)
    return LabelRegressions(RegressorSurrogate(given, n_jobs=n_jobs))


def _platt(g: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[float, float]:
    """(a, b) of log-odds a + b g, by Newton's method on the weighted likelihood; b >= 0, and labels softened as Platt does."""
    if y.min() == y.max() or g.std() <= 1e-12 * max(1.0, float(np.abs(g).max())):
        return constant_log_odds(y, w), 0.0
    center, scale = g.mean(), g.std()
    u = (g - center) / scale
    target = np.where(y > 0.5, (w @ y + 1) / (w @ y + 2), 1 / (w @ (1 - y) + 2))
    Z, beta = np.stack([np.ones_like(u), u], axis=1), np.zeros(2)

    def cost(b: np.ndarray) -> float:
        s = Z @ b
        return float(w @ (np.logaddexp(0, s) - target * s) + RIDGE * b @ b / 2)

    for _ in range(STEPS):
        p = expit(Z @ beta)
        gradient = Z.T @ (w * (p - target)) + RIDGE * beta
        step = np.linalg.solve(Z.T @ (Z * (w * p * (1 - p))[:, None]) + RIDGE * np.eye(2), gradient)
        size, before = 1.0, cost(beta)
        while size > 1e-6 and cost(beta - size * step) > before:
            size /= 2
        beta = beta - size * step
        if np.abs(step).max() < 1e-10:
            break
    if beta[1] <= 0:  # held-out predictions that point the wrong way say nothing
        return constant_log_odds(y, w), 0.0
    return float(beta[0] - beta[1] * center / scale), float(beta[1] / scale)


def _fitted(classifier: Any, X: Any, Y: np.ndarray, weights: np.ndarray) -> Any:
    """A fitted clone; weights go along only when they say something."""
    target = Y[:, 0] if Y.shape[1] == 1 and get_tags(classifier).target_tags.single_output else Y
    if np.all(weights == weights[0]):
        return clone(classifier).fit(X, target)
    last = classifier.steps[-1][1] if isinstance(classifier, Pipeline) else classifier
    if not has_fit_parameter(last, "sample_weight"):
        raise ValueError(
            f"ConstrainedClassifier got unequal sample weights but {type(last).__name__} takes no sample_weight in fit; "
            "equal weights, or a classifier such as LogisticRegression, would do"
        )
    key = f"{classifier.steps[-1][0]}__sample_weight" if isinstance(classifier, Pipeline) else "sample_weight"
    return clone(classifier).fit(X, target, **{key: weights})


def _probabilities(classifier: Any, X: Any, T: int) -> np.ndarray:
    """(m, T) P(label is true), from the shapes that scikit-learn's classifiers return."""
    found = classifier.predict_proba(X)
    if isinstance(found, list):  # an array (m, classes) for each label
        return np.stack([np.asarray(p)[:, -1] for p in found], axis=1)
    found = np.asarray(found)
    return found[:, -1:] if T == 1 else found


def _finite(values: Any, classifier: Any) -> np.ndarray:
    values = np.asarray(values, float)
    if not np.isfinite(values).all():
        raise ValueError(
            f"{type(classifier).__name__} predicts NaN or infinity for some inputs; check its parameters and the scale of X"
        )
    return values
