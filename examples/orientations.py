"""Orientations from quaternions of either sign: a camera that turns all the way round.

    python examples/orientations.py

Data are simulated: an orientation depends on two inputs and is measured with an error of some degrees; each measurement comes
as q or as -q. Usual tools learn the four numbers, perhaps with all signs turned to one side of space, and scale the answer to
length 1. `UnitQuaternions` learns q q', which knows no sign. The error is the angle to the truth, in degrees (root mean
square).
"""

from __future__ import annotations

import numpy as np
from columns import show  # examples/columns.py, beside this script
from scipy.spatial.transform import Rotation

from lawful import ConstrainedRegressor, KernelRidge, Reals, UnitQuaternions
from lawful.kernels import Gaussian


def orientation(X: np.ndarray) -> Rotation:
    turn = Rotation.from_rotvec(np.c_[4.0 * X[:, 0], np.zeros(len(X)), np.zeros(len(X))])
    return turn * Rotation.from_rotvec(np.c_[np.zeros(len(X)), 2.2 * X[:, 1], 0.8 * X[:, 0] * X[:, 1]])


def degrees(q: np.ndarray, truth: Rotation) -> float:
    away = np.abs(np.sum(q / np.linalg.norm(q, axis=1, keepdims=True) * truth.as_quat(), axis=1))
    return float(np.degrees(np.sqrt(np.mean((2 * np.arccos(np.clip(away, 0, 1))) ** 2))))


def run(seed: int = 0, rows: int = 120) -> dict[str, tuple[float, float]]:
    rng = np.random.default_rng(seed)
    X, new = rng.uniform(-1, 1, (rows, 2)), rng.uniform(-1, 1, (300, 2))
    measured = Rotation.from_rotvec(np.radians(5) * rng.standard_normal((rows, 3))) * orientation(X)
    q = measured.as_quat() * rng.choice([-1.0, 1.0], (rows, 1))
    truth = orientation(new)

    def learned(labels: np.ndarray) -> np.ndarray:
        return ConstrainedRegressor(Reals(), surrogate=KernelRidge(Gaussian(0.7), tune="loo")).fit(X, labels).predict(new)

    model = ConstrainedRegressor(UnitQuaternions(), surrogate=KernelRidge(Gaussian(0.7), tune="loo")).fit(
        X, UnitQuaternions.embed(q)
    )
    ways = {
        "four numbers as they come (no law)": learned(q),
        "four numbers, signs turned to one side": learned(q * np.sign(q[:, 3:])),
        "lawful: UnitQuaternions": UnitQuaternions.quaternions(model.predict(new)),
    }
    return {name: (degrees(c, truth), float(np.abs(np.linalg.norm(c, axis=1) - 1).max())) for name, c in ways.items()}


if __name__ == "__main__":
    show("300 orientations, 120 learned from; degrees", run())
