"""A law whose coefficients nobody knows: Antoine's equation, from pressures and temperatures that are both noisy.

    python examples/vapour_pressure.py [--out FOLDER]

The outputs, pressure y1 and temperature y2, are functions of a heater's setting x1, with gaps. The coefficients of
y1 = exp(a - b / (c + y2)) are estimated together with the regression; the picture shows the law and the profile of b.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from lawful import ConstrainedRegressor, Equations, Reals, doctor

TRUTH = {"a": 4.0, "b": 8.0, "c": 2.3}
LAW = "y1 = exp(a - b/(c + y2))"


def draw(n: int, rng: np.random.Generator, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    x = rng.uniform(0, 1, (n, 1))
    y2 = 0.2 + 2.6 * x[:, 0] + 0.2 * np.sin(5 * x[:, 0])
    Y = np.c_[np.exp(TRUTH["a"] - TRUTH["b"] / (TRUTH["c"] + y2)), y2]
    return x, Y + noise * np.array([0.3, 0.05]) * rng.standard_normal(Y.shape)


def run(n: int = 200, seed: int = 0, out: Any = None) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    X, Y = draw(n, rng)
    X_test, Y_test = draw(1000, rng, noise=0.0)
    Y[rng.random(Y.shape) < 0.15] = np.nan  # not observed
    law = Equations(LAW, unknown={"a": None, "b": (0, None), "c": (0.5, 10)})
    models = {"law": ConstrainedRegressor(law).fit(X, Y), "free": ConstrainedRegressor(Reals()).fit(X, Y)}
    C = models["law"].constraint_
    for name in TRUTH:
        print(f"  {name} = {C.unknown_[name]:.3f} +- {C.unknown_std_[name]:.3f}   (truth {TRUTH[name]})")
    profile = C.profile("b")
    low, high = profile.interval()
    print(f"  95 % interval of b by its profile: {low:.2f} to {high:.2f}")
    unit = Y_test.std(axis=0)
    errors = {name: float(np.mean(((m.predict(X_test) - Y_test) / unit) ** 2)) for name, m in models.items()}
    print("mean squared error, in variances:", ", ".join(f"{name} {e:.2e}" for name, e in errors.items()))
    wrong = doctor(X, Y, Equations("y1 = exp(4 - 8.4/(2.3 + y2))"))
    print(wrong.alarms[0] if wrong.alarms else "no alarm")
    if out is not None:
        print("picture:", picture(models["law"], Y, profile, Path(out)))
    return {"off": {k: (C.unknown_[k] - v) / C.unknown_std_[k] for k, v in TRUTH.items()}, "interval": (low, high), **errors,
            "advice": wrong.alarms[0].sentence if wrong.alarms else ""}  # fmt: skip


def picture(model: ConstrainedRegressor, Y: np.ndarray, profile: Any, folder: Path) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(Y[:, 1], Y[:, 0], ".", color="#444444", ms=4, alpha=0.6, label="measured")
    c = model.predict(np.linspace(0, 1, 200)[:, None])
    left.plot(c[:, 1], c[:, 0], color="#1f6f8b", lw=1.8, label="predicted, on the law")
    left.set(xlabel="temperature $y_2$", ylabel="pressure $y_1$")
    left.legend(frameon=False)
    right.plot(profile.value, profile.statistic, color="#1f6f8b")
    right.axhline(3.84, color="#b5651d", lw=1, ls="--")
    right.set(xlabel="b", ylabel="score statistic", ylim=(0, 12))
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "vapour_pressure.png"
    figure.savefig(path, dpi=150)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="out", help="folder for the picture")
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    run(options.n, options.seed, options.out)


if __name__ == "__main__":
    main()
