"""`KernelRidge`: the paper's regress step, one kernel ridge regression for each task.

    g_t(x) = sum_i alpha_it(x) Z_it,      alpha_t(x) = (K_t + n_t lambda_t I)^-1 K_tx          (eq:estimator-multitask)

Tasks seen on the same rows with the same weights and the same kernel form a group and share one factorisation.

With a fixed intercept beta_t (a mean known from elsewhere) the ridge without a constant learns what is left of it:
g_t(x) = beta_t + sum_i alpha_it(x) (y_it - beta_t), and constant columns of Z are known without learning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lawful._array import Array, array_namespace, device_of, like, to_numpy
from lawful.kernels import Gaussian, Kernel, Precomputed, as_kernel
from lawful.surrogates.base import Fold, HeldOut, Surrogate
from lawful.surrogates.exact import Factor, Sample, distinct
from lawful.surrogates.factorise import make_factor
from lawful.surrogates.held_out import held_out
from lawful.surrogates.intercepts import without_base
from lawful.surrogates.scales import informative, tuned_kernels, without_unit
from lawful.surrogates.state import ridge_from_state, ridge_state
from lawful.surrogates.tuning import best_lam
from lawful.tasks import Tasks, check_inputs

__all__ = ["KernelRidge"]

VARIANCE_ROWS = 3000  # beyond, factors are not kept and there is no predictive variance
CROSS_ENTRIES = 2**24  # largest piece of a cross-kernel matrix held at once


def _has_variance(ridge: KernelRidge) -> bool:
    # k(x, x) is not among precomputed entries; and n^2 numbers per predicted row are too many for large n
    return not isinstance(ridge.kernel, Precomputed) and getattr(ridge, "n_rows_", 0) <= VARIANCE_ROWS


class KernelRidge(RegressorMixin, Surrogate):
    """Kernel ridge regression of every task, with an unpenalised intercept.

    Parameters
    ----------
    kernel : a kernel of `lawful.kernels` or a function k(X, Z) -> (n, m), or a list of one for each task; None is
        `Gaussian("auto")`. With
        sigma="auto" one length scale per input is tuned by leave-one-out (see `tuning`) and `kernel_` holds it in
        the units of the inputs. Any other sigma is exactly the kernel as written, on the raw inputs.
    scales : "shared" (all tasks have the same length scales: one factorisation), "task" (each has its own: outputs of
        different smoothness are learned better) or "auto": "task" when every task has ten
        rows per input (a hundred for a single input) and the factorisations remain cheap, else "shared".
    lam : "auto" (for each task, by leave-one-out), "consistent" (n_t^-1/4) or "rate" (n_t^-1/2), the choices of the
        paper's theorems, one number, or one per task.
    intercept : whether each regression has an unpenalised constant; the scores alpha(x) then sum to one. Or T numbers: fixed
        constants, to which predictions return far from the data (the mean of a cloud of outputs, say).
    random_state : draws the rows used to tune length scales when there are more than `max_tuning_rows`.
    max_tuning_rows : length scales are tuned on at most so many distinct inputs, then all rows choose lambda.
    verbose : print the progress of tuning.

    Attributes
    ----------
    kernels_ (a list of T kernels, with numbers for length scales), kernel_ (the kernel that all tasks share, if they do),
    lam_ (T,), loo_mse_ (T,), groups_ (lists of tasks that share a factorisation).
    """

    def __init__(
        self,
        kernel: Any = None,
        lam: Any = "auto",
        intercept: Any = True,
        scales: str = "auto",
        random_state: Any = None,
        max_tuning_rows: int = 300,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.lam = lam
        self.intercept = intercept
        self.scales = scales
        self.random_state = random_state
        self.max_tuning_rows = max_tuning_rows
        self.verbose = verbose

    def set_params(self, **params: Any) -> Self:
        if self.kernel is None and "kernel" not in params and any(key.startswith("kernel__") for key in params):
            self.kernel = Gaussian()  # so that kernel__sigma has something to set
        return super().set_params(**params)

    # the surrogate protocol

    loo = True

    def fit_tasks(self, tasks: Tasks) -> Self:
        X, xp = tasks.X, array_namespace(tasks.X)
        tasks, intercept, self._bases = without_base(self.intercept, tasks)
        y, Z = tasks.y, tasks.Z
        kernel = self._given_kernels(len(tasks))
        samples = self._samples(tasks, kernel[0])
        self.lam_ = self._given_lam([float(to_numpy(w).sum()) for w in tasks.weights])
        scaled = [without_unit(v, w) for v, w in zip(y, tasks.weights)]
        self.kernels_ = tuned_kernels(self, intercept, kernel, X, samples, scaled, None if self._auto else self.lam_)
        self.__dict__.pop("kernel_", None)  # of an earlier fit
        if all(k is self.kernels_[0] for k in self.kernels_):
            self.kernel_ = self.kernels_[0]
        self.groups_ = tasks.groups([id(k) for k in self.kernels_])
        self.loo_mse_ = np.zeros(len(y))
        self.n_rows_ = max(sample.points.shape[0] for sample in samples)
        self._residuals: list[Array] = [None] * len(y)
        self._factors, self._solutions, self._widths = [], [], [z.shape[1] for z in Z]
        self._loo_variance = np.ones(len(y))
        for g in self.groups_:
            sample, Y = samples[g[0]], xp.stack([y[t] for t in g], axis=1)
            alike = not self._auto and bool(np.all(self.lam_[g] == self.lam_[g[0]]))
            factor = make_factor(self.kernels_[g[0]], sample, intercept, self.lam_[g[0]] if alike else None)
            if self._auto:
                self.lam_[g] = self._auto_lam(factor, xp.stack([scaled[t] for t in g], axis=1))
            lam = self.lam_[g]
            residuals = factor.loo(Y, lam)
            squares = sample.share[:, None] * sample.spread(sample.weights)[:, None] * residuals**2
            self.loo_mse_[g] = to_numpy(xp.sum(squares, axis=0)) / factor.n
            if factor.p > 1:
                self._loo_variance[g] = to_numpy(factor.spread_of_loo(lam, len(g)))
            for i, t in enumerate(g):
                self._residuals[t] = residuals[:, i]
            self._factors.append(factor)
            self._solutions.append(
                factor.solve(xp.concat([Z[t] for t in g], axis=1), np.repeat(lam, [self._widths[t] for t in g]))
            )
            factor.slim(keep=self.n_rows_ <= VARIANCE_ROWS)
        return self

    def predict_tasks(self, X: Array) -> list[Array]:
        check_is_fitted(self, "kernels_")
        xp = array_namespace(X)
        out: list[Array] = [None] * len(self._widths)
        for g, factor, solution in zip(self.groups_, self._factors, self._solutions):
            size = max(1, CROSS_ENTRIES // factor.p)
            pieces = [factor.predict(X[i : min(i + size, X.shape[0]), :], solution) for i in range(0, max(X.shape[0], 1), size)]
            columns = xp.concat(pieces, axis=0) if len(pieces) > 1 else pieces[0]
            start = 0
            for t in g:
                out[t] = columns[:, start : start + self._widths[t]]
                if self._bases is not None:
                    out[t] = out[t] + like(self._bases[t], X)[None, :]
                start += self._widths[t]
        return out

    def residuals(self) -> list[Array]:
        """Leave-one-input-out residuals of y, one array per task."""
        check_is_fitted(self, "kernels_")
        return list(self._residuals)

    def held_out(
        self,
        tasks: Tasks,
        folds: list[Fold] | None,
        *,
        lams: np.ndarray | None = None,
        residuals: bool = False,
        variance: bool = False,
    ) -> Iterator[HeldOut]:
        """As every surrogate; for a path of lambdas (L, T) in place of `lam` from one factorisation for each fold.

        Leave-one-out is in closed form, with n lambda and what was tuned held fixed. Folds tune for themselves: only where
        nothing is left to tune do they share work.
        """
        if variance:
            self._need_variance()
        if lams is None and (self._tunes or isinstance(self.lam, str)):
            if folds is not None:
                yield from super().held_out(tasks, folds, residuals=residuals, variance=variance)
                return
            model = clone(self).fit_tasks(tasks)
            kernels, lams = model.kernels_, model.lam_[None, :]
        else:
            kernels = self._given_kernels(len(tasks))
            kernels = kernels * len(tasks) if len(kernels) == 1 else kernels
            lams = self._given_lam([1.0] * len(tasks))[None, :] if lams is None else lams
        left, intercept, bases = without_base(self.intercept, tasks)
        found = held_out(left, kernels, lams, intercept, folds, residuals, variance)
        for k, h in enumerate(found):
            if bases is not None:
                h.scores = [s + base[None, None, :] for s, base in zip(h.scores, bases)]
                h.tasks = tasks if folds is None else tasks.take(folds[k][0])
            yield h

    @available_if(_has_variance)
    def variance(self, X: Array) -> Array:
        """(m, T): variance of the prediction at x, relative to the leave-one-out variance of an observation.

        kriging variance / mean_i 1 / P_ii: in the Gaussian process view, Var[f_t(x) | data] in units of the expected
        leave-one-out error, so that loo_mse_[t] times this estimates the squared error of the prediction. 1 everywhere for
        a task with a single input.
        """
        check_is_fitted(self, "kernels_")
        xp = array_namespace(X)
        out: list[Array] = [None] * len(self._widths)
        for g, factor in zip(self.groups_, self._factors):
            if factor.p == 1:
                ratio = xp.ones((X.shape[0], len(g)), dtype=X.dtype, device=device_of(X))
            else:
                ratio = factor.variance(X, self.lam_[g]) / like(self._loo_variance[g], X)[None, :]
            for i, t in enumerate(g):
                out[t] = ratio[:, i]
        return xp.stack(out, axis=1)

    def state(self) -> dict[str, Any]:
        """The fitted ridge as a dict of arrays, numbers, strings and lists; see `surrogates.state`."""
        check_is_fitted(self, "kernels_")
        return ridge_state(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The ridge that `state()` described, with the same predictions to the last bit."""
        return ridge_from_state(cls, state)

    # its parts

    @property
    def _tunes(self) -> bool:
        """Whether a length scale is left to be tuned."""
        kernels = self.kernel if isinstance(self.kernel, list | tuple) else [self.kernel]
        return any(isinstance(getattr(as_kernel(kernel), "sigma", None), str) for kernel in kernels)

    @staticmethod
    def _samples(tasks: Tasks, kernel: Kernel) -> list[Sample]:
        """The distinct inputs of each task; one object for tasks on the same rows with the same weights."""
        out: list[Sample] = [None] * len(tasks)  # type: ignore[list-item]
        for g in tasks.groups():
            sample = distinct(tasks.X, to_numpy(tasks.rows[g[0]]), to_numpy(tasks.weights[g[0]]), kernel)
            for t in g:
                out[t] = sample
        return out

    @property
    def _auto(self) -> bool:
        return isinstance(self.lam, str) and self.lam == "auto"

    def _given_lam(self, sizes: list[float]) -> np.ndarray:
        n = np.asarray(sizes, dtype=float)
        if isinstance(self.lam, str):
            powers = {"auto": -0.5, "consistent": -0.25, "rate": -0.5}
            if self.lam not in powers:
                raise ValueError(
                    f"KernelRidge(lam={self.lam!r}) is no rule it knows; 'auto', 'consistent', 'rate', a number or "
                    "one number per task would do"
                )
            return n ** powers[self.lam]
        lam = np.asarray(self.lam, dtype=float)
        largest = np.finfo(float).max / max(1.0, float(n.sum()))  # n lambda must be a number too
        if lam.shape not in ((), (1,), n.shape) or not np.all((lam > 0) & (lam <= largest)):
            raise ValueError(
                f"KernelRidge needs lam above zero and finite, one or one for each of {len(n)} tasks, got {self.lam!r}; "
                "lam='auto' would do"
            )
        return np.broadcast_to(lam, n.shape).copy()

    def _given_kernels(self, n_tasks: int) -> list[Kernel]:
        """One kernel for all tasks, or one for each."""
        if not isinstance(self.kernel, list | tuple):
            return [as_kernel(self.kernel)]
        if len(self.kernel) != n_tasks:
            raise ValueError(f"KernelRidge has {len(self.kernel)} kernels for {n_tasks} tasks; give one, or one for each task")
        return [as_kernel(kernel) for kernel in self.kernel]

    def _auto_lam(self, factor: Factor, Y: Array) -> np.ndarray:
        """By leave-one-out; where that says nothing, the middle of the other tasks or the theorem's rate."""
        useful = informative(factor.sample, Y, factor.intercept)
        lam = np.full(Y.shape[1], factor.level * factor.n**-0.5)
        if np.any(useful):
            at = array_namespace(Y).asarray(np.flatnonzero(useful), device=device_of(Y))
            lam[useful], _ = best_lam(factor, array_namespace(Y).take(Y, at, axis=1))
            lam[~useful] = np.median(lam[useful])
        return lam

    # alone, as a scikit-learn regressor

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """y (n,) or (n, T), NaN where a task was not observed."""
        if y is None:
            raise ValueError("KernelRidge requires y to be passed, but the target y is None; pass (n,) or (n, T) labels")
        tasks = Tasks.read(self, X, y, sample_weight)
        self._single = tasks.single
        return self.fit_tasks(tasks)

    def predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "kernels_")
        X = check_inputs(self, X)
        columns = self.predict_tasks(X)
        return columns[0][:, 0] if self._single else np.concatenate(columns, axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.pairwise = isinstance(self.kernel, Precomputed)
        return tags
