"""Kernels and noise of a task by evidence: families are averaged, tasks share what they have in common.

    alpha(x) = sum_k w_k alpha_k(x),      w_k proportional to the evidence of family k

over Gaussian, Matern 5/2 and Matern 3/2 kernels, so that predictions stay linear in the labels. For each family the evidence is
a sum over several strengths tau of the prior that ties the length scales together (`scoring`); its length scales are the
geometric means over the taus, weighted by evidence. Families below a thousandth are dropped.

Tasks first learn length scales together, each with noise of its own. Then each has its own; that they are near the shared ones
is one more prior beside those of the taus, weighed by evidence too. So a task with five observations has length scales near
those of the others, and one with five hundred those that suit it.

Heavy tails. Gaussian noise has to explain an outlying label by length scales: the evidence rises while the error doubles. So
leave-one-out residuals, standardised, are compared with Student's t. Where that explains them better, length scales are chosen
once more with each row's noise divided by the weight (nu + 1) / (nu + e_i^2) that the t distribution gives it; the noise
itself, and with it lambda, is then chosen for the labels as they are, so that predictions stay means. A jump of the truth looks
like an outlier too: where leave-one-out residuals, under Student's t, speak clearly for the first choice, it is kept.

All rows are used up to `max_rows`; beyond, a subset, and noise and a common factor of the length scales are settled on up to
`REFINED` rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from lawful.kernels import Gaussian, Matern, Stationary
from lawful.surrogates.evidence import Geometry, Labels, leave_one_out
from lawful.surrogates.scoring import Posterior, Prior, cost

import os
from lawful.kernels import Anova, Trend
_F = {"g": Gaussian(), "5": Matern(2.5), "3": Matern(1.5), "l": Anova(parts=("linear",)), "a": Anova(parts=("additive",)), "t": Trend(), "b": Anova(parts=("additive", "linear"))}
FAMILIES: tuple[Stationary, ...] = tuple(_F[c] for c in os.environ.get("FAM", "g53"))

TAUS = tuple(float(v) for v in os.environ.get("TAUS", "1 3 .3").split())  # how much the length scales of a task differ
NEAR = 0.5  # how far they may be from those that tasks share
DROPPED = 1e-3  # families with less weight
FEW = 256  # rows on which a basin is found
REFINED = 3000  # rows on which noise and a common factor are settled
HOPELESS = 5.0  # nats by which a family may be behind on few rows to be tried on all
ISOTROPIC = np.array([0.35, 0.7, 1.5, 3.0, 8.0, 30.0])  # starts, times sqrt(d)
LOCAL = 2  # so many of them see curvature; beyond, a kernel is nearly linear, another basin
NOISES = np.log([1e-10, 1e-6, 1e-3, 3e-2, 0.5])
NOISELESS = np.log(1e-6)  # g below which no tail of the noise matters
STEPS, FIRST, LAST = 30, 8, 4  # of a descent; of one on few of the rows, and of one on all from there
TAILS = (2.0, 3.0, 4.0, 6.0, 10.0)  # degrees of freedom of Student's t
HEAVY = 4.0  # nats by which it must explain residuals better
CLEAR = 10.0  # nats by which residuals must speak against the choice that trusts no outlier


PRUNE, SPLIT = int(os.environ.get('PRUNE', 0)), int(os.environ.get('SPLIT', 0))


KEPT = []


class Found(NamedTuple):
    """A family after tuning: x = (t, log g of each task), minus the log of its evidence, and its likeliest prior."""

    kernel: Stationary
    x: np.ndarray
    cost: float
    prior: Prior


class Tuner:
    """Tasks that learn length scales together: several, or one alone."""

    def __init__(self, families: tuple[Stationary, ...], tasks: list[Labels], log_g: np.ndarray | None) -> None:
        self.families, self.tasks, self.log_g = families, tasks, log_g
        self.d = tasks[0].X.shape[1]

    def posterior(self, kernel: Stationary, tasks: list[Labels], prior: Prior) -> Posterior:
        return Posterior(kernel, tasks, prior, self.log_g)

    def with_noise(self, posterior: Posterior, t: np.ndarray) -> np.ndarray:
        return t if self.log_g is not None else np.append(t, posterior.best_noise(t, NOISES))

    def equal(self, kernel: Stationary, tasks: list[Labels], prior: Prior) -> list[np.ndarray]:
        """Equal length scales, the best below sqrt(d) and the best above; the better one first."""
        posterior = self.posterior(kernel, tasks, prior)
        tried = [self.with_noise(posterior, np.full(self.d, np.log(c * np.sqrt(self.d)))) for c in ISOTROPIC]
        heights = [posterior.value(x) for x in tried]
        halves = np.split(np.arange(len(ISOTROPIC)), [LOCAL])
        best = sorted((min(half, key=heights.__getitem__) for half in halves), key=heights.__getitem__)
        return [tried[i] for i in best]

    def explore(self, labels: Labels, begins: list[np.ndarray], priors: list[Prior], seed: int) -> list[Found]:
        """All families of a task from the best end of descents from several places, on few rows first."""
        few = thinned([labels], FEW, seed)
        posterior = self.posterior(self.families[0], few, priors[0])
        all_at_once = len(labels.y) <= 2 * FEW
        steps = STEPS if all_at_once else FIRST
        ends = [end for end in (posterior.descend(x, steps) for x in begins) if end is not None]
        x = min(ends, key=lambda end: end.value).x if ends else begins[0]
        if all_at_once:
            return self.compare(self.families, [labels], x, priors)
        # few rows tell the prior, and which families are worth a descent on all
        tried = self.compare(self.families, few, x, priors[:1], FIRST)
        best = likeliest(tried)
        (settled,) = self.compare((best.kernel,), few, best.x, priors, FIRST)
        found = []
        for one in tried:
            if one.cost < best.cost + HOPELESS:
                begin = settled.x if one is best else one.x
                found += self.compare((one.kernel,), [labels], begin, [settled.prior], LAST)
        return found

    def settled(self, found: list[Found], labels: Labels, together: bool) -> list[Found]:
        """Families with their noise (and, `together`, a common factor of their length scales) chosen again."""
        return [
            one._replace(x=self.posterior(one.kernel, [labels], replace(one.prior, anchor=None)).settled(one.x, 3, together))
            for one, w in zip(found, weights_of(found))
            if w > 0
        ]

    def compare(
        self, families: tuple[Stationary, ...], tasks: list[Labels], x: np.ndarray, priors: list[Prior], steps: int = STEPS
    ) -> list[Found]:
        """Each family on these rows from x: what it finds under each prior, taken together."""
        out, pruned, given = [], None, priors
        for kernel in families:
            priors = given
            e = len(kernel.parts)
            ends, costs, begin = [], [], np.concatenate([x[: self.d], np.zeros(e), x[self.d :]]) if len(x) == self.d + (0 if self.log_g is not None else len(tasks)) else x
            for prior in priors:
                end = self.posterior(kernel, tasks, prior).descend(begin, steps)
                if end is not None:
                    ends.append(end.x)
                    costs.append(cost(end, prior, e))
                    begin = ends[0]
            if ends and len(priors) > 1 and self.d > 1 and PRUNE:
                if pruned is None:
                    wide = int(np.argmax([p.tau for p in priors[: len(ends)]]))
                    pruned = self.posterior(kernel, tasks, priors[0]).relevant(ends[wide])[0]
                prior = Prior(self.d, 1.0, keep=pruned)
                begin = ends[0].copy()
                begin[np.setdiff1d(np.arange(self.d), pruned)] = 9.2
                end = self.posterior(kernel, tasks, prior).descend(begin, steps)
                if end is not None:
                    ends.append(end.x)
                    costs.append(cost(end, prior, e))
                    priors = [*priors[: len(ends) - 1], prior]
            if ends and SPLIT:
                out += [Found(kernel, x_, c_, p_) for x_, c_, p_ in zip(ends, costs, priors)]
                x = np.append(ends[0][: self.d], ends[0][self.d + e :])
            elif ends:
                shares = np.exp(min(costs) - np.array(costs))
                mean = np.average(ends, axis=0, weights=shares)
                best = priors[int(np.argmin(costs))]
                KEPT.append(best.keep is not None)
                out.append(Found(kernel, mean, min(costs) - float(np.log(shares.sum())), best))
                x = np.append(ends[0][: self.d], ends[0][self.d + e :])
        return out


def tune(
    families: tuple[Stationary, ...],
    labels: Labels,
    log_g: float | None,
    max_rows: int,
    shared: list[Found] | None = None,
    seed: int = 0,
) -> list[Found]:
    """The families of one task, beside those that all tasks share if there are several."""
    given = None if log_g is None else np.array([log_g])
    tuner, d = Tuner(families, [labels], given), labels.X.shape[1]
    (many,) = thinned([labels], max_rows, seed)
    few = thinned([many], FEW, seed)
    priors = [Prior(d, tau) for tau in TAUS]
    begins = tuner.equal(families[0], few, priors[0])
    if shared is not None:
        common = min(shared, key=lambda one: one.cost)
        priors.append(Prior(d, NEAR, common.x[:d]))
        begins.append(tuner.with_noise(tuner.posterior(common.kernel, few, priors[0]), common.x[:d]))
    found = tuner.explore(many, begins, priors, seed)
    if given is None:
        equal = Found(families[0], begins[0], np.inf, priors[0])
        odd = row_weights(many, equal)  # length scales that no outlier can bend
        odd = row_weights(many, likeliest(found)) if odd is None else odd
        if odd is not None:
            robust = tuner.explore(replace(many, w=many.w * odd), begins, priors, seed)
            odd = row_weights(many, likeliest(robust))
            if odd is not None:
                robust = tuner.explore(replace(many, w=many.w * odd), [plain(likeliest(robust), self_d(labels))], priors, seed)
            robust = tuner.settled(robust, many, False)
            if bulk(many, likeliest(found)) > bulk(many, likeliest(robust)) - CLEAR:
                found = robust
        if 2 * len(many.y) < len(labels.y):
            found = tuner.settled(found, thinned([labels], REFINED, seed)[0], True)
    return found


def tune_together(
    families: tuple[Stationary, ...], tasks: list[Labels], log_g: np.ndarray | None, rows: int, seed: int
) -> list[Found]:
    """The families of several tasks with the same length scales, each with noise of its own."""
    tuner, prior = Tuner(families, tasks, log_g), Prior(tasks[0].X.shape[1])
    some = thinned(tasks, rows, seed)
    few = thinned(some, FEW, seed)
    posterior = tuner.posterior(families[0], few, prior)
    ends = [posterior.descend(x, STEPS) for x in tuner.equal(families[0], few, prior)]
    x = min((end for end in ends if end is not None), key=lambda end: end.value).x
    return tuner.compare(families, some, x, [Prior(prior.d, tau) for tau in TAUS])


def thinned(tasks: list[Labels], rows: int, seed: int = 0) -> list[Labels]:
    """Tasks on at most so many inputs, the same ones (and the same array) for tasks on the same inputs."""
    made: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    out = []
    for labels in tasks:
        p = len(labels.y)
        if p > rows:
            if id(labels.X) not in made:
                chosen = np.sort(np.random.default_rng(seed).permutation(p)[:rows])
                made[id(labels.X)] = (chosen, labels.X[chosen])
            chosen, X = made[id(labels.X)]
            labels = replace(labels.take(chosen), X=X)
        out.append(labels)
    return out


def self_d(labels): return labels.X.shape[1]


def plain(one, d):
    e = len(one.kernel.parts)
    return np.append(one.x[:d], one.x[d + e :])


def likeliest(found: list[Found]) -> Found:
    return min(found, key=lambda one: one.cost)


def left_out(labels: Labels, one: Found) -> tuple[np.ndarray, np.ndarray] | None:
    """Leave-one-out residuals of a family, and their expected sizes."""
    d = labels.X.shape[1]
    return leave_one_out(labels, Geometry(one.kernel, labels.X, one.x[: d + len(one.kernel.parts)]), float(one.x[d + len(one.kernel.parts)]))


def row_weights(labels: Labels, one: Found) -> np.ndarray | None:
    """What Student's t gives to the rows of a task; None where residuals look Gaussian, or are too few to tell."""
    if len(labels.y) < 20 or one.x[-1] < NOISELESS or (found := left_out(labels, one)) is None:
        return None
    e = found[0] / found[1]
    gaussian = 0.5 * len(e) * (np.log(np.mean(e**2)) + 1 + np.log(2 * np.pi))
    (least, scale), nu = min(((student(e, nu), nu) for nu in TAILS), key=lambda fit: fit[0][0])
    return None if least > gaussian - HEAVY else (nu + 1) / (nu + (e / scale) ** 2)


def bulk(labels: Labels, one: Found) -> float:
    """How badly most rows are predicted from the others: minus the log likelihood of the residuals under Student's t."""
    found = left_out(labels, one)
    return np.inf if found is None else min(student(found[0], nu)[0] for nu in TAILS)


def student(e: np.ndarray, nu: float) -> tuple[float, float]:
    """Minus the log likelihood of residuals under Student's t with the best scale, and that scale."""
    scale = float(np.median(np.abs(e))) + 1e-300
    for _ in range(30):
        scale = float(np.sqrt(np.mean((nu + 1) / (nu + (e / scale) ** 2) * e**2))) + 1e-300
    constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi)
    return float(0.5 * (nu + 1) * np.log1p((e / scale) ** 2 / nu).sum() + len(e) * (np.log(scale) - constant)), scale


def weights_of(found: list[Found]) -> np.ndarray:
    """The share of each family; those below `DROPPED` have none."""
    behind = np.array([one.cost for one in found])
    w = np.exp(behind.min() - behind)
    w = np.where(w >= DROPPED * w.sum(), w, 0.0)
    return w / w.sum()
