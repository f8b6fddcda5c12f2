"""
Inverse kinematics along a path
===============================

The angles of an arm's joints follow from where its hand is, but not uniquely: the elbow may be up or down. Training poses
are of both kinds alike, so that the regression cannot tell, and the law, the geometry of the arm, holds on either branch.
Row by row the answer jumps between them; `decode(X, sequence=True)` follows one.
"""

# %%
# An arm of two joints in the plane. The outputs are its angles, the inputs where the hand is.
import warnings

import matplotlib.pyplot as plt
import numpy as np

from lawful import ConstrainedRegressor, DecodingWarning, Equations, KernelRidge

LAW = ["cos(y1) + 0.8*cos(y1 + y2) = x1", "sin(y1) + 0.8*sin(y1 + y2) = x2"]


def hand(q):
    return np.c_[np.cos(q[:, 0]) + 0.8 * np.cos(q.sum(axis=1)), np.sin(q[:, 0]) + 0.8 * np.sin(q.sum(axis=1))]


rng = np.random.default_rng(0)
up = rng.uniform([-0.6, 0.7], [0.6, 2.2], (300, 2))
turn = 2 * np.arctan2(0.8 * np.sin(up[:, 1]), 1 + 0.8 * np.cos(up[:, 1]))
down = np.c_[up[:, 0] + turn, -up[:, 1]]  # the same places of the hand
poses = np.where(rng.random((300, 1)) < 0.5, up, down)
model = ConstrainedRegressor(Equations(LAW), surrogate=KernelRidge(lam=1e-3, tune="loo"))
model.fit(hand(poses), poses + 0.02 * rng.standard_normal(poses.shape))

# %%
# A smooth path of the hand, decoded row by row and as a sequence.
s = np.linspace(0, 1, 60)
path = np.c_[0.4 * np.sin(4 * s + 1), 1.45 + 0.5 * np.sin(3 * s)]
x = hand(path)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DecodingWarning)
    alone, together = model.decode(x), model.decode(x, sequence=True)


def jumps(c):
    step = np.linalg.norm(np.diff(c, axis=0), axis=1)
    return int(np.sum(step > 10 * np.median(step)))


print(f"{jumps(alone.c)} jumps row by row, {jumps(together.c)} as a sequence, of {len(x)} rows")
print(f"hand off by at most {np.abs(hand(together.c) - x).max():.1e}")

# %%
# The arm at every third row. (`examples/arms.py` does the same with six joints.)
figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained", height_ratios=[1.6, 1])
for column, (found, title) in enumerate(((alone, "row by row"), (together, "as a sequence"))):
    arm, angles = axes[:, column]
    elbow = np.c_[np.cos(found.c[:, 0]), np.sin(found.c[:, 0])]
    for i in range(0, len(x), 3):
        arm.plot(*np.c_[[0, 0], elbow[i], x[i]], "o-", ms=2.5, lw=1, color=plt.cm.viridis(i / len(x)))
    arm.plot(*x.T, color="#d1603d", lw=1.5)
    arm.set(title=title, aspect="equal", xlim=(-0.6, 1.5), ylim=(-1.1, 1.6))
    angles.plot(found.c, ".-", ms=3, lw=1, label=["$y_1$", "$y_2$"])
    angles.set(xlabel="row", ylabel="angle", ylim=(-2.6, 2.6))
    for axis in (arm, angles):
        axis.spines[["top", "right"]].set_visible(False)
axes[1, 1].legend(frameon=False, ncols=2)
