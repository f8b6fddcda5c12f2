"""Is a figure legible? Labels inside the canvas, tick labels and legend entries that do not run into one another."""

from __future__ import annotations

import itertools

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg

from lawful.report.pictures import STYLE

SLACK = 1.0  # pixels


def check(block) -> None:
    """Draw one figure block as the report does and look for cut or overlapping text."""
    with matplotlib.rc_context(STYLE):
        legible(block.draw(), block.name)


def legible(figure, name: str) -> None:
    """Draw a figure and look for cut or overlapping text."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    assert 4.0 <= figure.get_figwidth() <= 9.5, f"{name} is {figure.get_figwidth()} inches wide"
    bounds = figure.bbox
    groups = []
    for axis in figure.axes:
        if not axis.get_visible() or not axis.axison:
            continue
        for side in (axis.xaxis, axis.yaxis):
            if side.get_visible():
                low, high = sorted(side.get_view_interval())
                ticks = zip(side.get_major_ticks(), side.get_majorticklocs())
                groups.append([t.label1 for t, at in ticks if low <= at <= high and t.label1.get_visible()])
        groups.append([axis.title, axis.xaxis.label, axis.yaxis.label])
        groups.append([t for t in axis.texts if t.get_visible()])
        if axis.get_legend():
            groups.append(list(axis.get_legend().get_texts()))
    for legend in figure.legends:
        groups.append(list(legend.get_texts()))
        box = legend.get_window_extent(renderer)
        for axis in figure.axes:
            inside = axis.get_window_extent(renderer)
            assert not overlap(box, inside), f"{name}: the legend lies on the axes"
    for texts in groups:
        boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in texts if t.get_text().strip()]
        for text, box in boxes:
            inside = box.x0 >= bounds.x0 - SLACK and box.x1 <= bounds.x1 + SLACK
            assert inside and box.y0 >= bounds.y0 - SLACK and box.y1 <= bounds.y1 + SLACK, f"{name}: {text!r} is cut"
        for (a, box_a), (b, box_b) in itertools.combinations(boxes, 2):
            assert not overlap(box_a, box_b), f"{name}: {a!r} and {b!r} overlap"


def overlap(a, b) -> bool:
    wide = min(a.x1, b.x1) - max(a.x0, b.x0)
    tall = min(a.y1, b.y1) - max(a.y0, b.y0)
    return wide > SLACK and tall > SLACK
