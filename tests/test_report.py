"""Blocks to HTML and Markdown: complete, escaped, self-contained."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from matplotlib.figure import Figure as Canvas

from lawful.report import html, markdown
from lawful.report.blocks import Bullets, Claim, Figure, Grid, Section, Table, Text
from lawful.report.inline import anchor
from lawful.report.pictures import png, svg


def draw():
    figure = Canvas(figsize=(2, 1))
    figure.subplots().plot([0, 1], [1, 0])
    return figure


def picture(name):
    return Figure(name, draw, f"caption of {name}", f"a <line> that falls ({name})")


SECTIONS = [
    Section(
        "First: a & b", [Text("1 < 2, `x < y` and **bold <i>**, see [the second](#second)"), Bullets(["one", "two | three"])]
    ),
    Section(
        "Second",
        [
            Table(["name", "a|b"], [["x < y", "1"], ["z", "2"]], "A caption", frozenset({(1, 1)})),
            Grid([picture("left"), picture("right")], "both"),
            picture("alone"),
            Claim("It holds", True, "1 of 1"),
            Claim("It does not", False, "0 of 1"),
            Claim("Who knows", None, "n/a"),
        ],
    ),
]


class Structure(HTMLParser):
    """Tags with their attributes, and whether they are closed in order."""

    VOID = ("meta", "img", "link", "br", "!doctype")

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.text = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def parse(page):
    structure = Structure()
    structure.feed(page)
    assert structure.open == []
    return structure


def test_html_is_well_formed_and_loads_nothing():
    page = html.document("A <title>", [Text("summary")], SECTIONS)
    found = parse(page)
    names = [tag for tag, _ in found.tags]
    assert names.count("figure") == names.count("img") == 3 and names.count("table") == 1 and names.count("section") == 2
    for _, attributes in found.tags:
        for name in ("src", "href"):
            assert re.match(r"data:|#", attributes.get(name, "#")), "nothing may be loaded from elsewhere"
        assert "onload" not in attributes
    assert "script" not in names and "@import" not in page and "url(" not in page
    for tag, attributes in found.tags:
        if tag == "img":
            assert attributes["alt"].startswith("a <line> that falls")
        if tag == "a":
            assert f'id="{attributes["href"][1:]}"' in page, "links lead somewhere"
    for text in ("1 < 2", "x < y", "bold <i>", "First: a & b", "holds", "does not hold", "undecided", "two | three"):
        assert text in found.text
    assert 'name="viewport"' in page and "@media print" in page


def test_markdown_holds_the_same():
    page = markdown.document("Title", [Text("summary")], SECTIONS)
    assert page.startswith("# Title\n\nsummary")
    assert "| name | a\\|b |\n|---|---:|\n| x < y | 1 |\n| z | **2** |" in page
    assert [m for m in re.findall(r"\]\(figures/(\w+)\.png\)", page)] == ["left", "right", "alone"]
    assert "* **does not hold** - It does not. 0 of 1" in page
    assert f"(#{anchor('First: a & b')})" in page


def test_pictures_are_the_same_bytes_each_time():
    assert svg(picture("x")) == svg(picture("x"))
    assert png(picture("x")) == png(picture("x"))
    assert png(picture("x")).startswith(b"\x89PNG")


@pytest.mark.parametrize("write", [html.write, markdown.write])
def test_unknown_blocks_are_refused(write):
    with pytest.raises(TypeError, match=r"cannot hold int.*lawful\.report\.blocks"):
        write(3)
