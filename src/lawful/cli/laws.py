"""What `--law` and `--unknown` say: the words of `lawful.sets.named`, and coefficients that nobody knows."""

from __future__ import annotations

import re
from typing import Any

from lawful.cli.words import Trouble
from lawful.sets.named import NAMED, is_named, law_in_words

__all__ = ["NAMED", "law_of"]

BOUNDS = re.compile(r"(\w+)\s*(?:=\s*([^:]*):([^:]*))?")


def law_of(law: list[str] | None, unknown: list[str] | None = None) -> Any:
    """A set from the words of --law and --unknown; None without any."""
    words = [one for one in law or [] if one.strip()]
    coefficients = _unknown(unknown)
    if coefficients and (not words or any(map(is_named, words))):
        raise Trouble("--unknown names coefficients of equations, and --law gives none; write them into an equation there")
    try:
        return law_in_words(words, coefficients or None)
    except ValueError as error:
        raise Trouble(f"--law {error}") from error


def _unknown(given: list[str] | None) -> dict[str, tuple[float | None, float | None] | None]:
    """{name: bounds} from "a, b=0:10, c=:1"."""
    found: dict[str, tuple[float | None, float | None] | None] = {}
    for one in (word.strip() for text in given or [] for word in text.split(",") if word.strip()):
        match = BOUNDS.fullmatch(one)
        try:
            if match is None:
                raise ValueError
            ends = [float(end) if end.strip() else None for end in (match[2], match[3]) if end is not None]
        except ValueError:
            raise Trouble(f"--unknown {one} is no coefficient; give a name, or a name and its bounds, as in b=0:10") from None
        found[match[1]] = (ends[0], ends[1]) if ends else None
    return found
