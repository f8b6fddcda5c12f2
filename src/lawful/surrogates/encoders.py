"""Tables with categories and gaps, made ready for regressors that want numbers or pandas' categories.

`Numbers` gives a float array: numeric columns with their gaps filled by the median, and beside each column with gaps one that
is 1 where a value was missing; of every other column the indicators of its most frequent levels. A level that was not seen in
fit, and a gap, have all indicators 0. `Levels` keeps the table and turns every column that is not numeric into pandas'
categories, which `HistGradientBoostingRegressor` splits on as they are; gaps stay gaps.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from lawful.tasks import as_floats, is_gap, is_numeric

__all__ = ["Levels", "Numbers"]


def column(X: Any, j: int) -> Any:
    return X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]


def levels(values: Any, most: int) -> list[Any]:
    """The most frequent levels of a column, gaps apart; ties in the order of their names."""
    counts = Counter(v for v in np.asarray(values, dtype=object) if not is_gap(v))
    return sorted(counts, key=lambda v: (-counts[v], str(v)))[:most]


class Numbers(TransformerMixin, BaseEstimator):
    """A float array of a table. See the module's docstring.

    Parameters
    ----------
    max_levels : indicators for at most so many levels of a column.

    >>> import pandas as pd
    >>> Numbers().fit_transform(pd.DataFrame({"size": [1.0, None, 3.0], "shop": ["a", "b", "a"]}))
    array([[1., 0., 1., 0.],
           [2., 1., 0., 1.],
           [3., 0., 1., 0.]])
    """

    def __init__(self, max_levels: int = 20) -> None:
        self.max_levels = max_levels

    def fit(self, X: Any, y: Any = None) -> Self:
        self.n_features_in_ = X.shape[1]
        self.columns_: list[tuple[str, Any]] = []  # what each column is: "plain", "gaps" (with its median) or "levels" (a list)
        for j in range(X.shape[1]):
            values = column(X, j)
            if not is_numeric(values):
                self.columns_.append(("levels", levels(values, self.max_levels)))
                continue
            numbers = as_floats(values, "X")
            seen = numbers[np.isfinite(numbers)]
            middle = float(np.median(seen)) if seen.size else 0.0
            self.columns_.append(("plain" if seen.size == len(numbers) else "gaps", middle))
        return self

    def transform(self, X: Any) -> np.ndarray:
        parts: list[np.ndarray] = []
        for j, (kind, known) in enumerate(self.columns_):
            values = column(X, j)
            if kind == "levels":
                entries = np.asarray(values, dtype=object)
                parts += [np.array([not is_gap(v) and v == level for v in entries], dtype=float) for level in known]
                continue
            numbers = as_floats(values, "X")
            missing = ~np.isfinite(numbers)
            parts.append(np.where(missing, known, numbers))
            if kind == "gaps":
                parts.append(missing.astype(float))
        return np.stack(parts, axis=1) if parts else np.zeros((X.shape[0], 1))


class Levels(TransformerMixin, BaseEstimator):
    """A table whose columns that are not numeric are pandas' categories; arrays pass as they are. See the module's docstring.

    Parameters
    ----------
    max_levels : a column keeps its most frequent levels; others, and those not seen in fit, become gaps.
    """

    def __init__(self, max_levels: int = 200) -> None:
        self.max_levels = max_levels

    def fit(self, X: Any, y: Any = None) -> Self:
        self.n_features_in_ = X.shape[1]
        odd = [j for j in range(X.shape[1]) if hasattr(X, "iloc") and not is_numeric(column(X, j))]
        self.levels_ = {j: levels(column(X, j), self.max_levels) for j in odd}
        return self

    def transform(self, X: Any) -> Any:
        if not self.levels_:
            return X
        import pandas as pd

        new = {}
        for j, known in self.levels_.items():
            place = {level: i for i, level in enumerate(known)}
            codes = [-1 if is_gap(v) else place.get(v, -1) for v in np.asarray(column(X, j), dtype=object)]
            new[X.columns[j]] = pd.Categorical.from_codes(codes, categories=known)
        return X.assign(**new)
