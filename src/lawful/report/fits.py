"""What a fit is worth, as numbers and as one HTML page that needs nothing but a browser."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import to_numpy
from lawful.report.blocks import Figure, Grid, Section, Table, Text
from lawful.report.html import document
from lawful.saving.models import law_in_words, versions

__all__ = ["page", "summarise"]

SHOWN = 6  # outputs that are drawn
CHECKED = 2000  # training rows that are decoded again for the summary


def summarise(model: Any, X: Any, Y: Any, data: Any, seconds: float) -> dict[str, Any]:
    """What a fit is worth: held-out errors of every output before the law, and the law on training rows."""
    inner = getattr(model, "best_estimator_", model)
    found = []
    for name, residuals in zip(Y.columns, inner.surrogate_.residuals()):
        known = Y[name].to_numpy()[~np.isnan(Y[name].to_numpy())]
        r, spread = to_numpy(residuals), float(known.std())
        rmse = float(np.sqrt(np.mean(r**2)))
        r2 = 1 - (rmse / spread) ** 2 if spread > 1e-12 * np.abs(known).max() else None  # of what does not vary there is none
        alone = len(known) == 1  # no row is predicted from no others
        found.append({"output": name, "observed": len(known), "rmse": None if alone else rmse, "r2": r2})
    rows = X.iloc[np.linspace(0, len(X) - 1, min(len(X), CHECKED)).astype(int)]
    d = inner.decode(rows)
    law = {"rows": len(rows), "violation": float(np.nanmax(to_numpy(d.residual), initial=0.0)), "status": _count(d.status)}
    return {
        "data": str(data),
        "rows": len(X),
        "inputs": list(X.columns),
        "outputs": found,
        "law": law,
        "seconds": round(seconds, 3),
    }


def _count(status: np.ndarray) -> dict[str, int]:
    """How many rows have each status."""
    names, times = np.unique(status, return_counts=True)
    return {str(name): int(k) for name, k in zip(names, times)}


def page(model: Any, X: Any, Y: Any, summary: dict[str, Any]) -> str:
    """Errors, the law, and observed against held-out values."""
    inner = getattr(model, "best_estimator_", model)
    errors = Table(
        ["output", "observed", "error (rms)", "R2"],
        [
            [
                o["output"],
                str(o["observed"]),
                "-" if o["rmse"] is None else f"{o['rmse']:.3g}",
                "-" if o["r2"] is None else f"{o['r2']:.4f}",
            ]
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
            "Model",
            [
                Text(f"`{type(model).__name__}` with `{' '.join(repr(inner.surrogate_).split())}`; {summary['seconds']} s."),
                Text(", ".join(f"{k} {v}" for k, v in versions().items())),
            ],
        ),
    ]
    head = (
        f"`{summary['data']}`: {summary['rows']} rows, {len(summary['inputs'])} inputs "
        f"({', '.join(summary['inputs'][:20])}), {Y.shape[1]} outputs."
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
        axes.set_xlabel(f"{name}, observed", parse_math=False)  # a dollar is a dollar
        axes.set_ylabel("predicted")
        return figure

    return Figure(f"output-{t + 1}", draw, name, f"observed and predicted values of {name}, near the diagonal where they agree")
