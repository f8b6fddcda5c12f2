"""Parameters, checked: one helper for numbers and one for choices, so that every estimator refuses in the same words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["COUPLED", "choice", "number", "whole"]

COUPLED = ", or inf, which switches the coupling off"


def number(owner: Any, name: str, *, zero: bool = False, infinite: bool = False, hint: str = "", value: Any = None) -> float:
    """The parameter `name` of `owner` as a number above 0 (`zero`: or 0; `infinite`: or inf), or a ValueError that says so.

    owner: an estimator, or the name of who speaks, with the value itself.
    """
    given = value if isinstance(owner, str) else getattr(owner, name)
    try:
        found = float("nan") if isinstance(given, bool | np.bool_ | str) else float(given)
    except (TypeError, ValueError, OverflowError):
        found = float("nan")
    if not (found > 0 or (zero and found == 0)) or (np.isinf(found) and not infinite):
        _refuse(owner, name, given, "a number, 0 or above" if zero else "a number above 0", hint)
    return found


def whole(owner: Any, name: str, *, least: int = 1, value: Any = None) -> int:
    """The parameter as a whole number, `least` or above."""
    given = value if isinstance(owner, str) else getattr(owner, name)
    if not isinstance(given, int | np.integer) or isinstance(given, bool) or given < least:
        _refuse(owner, name, given, f"a whole number, {least} or above")
    return int(given)


def choice(owner: Any, name: str, choices: Sequence[Any], hint: str = "") -> Any:
    """The parameter, one of the choices."""
    given = getattr(owner, name)
    if not any(type(given) is type(c) and given == c for c in choices):
        listed = ", ".join(repr(c) for c in choices)
        raise ValueError(f"{_who(owner)}: {name}={given!r} is unknown; choose one of {listed}{hint}")
    return given


def _refuse(owner: Any, name: str, given: Any, what: str, hint: str = "") -> None:
    raise ValueError(f"{_who(owner)}: {name}={given!r} will not do; give {what}{hint}")


def _who(owner: Any) -> str:
    return owner if isinstance(owner, str) else type(owner).__name__
