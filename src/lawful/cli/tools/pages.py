"""The report of `lawful fit`: one HTML page that needs nothing but a browser."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import to_numpy
from lawful.report.blocks import Figure, Grid, Section, Table, Text
from lawful.report.html import document
from lawful.saving.models import law_in_words, versions

__all__ = ["page"]

SHOWN = 6  # outputs that are drawn


def page(model: Any, X: Any, Y: Any, summary: dict[str, Any]) -> str:
    """Errors, the law, and observed against held-out values."""
    inner = getattr(model, "best_estimator_", model)
    errors = Table(
        ["output", "observed", "error (rms)", "R2"],
        [
            [o["output"], str(o["observed"]), f"{o['rmse']:.3g}", "-" if o["r2"] is None else f"{o['r2']:.4f}"]
            for o in summary["outputs"]
        ],
        caption="Each row predicted from the others, before the law.",
    )
    law = summary["law"]
    states = ", ".join(f"{k} rows {name}" for name, k in law["status"].items())
    figures = [_scatter(t, name, Y, inner.surrogate_.residuals()[t]) for t, name in enumerate(list(Y.columns)[:SHOWN])]
    sections = [
        Section("Errors", [errors]),
        Section(
            "The law",
            [
                Text(f"`{law_in_words(model)}`"),
                Text(f"On {law['rows']} rows of the training data: largest violation {law['violation']:.1e}; {states}."),
            ],
        ),
        Section("Observed and predicted", [Grid(figures, "Every point was predicted without its own row.")]),
        Section(
            "Model", [Text(f"`{' '.join(repr(model).split())}`"), Text(", ".join(f"{k} {v}" for k, v in versions().items()))]
        ),
    ]
    head = (
        f"{summary['rows']} rows, {len(summary['inputs'])} inputs ({', '.join(summary['inputs'][:20])}), {Y.shape[1]} outputs."
    )
    return document("A fit under a law", [Text(head)], sections)


def _scatter(t: int, name: str, Y: Any, residuals: Any) -> Figure:
    y = Y[name].to_numpy()
    y = y[~np.isnan(y)]
    predicted = y - to_numpy(residuals)

    def draw() -> Any:
        from matplotlib.figure import Figure as Canvas

        figure = Canvas(figsize=(4.6, 3.4), layout="constrained")
        axes = figure.add_subplot()
        axes.plot(y, predicted, ".", markersize=3)
        ends = [min(y.min(), predicted.min()), max(y.max(), predicted.max())]
        axes.plot(ends, ends, color="0.6", linewidth=1, zorder=0)
        axes.set_xlabel(f"{name}, observed")
        axes.set_ylabel("predicted")
        return figure

    return Figure(f"output-{t + 1}", draw, name, f"observed and predicted values of {name}, near the diagonal where they agree")
