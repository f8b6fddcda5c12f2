"""Losses: how labels are encoded and what the decoder minimises."""

from lawful.losses.base import Loss
from lawful.losses.classification import Hinge, Logistic, ZeroOne
from lawful.losses.mixed import Mixed
from lawful.losses.objective import Objective, SmoothObjective
from lawful.losses.quadratic import Quadratic, QuadraticForm
from lawful.losses.regression import Absolute, Huber, Pinball
from lawful.losses.square import Square

__all__ = [
    "Absolute",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Mixed",
    "Objective",
    "Pinball",
    "Quadratic",
    "QuadraticForm",
    "SmoothObjective",
    "Square",
    "ZeroOne",
]
