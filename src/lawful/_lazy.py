"""Packages whose names load on first use (PEP 562), so that `import lawful` costs next to nothing.

The stub `__init__.pyi` beside a package's `__init__.py` is its table of contents: type checkers read it, and so does `attach`.
A name that it imports is looked up in its module when somebody asks for it, and kept. Whoever never ranks anything never waits
for compiled kernels; whoever needs no baseline never loads one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def contents(package: str, stub: Path) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """name -> (module, attribute) for all that a stub imports, attribute "" for a sub-module; and its `__all__`."""
    homes: dict[str, tuple[str, str]] = {}
    listed: list[str] = []
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module == package:
            homes |= {alias.name: (f"{package}.{alias.name}", "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            homes |= {alias.name: (node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Assign):  # nothing but __all__ is assigned in a stub
            listed = ast.literal_eval(node.value)
    return homes, listed


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, from its stub."""
    homes, listed = contents(package, Path(file).with_suffix(".pyi"))

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = homes[name]
        value = import_module(module)
        if attribute:
            value = getattr(value, attribute)
        setattr(sys.modules[package], name, value)  # asked for once
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return __getattr__, __dir__, listed
