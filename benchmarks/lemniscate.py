"""Projection onto the lemniscate y1^4 = y1^2 - y2^2: accuracy against 200,000-point enumeration, speed against scipy SLSQP.

    python benchmarks/lemniscate.py

20,000 points at noise 0.05, at noise 0.22 and around the crossing. SLSQP is timed on some of the same points in the same
run, from one start each (the point itself), with the exact Jacobians: the way most people would write it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import cKDTree

from lawful import Equations, project

EQUATION = "y1**4 = y1**2 - y2**2"


def curve(angle: np.ndarray) -> np.ndarray:
    return np.c_[np.sin(angle), np.sin(2 * angle) / 2]


def slsqp(w: np.ndarray) -> np.ndarray:
    law = {
        "type": "eq",
        "fun": lambda c: c[0] ** 4 - c[0] ** 2 + c[1] ** 2,
        "jac": lambda c: np.array([4 * c[0] ** 3 - 2 * c[0], 2 * c[1]]),
    }
    fun = lambda c: np.sum((c - w) ** 2)  # noqa: E731
    return minimize(fun, w, jac=lambda c: 2 * (c - w), constraints=[law], method="SLSQP", options={"ftol": 1e-14}).x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--slsqp-rows", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    m = options.rows
    dense = cKDTree(curve(np.linspace(-np.pi, np.pi, 200_001)[:-1]))
    clouds = {
        "noise 0.05": curve(rng.uniform(-np.pi, np.pi, m)) + 0.05 * rng.standard_normal((m, 2)),
        "noise 0.22": curve(rng.uniform(-np.pi, np.pi, m)) + 0.22 * rng.standard_normal((m, 2)),
        "crossing": 0.05 * rng.standard_normal((m, 2)),
    }
    print(f"{m} rows each; excess = objective minus that of the best of 200,000 points of the curve")
    header = f"{'points':<12}{'worst excess':>14}{'rows > 1e-6':>13}{'max residual':>14}{'us/row':>9}"
    print(header + f"{'SLSQP us/row':>14}{'ratio':>8}{'SLSQP wrong':>13}")
    total_mine = total_slow = 0.0
    for name, w in clouds.items():
        law = Equations(EQUATION).fit(w[:100])
        project(w[:10], law)  # compile, as fit does in an estimator
        start = time.perf_counter()
        d = project(w, law, certificate=True)
        mine = (time.perf_counter() - start) / m
        excess = d.value - dense.query(w)[0] ** 2
        some = w[: options.slsqp_rows]
        start = time.perf_counter()
        theirs = np.array([slsqp(p) for p in some])
        slow = (time.perf_counter() - start) / len(some)
        total_mine, total_slow = total_mine + mine, total_slow + slow
        wrong = np.mean(((theirs - some) ** 2).sum(1) > d.value[: len(some)] + 1e-6)
        print(
            f"{name:<12}{excess.max():>14.1e}{(excess > 1e-6).sum():>13d}{d.residual.max():>14.1e}{mine * 1e6:>9.1f}"
            f"{slow * 1e6:>14.0f}{slow / mine:>8.0f}{wrong:>12.1%}"
        )
    print(f"{'all points':<12}{'':>41}{total_mine / 3 * 1e6:>9.1f}{total_slow / 3 * 1e6:>14.0f}{total_slow / total_mine:>8.0f}")


if __name__ == "__main__":
    main()
