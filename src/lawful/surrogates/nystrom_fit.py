"""How a `NystromRidge` is fitted: what it is built on, its sums, its lambdas, its solutions.

Lambda is chosen for each task by the error of rows that were held out of the sums: the sums of both parts are kept apart, the
whole path is solved on the one and judged on the other, and then they are added. Few rows are too few to hold any out: there
generalised cross-validation, (RSS / n) / (1 - df / n)^2 from the sums alone, takes its place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from tqdm import tqdm

from lawful._array import Array, array_namespace, to_numpy
from lawful._checks import choice, count, number
from lawful.kernels import FunctionKernel, Kernel, Precomputed, as_kernel
from lawful.surrogates.blocks import BYTES, Host
from lawful.surrogates.centres import centers_of, numpy_rows, tuned
from lawful.surrogates.engine import Engine, Solution, merged
from lawful.surrogates.intercepts import without_base
from lawful.surrogates.normal import Normal
from lawful.surrogates.samples import observations
from lawful.surrogates.scales import is_auto
from lawful.surrogates.statistics import Statistics
from lawful.tasks import Tasks

__all__ = ["NystromFit"]

HELD, HELD_SHARE = 10_000, 0.1  # rows held out to choose lambda: at most so many, at most such a share
ENOUGH = 20_000  # rows from which on some are held out; below, generalised cross-validation chooses
AROUND = 10.0 ** np.arange(-2, 2.01, 0.5)  # lambdas around that of evidence
WIDE = 10.0 ** np.arange(-9, 1.01, 0.5)  # of the level of the kernel, where there is no evidence
FEW = 10.0 ** np.array([-1.0, -0.5, 0.0, 0.5, 1.0])  # where each costs iterations
DIRECT, DIRECT_DEVICE = 6000, 40_000  # centres times Gram matrices up to which these are formed
ROUGH = 1e-4  # relative residual that is enough to compare lambdas


class NystromFit:
    """The part of `NystromRidge` that fits; parameters are those of the subclass."""

    kernel: Any
    lam: Any
    n_centers: Any
    centers: Any
    solver: str
    intercept: Any
    dtype: str
    block_size: int | None
    device: Any
    random_state: Any
    tol: float
    max_iter: int
    verbose: bool

    def fit_tasks(self, tasks: Tasks) -> Self:
        tasks = self._prepare(tasks)
        lam = self._lam
        if self.solver_ == "cg":
            self._iterate(tasks, lam)
            return self
        if lam is None:
            lam = self._best_lam(tasks)
        else:
            self._statistics = self._sums(tasks, None, "statistics")
        self._solve(lam)
        if self.dtype != "float64":
            (self._solution,), self.n_iter_, _ = self._refined(tasks, lam)
        self._settle()
        return self

    def _prepare(self, tasks: Tasks, smallest: float | None = None) -> Tasks:
        """Kernel, lambda where it is known, centres and solver; the tasks without what a fixed intercept explains.

        `smallest`: no lambda will be below it, where a path is to be followed.
        """
        self._check()
        tasks, intercept, self._bases = without_base(self.intercept, merged(tasks), type(self).__name__)
        seed = 0 if self.random_state is None else int(np.random.default_rng(self.random_state).integers(2**31))
        self._seed, self._widths, self._tasks = seed, [int(z.shape[1]) for z in tasks.Z], replace(tasks, elsewhere=None)
        if tasks.elsewhere is None:
            self._counts = np.array([self._count(tasks, t) for t in range(len(tasks))], dtype=float)
            sizes = [float(to_numpy(w).sum()) for w in tasks.weights]
        else:
            self._counts, sizes = tasks.elsewhere.counts, tasks.elsewhere.weights.tolist()
        kernel, given = self._given_kernel(), self._given_lam(sizes)
        self._base: np.ndarray | None = None  # lambda by evidence
        if kernel is None or is_auto(kernel):
            known = None if given is None else given * self._counts
            self.kernel_, g = tuned(kernel, tasks, intercept, known, seed)  # type: ignore[arg-type]
            self._base = g / self._counts if given is None else None
        else:
            self.kernel_ = kernel if isinstance(kernel, FunctionKernel) else clone(kernel)
        self._lam = given
        typical = given if given is not None else self._base
        lam = self._counts.mean() ** -0.5 if typical is None else float(np.median(typical))
        centers = centers_of(self, tasks, self.kernel_, lam, seed)
        if smallest is None and typical is not None:
            smallest = 0.3 * float(np.min(typical))
        self._engine = Engine(self.kernel_, centers, intercept, self, tasks.X, smallest)
        self.centers_, self.n_centers_ = self._engine.centers, self._engine.M
        self.kernels_ = [self.kernel_] * len(tasks)
        self.solver_ = self._chosen_solver(tasks)
        self.held_out_: dict[str, np.ndarray] | None = None
        self.n_iter_, self.n_seen_ = 1, tasks.n_seen
        self._normals: list[tuple[list[int], Normal]] | None = None
        self._residuals: list[np.ndarray] | None = None
        self._rms: np.ndarray | None = None  # known without rows
        return tasks

    @staticmethod
    def _count(tasks: Tasks, t: int) -> int:
        """How many observations a task has: where rows are few, weight 2 is a row repeated twice."""
        rows = to_numpy(tasks.rows[t])
        if len(rows) >= ENOUGH:
            return len(rows)
        group = np.unique(numpy_rows(tasks.X, rows), axis=0, return_inverse=True)[1].reshape(-1)
        return observations(group, to_numpy(tasks.y[t]), to_numpy(tasks.weights[t]))

    def _sums(self, tasks: Tasks, rows: np.ndarray | None, what: str) -> Statistics:
        if rows is None and tasks.elsewhere is not None:
            return tasks.elsewhere.sums(self._engine, self._bases)
        total = len(tasks.seen) if rows is None else len(rows)
        with tqdm(total=total, desc=f"NystromRidge: {what}", unit="row", disable=not self.verbose) as bar:
            return self._engine.statistics(tasks, rows, bar)

    def _solve(self, lam: np.ndarray) -> None:
        (self._solution,) = self._engine.direct(self._normal_equations(), lam[None, :], self._widths)

    def _normal_equations(self) -> list[tuple[list[int], Normal]]:
        if self._normals is None:
            self._normals = self._engine.normals(self._statistics)
        return self._normals

    def _refined(self, tasks: Tasks, lam: np.ndarray) -> tuple[list[Solution], int, float]:
        with tqdm(desc="NystromRidge: refinement", unit="step", disable=not self.verbose) as bar:
            return self._engine.iterate(tasks, None, lam[None, :], number(self, "tol"), int(self.max_iter), bar, self._normals)

    def _settle(self) -> None:
        """What is known of each task once it is solved."""
        s = self._solution
        self.lam_ = s.lam
        self.groups_ = [g for g, _ in self._normals] if self._normals is not None else [list(range(len(self._widths)))]
        free = np.maximum(self._counts - s.df, 1e-3 * self._counts)
        self._free = free / self._counts  # the share of the residual variance that is noise of the labels
        self._unit = np.maximum(s.rss / (free * s.n * s.lam), 1e-300)  # s2: the variance of the Gaussian process
        self._noise = self._unit * s.lam * self._counts
        self._spread = s.lam * self._counts / self._free  # the leave-one-out variance of an observation, in units of s2
        self.loo_mse_ = s.rss / s.n / self._free**2

    # ------------------------------------------------------------------ lambda

    def _best_lam(self, tasks: Tasks) -> np.ndarray:
        """By held-out rows, or by generalised cross-validation; the statistics of all rows are left in `_statistics`.

        Where rows are elsewhere, those of the sample that are held out are taken off the sums of all.
        """
        engine, seen = self._engine, tasks.seen
        path = self._path(tasks)
        if len(seen) < ENOUGH:
            self._statistics = self._sums(tasks, None, "statistics")
            return _best(path, self._cross_validated(engine.direct(self._normal_equations(), path, self._widths)), self._base)
        held, train = self._split(seen)
        if tasks.elsewhere is None:
            part = self._sums(tasks, train, "statistics")
        else:
            self._statistics = self._sums(tasks, None, "statistics")
            part = self._statistics.without(self._sums(tasks, held, "held-out rows"))
        solved = engine.direct(engine.normals(part), path, self._widths, df=False)
        error = self._errors(tasks, held, solved)
        if tasks.elsewhere is None:
            self._statistics = part.plus(self._sums(tasks, held, "held-out rows"))
        self.held_out_ = {"lam": path, "error": error}
        return _best(path, error, self._base)

    def _cross_validated(self, solved: list[Solution]) -> np.ndarray:
        """(L, T) by generalised cross-validation."""
        free = [np.maximum(1 - s.df / self._counts, 1e-3) for s in solved]
        return np.stack([s.rss / s.n / f**2 for s, f in zip(solved, free)])

    def _split(self, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(self._seed + 2)
        held = np.sort(rng.choice(seen, min(HELD, int(HELD_SHARE * len(seen))), replace=False))
        return held, np.setdiff1d(seen, held, assume_unique=True)

    def _path(self, tasks: Tasks, around: np.ndarray = AROUND) -> np.ndarray:
        """(L, T) lambdas to try, the same for all tasks."""
        if self._base is not None:
            lams = np.median(self._base) * around
        else:
            level = float(np.mean(to_numpy(self.kernel_.diag(self.centers_)))) or 1.0
            lams = level * (WIDE if len(around) > len(FEW) else 10.0 ** np.arange(-6, 0.1, 1.0))
        return np.tile(lams[:, None], (1, len(tasks)))

    def _errors(self, tasks: Tasks, rows: np.ndarray, solved: list[Solution]) -> np.ndarray:
        """(L, T) weighted mean squared errors of the labels on held-out rows; NaN for a task without any there."""
        last = np.cumsum(self._widths) - 1
        xp = array_namespace(solved[0].coef)
        coef = xp.concat([s.coef[:, last.tolist()] for s in solved], axis=1)
        found = self._engine.predict(numpy_rows(tasks.X, rows), coef, np.concatenate([s.beta[last] for s in solved]))
        found = found.reshape(len(rows), len(solved), len(tasks))
        out = np.full((len(solved), len(tasks)), np.nan)
        for t, (r, y, w) in enumerate(zip(tasks.rows, tasks.y, tasks.weights)):
            own = np.isin(to_numpy(r), rows)
            at = np.searchsorted(rows, to_numpy(r)[own])
            if at.size:
                off = found[at, :, t] - to_numpy(y)[own][:, None]
                out[:, t] = np.average(off**2, axis=0, weights=to_numpy(w)[own])
        return out

    def _iterate(self, tasks: Tasks, lam: np.ndarray | None) -> None:
        engine, tol, most = self._engine, number(self, "tol"), count(self, "max_iter")
        with tqdm(desc="NystromRidge: conjugate gradients", unit="step", disable=not self.verbose) as bar:
            if lam is None:
                path = self._path(tasks, FEW)
                if len(tasks.seen) < ENOUGH:
                    solved, _, _ = engine.iterate(tasks, None, path, max(tol, ROUGH), most, bar)
                    error = self._cross_validated(solved)
                else:
                    held, train = self._split(tasks.seen)
                    solved, _, _ = engine.iterate(tasks, train, path, max(tol, ROUGH), most, bar)
                    error = self._errors(tasks, held, solved)
                    self.held_out_ = {"lam": path, "error": error}
                lam = _best(path, error, self._base)
            rows = None if len(tasks.seen) == tasks.n_rows else tasks.seen
            (self._solution,), self.n_iter_, _ = engine.iterate(tasks, rows, lam[None, :], tol, most, bar)
        self._settle()

    def _labels(self, X: Array) -> np.ndarray:
        """(m, T) predictions of y less a fixed intercept."""
        last = (np.cumsum(self._widths) - 1).tolist()
        return to_numpy(self._engine.predict(X, self._solution.coef[:, last], self._solution.beta[last]))

    # ------------------------------------------------------------------ its parts

    def _check(self) -> None:
        choice(self, "solver", ("auto", "direct", "cg"))
        choice(self, "dtype", tuple(BYTES))
        number(self, "tol")
        count(self, "max_iter")
        if self.block_size is not None:
            count(self, "block_size")

    def _chosen_solver(self, tasks: Tasks) -> str:
        if self.solver != "auto":
            return self.solver
        if tasks.elsewhere is not None:  # iterations would bring the rows here again and again
            return "direct"
        limit = DIRECT if isinstance(self._engine.where, Host) else DIRECT_DEVICE
        return "direct" if self.n_centers_ * min(len(tasks.groups()), 8) <= limit else "cg"

    def _given_kernel(self) -> Kernel | None:
        kernel = self.kernel
        if isinstance(kernel, list | tuple):
            if not kernel or any(repr(one) != repr(kernel[0]) for one in kernel):
                raise ValueError("NystromRidge has one kernel for all tasks; give one, or a KernelRidge one for each")
            kernel = kernel[0]
        kernel = None if kernel is None else as_kernel(kernel)
        if isinstance(kernel, Precomputed):
            raise ValueError("NystromRidge evaluates its kernel, so Precomputed() will not do; KernelRidge takes a Gram matrix")
        return kernel

    def _given_lam(self, sizes: list[float]) -> np.ndarray | None:
        """Lambda of each task, None where it is to be tuned."""
        n, lam = np.asarray(sizes, dtype=float), self.lam
        if lam is None or (isinstance(lam, str) and lam == "auto"):
            return None
        if isinstance(lam, str):
            powers = {"consistent": -0.25, "rate": -0.5}
            return n ** powers[choice(self, "lam", ("auto", *powers))]
        values = np.asarray(lam, dtype=float)
        if values.shape not in ((), (1,), n.shape) or not np.all((values > 0) & np.isfinite(values)):
            raise ValueError(
                f"NystromRidge needs lam above zero and finite, one or one for each of {len(n)} tasks, got {lam!r}; "
                "lam='auto' would do"
            )
        return np.broadcast_to(values, n.shape).copy()


def _best(path: np.ndarray, error: np.ndarray, base: np.ndarray | None) -> np.ndarray:
    """(T,) the lambdas of the smallest errors (L, T); where a task has none, what evidence said or the middle of the others."""
    with np.errstate(invalid="ignore"):
        known = np.isfinite(error).all(axis=0) & (error.max(axis=0) > 0)
    out = np.full(path.shape[1], np.nan)
    for t in np.flatnonzero(known):
        out[t] = _lowest(np.log10(path[:, t]), error[:, t])
    if not known.any():
        return path[len(path) // 2] if base is None else base
    out[~known] = np.median(out[known]) if base is None else base[~known]
    return out


def _lowest(x: np.ndarray, error: np.ndarray) -> float:
    """10^x where a parabola through the smallest error and its neighbours is lowest, to a quarter: tasks may share it."""
    at = int(np.argmin(error))
    shift = 0.0
    if 0 < at < len(x) - 1:
        left, mid, right = np.log(np.maximum(error[at - 1 : at + 2], 1e-300))
        bend = left - 2 * mid + right
        shift = float(np.clip(0.5 * (left - right) / bend, -0.5, 0.5)) * (x[at + 1] - x[at]) if bend > 0 else 0.0
    return float(10 ** (x[at] + np.round(4 * shift) / 4))
