"""The little Markdown that a block's text may hold, as HTML."""

from __future__ import annotations

import re
from html import escape

CODE = re.compile(r"`([^`]+)`")
BOLD = re.compile(r"\*\*(.+?)\*\*")
LINK = re.compile(r"\[([^\]]+)\]\((#[\w-]+)\)")


def anchor(title: str) -> str:
    """The anchor of a title.

    >>> anchor("Sarcos: what differs, and why")
    'sarcos-what-differs-and-why'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def html(text: str) -> str:
    """Escaped HTML with code, bold face and links inside the page.

    >>> html("**x < 1** by `a**b**`, see [there](#there)")
    '<b>x &lt; 1</b> by <code>a**b**</code>, see <a href="#there">there</a>'
    """
    pieces = CODE.split(text)
    for i, piece in enumerate(pieces):
        if i % 2:
            pieces[i] = f"<code>{escape(piece, quote=False)}</code>"
        else:
            pieces[i] = LINK.sub(r'<a href="\2">\1</a>', BOLD.sub(r"<b>\1</b>", escape(piece, quote=False)))
    return "".join(pieces)
