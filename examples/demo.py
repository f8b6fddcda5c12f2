"""Circle and lemniscate from 100 noisy rows: single-task (STL) against multitask (NL-MTL) learning.

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

TITLES = "curve", "method", "test MSE", "MSE / STL", "max violation", "fit s", "predict s"
LINE = "{:<12}{:<8}{:>11}{:>11}{:>15}{:>8}{:>11}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="out", help="folder for the picture")
    parser.add_argument("--n", type=int, default=100, help="training points")
    parser.add_argument("--noise", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    n, noise, seed = options.n, options.noise, options.seed
    print(f"{n} training points, noise {noise}, 1000 test points, seed {seed}\n")
    print(LINE.format(*TITLES))
    panels = []
    for curve in ("circle", "lemniscate"):
        data = make_curve(curve, n, noise=noise, random_state=seed)
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
            numbers = f"{mse:.2e}", f"{ratio:.2f}", f"{worst:.1e}"
            seconds = f"{fitted - start:.2f}", f"{done - fitted:.3f}"
            print(LINE.format(curve, name, *numbers, *seconds))
        order = np.argsort(data.X_test[:, 0])
        panels.append(
            (curve, data, {name: c[order] for name, c in results.items()}, data.Y_test[order])
        )

    print("\nThe first fit loads code and, once on a machine, the first prediction compiles some.")
    path = Path(options.out) / "demo.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    plot_curves(panels).savefig(path, dpi=150)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
