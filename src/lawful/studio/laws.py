"""A law as it is being typed: each line read, typeset and, once all are right, measured at the labels; and a picture of it."""

from __future__ import annotations

import io
import threading
from typing import Any

import numpy as np

from lawful import sets
from lawful._array import to_numpy
from lawful.plots import PredictionDisplay
from lawful.plots.canvas import new_figure
from lawful.sets.typeset import mathml
from lawful.studio.tables import Refused, Table

__all__ = ["DRAWN", "THEMES", "check", "data_picture", "drawn", "items_of", "size_of"]

LONGEST, MOST = 20_000, 200  # characters, lines
DRAWN = 1500  # rows
STYLE: dict[str, Any] = {"svg.hashsalt": "lawful", "font.size": 12, "legend.facecolor": "none"}
THEMES = {
    theme: dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), ink)
    | dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), soft)
    for theme, ink, soft in (("light", "#1d2730", "#5a6772"), ("dark", "#e8edf1", "#9fb0bd"))
}
_drawing = threading.Lock()  # the style of matplotlib is one for all threads


def items_of(text: str) -> list[str]:
    """The relations, one a line or separated by semicolons; what follows # is a remark."""
    if len(text) > LONGEST:
        raise Refused(f"The law has {len(text)} characters; the studio takes {LONGEST}. Use Python for longer laws.")
    lines = [line.split("#")[0].strip() for line in text.replace(";", "\n").splitlines()]
    items = [line for line in lines if line]
    if len(items) > MOST:
        raise Refused(f"The law has {len(items)} lines; the studio takes {MOST}. Use Python for longer laws.")
    return items


def check(table: Table, outputs: list[str], text: str) -> dict[str, Any]:
    """{lines: [{text, ok, mathml, message}], ok, said}: what each line means, and how far off the labels are."""
    items = items_of(text)
    X, Y, inputs = table.split(outputs)
    lines = [_line(item, X, Y, outputs, inputs) for item in items]
    ok = bool(lines) and all(line["ok"] for line in lines)
    return {"lines": lines, "ok": ok, "said": _at_labels(items, X, Y, outputs, inputs) if ok else ""}


def _line(item: str, X: np.ndarray, Y: np.ndarray, outputs: list[str], inputs: list[str]) -> dict[str, Any]:
    try:
        sets.Equations(item).fit(Y, X, outputs=outputs, inputs=inputs)
    except (ValueError, TypeError, MemoryError) as error:
        return {"text": item, "ok": False, "mathml": "", "message": str(error).removeprefix("Equations: ")}
    return {"text": item, "ok": True, "mathml": mathml(item), "message": ""}


def _at_labels(items: list[str], X: np.ndarray, Y: np.ndarray, outputs: list[str], inputs: list[str]) -> str:
    whole = np.isfinite(Y).all(axis=1)
    if not whole.any():
        return "No row has all outputs, so the law cannot be measured at the labels."
    C = sets.Equations(items).fit(Y, X, outputs=outputs, inputs=inputs)
    with np.errstate(all="ignore"):
        off = to_numpy(C.at(X[whole]).residual(Y[whole]))
    off = off[np.isfinite(off)]
    if not len(off):
        return "The law has no value at the labels: look at divisions, roots and logarithms."
    return (
        f"At the {len(off)} labels it is off by {np.median(off):.2g} in the median, {off.max():.2g} at most (in its own units)."
    )


def svg(figure: Any) -> bytes:
    """A figure as SVG on whatever ground the page has."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return buffer.getvalue()


def data_picture(table: Table, outputs: list[str], text: str, theme: str) -> tuple[bytes, bool]:
    """The observed outputs with the law drawn, and whether it is; one that is not right yet is left out."""
    X, Y, inputs = table.split(outputs)
    law = None
    items = items_of(text)
    if items and all(_line(item, X, Y, outputs, inputs)["ok"] for item in items):
        law = sets.Equations(items).fit(Y, X, outputs=outputs, inputs=inputs)
    rows = np.unique(np.linspace(0, len(X) - 1, min(DRAWN, len(X))).astype(int))
    empty = np.zeros((0, len(outputs)))
    display = PredictionDisplay(empty, law, labels=Y[rows], X=X[rows], names=outputs)
    return drawn(theme, lambda: display, size_of(len(outputs))), law is not None


def size_of(outputs: int) -> tuple[float, float]:
    return (5.4, 4.6) if outputs <= 3 else (6.4, 6.0)


def drawn(theme: str, make: Any, size: tuple[float, float] = (5.4, 4.0)) -> bytes:
    """A display in the colours of the page."""
    import matplotlib

    style: Any = STYLE | THEMES.get(theme, THEMES["light"])
    with _drawing, matplotlib.rc_context(style):
        figure = new_figure(figsize=size, layout="constrained")
        make().plot(ax=figure.subplots())
        return svg(figure)
