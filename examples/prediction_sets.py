"""How sure is a prediction that must obey a law? Arcs of a circle that hold the truth nine times in ten, beside boxes.

    python examples/prediction_sets.py

The heading of a boat, as its cosine and sine, is read off a compass that is good on some courses and poor on others. A box
around the two numbers is mostly water: no heading is there. `ConformalRegressor` gives arcs of headings instead. Writes
prediction_sets.png.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from lawful import ConformalRegressor, ConstrainedRegressor, Sphere
from lawful.plots import plot_sets


def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    x = rng.uniform(-np.pi, np.pi, n)
    heading = x + 0.3 * np.sin(2 * x) + 0.08 * rng.standard_normal(n)
    return x[:, None], np.c_[np.cos(heading), np.sin(heading)]


def run(n: int = 300, seed: int = 0, out: Path | None = None) -> dict[str, float]:
    """Joint coverage and size of sets and of boxes on 2000 new rows."""
    rng = np.random.default_rng(seed)
    X, Y = draw(rng, n)
    X_test, Y_test = draw(rng, 2000)
    model = ConformalRegressor(ConstrainedRegressor(Sphere()), alpha=0.1, random_state=seed).fit(X, Y)
    sets = model.predict_set(X_test)
    bounds = sets.intervals()
    box = ConformalRegressor(ConstrainedRegressor(), alpha=0.1, random_state=seed).fit(X, Y)  # no law: ellipses
    free = box.predict_set(X_test)
    wide = free.intervals()
    if out is not None:
        some = np.argsort(X_test[:, 0])[:: len(X_test) // 12]
        law = np.c_[np.cos(np.linspace(0, 7, 2000)), np.sin(np.linspace(0, 7, 2000))]
        plot_sets(sets, some, law, Y_test).savefig(out / "prediction_sets.png", dpi=120)
    return {
        "coverage": float(sets.contains(X_test, Y_test).mean()),
        "coverage without the law": float(free.contains(X_test, Y_test).mean()),
        "length": float(sets.volume().mean()),
        "width": float((bounds[:, :, 1] - bounds[:, :, 0]).mean()),
        "width without the law": float((wide[:, :, 1] - wide[:, :, 0]).mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=300, help="rows to learn and calibrate from")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    r = run(options.n, options.seed, options.out)
    print(f"arcs hold the heading in {r['coverage']:.1%} of 2000 new rows (asked for: 90 %); length {r['length']:.2f} of 6.28")
    print(f"mean width of an output: {r['width']:.3f}; of an ellipse that knows no law: {r['width without the law']:.3f}")


if __name__ == "__main__":
    main()
