"""Sarcos: inverse dynamics of a robot arm with seven joints, from the two files of the GPML book.

The files are not in the package: sarcos_inv.mat (44,484 rows, "train") and sarcos_inv_test.mat (4449 rows, "test"). They were
not made to be used together: rows of the test file occur in the training file as well, so a model learned on one and tested on
the other has seen its test set. `load_sarcos(files="both")` therefore gives the union with every row once, to be split anew.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat
from scipy.io.matlab import MatReadError
from sklearn.utils import Bunch

__all__ = ["load_sarcos", "sarcos_files"]

NAMES = {"train": "sarcos_inv.mat", "test": "sarcos_inv_test.mat"}
PAGE = "the data page of the GPML book (gaussianprocess.org/gpml/data)"
# What `loadmat` raises, depending on where the file ends or is damaged.
DAMAGED = (ValueError, TypeError, IndexError, NotImplementedError, OSError, EOFError, MatReadError, zlib.error)
COLUMNS = 28  # 7 positions, 7 velocities, 7 accelerations, 7 torques
ABOUT = (
    "Inverse dynamics of a Sarcos arm with seven joints (S. Vijayakumar, A. D'Souza, S. Schaal): 21 inputs, the positions, "
    "velocities and accelerations of the joints, and 7 outputs, their torques. Cite Rasmussen and Williams, Gaussian Processes "
    "for Machine Learning, 2006, section 2.5."
)


def sarcos_files(folder: Any, files: str = "auto") -> list[Path]:
    """The files that `load_sarcos` would read; FileNotFoundError says which are lacking and where to get them."""
    if files not in ("auto", "both", *NAMES):
        raise ValueError(f"load_sarcos: unknown files {files!r}; choose 'auto', 'train', 'test' or 'both'")
    place = Path(folder)
    if not any((place / name).is_file() for name in NAMES.values()) and (place / "sarcos").is_dir():
        place = place / "sarcos"
    if files == "auto":
        files = "train" if (place / NAMES["train"]).is_file() else "test"
        hint = f" or {NAMES['train']}"
    else:
        hint = ""
    wanted = [NAMES[key] for key in (NAMES if files == "both" else [files])]
    lacking = [name for name in wanted if not (place / name).is_file()]
    if lacking:
        raise FileNotFoundError(f"load_sarcos: {Path(folder)} lacks {' and '.join(lacking)}{hint}; get them from {PAGE}")
    return [place / name for name in wanted]


def load_sarcos(folder: Any, files: str = "auto", *, drop_duplicates: bool = True) -> Bunch:
    """Inverse dynamics of a robot arm: 21 inputs (positions, velocities, accelerations), 7 torques.

    Parameters
    ----------
    folder : where sarcos_inv.mat (44,484 rows) or sarcos_inv_test.mat (4449 rows) is; or holding sarcos/ with them
    files : "train" or "test" (one file), "both" (their union), or "auto" (train if it is there, else test)
    drop_duplicates : keep the first of rows that agree in all 28 numbers. The files share rows, so with "both" and False
        the same row can end up on both sides of a split

    Returns
    -------
    Bunch with X (n, 21), Y (n, 7), in the order of the files, train before test; `n_duplicates`, how many rows repeat an
    earlier one (dropped or not); `source`, the names of the files read; `DESCR`.

    Examples
    --------
    >>> from lawful.datasets import load_sarcos
    >>> data = load_sarcos("folder/with/the/files")  # doctest: +SKIP
    """
    paths = sarcos_files(folder, files)
    table = np.concatenate([_table(path) for path in paths])
    first = _first_occurrences(table)
    n_duplicates = len(table) - len(first)
    rows = table[first] if drop_duplicates else table
    source = [path.name for path in paths]
    what = "dropped" if drop_duplicates else "kept"
    return Bunch(
        X=rows[:, :21].copy(),
        Y=rows[:, 21:].copy(),
        n_duplicates=n_duplicates,
        source=source,
        DESCR=f"{ABOUT} Read from {' and '.join(source)}: {len(rows)} rows ({n_duplicates} repeated rows {what}).",
    )


def _table(path: Path) -> np.ndarray:
    try:
        found = [np.asarray(v) for k, v in loadmat(path).items() if not k.startswith("__")]
    except DAMAGED as error:
        raise ValueError(f"load_sarcos: {path} is no .mat file that can be read ({error}); get it anew from {PAGE}") from error
    tables = [v for v in found if v.ndim == 2 and v.shape[1] == COLUMNS and v.dtype.kind in "fiu"]
    if len(tables) != 1:
        shapes = ", ".join(str(v.shape) for v in found) or "nothing"
        raise ValueError(
            f"load_sarcos: {path} holds {shapes}, not one table of numbers with {COLUMNS} columns (21 inputs, 7 torques); get "
            f"it anew from {PAGE}"
        )
    table = tables[0].astype(float) + 0.0  # -0.0 and 0.0 are the same number, and from here on the same bytes
    if not np.isfinite(table).all():
        bad = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
        raise ValueError(f"load_sarcos: {path} has NaN or infinity in row {bad}; get the file anew from {PAGE}")
    return table


def _first_occurrences(table: np.ndarray) -> np.ndarray:
    """Rows that equal no earlier row, in order."""
    seen: dict[bytes, int] = {}
    for i, row in enumerate(np.ascontiguousarray(table)):
        seen.setdefault(row.tobytes(), i)
    return np.fromiter(seen.values(), dtype=int, count=len(seen))
