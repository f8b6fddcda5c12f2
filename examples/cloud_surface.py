"""A surface without an equation: a sheet rolled up, measured with noise, many points whose inputs nobody wrote down.

    python examples/cloud_surface.py --out out

The inputs say where on the sheet a point is; labels with inputs are few, but the sheet itself was scanned. `LocalTangent`
learns the surface from the scan (its dimension too), and predictions are brought back to it: better than no law, and better
than the nearest point of the scan.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from lawful import ConstrainedRegressor, LocalTangent, PointCloud, Reals

NOISE = 0.05


def draw(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Inputs in the unit square, and the points of the sheet there."""
    x = rng.uniform(size=(n, 2))
    angle = 1.5 * np.pi * (0.6 + x[:, 0])
    return x, np.c_[angle * np.cos(angle), 6 * x[:, 1], angle * np.sin(angle)] / 3


def run(n: int = 30, scanned: int = 800, seed: int = 0, out: Any = None) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    X, Y = draw(n, rng)
    Y = Y + NOISE * rng.standard_normal(Y.shape)
    scan = draw(scanned, rng)[1]
    scan = scan + NOISE / 2 * rng.standard_normal(scan.shape)
    X_test, Y_test = draw(1000, rng)
    surface = LocalTangent(scan)
    errors, predictions = {}, {}
    for name, C in (("free", Reals()), ("nearest point", PointCloud(scan)), ("surface", surface)):
        model = ConstrainedRegressor(C).fit(X, Y)
        predictions[name] = model.predict(X_test)
        errors[name] = float(np.mean((predictions[name] - Y_test) ** 2))
        if name == "surface":
            fitted = model.constraint_
    print(f"dimension {fitted.dimension_}, discs fitted to {fitted.neighbours_} points each")
    print("mean squared error:", ", ".join(f"{name} {e:.2e}" for name, e in errors.items()))
    if out is not None:
        print("picture:", picture(scan, predictions, Path(out)))
    return {"dimension": fitted.dimension_, **errors}


def picture(scan: np.ndarray, predictions: dict[str, np.ndarray], folder: Path) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.8), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for axis, (name, colour) in zip(axes, (("free", "#d1603d"), ("surface", "#1f6f8b"))):
        axis.plot(scan[:, 0], scan[:, 2], ".", color="#b9c4cf", ms=4, label="scan")
        axis.plot(predictions[name][:, 0], predictions[name][:, 2], ".", color=colour, ms=2.5, label=f"predictions, {name}")
        axis.set(xlabel="$y_1$", ylabel="$y_3$", aspect="equal")
        axis.legend(frameon=False, loc="center", fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "cloud_surface.png"
    figure.savefig(path, dpi=150)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="out", help="folder for the picture")
    parser.add_argument("--n", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    run(options.n, seed=options.seed, out=options.out)


if __name__ == "__main__":
    main()
