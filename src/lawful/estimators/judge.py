"""Held-out predictions of a portfolio, judged after the decode.

A law forgives some errors and not others: what a projection removes does not count, so the member that predicts best need not
be the one whose lawful predictions are best. The judge decodes held-out predictions with sets that were fitted without their
labels and an output metric from the same residuals, and gives each row its squared error over the variance of the output.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from lawful._array import to_numpy
from lawful.decoders import decode
from lawful.sets import Reals
from lawful.surrogates.base import Calibration, Fold
from lawful.tasks import Tasks

__all__ = ["AfterDecode"]

ROWS = 400  # decoded for each candidate


class AfterDecode:
    """`judge(folds, predictions, residuals)` for `Portfolio.fit_tasks`; `fit_law` and `calibrate` are those of `base`."""

    def __init__(self, tasks: Tasks, constraint: Any, loss: Any, decoder: Any, fit_law: Any, calibrate: Any) -> None:
        self.tasks, self.constraint, self.loss, self.decoder = tasks, constraint, loss, decoder
        self.fit_law, self.calibrate = fit_law, calibrate
        self.laws: list[Any] = []

    @staticmethod
    def matters(constraint: Any, loss: Any) -> bool:
        """Whether there is a law, and the loss starts from predictions of the labels themselves."""
        return not isinstance(constraint, Reals) and loss.regresses_labels and not loss.needs_variance

    def __call__(self, folds: list[Fold], predictions: np.ndarray, residuals: list[np.ndarray]) -> np.ndarray:
        if not self.laws:
            self.laws = [self.fit_law(clone(self.constraint), self.tasks.take(train)) for train, _ in folds]
        Y, weight = self.tasks.Y, self.tasks.weight
        unit = np.nanvar(Y, axis=0)
        share = np.where(unit > 0, 1 / np.where(unit > 0, unit, 1.0), 0.0)
        loss = clone(self.loss)
        self.calibrate(loss, self.tasks, Calibration(residuals), self.laws[0])
        out = np.full(len(Y), np.nan)
        for law, (_, test) in zip(self.laws, folds):
            rows = np.sort(np.random.default_rng(0).permutation(test)[: -(-ROWS // len(folds))])
            scores = [np.stack([np.ones(len(rows)), p], axis=1) for p in predictions[rows].T]
            C = law.in_metric(getattr(loss, "metric_", None)).at(self.tasks.X[rows])
            c = to_numpy(decode(loss.objective(scores, self.tasks.atoms), C, self.decoder).c)
            errors = np.where(np.isnan(Y[rows]), 0.0, (c - Y[rows]) ** 2) * weight[rows] * share
            out[rows] = errors.sum(axis=1)
        return out
