"""MTRL: the covariance of the tasks learned with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful.baselines.multitask._coupled import CoupledBaseline
from lawful.baselines.multitask._structures import Fixed, Relationship, Structure

__all__ = ["RelationshipLearning"]


class RelationshipLearning(CoupledBaseline):
    """Multi-task relationship learning (Zhang & Yeung, UAI 2010):

        min  sum_t (1/n_t) sum_i (y_it - f_t(x_it) - b_t)^2 + (lam1/2) sum_t |f_t|^2 + (lam2/2) sum_ts (Omega^-1)_ts <f_t, f_s>

    over f, b and Omega >= 0 with tr Omega = 1. Convex in all of them. Solved in turn: f for Omega is least squares with
    k((x, s), (z, t)) = C_st k(x, z), C = 2 Omega (lam1 Omega + lam2 I)^-1; Omega for f is G^(1/2) / tr G^(1/2) with G_ts =
    <f_t, f_s>. The original code adds 1e-8 to G and only alternates, which crawls where Omega becomes singular; here Omega
    may be singular, and after a few turns it is moved directly (`_alternate`). lam2 = 0 switches the coupling off:
    `SingleTask` with lam = lam1 / 2.

    Parameters
    ----------
    lam1, lam2 : weights of the plain and the coupled penalty; lam1 may be zero if lam2 is not, and the other way round
    kernel : None is x.x'; any of `lawful.kernels`, or a function
    intercept : whether each task has an unpenalised constant
    tol : stop at this duality gap, relative to the objective
    max_iter : rounds; a ConvergenceWarning names the gap when they do not suffice
    verbose : show a progress bar

    Attributes
    ----------
    task_covariance_ : Omega (T, T); `task_correlation_` is the same with a diagonal of ones
    task_matrix_, objective_, gap_, n_iter_, intercept_, coef_ or dual_coef_
    """

    def __init__(
        self,
        lam1: float = 0.1,
        lam2: float = 0.1,
        kernel: Any = None,
        intercept: bool = True,
        tol: float = 1e-5,
        max_iter: int = 1000,
        verbose: bool = False,
    ) -> None:
        self.lam1 = lam1
        self.lam2 = lam2
        self.kernel = kernel
        self.intercept = intercept
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def _lam(self) -> float:
        return 1.0

    def _structure(self, T: int) -> Structure:
        lam1, lam2 = self._positive("lam1", zero=True), self._positive("lam2", zero=True)
        if lam1 == lam2 == 0:
            raise ValueError("RelationshipLearning: lam1 and lam2 are both zero, nothing is regularised; give one above zero")
        return Fixed(2 * np.eye(T) / lam1) if lam2 == 0 else Relationship(T, lam1, lam2)

    def _after(self, structure: Structure, G: np.ndarray) -> None:
        T = len(G)
        self.task_covariance_ = structure.covariance(G) if isinstance(structure, Relationship) else np.eye(T) / T
        scale = np.sqrt(np.maximum(np.diag(self.task_covariance_), 1e-300))
        self.task_correlation_ = self.task_covariance_ / np.outer(scale, scale)
