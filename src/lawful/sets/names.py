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

Variable = tuple[str, int]  # ("y", t) or ("x", j), counted from 0


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
    used = mentioned(item) if isinstance(item, str) else {str(s) for s in getattr(item, "free_symbols", ())}
    for name in sorted(used & names.refused.keys()):
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
