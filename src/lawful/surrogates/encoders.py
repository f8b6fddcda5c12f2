"""Tables with words, dates and gaps as numbers.

Numeric columns stay as they are, but for their gaps: these are filled by the median, with a column beside that is 1 where a
value was missing. Of words there is an indicator for each of the most frequent ones; a word that was not seen in fit, and a
gap, have all of them 0. Dates, also those written as 2024-03-31, become days, and where they vary the place in the year, the
week and the day as points of a circle. With `codes`, for trees, gaps stay gaps and words are numbered, those
of few rows as one.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from lawful.tasks import as_floats, is_gap, is_numeric

__all__ = ["Numbers"]

RARE = 10  # rows: words of fewer are one
CYCLES = ((365.2425, 500.0), (7.0, 30.0), (1.0, 0.0))  # days of a period, and how many dates must span for it to be seen


def column(X: Any, j: int) -> Any:
    return X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]


def levels(values: Any, most: int, least: int = 1) -> list[Any]:
    """The most frequent words of a column, gaps apart; ties in the order of their names."""
    counts = Counter(v for v in np.asarray(values, dtype=object) if not is_gap(v))
    return [v for v in sorted(counts, key=lambda v: (-counts[v], str(v))) if counts[v] >= least][:most]


def days(values: Any) -> np.ndarray | None:
    """Days since 1970 of a column of dates, NaN for gaps; None for other columns."""
    if getattr(values.dtype, "kind", "O") != "M":
        words = [v for v in np.asarray(values, dtype=object) if not is_gap(v)]
        dated = all(hasattr(v, "isoformat") or (isinstance(v, str) and v[:4].isdigit() and v[4:5] == "-") for v in words)
        if not words or not dated:
            return None
    import pandas as pd

    stamps = pd.to_datetime(pd.Series(values).reset_index(drop=True), errors="coerce", utc=True, format="ISO8601")
    return ((stamps - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)).to_numpy(float)


def on_circles(time: np.ndarray, periods: list[float]) -> list[np.ndarray]:
    """Days, and for each period the point on its circle."""
    angles = [2 * np.pi * time / period for period in periods]
    return [time, *(wave(angle) for angle in angles for wave in (np.sin, np.cos))]


class Numbers(TransformerMixin, BaseEstimator):
    """A float array of a table. See the module's docstring.

    Parameters
    ----------
    max_levels : indicators for at most so many words of a column (codes: ten times as many).
    codes : numbers for words, and gaps as they are: what trees take.

    >>> import pandas as pd
    >>> Numbers().fit_transform(pd.DataFrame({"size": [1.0, None, 3.0], "shop": ["a", "b", "a"]}))
    array([[1., 0., 1., 0.],
           [2., 1., 0., 1.],
           [3., 0., 1., 0.]])
    """

    def __init__(self, max_levels: int = 20, codes: bool = False) -> None:
        self.max_levels = max_levels
        self.codes = codes

    def fit(self, X: Any, y: Any = None) -> Self:
        self.n_features_in_ = X.shape[1]
        self.columns_: list[tuple[str, Any]] = [self._kind(column(X, j)) for j in range(X.shape[1])]
        return self

    def _kind(self, values: Any) -> tuple[str, Any]:
        """What a column is: "plain" or "gaps" (with its median), "dates" (with median and periods) or "levels" (the words)."""
        if not is_numeric(values):
            time = days(values)
            if time is None:
                return "levels", levels(values, self.max_levels * (10 if self.codes else 1), RARE if self.codes else 1)
            seen = time[np.isfinite(time)]
            periods = [length for length, span in CYCLES[:2] if np.ptp(seen) > span]
            return "dates", [float(np.median(seen)), *periods, *([1.0] if np.any(seen != np.round(seen)) else [])]
        numbers = as_floats(values, "X")
        seen = numbers[np.isfinite(numbers)]
        return "plain" if seen.size == len(numbers) else "gaps", float(np.median(seen)) if seen.size else 0.0

    @property
    def coded(self) -> dict[int, int]:
        """Where columns of codes are among those that come out, and how many codes each has."""
        places = np.cumsum([0, *(self._size(*known) for known in self.columns_)])
        return {int(at): len(known) + 1 for at, (kind, known) in zip(places, self.columns_) if kind == "levels"}

    @property
    def width(self) -> int:
        """How many columns come out."""
        return max(sum(self._size(*known) for known in self.columns_), 1)

    def _size(self, kind: str, known: Any) -> int:
        if kind == "levels":
            return 1 if self.codes else len(known)
        return 2 * len(known) - 1 if kind == "dates" else 2 if kind == "gaps" and not self.codes else 1

    def transform(self, X: Any) -> np.ndarray:
        parts: list[np.ndarray] = []
        for j, (kind, known) in enumerate(self.columns_):
            values = column(X, j)
            if kind == "levels":
                entries = np.asarray(values, dtype=object)
                if self.codes:
                    place = {word: float(i) for i, word in enumerate(known)}
                    parts.append(np.array([np.nan if is_gap(v) else place.get(v, float(len(known))) for v in entries]))
                else:
                    parts += [np.array([not is_gap(v) and v == level for v in entries], dtype=float) for level in known]
                continue
            if kind == "dates":
                time = days(values)
                time = np.full(X.shape[0], np.nan) if time is None else time
                parts += on_circles(time if self.codes else np.where(np.isfinite(time), time, known[0]), known[1:])
                continue
            numbers = as_floats(values, "X")
            missing = ~np.isfinite(numbers)
            parts.append(numbers if self.codes else np.where(missing, known, numbers))
            if kind == "gaps" and not self.codes:
                parts.append(missing.astype(float))
        return np.stack(parts, axis=1) if parts else np.zeros((X.shape[0], 1))
