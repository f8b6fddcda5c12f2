"""f = theta(h(x)): the law as a parametrisation, which the paper argues against."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from tqdm import tqdm

from lawful._array import eigh
from lawful._checks import count, number
from lawful.baselines.multitask._base import Baseline
from lawful.baselines.multitask._problem import Problem
from lawful.tasks import Tasks

__all__ = ["ParametrizedRegressor"]

MAX_ROWS = 5000  # for kernels without features: their matrix is diagonalised
CANDIDATES = 400
STEP = 1e-6


class ParametrizedRegressor(Baseline):
    """The explicit alternative (eq:alternative-formulation): outputs theta(h(x)) of a smooth theta: R^Q -> R^T,

        min  sum_t (1/n_t) sum_i w_it (y_it - theta_t(h(x_i)))^2 + lam sum_q |h_q|^2,

    h_q in the space of the kernel, plus a constant.

    Predictions obey the law by construction. But the problem is not convex, and which h is found depends on theta and not
    only on the set it parametrises. Solved by L-BFGS from several starts, in coordinates in which the problem of theta =
    identity would be perfectly conditioned; half of the starts regress latent points whose theta is near the labels, half
    are random. The best local minimum is kept: `gradient_norm_` certifies that it is one, nothing certifies that it is
    global.

    Parameters
    ----------
    theta : function of an (m, Q) array, returning (m, T), vectorised over rows; None is the identity, which is `SingleTask`
    n_latent : Q, needed with theta
    jacobian : function (m, Q) -> (m, T, Q); None uses central differences
    lam, kernel, intercept : as in `MeanRegularized`; the constant belongs to h
    n_starts, latent_scale : how many starts, and the standard deviation of the latent points they are drawn from
    tol : stop where the gradient is this small, relative to the square root of (objective times its value at the best constant)
    max_iter : iterations of each start
    random_state : draws the starts; None is a fixed seed
    verbose : show a progress bar

    Attributes
    ----------
    objective_, gradient_norm_ (relative, as tol), n_iter_, start_objectives_ (one for each start), coef_ or dual_coef_ and
    intercept_ (of h; `latent(X)` evaluates it)

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> Y = np.c_[np.cos(X), np.sin(X)]
    >>> from lawful.baselines import ParametrizedRegressor
    >>> theta = lambda z: np.c_[np.cos(z[:, 0]), np.sin(z[:, 0])]
    >>> c = ParametrizedRegressor(theta, n_latent=1, lam=1e-3, n_starts=2, max_iter=50).fit(X, Y).predict(X[:5])
    >>> (c**2).sum(axis=1).round(6)
    array([1., 1., 1., 1., 1.])
    """

    def __init__(
        self,
        theta: Callable[[np.ndarray], np.ndarray] | None = None,
        n_latent: int | None = None,
        jacobian: Callable[[np.ndarray], np.ndarray] | None = None,
        lam: float = 0.1,
        kernel: Any = None,
        intercept: bool = True,
        n_starts: int = 8,
        latent_scale: float = 2.0,
        tol: float = 1e-5,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.theta = theta
        self.n_latent = n_latent
        self.jacobian = jacobian
        self.lam = lam
        self.kernel = kernel
        self.intercept = intercept
        self.n_starts = n_starts
        self.latent_scale = latent_scale
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def _learn(self, tasks: Tasks) -> None:
        lam, tol, max_iter = number(self, "lam"), number(self, "tol"), count(self, "max_iter")
        number(self, "latent_scale")
        n_starts = count(self, "n_starts")
        problem = self._problem(tasks)
        self._check_theta(problem.n_tasks)
        coordinates = Coordinates(problem, lam)
        rng = np.random.default_rng(0 if self.random_state is None else self.random_state)
        Q, Z = self._Q, coordinates.Z
        null, total = problem.null_loss, problem.loss(problem.Y)
        scale = null if null > 1e-24 * total else total or 1.0  # outputs that are constant up to rounding
        # without theta the unknowns have the unit of the outputs, and slopes must not look small because outputs are large
        unit = float(np.sqrt(scale)) if self.theta is None else 1.0

        def value(v: np.ndarray) -> tuple[float, np.ndarray]:
            V = unit * v.reshape(-1, Q)
            h = Z @ V[:-1] + V[-1] * problem.intercept
            residual = np.where(problem.mask, problem.Y - self._theta(h), 0.0)
            pull = -2 * np.einsum("it,itq->iq", problem.omega * residual, self._slopes(h))
            gradient = np.vstack(
                [Z.T @ pull + 2 * lam * coordinates.price[:, None] * V[:-1], pull.sum(axis=0) * problem.intercept]
            )
            penalty = lam * float((coordinates.price[:, None] * V[:-1] ** 2).sum())
            return (problem.loss(residual) + penalty) / scale, gradient.ravel() * (unit / scale)

        starts = 1 if self.theta is None else n_starts
        found = []
        with tqdm(total=starts, desc="starts", disable=not self.verbose) as bar:
            for k in range(starts):
                v = self._start(problem, coordinates, rng, k)
                options = {
                    "maxiter": max_iter,
                    "maxfun": 10 * max_iter,
                    "ftol": 1e-16,
                    "gtol": 0.1 * tol,
                }
                found.append(minimize(value, v.ravel() / unit, jac=True, method="L-BFGS-B", options=options))
                bar.set_postfix(objective=f"{min(r.fun for r in found) * scale:.6g}")
                bar.update()
        best = min(found, key=lambda r: r.fun)
        V = unit * best.x.reshape(-1, Q)
        self.start_objectives_ = np.array([scale * r.fun for r in found])
        self.objective_, self.n_iter_ = scale * float(best.fun), int(best.nit)
        self.gradient_norm_ = float(np.linalg.norm(value(best.x)[1]) / max(np.sqrt(best.fun), np.sqrt(1e-12)))
        self._store(problem, *coordinates.function(V), coordinates.primal)
        if self.gradient_norm_ > tol:
            warnings.warn(
                f"ParametrizedRegressor stopped after {best.nit} iterations with a relative gradient of "
                f"{self.gradient_norm_:.1e}, above tol={tol:g}; raise max_iter or tol, or give the jacobian of theta",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _check_theta(self, T: int) -> None:
        if self.theta is None:
            self._Q = T
            return
        if not callable(self.theta):
            raise TypeError(f"ParametrizedRegressor(theta={self.theta!r}) will not do; give a function (m, Q) -> (m, {T})")
        if not isinstance(self.n_latent, int | np.integer) or self.n_latent < 1:
            raise ValueError(f"ParametrizedRegressor(n_latent={self.n_latent!r}) lacks the number of latent variables; give Q")
        self._Q = int(self.n_latent)
        shape = np.shape(self.theta(np.zeros((3, self._Q))))
        if shape != (3, T):
            raise ValueError(f"ParametrizedRegressor: theta returned shape {shape} for (3, {self._Q}); (3, {T}) was expected")
        if self.jacobian is not None and np.shape(self.jacobian(np.zeros((3, self._Q)))) != (3, T, self._Q):
            raise ValueError(f"ParametrizedRegressor: jacobian must return shape (m, {T}, {self._Q}) for (m, {self._Q})")

    def _theta(self, h: np.ndarray) -> np.ndarray:
        return h if self.theta is None else np.asarray(self.theta(h), dtype=float)

    def _slopes(self, h: np.ndarray) -> np.ndarray:
        if self.theta is None:
            return np.broadcast_to(np.eye(self._Q), (len(h), self._Q, self._Q))
        if self.jacobian is not None:
            return np.asarray(self.jacobian(h), dtype=float)
        columns = []
        for q in range(self._Q):
            step = np.zeros_like(h)
            step[:, q] = STEP * np.maximum(1.0, np.abs(h[:, q]))
            columns.append((self._theta(h + step) - self._theta(h - step)) / (2 * step[:, q : q + 1]))
        return np.stack(columns, axis=2)

    def _start(self, problem: Problem, coordinates: Coordinates, rng: np.random.Generator, k: int) -> np.ndarray:
        Q, r = self._Q, coordinates.Z.shape[1]
        if self.theta is None:
            return np.zeros((r + 1, Q))
        if k % 2:
            return np.vstack(
                [0.1 * self.latent_scale * rng.standard_normal((r, Q)), self.latent_scale * rng.standard_normal(Q)]
            )
        latent = self.latent_scale * rng.standard_normal((CANDIDATES, Q))
        image, omega = self._theta(latent), np.where(problem.mask, 1.0, 0.0)
        distance = omega @ (image**2).T - 2 * (omega * problem.Y) @ image.T
        return coordinates.regress(latent[np.argmin(distance, axis=1)])

    def latent(self, X: Any) -> np.ndarray:
        """h(x), (m, Q)."""
        return super()._values(np.asarray(X, dtype=float))

    def _values(self, X: np.ndarray) -> np.ndarray:
        return self._theta(super()._values(X))


class Coordinates:
    """h = Z V + c with features Z that are uncorrelated over the rows, and |h|^2 = sum price V^2, such that the Hessian of the
    problem without theta is the identity."""

    def __init__(self, problem: Problem, lam: float) -> None:
        self.problem = problem
        phi = problem.features()
        self.primal = phi is not None
        if phi is None:
            if problem.n_rows > MAX_ROWS:
                raise ValueError(
                    f"ParametrizedRegressor: {problem.n_rows} distinct rows are too many for a kernel without features; the "
                    "linear kernel on inputs mapped by sklearn.kernel_approximation.Nystroem would do"
                )
            s, E = eigh(problem.gram())
            keep = s > 1e-13 * max(s[-1], 1e-300)
            phi = E[:, keep] * np.sqrt(s[keep])
            self.back = E[:, keep] / np.sqrt(s[keep])  # weights of features -> weights of the kernel
        weight = problem.omega.sum(axis=1)
        self.mean = weight @ phi / weight.sum() if problem.intercept else np.zeros(phi.shape[1])
        centred = phi - self.mean
        s, E = eigh(centred.T @ (weight[:, None] * centred) / problem.n_tasks)
        size = np.sqrt(np.maximum(s, 0.0) + lam)
        self.map = E / size
        self.Z, self.price = centred @ self.map, 1 / size**2
        self.weight, self.lam = weight / problem.n_tasks, lam

    def regress(self, H: np.ndarray) -> np.ndarray:
        """Ridge regression of latent points: the Hessian is the identity, so one product."""
        c = self.weight @ H / self.weight.sum() * self.problem.intercept
        return np.vstack([self.Z.T @ (self.weight[:, None] * (H - c)), c])

    def function(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        B = self.map @ V[:-1]
        bias = V[-1] * self.problem.intercept - self.mean @ B
        return (B if self.primal else self.back @ B), bias
