"""Held-out rows of kernel ridge regressions, for a whole path of lambdas from one factorisation.

With folds each part is refactored without its held-out rows. Leave-one-out needs no refitting: with P of `exact` the
prediction at x_i without x_i is z_i - (P z)_i / P_ii, its kriging variance 1 / P_ii - n lambda / w_i, and n lambda is held
fixed; a task not observed at x_i predicts there as usual. Leave-one-out leaves out inputs, so equal rows go together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from lawful.kernels import Kernel
from lawful.surrogates.base import Fold, HeldOut, training_part
from lawful.surrogates.exact import Factor, distinct
from lawful.surrogates.factorise import make_factor
from lawful.surrogates.members import Member
from lawful.tasks import Tasks

COLUMNS = 4096  # regressions solved at once


def held_out(
    tasks: Tasks,
    kernels: list[Kernel],
    lams: np.ndarray,
    intercept: bool,
    folds: list[Fold] | None,
    residuals: bool = False,
    variance: bool = False,
) -> Iterator[HeldOut]:
    """One `HeldOut` per fold, or one for leave-one-out. lams (L, T)."""
    if folds is None:
        yield _leave_one_out(tasks, kernels, lams, intercept, residuals, variance)
        return
    for k, (train, test) in enumerate(folds):
        part, X = training_part(tasks, k, train), tasks.X[test]
        T = len(part)
        out = HeldOut(test, part, [None] * T)  # type: ignore[list-item]
        if residuals:
            out.residuals, out.noise = [None] * T, np.ones((len(lams), T))  # type: ignore[list-item]
        if variance:
            out.variance = np.ones((len(lams), test.size, T))
        for g, factor in _factors(part, kernels, lams, intercept):
            _share(out.scores, g, _predict(factor, *_columns(part.Z, lams, g), X), part.Z)
            if out.residuals is not None and out.noise is not None:
                _share(out.residuals, g, _residuals(factor, *_columns(part.y, lams, g)), part.y)
                for t in g:
                    out.noise[:, t] = _noise(factor, lams[:, t], len(part.y[t]))
            if out.variance is not None:
                for t in g:
                    out.variance[:, :, t] = _variance(factor, X, lams[:, t])
        yield out


def left_out(tasks: Tasks, members: list[list[Member]], intercept: bool, residuals: bool, variance: bool) -> HeldOut:
    """Leave-one-out of averages of ridges: the averages of what each member leaves out."""
    total: HeldOut | None = None
    for k in range(max(map(len, members))):
        layer = [own[min(k, len(own) - 1)] for own in members]
        weight = [member.weight if k < len(own) else 0.0 for member, own in zip(layer, members)]
        lams = np.array([[member.lam for member in layer]], dtype=float)
        h = _leave_one_out(tasks, [member.kernel for member in layer], lams, intercept, residuals, variance)
        h = h if all(w == 1 for w in weight) else h.times(weight)
        total = h if total is None else total.plus(h)
    assert total is not None
    return total


def with_bases(h: HeldOut, bases: list[np.ndarray] | None, tasks: Tasks) -> HeldOut:
    """What was held out of labels less a fixed intercept, with the intercept again."""
    if bases is not None:
        h.scores = [s + base[None, None, :] for s, base in zip(h.scores, bases)]
        h.tasks = tasks
    return h


def _factors(tasks: Tasks, kernels: list[Kernel], lams: np.ndarray, intercept: bool) -> Iterator[tuple[list[int], Factor]]:
    for g in tasks.groups([id(kernel) for kernel in kernels]):
        sample = distinct(tasks.X, tasks.rows[g[0]], tasks.weights[g[0]], kernels[g[0]])
        lone = len(lams) == 1 and bool(np.all(lams[0, g] == lams[0, g[0]]))
        smallest = float(lams[:, g].min())
        yield g, make_factor(kernels[g[0]], sample, intercept, float(lams[0, g[0]]) if lone else None, smallest)


def _columns(values: list[np.ndarray], lams: np.ndarray, g: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """The columns of a group of tasks side by side, (n, K), and the lambdas of each, (L, K)."""
    columns = [values[t].reshape(len(values[t]), -1) for t in g]
    return np.concatenate(columns, axis=1), np.repeat(lams[:, g], [c.shape[1] for c in columns], axis=1)


def _share(out: list[np.ndarray], g: list[int], found: np.ndarray, values: list[np.ndarray]) -> None:
    """To each task of the group its columns of `found` (L, m, K); tasks with plain labels have one and lose the axis."""
    start = 0
    for t in g:
        width = 1 if values[t].ndim == 1 else values[t].shape[1]
        part = found[:, :, start : start + width]
        out[t] = part[:, :, 0] if values[t].ndim == 1 else part
        start += width


def _path(function: Callable[[np.ndarray, np.ndarray], np.ndarray], Z: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """function(columns, a lambda for each) -> (m, columns), for all K columns of Z and L lambdas of each: (L, m, K)."""
    L, K = lam.shape
    step = max(1, COLUMNS // K)
    parts = []
    for i in range(0, L, step):
        some = lam[i : i + step]
        found = function(np.tile(Z, (1, len(some))), some.ravel())
        parts.append(np.moveaxis(found.reshape(len(found), len(some), K), 1, 0))
    return np.concatenate(parts)


def _predict(factor: Factor, Z: np.ndarray, lam: np.ndarray, X: np.ndarray) -> np.ndarray:
    """(L, m, K)."""
    return _path(lambda columns, each: factor.predict(X, factor.solve(columns, each)), Z, lam)


def _residuals(factor: Factor, Z: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """Leave-one-out residuals (L, n, K)."""
    return _path(factor.loo, Z, lam)


def _inputs(factor: Factor, Z: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """The prediction at every distinct input without the rows that have it, (L, p, K)."""

    def left_out(means: np.ndarray, each: np.ndarray) -> np.ndarray:
        return means - factor._residuals(factor.code(means), factor.nu(each, means.shape[1]))

    return _path(left_out, factor.sample.average(Z), lam)


def _variance(factor: Factor, X: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """(L, m), in units of the leave-one-out variance; 1 for a task with a single input."""
    if factor.p == 1:
        return np.ones((len(lam), len(X)))
    return (factor.variance(X, lam) / factor.spread_of_loo(lam, len(lam))[None, :]).T


def _noise(factor: Factor, lam: np.ndarray, n: int) -> np.ndarray:
    """(L,): the share of the leave-one-out variance that is noise, as `parts.noise_shares`."""
    spread = factor.spread_of_loo(lam, len(lam)) if factor.p > 1 else 1.0
    return np.clip(n * lam / spread, 0, 1)


def _leave_one_out(
    tasks: Tasks, kernels: list[Kernel], lams: np.ndarray, intercept: bool, residuals: bool, variance: bool
) -> HeldOut:
    X, rows = tasks.X, tasks.seen
    L, T = lams.shape
    out = HeldOut(rows, tasks, [None] * T)  # type: ignore[list-item]
    left: list[np.ndarray] = [None] * T  # type: ignore[list-item]
    spread, noise_share = np.ones((L, rows.size, T)) if variance else None, np.ones((L, T))
    for g, factor in _factors(tasks, kernels, lams, intercept):
        seen, group = _known(X, rows, tasks.rows[g[0]], factor)
        Z, lam = _columns(tasks.Z, lams, g)
        scores = np.empty((L, rows.size, Z.shape[1]))
        scores[:, seen] = _inputs(factor, Z, lam)[:, group]
        if not seen.all():
            scores[:, ~seen] = _predict(factor, Z, lam, X[rows[~seen]])
        _share(out.scores, g, scores, tasks.Z)
        if residuals:
            _share(left, g, _residuals(factor, *_columns(tasks.y, lams, g)), tasks.y)
            for t in g:
                noise_share[:, t] = _noise(factor, lams[:, t], len(tasks.y[t]))
        if spread is not None and factor.p > 1:
            for t in g:
                inverse = 1 / factor.diagonal(factor.nu(lams[:, t], L))  # (p, L)
                noise = factor.n * lams[None, :, t] / factor.w[:, None]
                spread[:, seen, t] = (np.maximum(inverse - noise, 0.0) / inverse.mean(axis=0)).T[:, group]
                if not seen.all():
                    spread[:, ~seen, t] = _variance(factor, X[rows[~seen]], lams[:, t])
    if residuals:
        out.residuals, out.noise = left, noise_share
    out.variance = spread
    return out


def _known(X: np.ndarray, rows: np.ndarray, own: np.ndarray, factor: Factor) -> tuple[np.ndarray, np.ndarray]:
    """Which of `rows` have an input that the task has seen, and which of its inputs those are."""
    where = {int(r): int(j) for r, j in zip(own, factor.sample.group)}
    if len(where) < rows.size:  # a row of another task may repeat one of this task's inputs
        inputs = {tuple(X[p]): j for j, p in enumerate(factor.sample.points)}
        found = [where.get(int(r), inputs.get(tuple(X[r]), -1)) for r in rows]
    else:
        found = [where.get(int(r), -1) for r in rows]
    index = np.array(found)
    return index >= 0, index[index >= 0]
