"""A law as people read it: an equation whose digits are those that the data know, standard errors, and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from lawful.sets.learned.findings import Found
from lawful.sets.learned.refine import feet, sampson

SHUFFLES = 5
CLOSE = 2.0  # standard errors within which a simpler number will do
SHARP = 0.05  # standard error beyond which a whole number nearby is no surprise
LARGEST = 20  # whole number that anybody would call simple


@dataclass(frozen=True)
class LearnedLaw:
    """One learned equation and what speaks for it.

    `coefficients` and `std` belong to `terms`, all on one side: sum of coefficient times term = 0; the leading term has
    coefficient 1 and no error. `misfit` is the mean squared distance of the points from the law in units of the noise, 1 for
    a law; `held_out` the same on rows that the coefficients had not seen, `shuffled` on data whose columns were shuffled,
    where there is no law. `distance` is the root mean square distance in the units of the outputs, `noise` what the noise
    alone would make of it. `z` is the smallest coefficient in standard errors. `simple` has the simplest coefficients within
    two standard errors.

    >>> import numpy as np
    >>> from lawful import discover
    >>> rng = np.random.default_rng(0)
    >>> flow = rng.uniform(1, 2, (100, 2))
    >>> law = discover(None, np.c_[flow, flow.sum(axis=1)] + 0.01 * rng.standard_normal((100, 3)), noise=0.01).laws[0]
    >>> law.terms, bool(law.misfit < law.limit)
    (('y1', 'y2', 'y3'), True)
    """

    equation: str
    simple: str
    terms: tuple[str, ...]
    coefficients: np.ndarray
    std: np.ndarray
    degree: int
    misfit: float
    limit: float
    held_out: float
    shuffled: float
    distance: float
    noise: float
    z: float

    def __str__(self) -> str:
        return self.equation

    @property
    def sentence(self) -> str:
        ratio = np.sqrt(self.misfit)
        return (
            f"{self.equation}: points are {self.distance:.2g} from it, {ratio:.2f} times the noise of {self.noise:.2g} "
            f"({np.sqrt(self.held_out):.2f} times on rows not used for the coefficients, {np.sqrt(self.shuffled):.3g} times "
            f"after shuffling the columns); its weakest coefficient is {self.z:.3g} standard errors from 0"
        )


def law_in_words(
    found: Found, Z: np.ndarray, sigma: np.ndarray, n_outputs: int, names: Sequence[str], tidy: bool
) -> LearnedLaw:
    """`found` over the columns of Z, which are called `names`."""
    order = sorted(range(len(found.lib)), key=lambda j: -found.lib.degree(j))  # the highest first
    lib, theta, spread = found.lib.subset(order), found.theta[order], found.fit.covariance[np.ix_(order, order)]
    b, covariance = theta * lib.factors(), spread * np.outer(lib.factors(), lib.factors())
    speaks = np.array([any(i < n_outputs for i in lib.variables(j)) for j in range(len(lib))])
    ranked = sorted(range(len(lib)), key=lambda j: (speaks[j], lib.degree(j), abs(theta[j])))
    lead = ranked[-1]
    a = b / b[lead]
    to_ratio = (np.eye(len(lib)) - np.outer(a, np.eye(len(lib))[lead])) / b[lead]
    spread_of_ratios = to_ratio @ covariance @ to_ratio.T
    std = np.sqrt(np.maximum(np.diag(spread_of_ratios), 0.0))
    std[lead] = 0.0
    if tidy:
        a = whole_numbers(a, spread_of_ratios, lead)
    texts = tuple(lib.text(j, names) for j in range(len(lib)))
    digits = np.array([_rounded(x, e / 200) for x, e in zip(a, std)])
    plain = np.array([_simplest(x, CLOSE * e) for x, e in zip(a, std)])
    strength = np.abs(theta) / np.maximum(np.sqrt(np.diag(spread)), 1e-300)
    where, distance = feet(lib, theta, Z, sigma)
    moved = np.linalg.norm((Z - where)[:, :n_outputs], axis=1)
    far = float(np.sqrt(np.mean(moved**2)))
    return LearnedLaw(
        equation=_equation(digits, texts, speaks),
        simple=_equation(plain, texts, speaks),
        terms=texts,
        coefficients=a,
        std=std,
        degree=found.degree,
        misfit=found.fit.mu,
        limit=found.limit,
        held_out=found.held_out,
        shuffled=_shuffled(found, Z, sigma),
        distance=far,
        noise=far / max(float(np.sqrt(np.mean(distance**2))), 1e-300),
        z=float(strength.min()),
    )


def whole_numbers(a: np.ndarray, covariance: np.ndarray, lead: int) -> np.ndarray:
    """Coefficients that are known to 0.05 and, taken together, agree with whole numbers become those; the others follow.

    Together: the squared distance from the whole numbers, in the inverse covariance, is no rarer than 1 in 100; 1e-7 is
    rounding. The others are moved to their conditional mean.
    """
    covariance = covariance + 1e-14 * np.eye(len(a))
    std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    goal = np.round(a)
    snapped = [j for j in range(len(a)) if j != lead and 0 < std[j] <= SHARP and goal[j] != 0 and abs(goal[j]) <= LARGEST]
    snapped = [j for j in snapped if abs(goal[j] - a[j]) <= 3 * std[j]]
    while snapped:
        inner = covariance[np.ix_(snapped, snapped)]
        off = (goal - a)[snapped]
        pull = np.linalg.lstsq(inner, off, rcond=1e-10)[0]
        if off @ pull <= chi2.ppf(0.99, len(snapped)):
            moved = a + covariance[:, snapped] @ pull
            moved[snapped] = goal[snapped]
            moved[lead] = 1.0
            return moved
        snapped.pop(int(np.argmax(np.abs(off) / std[snapped])))
    return a


def _shuffled(found: Found, Z: np.ndarray, sigma: np.ndarray) -> float:
    """The smallest mean squared distance, in units of the noise, of shuffled clouds from a law with the same terms."""
    rng = np.random.default_rng(0)
    best = np.inf
    for _ in range(SHUFFLES):
        cloud = np.stack([rng.permutation(z) for z in Z[:1000].T], axis=1)
        theta = sampson(found.lib, cloud, sigma, steps=2)
        best = min(best, float(np.mean(feet(found.lib, theta, cloud, sigma)[1] ** 2)))
    return best


def _rounded(x: float, error: float) -> float:
    """x to the digits that matter: the last one is worth no more than `error`."""
    if error <= 0 or not np.isfinite(error):
        return float(f"{x:.15g}")
    decimals = int(-np.floor(np.log10(error)))
    if decimals > 17:  # a unit in which all numbers are tiny
        digits = int(np.floor(np.log10(abs(x)))) + decimals if x else 0
        return float(f"{x:.{min(max(digits, 0), 16)}e}")
    return float(np.round(x, max(decimals, -15)))


def _simplest(x: float, within: float) -> float:
    """The number with the fewest digits that is no further than `within` from x, and not 0."""
    for decimals in range(17):
        rounded = float(f"{x:.{decimals}e}")
        whole = float(np.round(x))
        if decimals == 1 and whole != 0 and abs(whole - x) <= within:
            return whole
        if rounded != 0 and abs(rounded - x) <= within:
            return rounded
    return float(x)


def _equation(a: np.ndarray, texts: Sequence[str], speaks: np.ndarray) -> str:
    """Terms about outputs on the left, the others on the right."""
    a = a * np.sign(a[np.argmax(speaks)])  # the first one has a plus
    left = _sum([(x, t) for x, t, s in zip(a, texts, speaks) if s])
    right = _sum([(-x, t) for x, t, s in zip(a, texts, speaks) if not s])
    return f"{left} = {right}"


def _sum(parts: list[tuple[float, str]]) -> str:
    out = ""
    for x, term in parts:
        size = "" if abs(x) == 1 and term != "1" else repr(abs(float(x))).removesuffix(".0")
        body = size if term == "1" else f"{size}*{term}" if size else term
        sign = ("-" if x < 0 else "") if not out else (" - " if x < 0 else " + ")
        out += sign + body
    return out or "0"
