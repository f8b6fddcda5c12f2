"""The square loss, and the output metric that decides whether a constraint helps or hurts.

With encodings Z = [1, y] the regress step gives a_t(x) = sum_i alpha_it(x) and b_t(x) = sum_i alpha_it(x) y_it, and

    F_x(c) = sum_t m_t [a_t(x) c_t^2 - 2 b_t(x) c_t]                          (ex:ls-and-mtl has m_t = 1)

`metric` chooses m (or a full matrix M), `confidence` what stands for a_t(x). The paper is metric="identity",
confidence="scores". Outputs of different scale or different predictability make that choice harmful: the
projection then moves the well-predicted outputs to please the badly predicted ones. If the error of the
unconstrained prediction w(x) has covariance S(x), the most likely point of C is the one closest in the metric
S(x)^{-1}; "residual" and "residual_full" estimate S from leave-one-out residuals, "variance" confidence follows its
change with x.

"auto" asks what residuals are made of: r_t = e_t + noise_t, the error of the prediction and the noise of the label. Noise that
is correlated between outputs enters all their predictions through nearly the same scores alpha(x), so the errors it makes are
correlated alike. The rest of e_t, what the ridge cannot know of f_t between its points, has a correlation that changes with x,
which an average over x only seems to know. With nu_t the share of noise in the leave-one-out variance (`noise_share` of the
surrogate), the correlation of prediction errors is taken as that of residuals times KEPT sqrt(nu_t nu_s): none without noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, like
from lawful._correlations import shrunk_correlation
from lawful.losses.base import Loss
from lawful.losses.quadratic import TINY, Quadratic, QuadraticForm, positive_part_center

METRICS = ("identity", "variance", "residual", "residual_full", "shrunk", "auto")
EXTRA = (
    0.4  # of the correlations, shrunk away whatever the number of rows: those of residuals are not quite those of predictions
)
KEPT = 0.8  # of the correlations of residuals that are noise
LEAST = 0.02  # if all correlations are smaller, weights do the same and are faster
CONFIDENCES = ("scores", "variance", "none")
NUMBER = (int, float, np.number)
SWALLOWED = 1e-12  # a variance below this fraction of the largest one of its row is rounding


class Square(Loss):
    """(c - y)^2 in an output metric.

    Parameters
    ----------
    metric : {"identity", "variance", "residual", "residual_full", "shrunk", "auto"} or array, default "auto"
        "identity": the paper. "variance": 1 / Var(y_t). "residual": 1 / leave-one-out MSE of task t.
        "residual_full": inverse of the shrunk covariance of the leave-one-out residuals (missing outputs allowed).
        "shrunk": the same with variances shrunk towards each other too, and correlations by more (`shrunk_variances`); laws
        with a closed form for weights alone (simplex, box), and composed laws, are given the weights without correlations.
        "auto": variances as in "shrunk", correlations as far as residuals are noise (see the module's docstring): the full,
        shrunk covariance where labels are noisy, weights where they are not, and for composed laws.
        An array of T positive weights or a (T, T) positive definite matrix is used as it is.
    confidence : {"scores", "variance", "none"} or a number in [0, 1], default "none"
        "scores": a_t(x) = sum_i alpha_it(x), the paper (constant 1 when the ridge has an intercept).
        "variance": inverse of the variance of the ridge prediction at x, in units of the leave-one-out error, so that
        together with metric="residual" every output counts by its estimated precision at x. "none": 1, so that the
        unconstrained prediction is plain ridge regression, with or without an intercept. A number s lies between:
        1 / ((1 - s) + s variance), so that 0 is "none" and 1 is "variance"; 0.5 is what decoder="posterior" likes.

    Notes
    -----
    The defaults are what `benchmarks/regress.py --part metrics` found best: "auto" is never far from the best metric, and each
    of the others is on some law. confidence=0.5 may gain a little more with noise and a ridge tuned by evidence, but costs
    n^2 operations for each predicted row, and a ridge whose kernel does not fit can trust single outputs too much.
    Square(metric="identity", confidence="scores") is the paper.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> Y = np.c_[np.cos(X), np.sin(X)]
    >>> from lawful import ConstrainedRegressor, KernelRidge, Sphere, Square
    >>> paper = Square(metric="identity", confidence="scores")
    >>> model = ConstrainedRegressor(Sphere(), loss=paper, surrogate=KernelRidge(lam=1e-6)).fit(X, Y)
    >>> model.predict([[0.5]]).round(2)
    array([[0.88, 0.48]])
    """

    def __init__(self, metric: Any = "auto", confidence: Any = "none") -> None:
        self.metric = metric
        self.confidence = confidence

    def __call__(self, c: Array, y: Array) -> Array:
        return (c - y) ** 2

    def derivative(self, c: Array, y: Array) -> Array:
        return 2 * (c - y)

    def curvature(self, c: Array, y: Array) -> Array:
        return 2 + 0 * (c - y)

    def encode(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        return np.stack([np.ones_like(y), y], axis=1), None

    @property
    def regresses_labels(self) -> bool:
        return not (isinstance(self.confidence, str) and self.confidence == "scores")

    def center(self, scores: list[Array], atoms: list[Any]) -> Array:
        xp = array_namespace(*scores)
        a, b = (xp.stack([s[:, j] for s in scores], axis=1) for j in (0, 1))
        return b if self.regresses_labels else positive_part_center(a, b)

    @property
    def needs_variance(self) -> bool:
        s = self.confidence
        return s == "variance" or (isinstance(s, NUMBER) and bool(s > 0))

    def calibrate(self, tasks: Any, surrogate: Any) -> None:
        s = self.confidence
        if not (s in CONFIDENCES if isinstance(s, str) else isinstance(s, NUMBER) and 0 <= s <= 1):
            choices = ", ".join(CONFIDENCES)
            raise ValueError(f"Square: unknown confidence {s!r}; choose one of {choices}, or a number between 0 and 1")
        if self.needs_variance and not hasattr(surrogate, "variance"):
            raise ValueError(
                f"Square(confidence={s!r}) needs a predictive variance, which {type(surrogate).__name__} does not "
                'offer here; use a KernelRidge surrogate on at most 3000 rows, or confidence="scores" or "none"'
            )
        self.metric_ = self._metric(tasks, surrogate)

    def uncouple(self, direct: bool = False) -> None:
        """After `calibrate`, for a law that cannot use a matrix: "shrunk" and "auto" become the shrunk variances alone.

        `direct` says that the law takes a matrix, and as fast as weights: "auto" keeps it then.

        >>> loss = Square("shrunk")
        >>> loss.metric_ = np.linalg.inv([[2.0, 1.0], [1.0, 4.0]])
        >>> loss.uncouple()
        >>> loss.metric_.round(3)
        array([0.5 , 0.25])
        """
        estimated = isinstance(self.metric, str) and self.metric in ("shrunk",) + ("auto",) * (not direct)
        if estimated and self.metric_ is not None and self.metric_.ndim == 2:
            self.metric_ = 1 / np.diagonal(np.linalg.inv(self.metric_))

    def _metric(self, tasks: Any, surrogate: Any) -> np.ndarray | None:
        if not isinstance(self.metric, str):
            return check_metric(self.metric, len(tasks))
        if self.metric == "identity":
            return None
        variances = np.array([scale_of(y_t, w_t) ** 2 for y_t, w_t in zip(tasks.y, tasks.weights)])
        if self.metric == "variance":
            return 1 / variances
        if self.metric not in METRICS:
            raise ValueError(f"Square: unknown metric {self.metric!r}; choose one of {', '.join(METRICS)}, or an array")
        residuals = surrogate.residuals()
        errors = np.array([residual_variance(r, w, v) for r, w, v in zip(residuals, tasks.weights, variances)])
        if self.metric == "residual":
            return 1 / errors
        extra: Any = 0.0
        if self.metric in ("shrunk", "auto"):
            errors, extra = shrunk_variances(residuals, errors), EXTRA
        if self.metric == "auto" and hasattr(surrogate, "noise_share"):
            root = np.sqrt(surrogate.noise_share())
            extra = 1 - KEPT * np.outer(root, root)
        if self.metric == "auto" and np.min(extra) > 1 - LEAST:
            return 1 / errors
        return inverse_covariance(residuals, tasks.rows, tasks.n_rows, errors, extra)

    def objective(self, scores: list[Array], atoms: list[Any], variance: Array | None = None) -> Any:
        xp = array_namespace(*scores)
        a = xp.stack([s[:, 0] for s in scores], axis=1)
        b = xp.stack([s[:, 1] for s in scores], axis=1)
        doubtful = xp.any(a <= TINY, axis=1)
        if self.confidence != "scores":
            # The ridge prediction b itself, weighted by how well it is known; a_t(x) then only says whether to doubt the row.
            a = xp.ones_like(a) if variance is None else 1 / self._spread(like(variance, a))
            b = a * b
        if self.metric_ is None:
            return Quadratic(a, b, doubtful)
        M = like(self.metric_, a)
        if M.ndim == 1:
            return Quadratic(a * M, b * M, doubtful, unit=M)
        if self.confidence != "scores" and variance is None:  # a = 1: one matrix for all rows
            return QuadraticForm(M, b, doubtful, unit=M, weights=a)
        root = xp.sqrt(xp.where(a > 0, a, xp.zeros_like(a)))
        Q = root[:, :, None] * M * root[:, None, :]
        return QuadraticForm(Q, positive_part_center(a, b), doubtful, unit=M, weights=root**2)

    def _spread(self, variance: Array) -> Array:
        """(m, T) positive: a variance of 0 is one that rounding has swallowed, and no output is infinitely sure."""
        xp = array_namespace(variance)
        spread = variance if isinstance(self.confidence, str) else (1 - self.confidence) + self.confidence * variance
        top = xp.max(spread, axis=1, keepdims=True)
        least = xp.where(top > 0, SWALLOWED * top, xp.ones_like(top)) + 0 * spread
        return xp.where(spread > least, spread, least)


def check_metric(metric: Any, n_tasks: int) -> np.ndarray:
    """A user's metric: T positive weights or a (T, T) symmetric positive definite matrix."""
    M = np.asarray(metric, dtype=float)
    if M.shape == (n_tasks,):
        good = bool((M > 0).all())
    else:
        good = M.shape == (n_tasks, n_tasks) and np.allclose(M, M.T) and np.linalg.eigvalsh(M).min() > 0
    if not good:
        raise ValueError(
            f"Square: metric of shape {M.shape} does not fit; give {n_tasks} positive weights or a "
            f"({n_tasks}, {n_tasks}) symmetric positive definite matrix"
        )
    return M


def scale_of(y: np.ndarray, weights: np.ndarray) -> float:
    """Standard deviation of the labels; for constant labels a millionth of their size, or 1 when they are all zero.

    A constant output is predicted exactly, so it is trusted, but not infinitely.
    """
    mean = np.average(y, weights=weights)
    spread, size = float(np.sqrt(np.average((y - mean) ** 2, weights=weights))), float(np.abs(y).max())
    return max(spread, 1e-6 * size) or 1.0


def residual_variance(r: np.ndarray, weights: np.ndarray, variance: float) -> float:
    """Mean squared out-of-sample residual, floored where double precision ends; the variance when there is none."""
    error = float(np.average(r**2, weights=weights)) if r.size > 1 else variance
    return max(error, 1e-18 * variance)


def shrunk_variances(residuals: list[np.ndarray], errors: np.ndarray) -> np.ndarray:
    """Mean squared residuals, shrunk towards their geometric mean by as much as they are not known (James & Stein, of logs).

    log v_t has a sampling variance of about (kurtosis - 1) / n_t. Where the logarithms differ by no more than that, they become
    equal; where outputs have units or qualities of their own, they differ by far more and stay as they are.

    >>> equal = [np.array([1.0, -1.0, 0.5, -2.0]), np.array([-1.0, 1.5, 2.0, 0.1])]
    >>> v = shrunk_variances(equal, np.array([np.mean(r**2) for r in equal]))
    >>> bool(np.isclose(v[0], v[1]))
    True
    """
    T, logs = len(errors), np.log(errors)
    away = logs - logs.mean()
    known = [r for r in residuals if r.size > 1 and np.any(r)]
    if not known or not np.any(away):
        return errors
    kurtosis = [max(float(np.mean(r**4) / np.mean(r**2) ** 2), 1.5) for r in known]
    doubt = float(np.mean([(k - 1) / r.size for k, r in zip(kurtosis, known)]))
    factor = min(1.0, (T - 1) * doubt / float(away @ away))
    return np.exp(logs - factor * away)


def inverse_covariance(
    residuals: list[np.ndarray], rows: list[np.ndarray], n_rows: int, errors: np.ndarray, extra: Any = 0.0
) -> np.ndarray:
    """Inverse of a shrunk covariance of residuals that may be missing for any (row, task); `errors` are their variances."""
    inverse = np.linalg.inv(shrunk_correlation(residuals, rows, n_rows, extra))
    return (inverse + inverse.T) / 2 / np.sqrt(np.outer(errors, errors))
