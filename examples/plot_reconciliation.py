"""
Forecasts that add up
=====================

Ink of handwritten digits at three levels of detail: all of it, in two halves, in eight blocks (scikit-learn's digits).
Details are known for 60 images, sums for 500, as with figures of regions and of a country. Each series has a forecast of its
own, and these do not add up. MinT is the usual way to reconcile them; ``Hierarchy`` with a full metric *is* MinT, with the
covariance of out-of-sample residuals.
"""

import matplotlib.pyplot as plt
import numpy as np
from columns import show  # examples/columns.py, beside this script
from reconciliation import GROUPS, SERIES, ink, run

from lawful import ConstrainedRegressor, Hierarchy, KernelRidge, Square
from lawful.kernels import Gaussian

# %%
# The law is written as groups; gaps in the labels are NaN.

X, Y = ink()
order = np.random.default_rng(0).permutation(len(X))
train, test = order[:500], order[500:1100]
labels = Y[train].copy()
labels[60:, 3:] = np.nan
law = Hierarchy.from_groups(GROUPS, SERIES)
ridge = KernelRidge(Gaussian(30.0), tune="loo")
model = ConstrainedRegressor(law, loss=Square("residual_full"), surrogate=ridge).fit(X[train], labels)
base, found = model.objective(X[test]).center, model.predict(X[test])

# %%
# Errors in units of each series, averaged over series, and how far the largest sum is off. The last line is the largest
# difference between our answer and the MinT formula with the same covariance; ``benchmarks/fields.py --peers`` asks
# hierarchicalforecast itself.

show("ink of 600 digits", run(seed=0))

# %%
# Error of each series before and after: most of the details, of which few labels were seen, gain; the two halves pay for it.

scale = Y[test].std(axis=0)
before, after = (np.sqrt(np.mean((c - Y[test]) ** 2, axis=0)) / scale for c in (base, found))
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
place = np.arange(len(SERIES))
axis.bar(place - 0.2, before, 0.4, color="#b9c4cf", label="base forecasts")
axis.bar(place + 0.2, after, 0.4, color="#1f6f8b", label="Hierarchy")
axis.set(xticks=place, xticklabels=SERIES, ylabel="error / spread of the series")
axis.tick_params(axis="x", rotation=45)
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
