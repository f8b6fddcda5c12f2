"""Which variable a name in a law means: exactly one, or an error.

Column names of the outputs and of the inputs are names. y1, y2, ... are the outputs and x1, x2, ... the inputs by number,
unless an output column has that name: a table whose columns are called y2, y1 means what it says. A name that would mean two
variables (an input column called y1, an output column and an input column of the same name, y1 inside a block of a `Product`
when another block has the column y1) is refused where a law uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

Variable = tuple[str, float]  # ("y", t) or ("x", j), counted from 0, or ("number", value)
RESERVED = ("pi",)


class BlockNames(list[str]):
    """Names of the outputs of one block, and those of the outputs that are elsewhere."""

    elsewhere: frozenset[str] = frozenset()


def names_of_block(outputs: list[str] | None, block: list[int]) -> BlockNames | None:
    """The names of some of the outputs; they remember what the others are called."""
    if outputs is None:
        return None
    chosen = BlockNames(outputs[t] for t in block)
    others = {name for t, name in enumerate(outputs) if t not in set(block)}
    chosen.elsewhere = frozenset(others | getattr(outputs, "elsewhere", frozenset()))
    return chosen


class Names(NamedTuple):
    known: dict[str, Variable]
    refused: dict[str, str]  # name -> why it cannot be used


def resolve(n_outputs: int, n_inputs: int, outputs: list[str] | None, inputs: list[str] | None) -> Names:
    """Every name that a law may use, and those that it may not because they would mean two things."""
    known: dict[str, Variable] = {f"x{j + 1}": ("x", j) for j in range(n_inputs)}
    refused: dict[str, str] = {}
    for j, name in enumerate(inputs or []):
        known[name] = ("x", j)
    columns = {name: ("y", t) for t, name in enumerate(outputs or [])}
    numbered = {f"y{t + 1}": ("y", t) for t in range(n_outputs)}
    for name, variable in (numbered | columns).items():
        if name in (inputs or []):
            what = "an output column" if name in columns else f"output {variable[1] + 1} by its number"
            refused[name] = f"it names both an input column and {what}; rename the input column"
        known[name] = variable
    for name in getattr(outputs, "elsewhere", ()):
        if name in known and name not in columns:
            refused[name] = "an output outside this block has that name; use the column names of the block"
    repeated = [name for names in (outputs or [], inputs or []) for name in names if list(names).count(name) > 1]
    refused |= {name: "several columns have that name; rename them" for name in repeated}
    return Names(known, refused)


def check_used(item: Any, names: Names) -> None:
    """Refuse a law that uses a name with two meanings. `item` is a string, or has sympy's `free_symbols`."""
    for name in sorted(_used(item) & names.refused.keys()):
        raise ValueError(f"Equations: {name!r} in {item!s} is ambiguous: {names.refused[name]}")


@lru_cache(maxsize=512)  # a law is asked several times, and may be long
def mentioned(text: str) -> frozenset[str]:
    """Plain and backticked names in a string."""
    quoted = re.findall(r"`([^`]+)`", text)
    return frozenset(quoted) | frozenset(re.findall(r"[^\W\d]\w*", re.sub(r"`[^`]+`", " ", text) if quoted else text))


def highest_input(items: Iterable[Any]) -> int:
    """Without a table of inputs: x1 ... xk are known, k the highest one that is mentioned."""
    named = frozenset().union(*(mentioned(str(item)) for item in items))
    found = [re.fullmatch(r"x([1-9][0-9]{0,3})", name) for name in named]
    return max((int(match.group(1)) for match in found if match), default=0)


class Unknown(NamedTuple):
    """Coefficients that nobody knows: names, bounds and, where the user gave one, the place to begin (NaN: none); (K,) each."""

    names: list[str]
    low: np.ndarray
    high: np.ndarray
    start: np.ndarray


def read_unknown(given: Any, items: Iterable[Any], names: Names) -> Unknown:
    """`unknown=` of a law, checked: every name means a coefficient, and nothing else, and is used."""
    wanted = {given: None} if isinstance(given, str) else dict(given) if isinstance(given, dict) else dict.fromkeys(given)
    used = frozenset().union(*(_used(item) for item in items))
    low, high, start = (np.full(len(wanted), value) for value in (-np.inf, np.inf, np.nan))
    for k, (name, what) in enumerate(wanted.items()):
        if name in names.known or name in names.refused or name in RESERVED or re.fullmatch(r"[xy][0-9]+", str(name)):
            raise ValueError(f"Equations: unknown {name!r} is the name of an output, an input or a constant; call it otherwise")
        if name not in used:
            raise ValueError(f"Equations: unknown {name!r} stands in no equation; leave it out, or write it where it belongs")
        if what is None:
            continue
        if isinstance(what, int | float | np.number) and np.isfinite(what):
            start[k] = what
            continue
        try:
            ends = [default if end is None else float(end) for end, default in zip(what, (-np.inf, np.inf), strict=True)]
        except (TypeError, ValueError):
            ends = [np.nan, np.nan]
        if not ends[0] < ends[1]:
            raise ValueError(
                f"Equations: unknown {name!r}: {what!r} will not do; give None, (low, high) or a number to begin with"
            )
        low[k], high[k] = ends
    return Unknown([str(name) for name in wanted], low, high, start)


def _used(item: Any) -> frozenset[str]:
    return mentioned(item) if isinstance(item, str) else frozenset(str(s) for s in getattr(item, "free_symbols", ()))


def with_numbers(item: Any, values: dict[str, float]) -> Any:
    """An equation with numbers in place of some of its names."""
    if not isinstance(item, str):
        return item.subs(values)

    def number(match: re.Match[str]) -> str:
        value = values.get(match[1] or match[0])
        return match[0] if value is None else repr(value) if value >= 0 else f"({value!r})"

    return re.sub(r"`([^`]+)`|(?<![\w.])[^\W\d]\w*", number, item)
