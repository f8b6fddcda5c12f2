"""A flow sheet of 200 streams: every unit gives out what it takes in, and no flow is negative.

    python examples/flow_sheet.py

Units are drawn at random, as a plant that grew: each takes one to three open streams (a mixer, or a vessel) and splits what it
gets into two or three, some of which go back to earlier units. The law has a mass balance for each unit and a bound for each
stream. Some streams are closed for some settings of the plant, and measured flows of closed streams are often negative.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np

from lawful import ConstrainedRegressor, Equations
from lawful.metrics import constraint_violation


class Plant(NamedTuple):
    """units (u, streams): +1 for what flows in, -1 for what flows out; source: the unit a stream leaves, -1 for feeds."""

    units: np.ndarray
    source: np.ndarray
    swing: np.ndarray  # (streams, d) how a stream's share of its unit follows the inputs
    lean: np.ndarray  # (streams,)


def make_plant(streams: int, seed: int, feeds: int = 6) -> Plant:
    rng = np.random.default_rng(seed)
    source, target = [-1] * feeds, [-1] * feeds
    units = 0
    while len(source) < streams:
        idle = [s for s, end in enumerate(target) if end < 0]
        for s in rng.choice(idle, min(len(idle) - 1, int(rng.integers(1, 4))), replace=False):
            target[s] = units
        for _ in range(min(streams - len(source), int(rng.integers(2, 4)))):
            source.append(units)
            recycled = units > 3 and rng.uniform() < 0.1
            target.append(int(rng.integers(max(0, units - 4), units)) if recycled else -1)
        if all(target[s] >= 0 for s, begin in enumerate(source) if begin == units):  # something must go on
            target[-1] = -1
        units += 1
    balance = np.zeros((units, streams))
    for s, (begin, end) in enumerate(zip(source, target)):
        if begin >= 0:
            balance[begin, s] -= 1
        if end >= 0:
            balance[end, s] += 1
    return Plant(balance, np.array(source), rng.normal(0, 1, (streams, 3)), rng.normal(0.3, 0.7, streams))


def law(plant: Plant) -> list[str]:
    """Balances and bounds, as they would be written by hand."""
    texts = []
    for row in plant.units:
        inflow, outflow = (" + ".join(f"y{s + 1}" for s in np.flatnonzero(row == sign)) for sign in (1, -1))
        texts.append(f"{inflow} = {outflow}")
    return texts + [f"y{s + 1} >= 0" for s in range(plant.units.shape[1])]


def flows(plant: Plant, X: np.ndarray) -> np.ndarray:
    """(m, streams) true flows: feeds follow the inputs, units split what they get in shares that follow them too."""
    m, S = len(X), plant.units.shape[1]
    share = np.maximum(plant.lean + 0.25 * X @ plant.swing.T, 0.0)  # a share of 0 is a closed valve
    feeds = np.flatnonzero(plant.source < 0)
    Y = np.zeros((m, S))
    Y[:, feeds] = 5 + np.tanh(X @ plant.swing[feeds].T)
    # Each stream is its share of what its unit gets: a linear system for all flows at once, recycles included.
    A = np.tile(np.eye(S), (m, 1, 1))
    for unit, row in enumerate(plant.units):
        out = np.flatnonzero(plant.source == unit)
        part = share[:, out]
        part[:, -1] += 0.2  # never are all valves closed
        A[:, out[:, None], np.flatnonzero(row > 0)[None, :]] -= (part / part.sum(axis=1, keepdims=True))[:, :, None]
    return np.linalg.solve(A, Y[..., None])[..., 0]


def run(n: int = 80, streams: int = 200, noise: float = 0.2, seed: int = 0) -> dict[str, float]:
    """Root mean square errors, violations and negative flows on 200 unseen rows, without and with the law."""
    rng = np.random.default_rng(seed)
    plant = make_plant(streams, seed)
    X, X_test = (rng.uniform(-1, 1, (rows, 3)) for rows in (n, 200))
    Y, Y_test = flows(plant, X), flows(plant, X_test)
    Y = Y + noise * rng.standard_normal(Y.shape)
    start = time.perf_counter()
    model = ConstrainedRegressor(Equations(law(plant))).fit(X, Y)
    fitted = time.perf_counter()
    d = model.decode(X_test)
    done = time.perf_counter()
    free = model.objective(X_test).center
    return {
        "units": float(len(plant.units)),
        "free": float(np.sqrt(np.mean((free - Y_test) ** 2))),
        "lawful": float(np.sqrt(np.mean((d.c - Y_test) ** 2))),
        "free violation": constraint_violation(model.constraint_, free),
        "lawful violation": constraint_violation(model.constraint_, d.c),
        "free negative": float(np.mean(free < -1e-9)),
        "lawful negative": float(np.mean(d.c < -1e-9)),
        "closed": float(np.mean(d.c < 1e-9)),
        "ok": float(np.mean(d.status == "ok")),
        "fit": fitted - start,
        "predict": done - fitted,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=80, help="training rows")
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--noise", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    r = run(options.n, options.streams, options.noise, options.seed)
    print(f"{options.streams} streams, {int(r['units'])} units, {options.n} noisy rows, 200 test rows")
    print(f"{'':<16}{'RMSE':>9}{'max violation':>16}{'negative':>10}")
    for name, label in (("free", "without the law"), ("lawful", "with the law")):
        print(f"{label:<16}{r[name]:>9.4f}{r[f'{name} violation']:>16.1e}{r[f'{name} negative']:>10.2%}")
    print(f"closed streams: {r['closed']:.1%}; certified: {r['ok']:.1%}; fit {r['fit']:.1f} s, predict {r['predict']:.2f} s")


if __name__ == "__main__":
    main()
