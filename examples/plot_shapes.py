"""
Rising and convex curves
========================

How unequally is ink spread over a digit (scikit-learn's data)? The share of the ink in the
lightest 4, 8, ..., 28 of 32 pixels, predicted from the other half of the image. Such a Lorenz
curve rises and is convex; curves that are learned from 40 noisy ones are not. A usual repair sorts
the slopes. The law is ``Intersection([Monotone(), ConvexShape(), Box(0, 1)])``.
"""

# %%
# Three laws at once.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from lawful import Box, ConstrainedRegressor, ConvexShape, Intersection, KernelRidge, Monotone
from lawful.kernels import Gaussian
from lawful.plots import LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")
LAW = Intersection([Monotone(), ConvexShape(), Box(0.0, 1.0)])
AT = np.arange(4, 32, 4)
images = load_digits().images
ink = np.cumsum(np.sort(images[:, 4:].reshape(-1, 32), axis=1), axis=1)
X, curves = images[:, :4].reshape(-1, 32), ink[:, AT - 1] / ink[:, -1:]


def sorted_slopes(c):
    """The same ends, steps in order and not negative."""
    steps = np.sort(np.maximum(np.diff(c), 0), axis=1)
    return np.clip(c[:, :1], 0, 1) + np.c_[np.zeros(len(c)), np.cumsum(steps, axis=1)]


def predictions(seed):
    """40 noisy curves to learn from, 600 others to judge by."""
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[:40], order[40:640]
    noise = 0.03 * np.random.default_rng(seed + 1).standard_normal((40, len(AT)))
    model = ConstrainedRegressor(LAW, surrogate=KernelRidge(Gaussian(30.0), tune="loo"))
    model.fit(X[train], curves[train] + noise)
    free = model.objective(X[test]).center
    ways = {
        "one by one (no law)": free,
        "slopes sorted": sorted_slopes(free),
        "lawful: rising and convex": model.predict(X[test]),
    }
    return ways, curves[test]


# %%
# Root mean squared error on the 600 images, and the largest violation.


def violation(c):
    return max(0.0, -np.diff(c).min(), -np.diff(c, 2).min(), -c.min(), c.max() - 1)


def compare(seed=0):
    ways, truth = predictions(seed)
    return {name: (np.sqrt(np.mean((c - truth) ** 2)), violation(c)) for name, c in ways.items()}


errors = compare()
for name, (error, off) in errors.items():
    print(f"{name:<28} error {error:.4f}   violation {off:.0e}")

# %%
# The three images on which the law changes most.
ways, truth = predictions(0)
free, found = ways["one by one (no law)"], ways["lawful: rising and convex"]
worst = np.argsort(-np.abs(free - found).sum(axis=1))[:3]
figure, axes = plt.subplots(1, 3, figsize=(7.5, 3.2), sharey=True)
for axis, row in zip(axes, worst):
    axis.plot(AT, truth[row], color="0.82", lw=7, label="truth")
    axis.plot(AT, free[row], "--", color=LAWLESS, label="no law")
    axis.plot(AT, found[row], "-o", ms=4, color=LAWFUL, label="rising and convex")
    axis.axhline(0, color="0.4", lw=0.7, zorder=0)
    axis.set(xlabel="lightest pixels", xticks=AT[::2])
axes[0].set_ylabel("share of the ink")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
