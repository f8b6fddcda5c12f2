"""A model as JSON and arrays, and back.

    None, booleans, whole and finite numbers, text, lists      as in JSON
    {"$": "array", "number": k}                                an array, stored beside the manifest
    {"$": "object", "class": name, "parameters": {...}, ...}   one of the classes of `registry`:
         "fitted": {name: value}                               what `fit` learned, an attribute each
         "state": value                                        or what its own `state()` says, for `from_state`
    {"$": "tuple" | "dict" | "names" | "sparse" | ...}         the rest of what models are made of

Parameters come from `get_params`, and objects among them are written as they were given, without what they may have learned.
A class may name attributes that are made anew rather than saved, `not_saved`, and makes them in `after_load()`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from lawful.saving.archive import Arrays, ModelFileError
from lawful.saving.registry import class_of, name_of

__all__ = ["CannotSave", "Reader", "Writer"]


class CannotSave(TypeError):
    """A model holds something that no file of numbers and words can hold."""


class Writer:
    """What a model is, in JSON; arrays go to `arrays`."""

    def __init__(self, who: str) -> None:
        self.who, self.arrays = who, Arrays()

    def value(self, value: Any, where: str, fitted: bool = True) -> Any:
        """`where` names the place for an error; `fitted`: whether what objects have learned is written too."""
        if value is None or (isinstance(value, bool | int | str) and type(value) in (bool, int, str)):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, where, fitted)
        if isinstance(value, np.generic):
            return self._array(np.asarray(value), where, fitted) | {"$": "scalar"}
        if type(value) in (list, tuple):
            items = [self.value(item, f"{where}[{i}]", fitted) for i, item in enumerate(value)]
            return items if type(value) is list else {"$": "tuple", "items": items}
        if type(value) in (dict, Bunch):
            pairs = [[self.value(k, where), self.value(v, f"{where}[{k!r}]", fitted)] for k, v in value.items()]
            return {"$": "dict" if type(value) is dict else "bunch", "items": pairs}
        if isinstance(value, sparse.csr_array):
            parts = {name: self.arrays.add(getattr(value, name)) for name in ("data", "indices", "indptr")}
            return {"$": "sparse", "shape": [int(n) for n in value.shape], **parts}
        return self._object(value, where, fitted)

    def _array(self, array: np.ndarray, where: str, fitted: bool) -> Any:
        if array.dtype.kind == "O":  # names of columns
            items = [self.value(item, f"{where}[{i}]", fitted) for i, item in enumerate(array.ravel())]
            return {"$": "names", "shape": list(array.shape), "items": items}
        try:
            return {"$": "array", "number": self.arrays.add(np.ma.getdata(array))}
        except TypeError as error:
            raise CannotSave(f"{self.who}.save: {where}: {error}") from error

    def _object(self, thing: Any, where: str, fitted: bool) -> Any:
        name = name_of(thing)
        if name is None:
            raise CannotSave(f"{self.who}.save: {where} {reason(thing)}")
        own = list(thing.get_params(deep=False)) if hasattr(thing, "get_params") else []
        out: dict[str, Any] = {"$": "object", "class": name}
        if fitted and hasattr(thing, "state") and any(key.endswith("_") for key in vars(thing)):
            return out | {"state": self.value(thing.state(), where)}
        out["parameters"] = {key: self._parameter(thing, key, f"{where}.{key}") for key in own}
        if fitted:
            left_out = {*own, *getattr(thing, "not_saved", ())}
            learned = {key: value for key, value in vars(thing).items() if key not in left_out}
            out["fitted"] = {key: self.value(value, f"{where}.{key}") for key, value in learned.items()}
        return out

    def _parameter(self, thing: Any, key: str, where: str) -> Any:
        """As it was given. A generator has done its work, and what it would draw next is no part of a model: None."""
        given = getattr(thing, key)
        drawn = isinstance(given, np.random.Generator | np.random.RandomState)
        return None if key == "random_state" and drawn else self.value(given, where, False)


def reason(thing: Any) -> str:
    """Why something cannot be saved, and what would do."""
    kind = type(thing)
    if kind.__module__.partition(".")[0] == "sympy":
        return f"is the sympy object {thing}, and a file holds words: give the law as a string, as in Equations('y1 + y2 = 1')"
    if hasattr(thing, "split") and hasattr(thing, "get_n_splits"):
        return f"is {thing!r}, which no model file can hold; fit again with a number of folds, or with the folds in a list"
    if kind.__module__.partition(".")[0] == "sklearn" or (hasattr(thing, "predict") and not isinstance(thing, type)):
        return (
            f"is a {kind.__name__}, whose insides are not this library's to write; skops.io.dump(model, path) saves such "
            "models, or fit again with surrogate=KernelRidge()"
        )
    if getattr(thing, "streamed", False):
        return "keeps no coefficients because they exceed max_memory; fit again with a larger max_memory"
    if callable(thing) and not hasattr(thing, "get_params"):
        name = getattr(thing, "__name__", kind.__name__)
        return (
            f"is the function {name!r}, and code cannot be saved: a file that holds code would run it when loaded. Give the "
            "law as a string, as in Equations('y1**2 + y2**2 = 1'), a kernel of lawful.kernels, or a name"
        )
    what = f"{kind.__module__}.{kind.__qualname__}"
    return f"is a {what}, which no model file can hold; numbers, text, lists of them and lawful's classes can"


class Reader:
    """The way back. Anything that does not fit is a `ModelFileError`."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays

    def value(self, given: Any) -> Any:
        if isinstance(given, list):
            return [self.value(item) for item in given]
        if not isinstance(given, dict):
            return given
        kind = given.get("$")
        make = getattr(self, f"_{kind}", None) if kind in KINDS else None
        if make is None:
            raise ModelFileError(f"its manifest holds an unknown kind of value {kind!r}; a newer lawful would do")
        return make(given)

    def _stored(self, number: Any) -> np.ndarray:
        array = self.arrays.get(str(number)) if type(number) is int else None
        if array is None:
            raise ModelFileError(f"its manifest names array {number!r}, which is not there; save the model again")
        return array

    def _float(self, given: dict[str, Any]) -> float:
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[given["value"]]

    def _array(self, given: dict[str, Any]) -> np.ndarray:
        return self._stored(given["number"])

    def _scalar(self, given: dict[str, Any]) -> Any:
        return self._stored(given["number"])[()]

    def _names(self, given: dict[str, Any]) -> np.ndarray:
        items = [self.value(item) for item in given["items"]]
        out = np.empty(len(items), dtype=object)
        out[:] = items
        return out.reshape(given["shape"])

    def _tuple(self, given: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self.value(item) for item in given["items"])

    def _dict(self, given: dict[str, Any]) -> dict[Any, Any]:
        return {self.value(key): self.value(value) for key, value in given["items"]}

    def _bunch(self, given: dict[str, Any]) -> Bunch:
        return Bunch(**self._dict(given))

    def _sparse(self, given: dict[str, Any]) -> sparse.csr_array:
        data, indices, indptr = (self._stored(given[name]) for name in ("data", "indices", "indptr"))
        out = sparse.csr_array((data, indices, indptr), shape=tuple(given["shape"]))
        out.check_format(full_check=True)  # compiled code will believe its indices
        return out

    def _object(self, given: dict[str, Any]) -> Any:
        name = given["class"]
        cls: Any = class_of(name) if isinstance(name, str) else None
        if cls is None:
            raise ModelFileError(f"its manifest names the class {name!r}, which is none of lawful's; a newer lawful would do")
        if "state" in given:
            return cls.from_state(self.value(given["state"]))
        parameters = {key: self.value(value) for key, value in given["parameters"].items()}
        thing = cls(**parameters) if hasattr(cls, "get_params") else cls.__new__(cls)
        learned = {key: self.value(value) for key, value in given.get("fitted", {}).items()}
        for key in learned:
            if not key.isidentifier() or callable(getattr(cls, key, None)) or isinstance(getattr(cls, key, None), property):
                raise ModelFileError(f"its manifest gives {name} an attribute {key!r}, which is a method; save the model again")
        thing.__dict__.update(learned)
        if learned and hasattr(thing, "after_load"):
            thing.after_load()
        return thing


KINDS = ("array", "bunch", "dict", "float", "names", "object", "scalar", "sparse", "tuple")
