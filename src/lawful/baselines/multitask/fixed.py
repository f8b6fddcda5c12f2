"""Two baselines with a given matrix of the tasks: a common mean, and linear relations between outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful.baselines.multitask._coupled import CoupledBaseline
from lawful.baselines.multitask._structures import Fixed

__all__ = ["LinearRelations", "MeanRegularized"]


class MeanRegularized(CoupledBaseline):
    """Regularised multi-task learning: tasks that scatter around a common function (Evgeniou & Pontil, KDD 2004).

        f_t = h_0 + h_t,      Omega = mu |h_0|^2 + sum_t |h_t|^2

    which is one kernel machine on all data with  k((x, s), (z, t)) = (1/mu + [s = t]) k(x, z), and a bias for each task. The
    original parameters are mu = T lambda_2 / lambda_1. mu = inf switches the coupling off: `SingleTask` with the same lam.
    One linear system; how it is solved depends on the data (see `_systems`), and `gap_` certifies it.

    Parameters
    ----------
    lam : weight of Omega
    mu : price of the common part; small makes the tasks alike
    kernel : None is x.x'; any of `lawful.kernels`, or a function
    intercept : whether each task has an unpenalised constant
    tol : duality gap allowed, relative to the objective; larger ones give a ConvergenceWarning
    """

    def __init__(
        self, lam: float = 0.1, mu: float = 1.0, kernel: Any = None, intercept: bool = True, tol: float = 1e-6
    ) -> None:
        self.lam = lam
        self.mu = mu
        self.kernel = kernel
        self.intercept = intercept
        self.tol = tol

    max_iter, verbose = 1, False

    def _structure(self, T: int) -> Fixed:
        return Fixed(np.eye(T) + 1 / self._positive("mu", infinite=True))


class LinearRelations(CoupledBaseline):
    """Linear relations between the outputs, known beforehand (eq:matrix-A; Micchelli & Pontil 2004):

        Omega = sum_ts A_ts <f_t, f_s>

    with a positive semidefinite A, or outputs f = theta h of a linear theta (T, Q), for which A is the pseudo-inverse of
    theta theta'. The two are the same only if f stays in the range of theta, so where A is singular f is kept in the range of A
    (a direction that should rather be free gets a small eigenvalue). The bias of each task is free.

    Parameters
    ----------
    A : (T, T) positive semidefinite; None is the identity, which is `SingleTask`
    theta : (T, Q), instead of A
    lam, kernel, intercept, tol : as in `MeanRegularized`
    """

    def __init__(
        self,
        A: Any = None,
        lam: float = 0.1,
        theta: Any = None,
        kernel: Any = None,
        intercept: bool = True,
        tol: float = 1e-6,
    ) -> None:
        self.A = A
        self.lam = lam
        self.theta = theta
        self.kernel = kernel
        self.intercept = intercept
        self.tol = tol

    max_iter, verbose = 1, False

    def _structure(self, T: int) -> Fixed:
        if self.A is not None and self.theta is not None:
            raise ValueError("LinearRelations has both A and theta; give one of them")
        if self.theta is not None:
            theta = np.asarray(self.theta, dtype=float)
            if theta.ndim != 2 or theta.shape[0] != T or not np.isfinite(theta).all() or not theta.any():
                raise ValueError(f"LinearRelations: theta has shape {theta.shape}; give finite numbers ({T}, Q), not all zero")
            return Fixed(theta @ theta.T)
        if self.A is None:
            return Fixed(np.eye(T))
        A = np.asarray(self.A, dtype=float)
        if A.shape != (T, T) or not np.isfinite(A).all() or not np.allclose(A, A.T, atol=1e-10 * np.abs(A).max()):
            raise ValueError(f"LinearRelations: A has shape {A.shape}; give a symmetric matrix ({T}, {T}) of finite numbers")
        a, U = np.linalg.eigh(A)
        if a[0] < -1e-10 * np.abs(a).max() or a[-1] <= 0:
            raise ValueError(f"LinearRelations: A has the eigenvalue {a[0]:.3g}; it must be positive semidefinite and not zero")
        keep = a > 1e-10 * a[-1]
        return Fixed((U[:, keep] / a[keep]) @ U[:, keep].T)
