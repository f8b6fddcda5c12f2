"""Laws in words, as the command line and the studio take them.

    "y1**2 + y2**2 = 1"             equations and inequalities, by the names of the columns; several of them hold together
    Simplex, Monotone               a set by its name
    "Sphere(radius=2)"              with its parameters, which are plain values: numbers, text, lists, True, False, None
    'Logic(["dog -> animal"])'

Such a call is read, not run: it names one of the sets below, and its values are literals.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from lawful import sets
from lawful.sets.parser import FUNCTIONS

__all__ = ["NAMED", "is_named", "law_in_words"]

# Every set that plain values describe; what combines other sets is for Python.
NAMED = (
    *("Affine", "Ball", "Box", "ConvexShape", "CorrelationMatrices", "Ellipsoid", "Flow", "Hierarchy", "KernelSet"),
    *("LearnedEquations", "LocalTangent", "Logic", "Margins", "Monotone", "PointCloud", "PositiveSemidefinite", "Rotations"),
    *("SE3", "Simplex", "Sphere", "Stiefel", "UnitQuaternions"),
)
CALL = re.compile(r"([A-Za-z]\w*)\s*(\(.*\))?", re.DOTALL)


def is_named(text: str) -> bool:
    """Whether these words name a set, and are no equation."""
    match = CALL.fullmatch(text.strip())
    return match is not None and match[1] in NAMED


def law_in_words(words: Sequence[str], unknown: Any = None) -> Any:
    """A set from words, each an equation, or one the name of a set; None from no words at all.

    >>> law_in_words(["Sphere(radius=2)"])
    Sphere(radius=2)
    >>> law_in_words(["y1 + y2 = 1", "y1 >= 0"]).equations
    ['y1 + y2 = 1', 'y1 >= 0']
    """
    given = [one.strip() for one in words if one.strip()]
    named = [one for one in given if is_named(one)]
    if len(named) == len(given) == 1:
        return _called(named[0])
    if named:
        raise ValueError(f"{named[0]} stands alone; equations and a named set together are for Python (Intersection)")
    for one in given:
        match = CALL.fullmatch(one)
        close = match and get_close_matches(match[1].lower(), map(str.lower, NAMED), n=1, cutoff=0.75)
        if (
            match and close and match[1] not in FUNCTIONS
        ):  # no equation: it has nothing but a name, or calls what is no function
            name = next(name for name in NAMED if name.lower() == close[0])
            raise ValueError(f"{one} is neither an equation nor a set; did you mean {name}?")
    return sets.Equations(given, unknown=unknown) if given else None


def _called(text: str) -> Any:
    match = CALL.fullmatch(text)
    assert match is not None
    kind = getattr(sets, match[1])
    try:
        call: Any = ast.parse(text if match[2] else f"{text}()", mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            raise ValueError("more than one call")
        given = [ast.literal_eval(value) for value in call.args]
        named = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(
            f"{text} cannot be read; a set has plain values: numbers, text in quotes, lists, as in Sphere(radius=2)"
        ) from error
    parameters = inspect.signature(kind)
    try:
        parameters.bind(*given, **named)
    except TypeError as error:
        raise ValueError(f"{text}: {error}; {match[1]} is given as {match[1]}{_shown(parameters)}") from error
    return kind(*given, **named)


def _shown(parameters: inspect.Signature) -> str:
    """The parameters without their types."""
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters.parameters.values()]
    return str(parameters.replace(parameters=plain, return_annotation=inspect.Signature.empty))
