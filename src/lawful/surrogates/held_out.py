"""Scores of rows that were held out, for a whole path of lambdas from one factorisation.

For every task t, lambda l and held-out row i:

    scores[t][l, i]     the regressed encodings at x_i, learned without row i
    residuals[t][l]     the leave-one-out residuals of the labels it was learned from (what calibrates an output metric)
    variance[l, i, t]   the predictive variance at x_i in units of the leave-one-out error

With folds each part is refactored without its held-out rows. Leave-one-out needs no refitting: with P of `exact` the
prediction at x_i without x_i is z_i - (P z)_i / P_ii, its kriging variance 1 / P_ii - n lambda / w_i, and n lambda is held
fixed; a task not observed at x_i predicts there as usual. Leave-one-out leaves out inputs, so equal rows go together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lawful.kernels import Kernel
from lawful.surrogates.exact import Factor, distinct
from lawful.surrogates.groups import group_tasks, make_factor

COLUMNS = 4096  # regressions solved at once


@dataclass
class HeldOut:
    """What the rows of one fold (or all rows, for leave-one-out) look like from outside. See the module."""

    rows: np.ndarray
    train: list[np.ndarray]  # rows each task learned from
    scores: list[np.ndarray]
    residuals: list[np.ndarray] | None = None
    variance: np.ndarray | None = None

    def at(self, l: int) -> Calibration:
        """The l-th lambda's leave-one-out residuals, in the form a loss asks for them."""
        assert self.residuals is not None
        return Calibration([r[l] for r in self.residuals])


@dataclass
class Calibration:
    """Stands for a fitted surrogate where a loss only asks for its residuals (and that a variance exists)."""

    values: list[np.ndarray]

    def residuals(self) -> list[np.ndarray]:
        return self.values

    def variance(self, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError("variances of held-out rows are in HeldOut.variance")


@dataclass
class Labels:
    """Encoded and raw labels of every task, with their rows and weights, and the encodings of a fixed intercept."""

    Z: list[np.ndarray]
    y: list[np.ndarray]
    rows: list[np.ndarray]
    weights: list[np.ndarray]

    def keep(self, n: int, train: np.ndarray) -> Labels:
        inside = np.zeros(n, dtype=bool)
        inside[train] = True
        kept = [inside[r] for r in self.rows]
        parts = ([v[k] for v, k in zip(values, kept)] for values in (self.Z, self.y, self.rows, self.weights))
        return Labels(*parts)


def held_out(
    X: np.ndarray,
    labels: Labels,
    kernels: list[Kernel],
    lams: np.ndarray,
    intercept: bool,
    folds: list[tuple[np.ndarray, np.ndarray]] | None,
    calibrate: bool = False,
    variance: bool = False,
) -> Iterator[HeldOut]:
    """One `HeldOut` per fold, or one for leave-one-out. lams (L, T)."""
    if folds is None:
        yield _leave_one_out(X, labels, kernels, lams, intercept, calibrate, variance)
        return
    for train, test in folds:
        part = labels.keep(len(X), train)
        T = len(part.y)
        out = HeldOut(test, part.rows, [None] * T)  # type: ignore[list-item]
        if calibrate:
            out.residuals = [None] * T  # type: ignore[list-item]
        if variance:
            out.variance = np.ones((len(lams), test.size, T))
        for g, factor in _factors(X, part, kernels, lams, intercept):
            for t in g:
                out.scores[t] = _predict(factor, part.Z[t], lams[:, t], X[test])
                if out.residuals is not None:
                    out.residuals[t] = _residuals(factor, part.y[t][:, None], lams[:, t])[:, :, 0]
                if out.variance is not None:
                    out.variance[:, :, t] = _variance(factor, X[test], lams[:, t])
        yield out


def _factors(
    X: np.ndarray, labels: Labels, kernels: list[Kernel], lams: np.ndarray, intercept: bool
) -> Iterator[tuple[list[int], Factor]]:
    for g in group_tasks(labels.rows, labels.weights, kernels):
        sample = distinct(X, labels.rows[g[0]], labels.weights[g[0]], kernels[g[0]])
        lone = len(lams) == 1 and bool(np.all(lams[0, g] == lams[0, g[0]]))
        yield g, make_factor(kernels[g[0]], sample, intercept, float(lams[0, g[0]]) if lone else None)


def _chunks(L: int, k: int) -> list[slice]:
    step = max(1, COLUMNS // k)
    return [slice(i, min(i + step, L)) for i in range(0, L, step)]


def _tiled(Z: np.ndarray, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """k columns for each of several lambdas, as columns of one system."""
    return np.tile(Z, (1, len(lam))), np.repeat(lam, Z.shape[1])


def _predict(factor: Factor, Z: np.ndarray, lam: np.ndarray, X: np.ndarray) -> np.ndarray:
    """(L, m, k)."""
    k = Z.shape[1]
    parts = [factor.predict(X, factor.solve(*_tiled(Z, lam[c]))) for c in _chunks(len(lam), k)]
    return np.concatenate([np.moveaxis(p.reshape(len(X), -1, k), 1, 0) for p in parts])


def _residuals(factor: Factor, Z: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """Leave-one-out residuals (L, n, k)."""
    k = Z.shape[1]
    parts = [factor.loo(*_tiled(Z, lam[c])) for c in _chunks(len(lam), k)]
    return np.concatenate([np.moveaxis(p.reshape(len(Z), -1, k), 1, 0) for p in parts])


def _variance(factor: Factor, X: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """(L, m), in units of the leave-one-out variance; 1 for a task with a single input."""
    if factor.p == 1:
        return np.ones((len(lam), len(X)))
    return (factor.variance(X, lam) / factor.spread_of_loo(lam, len(lam))[None, :]).T


def _leave_one_out(
    X: np.ndarray,
    labels: Labels,
    kernels: list[Kernel],
    lams: np.ndarray,
    intercept: bool,
    calibrate: bool,
    variance: bool,
) -> HeldOut:
    rows = np.unique(np.concatenate(labels.rows))
    L, T = lams.shape
    out = HeldOut(rows, labels.rows, [None] * T)  # type: ignore[list-item]
    residuals: list[np.ndarray] = [None] * T  # type: ignore[list-item]
    spread = np.ones((L, rows.size, T)) if variance else None
    for g, factor in _factors(X, labels, kernels, lams, intercept):
        seen, group = _known(X, rows, labels.rows[g[0]], factor)
        for t in g:
            Z, lam = labels.Z[t], lams[:, t]
            scores = np.empty((L, rows.size, Z.shape[1]))
            left_out = _inputs(factor, Z, lam)  # (L, p, k) prediction at each input without it
            scores[:, seen] = left_out[:, group]
            if not seen.all():
                scores[:, ~seen] = _predict(factor, Z, lam, X[rows[~seen]])
            out.scores[t] = scores
            if calibrate:
                residuals[t] = _residuals(factor, labels.y[t][:, None], lam)[:, :, 0]
            if spread is not None and factor.p > 1:
                inverse = 1 / factor.diagonal(factor.nu(lam, L))  # (p, L)
                kriging = np.maximum(inverse - factor.n * lam[None, :] / factor.w[:, None], 0.0) / inverse.mean(axis=0)
                spread[:, seen, t] = kriging.T[:, group]
                if not seen.all():
                    spread[:, ~seen, t] = _variance(factor, X[rows[~seen]], lam)
    out.residuals = residuals if calibrate else None
    out.variance = spread
    return out


def _inputs(factor: Factor, Z: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """The prediction at every distinct input without the rows that have it, (L, p, k)."""
    k = Z.shape[1]
    means = factor.sample.average(Z)
    parts = []
    for c in _chunks(len(lam), k):
        tiled, each = _tiled(means, lam[c])
        left = tiled - factor._residuals(factor.code(tiled), factor.nu(each, tiled.shape[1]))
        parts.append(np.moveaxis(left.reshape(len(means), -1, k), 1, 0))
    return np.concatenate(parts)


def _known(X: np.ndarray, rows: np.ndarray, own: np.ndarray, factor: Factor) -> tuple[np.ndarray, np.ndarray]:
    """Which of `rows` have an input that the task has seen, and which of its inputs those are."""
    where = {int(r): int(j) for r, j in zip(own, factor.sample.group)}
    if len(where) < rows.size:  # a row of another task may repeat one of this task's inputs
        inputs = {X[p].tobytes(): j for j, p in enumerate(factor.sample.points)}
        found = [where.get(int(r), inputs.get(X[r].tobytes(), -1)) for r in rows]
    else:
        found = [where.get(int(r), -1) for r in rows]
    index = np.array(found)
    return index >= 0, index[index >= 0]
