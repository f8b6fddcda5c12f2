"""Tables that are elsewhere: a list of partitions, each of which a worker can turn into X (n, d), Y (n, T) and weights (n, T).

X is a dask array, a dask DataFrame or the path of a Parquet folder. Y is a dask array, DataFrame or Series with the same
partitions, or the names of columns of X; so are sample weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from lawful.scale.graphs import dask
from lawful.tasks import check_inputs, check_outputs, check_weights

__all__ = ["Form", "Rows", "Table", "collection"]

WHO = "lawful.scale"


def collection(X: Any, what: str = "X") -> Any:
    """A dask array whose columns are in one chunk, or a dask DataFrame; a path is that of a Parquet folder."""
    if isinstance(X, str | PathLike):
        return _folder(X, what)
    if isinstance(X, dask().array.Array):
        if X.ndim not in (1, 2):
            raise ValueError(f"{WHO}: {what} has {X.ndim} axes; give (n, columns) or (n,)")
        return X.rechunk({1: -1}) if X.ndim == 2 and X.numblocks[1] > 1 else X
    frames = dask().dataframe
    if isinstance(X, frames.DataFrame | frames.Series):
        return X
    beside = "names of columns of X" if what != "X" else "a Parquet folder"
    raise TypeError(
        f"{WHO}: {what} is a {type(X).__name__}, which is not of dask; give a dask array, a dask DataFrame or "
        f"{beside}, or use the estimator's own methods, which take arrays"
    )


def _folder(path: str | PathLike[str], what: str) -> Any:
    """The Parquet files of a folder as one table."""
    try:
        return dask().dataframe.read_parquet(path)
    except (OSError, ValueError) as error:
        kind = FileNotFoundError if isinstance(error, FileNotFoundError) else ValueError
        said = str(error).rpartition("Original Message: ")[2]
        raise kind(
            f"{WHO}: {what} is {str(path)!r}, which cannot be read as Parquet ({said}); give a folder of .parquet files with "
            "the same columns, or such a file"
        ) from error


@dataclass(frozen=True)
class Form:
    """What is where: columns by name where everything is in one table."""

    inputs: list[str] | None  # names of the columns of X
    outputs: list[str] | None  # likewise of Y
    single: bool  # Y is one column without an axis of its own
    together: bool  # Y is columns of the table that X is in
    weight: str | None  # so is the weight


@dataclass
class Rows:
    """The rows of one partition. Weights are 0 where nothing was observed."""

    X: np.ndarray
    Y: np.ndarray
    W: np.ndarray


class _Partition(BaseEstimator):
    """Whose inputs are checked."""


@dataclass(frozen=True)
class Table:
    """`parts`: for each partition what dask makes of X, Y and the weights (None where they are columns of X)."""

    parts: list[tuple[Any, Any, Any]]
    form: Form
    weighted: bool

    @classmethod
    def of(cls, X: Any, Y: Any, sample_weight: Any = None) -> Table:
        X = collection(X)
        if X.ndim != 2:
            raise ValueError(f"{WHO}: X has one axis; give a table of inputs (n, d)")
        weight = sample_weight if isinstance(sample_weight, str) else None
        outputs = _names(Y)
        together = outputs is not None
        if not together:
            Y = collection(Y, "Y")
            outputs = [str(name) for name in Y.columns] if hasattr(Y, "columns") else None
        single = isinstance(Y, str) if together else Y.ndim == 1
        inputs = _others(X, [*(outputs if together and outputs else []), *([] if weight is None else [weight])])
        x = _partitions(X)
        y = [None] * len(x) if together else _beside(Y, X, len(x), "Y")
        apart = sample_weight is not None and weight is None
        w = _beside(collection(sample_weight, "sample_weight"), X, len(x), "sample_weight") if apart else [None] * len(x)
        return cls(list(zip(x, y, w)), Form(inputs, outputs, single, together, weight), sample_weight is not None)


def _names(Y: Any) -> list[str] | None:
    """Y as names of columns; None where it is data."""
    if isinstance(Y, str):
        return [Y]
    listed = isinstance(Y, list | tuple) or (hasattr(Y, "tolist") and getattr(Y, "ndim", 0) == 1 and not hasattr(Y, "dask"))
    names = list(Y) if listed else []
    if not names or not all(isinstance(name, str) for name in names):
        return None
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{WHO}: Y names the column {twice!r} more than once; name every output once")
    return names


def _others(X: Any, names: list[str]) -> list[str] | None:
    """The names of the columns of X that are not these, all of which it must have; None where X has no names."""
    columns = list(X.columns) if hasattr(X, "columns") else None
    for name in names:
        if name not in (columns or []):
            raise ValueError(f"{WHO}: X has no column {name!r}; it has {', '.join(map(str, columns or ['no names']))}")
    left = None if columns is None else [column for column in columns if column not in names]
    if left is not None and not left:
        raise ValueError(f"{WHO}: no column of X is left for inputs beside {', '.join(names)}; give a table that has some")
    return left


def _beside(values: Any, X: Any, count: int, what: str) -> list[Any]:
    """The partitions of something that has the rows of X."""
    parts = _partitions(_aligned(values, X, what))
    if len(parts) != count:
        raise ValueError(
            f"{WHO}: X has {count} partitions and {what} has {len(parts)}, of lengths that are not known; take both from one "
            "table, or give names of columns of X"
        )
    return parts


def _aligned(values: Any, X: Any, what: str) -> Any:
    """In chunks of the same rows, where their lengths are known."""
    if not hasattr(values, "chunks") or not hasattr(X, "chunks") or np.isnan([*values.chunks[0], *X.chunks[0]]).any():
        return values
    if values.shape[0] != X.shape[0]:
        raise ValueError(f"{WHO}: X has {X.shape[0]} rows and {what} has {values.shape[0]}; give the same rows")
    return values.rechunk({0: X.chunks[0]})


def _partitions(values: Any) -> list[Any]:
    return np.ravel(values.to_delayed()).tolist()


def read(at: int, x: Any, y: Any, w: Any, form: Form) -> Rows:
    """A partition as arrays, checked."""
    try:
        return _read(x, y, w, form)
    except (TypeError, ValueError) as error:
        names = ", ".join(_not_numbers(x))
        said = f"the columns {names} hold no numbers; make numbers of them (for categories one column each), or drop them"
        raise ValueError(f"{WHO}, partition {at}: {said if names else error}") from error


def _not_numbers(x: Any) -> Iterator[str]:
    """The names of the columns of a table that are text, categories or dates."""
    for name in getattr(x, "columns", ()):
        try:
            x[name].astype(float)
        except (TypeError, ValueError):
            yield str(name)


def _read(x: Any, y: Any, w: Any, form: Form) -> Rows:
    if form.weight is not None:
        w = x[form.weight]
    if form.together:
        y = x[form.outputs]
    if form.inputs is not None:
        x = x[form.inputs]
    Y, _ = check_outputs(y)
    Y = Y[:, None] if Y.ndim == 1 else Y
    if len(x) != len(Y):
        raise ValueError(f"{len(x)} rows of X and {len(Y)} of Y; partitions must have the same rows")
    if not len(Y):
        return Rows(np.zeros((0, x.shape[1])), Y, np.zeros(Y.shape))
    X = check_inputs(_Partition(), x, reset=True)
    given = None if w is None else np.asarray(w, dtype=float)
    W = np.zeros(Y.shape) if given is not None and not given.any() else check_weights(given, *Y.shape)
    return Rows(X, Y, np.where(np.isnan(Y), 0.0, W))
