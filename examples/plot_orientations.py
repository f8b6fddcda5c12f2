"""
Orientations and poses
======================

A camera that turns all the way round (simulated): an orientation depends on two inputs and is
measured with an error of five degrees, as a quaternion q or -q, which are the same. Usual tools
learn the four numbers, perhaps with all signs turned to one side of space, and scale the answer to
length 1. ``UnitQuaternions`` learns q q', which knows no sign; ``SE3`` adds a position.
"""

# %%
# 120 measurements of either sign.
import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.transform import Rotation

from lawful import SE3, ConstrainedRegressor, KernelRidge, Reals, UnitQuaternions
from lawful.kernels import Gaussian
from lawful.plots import LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")
ridge = KernelRidge(Gaussian(0.7), tune="loo")


def orientation(X):
    zero = np.zeros(len(X))
    tilt = Rotation.from_rotvec(np.c_[zero, 2.2 * X[:, 1], 0.8 * X[:, 0] * X[:, 1]])
    return Rotation.from_rotvec(np.c_[4.0 * X[:, 0], zero, zero]) * tilt


def measurements(seed):
    rng = np.random.default_rng(seed)
    X, new = rng.uniform(-1, 1, (120, 2)), rng.uniform(-1, 1, (300, 2))
    measured = Rotation.from_rotvec(np.radians(5) * rng.standard_normal((120, 3))) * orientation(X)
    return X, measured, measured.as_quat() * rng.choice([-1.0, 1.0], (120, 1)), new


def learned(X, labels, law):
    return ConstrainedRegressor(law, surrogate=ridge).fit(X, labels)


# %%
# Error: the angle to the truth in degrees, root mean square over 300 new inputs. Violation: how
# far the length of q is from 1 before scaling.


def degrees(q, truth):
    away = np.abs(np.sum(q / np.linalg.norm(q, axis=1, keepdims=True) * truth.as_quat(), axis=1))
    return np.degrees(2 * np.arccos(np.clip(away, 0, 1)))


def compare(seed=0):
    X, _, q, new = measurements(seed)
    embedded = learned(X, UnitQuaternions.embed(q), UnitQuaternions()).predict(new)
    one_side = q * np.sign(q[:, 3:])
    ways = {
        "four numbers as they come (no law)": learned(X, q, Reals()).predict(new),
        "four numbers, signs turned to one side": learned(X, one_side, Reals()).predict(new),
        "lawful: UnitQuaternions": UnitQuaternions.quaternions(embedded),
    }
    truth = orientation(new)
    return {
        name: (
            np.sqrt(np.mean(degrees(c, truth) ** 2)),
            abs(np.linalg.norm(c, axis=1) - 1).max(),
        )
        for name, c in ways.items()
    }


errors = compare()
for name, (error, violation) in errors.items():
    print(f"{name:<40} {error:5.1f} degrees   violation {violation:.0e}")

# %%
# Along a line of inputs: where signs turned to one side jump, the average of q and -q is nothing.
X, measured, q, _ = measurements(0)
line = np.c_[np.linspace(-1, 1, 200), np.full(200, 0.3)]
truth = orientation(line)
plain = learned(X, q * np.sign(q[:, 3:]), Reals()).predict(line)
model = learned(X, UnitQuaternions.embed(q), UnitQuaternions())
figure, axis = plt.subplots(figsize=(7, 3.4))
axis.plot(line[:, 0], degrees(plain, truth), color=LAWLESS, label="four numbers, signs to one side")
found = UnitQuaternions.quaternions(model.predict(line))
axis.plot(line[:, 0], degrees(found, truth), color=LAWFUL, label="UnitQuaternions")
axis.set(xlabel="input 1", ylabel="error in degrees", ylim=(0, 190), yticks=range(0, 181, 45))
axis.legend(loc="upper center")

# %%
# Poses: the same orientation and a position. Twelve outputs, of which nine are a rotation matrix.
pose = np.tile(np.eye(4), (120, 1, 1))
pose[:, :3, :3] = measured.as_matrix()
rng = np.random.default_rng(1)
pose[:, :3, 3] = np.c_[X, X[:, 0] * X[:, 1]] + 0.02 * rng.standard_normal((120, 3))
body = learned(X, SE3.embed(pose), SE3())
found = SE3.matrices(body.predict(line))
turned = Rotation.from_matrix(found[:, :3, :3]) * truth.inv()
moved = found[:, :3, 3] - np.c_[line, line[:, 0] * line[:, 1]]
print(f"SE3: {np.degrees(np.sqrt(np.mean(turned.magnitude() ** 2))):.1f} degrees off,", end=" ")
print(f"{np.sqrt(np.mean(moved**2)):.3f} off in position")
for name, R in (
    ("with the law", found[:, :3, :3]),
    ("without it", body.objective(line).center[:, :9].reshape(-1, 3, 3)),
):
    off = np.abs(R.transpose(0, 2, 1) @ R - np.eye(3)).max()
    print(f"largest entry of R'R - I {name}: {off:.1e}")
