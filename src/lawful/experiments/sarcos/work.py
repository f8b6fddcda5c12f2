"""Configurations and work of the Sarcos experiment: one unit is one split under one treatment of the inputs, all systems."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from lawful.baselines import SingleTask, tune
from lawful.datasets import load_sarcos, make_arm
from lawful.datasets.sarcos import PAGE, sarcos_files
from lawful.experiments._base import Clock, Options
from lawful.experiments.sarcos.splits import INPUTS, Split, draw, own_tests
from lawful.experiments.sarcos.systems import POWERS, PRINTED, SYSTEMS, Found, expected, fit_own, fit_rival, owns, rivals
from lawful.folds import make_folds
from lawful.metrics import r2

ARM = "generated arm"
N_TRAIN, N_TASK, CV = 15, 2000, 5
CLOUD = {"full": 1000, "small": 500}
GENERATED = 2500  # rows of the stand-in
PRINTED_GRID = {"STL": "STL, printed grid", "NL-MTL[R]": "NL-MTL[R], printed grid"}


def file_of(options: Options) -> str:
    """The file the rows are drawn from, or the stand-in; FileNotFoundError where a full run has no data."""
    if options.data is not None:
        return sarcos_files(options.data)[0].name
    if options.quick:
        return ARM
    raise FileNotFoundError(
        "sarcos: no folder was given; pass --data with a folder that holds sarcos_inv.mat (44,484 rows) or sarcos_inv_test.mat "
        f"(4449 rows) from {PAGE}, or --quick for a short run on a generated arm"
    )


def configurations(options: Options) -> list[dict[str, Any]]:
    """Splits in the order of their seeds, so that a run cut short has all variants of some splits."""
    size = "small" if options.quick else "full"
    common = {"size": size, "file": file_of(options)}
    variants = ["standardised", "shared"] if options.quick else INPUTS
    return [
        {"inputs": inputs, "seed": options.seed + trial, **common} for trial in range(options.trials) for inputs in variants
    ]


def load(options: Options) -> Bunch:
    """X, Y, the name of the file, and words about them."""
    file = file_of(options)
    if file == ARM:
        data = make_arm(GENERATED, 7, noise=0.05, random_state=0)
        return Bunch(X=data.X, Y=data.Y, file=file, DESCR=data.DESCR)
    data = load_sarcos(options.data)
    return Bunch(X=data.X, Y=data.Y, file=file, DESCR=data.DESCR)


def describe(data: Bunch) -> list[str]:
    n, T = data.Y.shape
    if data.file == ARM:
        return [f"**No data were given: a generated stand-in, not Sarcos.** {data.DESCR}"]
    if own_tests(n, T, CLOUD["full"], N_TASK):
        test = f"{N_TASK - N_TRAIN} test rows of its own for each torque, as in Jawanpuria & Nath (2012)"
    else:
        test = "all rows left are the test set of all torques: the file is too small for 2000 rows a torque"
    return [data.DESCR, f"{N_TRAIN} training rows for each torque and a cloud of outputs, all disjoint; {test}."]


def fields(configuration: dict[str, Any]) -> tuple[str, ...]:
    return ("n_test", "systems")


def cost(configuration: dict[str, Any]) -> float:
    """Seconds, roughly."""
    if configuration["size"] == "small":
        return {"standardised": 5.0, "shared": 3.0}[configuration["inputs"]]
    return {"standardised": 25.0, "raw": 25.0, "shared": 15.0}[configuration["inputs"]]


def run(configuration: dict[str, Any], data: Bunch, clock: Clock) -> dict[str, Any]:
    """{"n_test": ..., "systems": {name: measured(...)}}."""
    small = configuration["size"] == "small"
    seed, inputs = configuration["seed"], configuration["inputs"]
    split = draw(data.X, data.Y, seed, inputs, N_TRAIN, CLOUD[configuration["size"]], N_TASK)
    names = [f"torque {t + 1}" for t in range(split.Y.shape[1])]
    folds = make_folds(CV, split.X, ~np.isnan(split.Y), names, seed)
    found: dict[str, Found] = {}
    for name in rivals(1.0):
        with clock(name):
            found[name] = fit_rival(name, split, folds, small)
    found["FMTL"] = min((found[name] for name in POWERS), key=lambda f: f.error)
    for name in owns(split.cloud):
        with clock(name):
            found[name] = fit_own(name, split, folds, small)
    results = {system.name: measured(found[system.name], split) for system in SYSTEMS}
    results["FMTL"]["par"]["p"] = next(p for name, p in POWERS.items() if found[name] is found["FMTL"])
    if inputs == "raw" and not small:
        with clock("printed grid"):
            results |= printed(split, folds)
    return {"n_test": len(split.X_test), "systems": results}


def printed(split: Split, folds: Any) -> dict[str, Any]:
    """STL and NL-MTL[R] with the lambdas that the paper names, whatever the inputs."""
    with expected() as warned:
        stl = tune(SingleTask(), {"lam": PRINTED}, split.X, split.Y, cv=folds)
    lam = float(stl.best_params["lam"])
    own = Found(stl.best_estimator.predict(split.X_test), {"lam": lam}, stl.best_error, lam == PRINTED[-1], warned)
    both = {"STL": own, "NL-MTL[R]": fit_own("NL-MTL[R]", split, folds, lams=PRINTED)}
    return {PRINTED_GRID[name]: measured(found, split) for name, found in both.items()}


def measured(found: Found, split: Split) -> dict[str, Any]:
    """Explained variance in per cent: mean over torques, pooled, each; what was chosen; whether on an edge; warnings."""
    truth, prediction = split.Y_test * split.unit, found.prediction * split.unit
    each, pooled = (r2(truth, prediction, multioutput=how) for how in ("raw", "pooled"))
    percent = [round(100 * float(v), 4) for v in each]
    return {
        "ev": round(100 * float(np.mean(each)), 4),
        "pool": round(100 * float(pooled), 4),
        "each": percent,
        "par": {k: float(f"{v:.6g}") if isinstance(v, float | np.floating) else v for k, v in found.chosen.items()},
        "edge": bool(found.edge),
        "unsolved": sum(name == "ConvergenceWarning" for name in found.warned),
    }
