"""A part of a `KernelRidge`: tasks with one kernel on the same rows, its factorisation, and its share of their predictions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from lawful._array import Array, array_namespace, device_of, like, to_numpy
from lawful.surrogates.exact import DualFactor, Factor, Solution

__all__ = ["Part", "mixed_variance", "noise_of", "noise_shares", "predict_together"]

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

    def measure(self, Y: Array) -> None:
        """Leave-one-out: residuals, and the variance of the Gaussian process that explains their size.

        (P y)_i / P_ii has variance s2 / P_ii under the model, so s2 = mean_i (P y)_i^2 / P_ii, to which labels of the same
        input add what they differ by: their noise is s2 n lambda / w.
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
        self.noise = self.s2 * self.lam * Y.shape[0]

    def variance(self, X: Array) -> Array:
        """(m, tasks): Var[f(x) | data]; the leave-one-out variance where there is a single input."""
        xp = array_namespace(X)
        if self.factor.p == 1:
            return xp.ones((X.shape[0], len(self.tasks)), dtype=X.dtype, device=device_of(X))
        return self.factor.variance(X, self.lam) * like(self.s2, X)[None, :]


def noise_of(parts: list[Part], n_tasks: int) -> np.ndarray:
    """(T,): variance of the noise of an observation of average weight."""
    noise = np.zeros(n_tasks)
    for part in parts:
        noise[part.tasks] += np.asarray(part.weight) * part.noise
    return noise


def noise_shares(parts: list[Part], n_tasks: int) -> np.ndarray:
    """(T,) in [0, 1]: n lambda / mean_i 1 / P_ii, the share of the leave-one-out variance that is noise of the labels."""
    shares = np.zeros(n_tasks)
    for part in parts:
        shares[part.tasks] += np.asarray(part.weight) * np.clip(part.noise / (part.s2 * part.spread), 0, 1)
    return shares


def predict_together(X: Array, parts: list[Part]) -> list[Array]:
    """The columns of parts with the same kernel and inputs, from one kernel matrix."""
    if len(parts) == 1 or not isinstance(parts[0].factor, DualFactor):
        return [part.factor.predict(X, part.solution) for part in parts]
    xp = array_namespace(X)
    found = parts[0].factor.cross(X) @ xp.concat([part.solution.coef for part in parts], axis=1)
    out, start = [], 0
    for part in parts:
        end = start + part.solution.coef.shape[1]
        out.append(found[:, start:end] + part.solution.beta[None, :])
        start = end
    return out


def mixed_variance(X: Array, parts: list[Part], widths: list[int], columns: Iterable[tuple[Part, Array]]) -> Array:
    """(m, T): the average of the variances of a task's parts, and the spread of their predictions (`columns`, if any)."""
    xp, T = array_namespace(X), len(widths)
    zero = xp.zeros(X.shape[0], dtype=X.dtype, device=device_of(X))
    variance, mean, square = [zero] * T, [zero] * T, [zero] * T
    for part in parts:
        found = part.variance(X)
        for i, t in enumerate(part.tasks):
            variance[t] = variance[t] + part.weight[i] * found[:, i]
    labels: list[Array] = [None] * T
    for part, found in columns:
        ends = np.cumsum([widths[t] for t in part.tasks]) - 1  # the labels are the last column of their encoding
        for i, t in enumerate(part.tasks):
            labels[t] = found[:, int(ends[i])] if labels[t] is None else labels[t]
            apart = found[:, int(ends[i])] - labels[t]  # differences from one of them, so that nothing cancels
            mean[t], square[t] = mean[t] + part.weight[i] * apart, square[t] + part.weight[i] * apart**2
    return xp.stack([v + xp.where(q > m**2, q - m**2, zero) for v, m, q in zip(variance, mean, square)], axis=1)
