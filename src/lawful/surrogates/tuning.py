"""The "auto" rules: lambda for each task and one length scale for each input, by leave-one-out.

    J(theta) = sum_t min_lambda log LOO-MSE_t(theta, lambda)
               + (2/n) [sum_j (theta_j - mean theta)^2 / (2 tau^2) + (mean theta - log(1.5 sqrt(d)))^2 / 2]

over theta_j = log(length scale of input j / its standard deviation). The *log* makes the criterion free of the units of
the outputs, so that one unpredictable output cannot drown the others. The second term is a log-normal prior on the
ratios of the length scales, tau = 0.22 sqrt(n/d) <= 1, and on their size (n/2 log MSE plays the log-likelihood of a task): it
decides when there are few rows and many inputs, keeps twenty points from being interpolated by a polynomial, and vanishes
as n grows.

Gradient, by the adjoint method. With P of `exact`, c = P y, r_i = c_i / P_ii, and mse = sum_i w_i r_i^2 / n,

    dP = -P dK P   (with intercept too: P 1 = 0 and P G P = P)
    dJ = -<dK, sym(u c') + P diag(v) P>,   rho_i = dJ/dr_i = 2 w_i r_i / (n mse),
                                           u = P (rho_i / P_ii)_i,   v_i = dJ/dP_ii = -rho_i r_i / P_ii

and lambda, being optimal (or at a bound that does not depend on theta), contributes nothing: the envelope theorem.
In the eigenbasis, with Lam_t = (s + n lambda_t)^-1, the matrix is
D U [sum_t Lam_t (U' D diag(v_t) D U) Lam_t + sym(a_t b_t')] U' D, a_t = Lam_t U' D y_t, b_t = Lam_t U' D (rho / P_ii):
one product for each task and two shared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from sklearn.base import clone

from lawful._array import Array, array_namespace, device_of, like, to_numpy
from lawful.kernels import Stationary
from lawful.surrogates.exact import Factor, Sample, SpectralFactor

__all__ = ["Problem", "best_lam", "criterion", "input_scales", "round_digits", "tune_scales"]

EPS = float(np.finfo(float).eps)
FLOOR, CEILING = EPS, 1e2  # lambda relative to k(x, x): rounding of K is not to be fitted; all is noise
STEP = 0.5  # of the coarse grid, in decades
SCALE_BOUNDS = (1e-2, 1e4)  # length scales in standard deviations of their input
ISOTROPIC = 2.0 ** np.arange(-3, 6)  # starts, times sqrt(d)
LOCAL = 5  # so many of them see curvature; beyond, a kernel is nearly linear, another basin: descend from both
SHARP = np.log(16.0)
TAU = 0.22  # prior spread of the log length scales around their mean, for as many rows as inputs; grows as sqrt(n/d) up to 1
TYPICAL, BREADTH = 1.5, 1.0  # prior of their mean: about this many standard deviations times sqrt(d), within a factor e
BLOCK = 16  # tasks whose lambda paths are computed at once


class Problem(NamedTuple):
    """Tasks observed on the same rows with the same weights: their inputs, labels (n, k), and lambdas unless to be tuned."""

    sample: Sample
    Y: Array
    lam: np.ndarray | None = None


def best_lam(factor: Factor, Y: Array) -> tuple[np.ndarray, np.ndarray]:
    """The lambda of each column of Y with the least leave-one-out error, and that error; ties go to the larger."""
    parts = [_best_lam(factor, Y[:, i : min(i + BLOCK, Y.shape[1])]) for i in range(0, Y.shape[1], BLOCK)]
    return np.concatenate([lam for lam, _ in parts]), np.concatenate([mse for _, mse in parts])


def _best_lam(factor: Factor, Y: Array) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.log10(FLOOR * factor.level), np.log10(CEILING * factor.level)
    count = int(np.ceil((high - low) / STEP)) + 1
    grid = np.linspace(high, low, count)[:, None]  # descending, so that argmin resolves ties to the larger
    noise = (1e-15 * to_numpy(array_namespace(Y).max(array_namespace(Y).abs(Y), axis=0))) ** 2 + 1e-300
    columns = np.arange(Y.shape[1])

    def log_mse(points: np.ndarray) -> np.ndarray:
        # ten digits: a flat path must be a tie, not a lottery of rounding errors
        return np.round(np.log(np.maximum(factor.loo_mse(Y, 10.0**points), noise)), 10)

    best = grid[np.argmin(log_mse(grid), axis=0), 0]
    width = grid[0, 0] - grid[1, 0]
    for _ in range(3):  # each round divides the bracket by five; a parabola ends it
        width = width / 5
        around = np.clip(best[None, :] + width * np.arange(5, -6, -1)[:, None], low, high)
        values = log_mse(around)
        at = np.argmin(values, axis=0)
        best = around[at, columns]
    left, mid, right = (values[np.clip(at + k, 0, 10), columns] for k in (-1, 0, 1))
    bend = left - 2 * mid + right
    inside = (at > 0) & (at < 10) & (bend > 1e-9) & (best - width > low) & (best + width < high)
    shift = 0.5 * (right - left) / np.where(inside, bend, 1.0)
    best = best + np.where(inside, np.clip(shift, -1, 1) * width, 0.0)
    lam = 10.0**best
    return lam, np.maximum(factor.loo_mse(Y, lam[None, :])[0], noise)


def given_lam(factor: Factor, Y: Array, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The leave-one-out error of lambdas that are not to be tuned."""
    noise = (1e-15 * to_numpy(array_namespace(Y).max(array_namespace(Y).abs(Y), axis=0))) ** 2 + 1e-300
    return lam, np.maximum(factor.loo_mse(Y, lam[None, :])[0], noise)


def _adjoint(factor: SpectralFactor, Y: Array, lam: np.ndarray, mse: np.ndarray) -> Array:
    """W with dJ = <W, dK>, summed over the columns of Y."""
    root, w, U = factor.root[:, None], factor.w[:, None], factor.U
    nu = factor.nu(lam, Y.shape[1])
    Lam = 1 / (factor.s[:, None] + nu[None, :])
    code = factor.code(factor.sample.average(Y))
    diagonal = factor.diagonal(nu)
    r = factor.apply(code, nu) / diagonal
    rho = 2 * w * r / (factor.n * like(mse, Y)[None, :])
    v = -rho * r / diagonal
    a, b = Lam * code, Lam * (U.T @ (root * rho / diagonal))
    core = 0.5 * (a @ b.T + b @ a.T)
    for t in range(Y.shape[1]):
        core = core + Lam[:, t][:, None] * (U.T @ ((w[:, 0] * v[:, t])[:, None] * U)) * Lam[:, t][None, :]
    return -(root * (U @ core @ U.T) * root.T)


def criterion(kernel: Stationary, problems: list[Problem], intercept: bool, gradient: bool = True) -> tuple[float, np.ndarray]:
    """sum_t min_lambda log LOO-MSE_t and its gradient in the log length scales of `kernel`."""
    value, slope = 0.0, np.zeros(problems[0].sample.X.shape[1])
    for problem in problems:
        factor = SpectralFactor(kernel, problem.sample, intercept)
        lam, mse = best_lam(factor, problem.Y) if problem.lam is None else given_lam(factor, problem.Y, problem.lam)
        value += float(np.sum(np.log(mse)))
        if gradient:
            points = array_namespace(problem.Y).take(problem.sample.X, problem.sample.rows, axis=0)
            slope += kernel.contract(_adjoint(factor, problem.Y, lam, mse), points)
    return value, slope


def input_scales(X: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted standard deviation of each input; 1 for constant ones. Exact sums, so free of the order of rows."""
    size = np.max(np.abs(X), axis=0, initial=0.0)
    unit = 2.0 ** np.floor(np.log2(np.where(size > 0, size, 1.0)))  # squares neither overflow nor vanish, and no digit is lost
    X, size = X / unit, size / unit
    total = math.fsum(weights)
    mean = np.array([math.fsum(column) for column in (weights[:, None] * X).T]) / total
    square = np.array([math.fsum(column) for column in (weights[:, None] * (X - mean) ** 2).T]) / total
    std = np.sqrt(square)
    return np.where(std > 1e-12 * size, std * unit, 1.0)


def thin(problem: Problem, size: int, rng: np.random.Generator) -> Problem:
    """At most `size` distinct inputs, drawn among the sorted ones: the draw does not depend on the order of rows."""
    sample = problem.sample
    p = sample.points.shape[0]
    if p <= size:
        return problem
    xp, device = array_namespace(problem.Y), device_of(problem.Y)
    chosen = np.sort(rng.permutation(p)[:size])
    rows = np.flatnonzero(np.isin(sample.group, chosen))
    at, inputs = xp.asarray(rows, device=device), xp.asarray(chosen, device=device)
    small = Sample(
        sample.X,
        sample.points[chosen],
        np.searchsorted(chosen, sample.group[rows]),
        xp.take(sample.weights, inputs),
        xp.take(sample.share, at),
    )
    return Problem(small, xp.take(problem.Y, at, axis=0), problem.lam)


def round_digits(values: np.ndarray, digits: int = 3) -> np.ndarray:
    """To so many significant digits: nobody knows a length scale better."""
    unit = 10.0 ** (np.floor(np.log10(values)) - (digits - 1))
    return np.round(values / unit) * unit


def tune_scales(
    kernel: Stationary,
    problems: list[Problem],
    scales: np.ndarray,
    intercept: bool,
    max_rows: int,
    rng: np.random.Generator,
    tau: float | None = None,
    verbose: bool = False,
) -> np.ndarray:
    """Length scales in the units of the inputs that minimise J, with three significant digits.

    Isotropic length scales on a grid give two starts, those with one input made sixteen times shorter two more, and a
    descent under a weak prior from the first two the last two. Descents on half of `max_rows` rows cross most of the
    distance cheaply, short ones from the best two on `max_rows` settle the ratios, and with more rows than that
    `_common_factor` settles the size.
    """
    d = scales.shape[0]
    if tau is None:
        rows = float(np.mean([problem.sample.points.shape[0] for problem in problems]))
        tau = min(TAU * float(np.sqrt(rows / d)), 1.0)
    low, high = np.log(SCALE_BOUNDS)

    def objective(some: list[Problem], gradient: bool = True, tau: float = tau) -> Callable:
        n = float(np.mean([problem.sample.points.shape[0] for problem in some]))

        def J(theta: np.ndarray) -> tuple[float, np.ndarray]:
            trial = clone(kernel).set_params(sigma=scales * np.exp(theta))
            value, slope = criterion(trial, some, intercept, gradient)
            middle = float(np.mean(theta))
            apart, far = theta - middle, middle - np.log(TYPICAL * np.sqrt(d))
            prior = float(apart @ apart) / tau**2 + far**2 / BREADTH**2
            return value + prior / n, slope + 2 * (apart / tau**2 + far / (d * BREADTH**2)) / n

        return J

    def descend(some: list[Problem], theta: np.ndarray, steps: int, tau: float = tau) -> OptimizeResult:
        # stop when a step gains less than a thousandth of each task's error
        tolerance = 1e-3 * sum(problem.Y.shape[1] for problem in some) / max(1.0, abs(objective(some, False)(theta)[0]))
        options = {"maxiter": steps, "ftol": tolerance, "gtol": 1e-4}
        bounds = [(low, high)] * d
        found = minimize(objective(some, tau=tau), theta, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        if verbose:
            rows = max(problem.sample.points.shape[0] for problem in some)
            print(f"[length scales] {rows} rows, {found.nfev} evaluations, J = {found.fun:.6g}: {np.exp(found.x)}")
        return found

    few = [thin(problem, max_rows // 2, rng) for problem in problems]
    many = [thin(problem, max_rows, rng) for problem in problems]
    starts = [np.full(d, np.log(c * np.sqrt(d))) for c in ISOTROPIC]
    height = objective(few, gradient=False)
    # ties (nothing to choose by) go to the middle of the grid
    rank = [(round(height(start)[0], 8), abs(i - len(starts) // 2)) for i, start in enumerate(starts)]
    halves = np.split(np.arange(len(starts)), [LOCAL])
    begins = [starts[min(half, key=rank.__getitem__)] for half in halves]
    # One input may vary much faster than the others: another basin, which descents from equal scales do not find.
    if d > 1:
        sharp = [begin - SHARP * unit for begin in begins for unit in np.eye(d)]
        begins += sorted(sharp, key=lambda theta: height(theta)[0])[:2]
    # a weak prior lets relevant inputs stand out, which the strict one would not start but will not undo
    begins += [descend(few, begin, 20, tau=5 * tau).x for begin in begins[:2]]
    descents = sorted((descend(few, begin, 40) for begin in begins), key=lambda found: found.fun)
    theta = descents[0].x
    if any(a is not b for a, b in zip(few, many)):
        # the best basin on few rows need not be the best on more: settle between the best two
        other = [found.x for found in descents if np.abs(found.x - theta).max() > 0.3][:1]
        theta = min((descend(many, begin, 15) for begin in [theta, *other]), key=lambda found: found.fun).x
    if any(a is not b for a, b in zip(many, problems)):
        most = [thin(problem, 3 * max_rows, rng) for problem in problems]
        theta = theta + _common_factor(objective(most, gradient=False), theta)
    return round_digits(scales * np.exp(np.clip(theta, low, high)))


def _common_factor(J: Callable[[np.ndarray], tuple[float, np.ndarray]], theta: np.ndarray) -> float:
    """The shift of all log length scales that suits more rows than they were tuned on, by bracketing.

    Their ratios are known from few rows; their common size shrinks as rows are added. One eigendecomposition an
    evaluation, no gradient.
    """
    step = np.log(1.5)
    seen = {k: J(theta + k * step)[0] for k in (-1, 0, 1)}
    best = min(seen, key=seen.__getitem__)
    while len(seen) < 7 and not {best - 1, best + 1} <= seen.keys():
        beyond = best + 1 if best > 0 else best - 1
        seen[beyond] = J(theta + beyond * step)[0]
        best = min(seen, key=seen.__getitem__)
    left, mid, right = (seen.get(best + k, seen[best]) for k in (-1, 0, 1))
    bend = left - 2 * mid + right
    return step * (best + (0.5 * (left - right) / bend if bend > 0 else 0.0))


def lam_by_rule(lam: Any, sizes: list[float]) -> np.ndarray:
    """Lambda for tasks of these sizes (the sums of their weights): numbers, or the rule of a theorem."""
    n = np.asarray(sizes, dtype=float)
    if isinstance(lam, str):
        powers = {"auto": -0.5, "consistent": -0.25, "rate": -0.5}
        if lam not in powers:
            raise ValueError(
                f"KernelRidge(lam={lam!r}) is no rule it knows; 'auto', 'consistent', 'rate', a number or "
                "one number per task would do"
            )
        return n ** powers[lam]
    given = np.asarray(lam, dtype=float)
    largest = np.finfo(float).max / max(1.0, float(n.sum()))  # n lambda must be a number too
    if given.shape not in ((), (1,), n.shape) or not np.all((given > 0) & (given <= largest)):
        raise ValueError(
            f"KernelRidge needs lam above zero and finite, one or one for each of {len(n)} tasks, got {lam!r}; "
            "lam='auto' would do"
        )
    return np.broadcast_to(given, n.shape).copy()
