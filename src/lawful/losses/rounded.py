"""Losses with a corner, rounded off: |u| becomes sqrt(u^2 + width^2), which has every derivative.

A piecewise linear loss is `height |u| + tilt u` of some u(c, y) that is linear in c (`corner`), so one class rounds them all.
Its minimum is at most `height width` above that of the loss itself; decoders let the width fall to nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lawful._array import Array, array_namespace
from lawful.losses.base import Loss


class Corner(NamedTuple):
    """height |u| + tilt u, and the slope du/dc."""

    u: Array
    slope: Array
    height: float
    tilt: float


class Rounded(Loss):
    """`of`, a loss with a corner, rounded off over `width`."""

    def __init__(self, of: Any, width: float = 1e-3) -> None:
        self.of = of
        self.width = width

    def _parts(self, c: Array, y: Array) -> tuple[Corner, Array]:
        corner = self.of.corner(c, y)
        return corner, array_namespace(corner.u).sqrt(corner.u**2 + self.width**2)

    def __call__(self, c: Array, y: Array) -> Array:
        corner, length = self._parts(c, y)
        return corner.height * length + corner.tilt * corner.u

    def derivative(self, c: Array, y: Array) -> Array:
        corner, length = self._parts(c, y)
        return (corner.height * corner.u / length + corner.tilt) * corner.slope

    def curvature(self, c: Array, y: Array) -> Array:
        """Of the majoriser: sqrt(u^2 + w^2) lies under the parabola of curvature 1/sqrt(u0^2 + w^2) that touches it at u0."""
        corner, length = self._parts(c, y)
        return corner.height * corner.slope**2 / length

    def second(self, c: Array, y: Array) -> Array:
        corner, length = self._parts(c, y)
        return corner.height * corner.slope**2 * self.width**2 / length**3


class Cornered(Loss):
    """What piecewise linear losses share. Subclasses give `corner(c, y)`."""

    def corner(self, c: Array, y: Array) -> Corner:
        raise NotImplementedError

    def rounded(self, width: float) -> Rounded:
        """The same with its corner rounded off."""
        return Rounded(self, width)
