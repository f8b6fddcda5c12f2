"""The plain sets that the page offers beside equations: what each is for, and its words for the outputs that are marked.

The words are those of the command line (`lawful.sets.named`), so that what is picked can be changed by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

from lawful.studio.tables import Refused

__all__ = ["MENU", "words_for"]

MENU = {
    "numbers": {
        "Simplex": "shares that add up",
        "Box": "between bounds",
        "Affine": "linear equations",
        "Hierarchy": "sums of the others",
        "Margins": "a table with known sums",
        "Flow": "flows of a network",
        "Monotone": "each above the one before",
        "ConvexShape": "values of a convex curve",
        "Logic": "labels that obey formulas",
    },
    "geometry": {
        "Sphere": "at a distance from a centre",
        "Ball": "within a distance of a centre",
        "Ellipsoid": "on an ellipsoid",
        "Rotations": "rotation matrices",
        "UnitQuaternions": "orientations, sign-free",
        "SE3": "poses: rotation and place",
        "Stiefel": "orthonormal columns",
        "CorrelationMatrices": "correlation matrices",
        "PositiveSemidefinite": "covariance matrices",
    },
    "learned from these outputs": {
        "LearnedEquations": "polynomial equations",
        "LocalTangent": "a smooth surface",
        "PointCloud": "one of the rows seen",
        "KernelSet": "where rows are dense",
    },
}


def words_for(name: str, outputs: list[str]) -> str:
    """A set in words that fits these outputs, to begin with."""
    if not any(name in group for group in MENU.values()):
        raise Refused("There is no such set to pick.")
    if not outputs:
        raise Refused("Mark the outputs first.")
    return BEGIN.get(name, lambda outputs: f"{name}()")(outputs)


def _spelt(name: str) -> str:
    """A column's name as a formula over labels spells it."""
    return name if name.isidentifier() else f"`{name}`"


def _hierarchy(outputs: list[str]) -> str:
    """The first output is the sum of the others."""
    n = max(len(outputs) - 1, 1)
    rows = [[1] * n, *([int(i == j) for j in range(n)] for i in range(n))]
    return f"Hierarchy({rows[: len(outputs)]})"


def _margins(outputs: list[str]) -> str:
    rows = next(r for r in range(isqrt(len(outputs)), 0, -1) if len(outputs) % r == 0)
    return f"Margins(shape=({rows}, {len(outputs) // rows}), row_sums={[1] * rows})"


def _flow(outputs: list[str]) -> str:
    """A ring: what leaves a node enters the next one."""
    n = len(outputs)
    return f"Flow(edges={[(i + 1, (i + 1) % n + 1) for i in range(n)]})"


def _logic(outputs: list[str]) -> str:
    first, last = _spelt(outputs[0]), _spelt(outputs[-1])
    return f"Logic({[f'{first} -> {last}']!r})"


BEGIN: dict[str, Callable[[list[str]], str]] = {
    "Simplex": lambda outputs: "Simplex(total=1)",
    "Box": lambda outputs: "Box(lower=0, upper=1)",
    "Affine": lambda outputs: f"Affine(A={[[1] * len(outputs)]}, b=[1])",
    "Hierarchy": _hierarchy,
    "Margins": _margins,
    "Flow": _flow,
    "Logic": _logic,
    "Sphere": lambda outputs: "Sphere(radius=1)",
    "Ball": lambda outputs: "Ball(radius=1)",
    "Ellipsoid": lambda outputs: f"Ellipsoid(axes={[1] * len(outputs)})",
    "Stiefel": lambda outputs: f"Stiefel({len(outputs)}, 1)",
}
