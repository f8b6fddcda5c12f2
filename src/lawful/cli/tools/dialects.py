"""CSV as it comes: how a file is written, found out from its beginning.

    encoding    UTF-8, with or without a mark, or UTF-16 with one
    separator   a comma, a semicolon, a tab or a bar: the one that splits the first line into most names
    decimals    a comma, where that does not separate and numbers such as 0,5 stand in the first rows

What would be misread without a word is an error: two columns of one name, rows with more values than there are names.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from pathlib import Path
from typing import Any

from lawful.cli.words import Trouble

__all__ = ["dialect"]

SEPARATORS = ",;\t|"
START = 1 << 16  # bytes that are looked at
QUOTED = re.compile(r'"[^"]*"')
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*")


def dialect(path: Path) -> dict[str, Any]:
    """What `pandas.read_csv` must be told of a file."""
    with open(path, "rb") as file:
        start = file.read(START)
    encoding = "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(start)
    if "\0" in text:
        raise Trouble(f"{path} cannot be read as CSV: it holds zero bytes, which no text does; save it as CSV in UTF-8")
    lines = [line for line in text.splitlines() if line.strip()]
    if len(start) == START:
        lines = lines[:-1] or lines  # the last may be cut
    if not lines:
        raise Trouble(f"{path} cannot be read as CSV: it is empty; its first line should name the columns")
    separator = max(SEPARATORS, key=QUOTED.sub("", lines[0]).count)  # the first of them where they are equal
    names, *rows = csv.reader(lines[:20], delimiter=separator, skipinitialspace=True)
    named = Counter(name.strip() for name in names if name.strip())
    if named and (most := named.most_common(1)[0])[1] > 1:
        raise Trouble(f"{path} has {most[1]} columns {most[0]!r}; give each a name of its own")
    if rows and any(value.strip() for value in rows[0][len(names) :]):
        raise Trouble(f"{path} names {len(names)} columns in its first line and has {len(rows[0])} values in the next one")
    comma = separator != "," and any(DECIMAL_COMMA.fullmatch(value) for row in rows for value in row)
    known = {"encoding": encoding, "sep": separator, "decimal": "," if comma else "."}
    return known | {"skipinitialspace": True, "index_col": False}
