"""A file that somebody dropped, as a table of numbers, or a sentence that says why it is none.

Files come from spreadsheets: encodings (UTF-8, UTF-16, Windows-1252), separators (comma, semicolon, tab, bar) and decimal
commas are recognised, and what was guessed is said.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Refused", "Table", "read"]

FEWEST, WIDEST = 8, 500  # rows to learn and to compare; columns
BINARY = {
    b"PK\x03\x04": "a spreadsheet or a zip archive; save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet; save the sheet as CSV",
    b"%PDF": "a PDF; copy the table into a CSV file",
    b"\x89PNG": "a picture; a CSV file is text",
    b"\xff\xd8\xff": "a picture; a CSV file is text",
    b"PAR1": "a Parquet file, which the command line reads (lawful fit); export it as CSV",
    b"\x1f\x8b": "compressed; unpack it first",
}
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


class Refused(Exception):
    """What the page cannot do, in words for the person in front of it; `status` is that of the answer."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Table:
    """Numbers by column; columns that are no numbers are named, with an example."""

    name: str
    numbers: dict[str, np.ndarray]
    texts: dict[str, str]
    order: list[str]
    notes: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return len(next(iter(self.numbers.values())))

    def describe(self) -> dict[str, Any]:
        """For the page."""
        return {
            "name": self.name,
            "rows": self.rows,
            "notes": self.notes,
            "columns": [self._column(name) for name in self.order],
        }

    def _column(self, name: str) -> dict[str, Any]:
        if name in self.texts:
            return {"name": name, "numeric": False, "example": self.texts[name]}
        values = self.numbers[name]
        seen = values[np.isfinite(values)]
        ends = [float(seen.min()), float(seen.max())] if len(seen) else [None, None]
        return {"name": name, "numeric": True, "missing": int(len(values) - len(seen)), "low": ends[0], "high": ends[1]}

    def split(self, outputs: list[str], inputs: list[str] | None = None) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """X, Y and the names of the inputs; rows without all inputs, or without any output, are left out."""
        if not outputs:
            raise Refused("No output is marked; mark the columns that are to be predicted.")
        for name in (*outputs, *(inputs or ())):
            if name not in self.numbers:
                raise Refused(f"{self.name} has no column of numbers called {name!r}; mark the outputs again.")
        given = [n for n in self.numbers if n not in outputs] if inputs is None else [n for n in inputs if n not in outputs]
        if not given:
            raise Refused("Every column is an output; leave at least one to predict from.")
        X, Y = (np.column_stack([self.numbers[name] for name in names]) for names in (given, outputs))
        kept = np.isfinite(X).all(axis=1) & np.isfinite(Y).any(axis=1)
        if kept.sum() < FEWEST:
            raise Refused(
                f"Only {int(kept.sum())} rows have all inputs and an output; {FEWEST} are needed. Leave out inputs with gaps."
            )
        return X[kept], Y[kept], given


def read(data: bytes, name: str) -> Table:
    """The table in a file; `Refused` where there is none."""
    try:
        import pandas as pd
    except ImportError as error:
        raise Refused("Tables need pandas, which is not installed; pip install 'lawful[studio]' brings it.", 500) from error
    if not data.strip(b"\x00 \t\r\n\xef\xbb\xbf\xff\xfe"):
        raise Refused(f"{name} is empty; a CSV file has a line of column names and a line for each row.")
    notes: list[str] = []
    text = _text(data, name, notes)
    frame = _frame(pd, text, name, notes)
    if len(frame) == 0:
        raise Refused(f"{name} has column names and no rows; at least {FEWEST} rows are needed.")
    if len(frame) < FEWEST:
        count = "one row" if len(frame) == 1 else f"{len(frame)} rows"
        raise Refused(f"{name} has {count}; to learn something and to check it, at least {FEWEST} are needed.")
    if frame.shape[1] > WIDEST:
        raise Refused(f"{name} has {frame.shape[1]} columns; the studio takes {WIDEST}. Use Python for wider tables.")
    return _numbers(pd, frame, name, notes)


def _text(data: bytes, name: str, notes: list[str]) -> str:
    for head, what in BINARY.items():
        if data.startswith(head):
            raise Refused(f"{name} is no CSV file but {what}.")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings: tuple[str, ...] = ("utf-16",)
    else:
        if b"\x00" in data:
            raise Refused(f"{name} is no text (it has zero bytes); save it as CSV, encoded as UTF-8.")
        encodings = ("utf-8-sig", "cp1252", "latin-1")
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if encoding != "utf-8-sig":
            notes.append(f"read as {encoding}, because it is not UTF-8; look whether the names are right")
        return text
    raise Refused(f"{name} begins as UTF-16 and does not go on so; save it as CSV, encoded as UTF-8.")


def _frame(pd: Any, text: str, name: str, notes: list[str]) -> Any:
    lines = [line for line in text.splitlines()[:20] if line.strip()]
    separator = max(SEPARATORS, key=lambda s: (min(line.count(s) for line in lines[:5]), lines[0].count(s)))
    if lines[0].count(separator) == 0:
        separator = ","
    fields = separator.join(lines[1:])
    comma = separator != "," and bool(re.search(r"\d,\d", fields)) and not re.search(r"\d\.\d", fields)
    if separator != ",":
        notes.append(f"columns are separated by {SEPARATORS[separator]}" + (", decimals by commas" if comma else ""))
    heads = [head.strip().strip('"') for head in lines[0].split(separator)]
    named = not all(_is_number(head, comma) for head in heads)
    if not named:
        notes.append("the first line holds numbers and no names; the columns are called column1, column2, …")
    options: dict[str, Any] = {} if named else {"header": None, "names": [f"column{j + 1}" for j in range(len(heads))]}
    try:
        frame = pd.read_csv(
            io.StringIO(text), sep=separator, decimal="," if comma else ".", skipinitialspace=True, index_col=False, **options
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise Refused(f"{name} cannot be read as a table: {' '.join(str(error).split())}.") from error
    frame.columns = [str(column).strip() for column in frame.columns]
    empty = [c for c in frame.columns if c.startswith("Unnamed: ") and frame[c].isna().all()]
    return frame.drop(columns=empty).dropna(how="all")


def _is_number(word: str, comma: bool) -> bool:
    try:
        float(word.replace(",", ".") if comma else word)
    except ValueError:
        return False
    return True


def _numbers(pd: Any, frame: Any, name: str, notes: list[str]) -> Table:
    numbers: dict[str, np.ndarray] = {}
    texts: dict[str, str] = {}
    for column in frame.columns:
        values = pd.to_numeric(frame[column], errors="coerce")
        odd = frame[column][values.isna() & frame[column].notna()]
        if len(odd) or values.notna().sum() == 0:
            texts[column] = str(odd.iloc[0])[:40] if len(odd) else "(empty)"
            continue
        found = values.to_numpy(dtype=float)
        if np.isinf(found).any():
            notes.append(f"{column}: {int(np.isinf(found).sum())} infinite values count as gaps")
        numbers[column] = np.where(np.isfinite(found), found, np.nan)
    if len(numbers) < 2:
        raise Refused(
            f"{name} has {len(numbers) or 'no'} column{'s' * (len(numbers) != 1)} of numbers; at least two are needed, one to "
            "predict from and one to predict."
        )
    if texts:
        notes.append(f"no numbers, and left out: {', '.join(texts)}")
    return Table(name, numbers, texts, [str(c) for c in frame.columns], notes)
