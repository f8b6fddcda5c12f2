"""
Rising and convex curves
========================

How unequally ink is spread over a digit (scikit-learn's data): the share of the ink in the lightest 4, 8, ..., 28 of 32
pixels, from the other half of the image. Such a Lorenz curve rises and is convex. Curves that are learned from 40 noisy ones
are not. A usual repair sorts the slopes; the law is ``Intersection([Monotone(), ConvexShape(), Box(0, 1)])``.
"""

import matplotlib.pyplot as plt
import numpy as np
from columns import show  # examples/columns.py, beside this script
from shapes import AT, lorenz, run

from lawful import Box, ConstrainedRegressor, ConvexShape, Intersection, KernelRidge, Monotone
from lawful.kernels import Gaussian

# %%
# Three laws at once.

law = Intersection([Monotone(), ConvexShape(), Box(0.0, 1.0)])
X, Y = lorenz()
order = np.random.default_rng(0).permutation(len(X))
train, test = order[:40], order[40:640]
noisy = Y[train] + 0.03 * np.random.default_rng(1).standard_normal((40, len(AT)))
model = ConstrainedRegressor(law, surrogate=KernelRidge(Gaussian(30.0), tune="loo")).fit(X[train], noisy)
free, found = model.objective(X[test]).center, model.predict(X[test])

# %%
# Root mean squared error on 600 other images, and the largest violation.

show("Lorenz curves of 600 digits", run(seed=0))

# %%
# The three images on which the law changes most.

worst = np.argsort(-np.abs(free - found).sum(axis=1))[:3]
figure, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True, layout="constrained")
for axis, row in zip(axes, worst):
    axis.plot(AT, Y[test][row], color="#b9c4cf", lw=6, label="truth")
    axis.plot(AT, free[row], "--", color="#d1603d", label="no law")
    axis.plot(AT, found[row], "-o", ms=3, color="#1f6f8b", label="rising and convex")
    axis.set(xlabel="lightest pixels")
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("share of the ink")
axes[0].legend(frameon=False)
