"""What a report is made of. Experiments build these; `html` and `markdown` write them down.

Text may hold `code`, **bold** and [links](#anchor) in the notation of Markdown; nothing else is interpreted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of short paragraphs."""

    items: list[str]


@dataclass(frozen=True)
class Table:
    """Rows of strings or numbers under named columns; the first column names the row, others are set to the right.

    `bold` holds (row, column) cells to set in bold face. Floats must come already formatted: a table decides its own digits.
    Keep it narrow (six columns or so): it is read on a phone as well.
    """

    columns: list[str]
    rows: list[list[str]]
    caption: str = ""
    bold: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class Figure:
    """A picture drawn by `draw() -> matplotlib Figure`. `alt` says in words what it shows, for those who cannot see it.

    Draw for a width of about 4.6 inches and fonts of 9 points: that is legible on a phone and, two in a row, on a desk.
    """

    name: str
    draw: Callable[[], Any]
    caption: str
    alt: str


@dataclass(frozen=True)
class Grid:
    """Figures side by side (below one another on a phone)."""

    figures: list[Figure]
    caption: str = ""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, whether it holds in this run (None: undecided), and the numbers that decide it."""

    claim: str
    holds: bool | None
    numbers: str


@dataclass(frozen=True)
class Section:
    """A title, an anchor made of it, and blocks."""

    title: str
    blocks: list[Any] = field(default_factory=list)
