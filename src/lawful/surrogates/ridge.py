"""`KernelRidge`: the paper's regress step, one kernel ridge regression for each task.

    g_t(x) = sum_i alpha_it(x) Z_it,      alpha_t(x) = (K_t + n_t lambda_t I)^-1 K_tx          (eq:estimator-multitask)

Tasks seen on the same rows with the same weights and the same kernel form a group and share one factorisation.

With a fixed intercept beta_t (a mean known from elsewhere) the ridge without a constant learns what is left of it:
g_t(x) = beta_t + sum_i alpha_it(x) (y_it - beta_t), and constant columns of Z are known without learning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lawful._array import Array, array_namespace, as_given, is_numpy_namespace, like, to_numpy
from lawful._checks import check_choice
from lawful._correlations import shrunk_correlation
from lawful._memory import available_memory
from lawful._threads import blas_threads, n_threads, on_threads
from lawful.kernels import Gaussian, Kernel, Precomputed, as_kernel
from lawful.surrogates.base import Fold, HeldOut, Surrogate
from lawful.surrogates.device import device_of_choice
from lawful.surrogates.exact import LARGE, DualFactor, Sample, distinct
from lawful.surrogates.factorise import affordable, make_factor, regular_factor
from lawful.surrogates.held_out import held_out, left_out, with_bases
from lawful.surrogates.intercepts import without_base
from lawful.surrogates.members import Member, likely_members
from lawful.surrogates.parts import Part, at, mixed_means, mixed_variance, noise_shares, observed_std
from lawful.surrogates.samples import COPIES, require_room
from lawful.surrogates.scales import auto_lam, is_auto, tuned_kernels, without_unit
from lawful.surrogates.shared_noise import share_noise
from lawful.surrogates.sparse import SparseFactor
from lawful.surrogates.state import ridge_from_state, ridge_state
from lawful.surrogates.tuning import lam_by_rule
from lawful.tasks import Tasks, check_inputs

__all__ = ["KernelRidge"]

VARIANCE_ROWS = 3000  # beyond, factors of kernels and lambdas that were given are not kept
WORSE, MORE, TRIES = 1.05, 100.0, 4  # squared errors beyond the variance of labels, the factor of lambda then, and how often
ALONE = 8  # so many tasks with one kernel and lambdas of their own are cheaper factored one by one than through eigenvectors


def _has_variance(ridge: KernelRidge) -> bool:
    # k(x, x) is not among precomputed entries; and of a large kernel that was given no factor is kept
    kept = getattr(ridge, "n_rows_", 0) <= VARIANCE_ROWS or not any(isinstance(p.factor, DualFactor) for p in ridge._parts)
    return not isinstance(ridge.kernel, Precomputed) and kept


class KernelRidge(RegressorMixin, Surrogate):
    """Kernel ridge regression of every task, with an unpenalised intercept.

    Parameters
    ----------
    kernel : a kernel of `lawful.kernels` or a function k(X, Z) -> (n, m), or a list of one for each task. With sigma="auto" one
        length scale per input is tuned, and `kernel_` holds it in the units of the inputs. Any other sigma is exactly the
        kernel as written, on the raw inputs. None: Gaussian, Matern 5/2 and Matern 3/2 kernels, sums over the inputs
        (`Additive`) and linear functions (`Trend`), tuned and averaged by their evidence; with tune="loo" a Gaussian.
    scales : "shared" (all tasks have the same length scales), "task" (each has its own: outputs of different smoothness are
        learned better) or "auto": "task" while that remains cheap, else "shared".
    lam : "auto" (for each task, tuned), "consistent" (n_t^-1/4) or "rate" (n_t^-1/2), the choices of the paper's theorems, one
        number, or one per task.
    tune : what chooses length scales, and lambda with them. "evidence": the likelihood of the labels under a Gaussian process,
        whose posterior mean the ridge is (see `evidence` and `averaging`), the better judge where labels are noisy. "loo": the
        leave-one-out error (see `tuning`), which hardly tells a tiny lambda from a larger one there. A lambda beside a kernel
        without anything to tune is chosen by leave-one-out.
    noise : "own" (each task has noise of its own) or "shared": the same variance for all, as of outputs in one unit that one
        instrument measures (see `shared_noise`). For tune="evidence" and lam="auto".
    intercept : whether each regression has an unpenalised constant; the scores alpha(x) then sum to one. Or T numbers: fixed
        constants, to which predictions return far from the data (the mean of a cloud of outputs, say).
    random_state : draws the rows used to tune length scales when there are more than `max_tuning_rows`.
    max_tuning_rows : length scales are tuned on at most so many distinct inputs; None: 1500 by evidence, 300 by leave-one-out.
    verbose : print the progress of tuning.
    device : where matrices are made and solved, for tuning too: "cpu" (NumPy), "cuda" or another device of torch; "auto" is
        that of X where X is a tensor on one, else the CPU. Predictions are where the new X is.

    Attributes
    ----------
    choice_ (how it was solved: all rows exactly or, where these are too many, on centres),
    members_ (for each task its kernels, each with lambda and its share of the prediction; the largest first), kernels_ and
    lam_ (T,) (the first member of each task), kernel_ (the kernel that all tasks share, if they do), loo_mse_ (T,), groups_
    (lists of tasks that share a factorisation).

    Examples
    --------
    >>> from lawful import KernelRidge
    >>> KernelRidge().fit([[0.0], [1.0], [2.0], [3.0], [4.0]], [1.0, 3.0, 5.0, 7.0, 9.0]).predict([[1.5]]).round(3)
    array([4.])
    """

    def __init__(
        self,
        kernel: Any = None,
        lam: Any = "auto",
        intercept: Any = True,
        scales: str = "auto",
        random_state: Any = None,
        max_tuning_rows: int | None = None,
        verbose: bool = False,
        tune: str = "evidence",
        noise: str = "own",
        device: Any = "auto",
    ) -> None:
        self.kernel = kernel
        self.lam = lam
        self.intercept = intercept
        self.scales = scales
        self.random_state = random_state
        self.max_tuning_rows = max_tuning_rows
        self.verbose = verbose
        self.tune = tune
        self.noise = noise
        self.device = device

    def set_params(self, **params: Any) -> Self:
        if self.kernel is None and "kernel" not in params and any(key.startswith("kernel__") for key in params):
            self.kernel = Gaussian()  # so that kernel__sigma has something to set
        return super().set_params(**params)

    # the surrogate protocol

    loo = True
    _noise: float | None = None  # that all tasks share
    _known: list[list[Member]] | None = None  # what was tuned elsewhere
    _device: Any = None  # of torch, where it is fitted

    def fit_tasks(self, tasks: Tasks) -> Self:
        self._device = device_of_choice(self.device, tasks.device)
        tasks, intercept, self._bases = without_base(self.intercept, tasks.on(self._device))
        samples = self._samples(tasks, self._given_kernels(len(tasks))[0], self._auto and self._tunes)
        scaled = [without_unit(v, w) for v, w in zip(tasks.y, tasks.weights)]
        self.members_ = self._members(tasks, intercept, samples, scaled)
        self.n_rows_ = max(sample.points.shape[0] for sample in samples)
        self._widths = [z.shape[1] for z in tasks.Z]
        self._parts = self._fitted(tasks, samples, scaled, intercept)
        centres = [part.factor.centers.shape[0] for part in self._parts if isinstance(part.factor, SparseFactor)]
        self.choice_ = f"{tasks.n_seen} rows, " + (f"on {max(centres)} centres" if centres else "exact")
        self._settle(tasks)
        for part in self._parts:
            part.factor.slim(keep=self.n_rows_ <= VARIANCE_ROWS)
        return self

    def _fitted(self, tasks: Tasks, samples: list[Sample], scaled: list[Array], intercept: bool) -> list[Part]:
        """Every part: side by side, each on one thread of BLAS, where there are several and there is room."""
        xp, y, Z = array_namespace(tasks.X), tasks.y, tasks.Z

        def fit(group: tuple[list[int], Kernel, np.ndarray | None, list[float]]) -> Part:
            part = solved(*group)
            for _ in range(TRIES):  # worse than the mean: evidence was mistaken, and there is more noise than it believes
                w = to_numpy(tasks.weights[group[0][0]])
                labels, left = np.stack([to_numpy(y[t]) for t in group[0]], axis=1), to_numpy(part.residuals)
                spread = np.average((labels - np.average(labels, axis=0, weights=w)) ** 2, axis=0, weights=w)
                if not self._guarded or np.all(np.average(left**2, axis=0, weights=w) <= WORSE * spread):
                    break
                part = solved(group[0], group[1], MORE * part.lam, group[3])
            return part

        def solved(g: list[int], kernel: Kernel, lam: np.ndarray | None, weight: list[float]) -> Part:
            sample = samples[g[0]]
            alike = lam is not None and bool(np.all(lam == lam[0]))
            if alike and lam is not None and self._auto:
                lam, factor = regular_factor(kernel, sample, intercept, lam, exact)
            else:
                factor = make_factor(kernel, sample, intercept, lam[0] if alike and lam is not None else None)
            if lam is None:
                lam = auto_lam(factor, xp.stack([scaled[t] for t in g], axis=1))
            columns = np.repeat(lam, [self._widths[t] for t in g])
            solution = factor.solve(xp.concat([Z[t] for t in g], axis=1), columns)
            part = Part(g, [float(w) for w in weight], np.asarray(lam), factor, solution)
            part.measure(xp.stack([y[t] for t in g], axis=1), self._noise)
            return part

        groups = list(self._groups(tasks))
        exact = affordable([samples[g[0]].points.shape[0] for g, *_ in groups], is_numpy_namespace(xp))
        if not is_numpy_namespace(xp):
            return [fit(group) for group in groups]
        alone = not exact or (self.n_rows_ > LARGE and not (self._auto and self._tunes and self.tune == "evidence"))
        room = 1 if alone else int(available_memory() // (8.0 * COPIES * self.n_rows_**2))  # eigenvectors need far more
        threads = min(n_threads(None), len(groups), max(room, 1))
        with blas_threads(1 if threads > 1 or self.n_rows_ <= LARGE else None):
            return on_threads(fit, groups, threads)

    def _members(self, tasks: Tasks, intercept: bool, samples: list[Sample], scaled: list[Array]) -> list[list[Member]]:
        """For each task its kernels, lambdas (None where leave-one-out will say) and shares."""
        check_choice("KernelRidge", "tune", self.tune, ("evidence", "loo"))
        check_choice("KernelRidge", "noise", self.noise, ("own", "shared"))
        self._noise = None
        if self._known is not None:
            return self._known
        kernel = self._given_kernels(len(tasks))
        lam = None if self._auto else lam_by_rule(self.lam, [float(to_numpy(w).sum()) for w in tasks.weights])
        shared, likely = self.noise == "shared", self.tune == "evidence" and len(kernel) == 1 and is_auto(kernel[0])
        if shared and not (likely and lam is None):
            raise ValueError("KernelRidge(noise='shared') is a choice of evidence; lam='auto' and one kernel to tune would do")
        if likely:
            one = None if self.kernel is None else kernel[0]
            members = likely_members(self, intercept, one, tasks.X, samples, scaled, lam)
            if shared:
                members, self._noise = share_noise(members, intercept, tasks, samples, scaled)
            return members
        kernels = tuned_kernels(self, intercept, kernel, tasks.X, samples, scaled, lam)
        return [[Member(k, None if lam is None else float(lam[t]), 1.0)] for t, k in enumerate(kernels)]

    def _groups(self, tasks: Tasks) -> Iterator[tuple[list[int], Kernel, np.ndarray | None, list[float]]]:
        """Tasks on the same rows that share a factorisation, with their kernel, lambdas and shares of the prediction.

        A few tasks with one kernel and different lambdas are factored one by one, many through eigenvectors.
        """
        depth = max(map(len, self.members_))
        for k in range(depth):
            present = [t for t in range(len(tasks)) if k < len(self.members_[t])]
            members = {t: self.members_[t][k] for t in present}
            keys = [id(members[t].kernel) if t in members else 0 for t in range(len(tasks))]
            for g in tasks.groups(keys):
                if g[0] not in members:
                    continue
                kernel = members[g[0]].kernel
                if members[g[0]].lam is None:
                    yield g, kernel, None, [1.0] * len(g)
                    continue
                lam, weight = (np.array([getattr(members[t], name) for t in g], dtype=float) for name in ("lam", "weight"))
                if not self._auto or len(set(lam)) == 1 or len(set(lam)) > ALONE:
                    yield g, kernel, lam, list(weight)
                else:
                    yield from (([t], kernel, lam[i : i + 1], [weight[i]]) for i, t in enumerate(g))

    def _settle(self, tasks: Tasks) -> None:
        """What is known of each task once its members are fitted."""
        xp, T = array_namespace(tasks.X), len(tasks)
        self._residuals: list[Array] = [None] * T
        lams: list[list[float]] = [[] for _ in range(T)]
        self._unit = np.zeros(T)  # the variance of the first Gaussian process of each task
        self._loo_variance = np.zeros(T)
        for part in self._parts:
            for i, t in enumerate(part.tasks):
                r = part.weight[i] * part.residuals[:, i] if part.weight[i] != 1 else part.residuals[:, i]
                self._residuals[t] = r if self._residuals[t] is None else self._residuals[t] + r
                self._unit[t] = self._unit[t] or part.s2[i]
                self._loo_variance[t] += part.weight[i] * part.s2[i] / self._unit[t] * part.spread[i]
                lams[t].append(float(part.lam[i]))
        self.members_ = [[m._replace(lam=lam) for m, lam in zip(ms, found)] for ms, found in zip(self.members_, lams)]
        self.lam_ = np.array([ms[0].lam for ms in self.members_])
        self.kernels_ = [ms[0].kernel for ms in self.members_]
        self.__dict__.pop("kernel_", None)  # of an earlier fit
        if all(k is self.kernels_[0] for k in self.kernels_):
            self.kernel_ = self.kernels_[0]
        self.groups_ = [part.tasks for part in self._parts]
        rows, left = ([to_numpy(v) for v in values] for values in (tasks.rows, self._residuals))
        self._correlation = shrunk_correlation(left, rows, tasks.n_rows)
        self.loo_mse_ = np.array([float(xp.sum(w * r**2) / xp.sum(w)) for w, r in zip(tasks.weights, self._residuals)])
        if self._device is not None:
            self._residuals = left

    def predict_tasks(self, X: Array) -> list[Array]:
        check_is_fitted(self, "kernels_")
        there = self._there(X)
        return self._home(self._means(there, at(there, self._parts)), X)

    def _means(self, X: Array, found: Iterable[Any]) -> list[Array]:
        out = mixed_means(found, self._widths)
        return out if self._bases is None else [z + like(base, X)[None, :] for z, base in zip(out, self._bases)]

    def residuals(self) -> list[Array]:
        """Leave-one-input-out residuals of y, one array per task."""
        check_is_fitted(self, "kernels_")
        return list(self._residuals)

    def _there(self, X: Array) -> Array:
        """X where the ridge was fitted."""
        if self._device is None:
            return X
        import torch

        return torch.as_tensor(X, dtype=torch.float64, device=self._device)

    def _home(self, found: Any, X: Array) -> Any:
        """What was found for X, where X is."""
        if self._device is None:
            return found
        return [like(v, X) for v in found] if isinstance(found, list) else like(found, X)

    def noise_share(self) -> np.ndarray:
        """(T,) in [0, 1]: how much of the leave-one-out variance of each task is noise of its labels, by the model."""
        return noise_shares(self._parts, len(self._widths))

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
        nothing is left to tune do they share work. (`refitted` is for who may tune once for all folds.)
        """
        if variance:
            self._need_variance()
        if lams is None and (self._tunes or isinstance(self.lam, str)):
            if folds is not None:
                yield from super().held_out(tasks, folds, residuals=residuals, variance=variance)
                return
            model = clone(self).fit_tasks(tasks)
            left, intercept, bases = without_base(self.intercept, tasks)
            yield with_bases(left_out(left, model.members_, intercept, residuals, variance), bases, tasks)
            return
        kernels = self._given_kernels(len(tasks))
        kernels = kernels * len(tasks) if len(kernels) == 1 else kernels
        lams = lam_by_rule(self.lam, [1.0] * len(tasks))[None, :] if lams is None else lams
        left, intercept, bases = without_base(self.intercept, tasks)
        found = held_out(left, kernels, lams, intercept, folds, residuals, variance)
        for k, h in enumerate(found):
            yield with_bases(h, bases, tasks if folds is None else tasks.take(folds[k][0]))

    def refitted(self, tasks: Tasks, part: Tasks) -> Self:
        """A ridge fitted on `part` with the kernels and the noise n lambda that this one found on `tasks`."""
        sizes = [(float(to_numpy(w).sum()), float(to_numpy(v).sum())) for w, v in zip(tasks.weights, part.weights)]
        out = clone(self)
        out._known = [[m._replace(lam=m.lam * n / k) for m in ms] for ms, (n, k) in zip(self.members_, sizes)]  # type: ignore[operator]
        return out.fit_tasks(part)

    @available_if(_has_variance)
    def variance(self, X: Array) -> Array:
        """(m, T): variance of the prediction at x, relative to the leave-one-out variance of an observation.

        kriging variance / mean_i 1 / P_ii: in the Gaussian process view, Var[f_t(x) | data] in units of the expected
        leave-one-out error, so that loo_mse_[t] times this estimates the squared error of the prediction. 1 everywhere for
        a task with a single input. An average of kernels has the average of their variances and, beside that, the spread of
        their predictions.
        """
        check_is_fitted(self, "kernels_")
        return self._home(self._variance(X), X) / like(self._unit, X)[None, :] / like(self._loo_variance, X)[None, :]

    def _variance(self, X: Array) -> Array:
        """(m, T): Var[f_t(x) | data], calibrated by leave-one-out residuals."""
        X = self._there(X)
        return mixed_variance(X, at(X, self._parts, variance=True), self._widths)

    @available_if(_has_variance)
    def std(self, X: Array) -> Array:
        """(m, T): standard deviation of a new observation at x, of average weight; the noise is part of it."""
        check_is_fitted(self, "kernels_")
        return self._std(X, self._home(self._variance(X), X))

    @available_if(_has_variance)
    def predict_and_std(self, X: Array) -> tuple[list[Array], Array]:
        """`predict_tasks(X)` and `std(X)` for little more than either of them: they share the kernel's values."""
        check_is_fitted(self, "kernels_")
        there = self._there(X)
        found = list(at(there, self._parts, variance=True))
        spread = self._home(mixed_variance(there, found, self._widths), X)
        return self._home(self._means(there, found), X), self._std(X, spread)

    def _std(self, X: Array, variance: Array) -> Array:
        tuned = X.shape[1] + 1 if self._tunes else 0
        return observed_std(X, variance, self._parts, [len(r) for r in self._residuals], tuned, self._noise is not None)

    @available_if(_has_variance)
    def covariance(self, X: Array) -> Array:
        """(m, T, T): of new observations at x. Outputs are as correlated as their leave-one-out residuals on common rows."""
        std = self.std(X)
        return std[:, :, None] * like(self._correlation, X)[None, :, :] * std[:, None, :]

    def scores(self, X: Array) -> list[Array]:
        """alpha_t(x), T arrays (m, n_t): the weight of every row of a task in its prediction at x."""
        check_is_fitted(self, "kernels_")
        if self.n_rows_ > VARIANCE_ROWS:
            raise ValueError(f"KernelRidge keeps no factor of more than {VARIANCE_ROWS} rows, so no scores; fit on fewer rows")
        out: list[Array] = [None] * len(self._widths)
        for part in self._parts:
            for i, t in enumerate(part.tasks):
                found = part.weight[i] * part.factor.scores(X, float(part.lam[i]))
                out[t] = found if out[t] is None else out[t] + found
        return out

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
        return any(is_auto(as_kernel(kernel)) for kernel in kernels)

    @staticmethod
    def _samples(tasks: Tasks, kernel: Kernel, tuned: bool) -> list[Sample]:
        """The distinct inputs of each task; one object for tasks on the same rows with the same weights."""
        out: list[Sample] = [None] * len(tasks)  # type: ignore[list-item]
        for g in tasks.groups():
            sample = distinct(tasks.X, to_numpy(tasks.rows[g[0]]), to_numpy(tasks.weights[g[0]]), kernel)
            for t in g:
                out[t] = sample
        if not tuned:
            require_room(out, kernel)
        return out

    @property
    def _auto(self) -> bool:
        return isinstance(self.lam, str) and self.lam == "auto"

    @property
    def _guarded(self) -> bool:
        """Whether kernels and noise are a choice of evidence, which errors may call in question."""
        return self._auto and self._tunes and self.tune == "evidence" and self.noise == "own" and self.intercept is True

    def _given_kernels(self, n_tasks: int) -> list[Kernel]:
        """One kernel for all tasks, or one for each."""
        if not isinstance(self.kernel, list | tuple):
            return [as_kernel(self.kernel)]
        if len(self.kernel) != n_tasks:
            raise ValueError(f"KernelRidge has {len(self.kernel)} kernels for {n_tasks} tasks; give one, or one for each task")
        return [as_kernel(kernel) for kernel in self.kernel]

    # alone, as a scikit-learn regressor

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """y (n,) or (n, T), NaN where a task was not observed."""
        if y is None:
            raise ValueError("KernelRidge requires y to be passed, but the target y is None; pass (n,) or (n, T) labels")
        tasks = Tasks.read(self, X, y, sample_weight)
        self._single = tasks.single
        return self.fit_tasks(tasks)

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """(m,) or (m, T); with `return_std` also the standard deviation of a new observation at x (see `std`).

        With `return_cov` instead the covariance (m, T, T) of the outputs of a new observation at x (see `covariance`). Tensors
        for a tensor X, where it is.
        """
        check_is_fitted(self, "kernels_")
        if return_std and return_cov:
            raise ValueError("KernelRidge.predict was asked for return_std and return_cov; one of them would do")
        given, X = X, check_inputs(self, X)
        columns = [found[:, -1:] for found in self.predict_tasks(X)]  # the labels are the last column of their encoding
        mean = as_given(columns[0][:, 0] if self._single else np.concatenate(columns, axis=1), given)
        if not (return_std or return_cov):
            return mean
        self._need_variance()
        spread = self.covariance(X) if return_cov else self.std(X)
        return mean, as_given(spread[:, 0] if self._single and return_std else spread, given)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.pairwise = isinstance(self.kernel, Precomputed)
        return tags
