"""
Torques of a robot arm: a cloud of outputs as the law
=====================================================

The seven torques of an arm are functions of 21 numbers: positions, velocities, accelerations. With
15 measured rows for each torque nothing can be learned well. But torque vectors that the arm has
produced elsewhere are at hand, without the states that belong to them. They lie near a surface of
few dimensions, and predictions should too: the cloud is the law.

This is the experiment of the paper's table on Sarcos, on a generated arm whose equations of motion
are exact (`lawful.datasets.make_arm`).
"""

# %%
# Every torque has 15 rows of its own; 1000 torque vectors without inputs are the cloud.
import matplotlib.pyplot as plt
import numpy as np

from lawful import ConstrainedRegressor, KernelRidge, PointCloud, Reals, Square, stack_tasks
from lawful.datasets import make_arm
from lawful.kernels import Linear
from lawful.metrics import r2
from lawful.plots import LAWFUL

plt.style.use("lawful.plots.clear")

arm = make_arm(2500, 7, noise=0.02, random_state=0)
X = (arm.X - arm.X.mean(axis=0)) / arm.X.std(axis=0)
Y = (arm.Y - arm.Y.mean(axis=0)) / arm.Y.std(axis=0)
tasks = [(X[15 * t : 15 * t + 15], Y[15 * t : 15 * t + 15, t]) for t in range(7)]
X_train, Y_train = stack_tasks(tasks)
X_test, Y_test, cloud = X[500:1500], Y[500:1500], Y[1500:]
print("observed labels of each torque:", np.isfinite(Y_train).sum(axis=0))

# %%
# The regression is the same for all: linear, as in the paper. Three ways to use the cloud: not at
# all, the nearest of its points, and the mean of its points weighted by how well each explains the
# prediction.
surrogate = KernelRidge(Linear())
ways = {
    "each torque alone": ConstrainedRegressor(Reals(), surrogate=surrogate),
    "nearest point": ConstrainedRegressor(PointCloud(cloud), surrogate=surrogate),
    "posterior mean": ConstrainedRegressor(
        PointCloud(cloud), loss=Square(confidence=0.5), surrogate=surrogate, decoder="posterior"
    ),
}
explained = {}
for name, model in ways.items():
    explained[name] = r2(Y_test, model.fit(X_train, Y_train).predict(X_test))
    print(f"{name:<18} explained variance {explained[name]:.1%}")

# %%
# Here the nearest point is the better use of the cloud. On Sarcos, whose outputs a thousand points
# cover less well, it is the posterior mean (see the page on the reproduction). A mean of points
# need not be one of them: the decoding says how far it is from the cloud.
off = ways["posterior mean"].decode(X_test).residual
print(f"distance of the means from the nearest point of the cloud: median {np.median(off):.2f}")

# %%
figure, axes = plt.subplots(1, 3, figsize=(7.5, 3.3), sharex=True, sharey=True)
for axis, (name, model) in zip(axes, ways.items()):
    c = model.predict(X_test)
    axis.plot(*cloud[:, :2].T, ".", color="0.8", ms=3, label="the cloud")
    axis.plot(*c[:, :2].T, ".", color=LAWFUL, ms=3, label="predictions")
    axis.set(title=f"{name}\nexplains {explained[name]:.0%}", xlabel="torque 1")
axes[0].set(ylabel="torque 2")
axes[0].legend(loc="upper left", markerscale=3)
