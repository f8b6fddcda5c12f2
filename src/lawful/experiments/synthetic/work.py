"""What is run: one row for each curve, noise, setting, size and trial, with all methods and both selections in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful.datasets import make_curve
from lawful.datasets.synthetic import CURVES
from lawful.experiments._base import Clock, Options
from lawful.experiments.synthetic import as_printed, by_default
from lawful.experiments.synthetic.draw import LAWS, NOISE, draw
from lawful.metrics import mean_squared_error
from lawful.sets import Equations

SETTINGS = ("vector-valued", "multitask")
SIZES, QUICK_SIZES = (10, 20, 50, 100, 200, 500, 1000), (50, 100)
SHOWN = 100  # training points of the sample predictions
X_SHOWN = np.linspace(-np.pi, np.pi, 121)[:, None]
SECONDS = {10: 0.5, 20: 0.5, 50: 0.5, 100: 0.6, 200: 1.0, 500: 1.8, 1000: 4.4}


def configurations(options: Options) -> list[dict[str, Any]]:
    return [
        {"curve": curve, "noise": noise, "setting": setting, "n": n, "trial": k, "seed": options.seed + k}
        for curve in LAWS
        for noise in (("sd",) if options.quick else tuple(NOISE))
        for setting in SETTINGS
        for n in (QUICK_SIZES if options.quick else SIZES)
        for k in range(options.trials)
    ]


def load(options: Options) -> dict[str, Any]:
    """The laws, read once; the data are drawn in each row. What they are fitted on only says where to look for points."""
    drawn = {law: make_curve(law, 200, random_state=0) for laws in LAWS.values() for law in laws}
    return {law: Equations(data.equation).fit(data.Y) for law, data in drawn.items()}


def describe(data: Any) -> list[str]:
    return ["generated curves; x uniform on [-pi, pi], 1000 noise-free test points in each trial"]


def fields(configuration: dict[str, Any]) -> tuple[str, ...]:
    return ("default", "paper", "ridge", "violation")


def cost(configuration: dict[str, Any]) -> float:
    return SECONDS[configuration["n"]]


def run(configuration: dict[str, Any], data: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """{selection: {method: test MSE}, "lemniscate_printed": the same for that law, "violation", "sample", "data"}."""
    c = configuration
    trial = draw(c["curve"], c["n"], c["noise"], c["setting"], c["seed"])
    first, *rest = LAWS[c["curve"]]
    laws = {law: data[law] for law in (first, *rest)}
    shown = c["trial"] == 0 and c["n"] == SHOWN and c["setting"] == SETTINGS[0]
    X = np.concatenate([trial.X_test, X_SHOWN]) if shown else trial.X_test
    m = len(trial.X_test)
    results: dict[str, Any] = {}
    sample: dict[str, Any] = {}
    for selection, found in (
        as_printed.predictions(trial, laws, X, clock) | by_default.predictions(trial, laws, X, clock)
    ).items():
        everyone = {"STL": found["STL"], "MTRL": found["MTRL"]} | found[first]
        results[selection] = {name: error(trial, p[:m]) for name, p in everyone.items()}
        for law in rest:
            results.setdefault(law, {})[selection] = {name: error(trial, p[:m]) for name, p in found[law].items()}
        off = max(float(C.residual(found[law]["NL-MTL"]).max()) for law, C in laws.items())
        results["violation"] = max(results.get("violation", 0.0), float(f"{off:.1e}"))
        if shown:
            drawn = ("NL-MTL",) if selection == "ridge" else ("STL", "MTRL", "NL-MTL")  # the rest is that of "paper"
            sample[selection] = {name: np.round(everyone[name][m:], 5).tolist() for name in drawn}
    if shown:
        results |= {"sample": sample, "data": np.round(trial.Y, 4).tolist()}
    return results


def error(trial: Any, prediction: np.ndarray) -> float:
    """Test MSE, six digits."""
    return float(f"{mean_squared_error(trial.Y_test, prediction):.5e}")


def truth(curve: str) -> np.ndarray:
    """The curve itself at the inputs of the sample predictions."""
    return CURVES[curve][0](X_SHOWN[:, 0])
