"""The rival systems beside ConstrainedRegressorCV: error on the distillation column, and time.

    python benchmarks/rivals.py --data FOLDER [--only distillation speed]

FOLDER holds `sarcos` and `distillation`. Two parts (`lawful reproduce sarcos` has their errors on Sarcos):

distillation  200 rows of 9 outputs learned with a Gaussian kernel whose length scales are tuned once (by KernelRidge); mean
              over outputs of the error in units of the standard deviation, and how much predictions break the balances.
speed         seconds for one fit of 7 tasks x 2000 points, linear kernel with separate inputs and Gaussian with shared ones.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lawful import ConstrainedRegressorCV, Equations, GridEdgeWarning, stack_tasks
from lawful.baselines import (
    ClusteredMTL,
    LatentTaskStructure,
    LinearRelations,
    MeanRegularized,
    OutputKernelLearning,
    ParametrizedRegressor,
    RelationshipLearning,
    SingleTask,
    WienerShrinkage,
    tune,
)
from lawful.datasets import load_distillation, load_sarcos
from lawful.kernels import Gaussian
from lawful.metrics import constraint_violation, normalized_mse

LAMS = np.logspace(-2, 2, 9)


def distillation(folder, n=200):
    data = load_distillation(folder / "distillation")
    low, high = data.X[:n].min(axis=0), data.X[:n].max(axis=0)
    X, X_test = ((Z - low) / (high - low) for Z in (data.X[:n], data.X_test))
    mean, unit = data.Y[:n].mean(axis=0), data.Y[:n].std(axis=0)
    Y = (data.Y[:n] - mean) / unit
    kernel = MeanRegularized(kernel=Gaussian()).fit(X, Y).kernel_
    lams = np.logspace(-8, -2, 7)
    law = Equations(data.equations)

    def square(h):
        """All nine outputs as a full quadratic in four latent variables: what one might write down without knowing the law."""
        pairs = [h[:, i] * h[:, j] for i in range(4) for j in range(i, 4)]
        return np.column_stack([h, *pairs])[:, :9]

    rivals = {
        "STL, ridge": (SingleTask(), {"lam": lams}),
        "MTL": (MeanRegularized(), {"lam": lams, "mu": [0.1, 1.0, 10.0]}),
        "CMTL": (ClusteredMTL(tol=1e-3), {"lam": lams, "n_clusters": [2, 4]}),
        "MTRL": (RelationshipLearning(tol=1e-3), {"lam1": lams[::2], "lam2": lams[::2]}),
        "FMTL, p = 2": (OutputKernelLearning(2), {"lam": lams}),
        "FMTL, p = 4/3": (OutputKernelLearning(4 / 3), {"lam": lams}),
        "A = inverse covariance": (LinearRelations(np.linalg.inv(np.cov(Y.T) + 1e-3 * np.eye(9))), {"lam": lams}),
        "Wiener shrinkage": (WienerShrinkage(), {"lam": lams}),
        "theta(h), a quadratic": (ParametrizedRegressor(square, 4, n_starts=2, tol=1e-2, max_iter=300), {"lam": lams[2::2]}),
    }
    print(
        f"\nDistillation, {n} rows, {len(X_test)} to test\n"
        f"{'':<26}{'nRMSE %':>10}{'median output':>15}{'violation':>12}{'s':>8}"
    )

    def show(name, prediction, begin, bound):
        each = 100 * np.sqrt(normalized_mse(data.Y_test, prediction, multioutput="raw"))
        violation = constraint_violation(bound, prediction, data.X_test, reduce="mean")
        print(
            f"{name:<26}{each.mean():>10.3f}{np.median(each):>15.3f}{violation:>12.1e}{time.perf_counter() - begin:>8.1f}",
            flush=True,
        )

    begin = time.perf_counter()
    settings = {"kernels": "auto", "cv": 5, "random_state": 0}
    model = ConstrainedRegressorCV(law, **settings).fit(data.X[:n], data.Y[:n])
    prediction, seconds = model.predict(data.X_test), time.perf_counter() - begin
    for name, (rival, grid) in rivals.items():
        start = time.perf_counter()
        grid = {**grid, "kernel": [kernel]}
        show(
            name,
            tune(rival, grid, X, Y, cv=5, random_state=0).best_estimator.predict(X_test) * unit + mean,
            start,
            model.best_estimator_.constraint_,
        )
    show("NL-MTL", prediction, time.perf_counter() - seconds, model.best_estimator_.constraint_)


def curve(h):
    """Seven outputs of three latent variables, for the time it takes."""
    return np.column_stack([np.sin(h), h, h[:, :1] * h[:, 1:2]])


def speed(folder, n=2000):
    data = load_sarcos(folder / "sarcos")
    X, Y = ((Z - Z.mean(axis=0)) / Z.std(axis=0) for Z in (data.X, data.Y))
    rng = np.random.default_rng(0)
    rows = [rng.permutation(len(X))[:n] for _ in range(7)]
    cloud = Y[rng.permutation(len(Y))[:1000]]
    cases = {
        "linear, separate inputs": (*stack_tasks([(X[r], Y[r, t]) for t, r in enumerate(rows)]), None, 1e-2),
        "Gaussian, shared inputs": (X[rows[0]], Y[rows[0]], Gaussian(10.0), 1e-4),
    }
    for title, (X_fit, Y_fit, kernel, lam) in cases.items():
        models = [
            SingleTask(lam),
            SingleTask(lam, loss="epsilon"),
            MeanRegularized(lam),
            ClusteredMTL(lam),
            RelationshipLearning(lam, lam),
            *(OutputKernelLearning(p, lam) for p in (2, 4 / 3, 8 / 7)),
            OutputKernelLearning(4 / 3, lam, loss="epsilon", max_iter=500),  # its gap says how far that gets
            LinearRelations(np.linalg.inv(np.cov(cloud.T)), lam),
            WienerShrinkage(cloud, lam),
            ParametrizedRegressor(curve, 3, lam=lam, n_starts=3),
        ]
        print(f"\n7 tasks x {n} points, {title}\n{'':<46}{'s':>8}{'gap/objective':>16}{'R2':>8}")
        for model in models:
            begin = time.perf_counter()
            model.set_params(kernel=kernel).fit(X_fit, Y_fit)
            seconds = time.perf_counter() - begin
            gap = model.gap_ / model.objective_ if hasattr(model, "gap_") else np.nan
            label = f"{type(model).__name__}({getattr(model, 'loss', 'square')}" + (
                f", p={model.p:.3g})" if hasattr(model, "p") else ")"
            )
            print(f"{label:<46}{seconds:>8.2f}{gap:>16.1e}{model.score(X, Y):>8.3f}", flush=True)
    few = stack_tasks([(X[r[:15]], Y[r[:15], t]) for t, r in enumerate(rows)])
    begin = time.perf_counter()
    model = LatentTaskStructure(0.01).fit(*few)
    print(
        f"\nLatentTaskStructure, 7 x 15 points: {time.perf_counter() - begin:.2f} s, "
        f"gap {model.gap_ / model.objective_:.1e} of the objective"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--only", nargs="*", default=["speed", "distillation"])
    options = parser.parse_args()
    warnings.simplefilter("ignore", GridEdgeWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)  # gaps are printed
    if "speed" in options.only:
        speed(options.data)
    if "distillation" in options.only:
        distillation(options.data)


if __name__ == "__main__":
    main()
