"""Tables in files: CSV, Parquet and .npz, read in pieces and written whole or not at all.

    .csv        the first line names the columns; as spreadsheets write it: see `lawful.cli.tools.dialects`
    .parquet    needs pyarrow
    .npz        an array (n,) is a column of its name; an array Y (n, T) is the columns y1, y2, ...

Tables are pandas DataFrames here. A file that is larger than memory is read, and its results are written, a piece at a time.
"""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from lawful._files import check_ordinary, replacing
from lawful.cli.tools.dialects import dialect
from lawful.cli.words import Trouble, note, patterns_of

__all__ = ["PICTURES", "SUFFIXES", "Writer", "apart", "choose", "free", "numbers", "one_column", "pieces", "read", "writing"]

SUFFIXES = (".csv", ".parquet", ".npz")
PICTURES = (".png", ".svg", ".pdf")
ROWS = 20_000  # of a piece
GAPS = (  # what pandas documents as such, and takes for one by itself only where it may do so in all columns
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL"),
    *("NaN", "None", "n/a", "nan", "null"),
)


def pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise Trouble("tables need pandas; pip install 'lawful[cli]' brings it") from error
    return pd


def parquet() -> Any:
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise Trouble("Parquet files need pyarrow; pip install pyarrow brings it, or use .csv or .npz") from error
    return pq


def kind(path: Path, endings: tuple[str, ...] = SUFFIXES) -> str:
    suffix = path.suffix.lower()
    if suffix not in endings:
        raise Trouble(f"{path} has the ending {suffix or '(none)'}, which tells no format; use one of {', '.join(endings)}")
    return suffix


# ---------------------------------------------------------------------- reading


def read(path: Path) -> Any:
    """The whole table."""
    found = list(pieces(path, sys.maxsize))
    return found[0] if len(found) == 1 else pandas().concat(found, ignore_index=True)


def pieces(path: Path, rows: int = ROWS, text: Callable[[list[str]], list[str]] | None = None) -> Iterator[Any]:
    """The table, some rows at a time; at least one piece, which may be empty.

    `text` says which of the columns of a CSV are taken letter by letter: 007 is no 7 there, and NA no gap.
    """
    suffix, pd = kind(path), pandas()
    if not path.is_file():
        raise Trouble(f"{path} is a folder; name a file" if path.is_dir() else f"there is no file {path}")
    if suffix == ".parquet":
        yield from _batches(path, rows)
    elif suffix == ".npz":
        table = _from_npz(path, pd)
        yield from (table.iloc[i : i + rows] for i in range(0, max(len(table), 1), rows))
    else:
        options = dialect(path)
        if int(pd.__version__.split(".")[0]) < 3:  # since 3 the default
            options["float_precision"] = "round_trip"
        try:
            if text is not None:
                header = pd.read_csv(path, nrows=0, **options).columns
                letters = set(text([str(name).strip() for name in header]))
                rest = [name for name in header if str(name).strip() not in letters]
                options |= {"dtype": dict.fromkeys(header.drop(rest), str)}
                options |= {"na_values": dict.fromkeys(rest, GAPS), "keep_default_na": False}
            with pd.read_csv(path, chunksize=min(rows, 2**31), **options) as reader:
                start = 0
                for piece in reader:
                    yield _named(piece, path, start == 0)
                    start += len(piece)
                if not start:
                    yield _named(pd.read_csv(path, nrows=0, **options), path, True)
        except UnicodeDecodeError as error:
            raise Trouble(f"{path} is not written in UTF-8 ({error}); save it as CSV in UTF-8") from error
        except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            raise Trouble(f"{path} cannot be read as CSV: {error}".rstrip()) from error


def _named(piece: Any, path: Path, first: bool) -> Any:
    """Without columns that have no name: empty ones of spreadsheets, and row numbers, which should predict nothing."""
    nameless = [c for c in piece.columns if str(c).startswith(("Unnamed: ", "__index_level_"))]
    if first and any(piece[c].notna().any() for c in nameless):
        note(f"{path}: a column without a name is left out; name it to use it")
    piece = piece.drop(columns=nameless)
    piece.columns = [str(c).strip() for c in piece.columns]
    return piece


def _batches(path: Path, rows: int) -> Iterator[Any]:
    pq = parquet()
    try:
        file = pq.ParquetFile(path)
    except Exception as error:  # pyarrow has errors of its own, none of which can be named without it
        raise Trouble(f"{path} cannot be read as Parquet: {error}") from error
    with file:
        start = 0
        for batch in file.iter_batches(batch_size=min(rows, 2**31 - 1)) if file.metadata.num_rows else [file.read()]:
            piece = batch.to_pandas(ignore_metadata=True)  # an index of pandas is a column like others
            piece.index += start
            yield _named(piece, path, start == 0)
            start += len(piece)


def _from_npz(path: Path, pd: Any) -> Any:
    columns: dict[str, np.ndarray] = {}
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            for name in arrays.files:
                values = arrays[name]
                if values.ndim == 2:
                    found = {f"{name.lower()}{j + 1}": values[:, j] for j in range(values.shape[1])}
                elif values.ndim == 1:
                    found = {name: values}
                else:
                    raise Trouble(f"{path}: the array {name!r} has {values.ndim} axes; a table has columns (n,) or (n, T)")
                if twice := sorted(columns.keys() & found):
                    raise Trouble(f"{path}: the column {twice[0]!r} is there twice; give each array a name of its own")
                columns |= found
        return pd.DataFrame(columns)
    except (ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
        raise Trouble(f"{path} cannot be read as a table of arrays: {error}") from error


# ---------------------------------------------------------------------- columns


def choose(names: Iterable[str], patterns: str, what: str) -> list[str]:
    """The columns that match names or patterns, separated by commas, in the order of the table."""
    names, found = list(names), set()
    for pattern, plain in patterns_of(patterns):
        matching = {name for name in names if name == pattern or (not plain and fnmatchcase(name, pattern))}
        if not matching:
            raise Trouble(
                f"no column matches {pattern!r}, which {what} names; the columns are {', '.join(names)}"
                + ("; a name with a comma stands between backticks" if any("," in name for name in names) else "")
            )
        found |= matching
    return [name for name in names if name in found]


def one_column(names: Iterable[str], pattern: str, what: str) -> str:
    """The column that a name or a pattern means."""
    found = choose(names, pattern, what)
    if len(found) != 1:
        raise Trouble(f"{what} {pattern} means {', '.join(found) or 'no column'}; name one column")
    return found[0]


def numbers(table: Any, columns: list[str], path: Path) -> Any:
    """These columns as numbers, gaps as NaN."""
    if lacking := [name for name in columns if name not in table.columns]:
        raise Trouble(f"{path} lacks the columns {', '.join(lacking)}; it has {', '.join(table.columns)}")
    chosen = table[columns]
    for name in columns:
        values = chosen[name]
        if not (hasattr(values.dtype, "kind") and values.dtype.kind in "biuf"):
            text = values.astype(str) if getattr(values.dtype, "kind", "") in "mMc" else values  # dates, complex numbers
            found = pandas().to_numeric(text, errors="coerce")
            odd = values[found.isna() & values.notna()]
            if len(odd):
                raise Trouble(
                    f"{path}: the column {name!r} holds {str(odd.iloc[0])!r} in row {odd.index[0] + 1}, which is no number; "
                    "leave empty what is not known; words are encoded as numbers, or left out of a fit with --inputs"
                )
            chosen = chosen.copy()
            chosen[name] = found
    chosen = chosen.astype(float)
    rows, places = np.nonzero(np.isinf(chosen.to_numpy()))
    if len(rows):
        raise Trouble(
            f"{path}: the column {columns[places[0]]!r} holds {chosen.iat[rows[0], places[0]]} in row "
            f"{chosen.index[rows[0]] + 1}; a value that is not known is left empty"
        )
    return chosen


def apart(**paths: Path | None) -> None:
    """Files that are written or must not be: no two of them are one."""
    seen: dict[str, str] = {}
    for what, path in ((what, path) for what, path in paths.items() if path is not None):
        name = "the data" if what == "data" else f"--{what}"
        place = os.path.realpath(path)
        if place in seen:
            raise Trouble(f"{seen[place]} and {name} are both {path}; give each a file of its own")
        seen[place] = name


def complete(table: Any, columns: list[str], path: Path) -> Any:
    """The rows whose columns all have values."""
    whole = table[columns].notna().all(axis=1)
    if not whole.all():
        note(f"{path}: {int((~whole).sum())} of {len(table)} rows lack an input and are left out")
    return table[whole]


# ---------------------------------------------------------------------- writing


def free(path: Path | None, force: bool, endings: tuple[str, ...] = ()) -> Path | None:
    """A path that may be written, with one of these endings if there are any: asked before the work begins, not after."""
    if path is None:
        return path
    if endings and kind(path, endings) == ".parquet":
        parquet()
    folder = path.absolute().parent
    if path.is_dir():
        raise Trouble(f"{path} is a folder; name a file")
    check_ordinary(path)
    if path.exists() and not force:
        raise Trouble(f"{path} exists already; --force replaces it, or choose another name")
    if not folder.is_dir():
        raise Trouble(f"there is no folder {folder} to write {path.name} to; make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Trouble(
            f"nothing may be written to the folder {folder}; choose another for {path.name}, or ask for the permission"
        )
    return path


class Writer:
    """Takes pieces of a table one after the other; one without a file keeps them."""

    def __init__(self, file: Any, suffix: str) -> None:
        self.file, self.suffix, self.rows = file, suffix, 0
        self.kept: list[Any] = []
        self.stream: Any = None

    def write(self, piece: Any) -> None:
        if self.suffix == ".csv":
            piece.to_csv(self.file, index=False, header=self.stream is None, lineterminator="\n")
            self.stream = self.file
        elif self.suffix in (".npz", ""):
            self.kept.append(piece)
        else:
            pq = parquet()
            import pyarrow as pa

            found = pa.Table.from_pandas(piece, preserve_index=False)
            self.stream = self.stream or pq.ParquetWriter(self.file, found.schema)
            try:
                self.stream.write_table(found.cast(self.stream.schema))
            except pa.ArrowInvalid as error:
                raise Trouble(
                    f"a column is of one kind in the first {self.rows} rows and of another behind them ({error}); "
                    "more --rows at a time, or a .csv, would do"
                ) from error
        self.rows += len(piece)

    def close(self) -> None:
        if self.suffix == ".parquet" and self.stream is not None:
            self.stream.close()
        elif self.suffix == ".npz":
            table = pandas().concat(self.kept, ignore_index=True)
            texts = {name for name in table.columns if table[name].dtype.kind not in "biuf"}
            with zipfile.ZipFile(self.file, "w") as archive:  # numpy.savez has arguments of its own, which are names here
                for name in table.columns:
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        values = table[name].to_numpy(dtype=str if name in texts else None)
                        np.lib.format.write_array(member, values, allow_pickle=False)


@contextmanager
def writing(path: Path | None) -> Iterator[Writer]:
    """A table that is written whole or not at all; None is standard output, as CSV."""
    if path is None:
        yield Writer(sys.stdout, ".csv")
        return
    suffix = kind(path)
    with replacing(path, text=suffix == ".csv") as file:
        writer = Writer(file, suffix)
        try:
            yield writer
        except BaseException:
            if suffix == ".parquet" and writer.stream is not None:
                writer.stream.close()  # before its file, which nobody keeps, is closed
            raise
        writer.close()
