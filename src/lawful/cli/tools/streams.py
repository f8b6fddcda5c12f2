"""Tables through a decoder, a piece at a time, with a certificate for every row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from lawful._array import to_numpy
from lawful.cli.tools.tables import Writer, choose, pandas, pieces, writing
from lawful.cli.words import Trouble, listed, note, patterns_of, progress, several

__all__ = ["certificate", "numbers_of", "stream"]


def numbers_of(text: str, columns: list[str]) -> np.ndarray:
    try:
        found = np.array([float(word) for word in text.split(",")])
    except ValueError as error:
        raise Trouble(f"--weights {text!r} are no numbers; give one for each column, separated by commas") from error
    if len(found) != len(columns):
        raise Trouble(
            f"--weights has {len(found)} for {several(len(columns), 'column')} ({', '.join(columns)}); give one for each"
        )
    return found


def certificate(d: Any, names: Any, whole: np.ndarray, index: Any) -> Any:
    """Outputs, residual, status and standard deviations as a table; rows without inputs are empty and `missing_input`."""
    pd = pandas()
    columns = [str(name) for name in names]
    out = pd.DataFrame(np.nan, index=index, columns=columns)

    def put(name: str, values: Any, empty: Any) -> None:
        while name in columns:
            name = f"decoding_{name}"
        column = np.full(len(whole), empty, dtype=object if isinstance(empty, str) else float)
        if d is not None:
            column[whole] = values
        out[name] = column

    if d is not None:
        out.loc[whole, columns] = to_numpy(d.c)
    put("residual", None if d is None else to_numpy(d.residual), np.nan)
    put("status", None if d is None else d.status, "missing_input")
    if d is not None and d.std is not None:
        for t, name in enumerate(columns):
            put(f"{name}_std", to_numpy(d.std)[:, t], np.nan)
    return out


def stream(
    data: Path,
    output: Path | None,
    used: Callable[[list[str]], list[str]],
    decoded: Callable[[Any], Any],
    keep: str | None,
    rows: int,
    as_json: bool,
    quiet: bool,
) -> dict[str, Any]:
    """Every piece of the data through `decoded` to the output; how many rows there were, and how they fared.

    Without an output --json gets the rows too, under "table". Columns that are kept, and not `used`, go from CSV to CSV as they
    are written.
    """

    def letters(names: list[str]) -> list[str]:
        return [name for name in choose(names, keep or "", "--keep") if name not in used(names)]

    seen, worst, total = Counter(), 0.0, 0  # type: Counter[str], float, int
    within = as_json and output is None
    verbatim = letters if keep and not within and (output is None or output.suffix.lower() == ".csv") else None
    with nullcontext(Writer(None, "")) if within else writing(output) as writer, progress(quiet) as bar:
        task = bar.add_task("rows", total=None)
        shape: list[str] = []
        waiting: list[Any] = []  # rows without an answer, until one says which columns there are
        for piece in pieces(data, rows, verbatim):
            out = decoded(piece)
            status = "decoding_status" if "decoding_status" in out else "status"
            residual = "decoding_residual" if "decoding_residual" in out else "residual"
            seen.update(out[status])
            worst = max(worst, float(np.nanmax(out[residual].to_numpy(dtype=float), initial=0.0)))
            if keep is not None:
                kept = [name for name in choose(piece.columns, keep, "--keep") if name not in out]
                if not total and (lost := [name for name, _ in patterns_of(keep) if name in out and name in piece]):
                    note(f"--keep {listed(lost)}: the result has a column of that name, and the data's own is left out")
                out = pandas().concat([piece[kept], out], axis=1)
            total += len(out)
            bar.advance(task, len(out))
            waiting.append(out)
            if shape or not set(seen) <= {"missing_input"}:
                shape = shape or list(out.columns)
                for one in waiting:
                    writer.write(one.reindex(columns=shape))
                waiting.clear()
        for one in waiting:
            writer.write(one)
    found = {"rows": total, "status": dict(seen), "violation": worst}
    return found | {"table": pandas().concat(writer.kept).to_dict("records")} if within else found
