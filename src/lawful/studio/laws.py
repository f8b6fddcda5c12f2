"""A law as it is being typed: each line read, typeset and, once all are right, measured at the labels; and a picture of it.

A law is equations and inequalities, or one of the sets that the command line takes by name.
"""

from __future__ import annotations

import io
import threading
from html import escape
from typing import Any

import numpy as np

from lawful._array import to_numpy
from lawful.plots import PredictionDisplay
from lawful.plots.canvas import new_figure
from lawful.sets.named import is_named, law_in_words
from lawful.sets.typeset import law_html, mathml
from lawful.studio.tables import Refused, Table

__all__ = ["DRAWN", "THEMES", "check", "data_picture", "drawn", "items_of", "size_of"]

LONGEST, MOST, SHORT = 20_000, 200, 100  # characters, lines; names that are listed below a set
DRAWN = 1500  # rows
STYLE: dict[str, Any] = {"svg.hashsalt": "lawful", "font.size": 12, "legend.facecolor": "none"}
THEMES = {
    theme: dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), ink)
    | dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), soft)
    for theme, ink, soft in (("light", "#1d2730", "#5a6772"), ("dark", "#e8edf1", "#9fb0bd"))
}
_drawing = threading.Lock()  # the style of matplotlib is one for all threads


def items_of(text: str) -> list[str]:
    """The relations, one a line or separated by semicolons, or one set by its name; what follows # is a remark."""
    if len(text) > LONGEST:
        raise Refused(f"The law has {len(text)} characters; the studio takes {LONGEST}. Use Python for longer laws.")
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    if is_named(whole := " ".join(line for line in lines if line)):
        return [whole]
    items = [item.strip() for line in lines for item in line.split(";") if item.strip()]
    if len(items) > MOST:
        raise Refused(f"The law has {len(items)} lines; the studio takes {MOST}. Use Python for longer laws.")
    return items


def check(table: Table, outputs: list[str], text: str) -> dict[str, Any]:
    """{lines: [{text, ok, markup, message}], ok, said}: what each line means, and how far off the labels are."""
    items = items_of(text)
    X, Y, inputs = table.split(outputs)
    rows = _some(len(X)) if any(map(is_named, items)) else slice(None)  # a set may be learned, and typing goes on
    parts = X[rows], Y[rows], outputs, inputs
    lines = [_line(item, items, *parts) for item in items]
    ok = bool(lines) and all(line["ok"] for line in lines)
    return {"lines": lines, "ok": ok, "said": _at_labels(items, *parts) if ok else ""}


def _some(n: int) -> np.ndarray:
    """Rows enough for a picture, from the first to the last."""
    return np.unique(np.linspace(0, n - 1, min(DRAWN, n)).astype(int))


def _line(item: str, items: list[str], X: np.ndarray, Y: np.ndarray, outputs: list[str], inputs: list[str]) -> dict[str, Any]:
    named = is_named(item)
    try:
        C = law_in_words(items if named else [item]).fit(Y, X, outputs=outputs, inputs=inputs)  # a set stands alone
    except (ValueError, TypeError, MemoryError, np.linalg.LinAlgError) as error:
        return {"text": item, "ok": False, "markup": "", "message": str(error).removeprefix("Equations: ")}
    return {"text": item, "ok": True, "markup": _set_html(C, outputs) if named else mathml(item), "message": ""}


def _set_html(C: Any, outputs: list[str]) -> str:
    """What a set demands of c, and what c is."""
    what = f"c = ({', '.join(outputs)})"
    shown = f'<div class="values">{escape(what)}</div>' if len(what) <= SHORT else ""
    return law_html(C) + shown


def _at_labels(items: list[str], X: np.ndarray, Y: np.ndarray, outputs: list[str], inputs: list[str]) -> str:
    whole = np.isfinite(Y).all(axis=1)
    if not whole.any():
        return "No row has all outputs, so the law cannot be measured at the labels."
    C = law_in_words(items).fit(Y, X, outputs=outputs, inputs=inputs)
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
    some = _some(len(X))
    parts = X[some], Y[some], outputs, inputs
    if items and all(_line(item, items, *parts)["ok"] for item in items):
        law = law_in_words(items).fit(Y[some], X[some], outputs=outputs, inputs=inputs)
    empty = np.zeros((0, len(outputs)))
    display = PredictionDisplay(empty, law, labels=Y[some], X=X[some], names=outputs)
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
