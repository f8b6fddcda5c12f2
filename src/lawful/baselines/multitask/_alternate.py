"""Minimise L(f) + lam Omega(f) over f and the matrix C of the tasks, until the duality gap is small.

In turns, both exact: least squares for the present C (`_systems`), then the best C for the new f (`_structures`). The
problem is convex in both together, so this descends to the minimum. But where C is singular at the minimum, its small
eigenvalues die out as slowly as 1/k. After a few rounds C = C(R) is then moved directly: f is always the best for C, and
what is left,

    J(C) = min_f L(f) + lam (tr C^-1 G(f) + cost(C)),     dJ/dC = lam (dcost/dC - A'KA),

is convex in C and smooth in R; L-BFGS takes it from there. Primal and dual are measured at every solution, and the best of each
bound the minimum from both sides, whatever round they come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from tqdm import tqdm

from lawful.baselines.multitask._structures import Structure
from lawful.baselines.multitask._systems import Solution, System

ROUNDING = 1e-11  # of the loss of the mean: below, a gap is rounding


class _Done(Exception):
    """The gap is small enough, or the budget is spent."""


@dataclass
class Result:
    solution: Solution
    C: np.ndarray
    objective: float
    gap: float
    allowed: float
    n_iter: int


class Tracker:
    """Solves, keeps the best of primal and dual, shows progress, and says when to stop."""

    def __init__(self, system: System, structure: Structure, lam: float, tol: float, max_iter: int, bar: Any) -> None:
        self.system, self.structure, self.lam, self.tol, self.max_iter, self.bar = system, structure, lam, tol, max_iter, bar
        self.floor = ROUNDING * system.problem.null_loss
        self.dual, self.n_iter = -np.inf, 0
        self.best: Result | None = None

    def solve(self, C: np.ndarray) -> Solution:
        self.n_iter += 1
        solution = self.system.solve(C, self.lam)
        primal = solution.loss + self.lam * self.structure.value(solution.gram, C)
        dual = solution.dual(self.system.problem, self.lam) - self.lam * self.structure.support(solution.dual_gram)
        self.dual = max(self.dual, dual)
        if self.best is None or primal <= self.best.objective:
            self.best = Result(solution, C, primal, np.inf, np.inf, 0)
        best = self.best
        best.gap, best.allowed = max(best.objective - self.dual, 0.0), self.tol * abs(best.objective) + self.floor
        best.n_iter = self.n_iter
        self.bar.set_postfix(objective=f"{best.objective:.6g}", gap=f"{best.gap:.1e}")
        self.bar.update()
        if best.gap <= best.allowed or self.n_iter >= self.max_iter:
            raise _Done
        return solution


def alternate(
    system: System, structure: Structure, lam: float, tol: float, max_iter: int, verbose: Any = False, C: Any = None
) -> Result:
    C = structure.start() if C is None else C
    with tqdm(total=max_iter, desc="rounds", disable=not verbose) as bar:
        track = Tracker(system, structure, lam, tol, max_iter, bar)
        try:
            while True:
                solution = track.solve(C)
                if track.n_iter >= structure.turns and (R := structure.root(solution.gram)) is not None:
                    C = _descend(track, structure, lam, R)
                else:
                    C = structure.best(solution.gram)
        except _Done:
            pass
    assert track.best is not None
    return track.best


def _descend(track: Tracker, structure: Structure, lam: float, R: np.ndarray) -> np.ndarray:
    """Ends by `_Done`, or with the C at which a line search finds no further descent."""
    T = len(R)
    scale = max(track.best.objective if track.best else 1.0, 1e-300)

    def value(r: np.ndarray) -> tuple[float, np.ndarray]:
        R = r.reshape(T, T)
        C = structure.matrix(R)
        at = track.solve(C)
        # the minimum over f for this C, written with its dual variables: no inverse of C is needed
        J = at.loss + lam * (float((C * at.dual_gram).sum()) + structure.cost(C))
        return J / scale, (lam / scale) * structure.slope(R, at.dual_gram).ravel()

    options = {"maxiter": 10**6, "maxfun": 10**6, "ftol": 0.0, "gtol": 0.0}
    return structure.matrix(minimize(value, R.ravel(), jac=True, method="L-BFGS-B", options=options).x.reshape(T, T))
