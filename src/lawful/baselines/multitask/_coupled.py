"""Baselines whose penalty is a matrix of the tasks, given or learned: check, choose the system, solve, certify."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from lawful.baselines.multitask._alternate import alternate
from lawful.baselines.multitask._base import Baseline
from lawful.baselines.multitask._conjugate import make_system
from lawful.baselines.multitask._structures import Structure


class CoupledBaseline(Baseline):
    """Subclasses say which `Structure` they use. Fitted: `task_matrix_`, the C of k((x, s), (z, t)) = C_st k(x, z)."""

    tol: float
    max_iter: int
    verbose: Any

    def _structure(self, T: int) -> Structure:
        raise NotImplementedError

    def _lam(self) -> float:
        return self._positive("lam")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """y (n, T) or (n,), NaN where not observed; sample_weight (n,) or (n, T)."""
        lam = self._lam()
        problem = self._problem(X, y, sample_weight)
        structure = self._structure(problem.n_tasks)
        system = make_system(problem)
        found = alternate(system, structure, lam, self.tol, self.max_iter, self.verbose)
        self.task_matrix_ = found.C
        self.task_gram_ = found.solution.gram
        self._after(structure, found.solution.gram)
        self._store(problem, found.solution.B, found.solution.bias, system.primal)
        self._certify(found.gap, found.objective, found.allowed, found.n_iter)
        return self

    def _after(self, structure: Structure, G: np.ndarray) -> None:
        pass
