"""CMTL: tasks in unknown clusters, by the spectral relaxation."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful.baselines.multitask._coupled import CoupledBaseline
from lawful.baselines.multitask._structures import Clusters

__all__ = ["ClusteredMTL"]


class ClusteredMTL(CoupledBaseline):
    """Clustered multi-task learning (Jacob, Bach & Vert, NIPS 2008), the convex relaxation with a spectral norm.

    If the clusters were known, with M the projection onto functions constant on clusters and U = 11'/T,

        Omega = sum_ts (Sigma^-1)_ts <f_t, f_s>,   Sigma^-1 = eps_mean U + eps_between (M - U) + eps_within (I - M)

    prices the mean of all tasks, the scatter of cluster means around it and the scatter inside clusters. The relaxation
    replaces the unknown part by the best Sigma_c with 1/eps_within <= Sigma_c <= 1/eps_between whose trace is that of r
    clusters. It is convex; solved in turn for f (least squares) and Sigma_c (eigenvectors of the scatter, eigenvalues by
    one linear equation). Equal eps switch the coupling off: `SingleTask` with lam eps. (`ClusteredMTL` is not the
    relaxation of Zhou et al. 2011.)

    Parameters
    ----------
    lam : weight of Omega
    eps_mean, eps_between, eps_within : prices, eps_mean <= eps_between <= eps_within (the paper wants them strict)
    n_clusters : r, at least 1; more than there are tasks is as many as there are tasks
    kernel, intercept, tol, max_iter, verbose : as in `RelationshipLearning`

    Attributes
    ----------
    task_matrix_ : Sigma (T, T), large where tasks belong together
    objective_, gap_, n_iter_, intercept_, coef_ or dual_coef_
    """

    def __init__(
        self,
        lam: float = 0.1,
        eps_mean: float = 0.1,
        eps_between: float = 0.3,
        eps_within: float = 3.0,
        n_clusters: int = 2,
        kernel: Any = None,
        intercept: bool = True,
        tol: float = 1e-5,
        max_iter: int = 1000,
        verbose: bool = False,
    ) -> None:
        self.lam = lam
        self.eps_mean = eps_mean
        self.eps_between = eps_between
        self.eps_within = eps_within
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.intercept = intercept
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def _structure(self, T: int) -> Clusters:
        mean, between, within = (self._positive(name) for name in ("eps_mean", "eps_between", "eps_within"))
        if not mean <= between <= within:
            raise ValueError(
                f"ClusteredMTL: the prices eps_mean={mean:g}, eps_between={between:g}, eps_within={within:g} are out of order; "
                "the scatter inside clusters must cost most and the mean least"
            )
        if not isinstance(self.n_clusters, int | np.integer) or self.n_clusters < 1:
            raise ValueError(f"ClusteredMTL(n_clusters={self.n_clusters!r}) will not do; give a whole number from 1")
        return Clusters(T, mean, between, within, min(int(self.n_clusters), T))
