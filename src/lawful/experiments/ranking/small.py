"""MTRL on the most rated films, as many as half a minute or so a split allows, and its rivals on the same films.

MTRL learns a T x T matrix, T = D (D - 1) / 2. With Omega = I/T its penalty is (lam1 + T lam2)/2 |f|^2, so that (lam1, lam2) =
2 lambda (1 - rho, rho/T) has the size of a ridge lambda, of which the share rho is coupling. The sizes tried are those around
the one that single-task ridges chose, with half and with nothing but coupling; without coupling MTRL is STL
(with a bias that is not penalised), and may be that.

All systems get the same kernel matrix between users, made of all their ratings (A) and demographics; they differ in what they
do with the comparisons of these D films.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from lawful.baselines import RelationshipLearning
from lawful.baselines.ranking.classifiers import PairwiseClassifiers, pair_loss, rated_pairs
from lawful.decoders.orders import order
from lawful.estimators.ranker import ConstrainedRanker
from lawful.experiments._base import Clock
from lawful.experiments.ranking.problem import Problem, Users, choose, losses
from lawful.experiments.ranking.systems import DECODERS, PAPER, Results, pair_losses
from lawful.kernels import Precomputed
from lawful.metrics import rank_loss
from lawful.surrogates.pairs.factorisation import Popularity
from lawful.surrogates.pairs.query_kernel import QueryKernel

RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
MACHINES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
COUPLED = ((1.0, 0.0), (1 / 3, 0.5), (1.0, 0.5), (3.0, 0.5), (1 / 3, 1.0), (1.0, 1.0), (3.0, 1.0))  # (times lambda, rho)
LOOSE, TIGHT = (1e-2, 8), (1e-3, 30)  # gap of MTRL as a share, and rounds, while it is tuned and in the last fit
GIVEN: dict[str, Any] = {"kernel": Precomputed(), "constant": False, "similarity": 0.0}


class Films:
    """Kernel matrix and ratings of the chosen films for some training users, and the users who are asked about."""

    def __init__(self, problem: Problem, X: Any, R: Any, users: Users, films: np.ndarray) -> None:
        kernel = QueryKernel(None, 1.0, problem.similarity).fit(X, R)
        self.K, self.cross = kernel.gram(), kernel.cross(users.X, users.profile, users.truth.shape[0])
        self.R, self.truth = sparse.csr_array(R[:, films]), sparse.csr_array(users.truth[:, films])
        self.asked = rated_pairs(self.truth)[0]

    def comparisons(self) -> np.ndarray:
        """(n, T) r_p - r_q for p < q, NaN where one of them is not rated: what MTRL learns."""
        dense = np.full(self.R.shape, np.nan)
        table = self.R.tocoo()
        dense[table.row, table.col] = table.data  # `coords` came with scipy 1.13
        p, q = np.triu_indices(dense.shape[1], 1)
        return dense[:, p] - dense[:, q]


def most_rated(R: sparse.csr_array, D: int) -> np.ndarray:
    return np.sort(np.argsort(-np.bincount(R.indices, minlength=R.shape[1]), kind="stable")[:D])


def small(problem: Problem, clock: Clock, D: int) -> Results:
    """Losses on the D films that the training users rated most."""
    films = most_rated(problem.R, D)
    trial = Films(problem, problem.X_fit, problem.R_fit, problem.validation, films)
    final = Films(problem, problem.X, problem.R, problem.test, films)
    results: Results = {"losses": {}, "chosen": {}, "tasks": D * (D - 1) // 2, "pairs": len(final.asked)}
    for name, missing in (("NL-MTL", "skip"), ("SELF", "zero")):
        with clock(f"{name}, few films"):
            constrained(name, missing, trial, final, results)
    for name, loss, parameter, grid in (("STL, SVM", "hinge", "C", MACHINES), ("STL, ridge", "square", "lam", RIDGES)):
        with clock(f"{name}, few films"):
            machines(name, loss, parameter, grid, trial, final, results)
    with clock("MTRL, few films"):
        relations(trial, final, results)
    popular = Popularity().fit(final.R).fold_in(sparse.csr_array(final.truth.shape))
    results["losses"]["popularity"] = losses(final.truth, scores=popular)
    return results


def constrained(name: str, missing: str, trial: Films, final: Films, results: Results) -> None:
    model = ConstrainedRanker(**PAPER, **GIVEN, missing=missing)

    def loss(lam: float) -> float:
        model.set_params(lam=lam).fit(trial.K, trial.R)
        return rank_loss(trial.truth, model.predict(trial.cross))

    lam = choose(RIDGES, loss)
    model.set_params(lam=lam).fit(final.K, final.R)
    for decoder in DECODERS:
        positions = model.set_params(decoder=decoder).predict(final.cross)
        results["losses"][f"{name}, {decoder}"] = losses(final.truth, positions=positions)
    results["chosen"][name] = lam


def machines(name: str, loss: str, parameter: str, grid: tuple, trial: Films, final: Films, results: Results) -> None:
    model = PairwiseClassifiers(loss, **GIVEN)

    def held_out(value: float) -> float:
        model.set_params(**{parameter: value}).fit(trial.K, trial.R)
        return model.rank_loss(trial.cross, trial.truth)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the largest C
        value = choose(grid, held_out)
        model.set_params(**{parameter: value}).fit(final.K, final.R)
        answers = model.predict_pairs(final.cross, final.asked)
    results["losses"][name] = pair_losses(final.truth, answers)
    results["chosen"][name] = value


def relations(trial: Films, final: Films, results: Results) -> None:
    """MTRL pair by pair, as the paper counts it, and the best order of what it says."""
    D = final.R.shape[1]
    task = np.zeros((D, D), dtype=np.int64)
    task[np.triu_indices(D, 1)] = np.arange(D * (D - 1) // 2)
    model = RelationshipLearning(kernel=Precomputed())

    ridge, T = results["chosen"]["STL, ridge"], D * (D - 1) // 2

    def fitted(strength: tuple[float, float], at: Films, effort: tuple[float, int]) -> np.ndarray:
        size, rho = 2 * ridge * strength[0], strength[1]
        model.set_params(tol=effort[0], max_iter=effort[1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is in the results
            model.set_params(lam1=size * (1 - rho), lam2=size * rho / T).fit(at.K, at.comparisons())
        return model.predict(at.cross)

    def answers(F: np.ndarray, at: Films) -> np.ndarray:
        user, p, q = at.asked.T
        return F[user, task[p, q]]

    strength = choose(COUPLED, lambda s: pair_loss(trial.truth, answers(fitted(s, trial, LOOSE), trial)))
    F = fitted(strength, final, TIGHT)
    results["losses"]["MTRL"] = pair_losses(final.truth, answers(F, final))
    positions = np.empty((len(F), D), dtype=np.int64)
    for row, f in zip(positions, F):
        S = np.zeros((D, D))
        S[np.triu_indices(D, 1)] = f
        row[order(S - S.T, "insertion", bound=False).order] = np.arange(D)
    results["losses"]["MTRL, insertion"] = losses(final.truth, positions=positions)
    results["chosen"]["MTRL"] = f"{ridge * strength[0]:.3g}, share {strength[1]:g}"
    results["gap of MTRL"] = float(f"{model.gap_ / model.objective_:.2g}")
