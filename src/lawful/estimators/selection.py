"""Choosing among candidates: the error that is compared, the paired one-standard-error rule, and edges of grids."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from lawful.kernels import Gaussian, Kernel
from lawful.losses.square import scale_of

SQUARED = ("r2", "neg_mean_squared_error")
SCORINGS = (*SQUARED, "neg_mean_absolute_error")


class GridEdgeWarning(UserWarning):
    """The best value of a hyper-parameter is the first or the last of its grid: the optimum may lie outside.

    >>> import warnings
    >>> from lawful import GridEdgeWarning
    >>> warnings.simplefilter("ignore", GridEdgeWarning)  # the grid is what was meant
    >>> warnings.simplefilter("default", GridEdgeWarning)
    """


class HeldOutLoss:
    """Mean over outputs of the mean held-out loss of each, over its observed labels.

    scoring None, "r2": squared error over the variance of the output (free of units);
    "neg_mean_squared_error", "neg_mean_absolute_error": as in scikit-learn, in the units of the outputs; or any function
    l(c, y) of arrays, such as a loss of `lawful.losses`. Losses are kept per row, so that candidates can be compared in pairs.
    """

    def __init__(self, scoring: Any, Y: np.ndarray, weight: np.ndarray) -> None:
        if not (scoring is None or callable(scoring) or (isinstance(scoring, str) and scoring in SCORINGS)):
            raise ValueError(
                f"unknown scoring {scoring!r}; choose one of {', '.join(SCORINGS)}, or give a function l(c, y) such as Huber()"
            )
        if isinstance(scoring, type) or hasattr(scoring, "_score_func"):
            raise ValueError(
                f"scoring={scoring!r} scores estimators, and here every held-out label is scored by itself; "
                f"choose one of {', '.join(SCORINGS)}, or give a function l(c, y) of arrays such as Huber()"
            )
        self.Y, self.weight = Y, weight
        self.scale = np.ones(Y.shape[1])
        self.loss: Callable[[Any, Any], Any]
        if scoring is None or scoring == "r2":
            seen = weight > 0
            self.scale = np.array([scale_of(Y[s, t], weight[s, t]) ** 2 for t, s in enumerate(seen.T)])
        if callable(scoring):
            self.loss = scoring
        elif scoring == "neg_mean_absolute_error":
            self.loss = lambda c, y: np.abs(c - y)
        else:
            self.loss = lambda c, y: (c - y) ** 2

    def hold_out(self, rows: np.ndarray) -> None:
        """Say which rows (repeated ones count each time) will be predicted: their weights set each output's share."""
        total = self.weight[rows].sum(axis=0)
        self.scored = total > 0
        self.share = np.where(self.scored, 1 / np.where(self.scored, total * self.scale, 1.0), 0.0)

    def __call__(self, c: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(..., m, T): each label's part of its output's mean error; sums over rows give the error of each output."""
        w, y = self.weight[rows], self.Y[rows]
        seen = w > 0
        parts = np.where(seen, self._losses(c, np.where(seen, y, 0.0)), 0.0)
        if not np.isfinite(parts).all():
            what = "the prediction itself is not finite" if not np.isfinite(c).all() else "use a loss that is finite everywhere"
            raise ValueError(f"the held-out loss is NaN or infinite for some rows ({what}); nothing can be chosen by it")
        return parts * w * self.share

    def _losses(self, c: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l(c, y), which must be a number for every label."""
        advice = "give a function l(c, y) of arrays that returns the loss of every entry, such as lambda c, y: abs(c - y)"
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(self.loss(c, y))
        except (TypeError, ValueError) as error:
            raise ValueError(f"scoring={self.loss!r} fails on arrays of shape {c.shape} ({error}); {advice}") from error
        if found.shape != c.shape or found.dtype.kind not in "biuf":
            what = f"{found.dtype} of shape {found.shape} for predictions of shape {c.shape}"
            raise ValueError(f"scoring={self.loss!r} returned {what}; {advice}")
        return found

    def mean(self, errors: np.ndarray) -> Any:
        """Mean over the outputs that were scored, of errors (..., T)."""
        return errors[..., self.scored].mean(axis=-1)


def choose_law(losses: np.ndarray, looseness: np.ndarray, rule: str) -> int:
    """Which relaxation, the exact law being the first: "best" the smallest error, "one_se" the exact law unless the data speak
    against it.

    losses (k, m): what each held-out row adds to each candidate's error; looseness (k,): how far a candidate lets predictions
    go from the exact law; ties go to the stricter. With d_i the loss of the exact law minus that of the best candidate, the
    exact law is kept if sum_i d_i is within one standard error, sqrt(m / (m - 1) sum_i (d_i - mean d)^2). Paired, this error is
    far smaller than those of the two sums, so that a law that is a little wrong is found out. Once it is, the best candidate
    is taken, not the strictest within the error: a wrong law is not worth a sacrifice.
    """
    order = np.argsort(looseness, kind="stable")
    best = int(order[np.argmin(losses.sum(axis=1)[order])])
    if rule == "best":
        return best
    d = losses[0] - losses[best]
    m = len(d)
    se = np.sqrt(m / max(m - 1, 1) * ((d - d.mean()) ** 2).sum())
    return 0 if d.sum() <= se else best


def choose_lam(errors: np.ndarray, error: HeldOutLoss, per_task: bool) -> tuple[np.ndarray, float]:
    """Which of L lambdas for each task, and the error then. errors (L, k, T); of k relaxations the best counts.

    Ties go to the larger lambda; a task that cannot be scored follows the others.
    """
    T = errors.shape[2]
    if not per_task:
        risks = error.mean(errors).min(axis=1)
        at = int(last_best(risks[:, None])[0])
        return np.full(T, at), float(risks[at])
    table = errors[:, 0, :]
    best = last_best(table)
    best[~error.scored] = int(np.median(best[error.scored]))
    return best, float(error.mean(table[best, np.arange(T)]))


def last_best(errors: np.ndarray) -> np.ndarray:
    """The last row of each column that is as small as the smallest: a flat path is a tie, not a lottery of rounding errors."""
    small = errors <= errors.min(axis=0) * (1 + 1e-9)
    return len(errors) - 1 - np.argmax(small[::-1], axis=0)


def on_edge(risks: np.ndarray, at: int) -> bool:
    """Whether the best of a grid is its first or last value and the error still falls there."""
    if risks.size < 3 or 0 < at < risks.size - 1:
        return False
    neighbour = risks[1] if at == 0 else risks[-2]
    return bool(neighbour - risks[at] > 1e-3 * abs(risks[at]))


Relaxations = list[tuple[float | None, float | None]]  # delta or mu; neither is the exact law

FREE: Relaxations = [(None, None)]  # no law


class Results:
    """The tidy table: one row for each candidate and output."""

    def __init__(self, error: HeldOutLoss) -> None:
        self.error = error
        self.parts: list[tuple[Any, np.ndarray, Relaxations]] = []

    def add(self, candidate: Any, errors: np.ndarray, relaxed: Relaxations) -> None:
        """errors (L, k, T) of k relaxations (delta, mu); `FREE` for the unconstrained prediction."""
        self.parts.append((candidate, errors, relaxed))

    def columns(self, names: list[str]) -> dict[str, np.ndarray]:
        table: dict[str, list[Any]] = {}
        for candidate, errors, relaxed in self.parts:
            L, k, T = errors.shape
            shape = (L, k, T)
            kinds = ["exact" if d is m is None else "mu" if d is None else "delta" for d, m in relaxed]
            kinds = ["none"] if relaxed is FREE else kinds
            value = lambda v: np.nan if v is None else v  # noqa: E731
            labels = {key: np.array(value)[None, None] for key, value in candidate.labels.items()}
            if candidate.lams is not None:
                labels["lam"] = candidate.lams[:, None, :]
            labels |= {
                "law": np.array(kinds)[None, :, None],
                "delta": np.array([value(d) for d, _ in relaxed])[None, :, None],
                "mu": np.array([value(m) for _, m in relaxed])[None, :, None],
                "output": np.array(names)[None, None, :],
                "error": np.where(self.error.scored, errors, np.nan),
                "mean_error": self.error.mean(errors)[:, :, None],
            }
            for key, values in labels.items():
                table.setdefault(key, []).append(np.broadcast_to(values, shape).ravel())
        return {key: np.concatenate(parts) for key, parts in table.items()}


def check_grid(grid: Any, name: str, smallest: float, strict: bool, unbounded: bool = False) -> np.ndarray:
    """A grid as a sorted array, or an error that says what is wrong with it."""
    try:
        values = np.asarray(grid, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}={grid!r} is not a grid of numbers ({error}); np.logspace(-5, 5, 30) would do") from error
    values = np.unique(values.ravel())
    if values.size == 0:
        raise ValueError(f"{name} is an empty grid; give at least one value, or leave it out")
    good = (values > smallest if strict else values >= smallest) & (np.isfinite(values) | (unbounded & ~np.isnan(values)))
    if not good.all():
        need = (f"above {smallest:g}" if strict else f"at least {smallest:g}") + ("" if unbounded else " and finite")
        raise ValueError(f"{name} holds {values[~good].tolist()}; every value must be {need}")
    return values


def warn_edges(found: list[tuple[str, str]]) -> None:
    """One warning for everything that sits on an edge: (name, what was chosen)."""
    if found:
        what = "; ".join(f"{name}: {value}" for name, value in found)
        warnings.warn(
            f"the best value lies on the edge of its grid ({what}); a wider grid may do better", GridEdgeWarning, stacklevel=4
        )


def is_auto(value: Any) -> bool:
    if isinstance(value, str) and value != "auto":
        raise ValueError(f"{value!r} is no rule; 'auto' or a grid of numbers would do")
    return isinstance(value, str)


def check_kernels(kernels: Any) -> tuple[list[Any], np.ndarray | None]:
    """A list of kernels, and the bandwidths when they were given as numbers."""
    if isinstance(kernels, Kernel) or callable(kernels):
        return [kernels], None
    if isinstance(kernels, str):
        return [Gaussian()] if is_auto(kernels) else [], None
    entries = list(kernels) if np.iterable(kernels) else [kernels]
    if entries and all(isinstance(k, Kernel) or callable(k) for k in entries):
        return entries, None
    sigmas = check_grid(kernels, "kernels", 0.0, strict=True)
    return [Gaussian(float(sigma)) for sigma in sigmas], sigmas if sigmas.size > 2 else None


def check_intercepts(intercepts: Any) -> list[Any]:
    """True, False or T numbers, or several of these."""
    if isinstance(intercepts, bool | np.bool_):
        return [bool(intercepts)]
    entries = list(intercepts)
    if not entries:
        raise ValueError("intercepts is empty; give True, False, one number per output, or a list of these")
    if all(np.isscalar(e) and not isinstance(e, bool | np.bool_) for e in entries):
        return [np.asarray(entries, dtype=float)]
    return [bool(e) if np.isscalar(e) else np.asarray(e, dtype=float) for e in entries]
