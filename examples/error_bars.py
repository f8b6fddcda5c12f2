"""An error bar for anything that is computed from the outputs: draws from the prediction restricted to the law.

    python examples/error_bars.py

A distillation column (`examples/distillation.py`): what share of the light component leaves at the top? It is y1 y3 over its
feed, a function of two outputs that the balances tie to seven others. Each draw is a column that balances, so each gives a
share; those of unconstrained draws can exceed 1. Writes error_bars.png.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from distillation import column  # examples/distillation.py, beside this script

from lawful import ConstrainedRegressor, Equations
from lawful.datasets.files import DISTILLATION_LAW
from lawful.plots import plot_draws

LIGHT = 0.697616946


def recovery(y: np.ndarray, X: np.ndarray) -> np.ndarray:
    """The share of the light component that leaves at the top, for draws (m, n, 9)."""
    return y[:, :, 0] * y[:, :, 2] / (LIGHT * X[:, :1])


def run(n: int = 60, draws: int = 200, seed: int = 0, out: Path | None = None) -> dict[str, float]:
    """Coverage and width of 90 % bars of the recovery on 40 unseen rows, without and with the law."""
    rng = np.random.default_rng(seed)
    X, X_test = (rng.uniform([80, 60, 0.5], [120, 140, 3], (rows, 3)) for rows in (n, 40))
    Y = column(X)
    Y = Y + 0.05 * Y.std(axis=0) * rng.standard_normal(Y.shape)
    model = ConstrainedRegressor(Equations(DISTILLATION_LAW)).fit(X, Y)
    d = model.decode(X_test, sample=draws, random_state=seed)
    free = d.c[:, None, :] * 0 + np.asarray(model.predictive(X_test).center)[:, None, :]
    free = free + d.std[:, None, :] * rng.standard_normal((len(free), draws, 9))
    truth = recovery(column(X_test)[:, None, :], X_test)[:, 0]
    result = {"off law": float(model.constraint_.at(np.repeat(X_test, draws, axis=0)).relative(d.samples.reshape(-1, 9)).max())}
    for name, y in (("lawful", np.asarray(d.samples)), ("free", free)):
        low, high = np.quantile(recovery(y, X_test), [0.05, 0.95], axis=1)
        result[f"{name} coverage"], result[f"{name} width"] = (
            float(((low <= truth) & (truth <= high)).mean()),
            float((high - low).mean()),
        )
    result["R-hat"] = float(d.samples.rhat.max())
    if out is not None:
        plot_draws(np.asarray(d.samples)[:6, :, [2, 5]], names=("y3, light at the top", "y6, light at the bottom")).savefig(
            out / "error_bars.png", dpi=120
        )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=60, help="training rows")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    r = run(options.n, seed=options.seed, out=options.out)
    for name, label in (("free", "without the law"), ("lawful", "with the law")):
        print(f"{label:<16}90 % bars of recovery hold {r[f'{name} coverage']:.0%} of the truth, width {r[f'{name} width']:.4f}")
    print(f"largest violation among the draws {r['off law']:.0e} of the law's scale, R-hat {r['R-hat']:.3f}")


if __name__ == "__main__":
    main()
