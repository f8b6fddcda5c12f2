"""The paper's Sarcos experiment (tab:real-data): seven torques of a robot arm, 15 training points for each.

    python benchmarks/sarcos.py --data FOLDER         (FOLDER holds sarcos/)

Every torque has 15 training points of its own (no input is shared), kernels are linear, and C is a cloud of 1000 output
vectors that are neither in the training nor in the test set; all remaining rows are the test set. Every method chooses one
lambda from the same grid on the same folds by the held-out error of what it predicts. Explained variance in per cent (the mean
over the torques), mean and standard deviation over splits; gains over STL are paired: mean, standard error, splits won. Inputs
are scaled to unit variance on the training rows (--raw: not at all; the paper does not say what it did).

Wiener's filter and STL around the cloud's mean see the same 1000 outputs as the methods of the paper: they belong beside them.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from lawful import ConstrainedRegressorCV, GridEdgeWarning, PointCloud, Square, stack_tasks
from lawful.datasets import load_sarcos
from lawful.kernels import Linear
from lawful.metrics import explained_variance

LAMS = np.logspace(-3, 3, 25)  # k(x, x) is about 20, and the paper's [1e-9, 1] too low
SOFT = np.logspace(-5, 5, 30)  # the paper's grid of delta and mu


def split(data, seed, raw=False, n_train=15, n_cloud=1000):
    """X and Y (with NaN) to learn from, the cloud, X and Y to test on."""
    order = np.random.default_rng(seed).permutation(len(data.X))
    T = data.Y.shape[1]
    own = order[: n_train * T].reshape(T, n_train)
    cloud, test = order[n_train * T :][:n_cloud], order[n_train * T + n_cloud :]
    X, Y = stack_tasks([(data.X[rows], data.Y[rows, t]) for t, rows in enumerate(own)])
    center, unit = (0.0, 1.0) if raw else (X.mean(axis=0), X.std(axis=0))
    return (X - center) / unit, Y, data.Y[cloud], (data.X[test] - center) / unit, data.Y[test]


def methods(points):
    """name -> parameters of ConstrainedRegressorCV."""
    cloud, mean = PointCloud(points), points.mean(axis=0)
    half = Square(confidence=0.5)
    return {
        "STL": {},
        "STL around the cloud's mean": {"intercepts": mean},
        "NL-MTL": {"constraint": cloud},
        "NL-MTL [R], delta": {"constraint": cloud, "deltas": SOFT},
        "NL-MTL [P], mu": {"constraint": cloud, "mus": SOFT},
        "Wiener": {"constraint": cloud, "decoder": "wiener", "loss": half},
        "posterior, intercept": {"constraint": cloud, "decoder": "posterior", "loss": half},
        "posterior": {"constraint": cloud, "decoder": "posterior", "loss": half, "intercepts": [True, mean]},
    }


def one_split(data, seed, cv=5, raw=False, names=None):
    """Explained variance (%), averaged and pooled, and seconds, for each method."""
    X, Y, points, X_test, Y_test = split(data, seed, raw)
    found = {}
    for name, parameters in methods(points).items():
        if names and name not in names:
            continue
        begin = time.perf_counter()
        model = ConstrainedRegressorCV(
            kernels=Linear(),
            lams=LAMS,
            cv=cv,
            select_on="constrained",
            rule="best",
            lam_per_task=False,
            random_state=seed,
            **parameters,
        )
        c = model.fit(X, Y).predict(X_test)
        seconds = time.perf_counter() - begin
        found[name] = [100 * explained_variance(Y_test, c, multioutput=how) for how in ("average", "pooled")] + [seconds]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cv", type=int, default=5)
    parser.add_argument("--raw", action="store_true", help="inputs as they are")
    parser.add_argument("--only", nargs="*", help="names of methods; all by default")
    options = parser.parse_args()
    warnings.simplefilter("ignore", GridEdgeWarning)  # delta and mu often end where nothing changes any more
    data = load_sarcos(Path(options.data) / "sarcos")
    runs = [one_split(data, options.seed + k, options.cv, options.raw, options.only) for k in range(options.splits)]
    print(f"{'':<30}{'explained variance %':>22}{'pooled':>9}{'gain over STL':>18}{'won':>8}{'s':>8}")
    for name in runs[0]:
        average, pooled, seconds = np.array([run[name] for run in runs]).T
        line = f"{name:<30}{average.mean():>15.1f} +/- {average.std():.1f}{pooled.mean():>9.1f}"
        if name != "STL" and "STL" in runs[0]:
            gain = average - [run["STL"][0] for run in runs]
            error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
            line += f"{gain.mean():>+11.1f} +/- {error:.1f}{(gain > 0).sum():>5}/{len(gain)}"
        else:
            line += " " * 25
        print(line + f"{seconds.mean():>8.2f}")


if __name__ == "__main__":
    main()
