"""What `ConstrainedRegressorCV` compares before it looks at the law: kernels and lambdas of ridges, or a grid of any surrogate.

Both families are asked for one thing, `choose(evaluator, results, parallel)`: the best candidate, and which of its parameters
lie on the edge of their grids.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from lawful._array import to_numpy
from lawful.estimators.evaluate import Candidate, Evaluator
from lawful.estimators.selection import FREE, Results, check_grid, check_intercepts, check_kernels, choose_lam, is_auto, on_edge
from lawful.kernels import Kernel, Precomputed, as_kernel
from lawful.surrogates import KernelRidge, Surrogate

AUTO_LAMS = 10.0 ** np.arange(-15, 2.01, 0.5)  # relative to the mean of k(x, x); below, rounding of K would be fitted
LIKELY = 10.0 ** np.linspace(-0.5, 0.5, 5)  # around that of evidence
FINER = 10.0 ** np.linspace(-0.5, 0.5, 11)  # around the best of them

Parallel = Callable[[Callable[..., Any], list[tuple[Any, ...]]], list[Any]]


@dataclass
class Choice:
    """The best candidate, its parameters, what lies on an edge of its grid, and the path of lambdas that led to it."""

    candidate: Candidate
    surrogate: Surrogate
    parameters: dict[str, Any]
    edges: list[tuple[str, str]] = field(default_factory=list)
    path: tuple[np.ndarray, np.ndarray] | None = None


def losses_of(evaluator: Evaluator, candidate: Candidate, joint: bool) -> np.ndarray:
    """(L, r, T), r for the exact law and its relaxations, or 1 for no law."""
    return evaluator.constrained(candidate) if joint else evaluator.unconstrained(candidate)[:, None, :]


def ridge_candidate(ridge: KernelRidge, kernels: list[Kernel], intercept: Any, lams: np.ndarray) -> Candidate:
    """A ridge with a kernel for each task (with numbers for length scales) and a path of lambdas (L, T)."""
    model = clone(ridge).set_params(kernel=kernels, intercept=intercept)
    return Candidate(model, lams, {"kernel": [repr(kernel) for kernel in kernels], "intercept": str(intercept)})


class Ridges:
    """Kernels x intercepts x lambdas of a `KernelRidge`: a factorisation for each of the first two serves all of the last."""

    def __init__(self, ridge: KernelRidge, kernels: Any, lams: Any, intercepts: Any, per_task: bool, joint: bool) -> None:
        self.ridge, self.per_task, self.joint = ridge, per_task, joint
        self.lams = None if is_auto(lams) else check_grid(lams, "lams", 0.0, strict=True)
        self.kernels, self.numbers = check_kernels(kernels)
        self.intercepts = check_intercepts(intercepts)

    def tuned(self, kernel: Any, intercept: Any, evaluator: Evaluator) -> tuple[list[Kernel], np.ndarray | None]:
        """A kernel per task, length scales tuned where they are "auto"; and the lambdas that evidence found with them."""
        kernel = as_kernel(kernel)
        if not isinstance(getattr(kernel, "sigma", None), str):
            return [kernel] * len(evaluator.tasks), None
        ridge = clone(self.ridge).set_params(kernel=kernel, intercept=intercept, lam="auto")
        ridge.fit_tasks(evaluator.tasks.plain())
        return ridge.kernels_, ridge.lam_ if ridge.tune == "evidence" else None

    def candidate(self, kernel: Any, intercept: Any, evaluator: Evaluator) -> Candidate:
        (kernels, lam), T = self.tuned(kernel, intercept, evaluator), len(evaluator.tasks)
        if self.lams is None:
            path = AUTO_LAMS[:, None] * level(kernels, evaluator) if lam is None else LIKELY[:, None] * lam
            return ridge_candidate(self.ridge, kernels, intercept, path)
        return ridge_candidate(self.ridge, kernels, intercept, np.tile(self.lams[:, None], (1, T)))

    def choose(self, evaluator: Evaluator, results: Results, parallel: Parallel) -> Choice:
        pairs = [(kernel, intercept) for kernel in self.kernels for intercept in self.intercepts]

        def evaluate(kernel: Any, intercept: Any) -> tuple[Candidate, np.ndarray]:
            candidate = self.candidate(kernel, intercept, evaluator)
            return candidate, losses_of(evaluator, candidate, self.joint)

        found = parallel(evaluate, pairs)
        choices = [choose_lam(e, evaluator.error, self.per_task) for _, e in found]
        best = int(np.argmin([risk for _, risk in choices]))
        (winner, table), (at, _) = found[best], choices[best]
        relaxed = evaluator.relaxed if self.joint else FREE
        for candidate, e in found:
            results.add(candidate, e, relaxed)
        edges = []
        if self.numbers is not None:
            position = best // len(self.intercepts)
            risks = np.array([risk for _, risk in choices]).reshape(len(self.kernels), -1).min(axis=1)
            if on_edge(risks, position):
                edges.append(("kernels", f"sigma = {self.numbers[position]:.3g}"))
        T = len(evaluator.tasks)
        assert winner.lams is not None
        path, lam = (winner.lams, table[:, 0, :]), winner.lams[at, np.arange(T)]
        if self.lams is None and len(winner.lams) > len(LIKELY):
            winner = winner.at(lam * FINER[:, None])
            finer = losses_of(evaluator, winner, self.joint)
            results.add(winner, finer, relaxed)
            lam = (lam * FINER[:, None])[choose_lam(finer, evaluator.error, self.per_task)[0], np.arange(T)]
        elif self.lams is not None:
            risks = table[:, 0, :] if self.per_task else evaluator.error.mean(table).min(axis=1)[:, None]
            there = sorted({float(lam[t]) for t in range(risks.shape[1]) if on_edge(risks[:, t], int(at[t]))})
            edges += [("lams", ", ".join(f"{v:.3g}" for v in there))] if there else []
        kernel: Any = winner.surrogate.kernel  # type: ignore[attr-defined]
        kernel = kernel[0] if all(k is kernel[0] for k in kernel) else kernel
        one = float(lam[0]) if np.all(lam == lam[0]) else lam
        parameters = {"kernel": kernel, "lam": one, "intercept": winner.surrogate.intercept}  # type: ignore[attr-defined]
        model = clone(self.ridge).set_params(**parameters)
        return Choice(winner.at(lam[None, :]), model, parameters, edges, path)


class Grid:
    """Any surrogate with a grid of its parameters, as in scikit-learn's GridSearchCV; an empty grid is the surrogate itself."""

    def __init__(self, surrogate: Surrogate, given: Any, grid: Any, joint: bool) -> None:
        self.surrogate, self.joint = surrogate, joint
        self.inside = "" if hasattr(given, "fit_tasks") else "regressor__"  # where the parameters of the user's object are
        try:
            self.settings = list(ParameterGrid({} if grid is None else grid))
        except (TypeError, ValueError) as error:
            raise ValueError(f"grid={grid!r} is no grid of parameters ({error}); {{'alpha': [0.1, 1.0]}} would do") from error
        known = given.get_params()
        unknown = sorted({name for setting in self.settings for name in setting if name not in known})
        if unknown:
            raise ValueError(
                f"grid names {', '.join(unknown)}, which {type(given).__name__} does not have; "
                f"it has {', '.join(sorted(known))}"
            )

    def model(self, setting: dict[str, Any]) -> Surrogate:
        named = {f"{self.inside}{name}": value for name, value in setting.items()}
        return clone(self.surrogate).set_params(**named) if named else clone(self.surrogate)

    def choose(self, evaluator: Evaluator, results: Results, parallel: Parallel) -> Choice:
        names = sorted({name for setting in self.settings for name in setting})

        def evaluate(setting: dict[str, Any]) -> tuple[Candidate, np.ndarray]:
            labels = {name: str(setting.get(name, "")) for name in names}
            candidate = Candidate(self.model(setting), None, {"surrogate": type(self.surrogate).__name__} | labels)
            return candidate, losses_of(evaluator, candidate, self.joint)

        found = parallel(evaluate, [(setting,) for setting in self.settings])
        risks = [choose_lam(e, evaluator.error, False)[1] for _, e in found]
        for candidate, e in found:
            results.add(candidate, e, evaluator.relaxed if self.joint else FREE)
        best = int(np.argmin(risks))
        candidate, setting = found[best][0], self.settings[best]
        return Choice(candidate, self.model(setting), dict(setting))


def level(kernels: list[Kernel], evaluator: Evaluator) -> np.ndarray:
    """(T,) mean of k(x, x) over the inputs of each task: the scale of lambda."""
    tasks, X = evaluator.tasks, evaluator.tasks.X
    precomputed = [isinstance(kernel, Precomputed) for kernel in kernels]
    diagonals = [
        np.diagonal(k.gram(X, r)) if given else to_numpy(k.diag(X[r])) for k, r, given in zip(kernels, tasks.rows, precomputed)
    ]
    with np.errstate(over="ignore"):  # the factorisation will say that the kernel is infinite
        return np.array([np.average(diagonal, weights=w) or 1.0 for diagonal, w in zip(diagonals, tasks.weights)])
