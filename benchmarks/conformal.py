"""Prediction sets inside the law: joint coverage, size and speed, beside boxes that know no law, in the same run.

    python benchmarks/conformal.py --data FOLDER --speed        (FOLDER holds distillation/ and sarcos/; else only the curves)

Every repetition draws new rows, learns on some, calibrates on others and tests on the rest; the kernel is tuned once, on other
rows. Boxes are around the unconstrained prediction of the same fit, calibrated on the same rows:

    Bonferroni   |y_t - w_t| <= its own quantile at level 1 - alpha/T, for each output (by MAPIE too, where it is installed)
    largest      max_t |y_t - w_t| / sigma_t <= one quantile at level 1 - alpha: the box of exactly the same coverage

Covered is the label y by a box. By a set inside the law it is y where labels obey the law (circle and lemniscate "lawful",
distillation), and else the lawful part of y, the point of C nearest to it (circle and lemniscate "noisy", as in the paper;
Sarcos, where C is a cloud of observed torques and no new label is one of them).

Sizes, like with like. A box in T dimensions and an arc have no measure in common, so there are two comparisons. As regions of
outputs, what a user reads off: `width`, the mean width of an output (bounds of the set against sides of the box), and `area`,
the product of the widths, each as the mean over test rows of the ratio set / box. And `law`, how much of C is inside (arc
length, or points of the cloud), of the set and of the box *after* it was cut with the law, which no box does by itself. On
curves this has a floor, printed as "shortest possible": the arcs of one who knows the truth and the noise, 1.645 standard
deviations to each side. On the circle with noise in both outputs a box cut with the law is 1.122 x 2 x 1.949 standard
deviations long, so that no score can bring the ratio below 0.752.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from lawful import ConformalRegressor, ConstrainedRegressor, Equations, KernelRidge, PointCloud
from lawful.datasets import load_distillation, load_sarcos
from lawful.datasets.synthetic import CURVES

try:
    from mapie.regression import SplitConformalRegressor
except ImportError:
    SplitConformalRegressor = None

ALPHA = 0.1


class Output:
    """One output of the unconstrained prediction as a fitted regressor, for MAPIE."""

    is_fitted = True

    def __init__(self, model, t):
        self.model, self.t = model, t

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.model.objective(X).center[:, self.t]


def rank(scores, alpha):
    """The ceil((1 - alpha)(n + 1))-th smallest score."""
    k = int(np.ceil((1 - alpha) * (len(scores) + 1) - 1e-9))
    return np.sort(scores)[k - 1] if k <= len(scores) else np.inf


def boxes(model, X, Y, X_test):
    """Half widths (T,) of each box, and its center (m, T)."""
    w, T = model.objective(X).center, Y.shape[1]
    r = np.abs(Y - w)
    sigma = np.sqrt((r**2).mean(axis=0))
    found = {
        "Bonferroni": np.array([rank(r[:, t], ALPHA / T) for t in range(T)]),
        "largest": rank((r / sigma).max(axis=1), ALPHA) * sigma,
    }
    if SplitConformalRegressor is not None:
        half = []
        for t in range(T):
            peer = SplitConformalRegressor(Output(model, t), confidence_level=1 - ALPHA / T, prefit=True)
            _, interval = peer.conformalize(X, Y[:, t]).predict_interval(X_test[:2])
            half.append((interval[0, 1, 0] - interval[0, 0, 0]) / 2)
        found["MAPIE, Bonferroni"] = np.array(half)
    return found, model.objective(X_test).center


# ---------------------------------------------------------------------- problems: draw(rng) -> X, Y; law; curve points


class Curve:
    def __init__(self, name, lawful):
        self.truth, self.equation = CURVES[name]
        self.name, self.lawful = f"{name}, {'lawful' if lawful else 'noisy'} labels", lawful
        self.rows = (100, 100, 200)
        self.law = self.truth(np.linspace(-np.pi, np.pi, 4001)[:-1])

    def draw(self, rng, n):
        x = rng.uniform(-np.pi, np.pi, n)
        noise = 0.05 * rng.standard_normal((n, 2))
        return x[:, None], self.truth(x + noise[:, 0]) if self.lawful else self.truth(x) + noise

    def constraint(self, rng):
        return Equations(self.equation)

    def floor(self):
        """The share of the law in the shortest arcs of 90 %, for one who knows the truth and the noise."""
        steps = np.diff(np.r_[self.law, self.law[:1]], axis=0)
        length = np.sqrt((steps**2).sum(axis=1))
        reach = 1.645 * 0.05
        if not self.lawful:
            return 2 * reach / length.sum()
        return 2 * reach / (2 * np.pi)  # the angle moves, and all angles are as likely


class Table:
    """Rows of a table, drawn without replacement."""

    def __init__(self, name, X, Y, rows, law):
        self.name, self.X, self.Y, self.rows, self._law, self.law = name, X, Y, rows, law, None

    def draw(self, rng, n):
        pick = rng.permutation(len(self.X))[:n]
        self.rest = np.setdiff1d(np.arange(len(self.X)), pick)
        return self.X[pick], self.Y[pick]

    def constraint(self, rng):
        if self._law is not None:
            return Equations(self._law)
        self.law = self.Y[rng.permutation(self.rest)[:2000]]  # rows that are in none of the parts
        return PointCloud(self.law)


def tuned(problem, rng):
    """A ridge with kernel and lambda fixed, chosen by evidence on rows that are not used again."""
    X, Y = problem.draw(rng, problem.rows[0])
    ridge = KernelRidge(random_state=0).fit(X, Y)
    return KernelRidge(kernel=list(ridge.kernels_), lam=np.maximum(ridge.lam_, 1e-11))


def repetition(problem, ridge, rng, method, sizes=False):
    n_train, n_cal, n_test = problem.rows
    X, Y = problem.draw(rng, sum(problem.rows))
    law = problem.constraint(rng)
    train, cal = np.arange(n_train), np.arange(n_train, n_train + n_cal)
    X_test, Y_test = X[-n_test:], Y[-n_test:]
    model = ConformalRegressor(
        ConstrainedRegressor(law, surrogate=ridge),
        ALPHA,
        method=method,
        cv=[(train, cal)] if method == "split" else None,
        random_state=int(rng.integers(2**31)),
    ).fit(X[: n_train + n_cal], Y[: n_train + n_cal])
    sets = model.predict_set(X_test)
    out = {"coverage": sets.contains(X_test, Y_test).mean(), "labels": model.labels_, "kind": sets.kind}
    if not sizes:
        return out
    bounds = sets.intervals()
    width = bounds[:, :, 1] - bounds[:, :, 0]
    found, center = boxes(model.estimator_, X[cal], Y[cal], X_test)
    for name, half in found.items():
        use = half > 1e-15 * np.abs(center).max(axis=0)  # an output that is rounding noise has no width
        ratio = width[:, use] / (2 * half[use])
        within = (np.abs(Y_test - center) <= half).all(axis=1)
        size = {"coverage": within.mean(), "width": ratio.mean(), "area": np.prod(ratio, axis=1).mean()}
        if problem.law is not None:
            inside = (np.abs(problem.law[None] - center[:, None]) <= half).all(axis=2)
            size["law of box"] = inside.mean()
        out[name] = size
    if problem.law is not None and sets.kind == "curves":
        steps = np.diff(np.r_[problem.law, problem.law[:1]], axis=0)
        out["law"] = sets.volume().mean() / np.sqrt((steps**2).sum(axis=1)).sum()
    elif problem.law is not None:
        out["law"] = sets.volume().mean() / len(problem.law)
    return out


def report(problem, rows, boxes_of):
    coverage = np.array([row["coverage"] for row in rows])
    spread = coverage.std() / np.sqrt(len(rows))
    print(f"{problem.name:<28}{rows[0]['labels']:<8}{'set in the law':<20}{coverage.mean():>8.1%} +- {spread:.1%}", end="")
    rows = [row for row in rows if boxes_of[0] in row]
    law = np.mean([row["law"] for row in rows]) if "law" in rows[0] else np.nan
    print(f"{law:>12.2%}" if np.isfinite(law) else "")
    if hasattr(problem, "floor"):
        print(f"{'':<36}{'shortest possible':<36}{problem.floor():>12.2%}")
    for name in boxes_of:
        mean = {key: np.mean([row[name][key] for row in rows]) for key in rows[0][name]}
        line = f"{'':<36}{'box, ' + name:<20}{mean['coverage']:>8.1%}{'':>8}"
        line += f"{mean['law of box']:>12.2%}{law / mean['law of box']:>8.2f}" if "law of box" in mean else f"{'':>20}"
        print(f"{line}{mean['width']:>8.2f}{mean['area']:>10.1e}", flush=True)


def speed(problems, rng):
    print("\n10,000 rows: set, contains, bounds of outputs, volume; seconds of the processor, one thread")
    for problem in problems:
        X, Y = problem.draw(rng, problem.rows[0] + problem.rows[1])
        model = ConformalRegressor(ConstrainedRegressor(problem.constraint(rng)), ALPHA, random_state=0).fit(X, Y)
        X, Y = problem.draw(rng, min(10_000, getattr(problem, "X", np.empty(10_000)).shape[0]))
        again = np.resize(np.arange(len(X)), 10_000)
        X, Y, took = X[again], Y[again], []
        start = time.process_time()
        sets = model.predict_set(X)
        took.append(time.process_time() - start)
        for name, options in (("contains", {"X": Y}), ("intervals", {}), ("volume", {"n": 64})):
            start = time.process_time()
            getattr(sets, name)(**options)
            took.append(time.process_time() - start)
        print(f"{problem.name:<28}" + "".join(f"{t:>8.2f}" for t in took), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder that holds distillation/ and sarcos/")
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--sizes", type=int, default=40, help="repetitions in which sizes are measured too, and the boxes")
    parser.add_argument("--plus", type=int, default=0, help="repetitions of cv+ (5 folds), which fits six times")
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--speed", action="store_true", help="also time 10,000 rows; with --repetitions 0 nothing else")
    parser.add_argument("--only", nargs="*", help="words in the names of problems")
    options = parser.parse_args()
    problems = [Curve(name, lawful) for name in ("circle", "lemniscate") for lawful in (False, True)]
    if options.data:
        column = load_distillation(Path(options.data) / "distillation")
        X, Y = np.concatenate([column.X, column.X_test]), np.concatenate([column.Y, column.Y_test])
        problems.append(Table("distillation", X, Y, (200, 100, 500), column.equations))
        arm = load_sarcos(options.data)
        problems.append(Table("Sarcos", arm.X, arm.Y, (150, 100, 300), None))
    if options.only:
        problems = [p for p in problems if any(word in p.name for word in options.only)]
    peers = ["Bonferroni", "largest", *(["MAPIE, Bonferroni"] if SplitConformalRegressor is not None else [])]
    print(
        f"alpha = {ALPHA}, {options.repetitions} repetitions, sizes and boxes in {options.sizes} of them; ratios are set / box"
    )
    print(f"{'problem':<28}{'labels':<8}{'':<20}{'coverage':>8}{'':>8}{'law inside':>12}{'ratio':>8}{'width':>8}{'area':>10}")
    for number, problem in enumerate(problems if options.repetitions else []):
        rng = np.random.default_rng([options.seed, number])
        ridge = tuned(problem, rng)
        rows = [repetition(problem, ridge, rng, "split", k < options.sizes) for k in range(options.repetitions)]
        report(problem, rows, peers)
        if options.plus:
            rows = [repetition(problem, ridge, rng, "cv+") for _ in range(options.plus)]
            mean = np.mean([row["coverage"] for row in rows])
            print(f"{'':<36}{'set in the law, cv+':<20}{mean:>8.1%}   ({options.plus} repetitions)", flush=True)
    if options.speed:
        speed(problems, np.random.default_rng([options.seed, 99]))


if __name__ == "__main__":
    main()
