"""What the figures of all experiments share: sizes, colours, axes without clutter."""

from __future__ import annotations

from typing import Any

WIDTH = 4.6  # inches: legible on a phone, and two in a row on a desk
INK, GREY, PALE = "#33414d", "#7d8a95", "#c9d2d9"
COLOURS = {
    "STL": "#d1603d",
    "MTRL": "#8a6bb1",
    "NL-MTL": "#1f6f8b",
    "NL-MTL[R]": "#3f9c6b",
    "NL-MTL[P]": "#c9a227",
}


def panel(height: float = 3.3, width: float = WIDTH) -> tuple[Any, Any]:
    """A figure with one bare axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axis = figure.subplots()
    bare(axis)
    return figure, axis


def bare(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(True, which="major", color="#e6eaee", lw=0.7)


def legend_below(figure: Any, axis: Any, columns: int = 3) -> None:
    """A legend outside the axes overlaps nothing."""
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=columns, frameon=False)
