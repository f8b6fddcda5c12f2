"""Logic: which labels may be true together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from lawful._array import Array, like, to_numpy
from lawful._checks import number
from lawful.sets.base import ConstraintSet, check_width
from lawful.sets.logic.compiled import Compiled
from lawful.sets.logic.reader import quoted
from lawful.sets.names import resolve

__all__ = ["Logic"]

CELLS = 2**24  # truth values of formulas in one batch of rows


class Logic(ConstraintSet):
    """The assignments of true and false to T labels for which all formulas hold.

    Parameters
    ----------
    formulas : list of str, or one
        "dog -> animal", "exactly_one(a, b, c)", "not (x and y)", "at_most(2, p, q, r)", ...: `not and xor or -> <->`,
        `exactly at_most at_least` with a number, `exactly_one at_most_one at_least_one all any none`, parentheses, `true`,
        `false`. Names are columns of a DataFrame, `labels`, or y1, y2, ...; odd ones stand between backticks.
    labels : list of str, optional
        Names of the labels in the order of the columns, for labels that come as an array.
    values : (false, true)
        The numbers that stand for them; (-1, 1) for losses such as `Hinge` in a `ConstrainedRegressor`.
    time_limit : float
        Seconds that integer programming may take for a row; what is not proven by then is not_converged, and has a gap.

    Notes
    -----
    Formulas that cannot hold together are an error of `fit`, which names a smallest set of them that contradict each other.

    Examples
    --------
    >>> import numpy as np
    >>> from lawful import Logic
    >>> law = Logic(["dog -> animal", "not (dog and cat)"], labels=["animal", "cat", "dog"]).fit(np.zeros((1, 3)))
    >>> law.contains([[1, 0, 1], [0, 0, 1]])
    array([ True, False])
    >>> law.violated([[0, 1, 1]])
    [['dog -> animal', 'not (dog and cat)']]
    """

    not_saved = ("version_", "compiled_")

    def __init__(
        self, formulas: Any = (), *, labels: Any = None, values: tuple[float, float] = (0, 1), time_limit: float = 10.0
    ) -> None:
        self.formulas = formulas
        self.labels = labels
        self.values = values
        self.time_limit = time_limit

    @classmethod
    def from_hierarchy(
        cls,
        parents: Mapping[str, Any],
        *,
        exclusive: bool = False,
        complete: bool = False,
        labels: Any = None,
        time_limit: float = 10.0,
    ) -> Self:
        """A hierarchy from {label: its parent, a list of parents, or None}: every label implies its parents.

        exclusive : of the labels with the same parent at most one is true; of those without a parent, too.
        complete : a label with children has at least one that is true, and one of those without a parent is true.
        """
        above = {str(label): _parents(given) for label, given in parents.items()}
        _check_acyclic(above)
        formulas = [f"{quoted(child)} -> {quoted(p)}" for child, found in above.items() for p in found]
        tops = [
            label for label in dict.fromkeys([*above, *(p for found in above.values() for p in found)]) if not above.get(label)
        ]
        children: dict[str | None, list[str]] = {None: tops}
        for child, found in above.items():
            for p in found:
                children.setdefault(p, []).append(child)
        for parent, group in children.items():
            names = ", ".join(map(quoted, group))
            if exclusive and len(group) > 1:
                formulas.append(f"at_most(1, {names})")
            if complete and group:
                formulas.append(f"any({names})" if parent is None else f"{quoted(parent)} -> any({names})")
        return cls(formulas, labels=labels, time_limit=time_limit)

    def exclusive(self, names: list[str]) -> Logic:
        """The same with one more formula: exactly one of these labels is true."""
        more = f"exactly_one({', '.join(map(quoted, names))})"
        return Logic([*self._formulas(), more], labels=self.labels, values=self.values, time_limit=self.time_limit)

    # ------------------------------------------------------------------ fit

    def fit(
        self, Y: Array, X: Array | None = None, *, outputs: list[str] | None = None, inputs: list[str] | None = None
    ) -> Self:
        """Learn the number of labels and their names; what the labels in Y are is not checked (they may be noisy)."""
        self._look(Y)
        self.labels_ = self._names(outputs)
        self.compiled_ = self._compile()
        return self

    def _names(self, outputs: list[str] | None) -> list[str] | None:
        if self.labels is None:
            return None if outputs is None else list(outputs)
        if isinstance(self.labels, str):
            raise ValueError(f"Logic: labels={self.labels!r} is one string; give a list with a name for each column")
        labels = [str(label) for label in self.labels]
        check_width("Logic(labels=...)", len(labels), self.n_tasks_)
        if outputs is not None and list(outputs) != labels:
            raise ValueError(
                f"Logic: labels={labels[:5]} are not the columns of Y, which are {list(outputs)[:5]}; leave labels out: a "
                "DataFrame names its columns itself"
            )
        return labels

    def _compiled(self) -> Compiled:
        """The formulas made ready, when first asked for: it is not saved."""
        if "compiled_" not in vars(self):
            self.compiled_ = self._compile()
        return self.compiled_

    def _compile(self) -> Compiled:
        formulas, limit = self._formulas(), number(self, "time_limit", infinite=True)
        self._values()
        known = resolve(self.n_tasks_, 0, self.labels_, None)
        twice = [name for name in self.labels_ or [] if name in known.refused]
        if twice:
            raise ValueError(f"Logic: the label {twice[0]!r} cannot be used: {known.refused[twice[0]]}")
        names = {name: int(t) for name, (_, t) in known.known.items() if name not in known.refused}
        return Compiled(formulas, names, self.n_tasks_, limit)

    def _formulas(self) -> list[str]:
        formulas = [self.formulas] if isinstance(self.formulas, str) else self.formulas
        given: list[Any] = list(formulas) if isinstance(formulas, Iterable) else [None]
        if not all(isinstance(item, str) for item in given):
            raise TypeError(f"Logic: formulas={self.formulas!r} will not do; give a list of strings such as 'dog -> animal'")
        return given

    def _values(self) -> tuple[float, float]:
        try:
            false, true = (float(v) for v in self.values)
        except (TypeError, ValueError):
            false = true = np.nan
        if not (np.isfinite([false, true]).all() and false != true):
            raise ValueError(f"Logic: values={self.values!r} will not do; give two different numbers for (false, true)")
        return false, true

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and skops: what is compiled is compiled again."""
        return {name: value for name, value in super().__getstate__().items() if name != "compiled_"}

    # ------------------------------------------------------------------ what it knows

    @property
    def exact_(self) -> bool:
        """Whether `marginals` are exact: every part has few assignments, or hangs together like a tree."""
        return self._compiled().exact

    def truth(self, c: Array) -> np.ndarray:
        """(m, T) which labels are true: those nearer to that value."""
        false, true = self._values()
        c = np.asarray(to_numpy(c), np.float64)
        return np.abs(c - true) < np.abs(c - false)

    def _holds(self, c: Array) -> np.ndarray:
        """(m, F) which formulas hold."""
        law, truth = self._compiled(), self.truth(c)
        step = max(1, CELLS // (1 + len(law.roots) + len(law.gates.gates)))
        parts = [law.truth(truth[i : i + step]) for i in range(0, len(truth), step)]
        return np.concatenate(parts) if parts else np.ones((0, len(law.roots)), bool)

    def residual(self, c: Array) -> Array:
        """(m,) how many formulas are violated, or how far an entry is from both values, whichever is more."""
        false, true = self._values()
        off = np.abs(np.asarray(to_numpy(c), np.float64) - np.where(self.truth(c), true, false)).max(axis=1)
        return like(np.maximum(np.where(np.isnan(off), np.inf, off), (~self._holds(c)).sum(axis=1)), c)

    def violated(self, c: Any) -> list[list[str]]:
        """For each row the formulas that do not hold."""
        formulas, holds = self._formulas(), self._holds(np.asarray(to_numpy(c), np.float64))
        return [[formulas[f] for f in np.flatnonzero(~row)] for row in holds]

    def best(self, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For costs (m, T) of being true rather than false: the cheapest assignment (m, T) as truth values, the margin to the
        second-best (inf where it is not known) and the gap (m,): how much cheaper, at most, another one may be (0: proven)."""
        return self._compiled().best(np.asarray(costs, np.float64))

    @property
    def size_(self) -> int:
        """How many numbers the sums of a row take: what probabilities cost."""
        return self.n_tasks_ + self._compiled().size

    def sums(self, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(m,) log Z, the log of the sum of prod_t exp(logits_t c_t) over assignments that obey, and `marginals`."""
        return self._compiled().sums(np.asarray(logits, np.float64))

    def marginals(self, logits: np.ndarray) -> np.ndarray:
        """(m, T) the probability of each label given that the formulas hold, for labels that are independent otherwise, with
        these log-odds. Exact if `exact_`; else means over random walks among assignments that obey."""
        return self.sums(logits)[1]

    @property
    def points_(self) -> np.ndarray:
        """(P, T) all assignments that obey, where there are few enough to list."""
        points = self._compiled().points
        if points is None:
            raise AttributeError("Logic: there are too many assignments to list them; best, marginals and sample do without")
        false, true = self._values()
        return np.where(points, true, false)

    def project(self, b: Array, a: Array) -> Array:
        """argmin of sum_t a_t c_t^2 - 2 b_t c_t: with two values a label has, that is a cost of being true."""
        false, true = self._values()
        costs = to_numpy(a) * (true**2 - false**2) - 2 * to_numpy(b) * (true - false)
        return like(np.where(self.best(costs)[0], true, false), b)

    def nearest(self, c: Array) -> Array:
        """The nearest assignment."""
        return self.project(c, c * 0 + 1)

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Assignments of least cost for random costs: all of them may come up, though not equally often."""
        false, true = self._values()
        costs = check_random_state(random_state).logistic(size=(n, self.n_tasks_))
        return np.where(self.best(costs)[0], true, false)


def _parents(given: Any) -> list[str]:
    if given is None or (isinstance(given, float) and given != given):
        return []
    return [given] if isinstance(given, str) else [str(p) for p in given] if isinstance(given, Iterable) else [str(given)]


def _check_acyclic(above: dict[str, list[str]]) -> None:
    """Take away labels all of whose parents are gone; whoever is left stands above itself."""
    left = dict(above)
    while ready := [label for label, found in left.items() if not any(p in left for p in found)]:
        for label in ready:
            del left[label]
    if left:
        raise ValueError(f"Logic: in the hierarchy {', '.join(list(left)[:5])} stand above themselves; remove the cycle")
