"""`KernelRidge`: the paper's regress step, one kernel ridge regression for each task.

    g_t(x) = sum_i alpha_it(x) Z_it,      alpha_t(x) = (K_t + n_t lambda_t I)^-1 K_tx          (eq:estimator-multitask)

Tasks seen on the same rows with the same weights form a group and share one factorisation.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted, validate_data

from lawful._array import Array, array_namespace, to_numpy
from lawful.kernels import Gaussian, Kernel, Precomputed, Stationary, as_kernel
from lawful.surrogates.exact import CholeskyFactor, Factor, Sample, SpectralFactor, distinct
from lawful.surrogates.primal import PrimalFactor
from lawful.surrogates.tuning import Problem, best_lam, input_scales, tune_scales

__all__ = ["KernelRidge"]

TUNED_TASKS = 32  # length scales are shared, so this many tasks are plenty to choose them
CROSS_ENTRIES = 2**24  # largest piece of a cross-kernel matrix held at once


def _has_variance(ridge: KernelRidge) -> bool:
    return not isinstance(ridge.kernel, Precomputed)


class KernelRidge(RegressorMixin, BaseEstimator):
    """Kernel ridge regression of every task, with an unpenalised intercept.

    Parameters
    ----------
    kernel : a kernel of `lawful.kernels` or a function k(X, Z) -> (n, m); None is `Gaussian("auto")`. With
        sigma="auto" one length scale per input is tuned by leave-one-out (see `tuning`) and `kernel_` holds it in
        the units of the inputs. Any other sigma is exactly the kernel as written, on the raw inputs.
    lam : "auto" (for each task, by leave-one-out), "consistent" (n_t^-1/4) or "rate" (n_t^-1/2), the choices of the
        paper's theorems, one number, or one per task.
    intercept : whether each regression has an unpenalised constant; the scores alpha(x) then sum to one.
    random_state : draws the rows used to tune length scales when there are more than `max_tuning_rows`.

    Attributes
    ----------
    kernel_, lam_ (T,), loo_mse_ (T,), groups_ (lists of tasks that share rows and weights).
    """

    def __init__(
        self,
        kernel: Any = None,
        lam: Any = "auto",
        intercept: bool = True,
        random_state: Any = None,
        max_tuning_rows: int = 300,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.lam = lam
        self.intercept = intercept
        self.random_state = random_state
        self.max_tuning_rows = max_tuning_rows
        self.verbose = verbose

    def set_params(self, **params: Any) -> Self:
        if self.kernel is None and "kernel" not in params and any(key.startswith("kernel__") for key in params):
            self.kernel = Gaussian()  # so that kernel__sigma has something to set
        return super().set_params(**params)

    # the surrogate protocol

    def fit_tasks(
        self,
        X: Array,
        Z: list[Array],
        y: list[Array],
        rows: list[np.ndarray],
        weights: list[Array],
    ) -> Self:
        xp = array_namespace(X)
        rows = [to_numpy(r) for r in rows]
        weights = [to_numpy(w) for w in weights]
        groups: dict[tuple[bytes, bytes], list[int]] = {}
        for t, (r, w) in enumerate(zip(rows, weights)):
            groups.setdefault((r.tobytes(), w.tobytes()), []).append(t)
        self.groups_ = list(groups.values())
        kernel = as_kernel(self.kernel)
        samples = [distinct(X, rows[g[0]], weights[g[0]], kernel) for g in self.groups_]
        labels = [xp.stack([y[t] for t in g], axis=1) for g in self.groups_]
        self.kernel_ = self._tuned(kernel, X, samples, labels)
        self.lam_ = self._given_lam([w.sum() for w in weights])
        self.loo_mse_ = np.zeros(len(y))
        self._residuals: list[Array] = [None] * len(y)
        self._factors, self._solutions, self._widths = [], [], [z.shape[1] for z in Z]
        for g, sample, Y in zip(self.groups_, samples, labels):
            factor = self._factor(sample, self.lam_[g])
            if isinstance(self.lam, str) and self.lam == "auto":
                self.lam_[g] = self._auto_lam(factor, Y)
            lam = self.lam_[g]
            residuals = factor.loo(Y, lam)
            squares = sample.share[:, None] * sample.spread(sample.weights)[:, None] * residuals**2
            self.loo_mse_[g] = to_numpy(xp.sum(squares, axis=0)) / factor.n
            for i, t in enumerate(g):
                self._residuals[t] = residuals[:, i]
            self._factors.append(factor)
            self._solutions.append(
                factor.solve(xp.concat([Z[t] for t in g], axis=1), np.repeat(lam, [self._widths[t] for t in g]))
            )
        return self

    def predict_tasks(self, X: Array) -> list[Array]:
        check_is_fitted(self, "kernel_")
        xp = array_namespace(X)
        out: list[Array] = [None] * len(self._widths)
        for g, factor, solution in zip(self.groups_, self._factors, self._solutions):
            size = max(1, CROSS_ENTRIES // factor.p)
            pieces = [factor.predict(X[i : i + size, :], solution) for i in range(0, max(X.shape[0], 1), size)]
            columns = xp.concat(pieces, axis=0) if len(pieces) > 1 else pieces[0]
            start = 0
            for t in g:
                out[t] = columns[:, start : start + self._widths[t]]
                start += self._widths[t]
        return out

    def residuals(self) -> list[Array]:
        """Leave-one-input-out residuals of y, one array per task."""
        check_is_fitted(self, "kernel_")
        return list(self._residuals)

    @available_if(_has_variance)
    def variance(self, X: Array) -> Array:
        """(m, T): predictive variance relative to its leave-one-out average over the training inputs.

        (p lambda + kriging variance) / mean_i 1 / P_ii, p distinct inputs: noise of a row of average weight, then the
        Gaussian process's leave-one-out variance. 1 everywhere for a task with a single input.
        """
        check_is_fitted(self, "kernel_")
        xp = array_namespace(X)
        out: list[Array] = [None] * len(self._widths)
        for g, factor in zip(self.groups_, self._factors):
            if factor.p == 1:
                ratio = xp.ones((X.shape[0], len(g)), dtype=X.dtype)
            else:
                lam = self.lam_[g]
                noise = factor.p / factor.n * factor.nu(lam, len(g))
                ratio = (noise[None, :] + factor.variance(X, lam)) / factor.spread_of_loo(lam, len(g))[None, :]
            for i, t in enumerate(g):
                out[t] = ratio[:, i]
        return xp.stack(out, axis=1)

    # its parts

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
        if lam.shape not in ((), (1,), n.shape) or not np.all(lam > 0):
            raise ValueError(
                f"KernelRidge needs lam above zero, one or one for each of {len(n)} tasks, got {self.lam!r}; "
                "lam='auto' would do"
            )
        return np.broadcast_to(lam, n.shape).copy()

    def _factor(self, sample: Sample, lam: np.ndarray) -> Factor:
        p = sample.points.shape[0]
        if hasattr(self.kernel_, "features"):
            first = array_namespace(sample.X).take(sample.X, sample.rows[:1], axis=0)
            if self.kernel_.features(first).shape[1] < p:
                return PrimalFactor(self.kernel_, sample, self.intercept)
        if np.all(lam == lam[0]) and not (isinstance(self.lam, str) and self.lam == "auto"):
            return CholeskyFactor(self.kernel_, sample, lam[0], self.intercept)
        return SpectralFactor(self.kernel_, sample, self.intercept)

    def _informative(self, sample: Sample, Y: Array) -> np.ndarray:
        """Tasks from which something can be tuned: at least three inputs, and not a constant the intercept takes."""
        xp = array_namespace(Y)
        if sample.points.shape[0] < 3:
            return np.zeros(Y.shape[1], dtype=bool)
        spread = to_numpy(xp.max(Y, axis=0) - xp.min(Y, axis=0)) if self.intercept else 1.0
        size = to_numpy(xp.max(xp.abs(Y), axis=0))
        return (spread > 1e-14 * size) & (size > 0)

    def _auto_lam(self, factor: Factor, Y: Array) -> np.ndarray:
        """By leave-one-out; where that says nothing, the middle of the other tasks or the theorem's rate."""
        useful = self._informative(factor.sample, Y)
        lam = np.full(Y.shape[1], factor.level * factor.n**-0.5)
        if np.any(useful):
            at = array_namespace(Y).asarray(np.flatnonzero(useful))
            lam[useful], _ = best_lam(factor, array_namespace(Y).take(Y, at, axis=1))
            lam[~useful] = np.median(lam[useful])
        return lam

    def _tuned(self, kernel: Kernel, X: Array, samples: list[Sample], labels: list[Array]) -> Kernel:
        """The kernel with numbers for length scales."""
        kernel = clone(kernel)
        if not (isinstance(kernel, Stationary) and isinstance(kernel.sigma, str)):
            return kernel
        if kernel.sigma != "auto":
            raise ValueError(f"{kernel!r} lacks length scales; sigma='auto', a number or one per input would do")
        total = np.zeros(X.shape[0])
        for sample, Y in zip(samples, labels):
            weights = sample.share * sample.spread(sample.weights)
            np.add.at(total, sample.points[sample.group], to_numpy(weights) * Y.shape[1])
        seen = total > 0
        scales = input_scales(to_numpy(X)[seen], total[seen])
        useful = [(s, Y, t) for s, Y in zip(samples, labels) for t in np.flatnonzero(self._informative(s, Y))]
        if not useful:
            return kernel.set_params(sigma=scales * np.sqrt(X.shape[1]))
        chosen = np.unique(np.linspace(0, len(useful) - 1, min(len(useful), TUNED_TASKS)).round().astype(int))
        columns: dict[int, list[int]] = {}
        for i in chosen:
            columns.setdefault(id(useful[i][0]), []).append(int(useful[i][2]))
        xp = array_namespace(X)
        problems = [
            Problem(s, xp.take(Y, xp.asarray(columns[id(s)]), axis=1)) for s, Y in zip(samples, labels) if id(s) in columns
        ]
        rng = np.random.default_rng(self.random_state if self.random_state is not None else 0)
        sigma = tune_scales(kernel, problems, scales, self.intercept, self.max_tuning_rows, rng, verbose=self.verbose)
        return kernel.set_params(sigma=sigma)

    # alone, as a scikit-learn regressor

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """y (n,) or (n, T), NaN where a task was not observed."""
        if y is None:
            raise ValueError("KernelRidge requires y to be passed, but the target y is None; pass (n,) or (n, T) labels")
        X = validate_data(self, X, dtype=np.float64)
        y = check_array(y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y")
        check_consistent_length(X, y)
        w = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        Y = y.reshape(y.shape[0], -1)
        self._single = y.ndim == 1
        rows = [np.flatnonzero(~np.isnan(Y[:, t]) & (w > 0)) for t in range(Y.shape[1])]
        for t, r in enumerate(rows):
            if r.size == 0:
                raise ValueError(f"KernelRidge cannot fit output {t}: it has no observed value; drop that column")
        labels = [Y[r, t] for t, r in enumerate(rows)]
        return self.fit_tasks(X, [v[:, None] for v in labels], labels, rows, [w[r] for r in rows])

    def predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "kernel_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        columns = self.predict_tasks(X)
        return columns[0][:, 0] if self._single else np.concatenate(columns, axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.pairwise = isinstance(self.kernel, Precomputed)
        return tags
