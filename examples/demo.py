"""Circle and lemniscate from 100 noisy points: single-task learning (STL) against nonlinear multitask learning (NL-MTL).

python examples/demo.py --out out
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from lawful import ConstrainedRegressor, Equations, Reals
from lawful.datasets import make_curve
from lawful.metrics import constraint_violation, mean_squared_error
from lawful.plots import plot_curves


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="out", help="folder for the picture")
    parser.add_argument("--n", type=int, default=100, help="training points")
    parser.add_argument("--noise", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    print(f"{options.n} training points, noise {options.noise}, 1000 test points, seed {options.seed}\n")
    print(f"{'curve':<12}{'method':<8}{'test MSE':>11}{'MSE / STL':>11}{'max violation':>15}{'fit s':>8}{'predict s':>11}")
    panels = []
    for curve in ("circle", "lemniscate"):
        data = make_curve(curve, options.n, noise=options.noise, random_state=options.seed)
        law = Equations(data.equation).fit(data.Y)
        results = {}
        for name, constraint in (("STL", Reals()), ("NL-MTL", Equations(data.equation))):
            start = time.perf_counter()
            model = ConstrainedRegressor(constraint).fit(data.X, data.Y)
            fitted = time.perf_counter()
            results[name] = model.predict(data.X_test)
            done = time.perf_counter()
            mse = mean_squared_error(data.Y_test, results[name])
            ratio = mse / mean_squared_error(data.Y_test, results["STL"])
            worst = constraint_violation(law, results[name])
            print(f"{curve:<12}{name:<8}{mse:>11.2e}{ratio:>11.2f}{worst:>15.1e}{fitted - start:>8.2f}{done - fitted:>11.3f}")
        order = np.argsort(data.X_test[:, 0])
        panels.append((curve, data, {name: c[order] for name, c in results.items()}, data.Y_test[order]))

    path = Path(options.out) / "demo.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    plot_curves(panels).savefig(path, dpi=150)
    print(f"\npicture: {path}")


if __name__ == "__main__":
    main()
