"""The regress step: g_t(x) = sum_i alpha_it(x) Z_it for every task t.

A surrogate is a `Surrogate` with

* `fit_tasks(tasks)`: T regressions of the encoded labels Z of `lawful.tasks.Tasks`; the raw labels y are for tuning and
  residuals. Returns self.
* `predict_tasks(X)`: T arrays (m, k_t).
* `residuals()`: T arrays (n_t,), out-of-sample residuals of y (leave-one-out or cross-validated).
* `held_out(tasks, folds)`: what the rows of each fold look like from outside. The base class refits for every fold.

and, where its mathematics has it, any of these capabilities, which are asked for by name:

* `variance(X)`: (m, T) variance of the prediction of each task, in units of its leave-one-out error;
* `std(X)`: (m, T) standard deviation of a new observation of each task, calibrated on leave-one-out residuals;
* `noise_share()`: (T,) how much of the variance of the residuals is noise of the labels (the rest is error of prediction);
* `held_out(..., lams=)`: a whole path of lambdas at once, and `loo = True`: leave-one-out without refitting;
* `raw = True`: X comes as the user gave it where that is a DataFrame (`tasks.inputs_of(self)`), and `allow_nan`: gaps in X may;
* `update(tasks)`: learn from more rows, as if all had been given to `fit_tasks` at once;
* `state()` and `from_state(state)`: the arrays that are the fitted model, as a dict of numbers, strings, lists, dicts and
  NumPy arrays, and the model made from them, with the same predictions to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if

from lawful._array import to_numpy
from lawful.saving.models import Savable, as_plain
from lawful.tasks import Tasks, rows_of

__all__ = ["Calibration", "Fold", "HeldOut", "Surrogate", "predicted", "training_part"]

Fold = tuple[np.ndarray, np.ndarray]  # rows to learn from, rows held out


@dataclass
class Calibration:
    """Stands for a fitted surrogate where a loss only asks for its residuals (and that a variance exists)."""

    values: list[np.ndarray]
    noise: np.ndarray | None = None

    @available_if(lambda self: self.noise is not None)
    def noise_share(self) -> np.ndarray | None:
        return self.noise

    def residuals(self) -> list[np.ndarray]:
        return self.values

    def variance(self, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError("variances of held-out rows are in HeldOut.variance")


@dataclass
class HeldOut:
    """Rows predicted by surrogates that have not seen their labels; L of them (a path of lambdas, or one).

    For every task t, surrogate l and held-out row i:

        scores[t][l, i]     (k_t,) the regressed encodings at x_i, learned without row i
        residuals[t][l]     (n_t,) the out-of-sample residuals of the labels it learned from (they calibrate an output metric)
        noise[l, t]         the share of noise in their variance, where the surrogate knows it
        variance[l, i, t]   the predictive variance at x_i in units of the leave-one-out error

    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> Y = np.c_[np.cos(X), np.sin(X)]
    >>> from lawful import KernelRidge
    >>> from lawful.kernels import Gaussian
    >>> from lawful.tasks import Tasks
    >>> tasks, fold = Tasks.read(KernelRidge(), X, Y), (np.arange(20), np.arange(20, 30))
    >>> found = next(iter(KernelRidge(Gaussian(1.0), lam=1e-3).held_out(tasks, [fold])))
    >>> found.rows.shape, found.scores[0].shape
    ((10,), (1, 10, 1))
    """

    rows: np.ndarray
    tasks: Tasks  # what was learned from; for leave-one-out, all
    scores: list[np.ndarray]
    residuals: list[np.ndarray] | None = None
    variance: np.ndarray | None = None
    noise: np.ndarray | None = None

    def times(self, weight: list[float]) -> HeldOut:
        """Its scores, residuals and variances times a number for each task."""
        out = HeldOut(self.rows, self.tasks, [w * s for w, s in zip(weight, self.scores)])
        out.residuals = None if self.residuals is None else [w * r for w, r in zip(weight, self.residuals)]
        out.variance = None if self.variance is None else np.asarray(weight) * self.variance
        out.noise = None if self.noise is None else np.asarray(weight) * self.noise
        return out

    def plus(self, other: HeldOut) -> HeldOut:
        """The sum of both, of the same rows."""
        out = HeldOut(self.rows, self.tasks, [a + b for a, b in zip(self.scores, other.scores)])
        if self.residuals is not None and other.residuals is not None:
            out.residuals = [a + b for a, b in zip(self.residuals, other.residuals)]
        if self.variance is not None and other.variance is not None:
            out.variance = self.variance + other.variance
        if self.noise is not None and other.noise is not None:
            out.noise = self.noise + other.noise
        return out

    def at(self, l: int) -> Calibration:
        """The residuals of the l-th surrogate, in the form a loss asks for them."""
        assert self.residuals is not None
        return Calibration([r[l] for r in self.residuals], None if self.noise is None else self.noise[l])


class Surrogate(Savable, BaseEstimator):
    """A regress step. See the module's docstring for the interface.

    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> Y = np.c_[np.cos(X), np.sin(X)]
    >>> from lawful import KernelRidge
    >>> from lawful.kernels import Gaussian
    >>> from lawful.tasks import Tasks
    >>> model = KernelRidge(Gaussian(1.0), lam=1e-3).fit_tasks(Tasks.read(KernelRidge(), X, Y))
    >>> [g.shape for g in model.predict_tasks(X[:5])], [r.shape for r in model.residuals()]
    ([(5, 1), (5, 1)], [(30,), (30,)])
    """

    loo = False  # whether leave-one-out needs no refitting
    raw = False  # whether X is taken as the user gave it
    allow_nan: Any = False  # whether X may have gaps
    _single = False  # whether y was a vector, and predictions are

    @property
    def fitted(self) -> bool:
        return any(key.endswith("_") and not key.startswith("_") for key in vars(self))

    def fit_tasks(self, tasks: Tasks) -> Self:
        raise NotImplementedError

    def _example(self) -> tuple[Any, Any] | None:
        X = self.state()["X"][:1] if hasattr(self, "state") else np.empty((0, 0))
        return (X, self._repeat(X)) if X.size else None

    def _repeat(self, inputs: Any) -> Any:
        return as_plain(self.predict_tasks(inputs))

    def _rehearse(self, X: Any) -> None:
        if hasattr(self, "predict") and hasattr(self, "n_features_in_"):  # it was fitted alone
            self.predict(X)
        self.predict_tasks(X)
        for name in ("variance", "std", "covariance"):
            if hasattr(self, name):
                getattr(self, name)(X)

    def predict_tasks(self, X: Any) -> list[Any]:
        raise NotImplementedError

    def residuals(self) -> list[Any]:
        raise NotImplementedError

    def errors(self) -> np.ndarray:
        """(T,) root mean squares of the residuals."""
        return np.array([np.sqrt(np.mean(np.asarray(to_numpy(r)) ** 2)) for r in self.residuals()])

    def held_out(
        self, tasks: Tasks, folds: list[Fold] | None, *, residuals: bool = False, variance: bool = False
    ) -> Iterator[HeldOut]:
        """One `HeldOut` for each fold (train, held out), by refitting; or one for leave-one-out when `folds` is None.

        `residuals` and `variance` say whether these are wanted too. Leave-one-out leaves out inputs, so that rows with equal
        ones go together; its residuals are those of a fit on all rows.
        """
        if folds is None:
            yield self._leave_one_out(tasks, residuals, variance)
            return
        for k, (train, test) in enumerate(folds):
            part = training_part(tasks, k, train)
            yield predicted(clone(self).fit_tasks(part), part, rows_of(tasks.inputs_of(self), test), test, residuals, variance)

    def _need_variance(self) -> None:
        if not hasattr(self, "variance"):
            raise ValueError(
                f"{type(self).__name__} has no predictive variance here, and the loss wants one; a KernelRidge on at most 3000 "
                'rows with a kernel such as Gaussian(), or Square(confidence="none"), would do'
            )

    def _leave_one_out(self, tasks: Tasks, residuals: bool, variance: bool) -> HeldOut:
        rows = tasks.seen
        inputs = np.unique(to_numpy(tasks.X)[rows], axis=0, return_inverse=True)[1].reshape(-1)
        folds = [(rows[inputs != j], rows[inputs == j]) for j in range(inputs.max() + 1)]
        parts = list(Surrogate.held_out(self, tasks, folds, variance=variance))
        order = np.argsort(np.concatenate([part.rows for part in parts]))
        scores = [np.concatenate([part.scores[t] for part in parts], axis=1)[:, order] for t in range(len(tasks))]
        out = HeldOut(rows, tasks, scores)
        if residuals:
            out.residuals, out.noise = _calibration(clone(self).fit_tasks(tasks))
        if variance:
            out.variance = np.concatenate([part.variance for part in parts], axis=1)[:, order]  # type: ignore[misc]
        return out


def predicted(model: Any, part: Tasks, X: Any, test: np.ndarray, residuals: bool, variance: bool) -> HeldOut:
    """What a surrogate that was fitted on `part` says of the rows `test`, whose inputs are X."""
    if variance:
        model._need_variance()
    out = HeldOut(test, part, [to_numpy(z)[None] for z in model.predict_tasks(X)])
    if residuals:
        out.residuals, out.noise = _calibration(model)
    out.variance = to_numpy(model.variance(X))[None] if variance else None
    return out


def _calibration(model: Any) -> tuple[list[np.ndarray], np.ndarray | None]:
    """Residuals and their share of noise, each with an axis for one surrogate."""
    return [to_numpy(r)[None] for r in model.residuals()], model.noise_share()[None] if hasattr(model, "noise_share") else None


def training_part(tasks: Tasks, k: int, train: np.ndarray) -> Tasks:
    """What fold k learns from: something of every task, or an error that names the tasks that lost all."""
    part = tasks.take(train)
    lost = [name for name, y in zip(tasks.output_names, part.y) if not y.shape[0]]
    if lost:
        raise ValueError(
            f"fold {k} leaves output {', '.join(map(repr, lost))} without any observation to learn from; "
            "give other folds, such as those of lawful.folds.make_folds"
        )
    return part
