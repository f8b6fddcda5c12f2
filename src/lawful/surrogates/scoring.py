"""Length scales and noise of the greatest posterior density, by Fisher scoring, and how probable a family of kernels is.

The prior of t_j = log(length scale of input j in standard deviations of the input) and of the noise g is

    sum_j (t_j - mean t)^2 / (2 tau^2) + (mean t - log(3 sqrt d))^2 / 8 + (log g - log 0.01)^2 / 32

where for a task beside others the first two terms may be sum_j (t_j - shared t_j)^2 / (2 tau^2). tau says how much inputs
differ in relevance: where few of many inputs matter, it is large. So it is unknown too; and inputs may have no say at all,
which no finite tau says: of k inputs out of d, any k as probable as another, k from 1 to d, only these have a prior (tau = 1)
and length scales, which costs log d + log(d choose k). The log odds of the share of `Additive` are normal, around 0 with
standard deviation 2. Of many inputs those whose length scales matter most are free, and the others have one in common:
`groups` are the inputs that move together, and slopes, curvatures and steps are those of groups. The posterior is minimised
for each prior, and what a (family, prior) explains is Laplace's approximation of its integral,

    log evidence = -(f + prior) - log(volume of the prior) - 1/2 log|H|,      H = F + the prior's curvature.

A step is -H^-1 times the gradient, shortened until the objective falls: F is positive semidefinite wherever it is taken, and
objectives are in nats, so that "converged" has a scale: a step that would gain a tenth. F is that of the start of a descent;
what gradients say of the curvature on the way is learned (`learned`), which needs fewer steps and cheaper ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import block_diag
from scipy.special import gammaln

from lawful.kernels import Stationary
from lawful.surrogates.evidence import Labels, evidence
from lawful.surrogates.geometry import SINGLE, Groups, Room, geometry

TYPICAL, BREADTH = 3.0, 2.0  # the middle of the length scales: about so many standard deviations times sqrt(d), within e^2
NOISE, NOISE_BREADTH = np.log(0.01), 4.0
SCALE_BOUNDS = np.log([1e-2, 1e4])
LOWEST, HIGHEST = np.log(1e-14), np.log(1e4)  # of g
GAIN = 0.1  # nats: a step that promises less is the last
SHARE_BREADTH, SHARE_BOUND = 2.0, 12.0  # of the log odds of the share of `Additive`
REACH = np.array([1.5, 4.0])  # the longest step, in parameters of the kernel and in log g


def noise_prior(log_g: float) -> float:
    return float((log_g - NOISE) ** 2 / (2 * NOISE_BREADTH**2))


@dataclass(frozen=True)
class Prior:
    """Of the length scales of d inputs: within tau of each other or, for a task beside others, of those that all share.

    With `keep` only these inputs have a say; the others are infinitely long.
    """

    d: int
    tau: float = 1.0
    anchor: np.ndarray | None = None
    keep: np.ndarray | None = None

    def __call__(self, t: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Value, slope, curvature."""
        d = self.d
        if self.keep is not None:
            k = self.keep
            value, some, bend = Prior(len(k), self.tau)(t[k])
            slope, curvature = np.zeros(d), np.eye(d)
            slope[k], curvature[np.ix_(k, k)] = some, bend
            return value, slope, curvature
        if self.anchor is not None:
            gap = t - self.anchor
            return float(gap @ gap) / (2 * self.tau**2), gap / self.tau**2, np.eye(d) / self.tau**2
        middle = float(t.mean())
        apart, far = t - middle, middle - np.log(TYPICAL * np.sqrt(d))
        value = float(apart @ apart) / (2 * self.tau**2) + far**2 / (2 * BREADTH**2)
        slope = apart / self.tau**2 + far / (d * BREADTH**2)
        return value, slope, (np.eye(d) - 1 / d) / self.tau**2 + 1 / (d * BREADTH) ** 2

    def volume(self, groups: Groups) -> float:
        """What a wide prior costs, in nats: the log of its standard deviations, one for each group of inputs."""
        if self.keep is not None:
            d, k = self.d, len(self.keep)
            choices = float(np.log(d) + gammaln(d + 1) - gammaln(k + 1) - gammaln(d - k + 1))
            return Prior(k, self.tau).volume(alone(k)) + choices
        R = together(groups, self.d)
        return -0.5 * float(np.linalg.slogdet(R.T @ self(np.zeros(self.d))[2] @ R)[1])


def alone(d: int) -> Groups:
    """Every input in a group of its own."""
    return [np.array([j]) for j in range(d)]


def together(groups: Groups, d: int) -> np.ndarray:
    """(d, groups), 1 where an input is in a group."""
    out = np.zeros((d, len(groups)))
    for k, g in enumerate(groups):
        out[g, k] = 1.0
    return out


@dataclass
class Point:
    """Where a descent stands: x = (t, what else the kernel has, log g of each task), objective, its slope and curvature; these
    in the coordinates (groups of t, what else the kernel has, log g of each task)."""

    x: np.ndarray
    value: float
    slope: np.ndarray
    curvature: np.ndarray


@dataclass
class Posterior:
    """The objective: tasks that share the length scales of one kernel, each with noise of its own (or all with a known one)."""

    kernel: Stationary
    tasks: list[Labels]
    prior: Prior
    log_g: np.ndarray | None = None  # known noise
    groups: Groups | None = None  # inputs whose length scales move together; None: every input alone
    room: Room = field(default_factory=Room)
    evaluations: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.groups = alone(self.d) if self.groups is None else self.groups
        rest = self.kernel.extra + (len(self.tasks) if self.log_g is None else 0)
        self.expand = block_diag(together(self.groups, self.d), np.eye(rest))  # from coordinates of a Point to x

    @property
    def d(self) -> int:
        return self.tasks[0].X.shape[1]

    @property
    def m(self) -> int:
        """Parameters of the kernel."""
        return self.d + self.kernel.extra

    def noise(self, x: np.ndarray) -> np.ndarray:
        return x[self.m :] if self.log_g is None else self.log_g

    def join(self, t: np.ndarray, log_g: np.ndarray) -> np.ndarray:
        """x from length scales and noise, with half a share for what else the kernel has."""
        return np.concatenate([t, np.zeros(self.kernel.extra), log_g])

    def value(self, x: np.ndarray) -> float:
        """The objective alone; infinite where a matrix is singular."""
        theta, rest = x[: self.m], x[self.d : self.m]
        total = self.prior(x[: self.d])[0] + float(rest @ rest) / (2 * SHARE_BREADTH**2)
        for labels, log_g, matrices in zip(self.tasks, self.noise(x), self._geometries(theta, min(self.noise(x)))):
            found = evidence(labels, matrices, float(log_g), slope=False)
            if found is None:
                return np.inf
            total += found.value + (0.0 if self.log_g is not None else noise_prior(log_g))
        return float(total)

    def at(self, x: np.ndarray, known: np.ndarray | None = None) -> Point | None:
        """The objective and its slope; and its curvature, unless one is known."""
        assert self.groups is not None
        d, m, q, R = self.d, self.m, len(self.groups) + self.kernel.extra, self.expand
        value, slope_t, curvature_t = self.prior(x[:d])
        slope, bend = np.zeros(len(x)), np.zeros((len(x), len(x)))
        slope[:d], bend[:d, :d] = slope_t, curvature_t
        rest = x[d:m]
        value += float(rest @ rest) / (2 * SHARE_BREADTH**2)
        slope[d:m], bend[d:m, d:m] = rest / SHARE_BREADTH**2, np.eye(m - d) / SHARE_BREADTH**2
        curvature = R.T @ bend @ R
        self.evaluations += 1
        for k, (labels, log_g, matrices) in enumerate(
            zip(self.tasks, self.noise(x), self._geometries(x[:m], min(self.noise(x))))
        ):
            found = evidence(labels, matrices, float(log_g), groups=self.groups if known is None else None)
            if found is None:
                return None
            assert found.slope is not None
            value += found.value
            slope[:m] += found.slope[:m]
            if self.log_g is None:
                value += noise_prior(log_g)
                slope[m + k] = found.slope[m] + (log_g - NOISE) / NOISE_BREADTH**2
            if found.information is None:
                continue
            curvature[:q, :q] += found.information[:q, :q]
            if self.log_g is None:
                curvature[q + k, q + k] = found.information[q, q] + 1 / NOISE_BREADTH**2
                curvature[:q, q + k] += found.information[:q, q]
                curvature[q + k, :q] += found.information[:q, q]
        slope = R.T @ slope
        curvature = curvature if known is None else known
        if self.prior.keep is not None:
            out = [k for k, g in enumerate(self.groups) if not np.isin(g, self.prior.keep).any()]
            slope[out] = 0.0
            if known is None:
                curvature[out], curvature[:, out] = 0.0, 0.0
                curvature[out, out] = 1.0  # they stay where they are
        return Point(x, float(value), slope, curvature)

    def _geometries(self, theta: np.ndarray, least: float) -> list[Any]:
        """One for each task; the same object for tasks with the same inputs. `least`: log g will not be below it."""
        inputs = {id(labels.X): labels.X for labels in self.tasks}
        self.room.dtype = np.float32 if least > np.log(SINGLE) else np.float64
        alone = len(inputs) == 1  # several are held at once
        made = {
            key: geometry(self.kernel, X, theta, self.room if alone else Room(self.room.device), self.groups)
            for key, X in inputs.items()
        }
        return [made[id(labels.X)] for labels in self.tasks]

    def best_noise(self, t: np.ndarray, grid: np.ndarray) -> np.ndarray:
        """For every task the log g of the grid that suits it best with these length scales."""
        out = []
        for labels, matrices in zip(self.tasks, self._geometries(self.join(t, np.zeros(0)), grid[0])):
            found = [evidence(labels, matrices, float(log_g), slope=False) for log_g in grid]
            values = [np.inf if f is None else f.value + noise_prior(log_g) for f, log_g in zip(found, grid)]
            out.append(float(grid[int(np.argmin(values))]))
        return np.array(out)

    def relevant(self, x: np.ndarray) -> Prior:
        """The prior under which only some inputs have a say: of those with the shortest length scales, the likeliest number."""
        assert self.groups is not None
        free = np.concatenate([g for g in self.groups if len(g) == 1])
        order = free[np.argsort(x[free], kind="stable")]
        priors = [Prior(self.d, keep=np.sort(order[:k])) for k in numbers(len(free))]
        heights = [replace(self, prior=p).value(without(x, p)) + p.volume(self.groups) for p in priors]
        return priors[int(np.argmin(heights))]

    def screened(self, x: np.ndarray, count: int) -> Groups:
        """So many inputs for themselves, those whose length scales promise most nats at x, and the others in one group."""
        here = replace(self, groups=None).at(x)
        if here is None or self.d <= count:
            return alone(self.d)
        promise = (here.slope**2 / np.diagonal(here.curvature))[: self.d]
        first = np.sort(np.argsort(-promise, kind="stable")[:count])
        return [np.array([j]) for j in first] + [np.setdiff1d(np.arange(self.d), first)]

    def descend(self, x: np.ndarray, steps: int, gain: float = GAIN, curved: bool = True) -> Point | None:
        """The minimum near x, or where so many steps led; None where nothing can be evaluated. `curved`: its curvature is
        Fisher's information, and not what was learned of it on the way."""
        d, m, rest = self.d, self.m, len(x) - self.m
        parts = np.array([d, m - d, rest])
        low = np.repeat([SCALE_BOUNDS[0], -SHARE_BOUND, LOWEST], parts)
        high = np.repeat([SCALE_BOUNDS[1], SHARE_BOUND, HIGHEST], parts)
        reach = np.repeat([REACH[0], REACH[0], REACH[1]], parts)
        first = self.expand.argmax(axis=0)  # one x of each coordinate
        here = self.at(np.clip(x, low, high))
        while here is None and rest and x[-1] < np.log(1e-6):  # more noise makes any matrix regular
            x = np.append(x[:m], x[m:] + np.log(10.0))
            here = self.at(np.clip(x, low, high))
        if here is None:
            return None
        fresh = True  # whether the curvature is Fisher's information here
        for _ in range(steps):
            step = self._bounded_step(here, low, high)
            move = self.expand @ step
            shorter = max(1.0, float(np.max(np.abs(move) / reach)))
            step, move = step / shorter, move / shorter
            promise = -float(here.slope @ step + 0.5 * step @ here.curvature @ step)
            if promise < gain:
                break
            for shrink in (1.0, 0.25, 0.05):
                there = self.at(np.clip(here.x + shrink * move, low, high), here.curvature)
                if there is not None and there.value < here.value:
                    break
            else:
                if fresh:
                    break
                there = self.at(here.x)
                fresh = True
                if there is None:
                    break
                here = there
                continue
            there.curvature = learned(here.curvature, (there.x - here.x)[first], there.slope - here.slope)
            here, fresh = there, False
        return self.at(here.x) if curved and not fresh else here

    def _bounded_step(self, here: Point, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The Newton step in the coordinates that are not held by a bound."""
        at = self.expand.argmax(axis=0)  # one x of each coordinate
        below, above = (here.x <= low)[at], (here.x >= high)[at]
        free = ~((below & (here.slope > 0)) | (above & (here.slope < 0)))
        step = np.zeros(len(here.slope))
        if free.any():
            step[free] = -np.linalg.solve(here.curvature[np.ix_(free, free)], here.slope[free])
        return step


def learned(B: np.ndarray, s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The curvature B after a step s that changed the slope by y: Powell's damped BFGS formula, so that it stays positive."""
    Bs = B @ s
    sBs, sy = float(s @ Bs), float(s @ y)
    if sBs <= 0:
        return B
    share = 1.0 if sy >= 0.2 * sBs else 0.8 * sBs / (sBs - sy)
    y = share * y + (1 - share) * Bs
    return B - np.outer(Bs, Bs) / sBs + np.outer(y, y) / float(s @ y)


def numbers(most: int) -> list[int]:
    """1, 2, 3, ... and, of many, each a quarter above the one before."""
    out = [1]
    while out[-1] < most:
        out.append(min(most, max(out[-1] + 1, out[-1] * 5 // 4)))
    return out


def without(x: np.ndarray, prior: Prior) -> np.ndarray:
    """x where the inputs that have no say under a prior have none."""
    if prior.keep is None:
        return x
    out = x.copy()
    out[np.setdiff1d(np.arange(prior.d), prior.keep)] = SCALE_BOUNDS[1]
    return out


def cost(point: Point, posterior: Posterior) -> float:
    """Minus the log of the evidence, by Laplace's method.

    Length scales that tasks share have seen the labels of each of them: that they fit is no surprise, and costs a nat for every
    length scale that the task's own labels determine, tr(H^-1 F).
    """
    assert posterior.groups is not None
    prior, q = posterior.prior, len(posterior.groups)
    volume = prior.volume(posterior.groups) + posterior.kernel.extra * np.log(SHARE_BREADTH)
    found = point.value + volume + 0.5 * float(np.linalg.slogdet(point.curvature)[1])
    if prior.anchor is None:
        return found
    R = together(posterior.groups, prior.d)
    assumed = np.zeros_like(point.curvature)
    assumed[:q, :q] = R.T @ prior(point.x[: prior.d])[2] @ R
    return found + q - float(np.trace(np.linalg.solve(point.curvature, assumed)))
