"""The systems of the table on all films: each returns its losses N1, N2, N3 by name, and what validation chose."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lawful.baselines import PairwiseRanker, Popularity, StructuralRanker
from lawful.baselines.ranking.classifiers import PairwiseClassifiers, pair_loss, rated_pairs
from lawful.estimators.ranker import ConstrainedRanker
from lawful.experiments._base import Clock
from lawful.experiments.ranking.problem import Problem, by_denominator, choose, losses, orders
from lawful.metrics import rank_loss
from lawful.surrogates.pairs.factorisation import AveragedFactorization, select_factorization

Results = dict[str, Any]
# One kernel ridge problem per pair on the users who rated both, and an order of all films: nothing but the paper's estimator.
PAPER: dict[str, Any] = {"prior": None, "ridge": "n_lambda", "targets": "difference", "pair_weight": None, "n_jobs": 1}
DECODERS = ("insertion", "eades")
GRIDS: dict[str, tuple] = {
    "NL-MTL": (0.3, 1.0, 3.0, 10.0, 30.0),
    "SELF": (30.0, 100.0, 300.0, 1000.0, 3000.0),
    "Linear": (1e-6, 1e-5, 1e-4, 1e-3),
    "Hinge": (1e-4, 1e-3, 1e-2, 1e-1, 1.0),
    "Logistic": (1e-4, 1e-3, 1e-2, 1e-1, 1.0),
    "SVMStruct": (1e-4, 1e-3, 1e-2, 1e-1, 1.0),
    "STL, SVM": (1e-3, 3e-3, 1e-2, 3e-2, 1e-1),  # C
    "STL, ridge": (0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
}
LOOSE = 1e-4  # gap of the iterative rankers while lam is chosen; the last fit has their default


def decoded(name: str, model: Any, problem: Problem) -> Results:
    """Losses of both decoders."""
    found = orders(model, problem.test, DECODERS)
    return {f"{name}, {method}": losses(problem.test.truth, positions=found[method]) for method in DECODERS}


def tuned(name: str, parameters: dict[str, Any], problem: Problem, clock: Clock) -> Results:
    """lam by the insertion decoder on the validation users; both decoders on the test users."""
    model = ConstrainedRanker(**PAPER, **parameters, similarity=problem.similarity)

    def loss(lam: float) -> float:
        model.set_params(lam=lam).fit(problem.X_fit, problem.R_fit)
        users = problem.validation
        return rank_loss(users.truth, orders(model, users, DECODERS[:1])[DECODERS[0]])

    with clock(f"{name}: choice of lam"):
        lam = choose(GRIDS[name], loss)
    with clock(name):
        model.set_params(lam=lam).fit(problem.X, problem.R)
        return {"losses": decoded(name, model, problem), "chosen": {name: lam}}


def nlmtl(problem: Problem, clock: Clock) -> Results:
    """The paper's estimator."""
    return tuned("NL-MTL", {}, problem, clock)


def self_(problem: Problem, clock: Clock) -> Results:
    """Its predecessor: one alpha(x) for all pairs, comparisons that were not made are ties."""
    return tuned("SELF", {"missing": "zero"}, problem, clock)


def ours(problem: Problem, clock: Clock) -> Results:
    """The library's defaults: factor prior, scaled targets, pairs weighted by how often they were compared."""
    with clock("NL-MTL, our defaults"):
        model = ConstrainedRanker(similarity=problem.similarity, n_jobs=1).fit(problem.X, problem.R)
        found = decoded("NL-MTL+", model, problem)
        prior = model.surrogate_.prior_.scores(ratings=problem.test.profile, X=problem.test.X)
    return {"losses": {**found, "factor prior alone": losses(problem.test.truth, scores=prior)}, "chosen": {}}


def rankers(problem: Problem, clock: Clock) -> Results:
    """Scorers w . phi(user, film) learned from comparisons."""
    models: dict[str, Any] = {name: PairwiseRanker(name.lower()) for name in ("Linear", "Hinge", "Logistic")}
    models["SVMStruct"] = StructuralRanker()
    results: Results = {"losses": {}, "chosen": {}}
    users, test = problem.validation, problem.test
    for name, model in models.items():
        model.set_params(n_parts=problem.n_parts, random_state=problem.seed)
        tight = model.tol

        def loss(lam: float, model: Any = model) -> float:
            model.set_params(lam=lam, tol=LOOSE).fit(problem.X_fit, problem.R_fit, item_features=problem.genres)
            return rank_loss(users.truth, model.predict(users.X, users.profile))

        with clock(name):
            lam = choose(GRIDS[name], loss)
            model.set_params(lam=lam, tol=tight).fit(problem.X, problem.R, item_features=problem.genres)
            results["losses"][name] = losses(test.truth, positions=model.predict(test.X, test.profile))
        results["chosen"][name] = lam
    return results


def pair_losses(truth: Any, answers: np.ndarray, undecided: str = "error") -> dict[str, float]:
    """Losses of answers pair by pair; an undecided pair is an error, or half of one."""
    return by_denominator(lambda d: pair_loss(truth, answers, denominator=d, undecided=undecided))


def stl(problem: Problem, clock: Clock) -> Results:
    """One machine per pair, no order."""
    results: Results = {"losses": {}, "chosen": {}}
    users, test = problem.validation, problem.test
    asked, _ = rated_pairs(test.truth)
    for name, loss_name, parameter in (("STL, SVM", "hinge", "C"), ("STL, ridge", "square", "lam")):
        model = PairwiseClassifiers(loss_name, similarity=problem.similarity)

        def loss(value: float, model: Any = model, parameter: str = parameter) -> float:
            model.set_params(**{parameter: value}).fit(problem.X_fit, problem.R_fit)
            return model.rank_loss(users.X, users.truth, users.profile)

        with clock(name), warnings.catch_warnings():
            # A machine of the largest C may end above the gap of 1e-3; the gap is in the results.
            warnings.simplefilter("ignore", ConvergenceWarning)
            value = choose(GRIDS[name], loss)
            model.set_params(**{parameter: value}).fit(problem.X, problem.R)
            answers = model.predict_pairs(test.X, asked, test.profile)
            for way in ("error", "half"):
                results["losses"][f"{name}, {way}"] = pair_losses(test.truth, answers, way)
        results["chosen"][name] = value
        results[f"gap of {name}"] = float(f"{model.gap_:.2g}")
    results["undecided"] = round(float(np.mean(answers == 0)), 6)
    results["pairs"] = len(asked)
    return results


def scores(problem: Problem, clock: Clock) -> Results:
    """What papers forget: the films' means, factorisations; and chance."""
    test, found, chosen = problem.test, {}, {}
    for name, statistic in (("popularity", "mean"), ("item bias", "bias"), ("number of ratings", "count")):
        model = Popularity(statistic).fit(None, problem.R)
        found[name] = losses(test.truth, scores=model.scores(None, test.profile))
    if problem.protocol == "A":  # without a profile a factorisation knows the item biases only
        with clock("matrix factorisation"):
            als = select_factorization(
                problem.R, loss=lambda R, s: rank_loss(R, scores=s), n_splits=1, random_state=problem.seed, n_jobs=1
            )
            found["matrix factorisation"] = losses(test.truth, scores=als.fold_in(test.profile))
            three = AveragedFactorization(als, random_state=problem.seed, n_jobs=1).fit(problem.R)
            found["mean of three factorisations"] = losses(test.truth, scores=three.fold_in(test.profile))
        chosen["matrix factorisation"] = f"{als.n_factors} factors, lam {als.lam:g} n^{als.count_power:g}"
    chance = np.random.default_rng([problem.seed, 2]).uniform(size=test.truth.shape)
    found["random order"] = losses(test.truth, scores=chance)
    return {"losses": found, "chosen": chosen}
