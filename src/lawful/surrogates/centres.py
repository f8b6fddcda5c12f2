"""What a `NystromRidge` is built on: a kernel, tuned on some of the rows, and centres among them.

Length scales and family are chosen by evidence on at most `SUBSET` rows, the same for all tasks, with noise g = n lambda of
each task's own. Centres are drawn uniformly, or by approximate ridge leverage scores

    l(x) = phi' (A + n lambda I)^-1 phi + (k(x,x) - |phi|^2) / (n lambda)

with the features phi of a pilot set of centres and A of a sample of the rows: rows that no others resemble are likelier to be
centres (Rudi, Calandriello, Carratino & Rosasco 2018).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from lawful._array import Array, is_torch_array, to_numpy
from lawful._checks import check_choice, check_count
from lawful._threads import blas_threads
from lawful.kernels import Gaussian, Kernel, Matern, Stationary
from lawful.surrogates.averaging import likeliest, tune_together
from lawful.surrogates.exact import Sample, distinct
from lawful.surrogates.members import Form, _best_noises, task_labels
from lawful.surrogates.scales import OWN_TASKS, informative, input_units, without_unit
from lawful.tasks import Tasks

__all__ = ["centers_of", "some_rows", "tuned"]

WHO = "NystromRidge"
SUBSET = 10_000  # rows among which the tuning looks
TUNING = 3.2e8  # the sum of n_t^3 on which length scales are chosen
NOISE_ROWS = 1000  # on which the noise is
FAMILIES: tuple[Stationary, ...] = (Gaussian(), Matern(2.5), Matern(1.5))  # what M centres can stand for, whatever n is
AUTO = 2000  # centres
PILOT = 500  # centres from which leverage scores are estimated
CANDIDATES = 20  # rows looked at for each centre that leverage scores choose


def numpy_rows(X: Array, rows: np.ndarray) -> np.ndarray:
    """Rows of any array as NumPy ones, without bringing all of them."""
    if is_torch_array(X):
        return to_numpy(X[rows.tolist()] if len(rows) < 2 else X.index_select(0, _index(X, rows))).astype(float)
    return np.asarray(to_numpy(X)[rows], dtype=float)


def _index(X: Any, rows: np.ndarray) -> Any:
    import torch

    return torch.as_tensor(rows, device=X.device)


def some_rows(tasks: Tasks, count: int, seed: int) -> Tasks:
    """The tasks on at most so many rows, with an X of these rows alone; every task keeps something of what it has."""
    seen = tasks.seen
    rng = np.random.default_rng(seed)
    if len(seen) > count:
        chosen = rng.choice(seen, count, replace=False)
        for r in tasks.rows:  # a task observed on few rows keeps up to a tenth of the sample
            own = to_numpy(r)
            if len(own) * count < 50 * len(seen):
                chosen = np.concatenate([chosen, rng.choice(own, min(len(own), max(count // 10, 3)), replace=False)])
        seen = np.unique(chosen)
    part = tasks.take(seen)
    rows = [np.searchsorted(seen, to_numpy(r)) for r in part.rows]
    return Tasks(
        numpy_rows(tasks.X, seen),
        [to_numpy(y) for y in part.y],
        rows,
        [to_numpy(w) for w in part.weights],
        Z=[to_numpy(z) for z in part.Z],
    )


def tuned(
    kernel: Stationary | None, tasks: Tasks, intercept: bool, g: np.ndarray | None, seed: int
) -> tuple[Kernel, np.ndarray]:
    """A kernel for all tasks and g = n lambda for each (T,), by evidence. `kernel` None: the families; `g`: known already."""
    part = some_rows(tasks, SUBSET, seed)
    families = FAMILIES if kernel is None else (kernel,)
    X, T = part.X, len(part)
    samples: list[Sample] = [None] * T  # type: ignore[list-item]
    for group in part.groups():
        sample = distinct(X, part.rows[group[0]], part.weights[group[0]], families[0])
        for t in group:
            samples[t] = sample
    y = [without_unit(v, w) for v, w in zip(part.y, part.weights)]
    units = input_units(X, samples)
    useful = [t for t in range(T) if informative(samples[t], y[t][:, None], intercept)[0]]
    default = np.array([max(len(v), 1) ** 0.5 for v in part.y])  # g of the theorems' lambda = n^-1/2
    if not useful:
        plain = type(families[0])(**(families[0].get_params() | {"sigma": units * np.sqrt(X.shape[1])}))
        return plain, default if g is None else g
    form = Form(X, units, samples)
    inputs, order = form.inputs(samples)
    labels = {t: task_labels(inputs[id(samples[t])], samples[t], y[t], intercept, order[id(samples[t])]) for t in useful}
    few = [useful[i] for i in np.unique(np.linspace(0, len(useful) - 1, min(len(useful), OWN_TASKS)).round().astype(int))]
    known = None if g is None else np.log(g[few])
    with blas_threads(1):
        rows = int((TUNING / len(few)) ** (1 / 3))
        best = likeliest(tune_together(families, [labels[t] for t in few], known, rows, seed))
        noise = np.full(T, np.nan)
        if g is None:
            together: dict[int, list[int]] = {}
            for t in useful:
                together.setdefault(id(labels[t].X), []).append(t)
            for group in together.values():
                noise[group] = np.exp(_best_noises(best, [labels[t] for t in group], NOISE_ROWS, seed))
            noise[np.isnan(noise)] = np.nanmedian(noise)
    return form.kernel(best)[0], noise if g is None else g


def centers_of(ridge: Any, tasks: Tasks, kernel: Kernel, lam: float, seed: int) -> np.ndarray:
    """(M, d): the centres that `ridge.centers` and `ridge.n_centers` ask for, all different and sorted."""
    given = ridge.centers
    if not isinstance(given, str):
        return _given(given, tasks.X.shape[1])
    check_choice(WHO, "centers", given, ("uniform", "leverage"))
    auto = isinstance(ridge.n_centers, str)
    if auto:
        check_choice(WHO, "n_centers", ridge.n_centers, ("auto",))
    M = AUTO if auto else check_count(WHO, "n_centers", ridge.n_centers)
    seen = tasks.seen
    rng = np.random.default_rng(seed + 1)
    if len(seen) <= M:
        return np.unique(numpy_rows(tasks.X, seen), axis=0)
    if given == "uniform":
        return np.unique(numpy_rows(tasks.X, np.sort(rng.choice(seen, M, replace=False))), axis=0)
    rows = np.sort(rng.choice(seen, min(len(seen), CANDIDATES * M), replace=False))
    X = np.unique(numpy_rows(tasks.X, rows), axis=0)
    if len(X) <= M:
        return X
    scores = leverage_scores(kernel, X, lam, rng)
    return X[np.sort(rng.choice(len(X), M, replace=False, p=scores / scores.sum()))]


def leverage_scores(kernel: Kernel, X: np.ndarray, lam: float, rng: np.random.Generator) -> np.ndarray:
    """Approximate ridge leverage scores of the rows of X, by a pilot set among them."""
    pilot = X[np.sort(rng.choice(len(X), min(PILOT, len(X)), replace=False))]
    K = to_numpy(kernel(pilot, pilot))
    L = np.linalg.cholesky(K + 1e-10 * np.trace(K) / len(K) * np.eye(len(K)))
    phi = np.concatenate([solve_triangular(L, to_numpy(kernel(part, pilot)).T, lower=True).T for part in _parts(X)])
    nu = len(X) * lam
    A = cho_factor(phi.T @ phi + nu * np.eye(len(K)), lower=True)
    inside = np.einsum("ij,ji->i", phi, cho_solve(A, phi.T)) if len(phi) < 5000 else _quadratic(phi, A)
    outside = np.maximum(to_numpy(kernel.diag(X)) - np.einsum("ij,ij->i", phi, phi), 0.0) / nu
    return np.clip(inside + outside, 1e-12, 1.0)


def _quadratic(phi: np.ndarray, A: Any) -> np.ndarray:
    return np.concatenate([np.einsum("ij,ji->i", part, cho_solve(A, part.T)) for part in _parts(phi)])


def _parts(X: np.ndarray, size: int = 4096) -> list[np.ndarray]:
    return [X[i : i + size] for i in range(0, len(X), size)]


def _given(centers: Any, d: int) -> np.ndarray:
    values = np.asarray(to_numpy(centers), dtype=float)
    if values.ndim != 2 or values.shape[1] != d or not len(values) or not np.isfinite(values).all():
        raise ValueError(
            f"{WHO}: centers of shape {values.shape} will not do; give 'uniform', 'leverage' or finite inputs (M, {d})"
        )
    return np.unique(values, axis=0)
