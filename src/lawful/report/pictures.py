"""Figures as bytes: SVG inside the HTML file (sharp at any size), PNG beside the Markdown file."""

from __future__ import annotations

import base64
import io
from typing import Any

STYLE: Any = {
    "svg.hashsalt": "lawful",  # the same picture is the same file
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "figure.dpi": 100,
    "axes.axisbelow": True,
}


def need_matplotlib() -> None:
    """Say so before hours of work, not after."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError("a report has figures, which need matplotlib: pip install 'lawful[plot]'") from error


def svg(figure: Any) -> str:
    """A data URI."""
    return "data:image/svg+xml;base64," + base64.b64encode(_bytes(figure, "svg", {"Date": None})).decode("ascii")


def png(figure: Any) -> bytes:
    return _bytes(figure, "png", {"Software": None})


def _bytes(figure: Any, kind: str, metadata: dict[str, Any]) -> bytes:
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.draw().savefig(buffer, format=kind, dpi=160, metadata=metadata)
    return buffer.getvalue()
