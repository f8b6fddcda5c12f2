"""The laws of other fields beside the usual tools of these fields: errors over fresh seeds, and the time of two projections.

    python benchmarks/fields.py [--seeds 10] [--first 100] [--peers]

The errors are those of the gallery's pages (`examples/plot_*.py`, which are run, and whose `compare(seed)` is called), which
were written with seed 0; figures here are means over seeds from 100 on. `cvxpy` is asked too where it is installed.
With --peers, `hierarchicalforecast` (which must be installed) reconciles the same base forecasts with its own MinT, and our
`Hierarchy` in the metric of the covariance that it used.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from sklearn.isotonic import IsotonicRegression

from lawful import CorrelationMatrices, Hierarchy, Monotone, project

try:
    import cvxpy
except ImportError:
    cvxpy = None

FOLDER = Path(__file__).resolve().parents[1] / "examples"
EXAMPLES = ("reconciliation", "quantiles", "shapes", "compositions", "correlations", "margins", "network_flow", "orientations")


def errors(name: str, seeds: range) -> None:
    page = importlib.import_module(f"plot_{name}")
    found = [page.compare(seed) for seed in seeds]
    print(f"\n{name}: means over {len(seeds)} seeds, largest violations")
    print(f"{'':<44}{'error':>12}{'violation':>12}")
    for way in found[0]:
        error, violation = np.mean([f[way][0] for f in found]), max(f[way][1] for f in found)
        print(f"{way:<44}{error:>12.5g}{violation:>12.1e}")


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def monotone(rows: int = 2000, T: int = 20) -> None:
    rng = np.random.default_rng(100)
    w, a = rng.standard_normal((rows, T)), rng.uniform(0.1, 10, (rows, T))
    Q = np.linalg.inv(np.cov(rng.standard_normal((T, 3 * T))))
    project(w[:2], Monotone(), weights=a[:2]), project(w[:2], Monotone(), metric=Q)  # compiled
    ours, seconds = timed(lambda: project(w, Monotone(), weights=a))
    fit = lambda i: IsotonicRegression().fit(np.arange(T), w[i], sample_weight=a[i]).predict(np.arange(T))  # noqa: E731
    theirs, other = timed(lambda: np.stack([fit(i) for i in range(rows)]))
    print(f"\nmonotone, {rows} rows of {T}: lawful {seconds:.3f} s, scikit-learn row by row {other:.3f} s, ", end="")
    print(f"largest difference {np.abs(ours - theirs).max():.1e}")
    full, seconds = timed(lambda: project(w, Monotone(), metric=Q))
    print(f"  in a full metric: lawful {seconds:.3f} s", end="")
    if cvxpy is None:
        print("; cvxpy is not installed")
        return
    c, p, R = cvxpy.Variable(T), cvxpy.Parameter(T), np.linalg.cholesky(Q).T
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(R @ (c - p))), [cvxpy.diff(c) >= 0])
    some = 50

    def solve(i: int) -> np.ndarray:
        p.value = w[i]
        problem.solve(solver="CLARABEL")
        return c.value

    theirs, other = timed(lambda: np.stack([solve(i) for i in range(some)]))
    print(
        f", cvxpy {other * rows / some:.1f} s (from {some} rows), largest difference {np.abs(full[:some] - theirs).max():.1e}"
    )


def correlations(rows: int = 100, n: int = 10) -> None:
    rng = np.random.default_rng(100)
    M = rng.uniform(-1, 1, (rows, n, n))
    M = (M + M.transpose(0, 2, 1)) / 2
    M[:, np.arange(n), np.arange(n)] = 1.0
    ours, seconds = timed(lambda: project(M.reshape(rows, -1), CorrelationMatrices()))
    theirs, other = timed(lambda: alternating(M))
    print(f"\ncorrelations, {rows} matrices of {n} x {n}: lawful {seconds:.3f} s, ", end="")
    print(f"alternating projections {other:.3f} s, largest difference {np.abs(ours - theirs.reshape(rows, -1)).max():.1e}")


def alternating(M: np.ndarray, steps: int = 2000) -> np.ndarray:
    """Higham (2002), all matrices at once."""
    Y, D, eye = M.copy(), np.zeros_like(M), np.eye(M.shape[1])
    for _ in range(steps):
        R = Y - D
        values, V = np.linalg.eigh(R)
        X = (V * np.maximum(values, 0)[:, None, :]) @ V.transpose(0, 2, 1)
        D, Y = X - R, X * (1 - eye) + eye
        if np.abs(X - Y).max() < 1e-9:
            break
    return Y


def peers(seeds: range) -> None:
    """hierarchicalforecast's own MinT against `Hierarchy`, over random hierarchies of three levels."""
    from hierarchicalforecast.methods import MinTrace

    print("\nhierarchicalforecast's MinTrace and Hierarchy in its covariance: largest relative difference")
    for method in ("ols", "wls_struct", "wls_var", "mint_cov", "mint_shrink"):
        worst = 0.0
        for seed in seeds:
            rng = np.random.default_rng(seed)
            n = int(rng.integers(4, 12))
            half = int(rng.integers(1, n))
            S = np.concatenate(
                [np.ones((1, n)), (np.arange(n) < half)[None] * 1.0, (np.arange(n) >= half)[None] * 1.0, np.eye(n)]
            )
            T = len(S)
            truth = rng.uniform(1, 100, (n, 80))
            mixed = rng.standard_normal((T, T))
            fitted = S @ truth + mixed @ rng.standard_normal((T, 80))
            base = S @ rng.uniform(1, 100, (n, 20)) + mixed @ rng.standard_normal((T, 20))
            theirs = MinTrace(method=method)
            found = theirs.fit_predict(S=S, y_hat=base, y_insample=S @ truth, y_hat_insample=fitted)["mean"]
            ours = project(base.T, Hierarchy(S), metric=np.linalg.inv(theirs.W)).T
            worst = max(worst, float(np.abs(ours - found).max() / np.abs(found).max()))
        print(f"  {method:<14}{worst:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=100, help="the first seed")
    parser.add_argument("--peers", action="store_true", help="ask hierarchicalforecast, and nothing else")
    parser.add_argument("--only", nargs="*", default=[*EXAMPLES, "speed"])
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    if options.peers:
        peers(seeds)
        return
    sys.path.insert(0, str(FOLDER))
    matplotlib.use("Agg")  # the pages draw
    for name in EXAMPLES:
        if name in options.only:
            errors(name, seeds)
    if "speed" in options.only:
        monotone()
        correlations()


if __name__ == "__main__":
    main()
