"""Objects that can be built and printed as Python: a failure must be a few lines that anyone can run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

import lawful
import lawful.decoders
import lawful.kernels
import lawful.losses
import lawful.sets


class New:
    """A call of something in `lawful`, by its path: New("lawful.Sphere", 2.0, center=[0.0, 1.0])."""

    def __init__(self, path: str, *args: Any, **kwargs: Any) -> None:
        self.path, self.args, self.kwargs = path, args, kwargs

    def build(self, handed: Handed) -> Any:
        target: Any = lawful
        for name in self.path.split(".")[1:]:
            target = getattr(target, name)
        return target(*(build(a, handed) for a in self.args), **{k: build(v, handed) for k, v in self.kwargs.items()})

    def __str__(self) -> str:
        given = [source(a) for a in self.args] + [f"{k}={source(v)}" for k, v in self.kwargs.items()]
        return f"{self.path}({', '.join(given)})"


@dataclass
class Written:
    """A Python object together with how it is written: functions, and classes defined in the fuzz suite."""

    text: str
    value: Any

    def __str__(self) -> str:
        return self.text


@dataclass
class Handed:
    """The arrays and tables that were handed to the library, each with what it held then."""

    given: list[tuple[Any, Any]] = field(default_factory=list)

    def hand(self, value: Any) -> Any:
        self.given.append((value, value.copy()))
        return value

    def changed(self) -> bool:
        return any(not same(value, before) for value, before in self.given)


def same(value: Any, before: Any) -> bool:
    """Bit by bit."""
    if isinstance(value, pd.DataFrame):
        if list(value.columns) != list(before.columns) or not (value.dtypes == before.dtypes).all():
            return False
        return bool(value.equals(before))
    if isinstance(value, np.ma.MaskedArray):
        return same(value.data, before.data) and same(np.ma.getmaskarray(value), np.ma.getmaskarray(before))
    if value.shape != before.shape or value.dtype != before.dtype:
        return False
    return value.tolist() == before.tolist() if value.dtype == object else value.tobytes() == before.tobytes()


def build(value: Any, handed: Handed) -> Any:
    """The object itself; arrays are copied, so that a change shows."""
    if isinstance(value, New):
        return value.build(handed)
    if isinstance(value, Written):
        return value.value
    if isinstance(value, np.ndarray | pd.DataFrame):
        return handed.hand(value.copy())
    if isinstance(value, list | tuple):
        return type(value)(build(v, handed) for v in value)
    return value


def source(value: Any) -> str:
    """Python that makes the same object."""
    if isinstance(value, New | Written):
        return str(value)
    if isinstance(value, pd.DataFrame):
        columns = ", ".join(f"{name!r}: {source(value[name].tolist())}" for name in value.columns)
        dtype = str(value.dtypes.iloc[0])
        return f"pd.DataFrame({{{columns}}}, dtype={dtype!r})"
    if isinstance(value, np.ma.MaskedArray):
        return f"np.ma.masked_array({source(value.data)}, {np.ma.getmaskarray(value).tolist()})"
    if isinstance(value, np.ndarray):
        dtype = "" if value.dtype == np.float64 else f", dtype={str(value.dtype)!r}"
        return f"np.array({source(value.tolist())}{dtype})" if value.size else f"np.empty({value.shape})"
    if isinstance(value, list):
        return f"[{', '.join(map(source, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(source, value))}{',' if len(value) == 1 else ''})"
    if value is pd.NA:
        return "pd.NA"
    if isinstance(value, float | np.floating) and not np.isfinite(value):
        return {"nan": "np.nan", "inf": "np.inf", "-inf": "-np.inf"}[str(float(value))]
    if isinstance(value, np.generic):
        return repr(value.item())
    return repr(value)
