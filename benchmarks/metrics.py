"""Which output metric and which confidence? Test error of each choice relative to the unconstrained prediction.

    python benchmarks/metrics.py --data FOLDER        (FOLDER holds distillation/ and sarcos/)

Every cell is the median over draws of (error with the constraint) / (error without it), same fit of the regressions: below 1
the constraint helps. The default of `Square` is the choice that is best or nearly best everywhere.
"""

from __future__ import annotations

import argparse
import copy
from pathlib import Path

import numpy as np

from lawful import ConstrainedRegressor, Equations, PointCloud, Square
from lawful.datasets import load_distillation, load_sarcos, make_curve
from lawful.estimators.base import calibrate
from lawful.metrics import mean_squared_error, normalized_mse
from lawful.tasks import Tasks

CHOICES = [(m, c) for m in ("identity", "variance", "residual", "residual_full", "auto") for c in ("scores", "variance")]
VARIED = [0, 1, 2, 3, 5, 6, 7, 8]  # the distillation output y5 is rounding noise


def with_loss(model, loss, X, Y):
    """The same fitted regressions, decoded with another loss."""
    tasks = Tasks.of(X, Y)
    calibrate(loss, tasks, model.surrogate_, model.constraint_)
    other = copy.copy(model)
    other.loss_ = loss
    return other


def ratios(constraint, X, Y, X_test, Y_test, error):
    model = ConstrainedRegressor(constraint, on_failure="raise").fit(X, Y)
    base = error(Y_test, with_loss(model, Square("identity"), X, Y).objective(X_test).center)
    return [base] + [error(Y_test, with_loss(model, Square(m, c), X, Y).predict(X_test)) / base for m, c in CHOICES]


def distillation(folder, n, noise, missing, seed):
    data = load_distillation(folder)
    rng = np.random.default_rng(seed)
    pick = rng.choice(2000, n, replace=False)
    Y = data.Y[pick] + noise * data.Y.std(axis=0) * rng.standard_normal((n, 9))
    gaps = rng.uniform(size=Y.shape) < missing
    gaps[0] = False
    Y[gaps] = np.nan
    error = lambda y, p: normalized_mse(y[:, VARIED], p[:, VARIED])  # noqa: E731
    return Equations(data.equations), data.X[pick], Y, data.X_test, data.Y_test, error


def curve(name, n, noise, missing, seed):
    data = make_curve(name, n, noise=noise, missing=missing, random_state=seed)
    return Equations(data.equation), data.X, data.Y, data.X_test, data.Y_test, mean_squared_error


def uneven(n, seed):
    """A circle whose second output is ten times noisier: the metric has to notice."""
    data = make_curve("circle", n, noise=0.0, random_state=seed)
    rng = np.random.default_rng(seed + 1)
    Y = data.Y + rng.standard_normal(data.Y.shape) * [0.03, 0.3]
    return Equations(data.equation), data.X, Y, data.X_test, data.Y_test, mean_squared_error


def sarcos(folder, n, seed):
    data = load_sarcos(folder)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(data.X))
    train, cloud, test = order[:n], order[n : n + 1000], order[n + 1000 : n + 3000]
    return PointCloud(data.Y[cloud]), data.X[train], data.Y[train], data.X[test], data.Y[test], normalized_mse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    column, arm = Path(options.data) / "distillation", Path(options.data) / "sarcos"
    cases = {
        "distillation 50": lambda s: distillation(column, 50, 0.0, 0.0, s),
        "distillation 100": lambda s: distillation(column, 100, 0.0, 0.0, s),
        "distillation 50, 5% noise": lambda s: distillation(column, 50, 0.05, 0.0, s),
        "distillation 100, 5% noise": lambda s: distillation(column, 100, 0.05, 0.0, s),
        "distillation 200, 5%, half missing": lambda s: distillation(column, 200, 0.05, 0.5, s),
        "circle 30": lambda s: curve("circle", 30, 0.05, 0.0, s),
        "circle 100": lambda s: curve("circle", 100, 0.05, 0.0, s),
        "circle 100, half missing": lambda s: curve("circle", 100, 0.05, 0.5, s),
        "circle 100, uneven noise": lambda s: uneven(100, s),
        "lemniscate 50": lambda s: curve("lemniscate", 50, 0.05, 0.0, s),
        "lemniscate 200": lambda s: curve("lemniscate", 200, 0.05, 0.0, s),
        "tall lemniscate 100, 0.2 noise": lambda s: curve("lemniscate_tall", 100, 0.2, 0.0, s),
        "sarcos cloud 100": lambda s: sarcos(arm, 100, s),
    }
    print(f"{'':<36}{'free':>9}" + "".join(f"{m[:8] + ('_f' if 'full' in m else '') + '/' + c[:3]:>14}" for m, c in CHOICES))
    table = []
    for name, case in cases.items():
        rows = np.array([ratios(*case(options.seed + k)) for k in range(options.draws)])
        table.append(np.median(rows, axis=0))
        print(f"{name:<36}{table[-1][0]:>9.1e}" + "".join(f"{r:>14.3f}" for r in table[-1][1:]), flush=True)
    means = np.exp(np.mean(np.log(np.array(table)[:, 1:]), axis=0))
    print(f"{'geometric mean of the ratios':<45}" + "".join(f"{r:>14.3f}" for r in means))


if __name__ == "__main__":
    main()
