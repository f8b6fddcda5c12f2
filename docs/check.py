"""What Sphinx does not look at: `python docs/check.py docs/_build/html`.

* every link and picture of the built pages leads to a file, and to a place in it, that is there; no page loads anything from
  elsewhere (links that a reader may follow to other sites are not followed: this needs no network);
* the docstrings of the public names hold to the chosen rules of numpydoc.
"""

from __future__ import annotations

import importlib
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

HERE = Path(__file__).resolve().parent
LOADS = {"img": "src", "script": "src", "link": "href", "source": "src", "iframe": "src"}
# Sections known and in order, parameters that exist, a summary.
RULES = ("GL06", "GL07", "GL08", "GL09", "PR02", "PR10", "SS01", "SS04")


class Page(HTMLParser):
    """What one page loads, where it leads, and which places it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.places |= {found[key] or "" for key in ("id", "name") if key in found}
        if tag in LOADS and (tag != "link" or found.get("rel") in ("stylesheet", "icon", "preload")):
            self.loads.append(found.get(LOADS[tag]) or "")
        elif tag == "a" and found.get("href"):
            self.links.append(found["href"] or "")


def broken_links(folder: Path) -> list[str]:
    pages = {
        path.resolve(): Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html") if "_static" not in path.parts
    }
    faults = [] if pages else [f"{folder} holds no pages; build them with make docs"]
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        for target in filter(None, [*page.loads, *page.links]):
            parts = urlsplit(target)
            if parts.scheme in ("http", "https", "mailto") or parts.netloc:
                faults += [f"{name} loads {target} from elsewhere"] if target in page.loads else []
                continue
            if parts.scheme == "data":
                continue
            end = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not end.is_file():
                faults.append(f"{name} leads to {target}, which is not there")
            elif parts.fragment and end in pages and unquote(parts.fragment) not in pages[end].places:
                faults.append(f"{name} leads to {target}: the page is there, the place is not")
    return faults


def poor_docstrings() -> list[str]:
    sys.path.insert(0, str(HERE / "_ext"))
    validate = importlib.import_module("numpydoc.validate").validate
    names = [name for listed in importlib.import_module("reference").reference().values() for name in listed]
    return [f"{name}: {code} {words}" for name in names for code, words in validate(name)["errors"] if code in RULES]


def main(folder: str) -> int:
    faults = broken_links(Path(folder)) + poor_docstrings()
    print("\n".join(faults) if faults else "links and docstrings are in order")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
