"""{c : the learned equations hold}: a law found in the training outputs, used like one that was given."""

from __future__ import annotations

import re
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from lawful._array import Array, to_numpy
from lawful.sets.base import ConstraintSet
from lawful.sets.elementary import Reals
from lawful.sets.equations import Equations
from lawful.sets.laws.graph import Graph
from lawful.sets.learned.features import FUNCTIONS
from lawful.sets.learned.findings import ROWS_PER_TERM, Findings, Search
from lawful.sets.learned.noise import ABOVE, at_least_rounding, plateau, regression_error
from lawful.sets.learned.words import LearnedLaw, law_in_words
from lawful.sets.names import resolve
from lawful.sets.parser import CONSTANTS
from lawful.sets.parser import FUNCTIONS as WORDS
from lawful.sets.relaxed import everywhere
from lawful.sets.systems import CompiledSystem

AUTO_DEGREE = 4
FEWEST = 12  # complete rows from which anything is learned


def _no_law(self: Any) -> bool:
    return hasattr(self, "laws_") and not self.laws_


def _merit(Z: np.ndarray, sigma: np.ndarray, found: Findings) -> tuple[int, int, float]:
    """More laws, fewer terms, likelier distances."""
    return len(found.laws), -sum(len(law.lib) for law in found.laws), found.likelihood(Z, sigma)


class LearnedEquations(Equations):
    """Outputs that satisfy sparse polynomial equations, learned from the training outputs themselves.

    A law is reported when the points are no further from it than the noise explains, a shuffled cloud is much further, either
    half of the rows confirms what the other half says, and it says something that the other laws do not. When there is none,
    the set is all of R^T, like `Reals`, and `remarks_` say what was tried.

    Parameters
    ----------
    degree : "auto" or int, default "auto"
        "auto": linear laws, then those of the lowest degree up to 4 that has any. A number: all degrees up to it.
    x_dependent : bool, default False
        Whether the inputs may take part. They count as exact.
    noise : None, "regression", float or (T,) array, default None
        Standard deviation of the noise of each output. Known noise is best (10 % too small and laws are missed, twice too large
        and degrees are refused). None looks for a plateau of the distance over degrees; "regression" takes the leave-one-out
        error of a regression on X. 0 means that only rounding disturbs the data.
    terms : sequence of {"exp", "log", "inverse"}, default ()
        Functions of single variables that may be factors of a term, besides powers.
    max_terms : int, default 4
        Where several laws hold at once, all supports of up to this many terms (a constant counts) are searched; longer laws are
        found by elimination.
    tidy : bool, default True
        Coefficients that are sharp and, taken together, agree with whole numbers become those whole numbers.
    extra : (m, T) array, optional
        More outputs, for which there are no inputs; used unless x_dependent.

    Attributes
    ----------
    equations_ : list of str, in the language of `Equations`
    laws_ : list of `LearnedLaw`: coefficients, standard errors, evidence
    noise_ : (T,) the noise that was used, or None when there was no telling
    constant_ : outputs that do not move beyond their noise and were left out
    remarks_ : what was refused, and why

    Rows with gaps are left out of learning. What is learned is what holds *to within the noise on these data*: a narrow range
    makes approximate laws.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(0, 6.28, 200)
    >>> Y = np.c_[2 * np.cos(t), np.sin(t)] + 0.02 * rng.standard_normal((200, 2))
    >>> C = LearnedEquations(noise=0.02).fit(Y)
    >>> C.equations_
    ['y1**2 + 4*y2**2 = 4']
    >>> C.laws_[0].std.round(2)  # of the coefficients before they became whole numbers
    array([0.  , 0.03, 0.01])
    >>> LearnedEquations(noise=0.02).fit(rng.standard_normal((200, 2))).equations_
    []
    """

    def __init__(
        self,
        degree: Any = "auto",
        x_dependent: bool = False,
        noise: Any = None,
        *,
        terms: Any = (),
        max_terms: int = 4,
        tidy: bool = True,
        extra: Any = None,
    ) -> None:
        self.degree = degree
        self.x_dependent = x_dependent
        self.noise = noise
        self.terms = terms
        self.max_terms = max_terms
        self.tidy = tidy
        self.extra = extra

    # ------------------------------------------------------------------ learning

    def fit(
        self, Y: Array, X: Array | None = None, *, outputs: list[str] | None = None, inputs: list[str] | None = None
    ) -> Self:
        """Learn the equations from outputs Y (m, T), NaN = missing, and inputs X (m, d)."""
        self._look(Y)
        self._X: Array | None = None
        self.outputs_ = outputs
        self._check(X)
        Y = np.asarray(to_numpy(Y), np.float64)
        rng = np.random.default_rng(0)
        self.remarks_: list[str] = []
        known = None if X is None else np.asarray(to_numpy(X), np.float64)
        Z = self._cloud(Y, known)
        degrees = list(range(1, (AUTO_DEGREE if self.degree == "auto" else int(self.degree)) + 1))
        functions = tuple(self.terms)
        self.laws_: list[LearnedLaw] = []
        self.constant_: list[int] = []
        self.noise_: np.ndarray | None = None
        width = 0 if known is None else known.shape[1]
        if len(Z) < FEWEST:
            self.remarks_.append(f"{len(Z)} complete rows are too few to learn from; {FEWEST} would be a start")
        else:
            tried = [
                (
                    sigma,
                    Search(Z, sigma, self.n_tasks_, functions, int(self.max_terms), rng).run(degrees, self.degree == "auto"),
                )
                for sigma in self._noises(Y, known, Z, len(degrees), functions, rng)
            ]
            if tried:
                self._keep(Z, *max(tried, key=lambda t: _merit(Z, *t)), self._names(width, outputs, inputs))
        if not self.laws_:
            self.remarks_.append("no law was found: every output is allowed")
        self.equations_ = [law.equation for law in self.laws_]
        self.system_ = self._system(width, outputs, inputs)
        return self

    def _keep(self, Z: np.ndarray, sigma: np.ndarray, found: Findings, names: list[str]) -> None:
        self.noise_ = sigma[: self.n_tasks_]
        self.remarks_ += found.remarks
        self.constant_ = [i for i in found.constant if i < self.n_tasks_]
        moving = sum(i < self.n_tasks_ for i in found.kept)
        seen, called = Z[:, found.kept], [names[i] for i in found.kept]
        self.laws_ = [law_in_words(f, seen, sigma[found.kept], moving, called, bool(self.tidy)) for f in found.laws]

    def _check(self, X: Any) -> None:
        if self.degree != "auto" and not (isinstance(self.degree, int | np.integer) and 1 <= self.degree <= 8):
            raise ValueError(f"LearnedEquations: degree={self.degree!r} will not do; give 'auto' or a number from 1 to 8")
        if self.x_dependent and X is None:
            raise ValueError("LearnedEquations(x_dependent=True) needs the inputs; give X, or set x_dependent=False")
        if isinstance(self.terms, str) or not set(self.terms) <= set(FUNCTIONS):
            raise ValueError(f"LearnedEquations: terms={self.terms!r} will not do; give a list of {', '.join(FUNCTIONS)}")
        if isinstance(self.noise, str) and self.noise != "regression":
            raise ValueError(f"LearnedEquations: noise={self.noise!r} will not do; give numbers, 'regression' or None")
        if isinstance(self.noise, str) and X is None:
            raise ValueError("LearnedEquations(noise='regression') needs the inputs; give X, or the noise as numbers")
        if not 2 <= int(self.max_terms) <= 5:
            raise ValueError(f"LearnedEquations: max_terms={self.max_terms!r} will not do; give 2, 3, 4 or 5")

    def _cloud(self, Y: np.ndarray, X: np.ndarray | None) -> np.ndarray:
        """Complete rows of outputs, and inputs if they may take part, and extra outputs if they may not."""
        if self.x_dependent and X is not None:
            Z = np.c_[Y, X]
            if self.extra is not None:
                self.remarks_.append("extra outputs have no inputs and are not used when x_dependent=True")
        else:
            Z = Y
            if self.extra is not None:
                more = np.asarray(to_numpy(self.extra), np.float64)
                if more.ndim != 2 or more.shape[1] != self.n_tasks_:
                    raise ValueError(
                        f"LearnedEquations: extra has shape {more.shape}, but Y has {self.n_tasks_} columns; give as many"
                    )
                Z = np.r_[Y, more]
        complete = np.isfinite(Z).all(axis=1)
        if not complete.all():
            self.remarks_.append(f"{int((~complete).sum())} of {len(Z)} rows have gaps and were left out")
        return Z[complete]

    def _noises(
        self, Y: np.ndarray, X: np.ndarray | None, Z: np.ndarray, degrees: int, functions: tuple[str, ...], rng: Any
    ) -> list[np.ndarray]:
        """(D,) noise of the columns of the cloud; several when its shape is not known, none when no plateau shows it."""
        T = self.n_tasks_
        exact = np.zeros(Z.shape[1] - T)
        if self.noise is not None and not isinstance(self.noise, str):
            given = np.asarray(self.noise, np.float64)
            if given.ndim > 1 or given.size not in (1, T) or not (np.isfinite(given) & (given >= 0)).all():
                raise ValueError(f"LearnedEquations: noise={self.noise!r} will not do; give one number >= 0, or {T} of them")
            return [at_least_rounding(Z, np.r_[np.broadcast_to(given, T), exact], T)]
        error = None
        if X is not None:
            both = np.isfinite(Y).all(axis=1) & np.isfinite(X).all(axis=1)
            error = regression_error(X[both], Y[both], rng) if both.sum() >= FEWEST else None
        if self.noise == "regression":
            return [] if error is None else [at_least_rounding(Z, np.r_[error, exact], T)]
        shapes = plateau(Z, T, degrees, functions, rng, ROWS_PER_TERM)
        if not shapes:
            self.remarks_.append("the noise is not known and no degree brings the points to a plateau; give noise=")
        elif error is not None:
            shapes = [s for s in shapes if np.median(s[:T][error > 0] / error[error > 0]) <= ABOVE]
            if not shapes:
                self.remarks_.append(
                    "the points come nearer to some curve than they spread, but a regression on X comes nearer still: "
                    "that is a correlation, no law up to noise"
                )
        return [at_least_rounding(Z, sigma, T) for sigma in shapes]

    def _names(self, width: int, outputs: list[str] | None, inputs: list[str] | None) -> list[str]:
        """What each column of the cloud is called in an equation: by its own name where that is clear, else by its number."""
        names = resolve(self.n_tasks_, width, outputs, inputs)
        words = []
        for letter, columns, count in (("y", outputs, self.n_tasks_), ("x", inputs, width)):
            for i in range(count):
                name = columns[i] if columns is not None else f"{letter}{i + 1}"
                if names.known.get(name) != (letter, i) or name in names.refused or re.search(r"[`\n]", name):
                    name = f"{letter}{i + 1}"
                plain = re.fullmatch(r"[^\W\d]\w*", name) and name not in WORDS and name not in CONSTANTS
                words.append(name if plain else f"`{name}`")
        return words

    def _system(self, width: int, outputs: list[str] | None, inputs: list[str] | None) -> CompiledSystem:
        self.known_, self.n_inputs_ = resolve(self.n_tasks_, width, outputs, inputs).known, width
        return self._recompiled()

    def _recompiled(self) -> CompiledSystem:
        return super()._recompiled() if self.equations_ else CompiledSystem(Graph(), [], self.n_tasks_, self.n_inputs_)

    def _items(self) -> list[Any]:
        return list(self.equations_)

    def to_equations(self) -> ConstraintSet:
        """The law as it stands, to be used without learning it anew: `Equations`, or `Reals` when there is none."""
        return Equations(list(self.equations_)) if self.equations_ else Reals()

    # ------------------------------------------------------------------ without a law, all of R^T

    @property
    def unbounded(self) -> bool:  # type: ignore[override]
        return _no_law(self)

    @available_if(_no_law)
    def project(self, b: Array, a: Array) -> Array:
        return Reals().project(b, a)

    @available_if(_no_law)
    def nearest(self, c: Array) -> Array:
        return c

    @available_if(_no_law)
    def interval(self, t: int) -> tuple[float, float]:
        return -np.inf, np.inf

    def measured(self, c: Array) -> tuple[Array, Array]:
        if _no_law(self):
            return everywhere(c), everywhere(c)
        return super().measured(c)

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        if _no_law(self):
            return Reals().fit(self.starts_).sample(n, random_state)
        return super().sample(n, random_state)
