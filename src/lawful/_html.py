"""Small pieces of HTML for notebooks: a card, a table. Everything that comes from outside is escaped; nothing is fetched."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["card", "table"]

BOX = (
    "display:inline-block;max-width:100%;box-sizing:border-box;padding:.5em .9em;margin:.2em 0;border:1px solid #8886;"
    "border-left:4px solid #009E73;border-radius:4px;overflow-x:auto;font-family:system-ui,sans-serif"
)
CELL = "padding:.15em .6em;text-align:right;font-variant-numeric:tabular-nums"


def card(title: str, body: str) -> str:
    """A title, which is escaped, above markup, which is not."""
    return f'<div class="lawful" style="{BOX}"><div style="font-weight:600">{escape(title)}</div>{body}</div>'


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table of text, all of it escaped."""
    head = "".join(f'<th style="{CELL}">{escape(str(name))}</th>' for name in columns)
    body = "".join("<tr>" + "".join(f'<td style="{CELL}">{escape(str(v))}</td>' for v in row) + "</tr>" for row in rows)
    return f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
