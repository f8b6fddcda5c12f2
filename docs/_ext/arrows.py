"""Mermaid's flow charts as lists of arrows: the pages load no script, and a list can be read on a phone and aloud."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

EDGE = re.compile(r"^(?P<from>.+?)\s+(?:--\s+(?P<label>.+?)\s+)?-->\s+(?P<to>.+)$")
NODE = re.compile(r"^(?P<name>\w+)\s*(?:[\[{]+(?P<words>.+?)[\]}]+)?$")


class FlowChart(Directive):
    has_content = True

    def run(self) -> list[nodes.Node]:
        words: dict[str, str] = {}

        def read(text: str) -> str:
            found = NODE.match(text.strip())
            if found is None:
                raise self.error(f"a flow chart's box is name or name[words], this is {text!r}")
            if found["words"]:
                words[found["name"]] = " ".join(re.sub(r"<br/?>", ": ", found["words"].strip('"'), count=1).split())
            return found["name"]

        edges = []
        for line in map(str.strip, self.content):
            found = EDGE.match(line)
            if found:
                edges.append((read(found["from"]), found["label"], [read(part) for part in found["to"].split(" & ")]))
            elif line and not line.startswith(("flowchart", "subgraph", "end")):
                read(line)
        listing = nodes.bullet_list(classes=["arrows"])
        for begin, label, ends in edges:
            text = nodes.paragraph()
            text += nodes.strong(text=words.get(begin, begin))
            text += nodes.Text(f" \N{RIGHTWARDS ARROW} {', '.join(words.get(end, end) for end in ends)}")
            if label:
                text += nodes.Text(" (")
                text += nodes.literal(text=label.strip('"').replace("<br/>", " "))
                text += nodes.Text(")")
            listing += nodes.list_item("", text)
        return [listing]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("mermaid", FlowChart)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
