"""Everything of a `NystromRidge` that depends on its kernel and centres alone, and its work on rows: sums, solutions, fits.

Memory is planned before it is taken: a Gram matrix for each cell, a few matrices M x M to solve with, and a block of kernel
values, whose rows are as many as `block_size` says or as fit.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from tqdm import tqdm

from lawful._array import Array, array_namespace, is_torch_array, like, to_numpy
from lawful._memory import available_memory, require_memory
from lawful.kernels import Kernel
from lawful.surrogates.blocks import SETTLED, SMALLEST, Blocks, Host, Pivots, Torch, hardware, pivots, slices
from lawful.surrogates.gradient import Columns, Passes, Systems, conjugate_gradient, falkon
from lawful.surrogates.normal import Normal, Whitening, cholesky
from lawful.surrogates.statistics import BLOCK, DEVICE_BLOCK, PATTERNS, Layer, Statistics, accumulate, layers, places_of, take
from lawful.tasks import Tasks

__all__ = ["Engine", "Solution", "merged"]

WHO = "NystromRidge"
INFINITE = (
    "NystromRidge: {kernel!r} has entries that are NaN or infinite at these inputs; rescale them, for example with "
    "scikit-learn's StandardScaler"
)
ROUNDING = {"float32": 1e-7, "tf32": 1e-4}  # of kernel values, as it matters for sums of products of many of them
UNKNOWN = 1e-9  # lambda, where none is known yet
PASS = 2**23  # bytes of a block that is read twice and hardly worked on: it should stay in the caches
SOLVING = 6  # matrices M x M that solving needs beside the statistics


@dataclass
class Solution:
    """Predictions are k(x) coef + beta; df and rss (residual sum of squares) belong to the tasks, the rest to columns of Z."""

    coef: Array
    beta: np.ndarray
    lam: np.ndarray
    n: np.ndarray  # sum of the weights of each task
    df: np.ndarray
    rss: np.ndarray


class Engine:
    """Kernel, centres (M, d) and where the work is done."""

    def __init__(
        self, kernel: Kernel, centers: np.ndarray, intercept: bool, ridge: Any, X: Array, lam: float | None, ordered: Any = None
    ) -> None:
        """`lam`: about the smallest that will be asked for; `ordered`: the pivots of centres that are in order."""
        self.kernel, self.intercept, self.dtype = kernel, intercept, ridge.dtype
        self.where: Host | Torch = hardware(ridge.device, ridge.dtype, X)
        M = len(centers)
        self._require(M, f"{M} centres", SOLVING * 8.0 * M * M)
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(to_numpy(kernel.diag(centers))).all():
                raise ValueError(INFINITE.format(kernel=kernel))
        settled = SETTLED if lam is None else float(np.clip(SMALLEST * lam, 1e-10, 1e-2))
        found = pivots(kernel, centers, settled, self.where) if ordered is None else Pivots(np.arange(M), *ordered)
        self.centers, self.found = centers[found.order], found
        self.blocks = Blocks(kernel, self.centers, found, self.where)
        if ridge.block_size is None:
            budget = BLOCK if isinstance(self.where, Host) else DEVICE_BLOCK
            self.size = self.blocks.rows(budget)
        else:
            self.size = int(ridge.block_size)
        narrow = isinstance(self.where, Host) and ridge.block_size is None
        self.pass_size = min(self.size, self.blocks.rows(PASS)) if narrow else self.size
        self.smallest = UNKNOWN if lam is None else lam
        self._double: Blocks | None = None
        self._whitening: Whitening | None = None

    @property
    def M(self) -> int:
        return self.blocks.M

    @property
    def widest(self) -> Blocks:
        """Kernel values in double precision, whatever the statistics are in."""
        if self._double is None:
            where = Host() if isinstance(self.where, Host) else Torch(self.where.device)
            same = self.where.dtype == where.dtype
            self._double = self.blocks if same else Blocks(self.kernel, self.centers, self.found, where)
        return self._double

    @property
    def whitening(self) -> Whitening:
        if self._whitening is None:
            K = self.widest.where.empty(self.M, self.M)
            self.widest.fill(self.centers, K, plain=True)
            if not bool(array_namespace(K).all(array_namespace(K).isfinite(K))):
                raise ValueError(INFINITE.format(kernel=self.kernel))
            self._whitening = Whitening((K + K.T) / 2, self.found, self.smallest, self.widest.where)
        return self._whitening

    def _require(self, M: int, what: str, needed: float) -> None:
        if isinstance(self.where, Host):
            require_memory(WHO, needed, what, "fewer n_centers, or solver='cg' (which keeps no Gram matrix), would do")

    # ------------------------------------------------------------------ sums

    def plan(self, tasks: Tasks, rows: np.ndarray | None = None) -> list[Layer]:
        """Cells of the rows, as many as there is memory for; and an error where there is none."""
        room = int(available_memory() / 2 / (8.0 * self.M**2)) if isinstance(self.where, Host) else PATTERNS
        plan = layers(tasks, rows, min(PATTERNS, room))
        count = len({key for layer in plan for key, _ in layer.cells})
        block = 8.0 * self.size * self.M
        self._require(self.M, f"{count} Gram matrices of {self.M} centres", 8.0 * self.M**2 * (count + SOLVING) + 2 * block)
        return plan

    def statistics(self, tasks: Tasks, rows: np.ndarray | None, bar: tqdm | None = None) -> Statistics:
        return accumulate(self.blocks, tasks.X, tasks.Z, self.plan(tasks, rows), places_of(tasks), self.size, bar)

    def normals(self, statistics: Statistics) -> list[tuple[list[int], Normal]]:
        """The normal equations of every group of tasks with the same rows."""
        where = self.widest.where
        return [(g, Normal(statistics.of(g), self.whitening, self.intercept, where)) for g in statistics.groups()]

    # ------------------------------------------------------------------ solutions

    def direct(
        self, normals: list[tuple[list[int], Normal]], lams: np.ndarray, widths: list[int], df: bool = True
    ) -> list[Solution]:
        """For lams (L, T) a solution each, columns of Z task by task."""
        L, T = lams.shape
        starts, k = np.cumsum([0, *widths]), int(sum(widths))
        empty = self.widest.where
        out = [Solution(empty.zeros(self.M, k), np.zeros(k), lams[l], np.zeros(T), np.zeros(T), np.zeros(T)) for l in range(L)]
        for g, normal in normals:
            offsets = np.cumsum([0] + [widths[t] for t in g])
            inside = {t: range(int(offsets[i]), int(offsets[i + 1])) for i, t in enumerate(g)}
            for l in range(L):
                for lam in np.unique(lams[l, g]):
                    some = [t for t in g if lams[l, t] == lam]
                    columns = [j for t in some for j in inside[t]]
                    solved = normal.solve(float(lam), columns, df)
                    coef, beta = self.whitening.to_kernel(solved.c), normal.beta(solved.c, columns)
                    left = normal.left(float(lam), solved.c, columns)
                    start = 0
                    for t in some:
                        own, width = slice(int(starts[t]), int(starts[t + 1])), widths[t]
                        out[l].coef[:, own] = coef[:, start : start + width]
                        out[l].beta[own] = beta[start : start + width]
                        out[l].n[t], out[l].df[t] = normal.n, solved.df
                        out[l].rss[t] = left[start + width - 1]  # the labels are the last column of their encoding
                        start += width
        return out

    def iterate(
        self,
        tasks: Tasks,
        rows: np.ndarray | None,
        lams: np.ndarray,
        tol: float,
        max_iter: int,
        bar: tqdm | None = None,
        normals: list[tuple[list[int], Normal]] | None = None,
    ) -> tuple[list[Solution], int, float]:
        """As `direct`, by conjugate gradients; preconditioned by what `normals` approximate, where they are given."""
        L, T = lams.shape
        widths = [z.shape[1] for z in tasks.Z]
        one = [(t, j) for t in range(T) for j in range(widths[t])]
        lam = np.concatenate([np.repeat(row, widths) for row in lams])
        columns = Columns(tasks, rows, one * L)
        passes = Passes(self.widest, tasks.X, columns, self.pass_size)
        make = falkon_of(self) if normals is None else self._single(normals, columns.columns)
        systems = Systems(passes, self.whitening, lam, self.intercept, make)
        start = None if normals is None else systems.precondition(systems.R)
        c, steps, left = conjugate_gradient(systems.apply, systems.precondition, systems.R, start, tol, max_iter, bar)
        if left > tol:
            warnings.warn(
                f"{WHO}: {steps} iterations left a relative residual of {left:.1e}, above {tol:.0e}; a larger max_iter or lam, "
                "or solver='direct' with dtype='float64', would do",
                ConvergenceWarning,
                stacklevel=2,
            )
        coef, k = self.whitening.to_kernel(c), len(one)
        beta = systems.beta(coef)
        rss, df = systems.left(c), systems.freedom()
        out = []
        for l in range(L):
            own = slice(l * k, (l + 1) * k)
            last = l * k + np.cumsum(widths) - 1  # the labels are the last column of their encoding
            out.append(Solution(coef[:, own], beta[own], lams[l], systems.n[last], df[last], rss[last]))
        return out, steps, left

    def _single(self, normals: list[tuple[list[int], Normal]], columns: list[tuple[int, int]]) -> Any:
        """Preconditioners A + n lambda I from statistics in single precision.

        These know nothing of directions of K_MM that are small beside their rounding, tau: with N = tau (D'D + tau I)^-1, which
        is 1 there and 0 elsewhere, A is replaced by (I - N) A (I - N) + N (n / M) L'L N.
        """
        tau = ROUNDING[self.dtype] * self.M
        N, product = self.whitening.small(tau), self.whitening.product()

        def make(n: np.ndarray, lam: np.ndarray) -> list[tuple[Array, list[int]]]:
            out = []
            for g, normal in normals:
                A = normal.A - N @ normal.A
                A = A - A @ N + (normal.n / self.M) * (N @ product @ N)
                A = (A + A.T) / 2
                mine = [i for i, (t, _) in enumerate(columns) if t in g]
                for value in np.unique(lam[mine]):
                    shift = normal.n * float(value)
                    C = cholesky(A, shift)
                    while C is None:
                        shift = 4 * shift + 1e-9 * normal.n
                        C = cholesky(A, shift)
                    out.append((C, [i for i in mine if lam[i] == value]))
            return out

        return make

    # ------------------------------------------------------------------ predictions

    def predict(self, X: Array, coef: Array, beta: np.ndarray, bar: tqdm | None = None) -> Array:
        """k(X) coef + beta, (m, columns), where X is."""
        blocks = self.widest
        where = blocks.where
        m, tensor = X.shape[0], is_torch_array(X)
        buffer = where.empty(min(self.size, max(m, 1)), self.M)
        coef, shift = where.array(coef, True), where.array(beta, True)
        parts: list[Array] = []
        for part in slices(m, self.size):
            K = buffer[: part.stop - part.start]
            blocks.fill(take(X, part, where), K, plain=True)
            found = K @ coef + shift[None, :]
            parts.append(found if tensor else to_numpy(found))
            if bar is not None:
                bar.update(part.stop - part.start)
        if not parts:
            parts = [where.zeros(0, coef.shape[1]) if tensor else np.zeros((0, coef.shape[1]))]
        if tensor:
            return like(array_namespace(*parts).concat(parts, axis=0), X)
        return np.concatenate(parts)

    def features(self, X: Array) -> Array:
        """phi(X)', (M, m); of few rows."""
        K = self.widest.where.empty(X.shape[0], self.M)
        self.widest.fill(X, K, plain=True)
        return self.whitening.from_kernel(K.T)


def falkon_of(engine: Engine) -> Any:
    return lambda n, lam: falkon(engine.whitening, n, lam)


def merged(tasks: Tasks) -> Tasks:
    """The same tasks with no row named twice: a row that counts twice has twice the weight."""
    if all(bool(np.all(np.diff(to_numpy(r)) > 0)) for r in tasks.rows):
        return tasks
    y, Z, rows, weights = [], [], [], []
    for v, z, r, w in zip(tasks.y, tasks.Z, tasks.rows, tasks.weights):
        own, first, which = np.unique(to_numpy(r), return_index=True, return_inverse=True)
        y.append(to_numpy(v)[first])
        Z.append(to_numpy(z)[first])
        rows.append(own)
        weights.append(np.bincount(which.reshape(-1), weights=to_numpy(w), minlength=len(own)))
    return Tasks(tasks.X, y, rows, weights, tasks.names, tasks.inputs, tasks.single, Z, tasks.atoms, tasks.frame)
