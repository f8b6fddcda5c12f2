"""State of the IEEE 14-bus grid from noisy meters: voltages and powers that obey the power-flow equations.

    python examples/power_flow.py

Inputs are three numbers that an operator knows: how much of their usual load two areas take, and their power factor. Outputs
are 56: at each of 14 buses the voltage (magnitude and angle) and the power (active and reactive) that it sends into the grid.
The law has 31 equations: active and reactive power at each bus, no power at bus 7, which is a junction, and the angle of bus 1,
from which the others are measured.

The usual tool, Newton's method for the power flow, turns predicted powers into voltages: it obeys the law of the grid, keeps
the errors of the powers that it is given, and ignores what was learned about voltages.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np
from grids import Grid, equations, grid, power, solve  # examples/grids.py, beside this script

from lawful import ConstrainedRegressor, Equations
from lawful.metrics import constraint_violation

METERS = {"magnitude": 0.01, "angle": 0.01, "active": 0.03, "reactive": 0.03}  # standard deviations of their noise
AREA = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1])  # high voltage, low voltage


class Data(NamedTuple):
    X: np.ndarray
    Y: np.ndarray
    X_test: np.ndarray
    Y_test: np.ndarray


def law(grid: Grid) -> list[str]:
    """Outputs: magnitudes, angles, active powers, reactive powers, bus by bus."""
    n = grid.size
    v, a, p, q = ([f"y{k * n + i + 1}" for i in range(n)] for k in range(4))
    return [*equations(grid, v, a, dict(enumerate(p)), dict(enumerate(q))), f"{p[6]} = 0", f"{q[6]} = 0", f"{a[0]} = 0"]


def states(grid: Grid, X: np.ndarray) -> np.ndarray:
    """The true outputs (m, 56) for inputs (m, 3): levels of the two areas, and a factor on reactive loads."""
    level = X[:, AREA]
    v, a = solve(grid, grid.load.real * level + 1j * grid.load.imag * level * X[:, 2:])
    S = power(grid, v, a)
    return np.concatenate([v, a, S.real, S.imag], axis=1)


def make_data(grid: Grid, n: int, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    X, X_test = (rng.uniform([0.5, 0.5, 0.6], [1.3, 1.3, 1.4], (rows, 3)) for rows in (n, 200))
    truth = states(grid, X)
    noise = np.repeat(list(METERS.values()), grid.size)
    return Data(X, truth + noise * rng.standard_normal(truth.shape), X_test, states(grid, X_test))


def from_powers(grid: Grid, c: np.ndarray) -> np.ndarray:
    """What a power-flow solver makes of predictions: it takes their powers, knows the voltages that are held, and no more."""
    p, q = c[:, 28:42], c[:, 42:]
    v, a = solve(grid, grid.generation - (p + 1j * q))
    S = power(grid, v, a)
    return np.concatenate([v, a, S.real, S.imag], axis=1)


def run(n: int = 60, seed: int = 0) -> dict[str, np.ndarray | float]:
    """Errors in units of the meters' noise, violations in units of 100 MVA, and seconds."""
    case = grid(14)
    data = make_data(case, n, seed)
    start = time.perf_counter()
    model = ConstrainedRegressor(Equations(law(case))).fit(data.X, data.Y)
    fitted = time.perf_counter()
    d = model.decode(data.X_test)
    done = time.perf_counter()
    free = model.objective(data.X_test).center
    newton = from_powers(case, free)
    noise = np.repeat(list(METERS.values()), case.size)

    def error(c: np.ndarray) -> np.ndarray:
        """Root mean square for each kind of output."""
        return np.sqrt((((c - data.Y_test) / noise) ** 2).reshape(-1, 4, case.size).mean(axis=(0, 2)))

    return {
        "free": error(free),
        "newton": error(newton),
        "lawful": error(d.c),
        "free violation": constraint_violation(model.constraint_, free),
        "newton violation": constraint_violation(model.constraint_, newton),
        "lawful violation": constraint_violation(model.constraint_, d.c),
        "ok": float(np.mean(d.status == "ok")),
        "fit": fitted - start,
        "predict": done - fitted,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=60, help="training rows")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    r = run(options.n, options.seed)
    print(f"{options.n} noisy rows, 200 test rows; errors in units of the meters' noise")
    print(f"{'':<16}" + "".join(f"{kind:>11}" for kind in METERS) + f"{'max violation':>16}")
    for name in ("free", "newton", "lawful"):
        label = {"free": "without the law", "newton": "Newton", "lawful": "with the law"}[name]
        print(f"{label:<16}" + "".join(f"{e:>11.3f}" for e in r[name]) + f"{r[f'{name} violation']:>16.1e}")
    print(f"certified: {r['ok']:.1%}; fit {r['fit']:.1f} s, 200 predictions {r['predict']:.2f} s")


if __name__ == "__main__":
    main()
