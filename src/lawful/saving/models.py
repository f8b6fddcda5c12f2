"""`model.save(path)`, `lawful.load(path)` and what a file says of itself.

A file also holds an example: a row of inputs and what the model made of it when it was saved. `load` predicts that row again,
so that a model whose parts do not fit together, or that another version of a library reads otherwise, is noticed at once. Then
it rehearses on that row what else a user asks of a model (its front door, standard deviations, probabilities, sets).
"""

from __future__ import annotations

import copy
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from lawful._array import to_numpy
from lawful.saving.archive import ModelFileError, named, read, read_manifest, write
from lawful.saving.encoding import Reader, Writer

__all__ = ["Savable", "describe", "load"]

PACKAGES = ("lawful", "numpy", "scipy", "scikit-learn")
CLOSE = 1e-6  # relative: another machine may sum in another order, and a decoder stops at 1e-8
LONGEST = 500  # characters of an error: what a file holds may be of any length
INNER = ("estimator_", "best_estimator_")  # where models keep models


class Savable:
    """Models that can be written to a file.

    >>> from lawful import ConstrainedRegressor
    >>> from lawful.saving import Savable
    >>> issubclass(ConstrainedRegressor, Savable)
    True
    """

    def save(self, path: Any) -> None:
        """Write the fitted model to one file, whole or not at all; `lawful.load(path)` reads it.

        The file is a zip archive of arrays and a manifest in JSON that a text editor shows; nothing in it is ever run.
        Functions cannot be saved: give laws as strings. An existing file is replaced once the new one is complete.
        """
        name = type(self).__name__
        if not any(key.endswith("_") and not key.startswith("_") for key in vars(self)):
            raise ValueError(f"{name}.save: the model is not fitted, so there is nothing to save; call fit first")
        named(path, f"{name}.save")
        writer = Writer(name)
        model = writer.value(self, name)
        example = self._example()
        manifest = {
            "class": name,
            "written by": versions(),
            "law": law_in_words(self),
            "inputs": _names(self, "feature_names_in_", getattr(self, "n_features_in_", None), "x"),
            "outputs": _names(self, "output_names_", None, "y"),
            "model": model,
            "example": writer.value(None if example is None else list(example), "example"),
        }
        write(path, manifest, writer.arrays)

    def _example(self) -> tuple[Any, Any] | None:
        """Some inputs, and what the fitted model makes of them; None where it has none at hand."""
        return None

    def _repeat(self, inputs: Any) -> Any:
        """What the model makes of the inputs of its example now."""
        raise NotImplementedError

    def _rehearse(self, X: Any) -> None:
        """Ask of the model what users will, at some rows; the answers are not looked at."""
        raise NotImplementedError


def load(path: Any, *, check: bool = True) -> Any:
    """The model in a file that `model.save(path)` wrote.

    Nothing in the file is run, and no class is made but lawful's own. A file that is damaged, cut short, too new or no model at
    all is a `ModelFileError`. With `check` the model predicts the example in the file and must give what it gave when saved.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> Y = np.c_[np.cos(X), np.sin(X)]
    >>> from lawful import ConstrainedRegressor, KernelRidge, Sphere, load
    >>> path = Path(tempfile.mkdtemp()) / "circle.lawful"
    >>> model = ConstrainedRegressor(Sphere(), surrogate=KernelRidge(lam=1e-3)).fit(X, Y)
    >>> _ = model.save(path)
    >>> bool((load(path).predict(X) == model.predict(X)).all())
    True
    """
    manifest, arrays = read(path)
    reader = Reader(arrays)
    try:
        model, example = reader.value(manifest["model"]), reader.value(manifest["example"])
        if type(model).__name__ != manifest["class"] or not isinstance(model, Savable):
            raise ModelFileError(f"it holds no model but {type(model).__name__}")
        if check and example is not None:
            _check(model, *example)
            unheard(model)._rehearse(np.repeat(example[0], 3, axis=0))  # several rows: one would broadcast with anything
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {shortened(error)}") from error.__cause__
    except Exception as error:  # whatever parts say that do not fit together, compiled ones too
        raise ModelFileError(
            f"{path}: its parts do not fit together ({type(error).__name__}: {shortened(error)}); save the model again"
        ) from error
    return model


def _check(model: Any, inputs: Any, expected: Any) -> None:
    found, expected = (np.asarray(value, dtype=float) for value in (model._repeat(inputs), expected))
    size = np.abs(expected[np.isfinite(expected)]).max(initial=1e-300)
    if found.shape != expected.shape or not np.allclose(found, expected, rtol=CLOSE, atol=CLOSE * size, equal_nan=True):
        raise ModelFileError(
            f"the model does not predict its own example any more ({found.ravel()[:5]}, saved as {expected.ravel()[:5]}): the "
            "file was changed, or a library computes otherwise; fit again, or look with load(path, check=False)"
        )


def unheard(model: Any) -> Any:
    """A shallow copy that neither warns nor fails of rows that cannot be decoded, nor asks for the names of inputs."""
    twin = copy.copy(model)
    names = vars(twin).pop("feature_names_in_", None)
    if names is not None and not (len(names) == twin.n_features_in_ and all(isinstance(name, str) for name in names)):
        raise ModelFileError("its inputs have other names than it has inputs; save the model again")
    if hasattr(twin, "on_failure"):
        twin.on_failure = "nan"
    for name in INNER:
        if hasattr(twin, name):
            setattr(twin, name, unheard(getattr(twin, name)))
    if hasattr(twin, "models_"):
        twin.models_ = [unheard(one) for one in twin.models_]
    return twin


def shortened(error: Exception) -> str:
    """What an error says, without the whole of a long value."""
    said = str(error)
    return said if len(said) <= LONGEST else f"{said[:LONGEST]} ..."


def describe(path: Any) -> dict[str, Any]:
    """What a file says of itself, checked, without making the model: class, law, inputs, outputs, versions, arrays.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> Y = np.c_[np.cos(X), np.sin(X)]
    >>> from lawful import ConstrainedRegressor, KernelRidge, Sphere
    >>> from lawful.saving import describe
    >>> path = Path(tempfile.mkdtemp()) / "circle.lawful"
    >>> _ = ConstrainedRegressor(Sphere(), surrogate=KernelRidge(lam=1e-3)).fit(X, Y).save(path)
    >>> sorted(describe(path))[:3]
    ['arrays', 'bytes', 'class']
    """
    manifest = read_manifest(path)
    kept = ("format", "version", "class", "law", "inputs", "outputs", "written by")
    sizes = [entry.get("bytes") for entry in manifest["arrays"].values()]
    known = {key: manifest.get(key) for key in kept}
    return known | {"arrays": len(sizes), "bytes": sum(size for size in sizes if isinstance(size, int))}


def versions() -> dict[str, str]:
    """The versions of what computes a prediction."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from its source
            found[package] = "unknown"
    return found


def law_in_words(model: Any) -> str:
    """The law of a model as a reader would write it."""
    for wrapped in ("best_estimator_", "estimator_"):
        if (inner := getattr(model, wrapped, None)) is not None:
            return law_in_words(inner)
    law = getattr(model, "constraint_", None)
    if law is None:
        return "none"
    given = getattr(law, "equations", None)
    if isinstance(given, str):
        return given
    if isinstance(given, list | tuple):
        return "; ".join(map(str, given))
    return " ".join(law.__repr__(N_CHAR_MAX=10_000).split())


def _names(model: Any, attribute: str, number: int | None, letter: str) -> list[str] | None:
    names = getattr(model, attribute, None)
    if names is not None:
        return [str(name) for name in names]
    return None if number is None else [f"{letter}{j + 1}" for j in range(number)]


def as_plain(values: Any) -> Any:
    """Predictions as one flat array of numbers, whatever they came in."""
    parts = values if isinstance(values, list | tuple) else [values]
    return np.concatenate([np.asarray(to_numpy(part), dtype=float).ravel() for part in parts])
