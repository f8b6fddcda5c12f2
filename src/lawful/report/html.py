"""Blocks as one HTML page that loads nothing: its style and its figures are inside."""

from __future__ import annotations

from functools import singledispatch
from html import escape
from importlib.resources import files
from typing import Any

from lawful.report.blocks import Bullets, Claim, Figure, Grid, Section, Table, Text
from lawful.report.inline import anchor
from lawful.report.inline import html as inline
from lawful.report.markdown import VERDICT
from lawful.report.pictures import svg

BADGE = {True: "yes", False: "no", None: "open"}
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="lawful">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{css}</style>
</head>
<body>
<header><h1>{title}</h1></header>
<main>
<div class="summary">{summary}</div>
<nav aria-label="Contents"><h2>Contents</h2><ol>{contents}</ol></nav>
{sections}
</main>
</body>
</html>
"""


def document(title: str, summary: list[Any], sections: list[Section]) -> str:
    """A whole report."""
    contents = "".join(f'<li><a href="#{anchor(s.title)}">{inline(s.title)}</a></li>' for s in sections)
    return PAGE.format(
        title=escape(title),
        css=files("lawful.report").joinpath("style.css").read_text(encoding="utf-8"),
        summary="\n".join(map(write, summary)),
        contents=contents,
        sections="\n".join(map(write, sections)),
    )


@singledispatch
def write(block: Any) -> str:
    raise TypeError(f"a report cannot hold {type(block).__name__}; see lawful.report.blocks for what it can")


@write.register
def _(block: Text) -> str:
    return f"<p>{inline(block.text)}</p>"


@write.register
def _(block: Bullets) -> str:
    return "<ul>" + "".join(f"<li>{inline(item)}</li>" for item in block.items) + "</ul>"


@write.register
def _(block: Table) -> str:
    def cells(row: list[str], i: int) -> str:
        found = []
        for j, text in enumerate(row):
            inner = f"<b>{inline(str(text))}</b>" if (i, j) in block.bold else inline(str(text))
            found.append(f'<th scope="row">{inner}</th>' if j == 0 else f"<td>{inner}</td>")
        return "".join(found)

    head = "".join(f'<th scope="col">{inline(c)}</th>' for c in block.columns)
    body = "\n".join(f"<tr>{cells(row, i)}</tr>" for i, row in enumerate(block.rows))
    # Above the table and not in it: a table that scrolls on a phone would take its caption along.
    caption = f'<p class="caption above">{inline(block.caption)}</p>' if block.caption else ""
    # A region that scrolls must be reachable by keyboard.
    return (
        f'{caption}<div class="table" tabindex="0" role="region" aria-label="{escape(block.caption or "table")}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


@write.register
def _(block: Figure) -> str:
    image = f'<img src="{svg(block)}" alt="{escape(block.alt)}">'
    return f'<figure id="figure-{anchor(block.name)}">{image}<figcaption>{inline(block.caption)}</figcaption></figure>'


@write.register
def _(block: Grid) -> str:
    caption = f'<p class="caption">{inline(block.caption)}</p>' if block.caption else ""
    return f'<div class="grid">{"".join(map(write, block.figures))}</div>{caption}'


@write.register
def _(block: Claim) -> str:
    badge = f'<span class="badge {BADGE[block.holds]}">{VERDICT[block.holds]}</span>'
    return f'<div class="claim">{badge}<p><b>{inline(block.claim)}.</b> {inline(block.numbers)}</p></div>'


@write.register
def _(block: Section) -> str:
    inner = "\n".join(map(write, block.blocks))
    return f'<section id="{anchor(block.title)}"><h2>{inline(block.title)}</h2>\n{inner}</section>'
