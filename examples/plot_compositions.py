"""
Shares that add up to 1
=======================

Where the ink of a handwritten digit is: from the upper half of an image (scikit-learn's digits), the shares of the eight
columns in the ink of its lower half. A third of the shares is 0, which log-ratios, the usual tool, cannot say: zeros must be
replaced by a small share first, and the answer depends on which. ``Simplex`` needs nothing of the kind.
"""

import matplotlib.pyplot as plt
import numpy as np
from columns import show  # examples/columns.py, beside this script
from compositions import by_log_ratios, run, shares

from lawful import ConstrainedRegressor, KernelRidge, Simplex
from lawful.kernels import Gaussian

# %%
# 150 images to learn from.

X, Y = shares()
order = np.random.default_rng(0).permutation(len(X))
train, test = order[:150], order[150:750]
model = ConstrainedRegressor(Simplex(), surrogate=KernelRidge(Gaussian(30.0), tune="loo")).fit(X[train], Y[train])
found = model.predict(X[test])
print(
    f"smallest share {found.min():.1e}, sums off by {np.abs(found.sum(axis=1) - 1).max():.1e}, zeros {np.mean(found == 0):.0%}"
)

# %%
# Root mean squared error on 600 other images, and the largest violation of the law.

show("shares of eight columns", run(seed=0))

# %%
# Four images: what was there, what the law says, and what log-ratios say.

ratios = by_log_ratios(X[train], Y[train], X[test], 0.01)
figure, axes = plt.subplots(1, 4, figsize=(10, 2.8), sharey=True, layout="constrained")
for axis, row in zip(axes, range(4)):
    axis.bar(np.arange(8), Y[test][row], color="#b9c4cf", label="truth")
    axis.plot(found[row], "o", color="#1f6f8b", label="Simplex")
    axis.plot(ratios[row], "x", color="#d1603d", label="log-ratios, 0.01 for 0")
    axis.set(xlabel="column", xticks=range(8))
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("share of the ink")
axes[0].legend(frameon=False, fontsize=7)
