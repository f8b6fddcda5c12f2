"""Losses for labels in {-1, 1} (or {-1, 0, 1}) that depend on the product y c, and the 0-1 loss."""

from __future__ import annotations

from lawful._array import Array, array_namespace
from lawful.losses.base import Loss
from lawful.losses.regression import KINK
from lawful.losses.rounded import Corner, Cornered


class Hinge(Cornered):
    """max(0, 1 - y c).

    >>> import numpy as np
    >>> from lawful import Hinge
    >>> Hinge()(np.array([-1.0, 0.5, 2.0]), np.array([1.0, 1.0, 1.0]))
    array([2. , 0.5, 0. ])
    """

    def __call__(self, c: Array, y: Array) -> Array:
        z = 1 - y * c
        return array_namespace(z).where(z > 0, z, 0.0)

    def derivative(self, c: Array, y: Array) -> Array:
        z = 1 - y * c
        return array_namespace(z).where(z > 0, -y + 0 * c, 0.0)

    def curvature(self, c: Array, y: Array) -> Array:
        """max(0, z) = (z + |z|)/2, and |z| has the majoriser of curvature 1/|z0|."""
        z = abs(1 - y * c)
        return y**2 / (2 * array_namespace(z).where(z > KINK, z, KINK))

    def corner(self, c: Array, y: Array) -> Corner:
        return Corner(1 - y * c, -y + 0 * c, 0.5, 0.5)

    def breakpoints(self, atoms: Array) -> Array:
        return 1 / atoms[atoms != 0]


class Logistic(Loss):
    """log(1 + exp(-y c)) (the paper prints log(1 - exp(-y c)), a misprint).

    >>> import numpy as np
    >>> from lawful import Logistic
    >>> Logistic()(np.array([0.0, 2.0]), np.ones(2)).round(4)
    array([0.6931, 0.1269])
    """

    def __call__(self, c: Array, y: Array) -> Array:
        z = -y * c
        xp = array_namespace(z)
        return xp.where(z > 0, z, 0.0) + xp.log1p(xp.exp(-abs(z)))

    def derivative(self, c: Array, y: Array) -> Array:
        z = y * c
        return -y * (1 - array_namespace(z).tanh(z / 2)) / 2

    def curvature(self, c: Array, y: Array) -> Array:
        """y^2 tanh(z/2) / (2 z) with z = y c: the tightest quadratic bound of the logistic (Jaakkola & Jordan)."""
        z = abs(y * c)
        xp = array_namespace(z)
        safe = xp.where(z > 1e-6, z, 1e-6)
        return y**2 * xp.tanh(safe / 2) / (2 * safe)


class ZeroOne(Loss):
    """1 when c differs from y: for finite sets, whose points can be enumerated.

    >>> import numpy as np
    >>> from lawful import ZeroOne
    >>> ZeroOne()(np.array([1.0, -1.0]), np.array([1.0, 1.0]))
    array([0., 1.])
    """

    def __call__(self, c: Array, y: Array) -> Array:
        different = c != y
        xp = array_namespace(different)
        return xp.astype(different, xp.float64)
