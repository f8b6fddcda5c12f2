"""The arrays that are a fitted `NystromRidge`, and the ridge made from them: what saving a model needs. See `state`."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import to_numpy
from lawful.kernels import as_kernel, kernel_from_state, kernel_state
from lawful.surrogates.engine import Engine, Solution
from lawful.surrogates.state import check_state
from lawful.surrogates.statistics import Cell, Statistics

FORMAT = 1
PARAMETERS = (
    "lam",
    "n_centers",
    "centers",
    "solver",
    "intercept",
    "dtype",
    "block_size",
    "device",
    "tol",
    "max_iter",
    "verbose",
)
LEARNED = ("solver_", "groups_", "n_iter_", "n_seen_", "_widths", "_bases", "_counts", "_base", "_seed")
OF_FIT = ("n_features_in_", "_single")  # only where `fit(X, y)` was called
OF_SOLUTION = ("coef", "beta", "lam", "n", "df", "rss")


def nystrom_state(ridge: Any) -> dict[str, Any]:
    engine = ridge._engine
    state: dict[str, Any] = {"surrogate": "NystromRidge", "format": FORMAT}
    state["parameters"] = {name: _plain(getattr(ridge, name)) for name in PARAMETERS}
    seed = ridge.random_state
    state["parameters"]["random_state"] = int(seed) if isinstance(seed, int | np.integer) else None
    given = ridge.kernel[0] if isinstance(ridge.kernel, list | tuple) else ridge.kernel
    state["given"] = None if given is None else kernel_state(as_kernel(given))
    state["kernel"] = kernel_state(ridge.kernel_)
    state["X"], state["pivots"], state["constant"] = engine.centers, engine.found.L, bool(engine.intercept)
    state["left"], state["smallest"] = float(engine.found.left), float(engine.smallest)
    state["learned"] = {name: _plain(getattr(ridge, name)) for name in (*LEARNED, *OF_FIT) if hasattr(ridge, name)}
    state["held_out"] = None if ridge.held_out_ is None else {key: to_numpy(v) for key, v in ridge.held_out_.items()}
    names = getattr(ridge, "feature_names_in_", None)
    state["names"] = None if names is None else [str(name) for name in names]
    state["solution"] = {name: np.ascontiguousarray(to_numpy(getattr(ridge._solution, name))) for name in OF_SOLUTION}
    known = ridge._rms is not None or ridge._residuals is not None or ridge._tasks is not None
    state["errors"] = ridge.errors() if known else None  # else it came from a file of 0.1.0
    cells = ridge._statistics.cells if hasattr(ridge, "_statistics") and ridge.solver_ == "direct" else {}
    state["cells"] = [
        {"tasks": [int(t) for t in key]} | {name: to_numpy(getattr(cell, name)) for name in ("gram", "cross", "own")}
        for key, cell in cells.items()
    ]
    return state


def nystrom_from_state(cls: Any, state: dict[str, Any]) -> Any:
    check_state(state, "NystromRidge", FORMAT)
    ridge = cls(None if state["given"] is None else kernel_from_state(state["given"]), **state["parameters"])
    ridge.__dict__.update(state["learned"])
    if sum(ridge._widths) != state["solution"]["coef"].shape[1]:
        raise ValueError("NystromRidge.from_state: the coefficients are of other tasks than the state names; fit it again")
    ridge.kernel_ = kernel_from_state(state["kernel"])
    ridge.kernels_ = [ridge.kernel_] * len(ridge._widths)
    ordered = state["pivots"], state["left"]
    ridge._engine = Engine(ridge.kernel_, state["X"], state["constant"], ridge, state["X"], state["smallest"], ordered)
    ridge.centers_, ridge.n_centers_ = ridge._engine.centers, ridge._engine.M
    where = ridge._engine.widest.where
    ridge._solution = Solution(**(state["solution"] | {"coef": where.array(state["solution"]["coef"], True)}))
    ridge._statistics = Statistics(ridge.n_centers_, ridge._widths)
    for cell in state["cells"]:
        gram, cross = (_sums(where, cell[name]) for name in ("gram", "cross"))
        ridge._statistics.add(tuple(int(t) for t in cell["tasks"]), Cell(gram, cross, cell["own"]))
    ridge._normals, ridge._residuals, ridge._tasks, ridge.held_out_ = None, None, None, state["held_out"]
    ridge._rms = state.get("errors")
    groups = ridge.groups_
    ridge._settle()
    ridge.groups_ = groups
    if state["names"] is not None:
        ridge.feature_names_in_ = np.asarray(state["names"], dtype=object)
    return ridge


def _sums(where: Any, values: np.ndarray) -> Any:
    """As `zeros` makes them: BLAS adds to columns."""
    return np.asfortranarray(values) if where.torch is None else where.array(values, True)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return value.item()
    return str(value) if type(value).__name__ == "device" else to_numpy(value)
