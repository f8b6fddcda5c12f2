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

Families and priors are compared on `FEW` rows, the best of them on more (`LEVELS`), and what is left is refined on `MOST`:
tuning costs the same however many rows there are. Beyond these, errors on `density.ROWS` rows have the last word. Of more than
`WIDE` inputs the `FREE` that matter most have length scales of their own (`screened`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from lawful.kernels import Additive, Gaussian, Matern, Stationary, Trend
from lawful.surrogates.density import GAIN as BETTER
from lawful.surrogates.density import ROWS, Judge
from lawful.surrogates.evidence import Labels, evidence, leave_one_out, vertex
from lawful.surrogates.geometry import Geometry, Groups, Room, geometry
from lawful.surrogates.scoring import GAIN, Posterior, Prior, cost, noise_prior, without

FAMILIES: tuple[Stationary, ...] = (Gaussian(), Matern(2.5), Matern(1.5), Additive(), Trend())
TAUS = (1.0, 3.0, 0.3)  # how much the length scales of a task differ
NEAR = 0.5  # how far they may be from those that tasks share
DROPPED = 1e-2  # members with less weight
FEW, LEVELS, MOST = 200, (450, 1000), 2000  # rows: benchmarks/sizes.py
MANY = LEVELS[-1]
BASIN = 150  # rows on which a basin of sums is found
WIDE, FREE = 32, 24  # inputs
HOPELESS = 5.0  # nats by which a member may be behind on few rows to be tried on all, or a prior to be tried with all families
FAR = 20.0  # nats by which a family may be behind under the first prior to be tried under the others
CARRIED = 2  # so many members are tried on all rows, one fewer where there are many
ISOTROPIC = np.array([0.35, 0.7, 1.5, 3.0, 8.0, 30.0])  # starts, times sqrt(d)
CURVED = 2  # so many of them see curvature; beyond, a kernel is nearly linear, another basin
SUMS, MOSTLY = (1.0, 3.0), 3.0  # starts of sums: length scales, and log odds of their share
NOISES = np.log([1e-10, 1e-6, 1e-3, 3e-2, 0.5])
NOISELESS = np.log(1e-6)  # g below which no tail of the noise matters
STEPS, FIRST, LAST, REFINING = 30, 8, 25, 4  # of a descent; on few of the rows, on more of them from there, and on most
COARSE = 0.5  # nats: where each step takes long, one that promises less is the last
LONGER = 1.5  # log of how much longer than the others the length scales of inputs are that may have a say after all
SAME = 0.02  # of the shortest length scale: members that differ by less are one
TAILS = (2.0, 3.0, 4.0, 6.0, 10.0)  # degrees of freedom of Student's t
REPEATED = 1.5  # labels for each input, from which on no input is taken for an outlier: benchmarks/public_tables.py
HEAVY = 4.0  # nats by which it must explain residuals better
AROUND = np.arange(0.0, 8.1, 1.6) - 0.3  # the noise that evidence finds: log g among which residuals have a say too
FAR_BETTER = 5.0  # times smaller residuals of most rows than with equal length scales are no fit to outliers
SHORTER = -0.3  # log of the common factor of length scales that is tried where rows are many
BEHIND = 0.1  # nats a row by which a family may be behind to be tried there
SURE = 2.0  # standard errors of a difference of squared residuals: benchmarks/regress.py --part heavy
CLEAR = 10.0  # nats, and two for each length scale, by which residuals must speak against the choice that trusts no outlier


Left = tuple[np.ndarray, np.ndarray]  # residuals and their expected sizes


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
        self.groups: Groups | None = None  # of inputs: every one alone
        self.room = Room(tasks[0].device)

    def posterior(self, kernel: Stationary, tasks: list[Labels], prior: Prior) -> Posterior:
        return Posterior(kernel, tasks, prior, self.log_g, self.groups, self.room)

    def screen(self, tasks: list[Labels], begins: list[np.ndarray], prior: Prior) -> None:
        """Of many inputs, frees the length scales of those that promise most: at the start, and again from where that led."""
        for _ in range(2 if self.d > WIDE else 0):
            posterior = self.posterior(self.families[0], tasks, prior)
            end = posterior.descend(begins[0], FIRST // 2, curved=False)
            self.groups = posterior.screened(begins[0] if end is None else end.x, FREE)

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

    def explore(self, few: Labels, begins: list[np.ndarray], priors: list[Prior], steps: int = STEPS) -> list[Found]:
        """All families of a task, the likeliest first, from the best end of descents from several places."""
        self.screen([few], begins, priors[0])
        posterior = self.posterior(self.families[0], [few], priors[0])
        ends = [end for end in (posterior.descend(x, FIRST, curved=False) for x in begins) if end is not None]
        x = min(ends, key=lambda end: end.value).x if ends else begins[0]
        gain = GAIN if steps == STEPS else COARSE
        return sorted(self.compare([few], x, priors, steps, gain), key=lambda one: one.cost)

    def carry(self, tried: list[Found], labels: Labels) -> list[Found]:
        """Members that are likely on few rows, on more and more: few tell which families and priors are worth it."""
        before = FEW
        for rows in [*(rows for rows in LEVELS if rows < len(labels.y)), len(labels.y)]:
            (some,) = thinned([labels], rows)
            near = HOPELESS * (before / rows) ** 0.5  # more rows drive members apart
            tried, before = merged(self.carried(tried, some, near, GAIN if rows <= LEVELS[0] else COARSE)), rows
        return tried

    def carried(self, tried: list[Found], labels: Labels, near: float, gain: float) -> list[Found]:
        """The likeliest member of each family within so many nats, and what that suggests of the inputs that have a say."""
        first: dict[int, Found] = {}
        for one in tried:
            first.setdefault(id(one.kernel), one)
        count = len(self.families) if len(labels.y) <= LEVELS[0] else CARRIED
        likely = [one for one in first.values() if one.cost < tried[0].cost + near][:count]
        # a second prior of the likeliest family, and the likeliest family that many rows can still improve
        likely += [one for one in tried[1:2] if one.kernel is tried[0].kernel and one.cost < tried[0].cost + 1.0]
        if all(isinstance(one.kernel, Trend) for one in likely):
            likely += [one for one in first.values() if not isinstance(one.kernel, Trend)][:1]
        out: list[Found] = []
        for one in likely:
            if one.prior.keep is None:
                end = self.found(one.kernel, [labels], one.prior, one.x, LAST, gain)
                out += [] if end is None else [end]
            else:
                out += self.few_inputs(one, labels, gain)
        return out or tried[:1]

    def all_inputs(self, one: Found) -> np.ndarray:
        """x of a member, with long scales for the inputs that have no say."""
        x = one.x.copy()
        if one.prior.keep is not None:
            x[np.setdiff1d(np.arange(self.d), one.prior.keep)] = x[one.prior.keep].max() + LONGER
        return x

    def few_inputs(self, one: Found, labels: Labels, gain: float) -> list[Found]:
        """A member in which all inputs have a say, and one in which those do that deserve it: few rows do not see weak ones."""
        out, prior = [], Prior(self.d, max(TAUS))
        every = self.found(one.kernel, [labels], prior, self.all_inputs(one), LAST, gain)
        if every is not None:
            out.append(every)
            prior = self.posterior(one.kernel, [labels], prior).relevant(every.x)
        if prior.keep is not None and len(prior.keep) < self.d:
            end = self.found(one.kernel, [labels], prior, every.x if every is not None else one.x, LAST, gain)
            out += [] if end is None else [end]
        return out

    def weighed(self, found: list[Found], labels: Labels) -> list[Found]:
        """Members of which some rows had little weight, with their noise chosen for the labels as they are.

        It is no less than that of the other rows. Both evidence and how well most rows are predicted from the others decide.
        """
        out = []
        for one in [one for one, w in zip(found, weights_of(found)) if w > 0]:
            log_g, shape = float(one.log_g[0]) + AROUND, geometry(one.kernel, labels.X, one.theta, self.room)
            best = vertex(log_g, np.array([doubt(labels, shape, g) for g in log_g]))
            out.append(one._replace(x=np.append(one.theta, best)))
        return out

    def settled(self, found: list[Found], few: Labels, sample: Labels, judge: Judge) -> Found:
        """The member that errs least where rows are many: other families than that of evidence, and other common factors."""
        best = start = likeliest(found)
        if not isinstance(start.kernel, Trend):
            error = judge.of(start)
            x, prior = self.all_inputs(start), start.prior if start.prior.keep is None else Prior(self.d, max(TAUS))
            for kernel in self.families:
                if (kernel is start.kernel and start.prior.keep is None) or isinstance(kernel, Trend):
                    continue
                begin = self.posterior(kernel, [few], prior).join(x[: self.d], start.log_g)
                one = self.found(kernel, [few], prior, x if kernel is start.kernel else begin, FIRST, COARSE)
                if one is not None and one.cost < start.cost + BEHIND * len(few.y):
                    new = judge.of(one)
                    best, error = (one, new) if new < error - BETTER else (best, error)
        (best,) = self.refined([best], sample, False)
        if isinstance(best.kernel, Trend):
            return best
        error = judge.of(best)
        while True:
            x = best.x.copy()
            x[: self.d] += SHORTER
            one = best._replace(x=x)
            new = judge.of(one)
            if new > error - BETTER:
                return best
            best, error = one, new

    def refined(self, found: list[Found], labels: Labels, robust: bool) -> list[Found]:
        """Members on more rows than they were chosen on; `robust` ones keep their noise."""
        if not found:
            return []
        found = [one for one, w in zip(found, weights_of(found)) if w > 0]
        odd = row_weights(likeliest(found), left_out(labels, likeliest(found), self.room)) if robust else None
        labels = labels if odd is None else replace(labels, w=labels.w * odd)
        out = []
        for one in found:
            end = self.found(one.kernel, [labels], one.prior, one.x, REFINING, COARSE)
            if end is not None:
                one = end if odd is None else end._replace(x=np.append(end.theta, one.log_g))
            out.append(one)
        return out

    def found(
        self, kernel: Stationary, tasks: list[Labels], prior: Prior, x: np.ndarray, steps: int, gain: float = GAIN
    ) -> Found | None:
        posterior = self.posterior(kernel, tasks, prior)
        end = posterior.descend(without(x, prior), steps, gain)
        return None if end is None else Found(kernel, end.x, cost(end, posterior), prior)

    def compare(
        self, tasks: list[Labels], x: np.ndarray, priors: list[Prior], steps: int = STEPS, gain: float = GAIN
    ) -> list[Found]:
        """Each family on these rows from x: all under the first prior, the best under all, others under those that suit it."""
        first = []
        for kernel in self.families:
            begins = [self.posterior(kernel, tasks, priors[0]).join(x[: self.d], x[self.d + self.families[0].extra :])]
            if kernel.extra and self.d > 1:
                begins = self.sums(kernel, tasks, begins[0], priors[0])
            first.append(self.found(kernel, tasks, priors[0], begins[0], steps, gain))
        found = [one for one in first if one is not None]
        if not found or self.d == 1:
            return found
        best = likeliest(found)
        others = [one for one in found if one is not best]
        near = [one for one in others if one.cost < best.cost + FAR]
        tried = [best, *self.under(best, tasks, priors[1:], steps, gain)]
        likely = [one.prior for one in tried[1:] if one.cost < likeliest(tried).cost + HOPELESS and one.prior.keep is None]
        choosy = any(one.prior.keep is not None and one.cost < likeliest(tried).cost + HOPELESS for one in tried)
        out = [*tried, *others]
        for one in near:
            out += self.under(one, tasks, likely, steps, gain, choosy)
        return out

    def under(
        self, one: Found, tasks: list[Labels], priors: list[Prior], steps: int, gain: float, choosy: bool = True
    ) -> list[Found]:
        """A member under other priors, and with only those inputs that deserve a say."""
        ends = [self.found(one.kernel, tasks, prior, one.x, steps, gain) for prior in priors]
        out = [end for end in ends if end is not None]
        if choosy:
            widest = max([one, *(end for end in out if end.prior.anchor is None)], key=lambda end: end.prior.tau)
            prior = self.posterior(one.kernel, tasks, one.prior).relevant(widest.x)
            end = self.found(one.kernel, tasks, prior, widest.x, steps, gain)
            out += [] if end is None else [end]
        return out

    def sums(self, kernel: Stationary, tasks: list[Labels], x: np.ndarray, prior: Prior) -> list[np.ndarray]:
        """The best place near sums of functions of single inputs, whose length scales products need not have: another basin."""
        few = thinned(tasks, BASIN)
        posterior = self.posterior(kernel, few, prior)
        begins = [x.copy(), *(self.with_noise(posterior, np.full(self.d, np.log(c))) for c in SUMS)]
        for begin in begins:
            begin[self.d] = MOSTLY
        begins = sorted([x, *begins], key=posterior.value)[:2]
        ends = [end for end in (posterior.descend(begin, FIRST // 2, curved=False) for begin in begins) if end is not None]
        return [min(ends, key=lambda end: end.value).x] if ends else begins


def candidates(d: int, intercept: bool) -> tuple[Stationary, ...]:
    """The families for so many inputs: sums are of a few, and without a free constant there is no `Trend`."""
    sums = 1 < d <= WIDE
    return tuple(k for k in FAMILIES if (sums or not isinstance(k, Additive)) and (intercept or not isinstance(k, Trend)))


def ties(d: int) -> list[Prior]:
    """The strengths with which length scales are tied; a single one has nothing to be tied to."""
    return [Prior(d, tau) for tau in (TAUS if d > 1 else TAUS[:1])]


def tune(
    families: tuple[Stationary, ...],
    labels: Labels,
    log_g: float | None,
    max_rows: int | None = None,
    shared: list[Found] | None = None,
    seed: int = 0,
) -> list[Found]:
    """The families of one task, beside those that all tasks share if there are several."""
    given = None if log_g is None else np.array([log_g])
    tuner, d = Tuner(families, [labels], given), labels.X.shape[1]
    most = MOST if max_rows is None else max_rows
    (many,) = thinned([labels], min(MANY, most), seed)
    some = np.arange(len(many.y)) if len(many.y) <= 1.25 * FEW else chosen(len(many.y), FEW, seed)
    few, steps = (many, STEPS) if len(some) == len(many.y) else (many.take(some), FIRST)
    priors = ties(d)
    begins = tuner.equal(families[0], [few], priors[0])
    if shared is not None:
        common = min(shared, key=lambda one: one.cost)
        priors.append(Prior(d, NEAR, common.x[:d]))
        begins.append(tuner.with_noise(tuner.posterior(families[0], [few], priors[0]), common.x[:d]))
    found = merged(tuner.explore(few, begins, priors, steps))
    robust: list[Found] = []
    if given is None and labels.n < REPEATED * len(labels.y):  # else the labels of an input say what noise is
        equal = Found(families[0], begins[0], np.inf, priors[0])
        # equal length scales are those that no outlier can bend, and a judge of rows unless others predict them far better
        plain, own = (left_out(many, one, tuner.room) for one in (equal, likeliest(found)))
        odd = row_weights(equal, plain) if bulk(plain) - bulk(own) < len(many.y) * np.log(FAR_BETTER) else None
        odd = row_weights(likeliest(found), own) if odd is None else odd
        if odd is not None:
            robust = tuner.explore(replace(few, w=few.w * odd[some]), begins, priors, steps)
            odd = row_weights(likeliest(robust), left_out(many, likeliest(robust), tuner.room))
            if odd is None and len(many.y) > LEVELS[0]:
                robust = []  # no row is odd to who trusted odd rows less, and of so many none can hide
            else:
                weighed = many if odd is None else replace(many, w=many.w * odd)
                robust = tuner.weighed(merged(tuner.carry(robust, weighed)), many)
    if few is not many:
        found = tuner.carry(found, many)
    if robust:
        own, left = (left_out(many, likeliest(one), tuner.room) for one in (found, robust))
        robust = [] if signal(own, left, CLEAR + 2 * d) else robust
    if len(many.y) < min(most, len(labels.y)):
        (sample,) = thinned([labels], most, seed)
        robust = tuner.refined(robust, sample, True)
        if len(sample.y) < len(labels.y) and given is None:
            judge = Judge(thinned([labels], ROWS, seed)[0], len(labels.y))
            best = tuner.settled(found, many, sample, judge)
            if not robust or judge.of(best) < judge.of(likeliest(robust)) - BETTER:
                return [best]
        found = robust or tuner.refined(found, sample, False)
        many = sample
    found = robust or found
    # on all rows members would be so much further apart
    least, more = likeliest(found).cost, len(labels.y) / len(many.y)
    return [one._replace(cost=least + more * (one.cost - least)) for one in found]


def tune_together(
    families: tuple[Stationary, ...], tasks: list[Labels], log_g: np.ndarray | None, rows: int, seed: int
) -> list[Found]:
    """The families of several tasks with the same length scales, each with noise of its own."""
    tuner, prior = Tuner(families, tasks, log_g), Prior(tasks[0].X.shape[1])
    some = thinned(tasks, rows, seed)
    few = thinned(some, FEW, seed)
    begins = tuner.equal(families[0], few, prior)
    tuner.screen(few, begins, prior)
    posterior = tuner.posterior(families[0], few, prior)
    ends = [end for end in (posterior.descend(x, STEPS, curved=False) for x in begins) if end is not None]
    x = min(ends, key=lambda end: end.value).x if ends else begins[0]
    return merged(tuner.compare(some, x, ties(prior.d)))


def thinned(tasks: list[Labels], rows: int, seed: int = 0) -> list[Labels]:
    """Tasks on at most so many inputs, the same ones (and the same array) for tasks on the same inputs."""
    made: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    out = []
    for labels in tasks:
        p = len(labels.y)
        if p > rows:
            if id(labels.X) not in made:
                some = chosen(p, rows, seed)
                made[id(labels.X)] = (some, labels.X[some])
            some, X = made[id(labels.X)]
            labels = replace(labels.take(some), X=X)
        out.append(labels)
    return out


def chosen(p: int, rows: int, seed: int) -> np.ndarray:
    return np.sort(np.random.default_rng(seed).permutation(p)[:rows])


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


def left_out(labels: Labels, one: Found, room: Room | None = None) -> Left | None:
    """Leave-one-out residuals of a member, and their expected sizes."""
    return leave_one_out(labels, geometry(one.kernel, labels.X, one.theta, room), float(one.log_g[0]))


def row_weights(one: Found, left: Left | None) -> np.ndarray | None:
    """What Student's t gives to the rows of a task; None where residuals look Gaussian, or are too few to tell."""
    if left is None or len(left[0]) < 20 or one.log_g[0] < NOISELESS:
        return None
    e = left[0] / left[1]
    gaussian = 0.5 * len(e) * (np.log(np.mean(e**2)) + 1 + np.log(2 * np.pi))
    (least, scale), nu = min(((student(e, nu), nu) for nu in TAILS), key=lambda fit: fit[0][0])
    return None if least > gaussian - HEAVY else (nu + 1) / (nu + (e / scale) ** 2)


def bulk(left: Left | None) -> float:
    """How badly most rows are predicted from the others: minus the log likelihood of the residuals under Student's t."""
    return np.inf if left is None else min(student(left[0], nu)[0] for nu in TAILS)


def signal(plain: Left | None, robust: Left | None, margin: float) -> bool:
    """Whether outliers are no noise: trusting all rows predicts most of them far better, or its squares are clearly smaller.

    A jump of the truth looks like outliers too.
    """
    if plain is None or robust is None:
        return robust is None
    apart = plain[0] ** 2 - robust[0] ** 2
    clearly = float(apart.mean()) < -SURE * float(apart.std()) / len(apart) ** 0.5
    return clearly or bulk(plain) <= bulk(robust) - margin


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
