"""`fit`: a `NystromRidge`, alone or inside a `ConstrainedRegressor`, on a table that need not fit in memory.

Two passes. The first looks: counts, patterns of gaps, and a uniform sample of the rows, on which everything is chosen that
need not know them all: the law where it is learned, kernel and length scales, centres, rows to hold out. The second sums, over
all rows, what the ridge is solved from. Given the same kernel, centres and lambda, the ridge is that of `fit` in one process.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from lawful._checks import check_count
from lawful.estimators import ConstrainedRegressor
from lawful.scale.graphs import computed, dask, shared, tree
from lawful.scale.looking import Look, look, merge
from lawful.scale.spreading import Spread
from lawful.scale.tables import WHO, Table
from lawful.surrogates import NystromRidge

__all__ = ["fit"]

SAMPLE = 50_000  # rows: enough to tune on, to draw centres from and to hold some out


def fit(estimator: Any, X: Any, Y: Any, sample_weight: Any = None, *, sample: int = SAMPLE) -> Any:
    """Fit `estimator` on a dask collection or a Parquet folder, and return it.

    The work is done by the cluster of the current `distributed.Client`; without one, by threads of this process. A lost worker
    or a task that fails is dask's to repeat: tasks are pure, and the result does not depend on who ran them.

    Parameters
    ----------
    estimator : NystromRidge, or ConstrainedRegressor whose surrogate is one (or None). It becomes what its `fit` would make of
        it: predictions, `std`, `decode`, `partial_fit` and saving are as ever. `residuals()` are those of the sample.
    X : dask array (n, d), dask DataFrame, or the path of a Parquet folder. A partition must fit in a worker several times.
    Y : dask array, DataFrame or Series with the same rows, NaN where an output was not observed; or the name of a column of X,
        or a list of names: the other columns are the inputs then.
    sample_weight : likewise; one weight for each row, or one for each label (n, T).
    sample : rows on which kernel, centres and a learned law are chosen. A table with no more rows is fitted by `estimator.fit`.

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> from lawful import ConstrainedRegressor, Equations, scale
    >>> client = Client()  # or that of a cluster  # doctest: +SKIP
    >>> model = ConstrainedRegressor(Equations("y1**2 + y2**2 = 1"))
    >>> scale.fit(model, "measurements/", ["y1", "y2"])  # a folder of Parquet files  # doctest: +SKIP
    >>> scale.predict(model, "new/").to_parquet("predicted/")  # doctest: +SKIP
    """
    ridge = _ridge_of(estimator)
    estimator._check()
    size = check_count(WHO, "sample", sample)
    if isinstance(ridge.centers, str) and not isinstance(ridge.n_centers, str) and ridge.n_centers > size:
        raise ValueError(
            f"{WHO}.fit: {ridge.n_centers} centres cannot be drawn from a sample of {size} rows; "
            f"sample={4 * ridge.n_centers} would do"
        )
    table = Table.of(X, Y, sample_weight)
    seed = 0 if ridge.random_state is None else int(np.random.default_rng(ridge.random_state).integers(2**31))
    form, one = shared(table.form), dask().delayed(partial(look, size=size, seed=seed))
    known: Look = computed(tree([one(i, *xyw, form) for i, xyw in enumerate(table.parts)], merge))
    if not known.n_seen:
        raise ValueError(
            f"{WHO}.fit: no row of the table has an output that was observed; give labels that are not all missing, and "
            "weights that are not all 0"
        )
    rows = _sample(known, table)
    if len(known.keys) == known.n_seen:
        return estimator.fit(*rows)
    tasks = replace(estimator._read(*rows), elsewhere=Spread(table, known))
    if isinstance(estimator, NystromRidge):
        estimator._single = tasks.single
        return estimator.fit_tasks(tasks)
    estimator.__dict__.pop("_recent", None)
    return estimator._learn(tasks)


def _ridge_of(estimator: Any) -> NystromRidge:
    """The ridge that is to be fitted, as it was given."""
    ridge = estimator
    if isinstance(estimator, ConstrainedRegressor):
        ridge = NystromRidge() if estimator.surrogate is None else estimator.surrogate
    if not isinstance(ridge, NystromRidge):
        raise TypeError(
            f"{WHO}.fit cannot fit {estimator!r}; give a NystromRidge(), or a ConstrainedRegressor with one as its surrogate"
        )
    for name, value, would in (("solver", "cg", "direct"), ("dtype", ridge.dtype, "float64"), ("device", ridge.device, None)):
        if getattr(ridge, name) == value and value != would:
            raise ValueError(
                f"{WHO}.fit adds sums up in double precision, so {name}={value!r} will not do; {name}={would!r} would"
            )
    return ridge


def _sample(known: Look, table: Table) -> tuple[Any, Any, Any]:
    """X, Y and weights as `fit` of an estimator takes them, with the names that the table has."""
    rows, form = known.rows, table.form
    X: Any = rows.X
    Y: Any = rows.Y[:, 0] if form.single else rows.Y
    if form.inputs is not None or (form.outputs is not None and not form.single):
        import pandas as pd

        X = X if form.inputs is None else pd.DataFrame(X, columns=form.inputs)
        Y = Y if form.outputs is None or form.single else pd.DataFrame(Y, columns=form.outputs)
    return X, Y, rows.W if table.weighted else None
