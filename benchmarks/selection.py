"""Model selection: what it costs beside its peers, and whether what it selects is good.

    python benchmarks/selection.py                 (speed, then curves)
    python benchmarks/selection.py --part speed
    python benchmarks/selection.py --part curves --seeds 20 --seed 1000

Speed: 30 bandwidths x 30 lambdas on the same 30 % hold-out, n = 1000, T = 2, two jobs: `ConstrainedRegressorCV`, scikit-learn's
GridSearchCV(KernelRidge), and himalaya's KernelRidgeCV looped over the bandwidths (`pip install himalaya`; left out with a line
that says so when it is not installed). The first two must select the same values with the same error; himalaya has no
hold-out of its own, so it gets the same split as an iterable.

Curves: on the circle, the two consistent lemniscates and the inconsistent pair that the paper prints, the default
`ConstrainedRegressorCV` against STL tuned by the same cross-validation (the same model without its law). With the
printed pair grids of delta and mu are given: the soft law has to save it.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.kernel_ridge import KernelRidge as SklearnRidge
from sklearn.model_selection import GridSearchCV, ShuffleSplit

from lawful import ConstrainedRegressorCV, DecodingWarning, Equations, GridEdgeWarning, Sphere
from lawful.datasets import make_curve

SIGMAS, LAMS = np.logspace(-1.5, 1, 30), np.logspace(-9, 0, 30)
SOFT = np.logspace(-5, 5, 30)
CURVES = ("circle", "lemniscate", "lemniscate_tall", "lemniscate_printed")
SIZES = (20, 50, 100, 200, 500)


def timed(function, repeats):
    """The fastest of several runs, and its answer."""
    best, answer = np.inf, None
    for _ in range(repeats):
        start = time.perf_counter()
        answer = function()
        best = min(best, time.perf_counter() - start)
    return best, answer


def ours(X, Y, cv, constraint, **options):
    model = ConstrainedRegressorCV(
        constraint,
        kernels=SIGMAS,
        lams=LAMS,
        intercepts=False,
        cv=cv,
        lam_per_task=False,
        scoring="neg_mean_squared_error",
        n_jobs=2,
        **options,
    )
    return model.fit(X, Y)


def grid_search(X, Y, cv):
    train = round(0.7 * len(X))
    grid = {"gamma": list(1 / SIGMAS**2), "alpha": list(train * LAMS)}
    search = GridSearchCV(SklearnRidge(kernel="rbf"), grid, cv=cv, scoring="neg_mean_squared_error", n_jobs=2)
    return search.fit(X, Y)


def himalaya_loop(X, Y, folds):
    from himalaya.kernel_ridge import KernelRidgeCV
    from himalaya.scoring import l2_neg_loss

    best = (np.inf, None, None)
    for sigma in SIGMAS:
        model = KernelRidgeCV(
            alphas=len(folds[0][0]) * LAMS,
            kernel="rbf",
            kernel_params={"gamma": 1 / sigma**2},
            cv=folds,
            solver_params={"score_func": l2_neg_loss, "local_alpha": False},
            Y_in_cpu=False,
        ).fit(X, Y)
        error = -float(np.mean(model.cv_scores_))
        best = min(best, (error, sigma, float(np.ravel(model.best_alphas_)[0]) / len(folds[0][0])), key=lambda b: b[0])
    return best


def speed(options):
    data = make_curve("circle", 1000, noise=0.05, random_state=options.seed)
    X, Y = data.X, data.Y
    cv = ShuffleSplit(1, test_size=0.3, random_state=options.seed)
    folds = list(cv.split(X))
    law = Sphere() if options.closed_form else Equations(data.equation)
    quick = 3
    ours(X[:50], Y[:50], cv, law)  # what is compiled once is compiled here
    mine, model = timed(lambda: ours(X, Y, folds, law), quick)
    soft, _ = timed(lambda: ours(X, Y, folds, law, deltas=SOFT, mus=SOFT), quick)
    joint, _ = timed(lambda: ours(X, Y, folds, law, deltas=SOFT, mus=SOFT, select_on="constrained"), 1)
    theirs, grid = timed(lambda: grid_search(X, Y, folds), 1)
    table = model.cv_results_
    error = table["mean_error"][table["law"] == "none"].min()
    print("30 bandwidths x 30 lambdas, one 30 % hold-out, n = 1000, T = 2, two jobs (seconds, fastest of 3 for ours)")
    print(f"{'':<46}{'seconds':>9}{'ratio':>8}{'sigma':>9}{'lambda':>10}{'hold-out MSE':>14}")

    def line(name, seconds, sigma, lam, mse):
        print(f"{name:<46}{seconds:>9.2f}{seconds / mine:>8.1f}{sigma:>9.3g}{lam:>10.2g}{mse:>14.8f}", flush=True)

    line("ConstrainedRegressorCV", mine, model.best_params_["kernel"].sigma, model.best_params_["lam"], error)
    best = grid.best_params_
    line("GridSearchCV(KernelRidge)", theirs, best["gamma"] ** -0.5, best["alpha"] / len(folds[0][0]), -grid.best_score_)
    try:
        peer, (peer_error, sigma, lam) = timed(lambda: himalaya_loop(X, Y, folds), 2)
        line("himalaya KernelRidgeCV, loop over bandwidths", peer, sigma, lam, peer_error)
    except ImportError:
        print("himalaya is not installed (pip install himalaya): not compared")
    print(f"selected errors differ from GridSearchCV by {abs(error / -grid.best_score_ - 1):.1e} (relative)")
    print(f"30 deltas and 30 mus on top: {soft:.2f} s, {soft / mine:.2f} times the time without")
    print(f"the same searched jointly with bandwidth and lambda (select_on='constrained'): {joint:.2f} s")


def one(curve, n, seed):
    data = make_curve(curve, n, noise=0.05, random_state=seed)
    grids = {"deltas": SOFT, "mus": SOFT} if curve == "lemniscate_printed" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecodingWarning)
        warnings.simplefilter("ignore", GridEdgeWarning)
        model = ConstrainedRegressorCV(Equations(data.equation), **grids).fit(data.X, data.Y)
        free = model.objective(data.X_test).center
        mse = [float(np.mean((p - data.Y_test) ** 2)) for p in (free, model.predict(data.X_test))]
    return mse


def curves(options):
    print(f"\nTest MSE against STL tuned by the same leave-one-out, noise 0.05, {options.seeds} seeds from {options.seed}")
    print(f"{'curve':<20}{'n':>5}{'STL median':>12}{'CV median':>12}{'median ratio':>14}{'worst':>8}{'wins':>9}")
    wins = {}
    for curve in CURVES:
        for n in SIZES:
            seeds = range(options.seed, options.seed + options.seeds)
            mse = np.array(Parallel(n_jobs=options.jobs)(delayed(one)(curve, n, s) for s in seeds))
            ratio = mse[:, 1] / mse[:, 0]
            won = int((ratio < 1).sum())
            medians = np.median(mse, axis=0)
            print(
                f"{curve:<20}{n:>5}{medians[0]:>12.2e}{medians[1]:>12.2e}{np.median(ratio):>14.3f}{ratio.max():>8.2f}"
                f"{won:>5}/{len(ratio)}",
                flush=True,
            )
            if n >= 50 and curve != "lemniscate_printed":
                wins[curve, n] = won / len(ratio)
    print(f"share of runs with n >= 50 on the consistent curves that beat STL: {np.mean(list(wins.values())):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("speed", "curves", "all"), default="all")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--closed-form", action="store_true", help="project onto the circle in closed form, not as an equation")
    options = parser.parse_args()
    if options.part in ("speed", "all"):
        speed(options)
    if options.part in ("curves", "all"):
        curves(options)


if __name__ == "__main__":
    main()
