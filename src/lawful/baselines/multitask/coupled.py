"""Baselines whose penalty is a matrix of the tasks, given (a common mean, linear relations) or learned (MTRL, CMTL)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._checks import count, number
from lawful.baselines.multitask._alternate import alternate
from lawful.baselines.multitask._base import COUPLED, Baseline
from lawful.baselines.multitask._structures import Clusters, Fixed, Relationship, Structure
from lawful.baselines.multitask._systems import make_system
from lawful.tasks import Tasks

__all__ = ["ClusteredMTL", "LinearRelations", "MeanRegularized", "RelationshipLearning"]


class CoupledBaseline(Baseline):
    """Subclasses say which `Structure` they use. Fitted: `task_matrix_`, the C of k((x, s), (z, t)) = C_st k(x, z)."""

    tol: float
    max_iter: int
    verbose: Any

    def _structure(self, T: int) -> Structure:
        raise NotImplementedError

    def _lam(self) -> float:
        return number(self, "lam")

    def _learn(self, tasks: Tasks) -> None:
        lam, tol, max_iter = self._lam(), number(self, "tol", zero=True), count(self, "max_iter")
        problem = self._problem(tasks)
        structure = self._structure(problem.n_tasks)
        system = make_system(problem)
        found = alternate(system, structure, lam, tol, max_iter, self.verbose)
        self.task_matrix_ = found.C
        self.task_gram_ = found.solution.gram
        self._after(structure, found.solution.gram)
        self._store(problem, found.solution.B, found.solution.bias, system.primal)
        self._certify(found.gap, found.objective, found.allowed, found.n_iter)

    def _after(self, structure: Structure, G: np.ndarray) -> None:
        pass


class LearnedCoupling(CoupledBaseline):
    """The matrix of the tasks is learned with them: iterations, and a tolerance to stop at."""

    def __init__(self, kernel: Any, intercept: bool, tol: float, max_iter: int, verbose: bool) -> None:
        self.kernel = kernel
        self.intercept = intercept
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose


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

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 3))
    >>> Y = X @ rng.standard_normal((3, 2)) + 0.1 * rng.standard_normal((40, 2))
    >>> from lawful.baselines import MeanRegularized
    >>> MeanRegularized(mu=0.1).fit(X, Y).predict(X[:5]).shape
    (5, 2)
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
        return Fixed(np.eye(T) + 1 / number(self, "mu", infinite=True, hint=COUPLED))


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

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 3))
    >>> Y = X @ rng.standard_normal((3, 2)) + 0.1 * rng.standard_normal((40, 2))
    >>> from lawful.baselines import LinearRelations
    >>> LinearRelations([[1.0, 0.5], [0.5, 1.0]]).fit(X, Y).predict(X[:5]).shape
    (5, 2)
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


class RelationshipLearning(LearnedCoupling):
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

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 3))
    >>> Y = X @ rng.standard_normal((3, 2)) + 0.1 * rng.standard_normal((40, 2))
    >>> from lawful.baselines import RelationshipLearning
    >>> RelationshipLearning().fit(X, Y).predict(X[:5]).shape
    (5, 2)
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
        super().__init__(kernel, intercept, tol, max_iter, verbose)
        self.lam1 = lam1
        self.lam2 = lam2

    def _lam(self) -> float:
        return 1.0

    def _structure(self, T: int) -> Structure:
        lam1, lam2 = number(self, "lam1", zero=True), number(self, "lam2", zero=True)
        if lam1 == lam2 == 0:
            raise ValueError("RelationshipLearning: lam1 and lam2 are both zero, nothing is regularised; give one above zero")
        return Fixed(2 * np.eye(T) / lam1) if lam2 == 0 else Relationship(T, lam1, lam2)

    def _after(self, structure: Structure, G: np.ndarray) -> None:
        T = len(G)
        self.task_covariance_ = structure.covariance(G) if isinstance(structure, Relationship) else np.eye(T) / T
        scale = np.sqrt(np.maximum(np.diag(self.task_covariance_), 1e-300))
        self.task_correlation_ = self.task_covariance_ / np.outer(scale, scale)


class ClusteredMTL(LearnedCoupling):
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

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 3))
    >>> Y = X @ rng.standard_normal((3, 2)) + 0.1 * rng.standard_normal((40, 2))
    >>> from lawful.baselines import ClusteredMTL
    >>> ClusteredMTL().fit(X, Y).predict(X[:5]).shape
    (5, 2)
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
        super().__init__(kernel, intercept, tol, max_iter, verbose)
        self.lam = lam
        self.eps_mean = eps_mean
        self.eps_between = eps_between
        self.eps_within = eps_within
        self.n_clusters = n_clusters

    def _structure(self, T: int) -> Clusters:
        mean, between, within = (number(self, name) for name in ("eps_mean", "eps_between", "eps_within"))
        if not mean <= between <= within:
            raise ValueError(
                f"ClusteredMTL: the prices eps_mean={mean:g}, eps_between={between:g}, eps_within={within:g} are out of order; "
                "the scatter inside clusters must cost most and the mean least"
            )
        return Clusters(T, mean, between, within, min(count(self, "n_clusters"), T))
