"""The whole way from a cloud to laws: constants, degrees, count, guard, supports, refinement, evidence.

Linear laws come first. Each of them makes one variable superfluous; the rest is searched for the lowest degree that has laws.
Every law is fitted on its few terms by distance, must hold on either half of the rows with the coefficients of the other, and
be independent of the laws before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import comb

import numpy as np

from lawful.sets.learned.features import Library, library
from lawful.sets.learned.refine import Fit, feet, geometric, law_at, sampson, unbent
from lawful.sets.learned.spectrum import CAPACITY, WIDER, Z_COUNT, capacity, confirmed, limit, spectrum
from lawful.sets.learned.supports import (
    CHECKED,
    INDEPENDENT,
    candidates,
    eliminate,
    floored,
    laws_of,
    learned_numbers,
    least,
    moments,
    off_span,
    pivots,
    price_of_a_term,
    without_supersets,
)

MAX_ROWS = 3000  # rows that the search looks at
CONSTANT = 3.0  # a column that moves less than so many times its noise is constant
SMALL = 1e-3  # of the largest term: no term at all
ROWS_PER_TERM = 4
MAX_SUPPORTS = 50_000_000  # of one size
FINALISTS = 5  # supports of each size that are compared by distance


@dataclass(frozen=True)
class Found:
    """One law: its terms, coefficients in the units of the library, and what speaks for it."""

    lib: Library
    fit: Fit
    held_out: float
    limit: float
    degree: int

    @property
    def theta(self) -> np.ndarray:
        return self.fit.theta


@dataclass
class Findings:
    """Laws over the columns `kept` of the cloud, and remarks on what was left out or refused."""

    laws: list[Found] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    constant: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def likelihood(self, Z: np.ndarray, sigma: np.ndarray) -> float:
        """Of the distances of the points from the laws, under this noise: normal, with the noise across each law."""
        out = 0.0
        for law in self.laws:
            slope = law_at(law.lib, law.theta, Z[:, self.kept])[1]
            across = np.sum((slope * sigma[self.kept]) ** 2, axis=1) / np.maximum(np.sum(slope**2, axis=1), 1e-300)
            out -= 0.5 * (len(Z) * np.log(max(law.fit.mu, 1e-300)) + np.sum(np.log(np.maximum(across, 1e-300))))
        return out


@dataclass
class Search:
    """Points Z (n, D) with noise sigma (D,); the first n_outputs columns are outputs."""

    Z: np.ndarray
    sigma: np.ndarray
    n_outputs: int
    functions: tuple[str, ...] = ()
    max_terms: int = 4
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def __post_init__(self) -> None:
        if len(self.Z) > MAX_ROWS:
            self.Z = self.Z[np.sort(self.rng.permutation(len(self.Z))[:MAX_ROWS])]
        self.few = self.Z[self.rng.permutation(len(self.Z))[:CHECKED]]

    def run(self, degrees: Sequence[int], stop: bool) -> Findings:
        """Search these degrees; `stop` at the first one beyond 1 that has laws."""
        out = Findings()
        spread = self.Z.std(axis=0)
        moving = (spread > CONSTANT * self.sigma) & (spread > 1e-14 * np.abs(self.Z).max(axis=0, initial=0.0))
        out.kept, out.constant = np.flatnonzero(moving).tolist(), np.flatnonzero(~moving).tolist()
        part = self.restricted(out.kept)
        most = part.n_outputs - (part.n_outputs == len(out.kept))  # laws of outputs alone leave one degree of freedom
        for degree in degrees:
            if len(out.laws) >= most:
                break
            before = len(out.laws)
            if not part.step(degree, out, most):
                break
            if stop and degree > 1 and len(out.laws) > before:
                break
        return out

    def restricted(self, columns: list[int]) -> Search:
        outputs = sum(c < self.n_outputs for c in columns)
        return Search(self.Z[:, columns], self.sigma[columns], outputs, self.functions, self.max_terms, self.rng)

    # ------------------------------------------------------------------ one degree

    def step(self, degree: int, out: Findings, most: int) -> bool:
        """Look for laws of this degree; False when higher ones are pointless."""
        spare = self._spare(out.laws)
        part = self.restricted(spare)
        if part.n_outputs == 0:
            return False
        lib = library(part.Z, degree, part.sigma, self.functions, centred=True)
        if ROWS_PER_TERM * len(lib) > len(self.Z):
            out.remarks.append(f"degree {degree} has {len(lib)} terms, too many for {len(self.Z)} complete rows")
            return False
        seen = spectrum(lib, part.Z, part.sigma, 4 * len(spare))
        count = seen.count
        if count == 0 and not out.laws and len(seen.mu) and seen.mu[0] <= 1 + WIDER * (seen.limit[0] - 1):
            count = 1  # nearly: better a law whose noise was thought a little too small than its multiple of a higher degree
        if count == 0:
            out.remarks.append(f"degree {degree}: no law within the noise")
            return True
        able, smallest = capacity(part.Z, degree, part.sigma, self.functions, float(seen.limit[0]), self.rng)
        if not able:
            out.refused.append(degree)
            out.remarks.append(
                f"degree {degree} is refused: at this noise its terms fit shuffled data as well "
                f"({smallest:.2g} against {CAPACITY * seen.limit[0]:.2g})"
            )
            return False
        if not confirmed(lib, part.Z, part.sigma, self.rng):
            out.remarks.append(f"degree {degree}: the law of one half of the rows does not hold on the other")
            return True
        before = len(out.laws)
        if before or count > 1:
            self._small_supports(degree, out, most)
        else:
            self._single(degree, out)
        if len(out.laws) - before < min(count, most - before):
            self._long_laws(degree, count - (len(out.laws) - before), out, most)
        if len(out.laws) == before:
            out.remarks.append(f"degree {degree}: laws are there, but none with few terms that is independent")
        return True

    def _spare(self, laws: list[Found]) -> list[int]:
        """Columns without those that linear laws give from the others: outputs, the largest term first."""
        gone: set[int] = set()
        for law in laws:
            if law.degree > 1:
                continue
            ranked = sorted(range(len(law.lib)), key=lambda j: -abs(law.theta[j]))
            outputs = [i for j in ranked for i in law.lib.variables(j) if i < self.n_outputs and i not in gone]
            gone.update(outputs[:1])
        return [i for i in range(self.Z.shape[1]) if i not in gone]

    # ------------------------------------------------------------------ supports

    def _single(self, degree: int, out: Findings) -> None:
        """One law and no other: the best by extended BIC of elimination and of all supports of few terms."""
        lib = library(self.Z, degree, self.sigma, self.functions, constant=True)
        M, N = moments(lib, self.Z, floored(self.Z, self.sigma))
        n, price = len(self.Z), price_of_a_term(len(self.Z), len(lib))
        tried = [eliminate(M, N, n, list(range(len(lib))))[0]]
        for size in range(2, self.max_terms + 1):
            if comb(len(lib), size) <= MAX_SUPPORTS:
                some = candidates(M, N, 1 + Z_COUNT * np.sqrt(8 / n), size)
                some = some[[self._speaks(lib, s) for s in some]]
                tried += some[np.argsort(laws_of(some, M, N, n)[0])[:FINALISTS]].tolist() if len(some) else []

        def cost(part: Library) -> float:
            distance = feet(part, sampson(part, self.Z, self.sigma), self.Z, self.sigma)[1]
            return float(np.sum(distance**2)) + price * len(part)

        parts = sorted((lib.subset(support) for support in tried if self._speaks(lib, support)), key=cost)
        short = [self._trimmed(part, price) for part in parts[:2]]
        if short:
            self._accept(min(short, key=cost), degree, out, WIDER)

    def _small_supports(self, degree: int, out: Findings, most: int) -> None:
        """Laws of few terms, chosen anew from all up to this degree: fewest learned numbers first, then lowest degrees."""
        lib = library(self.Z, degree, self.sigma, self.functions, constant=True)
        visible = floored(self.Z, self.sigma)
        M, N = moments(lib, self.Z, visible)
        n, tau = len(self.Z), 1 + Z_COUNT * np.sqrt(8 / len(self.Z))
        factors, degrees = lib.factors(), np.array([lib.degree(j) for j in range(len(lib))])
        speaks = np.array([self._speaks(lib, [j]) for j in range(len(lib))])
        pool: list[tuple[tuple[int, int, int, float], Library]] = [(self._rank(law), law.lib) for law in out.laws]
        minimal: list[np.ndarray] = []
        for size in range(2, self.max_terms + 1):
            if comb(len(lib), size) > MAX_SUPPORTS:
                out.remarks.append(f"degree {degree}: {len(lib)} terms are too many to try all supports of {size}")
                break
            some = candidates(M, N, tau, size)
            some = without_supersets(some[speaks[some].any(axis=1)], minimal, len(lib))
            if len(some) == 0:
                continue
            mu, theta, error = laws_of(some, M, N, n)
            good = (mu <= tau) & (np.abs(theta).min(axis=1) >= SMALL * np.abs(theta).max(axis=1))
            if np.any(visible > self.sigma):  # what looks like a law in squares need not be one
                good[good] = [self._holds(lib.subset(s)) for s in some[good]]
            good &= [not set.intersection(*(lib.variables(j) for j in s)) for s in some]
            some, mu, theta, error = some[good], mu[good], theta[good], error[good]
            free = learned_numbers(theta, error, factors[some])
            minimal.append(some)
            ranks = zip(free.tolist(), degrees[some].sum(axis=1).tolist(), [size] * len(some), mu.tolist())
            pool += [(rank, lib.subset(s)) for rank, s in zip(ranks, some.tolist())]
        out.laws = []
        for _, part in sorted(pool, key=lambda item: item[0]):
            if len(out.laws) >= most:
                return
            self._accept(part, degree, out)

    def _rank(self, law: Found) -> tuple[int, int, int, float]:
        error = np.sqrt(np.diag(law.fit.covariance))
        free = learned_numbers(law.theta[None], error[None], law.lib.factors()[None])
        return int(free[0]), sum(law.lib.degree(j) for j in range(len(law.lib))), len(law.lib), law.fit.mu

    def _holds(self, lib: Library) -> bool:
        theta = sampson(lib, self.few, self.sigma, steps=2)
        wide = 1 + 2 * WIDER * (self._limit(lib, theta) - 1) * np.sqrt(len(self.Z) / len(self.few))
        return bool(np.mean(feet(lib, theta, self.few, self.sigma)[1] ** 2) <= wide)

    def _speaks(self, lib: Library, support: Sequence[int]) -> bool:
        """Whether any term is about an output."""
        return any(i < self.n_outputs for j in support for i in lib.variables(j))

    def _long_laws(self, degree: int, count: int, out: Findings, most: int) -> None:
        """Laws of any length by elimination, one for each direction in which the remaining ones differ."""
        columns = self._spare(out.laws)
        part = self.restricted(columns)
        lib = library(part.Z, degree, part.sigma, self.functions, constant=True)
        M, N = moments(lib, part.Z, floored(part.Z, part.sigma))
        chosen = pivots(least(M, N, count)[1])
        for pivot in chosen:
            if len(out.laws) >= most:
                return
            allowed = [j for j in range(len(lib)) if j == pivot or j not in chosen]
            support, _, _ = eliminate(M, N, len(part.Z), allowed)
            if part._speaks(lib, support):
                short = part._trimmed(lib.subset(support), price_of_a_term(len(part.Z), len(lib)))
                self._accept(self._widened(short, columns), degree, out, WIDER)

    def _trimmed(self, lib: Library, price: float) -> Library:
        """Without terms that are not worth their price when distances, not moments, decide."""
        fit = geometric(lib, sampson(lib, self.Z, self.sigma), self.Z, self.sigma)
        while len(lib) > 2:
            strength = np.abs(fit.theta) / np.sqrt(np.maximum(np.diag(fit.covariance), 1e-300))
            rest = [j for j in range(len(lib)) if j != int(np.argmin(strength))]
            shorter = lib.subset(rest)
            if not self._speaks(shorter, range(len(shorter))):
                break
            trial = geometric(shorter, sampson(shorter, self.Z, self.sigma), self.Z, self.sigma)
            if np.sum(trial.distance**2) - np.sum(fit.distance**2) > price * max(fit.mu, 1.0):
                break
            lib, fit = shorter, trial
        return lib

    def _widened(self, lib: Library, columns: list[int]) -> Library:
        """Terms over some of the columns as terms over all of them."""
        whole = library(self.Z, 1, self.sigma, self.functions)
        place = {(atom.kind, atom.variable): a for a, atom in enumerate(whole.atoms)}
        new = [place[atom.kind, columns[atom.variable]] for atom in lib.atoms]
        terms = tuple(tuple(sorted((new[a], power) for a, power in term)) for term in lib.terms)
        return Library(whole.atoms, terms, whole.origin, whole.unit)

    # ------------------------------------------------------------------ a law

    def _accept(self, lib: Library, degree: int, out: Findings, slack: float = 1.0) -> bool:
        """Fit the law of these terms and keep it if it holds, halves included, and says anything new."""
        lib = lib.without_common_factor()
        if not self._speaks(lib, range(len(lib))):
            return False
        known = [(law.lib, law.theta) for law in out.laws]
        theta = sampson(lib, self.few, self.sigma, steps=2)
        if np.abs(theta).min() < SMALL * np.abs(theta).max():
            return False
        if off_span(lib, theta, known, self.few, self.sigma) <= INDEPENDENT:
            return False
        theta = sampson(lib, self.Z, self.sigma)
        usual = self._limit(lib, theta)
        largest, wide = 1 + slack * (usual - 1), 1 + WIDER * (usual - 1)
        if np.mean(feet(lib, theta, self.Z, self.sigma)[1] ** 2) > largest:
            return False
        held_out = self._held_out(lib)
        if held_out > wide * (1 + 2 * len(lib) / len(self.Z)):
            return False
        fit = geometric(lib, theta, self.Z, self.sigma)
        if np.abs(fit.theta).min() < SMALL * np.abs(fit.theta).max() or fit.mu > largest:
            return False
        if off_span(lib, fit.theta, known, self.few, self.sigma) <= INDEPENDENT:
            return False
        fit = unbent(lib, fit, self.Z, self.sigma)
        out.laws.append(Found(lib, fit, held_out, largest, max(lib.degree(j) for j in range(len(lib)))))
        return True

    def _limit(self, lib: Library, theta: np.ndarray) -> float:
        _, dF = lib.evaluate(self.Z)
        return limit(dF * (self.sigma / lib.unit), theta)

    def _held_out(self, lib: Library) -> float:
        """Mean squared distance, in units of the noise, from laws fitted on the other half of the rows."""
        order = np.random.default_rng(0).permutation(len(self.Z))
        halves = self.Z[order[: len(order) // 2]], self.Z[order[len(order) // 2 :]]
        misses = [feet(lib, sampson(lib, a, self.sigma), b, self.sigma)[1] for a, b in (halves, halves[::-1])]
        return float(np.mean(np.concatenate(misses) ** 2))
