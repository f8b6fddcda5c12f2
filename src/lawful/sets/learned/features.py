"""The terms that a law may have: monomials in the variables, and, on request, exp, log and 1/z of single variables.

A term is a product of powers of *atoms*; an atom is a variable z_i or a function of one. Values are F (n, p), gradients dF
(n, p, D). Variables are measured in units u_i from an origin o_i: z_i = o_i + u_i v_i. With o = 0 few terms in v are few
terms in z; with o the mean, powers are better conditioned. The space of all polynomials of a degree is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

FUNCTIONS = ("exp", "log", "inverse")
MAX_EXP = 30.0  # exp of more than this has no place in a sum of terms

Term = tuple[tuple[int, int], ...]  # ((atom, power), ...), atoms in order; () is the constant


@dataclass(frozen=True)
class Atom:
    kind: str  # "z", or one of FUNCTIONS
    variable: int


@dataclass(frozen=True)
class Library:
    """Terms over variables with these units, from these origins (which only plain variables have)."""

    atoms: tuple[Atom, ...]
    terms: tuple[Term, ...]
    origin: np.ndarray
    unit: np.ndarray

    def __len__(self) -> int:
        return len(self.terms)

    def subset(self, chosen: Sequence[int]) -> Library:
        return Library(self.atoms, tuple(self.terms[j] for j in chosen), self.origin, self.unit)

    def variables(self, j: int) -> set[int]:
        return {self.atoms[a].variable for a, _ in self.terms[j]}

    def degree(self, j: int) -> int:
        return sum(power for _, power in self.terms[j])

    def without_common_factor(self) -> Library:
        """A sum of terms that all have a factor z_i is z_i times a shorter law; this is that law."""
        shared = set.intersection(*({a for a, _ in term} for term in self.terms)) if self.terms else set()
        if not shared:
            return self
        terms = tuple(tuple((a, p - (a in shared)) for a, p in term if p > (a in shared)) for term in self.terms)
        return Library(self.atoms, terms, self.origin, self.unit).without_common_factor()

    def evaluate(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (n, p) and gradients (n, p, D) in the units u: the gradient is in v."""
        n, D = Z.shape
        value, slope = self._atoms(Z)
        F, dF = np.ones((n, len(self))), np.zeros((n, len(self), D))
        for j, term in enumerate(self.terms):
            for a, power in term:
                F[:, j] *= value[a] ** power
            for a, power in term:
                rest = power * value[a] ** (power - 1) * slope[a]
                for b, other in term:
                    if b != a:
                        rest = rest * value[b] ** other
                dF[:, j, self.atoms[a].variable] += rest
        return F, dF

    def _atoms(self, Z: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        values, slopes = [], []
        for atom in self.atoms:
            z, u = Z[:, atom.variable], self.unit[atom.variable]
            if atom.kind == "z":
                v, s = (z - self.origin[atom.variable]) / u, np.ones_like(z)
            elif atom.kind == "exp":
                v = np.exp(np.minimum(z, 2 * MAX_EXP))
                s = v * u
            elif atom.kind == "log":
                safe = np.maximum(z, 1e-300)
                v, s = np.log(safe), u / safe
            else:
                safe = np.where(z == 0, 1e-300, z)
                v, s = 1 / safe, -u / safe**2
            values.append(v)
            slopes.append(s)
        return values, slopes

    def factors(self) -> np.ndarray:
        """(p,) a coefficient of term j in the units u, times this, is one in the units of the data (for origin 0)."""
        out = np.ones(len(self))
        for j, term in enumerate(self.terms):
            for a, power in term:
                if self.atoms[a].kind == "z":
                    out[j] /= self.unit[self.atoms[a].variable] ** power
        return out

    def text(self, j: int, names: Sequence[str]) -> str:
        """Term j in the language of `Equations`."""
        parts, below = [], ""
        for a, power in self.terms[j]:
            atom = self.atoms[a]
            name = names[atom.variable]
            if atom.kind == "inverse":
                below += f"/{name}"
            elif atom.kind == "z":
                parts.append(name if power == 1 else f"{name}**{power}")
            else:
                parts.append(f"{atom.kind}({name})")
        return ("*".join(parts) or "1") + below


def atoms_for(Z: np.ndarray, functions: Sequence[str], sigma: np.ndarray) -> tuple[Atom, ...]:
    """The variables, and the functions that make sense on these data: log of positive ones, 1/z of ones of one sign."""
    atoms = [Atom("z", i) for i in range(Z.shape[1])]
    for kind in functions:
        for i, z in enumerate(Z.T):
            clear = np.abs(z).min() > 3 * sigma[i] and np.abs(z).min() > 1e-9 * np.abs(z).max()
            sensible = {
                "exp": np.abs(z).max() < MAX_EXP,
                "log": bool((z > 0).all()) and clear,
                "inverse": (bool((z > 0).all()) or bool((z < 0).all())) and clear,
            }
            if sensible[kind]:
                atoms.append(Atom(kind, i))
    return tuple(atoms)


def library(
    Z: np.ndarray, degree: int, sigma: np.ndarray, functions: Sequence[str] = (), centred: bool = False, constant: bool = False
) -> Library:
    """All terms up to a degree: products of variables, with at most one function among the factors."""
    atoms = atoms_for(Z, functions, sigma)
    origin = Z.mean(axis=0) if centred else np.zeros(Z.shape[1])
    unit = np.sqrt(np.mean((Z - origin) ** 2, axis=0))
    terms: list[Term] = [()] if constant else []
    for d in range(1, degree + 1):
        for chosen in combinations_with_replacement(range(len(atoms)), d):
            special = [a for a in chosen if atoms[a].kind != "z"]
            same = [a for a in chosen if special and a not in special and atoms[a].variable == atoms[special[0]].variable]
            if len(special) > 1 or (special and atoms[special[0]].kind == "inverse" and same):
                continue  # z/z is one, and two functions in one product fit anything
            terms.append(tuple((a, chosen.count(a)) for a in sorted(set(chosen))))
    return Library(atoms, tuple(terms), origin, np.where(unit > 0, unit, 1.0))
