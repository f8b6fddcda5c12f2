"""Losses for real-valued outputs that depend on the residual c - y."""

from __future__ import annotations

from lawful._array import Array, array_namespace
from lawful._checks import check_number
from lawful.losses.base import Loss
from lawful.losses.rounded import Corner, Cornered

KINK = 1e-9  # |r| below this is treated as this: the majoriser of |r| at its kink has no finite curvature


class Absolute(Cornered):
    """|c - y|: the median instead of the mean.

    >>> Absolute()(3.0, 1.0)
    2.0
    """

    def __call__(self, c: Array, y: Array) -> Array:
        return abs(c - y)

    def derivative(self, c: Array, y: Array) -> Array:
        return array_namespace(c, y).sign(c - y)

    def curvature(self, c: Array, y: Array) -> Array:
        """|r| <= r^2 / (2 |r0|) + |r0| / 2, equal at r0."""
        r = abs(c - y)
        return 1 / array_namespace(r).where(r > KINK, r, KINK)

    def corner(self, c: Array, y: Array) -> Corner:
        return Corner(c - y, 1 + 0 * (c - y), 1.0, 0.0)

    def breakpoints(self, atoms: Array) -> Array:
        return atoms


class Huber(Loss):
    """r^2/2 for |r| <= delta, delta (|r| - delta/2) beyond: square near the label, absolute far from it.

    >>> import numpy as np
    >>> from lawful import Huber
    >>> Huber(delta=1.0)(np.array([0.5, 3.0]), np.zeros(2))
    array([0.125, 2.5  ])
    """

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def check(self) -> None:
        check_number("Huber", "delta", self.delta)

    def __call__(self, c: Array, y: Array) -> Array:
        r = abs(c - y)
        xp = array_namespace(r)
        return xp.where(r <= self.delta, r**2 / 2, self.delta * (r - self.delta / 2))

    def derivative(self, c: Array, y: Array) -> Array:
        return array_namespace(c, y).clip(c - y, -self.delta, self.delta)

    def curvature(self, c: Array, y: Array) -> Array:
        r = abs(c - y)
        xp = array_namespace(r)
        return xp.where(r <= self.delta, xp.ones_like(r), self.delta / xp.where(r > 0, r, 1.0))

    def breakpoints(self, atoms: Array) -> Array:
        xp = array_namespace(atoms)
        return xp.concat([atoms - self.delta, atoms, atoms + self.delta])


class Pinball(Cornered):
    """q max(y - c, 0) + (1 - q) max(c - y, 0): the quantile q of y given x.

    >>> import numpy as np
    >>> from lawful import Pinball
    >>> Pinball(0.9)(np.array([1.0, 3.0]), np.array([2.0, 2.0])).round(6)
    array([0.9, 0.1])
    """

    def __init__(self, quantile: float = 0.5) -> None:
        self.quantile = quantile

    def check(self) -> None:
        hint = " and below 1; Mixed([Pinball(0.1), Pinball(0.9)]) has one for each output"
        if check_number("Pinball", "quantile", self.quantile, hint=hint) >= 1:
            raise ValueError(f"Pinball: quantile={self.quantile!r} will not do; give a number above 0{hint}")

    def __call__(self, c: Array, y: Array) -> Array:
        r = y - c
        xp = array_namespace(r)
        return xp.where(r >= 0, self.quantile * r, (self.quantile - 1) * r)

    def derivative(self, c: Array, y: Array) -> Array:
        return array_namespace(c, y).sign(c - y) / 2 - (self.quantile - 0.5)

    def curvature(self, c: Array, y: Array) -> Array:
        """The loss is |r|/2 plus a linear term, so half the majoriser of |r|."""
        r = abs(c - y)
        return 0.5 / array_namespace(r).where(r > KINK, r, KINK)

    def corner(self, c: Array, y: Array) -> Corner:
        return Corner(c - y, 1 + 0 * (c - y), 0.5, 0.5 - self.quantile)

    def breakpoints(self, atoms: Array) -> Array:
        return atoms
