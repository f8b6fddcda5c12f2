"""Laws in words: what `--law` and `--unknown` may say.

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
from typing import Any

from lawful import sets
from lawful.cli.words import Trouble

__all__ = ["NAMED", "law_of"]

# Every set that plain values describe; what combines other sets is for Python.
NAMED = (
    *("Affine", "Ball", "Box", "ConvexShape", "CorrelationMatrices", "Ellipsoid", "Flow", "Hierarchy", "KernelSet"),
    *("LearnedEquations", "LocalTangent", "Logic", "Margins", "Monotone", "PointCloud", "PositiveSemidefinite", "Rotations"),
    *("SE3", "Simplex", "Sphere", "Stiefel", "UnitQuaternions"),
)
CALL = re.compile(r"([A-Za-z]\w*)\s*(\(.*\))?", re.DOTALL)
BOUNDS = re.compile(r"(\w+)\s*(?:=\s*([^:]*):([^:]*))?")


def law_of(law: list[str] | None, unknown: list[str] | None = None) -> Any:
    """A set from the words of --law and --unknown; None without any."""
    words = [one.strip() for one in law or [] if one.strip()]
    coefficients = _unknown(unknown)
    named = [one for one in words if (match := CALL.fullmatch(one)) and match[1] in NAMED]
    if coefficients and (named or not words):
        raise Trouble("--unknown names coefficients of equations, and --law gives none; write them into an equation there")
    if len(named) == len(words) == 1:
        return _called(named[0])
    if named:
        raise Trouble(f"--law {named[0]} stands alone; equations and a named set together are for Python (Intersection)")
    return sets.Equations(words, unknown=coefficients or None) if words else None


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
        raise Trouble(
            f"--law {text} cannot be read; a set has plain values: numbers, text in quotes, lists, as in Sphere(radius=2)"
        ) from error
    parameters = inspect.signature(kind)
    try:
        parameters.bind(*given, **named)
    except TypeError as error:
        raise Trouble(f"--law {text}: {error}; {match[1]} is given as {match[1]}{_shown(parameters)}") from error
    return kind(*given, **named)


def _shown(parameters: inspect.Signature) -> str:
    """The parameters without their types."""
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters.parameters.values()]
    return str(parameters.replace(parameters=plain, return_annotation=inspect.Signature.empty))


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
