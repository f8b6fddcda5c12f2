"""Figures of the synthetic experiment: boxplots of the error against n, and sample predictions in the plane of the outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful.experiments._figures import COLOURS, GREY, PALE, legend_below, panel
from lawful.experiments.synthetic.cells import Cell

STROKES = {"STL": (2.4, "-"), "MTRL": (1.3, "--"), "NL-MTL": (1.4, "-")}  # STL and MTRL often coincide
CEILING = 3.0  # ten points may send an unconstrained fit further


def boxplots(cells: list[Cell], methods: tuple[str, ...]) -> Any:
    """MSE on a logarithmic scale for every n; boxes are quartiles, whiskers the extremes of the trials."""
    figure, axis = panel(3.4)
    width = 0.84 / len(methods)
    cells = sorted(cells, key=lambda c: c.n)
    for k, method in enumerate(methods):
        boxes = axis.boxplot(
            [np.clip(c.mse[method], None, CEILING) for c in cells],
            positions=np.arange(len(cells)) + (k - (len(methods) - 1) / 2) * width,
            widths=0.82 * width,
            whis=(0, 100),
            patch_artist=True,
            manage_ticks=False,
            medianprops={"color": "#1c2329", "linewidth": 1.1},
            whiskerprops={"color": COLOURS[method], "linewidth": 1.0},
            capprops={"color": COLOURS[method], "linewidth": 1.0},
        )
        for box in boxes["boxes"]:
            box.set(facecolor=COLOURS[method], edgecolor=COLOURS[method], linewidth=0.6, alpha=0.85)
        axis.plot([], [], "s", color=COLOURS[method], label=method)
    lowest = min(c.mse[m].min() for c in cells for m in methods)
    axis.set(yscale="log", xlabel="training points of each task, n", ylabel="test MSE", xlim=(-0.6, len(cells) - 0.4))
    axis.set_ylim(lowest / 2, CEILING)
    axis.set_xticks(range(len(cells)), [str(c.n) for c in cells])
    axis.grid(False, axis="x")
    legend_below(figure, axis, min(3, len(methods)))
    return figure


def predictions(sample: dict[str, list[list[float]]], data: list[list[float]], truth: np.ndarray) -> Any:
    """Predictions at a grid of x in the plane of the two outputs, with the truth below them."""
    figure, axis = panel(3.9)
    points = np.array(data)
    axis.plot(*truth.T, color=PALE, lw=6, solid_capstyle="round", label="truth")
    axis.plot(*points.T, ".", color=GREY, ms=4.5, alpha=0.7, mew=0, label="training data")
    for method, (width, style) in STROKES.items():
        axis.plot(*np.array(sample[method]).T, style, color=COLOURS[method], lw=width, label=method)
    axis.set(xlabel="$y_1$", ylabel="$y_2$")
    axis.set_aspect("equal", adjustable="datalim")
    legend_below(figure, axis, 3)
    return figure
