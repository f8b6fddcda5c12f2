"""An extractive distillation column: six balances on nine outputs, in which the feeds are inputs.

    python examples/distillation.py

The equations are those of the public benchmark that `lawful.datasets.load_distillation` reads. This script needs no files: a
column with smooth recoveries stands in for the simulator. Inputs are the feed, the solvent and the reflux ratio. Outputs are
distillate and bottoms (y1, y2), their compositions (y3 to y5, y6 to y8) and the duty of the boiler (y9), which no balance ties.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from lawful import ConstrainedRegressor, Equations
from lawful.datasets.files import DISTILLATION_LAW
from lawful.metrics import constraint_violation, normalized_mse


def column(X: np.ndarray) -> np.ndarray:
    """(m, 9) outputs of a column that recovers a smooth share of each component at the top."""
    feed, solvent, reflux = X.T
    light, heavy = 0.697616946 * feed, 0.302383054 * feed
    sharp = 1 - np.exp(-1.5 * reflux)
    shares = (0.90 + 0.09 * sharp, 0.15 - 0.12 * sharp * np.tanh(solvent / feed), 0.02 + 0.02 / (1 + reflux))
    top = np.stack([share * flow for share, flow in zip(shares, (light, heavy, solvent))], axis=1)
    bottom = np.stack([light, heavy, solvent], axis=1) - top
    D, B = top.sum(axis=1), bottom.sum(axis=1)
    return np.column_stack([D, B, top / D[:, None], bottom / B[:, None], D * (1 + reflux) * (30 + solvent / feed)])


def run(n: int = 60, noise: float = 0.05, seed: int = 0) -> dict[str, float]:
    """Errors (mean nMSE) and largest violations on 500 unseen rows, without and with the law."""
    rng = np.random.default_rng(seed)
    X, X_test = (rng.uniform([80, 60, 0.5], [120, 140, 3], (rows, 3)) for rows in (n, 500))
    Y, Y_test = column(X), column(X_test)
    Y = Y + noise * Y.std(axis=0) * rng.standard_normal(Y.shape)
    start = time.perf_counter()
    model = ConstrainedRegressor(Equations(DISTILLATION_LAW)).fit(X, Y)
    fitted = time.perf_counter()
    d = model.decode(X_test)
    done = time.perf_counter()
    free = model.objective(X_test).center
    return {
        "free": normalized_mse(Y_test, free),
        "lawful": normalized_mse(Y_test, d.c),
        "free violation": constraint_violation(model.constraint_, free, X_test),
        "lawful violation": constraint_violation(model.constraint_, d.c, X_test),
        "relative violation": float(model.constraint_.at(X_test).relative(d.c).max()),
        "ok": float(np.mean(d.status == "ok")),
        "fit": fitted - start,
        "predict": done - fitted,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=60, help="training rows")
    parser.add_argument("--noise", type=float, default=0.05, help="in standard deviations of each output")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    r = run(options.n, options.noise, options.seed)
    print(f"{options.n} noisy rows, 500 test rows")
    print(f"{'':<16}{'mean nMSE':>11}{'max violation':>16}")
    for name, label in (("free", "without the law"), ("lawful", "with the law")):
        print(f"{label:<16}{r[name]:>11.2e}{r[f'{name} violation']:>16.1e}")
    print(f"certified: {r['ok']:.1%}; fit {r['fit']:.1f} s, 500 predictions {r['predict']:.2f} s")


if __name__ == "__main__":
    main()
