"""Wiener shrinkage: every task alone, then pulled towards where outputs usually are."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._checks import choice, number
from lawful.baselines.multitask._base import Baseline
from lawful.baselines.multitask._problem import resolve_kernel
from lawful.surrogates import KernelRidge
from lawful.tasks import Tasks

__all__ = ["WienerShrinkage"]


class WienerShrinkage(Baseline):
    """Ridge for every task, then the best linear guess of the output from it:

        f(x) = m + S (S + shrink V)^-1 (w(x) - m),     w(x) the predictions of `SingleTask`

    m and S are the mean and covariance of a cloud of outputs (which may have been seen without inputs), V = diag(v) the
    leave-one-out mean squared errors of the tasks. It is what a Gaussian cloud and Gaussian errors would make optimal, and hard
    to beat when all that is known of the law is a cloud. `lawful.Wiener` does the same as a decoder, with error variances that
    may depend on x. shrink = 0 switches it off: `SingleTask`.

    Parameters
    ----------
    cloud : (C, T) outputs; None are the rows of y in which every output is observed
    lam : as in `SingleTask`
    shrink : a factor on the error variances
    base : "intercept" (each ridge has its own unpenalised constant) or "cloud" (the constant is the mean of the cloud)
    kernel : None is x.x'; any of `lawful.kernels`, or a function

    Attributes
    ----------
    mean_ (T,), covariance_ (T, T), error_variance_ (T,), gain_ (T, T), the matrix S (S + shrink V)^-1

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 3))
    >>> Y = X @ rng.standard_normal((3, 2)) + 0.1 * rng.standard_normal((40, 2))
    >>> from lawful.baselines import WienerShrinkage
    >>> WienerShrinkage(cloud=Y).fit(X, Y).predict(X[:5]).shape
    (5, 2)
    """

    def __init__(
        self, cloud: Any = None, lam: Any = "auto", shrink: float = 1.0, base: str = "intercept", kernel: Any = None
    ) -> None:
        self.cloud = cloud
        self.lam = lam
        self.shrink = shrink
        self.base = base
        self.kernel = kernel

    def _learn(self, tasks: Tasks) -> None:
        shrink = number(self, "shrink", zero=True)
        choice(self, "base", ("intercept", "cloud"))
        points, weight = self._points(tasks)
        self.mean_ = np.average(points, axis=0, weights=weight)
        centred = points - self.mean_
        self.covariance_ = (weight[:, None] * centred).T @ centred / weight.sum()
        self.kernel_ = resolve_kernel(self.kernel, tasks, True)
        self.ridge_ = KernelRidge(
            self.kernel_, lam=self.lam, intercept=True if self.base == "intercept" else self.mean_, scales="shared"
        ).fit_tasks(tasks)
        self.error_variance_ = np.array(self.ridge_.loo_mse_)
        noise = shrink * np.diag(self.error_variance_)
        if shrink == 0:
            self.gain_ = np.eye(self.n_outputs_)
        else:
            self.gain_ = np.linalg.lstsq((self.covariance_ + noise).T, self.covariance_.T, rcond=1e-12)[0].T

    def _points(self, tasks: Tasks) -> tuple[np.ndarray, np.ndarray]:
        T = self.n_outputs_
        if self.cloud is not None:
            points = np.asarray(self.cloud, dtype=float)
            if points.ndim != 2 or points.shape[1] != T or len(points) < 2 or not np.isfinite(points).all():
                raise ValueError(
                    f"WienerShrinkage: cloud has shape {points.shape}; give at least two finite rows of {T} outputs"
                )
            return points, np.ones(len(points))
        values, weight = tasks.Y, tasks.weight.mean(axis=1)
        complete = ~np.isnan(values).any(axis=1)
        if not complete.any():
            raise ValueError("WienerShrinkage: no row of y has every output, so their covariance is not known; give cloud=")
        return values[complete], weight[complete]

    def _values(self, X: np.ndarray) -> np.ndarray:
        w = np.concatenate(self.ridge_.predict_tasks(X), axis=1)
        return self.mean_ + (w - self.mean_) @ self.gain_.T
