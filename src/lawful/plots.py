"""Pictures, for people who would rather look than read. Needs matplotlib (`pip install 'lawful[plot]'`)."""

from __future__ import annotations

from typing import Any

import numpy as np

INK, LAW, STL, NLMTL = "#444444", "#b9c4cf", "#d1603d", "#1f6f8b"


def _figure(*args: Any, **kwargs: Any) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("lawful.plots needs matplotlib: pip install 'lawful[plot]'") from error
    return Figure(*args, **kwargs)


def plot_curves(panels: list[tuple[str, Any, dict[str, np.ndarray], np.ndarray]]) -> Any:
    """Predictions in the plane of two outputs against the law and the noisy data, one column per data set.

    `panels` holds (title, data with .Y, predictions by method in order of x, truth in order of x). Returns a Figure.
    """
    figure = _figure(figsize=(4.6 * len(panels), 6.6), layout="constrained")
    axes = figure.subplots(2, len(panels), squeeze=False, height_ratios=[3, 2])
    colours = {"STL": STL, "NL-MTL": NLMTL}
    for column, (title, data, predictions, truth) in enumerate(panels):
        plane, error = axes[0, column], axes[1, column]
        plane.plot(*truth.T, color=LAW, lw=6, solid_capstyle="round", label="truth")
        plane.plot(*data.Y.T, ".", color=INK, ms=3.5, alpha=0.6, label="training data")
        for name, c in predictions.items():
            plane.plot(*c.T, color=colours[name], lw=1.6, label=name)
            distance = np.sqrt(((c - truth) ** 2).sum(axis=1))
            error.plot(np.sort(data.X_test[:, 0]), distance, color=colours[name], lw=1.2, label=name)
        plane.set(title=title, xlabel="$y_1$", ylabel="$y_2$", aspect="equal")
        error.set(xlabel="$x$", ylabel="distance to the truth", yscale="log", ylim=(1e-4, None))
        for axis in (plane, error):
            axis.spines[["top", "right"]].set_visible(False)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure
