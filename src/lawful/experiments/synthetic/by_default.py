"""All methods as `lawful` would have them: STL is `KernelRidge()`, NL-MTL is `ConstrainedRegressor(C)`.

delta and mu are chosen by the paired rule of `ConstrainedRegressorCV` on the leave-one-out errors of the likeliest kernels of
that ridge. MTRL may have the Gaussian kernel that leave-one-out finds for either output, or one between them, and is tuned by
five folds; where the ridge without coupling, with a kernel for each output, has the smaller error, it is STL.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful.decoders import relaxation_path
from lawful.estimators import ConstrainedRegressor
from lawful.estimators.candidates import ridge_candidate
from lawful.estimators.evaluate import Candidate, Evaluator
from lawful.estimators.selection import HeldOutLoss, choose_law
from lawful.experiments._base import Clock
from lawful.experiments.synthetic.coupled import mtrl
from lawful.experiments.synthetic.draw import Trial
from lawful.experiments.synthetic.hold_out import RELAXED
from lawful.experiments.synthetic.kernel import gaussian, number
from lawful.folds import make_folds
from lawful.losses import Square
from lawful.sets import Reals
from lawful.surrogates import KernelRidge

FOLDS = 5
LAMS = np.logspace(-10, 0, 21)  # of ridges with one lambda for both outputs
AROUND = 4.0 ** np.arange(-1, 2)  # around the best of them, for MTRL
SMALLEST = 1e-10  # smaller ones are the same to the folds, and slow


def predictions(trial: Trial, laws: dict[str, Any], X: np.ndarray, clock: Clock) -> dict[str, dict[str, Any]]:
    """{"default": ...}: STL and MTRL at X, and for every law NL-MTL and its two variants."""
    found: dict[str, Any] = {}
    for law, C in laws.items():
        with clock("STL, default" if not found else "NL-MTL, default"):  # the first fit is also that of STL
            model = ConstrainedRegressor(C, surrogate=KernelRidge()).fit(trial.X, trial.Y)
            F = model.objective(X)
        found.setdefault("STL", F.center)
        with clock("NL-MTL, default"):
            ridge = ridge_candidate(KernelRidge(), model.surrogate_.kernels_, True, model.surrogate_.lam_[None, :])
            delta, mu = strictness(trial, ridge, C)
            tubes, soft, exact = relaxation_path(F, C, [delta], [mu])
            found[law] = {"NL-MTL": exact, "NL-MTL[R]": tubes[0], "NL-MTL[P]": soft[0]}
    with clock("MTRL, default"):
        found["MTRL"] = coupled(trial, X, found["STL"])
    return {"default": found}


def evaluator(trial: Trial, C: Any, folds: Any, relaxed: np.ndarray) -> Evaluator:
    weight = (~np.isnan(trial.Y)).astype(float)
    return Evaluator(trial.tasks, C, Square(), None, folds, HeldOutLoss(None, trial.Y, weight), relaxed, relaxed, "objective")


def strictness(trial: Trial, ridge: Candidate, C: Any) -> tuple[float, float]:
    """delta and mu, each by the paired one-standard-error rule; 0 is the exact law."""
    judge = evaluator(trial, C, None, RELAXED)
    losses, looseness, _ = judge.relaxations(ridge)
    rows = judge.error.mean(losses)
    chosen = []
    for start in (1, 1 + len(RELAXED)):
        at = np.r_[0, start : start + len(RELAXED)]
        k = choose_law(rows[at], looseness[at], "one_se")
        chosen.append(float(RELAXED[k - 1]) if k else 0.0)
    return chosen[0], chosen[1]


def coupled(trial: Trial, X: np.ndarray, stl: np.ndarray) -> np.ndarray:
    """MTRL at X."""
    by_error = KernelRidge(tune="loo").fit_tasks(trial.tasks)
    kernels = by_error.kernels_
    ridge = ridge_candidate(KernelRidge(tune="loo"), kernels, True, by_error.lam_[None, :])
    folds = make_folds(FOLDS, trial.X, ~np.isnan(trial.Y), ["y1", "y2"], trial.seed)
    judge = evaluator(trial, Reals(), folds, np.empty(0))
    widths = sorted({number(kernel.sigma) for kernel in kernels})
    widths += [float(np.sqrt(widths[0] * widths[1]))] if len(widths) == 2 else []
    lams = np.tile(LAMS[:, None], (1, 2))
    paths = [judge.unconstrained(ridge_candidate(KernelRidge(tune="loo"), [gaussian(s)] * 2, True, lams)) for s in widths]
    risks = np.array([judge.error.mean(path) for path in paths])
    i, j = np.unravel_index(int(np.argmin(risks)), risks.shape)
    model, risk = mtrl(trial, widths[i], LAMS[j] * AROUND, folds, True, np.ones(2))
    alone = ridge.at(np.maximum(ridge.lams, SMALLEST))  # type: ignore[arg-type]
    return stl if judge.error.mean(judge.unconstrained(alone))[0] < risk else model.predict(X)
