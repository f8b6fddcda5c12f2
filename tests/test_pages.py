"""The pages of the documentation: their code runs as pasted and prints what they show; their links and names exist.

A block of Python followed by a block of text is a promise: running the one prints the other. Each page is run from top to
bottom in one namespace, in a folder of its own.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from commands import call
from test_readme import prepared

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```)?", re.M | re.S)
RUN = ["start.md", "choose.md", *(f"nouns/{path.name}" for path in sorted((DOCS / "nouns").glob("*.md")))]
PAGES = sorted(path for path in DOCS.rglob("*.md") if not {"_build", "gallery", "api"} & set(path.relative_to(DOCS).parts))


def blocks(page: str) -> list[tuple[str, str | None]]:
    return [(found["code"], found["shown"]) for found in BLOCK.finditer((DOCS / page).read_text(encoding="utf-8"))]


def run(page: str, namespace: dict[str, object]) -> None:
    for code, shown in blocks(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), namespace)
        if shown is not None or printed.getvalue():
            assert printed.getvalue() == (shown or ""), f"{page} shows something else than this prints:\n{code}"


@pytest.mark.parametrize("page", [page for page in RUN if page != "nouns/index.md"])
def test_pages_print_what_they_show(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert blocks(page), f"{page} has no code"
    run(page, {"__name__": "page"})


def test_the_start_page_shows_every_output():
    assert len(blocks("start.md")) >= 7
    assert all(shown for _, shown in blocks("start.md"))


@pytest.mark.parametrize("page", [page for page in RUN if page.startswith("nouns/") and page != "nouns/index.md"])
def test_every_noun_says_how_to_add_your_own(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    own = re.split(r"^## How to (?:add|bring) your own$", text, flags=re.M)
    assert len(own) == 2 and "```python" in own[1]
    assert f"\n{page.removeprefix('nouns/').removesuffix('.md')}\n" in (DOCS / "nouns" / "index.md").read_text(encoding="utf-8")


def plain(text: str) -> str:
    """Numbers and rules apart, which differ from machine to machine and from width to width."""
    return " ".join(re.sub(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", "#", re.sub("[━─]+", "-", text)).split())


def test_the_command_line_says_what_its_page_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "command_line.md").read_text(encoding="utf-8")
    run("command_line.md", {"__name__": "page"})
    shown = re.findall(r"^```console\n\$ lawful (.*?)\n(.*?)^```", text, re.M | re.S)
    assert len(shown) >= 5
    for words, output in shown:
        done = call(*shlex.split(words), code=2 if output.startswith("lawful ") else 0)
        assert plain(done.output) == plain(output), f"lawful {words}:\n{done.output}"


def test_the_front_page_and_the_paper_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for page in ("index.md", "paper.md"):
        namespace = prepared()
        exec("from lawful import ConstrainedRegressor, Equations", namespace)
        run(page, namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_links_between_pages_lead_somewhere(page):
    made = {DOCS / "gallery" / "index.rst", DOCS / "api" / "index.rst"}  # written by make docs
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            end = (page.parent / target).resolve()
            assert end in made or end.exists(), f"{page.name} links to {target}, which is not there"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_scripts_and_tests_named_in_pages_exist(page):
    text = page.read_text(encoding="utf-8")
    for script in set(re.findall(r"(?:benchmarks|examples|scripts|results)/\w+\.py", text)):
        assert (ROOT / script).is_file(), f"{page.name} names {script}"


def test_every_page_is_in_a_table_of_contents():
    listed: set[Path] = set()
    for page in PAGES:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
            listed |= {(page.parent / f"{line}.md").resolve() for line in tree.split() if not line.startswith(":")}
    assert {page for page in PAGES if page != DOCS / "index.md"} <= listed
