"""Public data sets, read from a folder that the user names. Nothing is shipped with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

DISTILLATION_LAW = [
    "x1 + x2 = y1 + y2",
    "0.697616946*x1 = y1*y3 + y2*y6",
    "0.302383054*x1 = y1*y4 + y2*y7",
    "x2 = y1*y5 + y2*y8",
    "y3 + y4 + y5 = 1",
    "y6 + y7 + y8 = 1",
]


def _existing(folder: Any, names: list[str], source: str) -> list[Path]:
    paths = [Path(folder) / name for name in names]
    lacking = [p.name for p in paths if not p.is_file()]
    if lacking:
        raise FileNotFoundError(f"{Path(folder)} lacks {', '.join(lacking)}; get them from {source}")
    return paths


def load_distillation(folder: Any) -> Bunch:
    """Extractive distillation column: 3 inputs, 9 outputs, 6 balances (5 independent) that depend on the inputs.

    `folder` holds extractive_column.csv, parameters_2000.csv and variables_2000.csv from the examples of KKT-HardNet (MIT).
    The first 1600 rows of the 2000 are the training set of that benchmark; the rows of the full file that are not among the
    2000 are the test set.

    Returns a Bunch with X, Y (2000 rows), X_test, Y_test, equations.

    >>> from lawful.datasets import load_distillation
    >>> data = load_distillation("folder/with/the/files")  # doctest: +SKIP
    """
    names = ["extractive_column.csv", "parameters_2000.csv", "variables_2000.csv"]
    full, inputs, outputs = _existing(folder, names, "the examples of KKT-HardNet")
    table = np.genfromtxt(full, delimiter=",", skip_header=1, usecols=range(12))
    table = table[~np.isnan(table).any(axis=1)]
    X = np.genfromtxt(inputs, delimiter=",", skip_header=1)
    Y = np.genfromtxt(outputs, delimiter=",", skip_header=1)
    known = {tuple(row) for row in X}
    unseen = np.array([tuple(row) not in known for row in table[:, :3]])
    return Bunch(X=X, Y=Y, X_test=table[unseen, :3], Y_test=table[unseen, 3:], equations=DISTILLATION_LAW)
