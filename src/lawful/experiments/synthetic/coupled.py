"""MTRL, tuned as well as STL: it contains STL as the limit of no coupling, and that limit is always a candidate.

With T tasks and Omega = I/T the penalty is (lam1 + T lam2)/2 |f|^2. So (lam1, lam2) = 2 lambda (1 - rho, rho/T) has the size of
an STL ridge lambda, and rho says how much of it is coupling: rho = 0 is STL, rho = 1 has nothing but coupling. sigma comes from
STL, lambda is searched around that of STL, and rho over three values.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lawful.baselines import RelationshipLearning, tune
from lawful.experiments.synthetic.draw import Trial
from lawful.experiments.synthetic.kernel import gaussian

SHARES = (0.0, 0.5, 1.0)  # rho


def penalties(lams: np.ndarray) -> list[dict[str, list[float]]]:
    """The grid for `tune`."""
    return [{"lam1": [2 * float(v) * (1 - rho)], "lam2": [float(v) * rho]} for rho in SHARES for v in lams]


def mtrl(trial: Trial, sigma: Any, lams: np.ndarray, cv: Any, intercept: bool, units: np.ndarray) -> tuple[Any, float]:
    """(fitted model, its held-out error): the best of the grid by the mean over outputs of squared error times `units`."""
    model = RelationshipLearning(kernel=gaussian(sigma), intercept=intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # gaps of 1e-4 are far below the differences of the grid
        found = tune(model, penalties(lams), trial.X, trial.Y, cv=cv, random_state=trial.seed)
        risks = (found.errors * units).mean(axis=1)
        best = int(np.argmin(risks))
        return model.set_params(**found.params[best]).fit(trial.X, trial.Y), float(risks[best])
