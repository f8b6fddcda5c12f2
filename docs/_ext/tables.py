"""Cells that hold numbers stand to the right and are never broken; so does the head of a column of them."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

NUMBER = re.compile(r"[-+~<>]?\s?\d[\d.,:/%()\[\]\s+\-eExX^*±]*( ?(s|ms|us|GB|MB|min|h|times|of))?[\d\s]*")
LONGEST = 26  # characters


def numbers(app: Sphinx, doctree: nodes.document) -> None:
    for table in doctree.findall(nodes.tgroup):
        rows = list(table.findall(nodes.row))
        cells = [[entry for entry in row.children if isinstance(entry, nodes.entry)] for row in rows]
        head = len(list(table.findall(nodes.thead)))
        for column in zip(*cells):
            texts = [entry.astext().strip() for entry in column]
            found = [len(text) <= LONGEST and bool(NUMBER.fullmatch(text)) for text in texts]
            body = [number for text, number in zip(texts[head:], found[head:]) if text not in ("", "-")]
            for k, entry in enumerate(column):
                if found[k] or (k < head and body and all(body)):
                    entry["classes"].append("number")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", numbers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
