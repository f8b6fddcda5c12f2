"""The leave-one-out rule: which tasks share length scales, and on what they are tuned."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from lawful._array import Array, array_namespace, device_of, to_numpy
from lawful._checks import check_choice
from lawful._threads import blas_threads, n_threads, on_threads
from lawful.kernels import Kernel, Stationary
from lawful.surrogates.exact import Factor, Sample
from lawful.surrogates.tuning import Problem, best_lam, input_scales, tune_scales

SPANNED = 8.0  # standard deviations that an input spans at most: benchmarks/public_tables.py
DIGITS = 2.0**-36  # 1e-11: more than labels have
TUNED_TASKS = 32  # so many tasks are plenty to choose length scales that all of them share
# Length scales of its own for each of so many tasks, if it has so many rows per input (and so many times that for a single
# input), and if the sum of n_t^3, the work of the factorisations, stays below this (9 tasks with 1300 rows).
OWN_TASKS, OWN_ROWS, OWN_WORK = 12, 10, 2e10
LOO_ROWS = 300  # rows to tune on, unless the user says otherwise


def is_auto(kernel: Kernel) -> bool:
    """Whether a kernel's length scales are to be tuned."""
    if not (isinstance(kernel, Stationary) and isinstance(kernel.sigma, str)):
        return False
    if kernel.sigma != "auto":
        raise ValueError(f"{kernel!r} lacks length scales; sigma='auto', a number or one per input would do")
    return True


def tuned_kernels(
    ridge: Any, intercept: bool, given: list[Kernel], X: Array, samples: list[Sample], y: list[Array], lam: np.ndarray | None
) -> list[Kernel]:
    """The kernel of each task of a `KernelRidge`, with numbers for length scales; one object for tasks that share it.

    `given` is one kernel, to be tuned if it says so, or one for each task, known already.
    """
    T = len(y)
    if len(given) > 1:
        if any(map(is_auto, given)):
            raise ValueError("KernelRidge: a list of kernels needs numbers for sigma; for tuned ones use scales='task'")
        copies = {id(kernel): clone(kernel) for kernel in given}
        return [copies[id(kernel)] for kernel in given]
    kernel = clone(given[0])
    if not is_auto(kernel):
        return [kernel] * T
    units = input_units(X, samples)
    useful = [t for t in range(T) if informative(samples[t], y[t][:, None], intercept)[0]]
    if not useful:
        return [kernel.set_params(sigma=units * np.sqrt(X.shape[1]))] * T
    rng = np.random.default_rng(ridge.random_state if ridge.random_state is not None else 0)
    seeds = rng.integers(2**32, size=T)

    def tuned(tasks: list[int]) -> Kernel:
        problems = gather(samples, y, tasks, lam)
        draw = np.random.default_rng(seeds[tasks[0]])
        rows = LOO_ROWS if ridge.max_tuning_rows is None else ridge.max_tuning_rows
        sigma = tune_scales(kernel, problems, units, intercept, rows, draw, verbose=ridge.verbose)
        return clone(kernel).set_params(sigma=sigma)

    with blas_threads(1):
        if own_scales(ridge.scales, samples, X.shape[1], T):
            found = dict(zip(useful, on_threads(lambda t: tuned([t]), useful, n_threads(None))))
            return [found.get(t, found[useful[0]]) for t in range(T)]
        few = np.unique(np.linspace(0, len(useful) - 1, min(len(useful), TUNED_TASKS)).round().astype(int))
        return [tuned([useful[i] for i in few])] * T


def input_units(X: Array, samples: list[Sample]) -> np.ndarray:
    """Standard deviations of the inputs on the rows that tasks have seen, or an eighth of what they span where that is more:
    an indicator of a few rows would stand so many standard deviations from the others that nothing is shared with them."""
    total = np.zeros(X.shape[0])
    for sample in samples:
        weights = sample.share * sample.spread(sample.weights)
        np.add.at(total, sample.points[sample.group], to_numpy(weights))
    seen = total > 0
    X = to_numpy(X)[seen]
    return np.maximum(input_scales(X, total[seen]), np.ptp(X, axis=0) / SPANNED)


def own_scales(scales: str, samples: list[Sample], d: int, T: int) -> bool:
    check_choice("KernelRidge", "scales", scales, ("auto", "shared", "task"))
    if scales != "auto":
        return scales == "task"
    sizes = np.array([sample.points.shape[0] for sample in samples], dtype=float)
    enough = sizes.min() >= max(OWN_ROWS * d, OWN_ROWS**2 / d)
    return T <= OWN_TASKS and bool(enough) and float((sizes**3).sum()) <= OWN_WORK


def informative(sample: Sample, Y: Array, intercept: bool) -> np.ndarray:
    """Tasks from which something can be tuned: at least three inputs, and not a constant the intercept takes."""
    xp = array_namespace(Y)
    if sample.points.shape[0] < 3:
        return np.zeros(Y.shape[1], dtype=bool)
    spread = to_numpy(xp.max(Y, axis=0) - xp.min(Y, axis=0)) if intercept else 1.0
    size = to_numpy(xp.max(xp.abs(Y), axis=0))
    return (spread > 1e-14 * size) & (size > 0)


def without_unit(y: Array, weights: Array) -> Array:
    """Labels for tuning: in units of their standard deviation (of their size, where they are constant), to `DIGITS`.

    What is tuned then does not depend on the units of the outputs, to the last bit: without noise a descent through nearly
    singular matrices would follow the rounding of the labels, which differs from unit to unit.
    """
    size, unit = units_of(y, weights)
    return y if size == 0 else array_namespace(y).round(y / size / (unit * DIGITS)) * DIGITS


def units_of(y: Array, weights: Array) -> tuple[float, float]:
    """The size of labels, and the standard deviation in units of it (1 where they are constant)."""
    labels, w = to_numpy(y), to_numpy(weights)
    size = float(np.abs(labels).max())
    if size == 0:
        return 0.0, 1.0
    mean = np.average(labels / size, weights=w)
    spread = float(np.sqrt(np.average((labels / size - mean) ** 2, weights=w)))
    return size, spread if spread > 1e-14 else 1.0


def auto_lam(factor: Factor, Y: Array) -> np.ndarray:
    """By leave-one-out; where that says nothing, the middle of the other tasks or the theorem's rate."""
    useful = informative(factor.sample, Y, factor.intercept)
    lam = np.full(Y.shape[1], factor.level * factor.n**-0.5)
    if np.any(useful):
        at = array_namespace(Y).asarray(np.flatnonzero(useful), device=device_of(Y))
        lam[useful], _ = best_lam(factor, array_namespace(Y).take(Y, at, axis=1))
        lam[~useful] = np.median(lam[useful])
    return lam


def gather(samples: list[Sample], y: list[Array], tasks: list[int], lam: np.ndarray | None) -> list[Problem]:
    """The chosen tasks, those on the same rows together, with their lambda if it is given."""
    together: dict[int, list[int]] = {}
    for t in tasks:
        together.setdefault(id(samples[t]), []).append(t)
    stack = array_namespace(y[0]).stack
    return [
        Problem(samples[g[0]], stack([y[t] for t in g], axis=1), None if lam is None else lam[g]) for g in together.values()
    ]
