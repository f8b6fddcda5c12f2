"""The library's docstrings are plain text; these few changes make reStructuredText of them.

Indented lines before the first section are formulas and stay as they are, so do tables of names and meanings; a bar is a bar
(`|r|`), not a substitution.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

# What scikit-learn gives to every estimator is described there; the others are asked for by the library alone.
INHERITED = {"get_params", "set_params", "get_metadata_routing", "fit_transform", "after_load", "in_metric"}


def formulas(lines: list[str]) -> list[str]:
    """Indented blocks after an empty line, up to the first section, as literal blocks."""
    made: list[str] = []
    end = next((k for k, line in enumerate(lines[1:]) if re.fullmatch(r"-{4,}", line.strip())), len(lines))
    inside = False
    for k, line in enumerate(lines):
        indented = line.startswith("    ")
        if k < end and indented and not inside and made and not made[-1].strip():
            made += [] if made[-2:-1] == ["::"] else ["::", ""]
            inside = True
        elif line.strip() and not indented:
            inside = False
        made.append(line)
    return made


def tables(lines: list[str]) -> list[str]:
    """Paragraphs with a hanging indent are tables: kept as they are, from the line after a colon if there is one."""
    made: list[str] = []
    end = next((k for k, line in enumerate(lines[1:]) if re.fullmatch(r"-{4,}", line.strip())), len(lines))
    k = 0
    while k < len(lines):
        stop = next((j for j in range(k, len(lines)) if not lines[j].strip()), len(lines))
        part = lines[k:stop]
        hanging = next((j for j, line in enumerate(part) if line.startswith("    ")), 0)
        if k < end and hanging and not part[0].startswith((" ", ">>>")):
            begin = hanging if part[hanging - 1].endswith(":") else 0
            made += [*part[:begin], *([""] if begin else []), "::", "", *(f"    {line}" for line in part[begin:])]
        else:
            made += part
        made += lines[stop : stop + 1]
        k = stop + 1
    return made


def bars(lines: list[str]) -> list[str]:
    made: list[str] = []
    literal = False
    for line in lines:
        if line == "::":
            literal = True
        elif literal and line.strip() and not line.startswith(" "):
            literal = False
        if not literal and not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(`[^`]*`)", line)
            line = "".join(part if part.startswith("`") else part.replace("|", "\\|") for part in parts)
        made.append(line)
    return made


def plain(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = bars(formulas(tables(lines)))


def skip(app: Sphinx, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    if name in INHERITED or re.fullmatch(r"set_\w+_request", name):
        return True
    if (isinstance(obj, property) and not obj.__doc__) or getattr(obj, "__doc__", None) == bool.__doc__:
        return True
    return None


def public_bases(app: Sphinx, name: str, obj: Any, options: Any, bases: list[Any]) -> None:
    """In the place of a base class of the house, what it is derived from."""
    shown = [next((one for one in getattr(base, "__mro__", ()) if not one.__name__.startswith("_")), base) for base in bases]
    bases[:] = [base for base in dict.fromkeys(shown) if base is not object] or [object]


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", plain, priority=100)  # before numpydoc reads the sections
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-bases", public_bases)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
