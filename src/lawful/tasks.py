"""What the user gives, checked once for every estimator: T regression problems on the rows of one X.

X (n, d), and Y (n, T) or (n,) with NaN where an output was not observed (a masked entry, None and pandas' NA mean the same), or
one data set per task (`stack_tasks`). Each task t keeps its observed labels alone:

    y[t] (n_t,)     rows[t] (n_t,)     weights[t] (n_t,), positive     Z[t] (n_t, k_t), the encoding of y[t]

Before a loss has encoded them, Z[t] are the labels themselves, as one column. X always stays whole, because it may be a Gram
matrix, whose rows cannot be cut without its columns: parts of the data are chosen through `rows`.

X are floats. A surrogate that says `raw` is given the user's DataFrame as it is, with its names, categories and gaps; the law
then still sees floats, NaN for whatever is no number.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from lawful._array import Array, is_torch_array, to_numpy

__all__ = [
    "Tasks",
    "as_floats",
    "check_inputs",
    "check_outputs",
    "check_weights",
    "is_gap",
    "is_numeric",
    "read_inputs",
    "rows_of",
    "stack_tasks",
]

SMALLEST, LARGEST = 1e-100, 1e100  # of the largest label of an output: its square and that of its rounding can be represented


@dataclass(eq=False)
class Tasks:
    """T regression problems on rows of one X. See the module's docstring."""

    X: Array
    y: list[Array]
    rows: list[np.ndarray]
    weights: list[Array]
    names: list[str] | None = None  # of the outputs, where the user gave names
    inputs: list[str] | None = None  # of the columns of X, likewise
    single: bool = False  # Y was one column without an axis of its own
    Z: list[Array] = field(default_factory=list)
    atoms: list[Any] = field(default_factory=list)  # what the columns of Z stand for: the loss knows
    frame: Any = None  # X as the user gave it, where that was a DataFrame and the surrogate is `raw`
    device: Any = None  # of torch, other than the host, from which X came
    elsewhere: Any = None  # all rows, where these are a sample of them and the others are on a cluster: `lawful.scale`

    def __post_init__(self) -> None:
        if not self.Z:
            self.Z = [y[:, None] for y in self.y]

    @classmethod
    def read(
        cls, estimator: Any, X: Any, Y: Any, sample_weight: Any = None, surrogate: Any = None, reset: bool = True
    ) -> Tasks:
        """The data of `estimator.fit(X, Y, sample_weight)`, which then knows `n_features_in_` and `feature_names_in_`.

        X is read for `surrogate`: as floats without gaps, or as it takes it. With `reset=False` it is a further batch of an
        estimator that knows them, and an output may have no observation in it.
        """
        device = X.device if is_torch_array(X) and X.device.type != "cpu" else None
        X, given = read_inputs(estimator, X, surrogate, reset=reset)
        values, names = check_outputs(Y)
        if len(values) != len(X):
            raise ValueError(f"X has {len(X)} rows and Y has {len(values)}: inconsistent numbers of samples")
        inputs = getattr(estimator, "feature_names_in_", None)
        inputs = None if inputs is None else [str(name) for name in inputs]
        tasks = cls.of(X, values, sample_weight, names, inputs, empty=not reset)
        return replace(tasks, device=device, frame=None if given is X else given)

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        Y: np.ndarray,
        sample_weight: Any = None,
        names: Any = None,
        inputs: list[str] | None = None,
        empty: bool = False,
    ) -> Tasks:
        """From arrays that are checked already; Y (n, T) or (n,). Labels of weight 0 are left out.

        `empty`: an output may have no observation.
        """
        single = Y.ndim == 1
        Y = Y[:, None] if single else Y
        n, T = Y.shape
        weight = check_weights(sample_weight, n, T)
        observed = ~np.isnan(Y) & (weight > 0)
        rows = [np.flatnonzero(observed[:, t]) for t in range(T)]
        for t, r in enumerate(rows):
            what = f"output {names[t] if names else f'y{t + 1}'!r}"
            if not r.size and empty:
                continue
            if not r.size:
                reason = "all its sample weights are zero" if (~np.isnan(Y[:, t])).any() else "every value is missing"
                raise ValueError(f"{what} has no observation ({reason}); drop the column or add data for it")
            check_size(Y[r, t], what)
        y, weights = [Y[r, t] for t, r in enumerate(rows)], [weight[r, t] for t, r in enumerate(rows)]
        return cls(X, y, rows, weights, names, inputs, single)

    # ------------------------------------------------------------------ what it looks like

    def __len__(self) -> int:
        """The number of tasks T."""
        return len(self.y)

    @property
    def n_rows(self) -> int:
        """The number of rows of X, observed or not."""
        return int(self.X.shape[0])

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs, y1, y2, ... where the user gave none."""
        return self.names or [f"y{t + 1}" for t in range(len(self))]

    @property
    def seen(self) -> np.ndarray:
        """The rows on which any task was observed, in order."""
        mask = np.zeros(self.n_rows, dtype=bool)
        for rows in self.rows:
            mask[to_numpy(rows)] = True
        return np.flatnonzero(mask)

    @property
    def n_seen(self) -> int:
        """How many rows those are, here or elsewhere."""
        return len(self.seen) if self.elsewhere is None else self.elsewhere.n_seen

    @property
    def Y(self) -> np.ndarray:
        """(n, T) labels, NaN where not observed (or of weight 0)."""
        return self._table(self.y, np.nan)

    @property
    def weight(self) -> np.ndarray:
        """(n, T) sample weights, 0 where not observed."""
        return self._table(self.weights, 0.0)

    def inputs_of(self, surrogate: Any) -> Any:
        """X as this surrogate takes it: floats, or the user's own table."""
        return self.frame if self.frame is not None and getattr(surrogate, "raw", False) else self.X

    def _table(self, values: list[Array], empty: float) -> np.ndarray:
        table = np.full((self.n_rows, len(self)), empty)
        for t, (r, v) in enumerate(zip(self.rows, values)):
            table[r, t] = to_numpy(v)
        return table

    # ------------------------------------------------------------------ parts and forms of it

    def encoded(self, loss: Any) -> Tasks:
        """The same tasks in the encoding of a loss."""
        Z, atoms = loss.encodings(self.y)
        others = None if self.elsewhere is None else self.elsewhere.encoded(loss, atoms)
        return replace(self, Z=Z, atoms=atoms, elsewhere=others)

    def on(self, device: Any) -> Tasks:
        """The same tasks as tensors on a device of torch; None: as they are."""
        if device is None:
            return self
        import torch

        X, *others = (
            [torch.as_tensor(np.ascontiguousarray(to_numpy(v), dtype=float), device=device) for v in values]
            for values in ([self.X], self.y, self.weights, self.Z)
        )
        y, weights, Z = others
        return replace(self, X=X[0], y=y, weights=weights, Z=Z)

    def plain(self) -> Tasks:
        """The same tasks, their labels as they are."""
        return replace(self, Z=[], atoms=[])

    def with_labels(self, y: list[Array], Z: list[Array]) -> Tasks:
        """The same rows and weights with other labels."""
        return replace(self, y=y, Z=Z)

    def take(self, rows: np.ndarray) -> Tasks:
        """What is observed on these rows (numbers; a row named twice counts twice). A task may be left with nothing."""
        times = np.bincount(rows, minlength=self.n_rows)
        kept = [np.repeat(np.arange(len(r)), times[r]) for r in self.rows]
        y, own, weights, Z = ([v[k] for v, k in zip(values, kept)] for values in (self.y, self.rows, self.weights, self.Z))
        return replace(self, y=y, rows=own, weights=weights, Z=Z, elsewhere=None)

    def groups(self, by: Sequence[Hashable] | None = None) -> list[list[int]]:
        """Tasks with the same rows and weights (and the same entry of `by`, one a task): one factorisation serves them."""
        found: dict[Any, list[int]] = {}
        for t, (r, w) in enumerate(zip(self.rows, self.weights)):
            key = (to_numpy(r).tobytes(), to_numpy(w).tobytes(), None if by is None else by[t])
            found.setdefault(key, []).append(t)
        return list(found.values())


# ---------------------------------------------------------------------- the checks


def rows_of(X: Any, rows: Any) -> Any:
    """Rows of an array or a DataFrame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def read_inputs(estimator: Any, X: Any, surrogate: Any = None, reset: bool = False) -> tuple[np.ndarray, Any]:
    """X as floats (n, d), and as the surrogate takes it: the same array, or the user's DataFrame for one that says `raw`.

    The floats of a DataFrame that goes to the surrogate as it is are NaN where it holds no number. In arrays, gaps (NaN) are
    let through to surrogates that say `allow_nan`.
    """
    if getattr(surrogate, "raw", False) and hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2 and 0 not in X.shape:
        validate_data(estimator, X, skip_check_array=True, reset=reset)
        columns = [X.iloc[:, j] for j in range(X.shape[1])]
        floats = [as_floats(c, "X") if is_numeric(c) else np.full(len(X), np.nan) for c in columns]
        if any(np.isinf(values).any() for values in floats):
            raise ValueError(
                f"{type(estimator).__name__}: Input X contains infinity; make those entries NaN or drop their rows"
            )
        return np.stack(floats, axis=1), X
    values = check_inputs(estimator, X, reset, bool(getattr(surrogate, "allow_nan", False)))
    return values, values


def check_inputs(estimator: Any, X: Any, reset: bool = False, allow_nan: bool = False) -> np.ndarray:
    """X as a float array (n, d) without gaps, by scikit-learn's rules; `reset` in fit, so that names and number are kept."""
    if np.ma.is_masked(X):
        raise ValueError(
            f"{type(estimator).__name__}: X has {np.ma.count_masked(X)} masked entries, and inputs must be complete; "
            "fill them (X.filled(...), or an imputer) or drop those rows"
        )
    X = to_numpy(X) if is_torch_array(X) else X
    try:
        finite = "allow-nan" if allow_nan else True
        return validate_data(estimator, X, dtype=np.float64, ensure_min_samples=1, ensure_all_finite=finite, reset=reset)
    except ValueError as error:
        names = [str(X.columns[j]) for j in range(X.shape[1]) if not is_numeric(X.iloc[:, j])] if hasattr(X, "iloc") else []
        if not names or "could not convert" not in str(error):
            raise
        raise ValueError(
            f"{type(estimator).__name__}: the columns {', '.join(names)} of X hold no numbers ({error}); encode them "
            '(OneHotEncoder), or give a surrogate that takes tables, such as "auto"'
        ) from error
    except TypeError as error:
        if "NAType" not in str(error):
            raise
        raise ValueError(
            f"{type(estimator).__name__}: X contains NA (NaN), and inputs must be complete; fill the gaps or drop those rows"
        ) from error


def check_outputs(Y: Any) -> tuple[np.ndarray, list[str] | None]:
    """Y as a float array (n,) or (n, T) with NaN for missing, and its column names if it has any."""
    names = [str(c) for c in Y.columns] if hasattr(Y, "columns") else None
    if Y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None")
    values = as_floats(to_numpy(Y) if is_torch_array(Y) else Y, "Y")
    if values.ndim not in (1, 2) or 0 in values.shape[1:]:
        raise ValueError(f"Y must have shape (n,) or (n, T) with at least one column, got {values.shape}")
    if np.isinf(values).any():
        raise ValueError("Input y contains infinity or a value too large for dtype('float64'); use NaN for missing outputs")
    return values, names


def check_size(values: np.ndarray, what: str) -> None:
    """Squares of labels, and the ratios of squares that follow, must neither overflow nor vanish."""
    size = float(np.abs(values).max())
    if size > 0 and not SMALLEST <= size <= LARGEST:
        raise ValueError(
            f"{what} has values of size {size:.1g}, whose squares leave double precision; "
            f"rescale it so that its largest value lies between {SMALLEST:g} and {LARGEST:g}"
        )


def as_floats(values: Any, name: str) -> np.ndarray:
    """Numbers as a float array; what is masked, None or pandas' NA becomes NaN."""
    if np.ma.isMaskedArray(values):
        # Hidden values are not read: they may be anything, even no numbers.
        hidden = np.ma.getmaskarray(values)
        return as_floats(np.where(hidden, np.nan, np.ma.getdata(values)), name)
    try:
        if getattr(getattr(values, "dtype", None), "kind", "") == "c":
            raise ValueError("Complex data not supported")
        try:
            return np.asarray(values, dtype=np.float64)
        except TypeError:
            entries = np.asarray(values, dtype=object)  # NA has no float, unlike None
            if entries.ndim == 0 or not np.any(gaps := np.frompyfunc(_is_na, 1, 1)(entries).astype(bool)):
                raise
            return np.where(gaps, np.nan, entries).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numeric, with NaN for outputs that were not observed: {error}") from error


def _is_na(value: Any) -> bool:
    return type(value).__name__ == "NAType"  # pandas is not imported for this


def is_gap(value: Any) -> bool:
    """Whether an entry of a table says that nothing is known: None, NaN, NaT or pandas' NA."""
    return value is None or _is_na(value) or type(value).__name__ == "NaTType" or (isinstance(value, float) and value != value)


def is_numeric(values: Any) -> bool:
    """Whether a column holds numbers or truth values, by its type; pandas' nullable types too."""
    return getattr(values.dtype, "kind", "O") in "biuf"


def check_weights(sample_weight: Any, n: int, T: int) -> np.ndarray:
    """Sample weights (n,) or (n, T) as (n, T), non-negative and finite."""
    if sample_weight is None:
        return np.ones((n, T))
    if np.ma.is_masked(sample_weight):
        raise ValueError("sample_weight has masked entries; give 0 to rows that are not to count")
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape not in ((n,), (n, T)):
        raise ValueError(f"sample_weight has shape {weight.shape}; give ({n},) or ({n}, {T})")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must be finite and non-negative")
    if not (weight > 0).any():
        raise ValueError("all sample weights are zero; give at least one row a positive weight")
    return np.broadcast_to(weight[:, None] if weight.ndim == 1 else weight, (n, T))


def stack_tasks(tasks: Sequence[tuple[Any, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """One X and one Y with NaN, from a data set (X_t, y_t) per task: each task may have its own inputs.

    >>> X, Y = stack_tasks([([[0.0], [1.0]], [5.0, 6.0]), ([[2.0]], [7.0])])
    >>> Y
    array([[ 5., nan],
           [ 6., nan],
           [nan,  7.]])
    """
    if not len(tasks):
        raise ValueError("stack_tasks needs at least one (X, y) pair")
    inputs: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    for t, pair in enumerate(tasks):
        if len(pair) != 2:
            raise ValueError(f"stack_tasks: entry {t} is not a pair (X, y)")
        if np.ma.is_masked(pair[0]):
            raise ValueError(f"stack_tasks: X of task {t} has masked entries; fill them or drop those rows")
        X, y = np.asarray(pair[0], dtype=np.float64), as_floats(pair[1], f"y of task {t}")
        X = X[:, None] if X.ndim == 1 else X
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if y.ndim != 1 or X.ndim != 2 or len(X) != len(y):
            raise ValueError(
                f"stack_tasks: task {t} has X of shape {X.shape} and y of shape {y.shape}; give (n_t, d) and (n_t,)"
            )
        if inputs and X.shape[1] != inputs[0].shape[1]:
            raise ValueError(
                f"stack_tasks: task {t} has {X.shape[1]} inputs, task 0 has {inputs[0].shape[1]}; all need the same"
            )
        inputs.append(X)
        labels.append(y)
    Y = np.full((sum(map(len, labels)), len(labels)), np.nan)
    start = 0
    for t, y in enumerate(labels):
        Y[start : start + len(y), t] = y
        start += len(y)
    return np.concatenate(inputs), Y
