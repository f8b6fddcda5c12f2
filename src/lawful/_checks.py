"""Checks of parameters, in one wording: who speaks, what is wrong, what would do.

`check_number`, `check_count` and `check_choice` take a value and the name of who speaks; `number`, `count` and `choice` take an
estimator and the name of one of its parameters. `in_range` is for computations that numbers of an odd size may end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

__all__ = ["check_choice", "check_count", "check_finite", "check_number", "choice", "count", "in_range", "number"]


def check_number(who: str, name: str, value: Any, *, zero: bool = False, infinite: bool = False, hint: str = "") -> float:
    """`value` as one number above 0, or from 0 on, or up to infinity where these are allowed."""
    try:
        found = float("nan") if isinstance(value, bool | np.bool_ | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = float("nan")
    if not (found > 0 or (zero and found == 0)) or (np.isinf(found) and not infinite):
        allowed = "a number, 0 or above" if zero else "a number above 0"
        raise ValueError(f"{who}: {name}={value!r} will not do; give {allowed}{hint}")
    return found


def check_count(who: str, name: str, value: Any, smallest: int = 1) -> int:
    """`value` as a whole number of at least `smallest`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < smallest:
        raise ValueError(f"{who}: {name}={value!r} will not do; give a whole number, {smallest} or above")
    return int(value)


def check_choice(who: str, name: str, value: Any, allowed: Collection[Any]) -> Any:
    """`value`, which must be one of `allowed`."""
    if not any(type(value) is type(known) and value == known for known in allowed):
        raise ValueError(f"{who}: {name}={value!r} is unknown; choose one of {', '.join(map(repr, allowed))}")
    return value


REMEDY = "scale the data to a size near 1, and choose the weights of penalties not so far from it"


@contextmanager
def in_range(who: str) -> Iterator[None]:
    """No warnings on the way; what overflows or divides by zero for good is a ValueError. `check_finite` looks at the rest."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (np.linalg.LinAlgError, OverflowError, ZeroDivisionError, FloatingPointError) as error:
        raise ValueError(f"{who}: the numbers leave double precision; {REMEDY}") from error


def check_finite(who: str, *values: Any) -> None:
    """An error unless all of these are finite."""
    if not all(np.isfinite(value).all() for value in values):
        raise ValueError(f"{who}: the numbers leave double precision; {REMEDY}")


def number(owner: Any, name: str, *, zero: bool = False, infinite: bool = False, hint: str = "") -> float:
    """A parameter of an estimator, as `check_number`."""
    return check_number(type(owner).__name__, name, getattr(owner, name), zero=zero, infinite=infinite, hint=hint)


def count(owner: Any, name: str, smallest: int = 1) -> int:
    """A parameter of an estimator, as `check_count`."""
    return check_count(type(owner).__name__, name, getattr(owner, name), smallest)


def choice(owner: Any, name: str, allowed: Collection[Any]) -> Any:
    """A parameter of an estimator, as `check_choice`."""
    return check_choice(type(owner).__name__, name, getattr(owner, name), allowed)
