"""Blocks as Markdown; figures become files beside it."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from lawful.report.blocks import Bullets, Claim, Figure, Grid, Section, Table, Text
from lawful.report.inline import anchor

VERDICT = {True: "holds", False: "does not hold", None: "undecided"}


def document(title: str, summary: list[Any], sections: list[Section]) -> str:
    """A whole report."""
    contents = "\n".join(f"* [{s.title}](#{anchor(s.title)})" for s in sections)
    parts = [f"# {title}", *map(write, summary), contents, *map(write, sections)]
    return "\n\n".join(parts) + "\n"


def cell(text: str) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


@singledispatch
def write(block: Any) -> str:
    raise TypeError(f"a report cannot hold {type(block).__name__}; see lawful.report.blocks for what it can")


@write.register
def _(block: Text) -> str:
    return block.text


@write.register
def _(block: Bullets) -> str:
    return "\n".join(f"* {item}" for item in block.items)


@write.register
def _(block: Table) -> str:
    lines = ["| " + " | ".join(map(cell, block.columns)) + " |"]
    lines.append("|" + "|".join(["---"] + ["---:"] * (len(block.columns) - 1)) + "|")
    for i, row in enumerate(block.rows):
        cells = [f"**{cell(c)}**" if (i, j) in block.bold else cell(c) for j, c in enumerate(row)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + (f"\n\n*{block.caption}*" if block.caption else "")


@write.register
def _(block: Figure) -> str:
    return f"![{block.alt}](figures/{block.name}.png)\n\n*{block.caption}*"


@write.register
def _(block: Grid) -> str:
    return "\n\n".join([*map(write, block.figures), *([f"*{block.caption}*"] if block.caption else [])])


@write.register
def _(block: Claim) -> str:
    return f"* **{VERDICT[block.holds]}** - {block.claim}. {block.numbers}"


@write.register
def _(block: Section) -> str:
    return "\n\n".join([f"## {block.title}", *map(write, block.blocks)])
