"""The arrays that are a fitted `KernelRidge`, and the ridge made from them: what saving a model needs.

A state is a dict of None, booleans, numbers, strings, lists, dicts and NumPy arrays: any format that knows arrays can hold it,
and nothing in it is ever executed. X itself is kept only where kernels read it; the Gram matrix of `Precomputed` is not.
Factors are computed again, on one thread of BLAS as in the fit: a file has room for inputs and coefficients only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import to_numpy
from lawful.kernels import Kernel, Precomputed, as_kernel, kernel_from_state, kernel_state
from lawful.surrogates.exact import CholeskyFactor, Factor, Sample, Solution, SpectralFactor
from lawful.surrogates.large import LargeFactor
from lawful.surrogates.members import Member
from lawful.surrogates.parts import Part
from lawful.surrogates.primal import PrimalFactor
from lawful.surrogates.sparse import SparseFactor

FORMAT = 2
FACTORS: dict[str, type[Factor]] = {
    kind.__name__: kind for kind in (SpectralFactor, CholeskyFactor, LargeFactor, SparseFactor, PrimalFactor)
}
LEARNED = (
    "lam_",
    "loo_mse_",
    "groups_",
    "n_rows_",
    "choice_",
    "_loo_variance",
    "_unit",
    "_residuals",
    "_widths",
    "_bases",
    "_correlation",
    "_noise",
)
OF_PART = ("tasks", "weight", "lam", "spread", "s2", "noise")
OF_FIT = ("n_features_in_", "_single")  # only where `fit(X, y)` was called
PARAMETERS = ("lam", "intercept", "scales", "max_tuning_rows", "verbose", "tune", "noise")


def ridge_state(ridge: Any) -> dict[str, Any]:
    kernels = list({id(member.kernel): member.kernel for members in ridge.members_ for member in members}.values())
    place = {id(kernel): i for i, kernel in enumerate(kernels)}
    X = ridge._parts[0].factor.sample.X
    state: dict[str, Any] = {"surrogate": "KernelRidge", "format": FORMAT}
    state["parameters"] = {name: _plain(getattr(ridge, name)) for name in PARAMETERS}
    seed = ridge.random_state  # a generator of the user's is no number; it has done its work
    state["parameters"]["random_state"] = int(seed) if isinstance(seed, int | np.integer) else None
    given = ridge.kernel if isinstance(ridge.kernel, list | tuple) else [ridge.kernel]
    state["given"] = [None if kernel is None else kernel_state(as_kernel(kernel)) for kernel in given]
    state["X"] = np.empty((X.shape[0], 0)) if isinstance(kernels[0], Precomputed) else to_numpy(X)
    state["kernels"] = [kernel_state(kernel) for kernel in kernels]
    state["members"] = [
        [{"kernel": place[id(member.kernel)], "lam": member.lam, "weight": member.weight} for member in members]
        for members in ridge.members_
    ]
    state["learned"] = {name: _plain(getattr(ridge, name)) for name in (*LEARNED, *OF_FIT) if hasattr(ridge, name)}
    names = getattr(ridge, "feature_names_in_", None)
    state["names"] = None if names is None else [str(name) for name in names]
    state["parts"] = [_part_state(part, place[id(part.factor.kernel)]) for part in ridge._parts]
    return state


def check_state(state: dict[str, Any], name: str, version: int) -> None:
    """Whether this is the state of that surrogate, in the format that is read today."""
    if state.get("surrogate") != name or state.get("format") != version:
        raise ValueError(
            f"{name}.from_state got the state of {state.get('surrogate')!r}, format {state.get('format')!r}; "
            f"give what {name}.state() returned, format {version}"
        )


def ridge_from_state(cls: Any, state: dict[str, Any]) -> Any:
    check_state(state, "KernelRidge", FORMAT)
    kernels = [kernel_from_state(kernel) for kernel in state["kernels"]]
    members = [[Member(kernels[m["kernel"]], m["lam"], m["weight"]) for m in one] for one in state["members"]]
    own = [one[0].kernel for one in members]
    given = [None if kernel is None else kernel_from_state(kernel) for kernel in state["given"]]
    ridge = cls(given[0] if len(given) == 1 else given, **state["parameters"])
    ridge.__dict__.update({"_correlation": np.eye(len(members))} | state["learned"])  # none, in files of the first version
    ridge.members_, ridge.kernels_ = members, own
    if all(kernel is own[0] for kernel in own):
        ridge.kernel_ = own[0]
    if state["names"] is not None:
        ridge.feature_names_in_ = np.asarray(state["names"], dtype=object)
    samples: dict[bytes, Sample] = {}  # parts on the same inputs share them, as they did
    ridge._parts = [_part_from_state(part, kernels, state["X"], samples) for part in state["parts"]]
    return ridge


def _part_state(part: Part, kernel: int) -> dict[str, Any]:
    """A factor is numbers and arrays besides its kernel and its sample."""
    left = ("kernel", "sample", *part.factor.computed)  # what can be computed again needs no room
    values = {name: _plain(value) for name, value in vars(part.factor).items() if name not in left}
    sample = {name: _plain(getattr(part.factor.sample, name)) for name in ("points", "group", "weights", "share")}
    factor = {"kind": type(part.factor).__name__, "kernel": kernel, "sample": sample, "values": values}
    solution = {"coef": to_numpy(part.solution.coef), "beta": to_numpy(part.solution.beta)}
    return {"factor": factor, "solution": solution} | {name: _plain(getattr(part, name)) for name in OF_PART}


def _part_from_state(state: dict[str, Any], kernels: list[Kernel], X: np.ndarray, samples: dict[bytes, Sample]) -> Part:
    of_factor = state["factor"]
    kind = FACTORS[of_factor["kind"]]
    factor = kind.__new__(kind)
    factor.__dict__.update(of_factor["values"])
    sample = Sample(X, **of_factor["sample"])
    key = sample.points.tobytes() + sample.group.tobytes() + sample.share.tobytes()
    factor.kernel, factor.sample = kernels[of_factor["kernel"]], samples.setdefault(key, sample)
    if values_lost := [name for name in factor.computed if name not in of_factor["values"]]:
        factor.compute_again(values_lost)
    return Part(factor=factor, solution=Solution(**state["solution"]), **{name: state[name] for name in OF_PART})


def _plain(value: Any) -> Any:
    """None, booleans, numbers, strings, lists of such, and everything else as a NumPy array."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return value.item()
    return to_numpy(value)
