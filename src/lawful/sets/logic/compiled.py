"""Formulas made ready: the labels that they decide, and for each independent part a way to minimise and sum over it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod

import numpy as np

from lawful.sets.logic.graph import Gates
from lawful.sets.logic.junction import Junction
from lawful.sets.logic.parts import Conflict, Part, split
from lawful.sets.logic.reader import check_length, read, short
from lawful.sets.logic.search import Search
from lawful.sets.logic.table import Table

__all__ = ["Compiled"]

FEW, MANY = 1024, 2**16  # assignments: a table is quicker than anything; a table is better than a search
LISTED = 4096  # assignments of all labels, for decoders that look at every point
SHOWN = 20  # formulas in an error message


class Compiled:
    """The conjunction of `formulas` over T labels; an error that names a smallest conflict where it cannot hold."""

    def __init__(self, formulas: Sequence[str], names: dict[str, int], n_labels: int, time_limit: float) -> None:
        check_length(formulas)
        self.n_labels = n_labels
        self.gates = Gates(n_labels)
        self.roots = [read(text, names, self.gates) for text in formulas]
        try:
            self.split = split(self.gates, self.roots)
            self.solvers = [_solver(part, time_limit) for part in self.split.parts]
            possible = all(solver.any() is not None for solver in self.solvers)
        except Conflict:
            possible = False
        if not possible:
            raise ValueError(self._explain([formulas[f] for f in self.conflict()]))

    @property
    def exact(self) -> bool:
        """Whether `sums` are."""
        return all(solver.exact for solver in self.solvers)

    @property
    def size(self) -> int:
        """How many numbers the sums of a row take, besides one a label."""
        return sum(solver.size for solver in self.solvers)

    def best(self, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The assignments (m, T) of least cost, costs (m, T) of being true; margins to the second-best (inf where it is not
        known) and gaps (m,): how much less, at most, another assignment may cost."""
        m = len(costs)
        found, margin, gap = costs < 0, np.full(m, np.inf), np.zeros(m)
        for t, value in self.split.decided.items():
            found[:, t] = value
        if len(self.split.free):
            margin = np.abs(costs[:, self.split.free]).min(axis=1)
        for part, solver in zip(self.split.parts, self.solvers):
            found[:, part.labels], second, more = solver.best(costs[:, part.labels])
            margin, gap = np.minimum(margin, second), gap + more
        if any(isinstance(solver, Search) for solver in self.solvers):
            margin = np.full(m, np.inf)
        return found, margin, gap

    def sums(self, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(m,) log of the sum of prod_t exp(logits_t c_t) over assignments that obey, and (m, T) the share of it in which each
        label is true: its probability when labels with these log-odds are independent but for the formulas."""
        out = np.exp(-np.logaddexp(0.0, -logits))
        total = np.logaddexp(0.0, logits[:, self.split.free]).sum(axis=1)
        for t, value in self.split.decided.items():
            out[:, t] = value
            total = total + value * logits[:, t]
        for part, solver in zip(self.split.parts, self.solvers):
            inside, out[:, part.labels] = solver.sums(logits[:, part.labels])
            total = total + inside
        return total, out

    @cached_property
    def points(self) -> np.ndarray | None:
        """(P, T) all assignments that obey, None where they are more than `LISTED`."""
        found = np.zeros((1, self.n_labels), bool)
        found[:, [t for t, value in self.split.decided.items() if value]] = True
        tables = [Table.of(part, LISTED) for part in self.split.parts]
        choices = [(part.labels, table.points) for part, table in zip(self.split.parts, tables) if table is not None]
        choices += [(np.array([t]), np.array([[False], [True]])) for t in self.split.free]
        if len(choices) < len(tables) + len(self.split.free) or prod(len(points) for _, points in choices) > LISTED:
            return None
        for labels, points in choices:
            which = np.tile(np.arange(len(points)), len(found))
            found = np.repeat(found, len(points), axis=0)
            found[:, labels] = points[which]
        return found

    def truth(self, values: np.ndarray) -> np.ndarray:
        """(m, F) which formulas hold for truth values (m, T)."""
        return self.gates.truth(self.roots, values)

    # ------------------------------------------------------------------ what contradicts what

    def conflict(self) -> list[int]:
        """Numbers of formulas that cannot all hold, while all but any one of them can (QuickXplain)."""

        def explain(background: list[int], changed: bool, candidates: list[int]) -> list[int]:
            if changed and not self._possible(background):
                return []
            if len(candidates) == 1:
                return candidates
            half = len(candidates) // 2
            left, right = candidates[:half], candidates[half:]
            from_right = explain(background + left, bool(left), right)
            return explain(background + from_right, bool(from_right), left) + from_right

        return sorted(explain([], False, list(range(len(self.roots)))))

    def _possible(self, chosen: list[int]) -> bool:
        try:
            parts = split(self.gates, [self.roots[f] for f in chosen]).parts
        except Conflict:
            return False
        return all(Search(part).any() is not None for part in parts)

    def _explain(self, formulas: list[str]) -> str:
        shown = "; ".join(map(short, formulas[:SHOWN])) + (f"; and {len(formulas) - SHOWN} more" * (len(formulas) > SHOWN))
        if len(formulas) == 1:
            return f"Logic: {shown} can never hold; change it"
        return (
            f"Logic: these {len(formulas)} formulas cannot all hold: {shown}. Without any one of them the others can; drop one"
        )


def _solver(part: Part, time_limit: float) -> Table | Junction | Search:
    """The cheapest exact way for a part, a search where there is none."""
    return Table.of(part, FEW) or Junction.of(part) or Table.of(part, MANY) or Search(part, time_limit)
