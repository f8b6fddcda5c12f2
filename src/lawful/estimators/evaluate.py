"""Held-out errors of candidates, each level re-entered as low as it can be.

A new kernel refactors, a new lambda re-solves, a new delta or mu only re-decodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from lawful._array import to_numpy
from lawful.decoders import relaxation_path
from lawful.estimators.selection import Error, Relaxations
from lawful.kernels import Kernel, Precomputed, as_kernel
from lawful.losses import Square
from lawful.losses.objective import positive_part_center
from lawful.surrogates import HeldOut, KernelRidge
from lawful.tasks import Tasks


@dataclass(frozen=True)
class Candidate:
    """One kernel (for each task) and one kind of intercept, with the lambdas to try, (L, T)."""

    kernels: list[Kernel]
    intercept: Any
    lams: np.ndarray


@dataclass
class Evaluator:
    """The data, the folds and the error; every method takes a candidate."""

    tasks: Tasks
    constraint: Any
    loss: Any
    decoder: Any
    folds: Any
    error: Error
    deltas: np.ndarray
    mus: np.ndarray
    norm: str

    def __post_init__(self) -> None:
        self.tasks = self.tasks.encoded(self.loss)
        self.X, self.atoms = self.tasks.X, self.tasks.atoms
        held = self.tasks.seen if self.folds is None else np.concatenate([f[1] for f in self.folds])
        self.error.hold_out(held)
        # (delta, mu) of the candidates of the decode: the exact law first
        self.relaxed: Relaxations = [(None, None)]
        self.relaxed += [(float(d), None) for d in self.deltas] + [(None, float(m)) for m in self.mus]

    def tuned(self, kernel: Any, intercept: Any, random_state: Any) -> list[Kernel]:
        """A kernel per task, length scales tuned where they are "auto"."""
        kernel = as_kernel(kernel)
        T = len(self.tasks.y)
        if getattr(kernel, "sigma", None) is None or not isinstance(kernel.sigma, str):
            return [kernel] * T
        return KernelRidge(kernel, intercept=intercept, random_state=random_state).fit_tasks(self.tasks.plain()).kernels_

    def level(self, kernels: list[Kernel]) -> np.ndarray:
        """(T,) mean of k(x, x) over the inputs of each task: the scale of lambda."""
        X, t = self.X, self.tasks
        diagonals = [X[r, r] if isinstance(k, Precomputed) else to_numpy(k.diag(X[r])) for k, r in zip(kernels, t.rows)]
        return np.array([np.average(diagonal, weights=w) or 1.0 for diagonal, w in zip(diagonals, t.weights)])

    # ------------------------------------------------------------------ held-out rows

    def _held_out(self, candidate: Candidate, constrained: bool) -> Iterator[HeldOut]:
        tasks = self.tasks
        if not constrained and isinstance(self.loss, Square) and self.loss.confidence != "scores":
            tasks = tasks.plain()  # the prediction is b alone: a need not be regressed
        ridge = KernelRidge(candidate.kernels, intercept=candidate.intercept)
        variance = constrained and self.loss.needs_variance
        return ridge.held_out(tasks, self.folds, lams=candidate.lams, residuals=constrained, variance=variance)

    def _centers(self, h: HeldOut) -> np.ndarray:
        """(L, m, T) unconstrained predictions; they do not depend on the output metric."""
        if isinstance(self.loss, Square):
            a, b = (np.stack([s[:, :, j] for s in h.scores], axis=2) for j in (0, -1))
            return positive_part_center(a, b) if self.loss.confidence == "scores" else b
        L = len(h.scores[0])
        return np.stack([to_numpy(self.loss.objective([s[l] for s in h.scores], self.atoms).center) for l in range(L)])

    def _relaxed(self, h: HeldOut, l: int) -> tuple[np.ndarray, Any]:
        """Predictions (k, m, T) of the exact law, of every delta and of every mu, and the objective they minimise."""
        loss = clone(self.loss)
        loss.calibrate(h.tasks, h.at(l))
        variance = None if h.variance is None else h.variance[l]
        F = loss.objective([s[l] for s in h.scores], self.atoms, variance)
        C = self.constraint.at(self.X[h.rows])
        tubes, soft, exact = relaxation_path(F, C, self.deltas, self.mus, self.norm, self.decoder)
        return np.concatenate([to_numpy(exact)[None], to_numpy(tubes), to_numpy(soft)]), F

    # ------------------------------------------------------------------ errors

    def unconstrained(self, candidate: Candidate) -> np.ndarray:
        """(L, T) held-out error of each output for each lambda, no law."""
        return sum(self.error(self._centers(h), h.rows).sum(axis=1) for h in self._held_out(candidate, False))  # type: ignore

    def constrained(self, candidate: Candidate) -> np.ndarray:
        """(L, 1 + deltas + mus, T) with the law."""
        total: Any = 0.0
        for h in self._held_out(candidate, True):
            errors = [self.error(self._relaxed(h, l)[0], h.rows).sum(axis=1) for l in range(len(candidate.lams))]
            total = total + np.stack(errors)
        return total

    def relaxations(self, candidate: Candidate) -> tuple[np.ndarray, np.ndarray, float]:
        """At the first lambda: losses of held-out rows (k, m, T), how far each candidate goes from the exact law (k,), and
        how far the unconstrained prediction would go."""
        losses, m = [], 0
        apart: Any = 0.0
        most = 0.0
        for h in self._held_out(candidate, True):
            predicted, F = self._relaxed(h, 0)
            losses.append(self.error(predicted, h.rows))
            free = to_numpy(F.center)
            scale = np.sqrt(self.error.scale)
            apart = apart + np.linalg.norm((predicted - predicted[0]) / scale, axis=2).sum(axis=1)
            most = most + float(np.linalg.norm((free - predicted[0]) / scale, axis=1).sum())
            m += len(h.rows)
        return np.concatenate(losses, axis=1), apart / m, most / m
