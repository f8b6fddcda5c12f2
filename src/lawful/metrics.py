"""Errors that understand missing outputs, and the violation of a law.

NaN in y_true (or a masked entry, or pandas' NA) means "not observed" and is left out; NaN in y_pred is an error of the
prediction and stays NaN. Every function takes `multioutput="average"` (mean over tasks), "pooled" where it makes sense, or
"raw" (one number per task).
`scorer(metric)` turns one into a scikit-learn scorer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lawful._array import to_numpy
from lawful.ratings import as_ratings
from lawful.tasks import as_floats

__all__ = ["constraint_violation", "mean_squared_error", "normalized_mse", "r2", "rank_loss", "scorer"]

PAIRS_AT_ONCE = 2**20  # of one query, in `rank_loss`


def _check(y_true: Any, y_pred: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y, p = as_floats(y_true, "y_true"), np.asarray(y_pred, dtype=float)
    if y.shape != p.shape:
        if y.size == p.size and 1 in (y.shape[-1], p.shape[-1]):  # (n,) against (n, 1)
            p = p.reshape(y.shape)
        else:
            raise ValueError(f"y_true has shape {y.shape} and y_pred {p.shape}; they must agree")
    y, p = (v[:, None] if v.ndim == 1 else v for v in (y, p))
    w = np.ones(y.shape) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    w = np.broadcast_to(w[:, None] if w.ndim == 1 else w, y.shape)
    w = np.where(np.isnan(y), 0.0, w)
    if (w.sum(axis=0) <= 0).any():
        raise ValueError(f"no observed label for outputs {np.flatnonzero(w.sum(axis=0) <= 0).tolist()}; they cannot be scored")
    return y, p, w


def _sums(y_true: Any, y_pred: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Per task: weighted sum of squared errors, of squared deviations from the mean, and of weights."""
    y, p, w = _check(y_true, y_pred, sample_weight)
    seen = w > 0
    total = w.sum(axis=0)
    filled = np.where(seen, y, 0.0)
    mean = (w * filled).sum(axis=0) / total
    errors = (w * np.where(seen, p - filled, 0.0) ** 2).sum(axis=0)
    spread = (w * np.where(seen, filled - mean, 0.0) ** 2).sum(axis=0)
    return errors, spread, total


def mean_squared_error(y_true: Any, y_pred: Any, *, sample_weight: Any = None, multioutput: str = "average") -> Any:
    """MSE of each task over its observed labels; "average" over tasks, "pooled" over all labels, or "raw".

    >>> import numpy as np
    >>> from lawful.metrics import mean_squared_error
    >>> Y, C = [[1.0, 2.0], [3.0, np.nan], [2.0, 4.0]], [[1.0, 2.5], [2.0, 3.0], [2.0, 4.0]]
    >>> round(mean_squared_error(Y, C), 4)  # a gap is not counted
    0.2292
    """
    errors, _, total = _sums(y_true, y_pred, sample_weight)
    return _reduce(errors, total, multioutput)


def normalized_mse(y_true: Any, y_pred: Any, *, sample_weight: Any = None, multioutput: str = "average") -> Any:
    """MSE_t / Var_t. A constant output has no variance: its ratio is 0 when predicted exactly and 1 otherwise.

    >>> import numpy as np
    >>> from lawful.metrics import normalized_mse
    >>> Y, C = [[1.0, 2.0], [3.0, np.nan], [2.0, 4.0]], [[1.0, 2.5], [2.0, 3.0], [2.0, 4.0]]
    >>> round(normalized_mse(Y, C), 4)  # a gap is not counted
    0.3125
    """
    errors, spread, _ = _sums(y_true, y_pred, sample_weight)
    if multioutput == "pooled":
        return float(_ratio(errors.sum(keepdims=True), spread.sum(keepdims=True))[0])
    return _reduce(_ratio(errors, spread), np.ones_like(errors), multioutput)


def r2(y_true: Any, y_pred: Any, *, sample_weight: Any = None, multioutput: str = "average") -> Any:
    """R^2 = 1 - nMSE, the mean over tasks (scikit-learn's `r2_score` when nothing is missing) or pooled.

    >>> import numpy as np
    >>> from lawful.metrics import r2
    >>> Y, C = [[1.0, 2.0], [3.0, np.nan], [2.0, 4.0]], [[1.0, 2.5], [2.0, 3.0], [2.0, 4.0]]
    >>> round(r2(Y, C), 4)  # a gap is not counted
    0.6875
    """
    return 1 - normalized_mse(y_true, y_pred, sample_weight=sample_weight, multioutput=multioutput)


def constraint_violation(constraint: Any, y_pred: Any, X: Any = None, *, reduce: str = "max") -> Any:
    """How far predictions are from the law: "max", "mean" or "rows" of the constraint's residual.

    `constraint` is a fitted set, such as `model.constraint_`; X is needed only when it depends on the inputs.

    >>> from lawful import Sphere
    >>> from lawful.metrics import constraint_violation
    >>> constraint_violation(Sphere().fit([[1.0, 0.0]]), [[0.6, 0.8], [0.0, 2.0]])
    3.0
    """
    if reduce not in ("max", "mean", "rows"):
        raise ValueError(f"unknown reduce {reduce!r}; choose 'max', 'mean' or 'rows'")
    p = np.asarray(y_pred, dtype=float)
    p = p[:, None] if p.ndim == 1 else p
    bound = constraint if X is None else constraint.at(np.asarray(X, dtype=float))
    rows = to_numpy(bound.residual(p))
    return rows if reduce == "rows" else float(getattr(rows, reduce)())


def rank_loss(
    R_true: Any,
    positions: Any = None,
    *,
    scores: Any = None,
    denominator: str = "N1",
    ties: str = "half",
    pooled: bool = False,
    per_query: bool = False,
) -> Any:
    """Weight of the rated pairs that an order puts the wrong way round, as a share.

        W_pq = max(r_p - r_q, 0) over the pairs that a query rated;     loss = sum of W_pq 1{q is put before p} / denominator

    A total order leaves no pair tied. Scores may: a tied pair then counts half, like a coin's guess, or as an error.

    Parameters
    ----------
    R_true : (m, D) ratings, sparse (a stored entry is a rating) or dense with NaN where unrated
    positions : (m, D) rank positions, 0 = best; -1 marks an item that was no candidate (`decode(..., items=...)`): its pairs
        are left out, as if it had not been rated; or
    scores : (m, D) larger = better. NaN at a rated item is an error; unrated items are not looked at
    denominator : "N1": the sum of W, the largest possible loss; "N2": the number of rated pairs, ties included; "N3": the
        number of rated pairs that are not tied. With N2 and N3 the loss may exceed 1
    ties : "half" or "error": what a pair costs that the prediction leaves undecided
    pooled : False: the mean over queries of each one's ratio; True: the ratio of the sums over all queries
    per_query : return the ratios themselves (m,), NaN for a query without a pair to be ordered

    Notes
    -----
    A query whose ratings are all equal (or fewer than two) has nothing to order and is left out of the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from lawful.metrics import rank_loss
    >>> rank_loss([[5.0, 3.0, np.nan, 1.0]], [[0, 2, 1, 3]])  # all rated pairs in order
    0.0
    >>> rank_loss([[5.0, 3.0, np.nan, 1.0]], [[3, 2, 1, 0]])
    1.0
    """
    if denominator not in ("N1", "N2", "N3"):
        raise ValueError(f"unknown denominator {denominator!r}; choose 'N1', 'N2' or 'N3'")
    if ties not in ("half", "error"):
        raise ValueError(f"unknown ties {ties!r}; choose 'half' or 'error'")
    if (positions is None) == (scores is None):
        raise ValueError("rank_loss: give either positions (0 = best) or scores (larger = better), one of the two")
    if pooled and per_query:
        raise ValueError("rank_loss: pooled=True gives one number; it cannot be given per query")
    s = as_floats(positions if scores is None else scores, "predictions")
    R = as_ratings(R_true)
    if R.shape != s.shape:
        raise ValueError(f"R_true has shape {R.shape} and the prediction {s.shape}; both must be (queries, items)")
    rated = [(R.indices[a:b], R.data[a:b]) for a, b in zip(R.indptr[:-1], R.indptr[1:])]
    if scores is None:
        if ((s < 0) & (s != -1)).any():
            raise ValueError("rank_loss: positions are below 0; give 0 for the best, 1, 2, ..., and -1 for what was not ranked")
        rated = [(items[s[u, items] != -1], r[s[u, items] != -1]) for u, (items, r) in enumerate(rated)]
        s = -s
    sums = np.array([_pair_sums(r, s[u, items], 0.5 if ties == "half" else 1.0) for u, (items, r) in enumerate(rated)]).reshape(
        -1, 4
    )
    if not np.isfinite(sums).all():
        u = int(np.flatnonzero(~np.isfinite(sums).all(axis=1))[0])
        raise ValueError(f"rank_loss: NaN or infinity among the ratings or predictions of query {u} at items it rated")
    lost, below = sums[:, 0], sums[:, 1 + ("N1", "N2", "N3").index(denominator)]
    ordered = sums[:, 1] > 0
    if per_query:
        return np.where(ordered, lost / np.where(ordered, below, 1.0), np.nan)
    if not ordered.any():
        raise ValueError("rank_loss: no query has two items with different ratings; there is nothing to order")
    if pooled:
        return float(lost[ordered].sum() / below[ordered].sum())
    return float(np.mean(lost[ordered] / below[ordered]))


def _pair_sums(r: np.ndarray, s: np.ndarray, tie: float) -> tuple[float, float, float, float]:
    """Weight lost, N1, N2, N3 of one query."""
    if not (np.isfinite(r).all() and np.isfinite(s).all()):
        return np.nan, np.nan, np.nan, np.nan
    n, lost, weight, untied = len(r), 0.0, 0.0, 0
    step = max(1, PAIRS_AT_ONCE // max(n, 1))
    for a in range(0, n, step):
        W = np.maximum(r[a : a + step, None] - r, 0.0)
        wrong, level = s[a : a + step, None] < s, s[a : a + step, None] == s
        lost += float(W[wrong].sum() + tie * W[level].sum())
        weight += float(W.sum())
        untied += int((W > 0).sum())
    return lost, weight, n * (n - 1) / 2, untied


def scorer(metric: Callable[..., float], *, greater_is_better: bool = False, **options: Any) -> Any:
    """A scorer for GridSearchCV and cross_val_score that leaves missing labels out.

    >>> scorer(mean_squared_error)  # doctest: +ELLIPSIS
    <function ...>
    """

    def score(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        value = metric(y, estimator.predict(X), sample_weight=sample_weight, **options)
        return value if greater_is_better else -value

    return score


def _ratio(errors: np.ndarray, spread: np.ndarray) -> np.ndarray:
    constant = np.where(errors > 0, 1.0, 0.0)
    return np.where(spread > 0, errors / np.where(spread > 0, spread, 1.0), constant)


def _reduce(errors: np.ndarray, total: np.ndarray, multioutput: str) -> Any:
    if multioutput == "raw":
        return errors / total
    if multioutput == "average":
        return float(np.mean(errors / total))
    if multioutput == "pooled":
        return float(errors.sum() / total.sum())
    raise ValueError(f"unknown multioutput {multioutput!r}; choose 'average', 'pooled' or 'raw'")
