"""The systems of the table, their grids, and how each chooses from its grid: all by the same five folds.

Penalties are relative to `level`, the mean of k(x, x), so that one grid serves scaled and raw inputs. Every system has a bias
for each torque (or the mean of the cloud, where its name says so), sees outputs in units of the standard deviations of the
training labels, and chooses by the held-out squared error of its own predictions over the variance, mean over torques. Grids
are so wide that choices on their edges are rare (they are counted). MTL and MTRL can all but switch their coupling off, CMTL
and MTFL can weaken it, FMTL has no such parameter.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lawful.baselines import (
    ClusteredMTL,
    LatentTaskStructure,
    MeanRegularized,
    OutputKernelLearning,
    RelationshipLearning,
    SingleTask,
    tune,
)
from lawful.estimators import ConstrainedRegressorCV, GridEdgeWarning
from lawful.estimators.selection import on_edge
from lawful.experiments.sarcos.splits import Split
from lawful.kernels import Linear
from lawful.losses import Square
from lawful.sets import PointCloud

SOFT = np.logspace(-5, 5, 30)  # the paper's grid of delta and mu
PRINTED = np.logspace(-9, 0, 30)  # the paper's grid of lambda
POWERS = {"FMTL[2]": "2", "FMTL[4/3]": "4/3", "FMTL[8/7]": "8/7"}


@dataclass(frozen=True)
class System:
    """A row of the table. `paper`: its name in the paper's table; `linear`: one of the linear multitask methods there."""

    name: str
    what: str
    paper: str = ""
    linear: bool = False
    cloud: bool = False  # it sees the extra outputs


SYSTEMS = [
    System("STL", "ridge for each torque"),
    System("STL-SVR", "epsilon-SVR for each torque, the loss of the quoted numbers", "STL"),
    System("MTL", "a common mean (Evgeniou & Pontil 2004)", "MTL", True),
    System("CMTL", "clusters (Jacob et al. 2008)", "CMTL", True),
    System("MTRL", "task covariance (Zhang & Yeung 2010)", "MTRL", True),
    System("MTFL", "groups sharing features (Jawanpuria & Nath 2012)", "MTFL", True),
    System("FMTL", "output kernel, p chosen by the folds (Jawanpuria et al. 2015)", "FMTL", True),
    System("FMTL[2]", "the same, p = 2", "", True),
    System("FMTL[4/3]", "the same, p = 4/3", "", True),
    System("FMTL[8/7]", "the same, p = 8/7", "", True),
    System("FMTL-SVR", "the same, p = 4/3, epsilon-insensitive loss", "", True),
    System("NL-MTL", "the best point of the cloud", "", cloud=True),
    System("NL-MTL[R]", "the cloud inflated by delta", "NL-MTL[R]", cloud=True),
    System("NL-MTL[P]", "distance to the cloud at price mu", "NL-MTL[P]", cloud=True),
    System("NL-MTL, identity", "as NL-MTL, with the paper's metric and confidence", "", cloud=True),
    System("NL-MTL[R], identity", "as [R], with the paper's metric and confidence: its tube is Euclidean", "", cloud=True),
    System("NL-MTL[P], identity", "as [P], with the paper's metric and confidence", "", cloud=True),
    System("NL-MTL[R]+mean", "the same as [R], its ridge around an intercept or the mean of the cloud", "", cloud=True),
    System("NL-MTL[P]+mean", "the same as [P], its ridge around an intercept or the mean of the cloud", "", cloud=True),
    System("STL+mean", "ridge around the mean of the cloud", "", cloud=True),
    System("Wiener", "linear filter with the cloud's covariance", "", cloud=True),
    System("posterior", "posterior mean over the cloud", "", cloud=True),
]
BY_NAME = {system.name: system for system in SYSTEMS}


@dataclass
class Found:
    """What a system predicts for the test rows, and what it chose."""

    prediction: np.ndarray
    chosen: dict[str, Any]
    error: float  # held-out, of the choice
    edge: bool
    warned: list[str] = field(default_factory=list)


def exponents(low: float, high: float, step: float) -> np.ndarray:
    return 10.0 ** np.arange(low, high + step / 2, step)


def rivals(level: float, coarse: bool = False) -> dict[str, tuple[Any, dict[str, Any]]]:
    """name -> (estimator, grid)."""
    tol = 1e-2 if coarse else 1e-3

    def lams(low: float, high: float, step: float = 0.5) -> np.ndarray:
        return level * exponents(low, high, 2 * step if coarse else step)

    def some(*values: float) -> list[float]:
        return list(values[1:2] if coarse else values)

    clusters = {"n_clusters": [4] if coarse else [2, 4, 6], "eps_between": some(0.1, 0.3), "eps_within": some(10.0, 3.0)}
    return {
        "STL": (SingleTask(), {"lam": lams(-4.5, 0.5)}),
        "STL-SVR": (SingleTask(loss="epsilon"), {"lam": lams(-4.5, 0.5)}),
        "MTL": (MeanRegularized(tol=1e-5), {"lam": lams(-4.5, 0.5), "mu": [0.1, 1.0, 10.0, 100.0]}),
        "CMTL": (ClusteredMTL(tol=tol), {"lam": lams(-3.5, 0.5), **clusters}),
        "MTRL": (RelationshipLearning(tol=tol), {"lam1": lams(-4.5, -0.5, 1), "lam2": lams(-4.5, 0.5)}),
        "MTFL": (LatentTaskStructure(tol=1e-2), {"lam": lams(-4, -0.5), "mu": some(0.01, 0.1, 1.0, 10.0)}),
        "FMTL[2]": (OutputKernelLearning(2.0, tol=tol), {"lam": lams(-4.5, 0)}),
        "FMTL[4/3]": (OutputKernelLearning(4 / 3, tol=tol), {"lam": lams(-4.5, 0)}),
        "FMTL[8/7]": (OutputKernelLearning(8 / 7, tol=tol), {"lam": lams(-4, 0)}),
        "FMTL-SVR": (OutputKernelLearning(4 / 3, loss="epsilon", tol=tol, max_iter=1000), {"lam": lams(-4, 0)}),
    }


def owns(cloud: np.ndarray) -> dict[str, dict[str, Any]]:
    """name -> parameters of ConstrainedRegressorCV."""
    law, mean, half = PointCloud(cloud), cloud.mean(axis=0), Square("residual", confidence=0.5)
    ours = {"constraint": law, "loss": Square("residual")}
    printed = {"constraint": law, "loss": Square("identity", "scores")}  # a(x) = 1, since there is an intercept
    return {
        "NL-MTL": ours,
        "NL-MTL[R]": {**ours, "deltas": SOFT},
        "NL-MTL[P]": {**ours, "mus": SOFT},
        "NL-MTL, identity": printed,
        "NL-MTL[R], identity": {**printed, "deltas": SOFT},
        "NL-MTL[P], identity": {**printed, "mus": SOFT},
        "NL-MTL[R]+mean": {**ours, "deltas": SOFT, "intercepts": [True, mean]},
        "NL-MTL[P]+mean": {**ours, "mus": SOFT, "intercepts": [True, mean]},
        "STL+mean": {"intercepts": mean},
        "Wiener": {"constraint": law, "decoder": "wiener", "loss": half, "intercepts": [True, mean]},
        "posterior": {"constraint": law, "decoder": "posterior", "loss": half, "intercepts": [True, mean]},
    }


@contextmanager
def expected() -> Iterator[list[str]]:
    """Names of the warnings that were to be expected; all others go on."""
    names: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield names
    for w in caught:
        if issubclass(w.category, GridEdgeWarning | ConvergenceWarning):
            names.append(w.category.__name__)
        else:
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)


def fit_rival(name: str, split: Split, folds: Any, coarse: bool = False) -> Found:
    """A linear system, tuned."""
    model, grid = rivals(split.level, coarse)[name]
    with expected() as warned:
        found = tune(model, grid, split.X, split.Y, cv=folds)
        prediction = found.best_estimator.predict(split.X_test)
    chosen = {k: v / split.level if k.startswith("lam") else v for k, v in found.best_params.items()}
    return Found(prediction, chosen, found.best_error, lam_on_edge(grid, found), warned)


def lam_on_edge(grid: dict[str, Any], found: Any) -> bool:
    """Whether a penalty was chosen at the end of its grid while the error, at the best of the rest, still falls there."""
    means = found.errors.mean(axis=1)
    for key in (k for k in grid if k.startswith("lam")):
        values = list(grid[key])
        risks = np.array([min(e for e, p in zip(means, found.params) if p[key] == v) for v in values])
        if on_edge(risks, int(np.argmin(risks))):
            return True
    return False


def fit_own(name: str, split: Split, folds: Any, coarse: bool = False, lams: Any = None) -> Found:
    """A system of this library."""
    parameters = owns(split.cloud)[name]
    grid = split.level * exponents(-5, 0.5, 1.0 if coarse else 0.5) if lams is None else lams
    model = ConstrainedRegressorCV(
        kernels=Linear(), lams=grid, cv=folds, select_on="constrained", rule="best", lam_per_task=False, **parameters
    )
    with expected() as warned:
        model.fit(split.X, split.Y)
        prediction = model.predict(split.X_test)
    best = model.best_params_
    chosen: dict[str, Any] = {"lam": float(best["lam"]) / split.level}
    chosen.update({k: float(best[k]) for k in ("delta", "mu") if best[k] is not None})
    if isinstance(parameters.get("intercepts"), list):
        chosen["base"] = "intercept" if best["intercept"] is True else "cloud"
    return Found(prediction, chosen, model.best_error_, "GridEdgeWarning" in warned, warned)
