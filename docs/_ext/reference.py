"""The API reference, written from the public names (`__all__`) before Sphinx reads its sources: no name can be forgotten.

A name has one page, under the shortest path by which it can be imported: `lawful.Sphere`, not `lawful.sets.Sphere`.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the tests read the list of names and have no Sphinx
    from sphinx.application import Sphinx

# In the order of a reader: what is called first, then what it is made of.
PACKAGES = (
    "lawful",
    "lawful.estimators",
    "lawful.sets",
    "lawful.losses",
    "lawful.surrogates",
    "lawful.kernels",
    "lawful.decoders",
    "lawful.uncertainty",
    "lawful.diagnosis",
    "lawful.rankings",
    "lawful.metrics",
    "lawful.datasets",
    "lawful.baselines",
    "lawful.plots",
    "lawful.saving",
    "lawful.theory",
)


def packages() -> list[str]:
    """Those above, and whatever else `lawful` offers as a package."""
    top = importlib.import_module("lawful")
    offered = [f"lawful.{name}" for name in top.__all__ if inspect.ismodule(getattr(top, name))]
    return [*PACKAGES, *(name for name in offered if name not in PACKAGES)]


def public_names(package: str) -> list[str]:
    """Classes and functions that a package offers; constants are described where they are used."""
    module = importlib.import_module(package)
    defined = [name for name, thing in vars(module).items() if getattr(thing, "__module__", None) == package]
    names = getattr(module, "__all__", [name for name in defined if not name.startswith("_")])
    return [
        n for n in sorted(names, key=str.lower) if inspect.isclass(getattr(module, n)) or inspect.isroutine(getattr(module, n))
    ]


def reference() -> dict[str, list[str]]:
    """Package -> the full names that have their page there."""
    top = importlib.import_module("lawful")
    shortest = {id(getattr(top, name)): f"lawful.{name}" for name in top.__all__}
    seen: set[int] = set()
    listed: dict[str, list[str]] = {}
    known = packages()
    for package in (*known[1:], known[0]):  # under `lawful` itself is what belongs to no package of its own
        module: Any = importlib.import_module(package)
        things = [(name, getattr(module, name)) for name in public_names(package)]
        listed[package] = [shortest.get(id(thing), f"{package}.{name}") for name, thing in things if id(thing) not in seen]
        seen |= {id(thing) for _, thing in things}
    return {package: listed[package] for package in known}


def write(app: Sphinx, config: Any) -> None:
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    lines = ["API reference", "=============", "", "Every public name, with an example that the tests run.", ""]
    for package, names in reference().items():
        about = (inspect.getdoc(importlib.import_module(package)) or "").split("\n\n")[0].replace("\n", " ")
        lines += [package, "-" * len(package), "", about, "", ".. autosummary::", "   :toctree: generated", ""]
        lines += [f"   {name}" for name in names] + [""]
    known = {f"{name}.rst" for names in reference().values() for name in names}
    for stale in folder.glob("generated/*.rst"):
        if stale.name not in known:
            stale.unlink()
    path = folder / "index.rst"
    text = "\n".join(lines)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", write)  # before Sphinx lists its sources
    return {"parallel_read_safe": True, "parallel_write_safe": True}
