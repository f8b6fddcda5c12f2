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
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Trouble("--plot needs matplotlib; pip install 'lawful[cli]' brings it") from error
    figure = Figure(figsize=(6, 0.5 + 0.4 * len(found)), layout="constrained")
    axes = figure.add_subplot()
    names = [one["method"] for one in found][::-1]
    colors = ["C1" if name.endswith("law") else "C0" for name in names]
    axes.barh(names, [one["error"] for one in found][::-1], color=colors)
    axes.set_xscale("log")
    axes.set_xlabel("held-out error (mean over outputs, 1 = predicting the mean)")
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=150)
