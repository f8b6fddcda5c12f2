"""
Orientations and poses
======================

A camera that turns all the way round (simulated): an orientation depends on two inputs and is measured with an error of five
degrees, as a quaternion q or -q, which are the same. Usual tools learn the four numbers, perhaps with all signs turned to one
side of space, and scale the answer to length 1. ``UnitQuaternions`` learns q q', which knows no sign; ``SE3`` adds a
position.
"""

import matplotlib.pyplot as plt
import numpy as np
from columns import show  # examples/columns.py, beside this script
from orientations import orientation, run
from scipy.spatial.transform import Rotation

from lawful import SE3, ConstrainedRegressor, KernelRidge, Reals, UnitQuaternions
from lawful.kernels import Gaussian

# %%
# 120 measurements of either sign.

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (120, 2))
measured = Rotation.from_rotvec(np.radians(5) * rng.standard_normal((120, 3))) * orientation(X)
q = measured.as_quat() * rng.choice([-1.0, 1.0], (120, 1))
ridge = KernelRidge(Gaussian(0.7), tune="loo")
model = ConstrainedRegressor(UnitQuaternions(), surrogate=ridge).fit(X, UnitQuaternions.embed(q))
plain = ConstrainedRegressor(Reals(), surrogate=ridge).fit(X, q * np.sign(q[:, 3:]))

# %%
# Error: the angle to the truth in degrees, root mean square over 300 new inputs; violation: how far the length of q is
# from 1 before scaling.

show("300 orientations", run(seed=0))

# %%
# Along a line of inputs: where signs turned to one side jump, the average of q and -q is nothing.

line = np.c_[np.linspace(-1, 1, 200), np.full(200, 0.3)]
truth = orientation(line)


def away(found: np.ndarray) -> np.ndarray:
    return np.degrees((Rotation.from_quat(found) * truth.inv()).magnitude())


figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
axis.plot(line[:, 0], away(plain.predict(line)), color="#d1603d", label="four numbers, signs to one side")
axis.plot(line[:, 0], away(UnitQuaternions.quaternions(model.predict(line))), color="#1f6f8b", label="UnitQuaternions")
axis.set(xlabel="input 1", ylabel="error in degrees", yscale="log")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)

# %%
# Poses: the same orientation and a position. Twelve outputs, of which nine are a rotation matrix.

pose = np.tile(np.eye(4), (120, 1, 1))
pose[:, :3, :3] = measured.as_matrix()
pose[:, :3, 3] = np.c_[X, X[:, 0] * X[:, 1]] + 0.02 * rng.standard_normal((120, 3))
body = ConstrainedRegressor(SE3(), surrogate=ridge).fit(X, SE3.embed(pose))
found = SE3.matrices(body.predict(line))
raw = body.objective(line).center[:, :9].reshape(-1, 3, 3)
off = lambda R: np.abs(R.transpose(0, 2, 1) @ R - np.eye(3)).max()  # noqa: E731
error = np.degrees(np.sqrt(np.mean((Rotation.from_matrix(found[:, :3, :3]) * truth.inv()).magnitude() ** 2)))
where = np.sqrt(np.mean((found[:, :3, 3] - np.c_[line, line[:, 0] * line[:, 1]]) ** 2))
print(f"SE3: {error:.1f} degrees and {where:.3f} off in position")
print(f"largest entry of R'R - I: {off(found[:, :3, :3]):.1e}, without the law {off(raw):.2f}")
