"""Several regressions as one: the arrays that every baseline works on.

All baselines of this package that use the square loss minimise

    sum_t (1/n_t) sum_i w_it (y_it - f_t(x_i) - b_t)^2 + lam * Omega(f),        n_t = sum_i w_it,

and differ in Omega alone. Here omega_it = w_it / n_t, zero where task t was not observed at x_i, so that tasks with inputs of
their own (`lawful.stack_tasks`) and tasks that share them are one case: the first are a matrix with many zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lawful._array import Array
from lawful.kernels import Kernel, Linear, Precomputed, Stationary, as_kernel
from lawful.surrogates import KernelRidge
from lawful.tasks import Tasks

__all__ = ["InnerProduct", "Problem", "make_problem", "resolve_kernel"]


LARGE, BLOCK = 3000, 64  # rows


class InnerProduct(Linear):
    """x.x' without a constant: its features are the inputs themselves."""

    def __init__(self, bias: float = 0.0) -> None:
        super().__init__(bias)

    def features(self, X: Array) -> Array:
        return X


@dataclass
class Problem:
    """Y (p, T), zero where not observed; omega (p, T); rows (p,) the rows of X that have any observation."""

    X: np.ndarray
    rows: np.ndarray
    Y: np.ndarray
    omega: np.ndarray
    kernel: Kernel
    intercept: bool

    @property
    def n_tasks(self) -> int:
        return self.Y.shape[1]

    @property
    def n_rows(self) -> int:
        return self.Y.shape[0]

    @property
    def mask(self) -> np.ndarray:
        return self.omega > 0

    @property
    def shared(self) -> bool:
        """Whether every task is seen on all rows with the same weights: one eigendecomposition then serves all."""
        return bool(np.all(self.mask) and np.allclose(self.omega, self.omega[:, :1], rtol=1e-12, atol=0.0))

    def gram(self) -> np.ndarray:
        p = self.n_rows
        if p <= LARGE or isinstance(self.kernel, Precomputed):
            return np.asarray(self.kernel.gram(self.X, self.rows), dtype=float)
        K = np.empty((p, p))  # in blocks that stay in the cache
        for i in range(0, p, BLOCK):
            K[i : i + BLOCK] = self.kernel.cross(self.X[self.rows[i : i + BLOCK]], self.X, self.rows)
        return K

    def features(self) -> np.ndarray | None:
        """Explicit features of the rows, if the kernel has any and they are fewer than the rows."""
        if not hasattr(self.kernel, "features"):
            return None
        phi = self.kernel.features(self.X[self.rows])
        return phi if phi.shape[1] < self.n_rows else None

    def means(self, values: np.ndarray) -> np.ndarray:
        """omega-weighted mean of each column of `values` (p, T), or zeros when there is no intercept."""
        if not self.intercept:
            return np.zeros(self.n_tasks)
        return (self.omega * values).sum(axis=0) / self.omega.sum(axis=0)

    def loss(self, residual: np.ndarray) -> float:
        return float((self.omega * residual**2).sum())

    @property
    def null_loss(self) -> float:
        """The loss of predicting the mean of each task: the scale on which rounding is measured."""
        return self.loss(self.Y - self.means(self.Y))


def make_problem(tasks: Tasks, kernel: Any, intercept: bool) -> Problem:
    seen = tasks.seen
    Y, omega = np.nan_to_num(tasks.Y[seen]), tasks.weight[seen] / [w.sum() for w in tasks.weights]
    return Problem(tasks.X, seen, Y, omega, resolve_kernel(kernel, tasks, intercept), intercept)


def resolve_kernel(kernel: Any, tasks: Tasks, intercept: bool) -> Kernel:
    """None is x.x' (the bias is the task's own); length scales left at "auto" are tuned once, for all tasks together."""
    kernel = InnerProduct() if kernel is None else as_kernel(kernel)
    if isinstance(kernel, Stationary) and isinstance(kernel.sigma, str):
        kernel = KernelRidge(kernel, scales="shared", intercept=intercept, tune="loo").fit_tasks(tasks).kernel_
    if not isinstance(kernel, Precomputed):
        with np.errstate(over="ignore"):
            size = kernel.diag(tasks.X[tasks.seen])
        if not np.isfinite(size).all():
            raise ValueError(
                f"{kernel!r} is infinite at these inputs: their products leave double precision; rescale the inputs, for "
                "example with scikit-learn's StandardScaler"
            )
    return kernel
