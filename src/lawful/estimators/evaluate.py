"""Held-out losses of candidates, each level re-entered as low as it can be.

A new surrogate (a kernel, say) refits, a new lambda re-solves, a new delta or mu only re-decodes. The surrogate is asked for
its held-out predictions, in closed form where it has one; sets, which may learn from labels (a cloud of them, say), are fitted
anew without the labels of the rows that they will be judged on. For leave-one-out that would be a set for every row: there the
rows are dealt into a few parts, rows with equal inputs together, and each part is decoded with a set that has seen none of its
labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from lawful._array import to_numpy
from lawful.decoders import relaxation_path
from lawful.estimators.base import calibrate, fit_law
from lawful.estimators.selection import HeldOutLoss, Relaxations
from lawful.surrogates import HeldOut, Surrogate
from lawful.surrogates.base import Fold
from lawful.tasks import Tasks

LAW_PARTS = 5  # sets fitted for leave-one-out, each without the labels of its share of the inputs


@dataclass(frozen=True)
class Candidate:
    """A surrogate, with the lambdas (L, T) to try in place of its own if it can follow a path; and what to call it."""

    surrogate: Surrogate
    lams: np.ndarray | None
    labels: dict[str, Any]  # column of the table -> one value, or one for each task

    def at(self, lams: np.ndarray) -> Candidate:
        return Candidate(self.surrogate, lams, self.labels)


@dataclass
class Evaluator:
    """The data, the folds and the loss; every method takes a candidate. `constraint` need not be fitted."""

    tasks: Tasks
    constraint: Any
    loss: Any
    decoder: Any
    folds: list[Fold] | None
    error: HeldOutLoss
    deltas: np.ndarray
    mus: np.ndarray
    norm: str

    def __post_init__(self) -> None:
        self.tasks = self.tasks.encoded(self.loss)
        held = self.tasks.seen if self.folds is None else np.concatenate([f[1] for f in self.folds])
        self.error.hold_out(held)
        # (delta, mu) of the candidates of the decode: the exact law first
        self.relaxed: Relaxations = [(None, None)]
        self.relaxed += [(float(d), None) for d in self.deltas] + [(None, float(m)) for m in self.mus]
        self.laws = self._laws()

    # ------------------------------------------------------------------ laws

    def _laws(self) -> list[list[tuple[np.ndarray, Any]]]:
        """For each fold, places among its held-out rows and a set that has seen none of their labels."""
        if self.folds is not None:
            return [[(np.arange(len(test)), self._law(train, k))] for k, (train, test) in enumerate(self.folds)]
        rows = self.tasks.seen
        inputs = np.unique(self.tasks.X[rows], axis=0, return_inverse=True)[1].reshape(-1)
        count = int(inputs.max()) + 1
        if count == 1:  # a single input: no row is left to learn from
            return [[(np.arange(len(rows)), self._law(rows, 0))]]
        part = np.random.default_rng(0).permutation(count)[inputs] % min(LAW_PARTS, count)
        return [[(np.flatnonzero(part == k), self._law(rows[part != k], k)) for k in range(part.max() + 1)]]

    def _law(self, train: np.ndarray, k: int) -> Any:
        try:
            return fit_law(clone(self.constraint), self.tasks.take(train))
        except ValueError as error:
            raise ValueError(f"the law cannot be fitted without the held-out rows of fold {k}: {error}") from error

    # ------------------------------------------------------------------ held-out rows

    def _held_out(self, candidate: Candidate, constrained: bool) -> Iterator[HeldOut]:
        tasks = self.tasks
        if not constrained and self.loss.regresses_labels:
            tasks = tasks.plain()
        wanted: dict[str, Any] = {"residuals": constrained, "variance": constrained and self.loss.needs_variance}
        if candidate.lams is not None:
            wanted["lams"] = candidate.lams
        return candidate.surrogate.held_out(tasks, self.folds, **wanted)

    def _centers(self, h: HeldOut) -> np.ndarray:
        """(L, m, T) unconstrained predictions; they do not depend on the output metric."""
        if self.loss.regresses_labels:
            return np.stack([s[:, :, 0] for s in h.scores], axis=2)
        L, m = h.scores[0].shape[:2]
        return to_numpy(self.loss.center([s.reshape(L * m, -1) for s in h.scores], self.tasks.atoms)).reshape(L, m, -1)

    def _relaxed(self, h: HeldOut, l: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Predictions (r, m, T) of the exact law, of every delta and of every mu; and those of no law (m, T)."""
        loss = clone(self.loss)
        calibrate(loss, h.tasks, h.at(l), self.laws[k][0][1])
        F = loss.objective([s[l] for s in h.scores], self.tasks.atoms, None if h.variance is None else h.variance[l])
        out = np.empty((len(self.relaxed), *F.shape))
        for places, law in self.laws[k]:
            part = F if len(places) == len(h.rows) else F.rows(places)
            C = law.at(self.tasks.X[h.rows[places]])
            tubes, soft, exact = relaxation_path(part, C, self.deltas, self.mus, self.norm, self.decoder)
            out[:, places] = np.concatenate([to_numpy(exact)[None], to_numpy(tubes), to_numpy(soft)])
        return out, to_numpy(F.center)

    # ------------------------------------------------------------------ losses

    def unconstrained(self, candidate: Candidate) -> np.ndarray:
        """(L, T) held-out loss of each output for each lambda, no law."""
        return sum(self.error(self._centers(h), h.rows).sum(axis=1) for h in self._held_out(candidate, False))  # type: ignore

    def constrained(self, candidate: Candidate) -> np.ndarray:
        """(L, 1 + deltas + mus, T) with the law."""
        total: Any = 0.0
        for k, h in enumerate(self._held_out(candidate, True)):
            losses = [self.error(self._relaxed(h, l, k)[0], h.rows).sum(axis=1) for l in range(len(h.scores[0]))]
            total = total + np.stack(losses)
        return total

    def relaxations(self, candidate: Candidate) -> tuple[np.ndarray, np.ndarray, float]:
        """At the first lambda: losses of held-out rows (r, m, T), how far each candidate goes from the exact law (r,), and
        how far the unconstrained prediction would go."""
        losses, m = [], 0
        apart: Any = 0.0
        most = 0.0
        for k, h in enumerate(self._held_out(candidate, True)):
            predicted, free = self._relaxed(h, 0, k)
            losses.append(self.error(predicted, h.rows))
            scale = np.sqrt(self.error.scale)
            apart = apart + np.linalg.norm((predicted - predicted[0]) / scale, axis=2).sum(axis=1)
            most = most + float(np.linalg.norm((free - predicted[0]) / scale, axis=1).sum())
            m += len(h.rows)
        return np.concatenate(losses, axis=1), apart / m, most / m
