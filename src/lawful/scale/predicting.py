"""`predict` and `decode` of fitted estimators on tables that need not fit in memory: lazy, a partition at a time."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lawful._array import to_numpy
from lawful.decoders import Decoding
from lawful.scale.graphs import dask, shared
from lawful.scale.spreading import alone
from lawful.scale.tables import WHO, collection
from lawful.surrogates import NystromRidge
from lawful.surrogates.blocks import Host

__all__ = ["decode", "predict"]


def predict(estimator: Any, X: Any) -> Any:
    """`estimator.predict` on a dask array (a lazy array comes back), or on a dask DataFrame or the path of a Parquet folder
    (a lazy dask DataFrame with a column for each output, and the index of X).

    Any fitted estimator of lawful will do, however it was fitted. Of a folder the columns are read that were inputs in `fit`.
    Nothing is computed before dask is asked to (`compute`, `to_parquet`, ...); `decode` also says how good each row is.

    >>> from lawful import scale
    >>> scale.predict(model, "new/").to_parquet("predicted/")  # doctest: +SKIP
    """
    X, model, names, single = _ready(estimator, X)
    if not hasattr(X, "columns"):
        shape = X.chunks[:1] if single else (*X.chunks[:1], (len(names),))
        meta = np.empty((0,) * len(shape))
        return X.map_blocks(_predicted, model, chunks=shape, drop_axis=1 if single else None, dtype=float, meta=meta)
    return X.map_partitions(_predicted_frame, model, names, meta=dict.fromkeys(names, float), enforce_metadata=False)


def decode(estimator: Any, X: Any, *, std: bool = False) -> Any:
    """`estimator.decode` as a lazy dask DataFrame: the outputs, and for each row value, residual, status, iterations and margin
    (`Decoding.to_frame`). X as in `predict`.

    std : also the standard deviation of each output before the law, which costs more than all the rest.

    >>> from lawful import scale
    >>> scale.decode(model, "new/")["status"].value_counts().compute()  # doctest: +SKIP
    """
    if not hasattr(estimator, "decode"):
        raise TypeError(
            f"{WHO}.decode: {type(estimator).__name__} knows no law; a ConstrainedRegressor does, and `predict` would do"
        )
    X, model, names, _ = _ready(estimator, X, std)
    meta = _no_rows(names, std)
    if hasattr(X, "columns"):
        return X.map_partitions(_decoded_frame, model, names, std, meta=meta, enforce_metadata=False)
    one = dask().delayed(_decoded_frame)
    parts = [one(x, model, names, std) for x in np.ravel(X.to_delayed())]
    return dask().dataframe.from_delayed(parts, meta=meta, verify_meta=False)


def _ready(estimator: Any, X: Any, std: bool = False) -> tuple[Any, Any, list[str], bool]:
    """The collection, the model as one node, the names of its outputs, and whether it is one column without an axis."""
    check_is_fitted(estimator)
    X = collection(X)
    inputs = getattr(estimator, "feature_names_in_", None)
    if inputs is not None and hasattr(X, "columns"):
        missing = [str(name) for name in inputs if name not in X.columns]
        if missing:
            raise ValueError(
                f"{WHO}: X has no column {missing[0]!r}, which was an input in fit; it has {', '.join(map(str, X.columns))}"
            )
        X = X[list(inputs)]
    fitted = getattr(estimator, "best_estimator_", estimator)
    count = len(fitted.lam_) if isinstance(fitted, NystromRidge) else fitted.n_outputs_
    names = getattr(fitted, "output_names_", None) or [f"y{t + 1}" for t in range(count)]
    return X, shared(_light(estimator, std)), list(names), bool(fitted._single)


def _light(estimator: Any, std: bool = False) -> Any:
    """The same model without rows that it remembers, and without sums where no variance is asked for."""
    model = copy(estimator)
    ridge = model if isinstance(model, NystromRidge) else getattr(model, "surrogate_", None)
    if not isinstance(ridge, NystromRidge):
        return model
    ridge = ridge if ridge is model else copy(ridge)
    ridge._tasks, ridge._residuals = None, None
    ridge._engine = alone(ridge._engine) if isinstance(ridge._engine.where, Host) else ridge._engine
    if not std and not getattr(getattr(model, "loss_", None), "needs_variance", False):
        ridge.__dict__.pop("_statistics", None)
        ridge._normals = None
    if ridge is not model:
        model.surrogate_ = ridge
        model.__dict__.pop("_recent", None)
    return model


def _predicted(x: Any, model: Any) -> np.ndarray:
    return to_numpy(model.predict(x))


def _predicted_frame(x: Any, model: Any, names: list[str]) -> Any:
    import pandas as pd

    values = np.zeros((0, len(names))) if not len(x) else to_numpy(model.predict(x)).reshape(len(x), -1)
    return pd.DataFrame(values, columns=names, index=x.index)


def _decoded_frame(x: Any, model: Any, names: list[str], std: bool) -> Any:
    if not len(x):
        return _no_rows(names, std)
    d = model.decode(x)
    frame = d.with_(gap=None, spread=d.spread if std else None).to_frame()
    return frame.set_index(x.index) if hasattr(x, "columns") else frame


def _no_rows(names: list[str], std: bool) -> Any:
    """What a decoding without rows looks like."""
    table, column, whole = np.zeros((0, len(names))), np.zeros(0), np.zeros(0, dtype=np.int64)
    d = Decoding(table, column, column, column, whole, whole, column, names=tuple(names))
    return d.with_(spread=(lambda: table) if std else None).to_frame()
