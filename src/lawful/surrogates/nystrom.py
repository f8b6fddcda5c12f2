"""`NystromRidge`: kernel ridge regression on M centres, for as many rows as there are.

    g_t(x) = beta_t + sum_j a_tj k(x, c_j)      minimises (1/n_t) sum_i w_i (z_i - g_t(x_i))^2 + lambda_t |f_t|^2

over functions spanned by the centres: time n M^2 and memory M^2, where the exact ridge takes n^3 and n^2. What is kept of the
rows are sums over them (`statistics`), so that more rows may come later (`update`), every lambda is a small system (`normal`),
and no n x M matrix ever exists. Where even n M^2 is too much, conjugate gradients on blocks of rows (`gradient`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lawful._array import Array, array_namespace, is_torch_array, like, to_numpy
from lawful.surrogates.base import Fold, HeldOut, Surrogate, training_part
from lawful.surrogates.centres import numpy_rows
from lawful.surrogates.engine import merged
from lawful.surrogates.intercepts import without_base
from lawful.surrogates.nystrom_fit import NystromFit
from lawful.surrogates.nystrom_state import nystrom_from_state, nystrom_state
from lawful.tasks import Tasks, check_inputs, check_outputs

__all__ = ["NystromRidge"]

EXACT_LEVERAGES = 10  # rows for each centre up to which leave-one-out residuals have a leverage of their own
LEVERAGE_WORK = 2e11  # operations that these may take
ROWS = 4096  # of which variances are computed at once


def _direct(ridge: NystromRidge) -> bool:
    return getattr(ridge, "solver_", ridge.solver) != "cg"


class NystromRidge(RegressorMixin, NystromFit, Surrogate):
    """Kernel ridge regression of every task on M centres, with an unpenalised intercept.

    Parameters
    ----------
    kernel : as in `KernelRidge`, one for all tasks. None: a Gaussian, Matern 5/2 or Matern 3/2 kernel with a length scale for
        each input, chosen by evidence on some of the rows, as are those of a kernel with sigma="auto".
    lam : "auto" (or None), "consistent", "rate", a number or one for each task. "auto": for each task by the error of held-out
        rows around what evidence says; below 20,000 rows by generalised cross-validation.
    n_centers : "auto" (2000, or all rows where there are fewer) or a number.
    centers : "uniform" (drawn from the rows), "leverage" (by approximate leverage scores) or inputs (M, d).
    solver : "direct" (Gram matrices), "cg" (conjugate gradients with Falkon's preconditioner; no `update`, no `variance`) or
        "auto": "cg" where there are more than 6000 centres times Gram matrices (on a device 40,000).
    intercept : as in `KernelRidge`.
    dtype : "float64", or "float32" or "tf32" for Gram matrices in single precision (summed in double) that precondition
        iterations in double precision: faster where matrix products are most of the work, and as accurate.
    block_size : rows of a block of kernel values; None: what suits the machine.
    device : None: the host, or that of X where X is a tensor of torch. "cuda", "cuda:1", "cpu": a device of torch; NumPy arrays
        are moved there block by block, and predictions come back as NumPy arrays.
    random_state : draws centres, rows to tune on and rows to hold out. None is a fixed seed.
    tol, max_iter : of iterations: the relative residual at which they end, and how many there may be.
    verbose : whether to show progress bars.

    Attributes
    ----------
    kernel_, lam_ (T,), centers_ (M, d), n_centers_, solver_, groups_ (lists of tasks that share normal equations), loo_mse_
    (T,) (by generalised cross-validation), held_out_ (None, or lam (L, T) and error (L, T), squared errors of held-out rows),
    n_iter_ (of iterations; 1 without any), n_seen_ (rows learned from).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> Y = np.c_[np.cos(X), np.sin(X)]
    >>> from lawful import NystromRidge
    >>> NystromRidge(n_centers=20).fit(X, Y).predict([[0.5]]).round(2)
    array([[0.88, 0.48]])
    """

    tune = "evidence"

    def __init__(
        self,
        kernel: Any = None,
        lam: Any = "auto",
        n_centers: Any = "auto",
        centers: Any = "uniform",
        solver: str = "auto",
        intercept: Any = True,
        dtype: str = "float64",
        block_size: int | None = None,
        device: Any = None,
        random_state: Any = None,
        tol: float = 1e-7,
        max_iter: int = 200,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.lam = lam
        self.n_centers = n_centers
        self.centers = centers
        self.solver = solver
        self.intercept = intercept
        self.dtype = dtype
        self.block_size = block_size
        self.device = device
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    # ------------------------------------------------------------------ the surrogate protocol

    def predict_tasks(self, X: Array) -> list[Array]:
        check_is_fitted(self, "lam_")
        found = self._engine.predict(X, self._solution.coef, self._solution.beta)
        ends = np.cumsum(self._widths)
        out = [found[:, int(end) - width : int(end)] for end, width in zip(ends, self._widths)]
        return out if self._bases is None else [z + like(base, z)[None, :] for z, base in zip(out, self._bases)]

    def residuals(self) -> list[Array]:
        """Leave-one-out residuals of y for the rows last learned from, one array per task.

        Those of the fit over 1 - h_ii, with a leverage h_ii for each row while that is cheap, else their mean df / n. Rows that
        came by `update` have the residuals of the prediction that was made before they were learned from.
        """
        check_is_fitted(self, "lam_")
        if self._residuals is None:
            if self._tasks is None:
                raise ValueError(
                    f"{type(self).__name__} was made from a state, which keeps no rows, so it has no residuals; fit it again"
                )
            self._residuals = self._left_out(self._tasks)
        return list(self._residuals)

    def errors(self) -> np.ndarray:
        return super().errors() if self._rms is None else self._rms

    def _left_out(self, tasks: Tasks) -> list[np.ndarray]:
        seen = tasks.seen
        fitted = self._labels(numpy_rows(tasks.X, seen) if is_torch_array(tasks.X) or len(seen) < tasks.n_rows else tasks.X)
        free: list[Any] = list(self._free)
        if _direct(self) and len(seen) <= EXACT_LEVERAGES * self.n_centers_ and len(seen) * self.n_centers_**2 < LEVERAGE_WORK:
            X = numpy_rows(tasks.X, seen)
            for g, normal in self._normal_equations():
                for t in g:
                    at = np.searchsorted(seen, to_numpy(tasks.rows[t]))
                    parts = [at[i : i + ROWS] for i in range(0, len(at), ROWS)]
                    h = [normal.leverages(self._engine.features(X[part]), float(self.lam_[t])) for part in parts]
                    free[t] = np.maximum(1 - to_numpy(tasks.weights[t]) * np.concatenate(h), 1e-6)
        places = [np.searchsorted(seen, to_numpy(r)) for r in tasks.rows]
        return [(to_numpy(y) - fitted[at, t]) / free[t] for t, (y, at) in enumerate(zip(tasks.y, places))]

    def noise_share(self) -> np.ndarray:
        """(T,) in [0, 1]: how much of the leave-one-out variance of each task is noise of its labels: 1 - df / n."""
        check_is_fitted(self, "lam_")
        return np.clip(self._free, 0, 1)

    @available_if(_direct)
    def variance(self, X: Array) -> Array:
        """(m, T): variance of the prediction at x, relative to the leave-one-out variance of an observation."""
        check_is_fitted(self, "lam_")
        return self._variance(X) / like(self._spread, X)[None, :]

    @available_if(_direct)
    def std(self, X: Array) -> Array:
        """(m, T): standard deviation of a new observation at x, of average weight; the noise is part of it."""
        check_is_fitted(self, "lam_")
        variance = self._variance(X) * like(self._unit, X)[None, :]
        return array_namespace(X).sqrt(variance + like(self._noise, X)[None, :])

    def _variance(self, X: Array, lam: np.ndarray | None = None) -> Array:
        """(m, T): Var[f_t(x) | data] in units of s2."""
        engine, lam = self._engine, self.lam_ if lam is None else lam
        parts = []
        for start in range(0, X.shape[0], ROWS):
            part = X[start : start + ROWS, :]
            phi = engine.features(part)
            xp = array_namespace(phi)
            prior = like(self.kernel_.diag(part), phi) - xp.sum(phi * phi, axis=0)
            prior = xp.where(prior > 0, prior, xp.zeros_like(prior))
            found = np.empty((part.shape[0], len(lam)))
            for g, normal in self._normal_equations():
                found[:, g] = to_numpy(prior[:, None] + normal.variance(phi, lam[g]))
            parts.append(found + (lam[None, :] if engine.intercept else 0.0))
        return like(np.concatenate(parts) if parts else np.zeros((0, len(lam))), X)

    @available_if(_direct)
    def update(self, tasks: Tasks) -> Self:
        """Learn from more rows, as if all had been given to `fit_tasks` at once; kernel and centres stay as they are.

        A lambda that was given stays; one that was tuned keeps n lambda, the noise that goes with it.
        """
        if not hasattr(self, "lam_"):
            return self.fit_tasks(tasks)
        if self.dtype != "float64":
            raise ValueError(f"NystromRidge(dtype={self.dtype!r}) cannot learn from more rows: it refines on all of them; "
                             "dtype='float64' would do")  # fmt: skip
        tasks, _, _ = without_base(self.intercept, merged(tasks), type(self).__name__)
        if [int(z.shape[1]) for z in tasks.Z] != self._widths:
            raise ValueError(
                f"NystromRidge.update got tasks with encodings of width {[int(z.shape[1]) for z in tasks.Z]}, and was fitted "
                f"with {self._widths}; give the same outputs, encoded alike"
            )
        before = self._labels(numpy_rows(tasks.X, np.arange(tasks.n_rows)))
        self._residuals = [to_numpy(y) - before[to_numpy(r), t] for t, (y, r) in enumerate(zip(tasks.y, tasks.rows))]
        self._tasks, self._rms = tasks, None
        old = self._solution.n
        self._statistics, self._normals = self._statistics.plus(self._sums(tasks, None, "statistics")), None
        self._counts = self._counts + np.array([len(r) for r in tasks.rows])
        self.n_seen_ += len(tasks.seen)
        new = old + np.array([float(to_numpy(w).sum()) for w in tasks.weights])
        given = self._given_lam(new.tolist())
        self._solve(self.lam_ * old / new if given is None else given)
        self._settle()
        return self

    def held_out(
        self,
        tasks: Tasks,
        folds: list[Fold] | None,
        *,
        lams: np.ndarray | None = None,
        residuals: bool = False,
        variance: bool = False,
    ) -> Iterator[HeldOut]:
        """As every surrogate; for a path of lambdas (L, T) in place of `lam` from one pass over the rows for each fold."""
        if lams is None or folds is None:
            if lams is not None:
                raise ValueError("NystromRidge follows a path of lambdas on folds, not leave-one-out; give cv=5, say")
            yield from super().held_out(tasks, folds, residuals=residuals, variance=variance)
            return
        for k, (train, test) in enumerate(folds):
            part = training_part(tasks, k, train)
            yield clone(self)._along(part, numpy_rows(tasks.X, test), test, lams, residuals, variance)

    def _along(
        self, part: Tasks, X: np.ndarray, test: np.ndarray, lams: np.ndarray, residuals: bool, variance: bool
    ) -> HeldOut:
        """Fitted on `part` for every lambda of a path, and its predictions at X."""
        self.set_params(solver="direct")
        self._prepare(part, float(lams.min()))
        self._statistics = self._sums(self._tasks, None, "statistics")
        found = []
        for solution in self._engine.direct(self._normal_equations(), lams, self._widths):
            self._solution = solution
            self._settle()
            left, self._residuals = None, None
            if residuals:
                left = self.residuals()
            found.append((self.predict_tasks(X), left, self.noise_share(), self.variance(X) if variance else None))
        scores = [np.stack([f[0][t] for f in found]) for t in range(len(part))]
        out = HeldOut(test, part, scores)
        if residuals:
            out.residuals = [np.stack([f[1][t] for f in found]) for t in range(len(part))]  # type: ignore[index]
            out.noise = np.stack([f[2] for f in found])
        out.variance = np.stack([f[3] for f in found]) if variance else None  # type: ignore[misc]
        return out

    def state(self) -> dict[str, Any]:
        """The fitted ridge as a dict of arrays, numbers, strings and lists, sums included, so that it can be updated."""
        check_is_fitted(self, "lam_")
        return nystrom_state(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The ridge that `state()` described, with the same predictions to the last bit."""
        return nystrom_from_state(cls, state)

    # ------------------------------------------------------------------ alone, as a scikit-learn regressor

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """y (n,) or (n, T), NaN where a task was not observed."""
        tasks = self._read(X, y, sample_weight)
        self._single = tasks.single
        return self.fit_tasks(tasks)

    @available_if(lambda self: self.solver != "cg")
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from more rows; see `update`. The first call is `fit`. An output may be missing from a batch altogether."""
        if not hasattr(self, "lam_"):
            return self.fit(X, y, sample_weight)
        self._need_update()
        return self.update(self._read(X, y, sample_weight, reset=False))

    def _need_update(self) -> None:
        if not hasattr(self, "update"):
            raise ValueError(
                "NystromRidge with solver='cg' keeps no sums, so it cannot learn from more rows; solver='direct' would do"
            )

    def _read(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> Tasks:
        if y is None:
            raise ValueError("NystromRidge requires y to be passed, but the target y is None; pass (n,) or (n, T) labels")
        if not is_torch_array(X):
            return Tasks.read(self, X, y, sample_weight, reset=reset)
        values, names = check_outputs(to_numpy(y) if is_torch_array(y) else y)
        X = self._tensor(X, reset)
        if len(values) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and Y has {len(values)}: inconsistent numbers of samples")
        return Tasks.of(X, values, sample_weight, names, empty=not reset)

    def _tensor(self, X: Any, reset: bool) -> Any:
        """A tensor of inputs, checked where it is."""
        xp = array_namespace(X)
        if X.ndim != 2 or not X.shape[0] or not X.shape[1] or not bool(xp.all(xp.isfinite(X))):
            raise ValueError(
                f"NystromRidge: a tensor X of shape {tuple(X.shape)} must have rows and columns and no NaN or infinity; "
                "drop or fill what is missing"
            )
        if reset:
            self.n_features_in_ = int(X.shape[1])
        elif X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but NystromRidge is expecting {self.n_features_in_} features as input"
            )
        return X.to(xp.float64)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """(m,) or (m, T); with `return_std` also the standard deviation of a new observation at x (see `std`)."""
        check_is_fitted(self, "lam_")
        X = self._tensor(X, False) if is_torch_array(X) else check_inputs(self, X)
        columns = [found[:, -1:] for found in self.predict_tasks(X)]  # the labels are the last column of their encoding
        mean = columns[0][:, 0] if self._single else array_namespace(X).concat(columns, axis=1)
        if not return_std:
            return mean
        self._need_variance()
        std = self.std(X)
        return mean, std[:, 0] if self._single else std

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
