"""The arrays that are a fitted `KernelRidge`, and the ridge made from them: what saving a model needs.

A state is a dict of None, booleans, numbers, strings, lists, dicts and NumPy arrays: any format that knows arrays can hold it,
and nothing in it is ever executed. X itself is kept only where kernels read it; the Gram matrix of `Precomputed` is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import to_numpy
from lawful.kernels import Kernel, Precomputed, as_kernel, kernel_from_state, kernel_state
from lawful.surrogates.exact import CholeskyFactor, Factor, Sample, Solution, SpectralFactor
from lawful.surrogates.primal import PrimalFactor

FORMAT = 1
FACTORS: dict[str, type[Factor]] = {kind.__name__: kind for kind in (SpectralFactor, CholeskyFactor, PrimalFactor)}
LEARNED = ("lam_", "loo_mse_", "groups_", "n_rows_", "_loo_variance", "_residuals", "_widths", "_bases")
OF_FIT = ("n_features_in_", "_single")  # only where `fit(X, y)` was called
PARAMETERS = ("lam", "intercept", "scales", "max_tuning_rows", "verbose")


def ridge_state(ridge: Any) -> dict[str, Any]:
    kernels = list({id(kernel): kernel for kernel in ridge.kernels_}.values())
    X = ridge._factors[0].sample.X
    state: dict[str, Any] = {"surrogate": "KernelRidge", "format": FORMAT}
    state["parameters"] = {name: _plain(getattr(ridge, name)) for name in PARAMETERS}
    given = ridge.kernel if isinstance(ridge.kernel, list | tuple) else [ridge.kernel]
    state["given"] = [None if kernel is None else kernel_state(as_kernel(kernel)) for kernel in given]
    state["X"] = np.empty((X.shape[0], 0)) if isinstance(kernels[0], Precomputed) else to_numpy(X)
    state["kernels"] = [kernel_state(kernel) for kernel in kernels]
    state["kernel_of_task"] = [next(i for i, k in enumerate(kernels) if k is kernel) for kernel in ridge.kernels_]
    state["learned"] = {name: _plain(getattr(ridge, name)) for name in (*LEARNED, *OF_FIT) if hasattr(ridge, name)}
    names = getattr(ridge, "feature_names_in_", None)
    state["names"] = None if names is None else [str(name) for name in names]
    state["factors"] = [_factor_state(factor) for factor in ridge._factors]
    state["solutions"] = [{"coef": to_numpy(s.coef), "beta": to_numpy(s.beta)} for s in ridge._solutions]
    return state


def ridge_from_state(cls: Any, state: dict[str, Any]) -> Any:
    if state.get("surrogate") != "KernelRidge" or state.get("format") != FORMAT:
        raise ValueError(
            f"KernelRidge.from_state got the state of {state.get('surrogate')!r}, format {state.get('format')!r}; "
            f"give what KernelRidge.state() returned, format {FORMAT}"
        )
    kernels = [kernel_from_state(kernel) for kernel in state["kernels"]]
    own = [kernels[i] for i in state["kernel_of_task"]]
    given = [None if kernel is None else kernel_from_state(kernel) for kernel in state["given"]]
    ridge = cls(given[0] if len(given) == 1 else given, **state["parameters"])
    ridge.__dict__.update(state["learned"])
    ridge.kernels_ = own
    if all(kernel is own[0] for kernel in own):
        ridge.kernel_ = own[0]
    if state["names"] is not None:
        ridge.feature_names_in_ = np.asarray(state["names"], dtype=object)
    ridge._factors = [
        _factor_from_state(part, own[group[0]], state["X"]) for part, group in zip(state["factors"], ridge.groups_)
    ]
    ridge._solutions = [Solution(part["coef"], part["beta"]) for part in state["solutions"]]
    return ridge


def _factor_state(factor: Factor) -> dict[str, Any]:
    """A factor is numbers and arrays besides its kernel and its sample."""
    values = {name: _plain(value) for name, value in vars(factor).items() if name not in ("kernel", "sample")}
    sample = {name: _plain(getattr(factor.sample, name)) for name in ("points", "group", "weights", "share")}
    return {"kind": type(factor).__name__, "sample": sample, "values": values}


def _factor_from_state(state: dict[str, Any], kernel: Kernel, X: np.ndarray) -> Factor:
    kind = FACTORS[state["kind"]]
    factor = kind.__new__(kind)
    factor.__dict__.update(state["values"])
    factor.kernel, factor.sample = kernel, Sample(X, **state["sample"])
    return factor


def _plain(value: Any) -> Any:
    """None, booleans, numbers, strings, lists of such, and everything else as a NumPy array."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return value.item()
    return to_numpy(value)
