"""One noise level for all tasks: outputs of one instrument, in one unit, are seen equally badly.

With sigma2 the variance of the noise of every output, the Gaussian process of task t has variance s2_t = sigma2 / g_t, and in
the notation of `evidence` minus the log of the likelihood of its labels is

    h_t(g; sigma2) = free_t / 2 log(sigma2 / g) + [f without s2](g) + g (y' P y + q / g) / (2 sigma2)

instead of f_t(g), which has s2 at its maximum. sigma2 minimises the sum over tasks of min_g [h_t(g; sigma2) - log prior(g)] for
the likeliest kernel of each; every member then has the g that suits it at that sigma2, and lambda = g / n. Length scales and
shares stay: with those of a task given, only the noise is asked again. A task with five rows has no opinion about its noise,
and takes that of the others.
"""

from __future__ import annotations

import numpy as np

from lawful._array import Array, to_numpy
from lawful.kernels import Kernel
from lawful.surrogates.averaging import MANY, thinned
from lawful.surrogates.evidence import Labels, noise_terms, vertex
from lawful.surrogates.exact import Sample
from lawful.surrogates.members import Member, task_labels
from lawful.surrogates.scales import informative, units_of
from lawful.surrogates.scoring import HIGHEST, LOWEST, noise_prior
from lawful.tasks import Tasks

__all__ = ["share_noise"]

GRID = np.arange(LOWEST, HIGHEST, 0.1)  # of log g
PRIOR = np.array([noise_prior(g) for g in GRID])
STEP = 0.05  # of log sigma2


def share_noise(
    members: list[list[Member]], intercept: bool, tasks: Tasks, samples: list[Sample], y: list[Array]
) -> tuple[list[list[Member]], float | None]:
    """The members with the lambdas of one noise level, and its variance; None where no label says anything.

    `y` are the tasks' labels in units of their own.
    """
    useful = [t for t in range(len(y)) if informative(samples[t], y[t][:, None], intercept)[0]]
    if not useful:
        return members, None
    inputs = {id(sample): to_numpy(tasks.X)[sample.points] for sample in samples}
    labels = {t: task_labels(inputs[id(samples[t])], samples[t], y[t], intercept) for t in useful}
    paths = {(t, k): path(labels[t], m.kernel) for t in useful for k, m in enumerate(members[t])}
    shift = {t: 2 * float(np.log(units_of(tasks.y[t], tasks.weights[t])).sum()) for t in useful}
    alone = [own_noise(*paths[t, 0], labels[t].free) + shift[t] for t in useful]
    tried = np.append(np.arange(min(alone), max(alone), STEP), max(alone))
    total = sum(heights(*paths[t, 0], labels[t].free, tried - shift[t]).min(axis=0) for t in useful)
    level = vertex(tried, total)

    def settled(t: int, k: int, member: Member) -> Member:
        h = heights(*paths[t, k], labels[t].free, np.array([level - shift[t]]))[:, 0]
        return member._replace(lam=float(np.exp(vertex(GRID, h))) / labels[t].n)

    shared = {t: [settled(t, k, member) for k, member in enumerate(members[t])] for t in useful}
    typical = float(np.median([ms[0].lam for ms in shared.values()]))
    return [shared.get(t) or [m._replace(lam=typical) for m in members[t]] for t in range(len(y))], float(np.exp(level))


def path(labels: Labels, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
    """(G,) and (G,): f without s2, and y' P y + q / g, for all values of the noise."""
    (some,) = thinned([labels], MANY)
    penalty, quadratic = noise_terms([some], to_numpy(kernel(some.X, some.X)), GRID)
    return penalty[:, 0], quadratic[:, 0]


def own_noise(penalty: np.ndarray, quadratic: np.ndarray, free: int) -> float:
    """log sigma2 of a task alone."""
    s2 = np.maximum(quadratic / free, 1e-300)
    best = int(np.argmin(penalty + 0.5 * free * np.log(s2) + PRIOR))
    return float(np.log(s2[best]) + GRID[best])


def heights(penalty: np.ndarray, quadratic: np.ndarray, free: int, log_sigma2: np.ndarray) -> np.ndarray:
    """h (G, len(log_sigma2)), with the prior of g."""
    s2 = log_sigma2[None, :] - GRID[:, None]  # its log
    return (penalty + PRIOR)[:, None] + 0.5 * (free * s2 + quadratic[:, None] * np.exp(-s2))
