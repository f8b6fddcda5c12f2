"""All methods with the choices of the paper: Gaussian kernel, no intercept, its grids, its hold-out, its metric."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful.decoders import decode
from lawful.estimators import ConstrainedRegressor
from lawful.experiments._base import Clock
from lawful.experiments.synthetic.coupled import mtrl
from lawful.experiments.synthetic.draw import Trial
from lawful.experiments.synthetic.hold_out import LAMS, Choice, search, table
from lawful.experiments.synthetic.kernel import gaussian
from lawful.losses import Square
from lawful.sets import Inflated, Penalized, Reals
from lawful.surrogates import KernelRidge

AROUND = 3  # steps of the grid of lambda to either side, for MTRL


def predictions(trial: Trial, laws: dict[str, Any], X: np.ndarray, clock: Clock) -> dict[str, dict[str, Any]]:
    """Both readings of the selection: STL and MTRL at X, and for every law NL-MTL and its two variants."""
    with clock("hold-out, paper"):
        held = table(trial)
        k = int(np.argmin(held.free()))
        sigma, lam = held.pair(k)
    with clock("STL, paper"):
        stl = KernelRidge(gaussian(sigma), lam=lam, intercept=False).fit(trial.X, trial.Y).predict(X)
    with clock("MTRL, paper"):
        at = k % len(LAMS)
        lams = LAMS[max(at - AROUND, 0) : at + AROUND + 1]
        model, _ = mtrl(trial, sigma, lams, [held.fold], False, np.nanvar(trial.Y, axis=0))
        coupled = model.predict(X)
    # Equal weights on shared inputs make the paper's tube exact; else it is measured in the weights of the row.
    norm = "euclidean" if trial.shared else "objective"
    found: dict[str, dict[str, Any]] = {s: {"STL": stl, "MTRL": coupled} for s in ("paper", "ridge")}
    for law, C in laws.items():
        with clock("NL-MTL, paper"):
            known: dict[tuple[str, Choice], Any] = {}  # both readings often choose the same
            for selection, choices in search(held, law, norm).items():
                for name, choice in choices.items():
                    if (name, choice) not in known:
                        F = objective(trial, *held.pair(choice.candidate), X)
                        known[name, choice] = decode(F, relaxed(C, name, choice, norm)).c
                found[selection][law] = {name: known[name, choice] for name, choice in choices.items()}
    return found


def objective(trial: Trial, sigma: float, lam: float, X: np.ndarray) -> Any:
    """F_x as printed: identity metric, confidence a_t(x)."""
    ridge = KernelRidge(gaussian(sigma), lam=lam, intercept=False)
    model = ConstrainedRegressor(Reals(), loss=Square("identity", "scores"), surrogate=ridge)
    return model.fit(trial.X, trial.Y).objective(X)


def relaxed(C: Any, name: str, choice: Choice, norm: str) -> Any:
    """The law that `choice` means: exact, a tube around it, or a price on the distance from it."""
    if choice.relaxed is None:
        return C
    if name == "NL-MTL[R]":
        return Inflated(C, choice.relaxed, norm).around(C)
    return Penalized(C, choice.relaxed).around(C)
