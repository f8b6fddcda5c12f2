"""Pictures of several data sets, of prediction sets and of draws, each a figure of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful.plots.canvas import LAWFUL, LAWLESS, new_figure

__all__ = ["plot_curves", "plot_draws", "plot_sets"]

INK, PALE = "#444444", "#b9c4cf"


def plot_curves(panels: list[tuple[str, Any, dict[str, np.ndarray], np.ndarray]]) -> Any:
    """Predictions in the plane of two outputs against the law and the noisy data, one column per data set.

    `panels` holds (title, data with .Y, predictions by method in order of x, truth in order of x). Returns a Figure.
    """
    figure = new_figure(figsize=(4.0 * len(panels), 6.2), layout="constrained")
    axes = figure.subplots(2, len(panels), squeeze=False, height_ratios=[1.75, 1], sharey="row")
    colours = {"STL": LAWLESS, "NL-MTL": LAWFUL}
    for column, (title, data, predictions, truth) in enumerate(panels):
        plane, error = axes[0, column], axes[1, column]
        plane.plot(*truth.T, color=PALE, lw=8, solid_capstyle="round", label="truth")
        plane.plot(*data.Y.T, ".", color=INK, ms=4, alpha=0.6, label="training data")
        for name, c in predictions.items():
            plane.plot(*c.T, color=colours[name], lw=1.7, label=name)
            distance, x = np.sqrt(((c - truth) ** 2).sum(axis=1)), np.sort(data.X_test[:, 0])
            error.plot(x, distance, color=colours[name], lw=1.5)
            error.fill_between(x, distance, color=colours[name], alpha=0.12, lw=0)
        plane.set(title=title, xlabel="$y_1$", aspect="equal", adjustable="datalim")
        error.set(xlabel="$x$", ylim=(0, None))
        for axis in (plane, error):
            axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("$y_2$")
    axes[1, 0].set_ylabel("distance to the truth")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    return figure


def plot_sets(sets: Any, rows: Any = None, law: np.ndarray | None = None, labels: Any = None, n: int = 400) -> Any:
    """Prediction sets (`ConformalRegressor.predict_set`): arcs of two outputs, patches of three, intervals of more.

    rows: numbers of the sets to draw (the first twelve). law: points (N, T) of C, drawn behind them. labels: (m, T) the truth.
    Returns a Figure.
    """
    rows = np.arange(min(len(sets), 12)) if rows is None else np.atleast_1d(rows)
    T = sets.shape[1]
    if T not in (2, 3):
        return _plot_intervals(sets, rows, labels)
    figure = new_figure(figsize=(5.4, 5.4), layout="constrained")
    axis = figure.add_subplot(projection="3d") if T == 3 else figure.subplots()
    if law is not None:
        axis.plot(*law.T, ".", color=PALE, ms=2 if T == 2 else 1, label="law")
    points = None if sets.kind == "curves" else sets.sample_set(n, 0)
    for k, row in enumerate(rows):
        name = "set" if k == 0 else None
        if points is None:
            for j, arc in enumerate(sets.curve_points(row)):
                axis.plot(*arc.T, color=LAWFUL, lw=4, alpha=0.7, solid_capstyle="butt", label=name if j == 0 else None)
        else:
            axis.plot(*points[row].T, ".", color=LAWFUL, ms=2, alpha=0.5, label=name)
    axis.plot(*sets.center[rows].T, "o", color=INK, ms=4, label="prediction")
    if labels is not None:
        axis.plot(*np.asarray(labels)[rows].T, "x", color=LAWLESS, ms=6, label="truth")
    axis.set(xlabel=sets.names[0], ylabel=sets.names[1])
    axis.set_aspect("equal")
    axis.legend(frameon=False)
    return figure


def _plot_intervals(sets: Any, rows: np.ndarray, labels: Any) -> Any:
    """One panel an output: its bounds over each set, which hold for all outputs together."""
    bounds = sets.intervals()
    T = sets.shape[1]
    across = min(T, 5)
    down = -(-T // across)
    figure = new_figure(figsize=(2.4 * across, 2.2 * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for t, axis in enumerate(axes):
        if t >= T:
            axis.set_visible(False)
            continue
        axis.vlines(np.arange(len(rows)), *bounds[rows, t].T, color=LAWFUL, lw=4, alpha=0.6)
        axis.plot(np.arange(len(rows)), sets.center[rows, t], "o", color=INK, ms=3)
        if labels is not None:
            axis.plot(np.arange(len(rows)), np.asarray(labels)[rows, t], "x", color=LAWLESS, ms=5)
        axis.set(title=sets.names[t], xticks=[])
        axis.spines[["top", "right"]].set_visible(False)
    return figure


def plot_draws(draws: np.ndarray, law: np.ndarray | None = None, rows: Any = None, names: Any = None) -> Any:
    """Draws (m, n, T) from a prediction restricted to the law, in the plane of the first two outputs. Returns a Figure."""
    figure = new_figure(figsize=(5.4, 5.4), layout="constrained")
    axis = figure.subplots()
    if law is not None:
        axis.plot(*np.asarray(law)[:, :2].T, ".", color=PALE, ms=2)
    for row in range(min(len(draws), 12)) if rows is None else rows:
        axis.plot(*np.asarray(draws)[row, :, :2].T, ".", ms=3, alpha=0.4)
    names = names or ("y1", "y2")
    axis.set(xlabel=names[0], ylabel=names[1])
    axis.set_aspect("equal")
    return figure
