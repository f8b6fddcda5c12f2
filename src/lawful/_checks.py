"""Checks of parameters, in one wording: who speaks, what is wrong, what would do."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

__all__ = ["check_choice", "check_count", "check_number"]


def check_choice(who: str, name: str, value: Any, allowed: Collection[Any]) -> Any:
    """`value`, which must be one of `allowed`."""
    if not any(type(value) is type(choice) and value == choice for choice in allowed):
        choices = ", ".join(map(repr, allowed))
        raise ValueError(f"{who}: unknown {name} {value!r}; choose one of {choices}")
    return value


def check_number(who: str, name: str, value: Any, *, zero: bool = False, infinite: bool = False, hint: str = "") -> float:
    """`value` as one number above zero, or from zero on, or up to infinity where these are allowed."""
    try:
        number = float("nan") if isinstance(value, bool | np.bool_ | str) else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not (number > 0 or (zero and number == 0)) or (np.isinf(number) and not infinite):
        allowed = "a number from zero" if zero else "a number above zero"
        raise ValueError(f"{who}({name}={value!r}) will not do; give {allowed}{hint}")
    return number


def check_count(who: str, name: str, value: Any, smallest: int = 1) -> int:
    """`value` as a whole number of at least `smallest`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < smallest:
        raise ValueError(f"{who}({name}={value!r}) will not do; give a whole number of at least {smallest}")
    return int(value)
