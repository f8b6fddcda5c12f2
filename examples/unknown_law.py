"""What is the law? Two sensors on a cam, no equation at hand: learn it, read it, use it.

    python examples/unknown_law.py --out out

The cam moves a pin on an ellipse; the input is the angle of its shaft, outputs are where two sensors see the pin. `discover`
finds the equation, says how sure it is, and the regressor that obeys it is as good as one that was told.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from lawful import ConstrainedRegressor, Equations, LearnedEquations, Reals, discover

NOISE = 0.05


def draw(n: int, rng: np.random.Generator, noise: float = NOISE) -> tuple[np.ndarray, np.ndarray]:
    x = rng.uniform(-np.pi, np.pi, (n, 1))
    Y = np.c_[2 * np.cos(x), np.sin(x)]
    return x, Y + noise * rng.standard_normal((n, 2))


def run(n: int = 400, seed: int = 0, out: Any = None) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    X, Y = draw(n, rng)
    X_test, Y_test = draw(1000, rng, noise=0.0)
    table = discover(X, Y, x_dependent=False)
    print(table)
    law = table.laws[0]
    for term, b, e in zip(law.terms, law.coefficients, law.std):
        print(f"  {term:<8}{b:>10.4f} +- {e:.4f}")
    laws = {"true": Equations("y1**2 + 4*y2**2 = 4"), "learned": LearnedEquations(), "free": Reals()}
    models = {name: ConstrainedRegressor(C).fit(X, Y) for name, C in laws.items()}
    errors = {name: float(np.mean((m.predict(X_test) - Y_test) ** 2)) for name, m in models.items()}
    print("mean squared error:", ", ".join(f"{name} {e:.2e}" for name, e in errors.items()))
    controls = sum(len(discover(None, rng.uniform(-1, 1, (n, 2)))) for _ in range(10))
    print(f"laws found in 10 clouds without one: {controls}")
    if out is not None:
        print("picture:", picture(models["learned"], Y, Path(out)))
    return {"equations": table.constraint.equations_, "controls": controls, **errors}


def picture(model: ConstrainedRegressor, Y: np.ndarray, folder: Path) -> Path:
    from matplotlib.figure import Figure

    x = np.linspace(-np.pi, np.pi, 400)[:, None]
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axis = figure.subplots()
    axis.plot(*Y.T, ".", color="#444444", ms=4, alpha=0.6, label="measured")
    axis.plot(*model.predict(x).T, color="#1f6f8b", lw=1.8, label=model.constraint_.equations_[0])
    axis.set(xlabel="$y_1$", ylabel="$y_2$", aspect="equal")
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "unknown_law.png"
    figure.savefig(path, dpi=150)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="out", help="folder for the picture")
    parser.add_argument("--n", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    run(options.n, options.seed, options.out)


if __name__ == "__main__":
    main()
