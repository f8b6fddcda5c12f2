"""Kernels and noise of a task by evidence: families are averaged, tasks share what they have in common.

    alpha(x) = sum_k w_k alpha_k(x),      w_k proportional to the evidence of member k

over families of kernels and priors of their length scales (`scoring`), so that predictions stay linear in the labels: members
are Gaussian, Matern 5/2 and Matern 3/2 kernels, `Additive` ones (sums of functions of single inputs need far fewer rows) and
`Trend` (tables are often nearly linear), each with length scales tied by several strengths tau, or for a few of the inputs
only. Every prior is tried with the Gaussian, those within `HOPELESS` nats of the best with the other families. Members below
a hundredth are dropped. Without a free constant, predictions return to a known one far from the data, and there is no `Trend`.

Tasks first learn length scales together, each with noise of its own. Then each has its own; that they are near the shared ones
is one more prior beside those of the taus, weighed by evidence too. So a task with five observations has length scales near
those of the others, and one with five hundred those that suit it.

Heavy tails. Gaussian noise has to explain an outlying label by length scales: the evidence rises while the error doubles. So
leave-one-out residuals, standardised, are compared with Student's t. Where that explains them better, length scales are chosen
once more with each row's noise divided by the weight (nu + 1) / (nu + e_i^2) that the t distribution gives it; the noise
itself, and with it lambda, is then chosen for the labels as they are, so that predictions stay means, by evidence and, as that
lets outliers pass for signal, by the likelihood of leave-one-out residuals under Student's t. A jump of the truth looks like
an outlier too: where those residuals speak clearly for the first choice, it is kept.

All rows are used up to `max_rows`; beyond, a subset, and noise and a common factor of the length scales are settled on up to
`REFINED` rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from lawful.kernels import Additive, Gaussian, Matern, Stationary, Trend
from lawful.surrogates.evidence import Labels, evidence, leave_one_out, vertex
from lawful.surrogates.geometry import Geometry, geometry
from lawful.surrogates.scoring import Posterior, Prior, cost, noise_prior, without

FAMILIES: tuple[Stationary, ...] = (Gaussian(), Matern(2.5), Matern(1.5), Additive(), Trend())
TAUS = (1.0, 3.0, 0.3)  # how much the length scales of a task differ
NEAR = 0.5  # how far they may be from those that tasks share
DROPPED = 1e-2  # members with less weight
FEW = 200  # rows on which families and priors are compared
BASIN = 150  # rows on which a basin of sums is found
REFINED = 3000  # rows on which noise and a common factor are settled
HOPELESS = 5.0  # nats by which a member may be behind on few rows to be tried on all, or a prior to be tried with all families
FAR = 20.0  # nats by which a family may be behind under the first prior to be tried under the others
CARRIED = 3  # so many members are tried on all rows, one fewer where there are many
ISOTROPIC = np.array([0.35, 0.7, 1.5, 3.0, 8.0, 30.0])  # starts, times sqrt(d)
CURVED = 2  # so many of them see curvature; beyond, a kernel is nearly linear, another basin
SUMS, MOSTLY = (1.0, 3.0), 3.0  # starts of sums: length scales, and log odds of their share
NOISES = np.log([1e-10, 1e-6, 1e-3, 3e-2, 0.5])
NOISELESS = np.log(1e-6)  # g below which no tail of the noise matters
STEPS, FIRST, LAST = 30, 8, 25  # of a descent; of one on few of the rows, and of one on all from there
SAME = 0.02  # of the shortest length scale: members that differ by less are one
BASINS = 0.3  # a difference between starts, as a share of the shortest length scale, that is none of basins
TAILS = (2.0, 3.0, 4.0, 6.0, 10.0)  # degrees of freedom of Student's t
HEAVY = 4.0  # nats by which it must explain residuals better
AROUND = np.arange(-2.0, 5.1)  # the noise that evidence finds: log g among which residuals have a say too
ORDINARY = 0.3  # log of the weight that Student's t gives to a row without fault
FAR_BETTER = 5.0  # times smaller residuals of most rows than with equal length scales are no fit to outliers
CLEAR = 10.0  # nats, and one for each length scale, by which residuals must speak against the choice that trusts no outlier


class Found(NamedTuple):
    """A member: a family and a prior after tuning, x = (theta, log g of each task), and minus the log of its evidence."""

    kernel: Stationary
    x: np.ndarray
    cost: float
    prior: Prior

    @property
    def theta(self) -> np.ndarray:
        """The kernel's parameters: length scales first."""
        return self.x[: self.prior.d + self.kernel.extra]

    @property
    def log_g(self) -> np.ndarray:
        return self.x[self.prior.d + self.kernel.extra :]


class Tuner:
    """Tasks that learn length scales together: several, or one alone."""

    def __init__(self, families: tuple[Stationary, ...], tasks: list[Labels], log_g: np.ndarray | None) -> None:
        self.families, self.tasks, self.log_g = families, tasks, log_g
        self.d = tasks[0].X.shape[1]

    def posterior(self, kernel: Stationary, tasks: list[Labels], prior: Prior) -> Posterior:
        return Posterior(kernel, tasks, prior, self.log_g)

    def with_noise(self, posterior: Posterior, t: np.ndarray) -> np.ndarray:
        return posterior.join(t, np.zeros(0) if self.log_g is not None else posterior.best_noise(t, NOISES))

    def plain(self, one: Found) -> np.ndarray:
        """x of the first family, from a member."""
        return self.posterior(self.families[0], self.tasks, one.prior).join(one.x[: self.d], one.log_g)

    def equal(self, kernel: Stationary, tasks: list[Labels], prior: Prior) -> list[np.ndarray]:
        """Equal length scales, the best below sqrt(d) and the best above; the better one first."""
        posterior = self.posterior(kernel, tasks, prior)
        tried = [self.with_noise(posterior, np.full(self.d, np.log(c * np.sqrt(self.d)))) for c in ISOTROPIC]
        heights = [posterior.value(x) for x in tried]
        halves = np.split(np.arange(len(ISOTROPIC)), [CURVED])
        best = sorted((min(half, key=heights.__getitem__) for half in halves), key=heights.__getitem__)
        return [tried[i] for i in best]

    def explore(self, labels: Labels, begins: list[np.ndarray], priors: list[Prior], seed: int) -> list[Found]:
        """All families of a task from the best end of descents from several places, on few rows first."""
        few = thinned([labels], FEW, seed)
        posterior = self.posterior(self.families[0], few, priors[0])
        all_at_once = len(labels.y) <= 1.25 * FEW
        steps = STEPS if all_at_once else FIRST
        ends = [end for end in (posterior.descend(x, steps) for x in begins) if end is not None]
        x = min(ends, key=lambda end: end.value).x if ends else begins[0]
        if all_at_once:
            return self.compare([labels], x, priors)
        # few rows tell which families and priors are worth a descent on all
        tried = sorted(self.compare(few, x, priors, FIRST), key=lambda one: one.cost)
        carried = CARRIED if len(labels.y) <= 2 * FEW else CARRIED - 1
        likely = [one for one in tried[:carried] if one.cost < tried[0].cost + HOPELESS]
        every = [one for one in tried if one.prior.keep is None]
        choosy = [one for one in likely if one.prior.keep is not None] if every else []
        simple = [one for one in likely if one.prior.keep is None] if every else likely
        ended: list[tuple[Found, Found]] = []  # where a member began, and where it ended on all rows
        for one in simple:
            # a family in the same basin under another prior ends nearby
            near = next((end.x for begin, end in ended if begin.kernel is one.kernel and alike(begin, one, BASINS)), one.x)
            end = self.found(one.kernel, [labels], one.prior, near, LAST)
            ended += [] if end is None else [(one, end)]
        found = [end for _, end in ended]
        # which inputs have a say is asked again: few rows do not see the weak ones
        for kernel in {id(one.kernel): one.kernel for one in choosy}.values():
            begin = next((one for one in every if one.kernel is kernel), every[0])
            known = next((end for one, end in ended if one is begin), None)
            found += self.few_inputs(kernel, labels, begin, known)
        return found or tried[:1]

    def few_inputs(self, kernel: Stationary, labels: Labels, begin: Found, every: Found | None) -> list[Found]:
        """A member in which all inputs have a say, on all rows, and one in which only those do that deserve it there.

        `every`: the first, where it is known already (and not to be counted again).
        """
        posterior = self.posterior(kernel, [labels], begin.prior)
        out = []
        if every is None:
            x = begin.x if begin.kernel is kernel else posterior.join(begin.x[: self.d], begin.log_g)
            every = self.found(kernel, [labels], begin.prior, x, LAST)
            out = [every]
        if every is None:
            return []
        out.append(self.found(kernel, [labels], posterior.relevant(every.x), every.x, LAST))
        return [one for one in out if one is not None]

    def settled(self, found: list[Found], labels: Labels, together: bool) -> list[Found]:
        """Members with their noise (and, `together`, a common factor of their length scales) chosen again.

        Without noise to speak of there is nothing to choose: predictions are the same.
        """
        return [
            one
            if together and one.log_g[0] < NOISELESS
            else one._replace(
                x=self.posterior(one.kernel, [labels], replace(one.prior, anchor=None)).settled(one.x, 3, together)
            )
            for one, w in zip(found, weights_of(found))
            if w > 0
        ]

    def weighed(self, found: list[Found], labels: Labels) -> list[Found]:
        """Members of which some rows had little weight, with their noise chosen for the labels as they are.

        It is no less than that of the other rows. Both evidence and how well most rows are predicted from the others decide.
        """
        out = []
        for one in [one for one, w in zip(found, weights_of(found)) if w > 0]:
            least, (settled,) = float(one.log_g[0]) - ORDINARY, self.settled([one], labels, False)
            log_g = max(least, float(settled.log_g[0])) + AROUND
            log_g = log_g[log_g >= least]
            shape = geometry(one.kernel, labels.X, one.theta)
            best = vertex(log_g, np.array([doubt(labels, shape, g) for g in log_g]))
            out.append(one._replace(x=np.append(one.theta, best)))
        return out

    def found(self, kernel: Stationary, tasks: list[Labels], prior: Prior, x: np.ndarray, steps: int) -> Found | None:
        end = self.posterior(kernel, tasks, prior).descend(without(x, prior), steps)
        return None if end is None else Found(kernel, end.x, cost(end, prior, kernel.extra), prior)

    def compare(self, tasks: list[Labels], x: np.ndarray, priors: list[Prior], steps: int = STEPS) -> list[Found]:
        """Each family on these rows from x, under all priors or, for those like the first, under those that suit the first."""
        first, *others = self.families
        found = self.search(first, tasks, [x], priors, steps)
        if not found:
            return []
        likely = [one for one in found if one.cost < likeliest(found).cost + HOPELESS]
        for kernel in others:
            begins = [self.posterior(kernel, tasks, one.prior).join(one.x[: self.d], one.log_g) for one in likely]
            if self.d > 1 and isinstance(kernel, Additive | Trend):
                begins = begins[:1] + (self.sums(kernel, tasks, begins[0], priors[0]) if kernel.extra else [])
                found += self.search(kernel, tasks, begins, priors, steps, likeliest(found).cost + FAR)
            else:
                ends = [self.found(kernel, tasks, one.prior, begin, steps) for one, begin in zip(likely, begins)]
                found += [one for one in ends if one is not None]
        return found

    def sums(self, kernel: Stationary, tasks: list[Labels], x: np.ndarray, prior: Prior) -> list[np.ndarray]:
        """Starts near sums of functions of single inputs, whose length scales products need not have: another basin."""
        few = thinned(tasks, BASIN)
        posterior = self.posterior(kernel, few, prior)
        begins = [x.copy(), *(self.with_noise(posterior, np.full(self.d, np.log(c))) for c in SUMS)]
        for begin in begins:
            begin[self.d] = MOSTLY
        return begins

    def search(
        self,
        kernel: Stationary,
        tasks: list[Labels],
        begins: list[np.ndarray],
        priors: list[Prior],
        steps: int,
        highest: float = np.inf,
    ) -> list[Found]:
        """A family under every prior, from the best of several places; under the first only if that costs too much."""
        if len(begins) > 1:
            few = thinned(tasks, BASIN)
            tried = [self.found(kernel, few, priors[0], x, FIRST) for x in begins]
            begins = [likeliest([one for one in tried if one is not None]).x] if any(tried) else begins
        first = self.found(kernel, tasks, priors[0], begins[0], steps)
        found = [] if first is None else [first]
        if first is None or first.cost > highest:
            return found
        for prior in priors[1:]:
            one = self.found(kernel, tasks, prior, found[0].x, steps)
            found += [] if one is None else [one]
        if self.d > 1:
            widest = max((one for one in found if one.prior.anchor is None), key=lambda one: one.prior.tau)
            one = self.found(kernel, tasks, self.posterior(kernel, tasks, priors[0]).relevant(widest.x), widest.x, steps)
            found += [] if one is None else [one]
        return found


def candidates(rows: int, d: int, intercept: bool) -> tuple[Stationary, ...]:
    """The families for so many rows and inputs: beyond `REFINED`, where sums are learned by any of them, the fast ones only."""
    sums, trend = d > 1 and rows <= REFINED, intercept
    return tuple(k for k in FAMILIES if (sums or not isinstance(k, Additive)) and (trend or not isinstance(k, Trend)))


def ties(d: int) -> list[Prior]:
    """The strengths with which length scales are tied; a single one has nothing to be tied to."""
    return [Prior(d, tau) for tau in (TAUS if d > 1 else TAUS[:1])]


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
    priors = ties(d)
    begins = tuner.equal(families[0], few, priors[0])
    if shared is not None:
        common = min(shared, key=lambda one: one.cost)
        priors.append(Prior(d, NEAR, common.x[:d]))
        begins.append(tuner.with_noise(tuner.posterior(families[0], few, priors[0]), common.x[:d]))
    found = merged(tuner.explore(many, begins, priors, seed))
    if given is None:
        equal = Found(families[0], begins[0], np.inf, priors[0])
        # equal length scales are those that no outlier can bend, and a judge of rows unless others predict them far better
        bent = bulk(many, equal) - bulk(many, likeliest(found)) < len(many.y) * np.log(FAR_BETTER)
        odd = row_weights(many, equal) if bent else None
        odd = row_weights(many, likeliest(found)) if odd is None else odd
        if odd is not None:
            robust = tuner.explore(replace(many, w=many.w * odd), begins, priors, seed)
            odd = row_weights(many, likeliest(robust))
            if odd is not None:
                robust = tuner.explore(replace(many, w=many.w * odd), [tuner.plain(likeliest(robust))], priors, seed)
            robust = tuner.weighed(merged(robust), many)
            # length scales of many inputs can hide an outlier from all other rows, whose residuals then look fine
            if bulk(many, likeliest(found)) > bulk(many, likeliest(robust)) - (CLEAR + d):
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
    return merged(tuner.compare(some, x, ties(prior.d)))


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


def alike(a: Found, b: Found, within: float) -> bool:
    """Whether two members of a family are the same kernel and noise, but for such a share of the shortest length scale."""
    d = a.prior.d
    reach, other = np.exp(-a.x[:d]), np.exp(-b.x[:d])  # what an input counts for
    close = np.abs(reach - other).max() <= within * reach.max()
    return bool(close and np.abs(a.x[d:] - b.x[d:]).max(initial=0.0) <= 5 * within)


def merged(found: list[Found]) -> list[Found]:
    """Members that only their priors tell apart are one, the likeliest of them with the evidence of all: each costs a
    factorisation, and a descent on all rows."""
    out: list[Found] = []
    for one in sorted(found, key=lambda one: one.cost):
        twin = next((i for i, other in enumerate(out) if other.kernel is one.kernel and alike(other, one, SAME)), None)
        if twin is None:
            out.append(one)
        else:
            out[twin] = out[twin]._replace(cost=-float(np.logaddexp(-out[twin].cost, -one.cost)))
    return out


def likeliest(found: list[Found]) -> Found:
    return min(found, key=lambda one: one.cost)


def left_out(labels: Labels, one: Found) -> tuple[np.ndarray, np.ndarray] | None:
    """Leave-one-out residuals of a member, and their expected sizes."""
    return leave_one_out(labels, geometry(one.kernel, labels.X, one.theta), float(one.log_g[0]))


def row_weights(labels: Labels, one: Found) -> np.ndarray | None:
    """What Student's t gives to the rows of a task; None where residuals look Gaussian, or are too few to tell."""
    if len(labels.y) < 20 or one.log_g[0] < NOISELESS or (found := left_out(labels, one)) is None:
        return None
    e = found[0] / found[1]
    gaussian = 0.5 * len(e) * (np.log(np.mean(e**2)) + 1 + np.log(2 * np.pi))
    (least, scale), nu = min(((student(e, nu), nu) for nu in TAILS), key=lambda fit: fit[0][0])
    return None if least > gaussian - HEAVY else (nu + 1) / (nu + (e / scale) ** 2)


def bulk(labels: Labels, one: Found) -> float:
    """How badly most rows are predicted from the others: minus the log likelihood of the residuals under Student's t."""
    found = left_out(labels, one)
    return np.inf if found is None else min(student(found[0], nu)[0] for nu in TAILS)


def doubt(labels: Labels, shape: Geometry, log_g: float) -> float:
    """Minus the log likelihoods of labels under the Gaussian process, and of their residuals under Student's t."""
    whole, found = evidence(labels, shape, log_g, slope=False), leave_one_out(labels, shape, log_g)
    if whole is None or found is None:
        return np.inf
    return whole.value + noise_prior(log_g) + min(student(found[0], nu)[0] for nu in TAILS)


def student(e: np.ndarray, nu: float) -> tuple[float, float]:
    """Minus the log likelihood of residuals under Student's t with the best scale, and that scale."""
    scale = float(np.median(np.abs(e))) + 1e-300
    for _ in range(30):
        scale = float(np.sqrt(np.mean((nu + 1) / (nu + (e / scale) ** 2) * e**2))) + 1e-300
    constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi)
    return float(0.5 * (nu + 1) * np.log1p((e / scale) ** 2 / nu).sum() + len(e) * (np.log(scale) - constant)), scale


def weights_of(found: list[Found]) -> np.ndarray:
    """The share of each member; those below `DROPPED` have none."""
    behind = np.array([one.cost for one in found])
    w = np.exp(behind.min() - behind)
    w = np.where(w >= DROPPED * w.sum(), w, 0.0)
    return w / w.sum()
