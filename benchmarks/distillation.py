"""The extractive-distillation column: 3 inputs, 9 outputs, 6 balances that depend on the inputs.

    python benchmarks/distillation.py --data FOLDER        (FOLDER holds distillation/)

1. Trained on the first 1600 of the 2000 rows, with scikit-learn's KernelRidge and its own grid search in the same run.
2. Few rows, noise, missing outputs: the unconstrained prediction of a fit against the constrained one of the same fit, with
   the default loss and with the paper's.

Errors are mean nMSE on the 2308 rows that are not among the 2000, over the 8 outputs other than y5, which is rounding noise.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

import numpy as np
from metrics import VARIED, with_loss  # benchmarks/metrics.py, beside this script
from sklearn.kernel_ridge import KernelRidge as GridRidge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lawful import ConstrainedRegressor, Equations, KernelRidge, Square
from lawful.datasets import load_distillation
from lawful.metrics import constraint_violation, normalized_mse

PAPER = {"metric": "identity", "confidence": "scores"}
CASES = {  # name: rows, noise in standard deviations, fraction of the outputs missing
    "100 rows": (100, 0.0, 0.0),
    "100 rows, 5 % noise": (100, 0.05, 0.0),
    "200 rows, 5 % noise, half missing": (200, 0.05, 0.5),
}


def error(Y, prediction):
    return normalized_mse(Y[:, VARIED], prediction[:, VARIED])


def scaled_grid_ridge(seed):
    """What a scikit-learn user would write: standardised inputs, one bandwidth, one penalty, 5-fold grid search."""
    grid = {"kernelridge__alpha": np.logspace(-11, -5, 4), "kernelridge__gamma": np.logspace(-2, 1, 7)}
    pipeline = make_pipeline(StandardScaler(), GridRidge(kernel="rbf"))
    return GridSearchCV(pipeline, grid, cv=KFold(5, shuffle=True, random_state=seed), scoring="neg_mean_squared_error")


def full(data, seed):
    X, Y = data.X[:1600], data.Y[:1600]
    print(f"trained on {len(X)} rows, tested on {len(data.X_test)} unseen rows")
    print(f"{'predictor':<44}{'mean nMSE':>11}{'max violation':>15}{'fit s':>8}{'predict s':>11}")

    start = time.perf_counter()
    model = ConstrainedRegressor(Equations(data.equations)).fit(X, Y)
    fitted = time.perf_counter()
    model.predict(data.X_test)
    done = time.perf_counter()
    d = model.decode(data.X_test)
    center = model.objective(data.X_test).center
    paper = with_loss(model, Square(**PAPER), X, Y).predict(data.X_test)

    begin = time.perf_counter()
    by_error = ConstrainedRegressor(Equations(data.equations), surrogate=KernelRidge(tune="loo")).fit(X, Y)
    refitted = time.perf_counter()
    loo = by_error.predict(data.X_test)
    again = (refitted - begin, time.perf_counter() - refitted)

    begin = time.perf_counter()
    scale = Y.std(axis=0)  # equal say for every output
    search = scaled_grid_ridge(seed).fit(X, Y / scale)
    searched = time.perf_counter()
    peer = search.predict(data.X_test) * scale
    answered = time.perf_counter()

    rows = [
        ("lawful, default", d.c, fitted - start, done - fitted),
        ("  the same fit, unconstrained", center, None, None),
        ("  the same fit, the paper's loss", paper, None, None),
        ('lawful, KernelRidge(tune="loo")', loo, *again),
        ("scikit-learn KernelRidge, grid search", peer, searched - begin, answered - searched),
    ]
    for name, c, fit, predict in rows:
        worst = constraint_violation(model.constraint_, c, data.X_test)
        seconds = f"{'':>19}" if fit is None else f"{fit:>8.1f}{predict:>11.2f}"
        print(f"{name:<44}{error(data.Y_test, c):>11.1e}{worst:>15.1e}{seconds}")
    print(f"statuses: {dict(Counter(d.status.tolist()))}; grid search chose {search.best_params_}\n", flush=True)


def draw(data, n, noise, missing, seed):
    rng = np.random.default_rng(seed)
    pick = rng.choice(len(data.X), n, replace=False)
    Y = data.Y[pick] + noise * data.Y.std(axis=0) * rng.standard_normal((n, data.Y.shape[1]))
    gaps = rng.uniform(size=Y.shape) < missing
    gaps[0] = False
    Y[gaps] = np.nan
    return data.X[pick], Y


def few(data, n, noise, missing, seed):
    """Errors: unconstrained, default, paper; largest violation of the default."""
    X, Y = draw(data, n, noise, missing, seed)
    model = ConstrainedRegressor(Equations(data.equations)).fit(X, Y)
    d = model.decode(data.X_test)
    paper = with_loss(model, Square(**PAPER), X, Y).predict(data.X_test)
    predictions = (model.objective(data.X_test).center, d.c, paper)
    return *(error(data.Y_test, c) for c in predictions), d.residual.max(), (d.status != "ok").sum()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder that holds distillation/")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    data = load_distillation(Path(options.data) / "distillation")
    full(data, options.seed)

    print(f"{options.draws} random draws: median (worst) of the mean nMSE; ratio: median of unconstrained / constrained")
    print(
        f"{'training data':<35}{'unconstrained':>19}{'lawful, default':>19}{'ratio':>8}{'paper loss':>19}{'ratio':>8}"
        f"{'violation':>11}{'not ok':>8}"
    )
    for name, (n, noise, missing) in CASES.items():
        rows = np.array([few(data, n, noise, missing, options.seed + k) for k in range(options.draws)])
        free, lawful, paper = (f"{np.median(e):.1e} ({e.max():.1e})" for e in rows[:, :3].T)
        gain, gain_paper = np.median(rows[:, [0]] / rows[:, 1:3], axis=0)
        print(
            f"{name:<35}{free:>19}{lawful:>19}{gain:>8.2f}{paper:>19}{gain_paper:>8.2f}{rows[:, 3].max():>11.1e}"
            f"{int(rows[:, 4].sum()):>8d}",
            flush=True,
        )


if __name__ == "__main__":
    main()
