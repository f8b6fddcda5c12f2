"""What `lawful rank` does: ratings from a table, and orders as names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lawful.cli.tools.tables import choose, numbers, pandas
from lawful.cli.words import Trouble

__all__ = ["orders", "ratings"]


def ratings(table: Any, path: Path, items: str, inputs: str | None, ranker: Any) -> tuple[Any, Any]:
    if ranker is None:
        given = [] if inputs is None else choose(table.columns, inputs, "--inputs")
        rated = [name for name in choose(table.columns, items, "--items") if name not in given]
    else:
        given = list(getattr(ranker, "feature_names_in_", []))
        rated = list(ranker.item_names_ or choose(table.columns, items, "--items"))
        table = table.reindex(columns=[*table.columns, *(name for name in rated if name not in table.columns)])
    if len(rated) < 2:
        raise Trouble(f"{path} has {len(rated)} items, and two are needed to order them; name them with --items")
    X = numbers(table, given, path) if given else None
    return X, numbers(table, rated, path)


def orders(ranker: Any, X: Any, R: Any, top: int, unrated: bool) -> Any:
    names = [str(name) for name in R.columns]
    best = ranker.recommend(X, top, ratings=R, exclude=R if unrated else None)
    words = np.array([*names, ""], dtype=object)[best]  # -1, where too few are left, is the empty one
    return pandas().DataFrame(words, columns=[f"rank{k + 1}" for k in range(best.shape[1])])
