"""A part of a `KernelRidge`: tasks with one kernel on the same rows, its factorisation, and its share of their predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from lawful._array import Array, array_namespace, device_of, like, to_numpy
from lawful.surrogates.exact import DualFactor, Factor, Solution

__all__ = ["Part", "at", "mixed_means", "mixed_variance", "noise_of", "noise_shares", "observed_std"]

CROSS_ENTRIES = 2**24  # largest piece of a cross-kernel matrix held at once
SMALL = 1e-200  # variances of constant labels are not zero, so that ratios of them exist


@dataclass
class Part:
    """tasks, weight and lam have one entry for each task."""

    tasks: list[int]
    weight: list[float]
    lam: np.ndarray
    factor: Factor
    solution: Solution
    residuals: Array = None  # (n, tasks), leave-one-out; forgotten by a state, which keeps their average over the parts
    spread: np.ndarray = field(default_factory=lambda: np.ones(0))  # mean of 1 / P_ii
    s2: np.ndarray = field(default_factory=lambda: np.ones(0))  # the variance that makes standardised residuals have size 1
    noise: np.ndarray = field(default_factory=lambda: np.ones(0))  # variance of an observation of average weight

    def measure(self, Y: Array, noise: float | None = None) -> None:
        """Leave-one-out: residuals, and the variance of the Gaussian process that explains their size.

        (P y)_i / P_ii has variance s2 / P_ii under the model, so s2 = mean_i (P y)_i^2 / P_ii, to which labels of the same
        input add what they differ by: their noise is s2 n lambda / w. Where `noise` is known, so is s2.
        """
        factor, k = self.factor, len(self.tasks)
        self.residuals = factor.loo(Y, self.lam)
        self.spread, self.s2 = np.ones(k), np.ones(k)
        if factor.p > 1:
            means = factor.sample.average(Y)
            diagonal = to_numpy(factor.diagonal(factor.nu(self.lam, k)))
            left = to_numpy(means - factor.left_out(means, self.lam))
            self.spread = (1 / diagonal).mean(axis=0)
            squares = (left**2 * diagonal).sum(axis=0) + factor.within(Y) / (factor.n * self.lam)
            self.s2 = np.maximum(squares / Y.shape[0], SMALL)
        if noise is not None:
            self.s2 = noise / (self.lam * Y.shape[0])
        self.noise = self.s2 * self.lam * Y.shape[0]

    def variance(self, X: Array, *cross: Array) -> Array:
        """(m, tasks): Var[f(x) | data]; the leave-one-out variance where there is a single input."""
        xp = array_namespace(X)
        if self.factor.p == 1:
            return xp.ones((X.shape[0], len(self.tasks)), dtype=X.dtype, device=device_of(X))
        return self.factor.variance(X, self.lam, *cross) * like(self.s2, X)[None, :]


def noise_of(parts: list[Part], n_tasks: int) -> np.ndarray:
    """(T,): variance of the noise of an observation of average weight."""
    noise = np.zeros(n_tasks)
    for part in parts:
        noise[part.tasks] += np.asarray(part.weight) * part.noise
    return noise


def observed_std(X: Array, variance: Array, parts: list[Part], sizes: list[int], tuned: int, shared: bool) -> Array:
    """(m, T): standard deviation of a new observation, from the variance (m, T) of predictions.

    Residuals are smaller than errors by what was `tuned` on them, so many parameters a task; but what all tasks say of a noise
    that they share is not lost.
    """
    n, noise = np.array(sizes, dtype=float), noise_of(parts, len(sizes))
    lost = n / np.maximum(n - tuned, 0.5 * n)
    return array_namespace(X).sqrt(variance * like(lost, X)[None, :] + like(noise if shared else noise * lost, X)[None, :])


def noise_shares(parts: list[Part], n_tasks: int) -> np.ndarray:
    """(T,) in [0, 1]: n lambda / mean_i 1 / P_ii, the share of the leave-one-out variance that is noise of the labels."""
    shares = np.zeros(n_tasks)
    for part in parts:
        shares[part.tasks] += np.asarray(part.weight) * np.clip(part.noise / (part.s2 * part.spread), 0, 1)
    return shares


class At(NamedTuple):
    """What a part says of m inputs."""

    part: Part
    columns: Array  # (m, widths of its tasks), predictions
    variance: Array = None  # (m, tasks)


def at(X: Array, parts: list[Part], variance: bool = False) -> Iterator[At]:
    """Every part at X. Parts that have the same kernel and inputs share the kernel's values, and so do predictions and
    variances, of which the kernel is the larger part of the price."""
    xp = array_namespace(X)
    together: dict[tuple[int, int], list[Part]] = {}
    for part in parts:
        together.setdefault((id(part.factor.kernel), id(part.factor.sample)), []).append(part)
    for group in together.values():
        dual = isinstance(group[0].factor, DualFactor)  # the others go through the rows in blocks of their own
        size = max(1, CROSS_ENTRIES // group[0].factor.p if dual else X.shape[0])
        pieces = [X[i : min(i + size, X.shape[0]), :] for i in range(0, max(X.shape[0], 1), size)]
        found = [_group_at(piece, group, variance) for piece in pieces]
        for k, part in enumerate(group):
            several = len(found) > 1
            columns = xp.concat([f[k].columns for f in found], axis=0) if several else found[0][k].columns
            spread = xp.concat([f[k].variance for f in found], axis=0) if several and variance else found[0][k].variance
            yield At(part, columns, spread)


def _group_at(X: Array, parts: list[Part], variance: bool) -> list[At]:
    """Parts with the same kernel and inputs, from one kernel matrix."""
    factor = parts[0].factor
    if not isinstance(factor, DualFactor):
        return [At(part, part.factor.predict(X, part.solution), part.variance(X) if variance else None) for part in parts]
    cross = factor.cross(X)
    found = cross @ array_namespace(X).concat([part.solution.coef for part in parts], axis=1)
    out, start = [], 0
    for part in parts:
        end = start + part.solution.coef.shape[1]
        columns = found[:, start:end] + part.solution.beta[None, :]
        out.append(At(part, columns, part.variance(X, cross) if variance else None))
        start = end
    return out


def mixed_means(found: Iterable[At], widths: list[int]) -> list[Array]:
    """T arrays (m, width): the average of the predictions of a task's parts."""
    out: list[Array] = [None] * len(widths)
    for part, columns, _ in found:
        start = 0
        for i, t in enumerate(part.tasks):
            mine = columns[:, start : start + widths[t]]
            mine = mine if part.weight[i] == 1 else part.weight[i] * mine
            out[t] = mine if out[t] is None else out[t] + mine
            start += widths[t]
    return out


def mixed_variance(X: Array, found: Iterable[At], widths: list[int]) -> Array:
    """(m, T): the average of the variances of a task's parts, and the spread of their predictions."""
    xp, T = array_namespace(X), len(widths)
    zero = xp.zeros(X.shape[0], dtype=X.dtype, device=device_of(X))
    variance, mean, square = [zero] * T, [zero] * T, [zero] * T
    labels: list[Array] = [None] * T
    for part, columns, own in found:
        ends = np.cumsum([widths[t] for t in part.tasks]) - 1  # the labels are the last column of their encoding
        for i, t in enumerate(part.tasks):
            variance[t] = variance[t] + part.weight[i] * own[:, i]
            labels[t] = columns[:, int(ends[i])] if labels[t] is None else labels[t]
            apart = columns[:, int(ends[i])] - labels[t]  # differences from one of them, so that nothing cancels
            mean[t], square[t] = mean[t] + part.weight[i] * apart, square[t] + part.weight[i] * apart**2
    return xp.stack([v + xp.where(q > m**2, q - m**2, zero) for v, m, q in zip(variance, mean, square)], axis=1)
