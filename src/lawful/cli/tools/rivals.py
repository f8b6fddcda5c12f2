"""What `lawful compare` does: usual regressors and ours, judged on the same folds, and a picture of it."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lawful import estimators
from lawful._array import to_numpy
from lawful._files import replacing
from lawful.cli.words import Trouble

__all__ = ["RIVALS", "draw", "judge"]

RIVALS = {
    "mean": lambda: DummyRegressor(),
    "linear": lambda: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-6, 4, 21))),
    "forest": lambda: RandomForestRegressor(100, random_state=0),
    "kernel": lambda: None,
}
EXACT = 1e-17  # what is zero is drawn here
MARKS = (("", "o", "#D55E00", "as it is", -0.12), (" + law", "s", "#0072B2", "with the law", 0.12))


def judge(name: str, bound: bool, law: Any, X: Any, Y: Any, folds: int, seed: int) -> dict[str, Any]:
    """Held-out errors, the largest violation of the law, and seconds, over all folds."""
    errors, violation = np.full(Y.shape, np.nan), 0.0
    fitting = predicting = 0.0
    for train, test in KFold(folds, shuffle=True, random_state=seed).split(X):
        model = estimators.ConstrainedRegressor(clone(law) if bound else None, surrogate=RIVALS[name]())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", estimators.DecodingWarning)  # the violation says it
            start = time.perf_counter()
            model.fit(X.iloc[train], Y.iloc[train])
            fitted = time.perf_counter()
            c = model.predict(X.iloc[test])
        fitting, predicting = fitting + fitted - start, predicting + time.perf_counter() - fitted
        errors[test] = (c - Y.iloc[test].to_numpy()) ** 2
        if law is not None:
            C = clone(law).fit(
                Y.iloc[train].to_numpy(), X.iloc[train].to_numpy(), outputs=list(Y.columns), inputs=list(X.columns)
            )
            violation = max(violation, float(to_numpy(C.at(X.iloc[test].to_numpy()).residual(c)).max()))
    spread = np.nanvar(Y.to_numpy(), axis=0)
    ratio = np.nanmean(errors, axis=0)[spread > 0] / spread[spread > 0]
    return {"error": float(ratio.mean()), "violation": violation, "fit_s": fitting, "predict_s": predicting}


def draw(found: list[dict[str, Any]], path: Path) -> None:
    """A line for each method: its error without and with the law, and beside it how far it is from the law."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Trouble("--plot needs matplotlib; pip install 'lawful[cli]' brings it") from error
    bound = {one["method"].removesuffix(" + law") for one in found if one["method"].endswith(" + law")}
    names = list(dict.fromkeys(one["method"].removesuffix(" + law") for one in found))
    panels = {"error": "held-out error, mean over outputs (1: as good as the mean)"}
    panels |= {"violation": "largest violation of the law"} if bound else {}
    figure = Figure(figsize=(1.5 + 4.2 * len(panels), 1.5 + 0.42 * len(names)), layout="constrained")
    for k, (what, label) in enumerate(panels.items()):
        axes = figure.add_subplot(1, len(panels), k + 1)
        values = {one["method"]: max(one[what], EXACT) for one in found}
        for suffix, mark, color, legend, aside in MARKS:
            places = {i: values[name + suffix] for i, name in enumerate(names) if name + suffix in values}
            axes.plot(list(places.values()), [i + aside * bool(bound) for i in places], mark, color=color, ms=8, label=legend)
        axes.set_xscale("log")
        axes.set_yticks(range(len(names)), names if k == 0 else [""] * len(names))
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.grid(axis="x", alpha=0.4)
        axes.set_xlabel(label)
    if bound:
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=150)
