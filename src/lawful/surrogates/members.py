"""The evidence rule: for every task the kernels that evidence leaves it, with lambda = g / n, and their shares.

Each task has length scales and noise of its own, whatever stands beside it and however many rows there are; where some have
few rows, with an eye on those that all share (`averaging`). Of very many tasks some search, and the others start from
what these found. With scales="shared" all have the same kernels, chosen for all together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from lawful._array import Array, to_numpy
from lawful._checks import check_choice
from lawful._threads import blas_threads, n_threads, on_threads
from lawful.kernels import Additive, Kernel, Stationary, Trend
from lawful.surrogates.averaging import (
    LAST,
    LEVELS,
    MANY,
    Found,
    Tuner,
    candidates,
    thinned,
    tune,
    tune_together,
    weights_of,
)
from lawful.surrogates.evidence import Labels, noise_path, vertex
from lawful.surrogates.exact import Sample
from lawful.surrogates.geometry import Room, geometry
from lawful.surrogates.samples import observations
from lawful.surrogates.scales import DIGITS, OWN_TASKS, informative, input_units
from lawful.surrogates.scoring import HIGHEST, LOWEST, noise_prior
from lawful.surrogates.tuning import round_digits

__all__ = ["Member", "likely_members"]

TOGETHER = 4e7  # the sum of n_t^3 on which tasks find length scales to share; eight times that if they keep them
MOST_TUNED = 16  # tasks that search for themselves; of more, the others start from what these found
GRID = np.arange(LOWEST, HIGHEST, 1.0)
NOISE_PRIOR = np.array([noise_prior(g) for g in GRID])
SPARSE = 10  # rows per input below which a task looks at the others


class Member(NamedTuple):
    """One kernel of a task, its lambda (None: still to be tuned), and its share of the prediction."""

    kernel: Kernel
    lam: float | None
    weight: float


def likely_members(
    ridge: Any,
    intercept: bool,
    kernel: Stationary | None,
    X: Array,
    samples: list[Sample],
    y: list[Array],
    lam: np.ndarray | None,
) -> list[list[Member]]:
    """The members of each task by evidence, the likeliest first. `kernel` None: all families; `lam`: known, for each task."""
    T, d = len(y), X.shape[1]
    units = input_units(X, samples)
    useful = [t for t in range(T) if informative(samples[t], y[t][:, None], intercept)[0]]
    if not useful:
        families = (kernel,) if kernel is not None else candidates(d, intercept)
        plain = clone(families[0]).set_params(sigma=units * np.sqrt(d))
        return [[Member(plain, _default_lam(lam, samples, t), 1.0)] for t in range(T)]
    form = Form(to_numpy(X), units, samples)
    families = (kernel,) if kernel is not None else candidates(len(form.columns), intercept)
    inputs, order = form.inputs(samples)
    labels = {t: task_labels(inputs[id(samples[t])], samples[t], y[t], intercept, order[id(samples[t])]) for t in useful}
    labels = {t: replace(one, device=ridge._device) for t, one in labels.items()}
    log_g = None if lam is None else {t: np.log(lam[t] * labels[t].n) for t in useful}
    rows = None if ridge.max_tuning_rows is None else max(int(ridge.max_tuning_rows), 3)
    seed = 0 if ridge.random_state is None else int(np.random.default_rng(ridge.random_state).integers(2**32))
    with blas_threads(1):
        shared = None
        own = check_choice("KernelRidge", "scales", ridge.scales, ("auto", "shared", "task")) != "shared" or len(useful) == 1
        sparse = any(len(labels[t].y) < SPARSE * len(form.columns) for t in useful)
        if len(useful) > 1 and (sparse or not own):
            shared = _together(families, labels, log_g, rows or MANY, own, seed)
        if own:

            def one(t: int) -> list[Found]:
                return tune(families, labels[t], None if log_g is None else log_g[t], rows, shared, seed)

            first = different(labels, MOST_TUNED) if log_g is None else useful
            found = dict(zip(first, on_threads(one, first, n_threads(None))))
            pool = [min(f, key=lambda member: member.cost) for f in found.values()]
            rest = [t for t in useful if t not in found]
            found |= zip(rest, on_threads(lambda t: borrowed(families, labels[t], pool, seed), rest, n_threads(None)))
            known = {t: None if log_g is None else log_g[t] for t in useful}
            members = {t: _members(f, form, labels[t].n, known[t]) for t, f in found.items()}
        else:
            assert shared is not None
            members = _shared_members(shared, form, labels, log_g, rows or MANY, seed)
    common = members[useful[0]][0].kernel
    typical = float(np.median([members[t][0].lam for t in useful]))  # type: ignore[arg-type]
    return [members.get(t) or [Member(common, typical if lam is None else float(lam[t]), 1.0)] for t in range(T)]


class Form:
    """The inputs as evidence sees them: those that vary, in their own units, in an order of rows and columns that is theirs and
    not the table's; and kernels of these as kernels of all inputs, in the units of the table."""

    def __init__(self, X: np.ndarray, units: np.ndarray, samples: list[Sample]) -> None:
        self.X, self.units, self.center = X, units, X.mean(axis=0)
        seen = X[np.unique(np.concatenate([sample.points for sample in samples]))]
        varying = np.flatnonzero(np.ptp(seen, axis=0) > 0)
        Z = (seen[:, varying] - seen[:, varying].mean(axis=0)) / units[varying]
        self.columns = varying[np.argsort(Z.T @ Z.sum(axis=1) ** 3, kind="stable")]

    def inputs(self, samples: list[Sample]) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
        """Of each sample (by id) the inputs, and the place of each among those of the sample."""
        scaled = np.round(self.X[:, self.columns] / (self.units[self.columns] * DIGITS)) * DIGITS
        points = {id(s): scaled[s.points] for s in samples}
        order = {key: np.lexsort(Z.T) for key, Z in points.items()}
        return {key: points[key][own] for key, own in order.items()}, order

    def kernel(self, one: Found) -> tuple[Stationary, float]:
        """And by how much lambda grows: a sum over inputs that do not vary has terms that are constant."""
        d, k = len(self.units), len(self.columns)
        sigma = self.units * np.sqrt(d)
        sigma[self.columns] *= round_digits(np.exp(one.theta[:k])) / np.sqrt(d)
        kernel, grown = clone(one.kernel).set_params(sigma=sigma), 1.0
        if isinstance(kernel, Trend):
            kernel.set_params(center=self.center)
        if isinstance(kernel, Additive):
            share = float(1 / (1 + np.exp(-one.theta[k])))
            grown = 1 / (1 - share + share * d / k)
            kernel.set_params(share=share * d / k * grown)
        return kernel, grown


def different(labels: dict[int, Labels], most: int) -> list[int]:
    """At most so many tasks, as different from each other as can be, in an order that does not depend on theirs."""
    tasks = list(labels)
    if len(tasks) <= most:
        return tasks
    inputs = {tuple(x): i for i, x in enumerate(np.unique(np.concatenate([labels[t].X for t in tasks]), axis=0))}
    Y = np.zeros((len(inputs), len(tasks)))
    for j, t in enumerate(tasks):
        Y[[inputs[tuple(x)] for x in labels[t].X], j] = labels[t].y - labels[t].y.mean()
    near = np.abs(np.corrcoef(Y.T + 1e-300))
    chosen = [int(np.argmax(np.round(near.sum(axis=0), 9)))]
    while len(chosen) < most:
        chosen.append(int(np.argmin(np.round(near[chosen].max(axis=0), 9))))
    return [tasks[j] for j in chosen]


def borrowed(families: tuple[Stationary, ...], labels: Labels, pool: list[Found], seed: int) -> list[Found]:
    """Members of a task that starts from what others found: the likeliest of the pool for its own labels, and a few steps."""
    tuner, (few,) = Tuner(families, [labels], None), thinned([labels], LEVELS[0], seed)
    begins = []
    for one in pool:
        path = noise_path([few], geometry(one.kernel, few.X, one.theta, tuner.room), GRID)[:, 0] + NOISE_PRIOR
        begins.append((float(path.min()), vertex(GRID, path), one))
    _, log_g, best = min(begins, key=lambda begin: begin[0])
    x = np.append(best.theta, log_g)
    end = tuner.found(best.kernel, [few], best.prior, x, LAST)
    return [best._replace(x=x) if end is None else end]


def _default_lam(lam: np.ndarray | None, samples: list[Sample], t: int) -> float:
    return float(to_numpy(samples[t].weights).sum()) ** -0.5 if lam is None else float(lam[t])


def task_labels(points: np.ndarray, sample: Sample, y: Array, intercept: bool, order: Any = slice(None)) -> Labels:
    """What evidence sees of a task: labels averaged over equal inputs, and how many observations they are (`observations`).

    `points`: the inputs of the sample, in that order.
    """
    labels, share, w = to_numpy(y), to_numpy(sample.share), to_numpy(sample.weights).astype(float)
    p = len(w)
    mean = np.bincount(sample.group, weights=labels * share, minlength=p)
    weight = share * w[sample.group]
    n = observations(sample.group, labels, weight)
    within = float(weight @ (labels - mean[sample.group]) ** 2) * (n / w.sum()) if len(labels) > p else 0.0
    return Labels(points, w[order] * (n / w.sum()), mean[order], within, n, intercept)


def _together(
    families: tuple[Stationary, ...],
    labels: dict[int, Labels],
    log_g: dict[int, float] | None,
    rows: int,
    own: bool,
    seed: int,
) -> list[Found]:
    """Length scales for all: a start for scales of their own, or the end."""
    tasks = list(labels)
    few = [tasks[i] for i in np.unique(np.linspace(0, len(tasks) - 1, min(len(tasks), OWN_TASKS)).round().astype(int))]
    enough = int((TOGETHER * (1 if own else 8) / len(few)) ** (1 / 3))
    known = None if log_g is None else np.array([log_g[t] for t in few])
    return tune_together(families[:1] if own else families, [labels[t] for t in few], known, min(rows, enough), seed)


def _members(found: list[Found], form: Form, n: int, log_g: float | None) -> list[Member]:
    """What is left of the members of a task, in the units of the inputs; the likeliest first."""
    out = []
    for one, w in zip(found, weights_of(found)):
        if w > 0:
            kernel, grown = form.kernel(one)
            lam = grown * float(np.exp(one.log_g[0])) if log_g is None else float(np.exp(log_g))
            out.append(Member(kernel, lam / n, float(w)))
    return sorted(out, key=lambda member: -member.weight)


def _shared_members(
    shared: list[Found],
    form: Form,
    labels: dict[int, Labels],
    log_g: dict[int, float] | None,
    rows: int,
    seed: int,
) -> dict[int, list[Member]]:
    """The same kernels for all tasks, with noise of its own for each."""
    weights = weights_of(shared)
    out: dict[int, list[Member]] = {t: [] for t in labels}
    by_inputs: dict[int, list[int]] = {}
    for t, one in labels.items():
        by_inputs.setdefault(id(one.X), []).append(t)
    for i in np.argsort(-weights, kind="stable"):
        if weights[i] == 0:
            continue
        kernel, grown = form.kernel(shared[i])
        for group in by_inputs.values():
            if log_g is None:
                noise = np.log(grown) + _best_noises(shared[i], [labels[t] for t in group], rows, seed)
            else:
                noise = np.array([log_g[t] for t in group])
            for t, value in zip(group, noise):
                out[t].append(Member(kernel, float(np.exp(value)) / labels[t].n, float(weights[i])))
    return out


def _best_noises(one: Found, tasks: list[Labels], rows: int, seed: int) -> np.ndarray:
    """log g of tasks on the same inputs."""
    some = thinned(tasks, rows, seed)
    grid = np.arange(LOWEST, HIGHEST, 0.2)
    shape = geometry(one.kernel, some[0].X, one.theta, Room(some[0].device))
    paths = noise_path(some, shape, grid) + np.array([noise_prior(g) for g in grid])[:, None]
    return np.array([vertex(grid, path) for path in paths.T])
