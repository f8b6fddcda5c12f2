"""
Flows in a network
==================

Twelve pipes between a source, five junctions and a sink, read by noisy meters (simulated). Nothing is lost at a junction, no
flow is negative and no pipe carries more than it can. The usual tool, data reconciliation by least squares, knows the
balances but not the bounds; clipping to the bounds breaks the balances again. ``Flow`` has both.
"""

import matplotlib.pyplot as plt
import numpy as np
from columns import show  # examples/columns.py, beside this script
from network_flow import CAPACITY, EDGES, LAW, flows, run

from lawful import ConstrainedRegressor, KernelRidge
from lawful.kernels import Gaussian

# %%
# Three inputs (demand and two valves), 60 noisy rows.

rng = np.random.default_rng(0)
X, new = rng.uniform(-1, 1, (60, 3)), rng.uniform(-1, 1, (300, 3))
Y = flows(X) + 0.3 * rng.standard_normal((60, 12))
model = ConstrainedRegressor(LAW, surrogate=KernelRidge(Gaussian(1.0), tune="loo")).fit(X, Y)
found, free, truth = model.predict(new), model.objective(new).center, flows(new)
full, shut = np.mean(found >= CAPACITY - 1e-9), np.mean(found <= 1e-9)
print(f"{full:.0%} of the predicted flows are at capacity, {shut:.0%} are 0")

# %%
# Root mean squared error on 300 new rows, and the largest violation of a balance or a bound.

show("flows of 12 pipes", run(seed=0))

# %%
# One row: width is flow. What enters a junction leaves it.

PLACE = np.array([[0, 0], [1, 1], [1, 0], [1, -1], [2, 0.6], [2, -0.6], [3, 0]])
row = int(np.argmax(np.abs(free - truth).sum(axis=1)))
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for axis, c, title in zip(axes, (free[row], found[row]), ("meter by meter", "Flow")):
    net = np.zeros(7)
    for (a, b), f in zip(EDGES, c):
        net[a] -= f
        net[b] += f
        axis.plot(*PLACE[[a, b]].T, lw=0.3 + 2.5 * abs(f), color="#1f6f8b" if f > -1e-9 else "#d1603d", alpha=0.7, zorder=1)
    axis.scatter(*PLACE.T, s=120, color="white", edgecolor="#444444", zorder=2)
    for k in range(1, 6):
        axis.annotate(f"{net[k] + 0:+.2f}", PLACE[k] + [0, 0.18], ha="center", fontsize=8)
    axis.set(title=f"{title}: what is lost at each junction", xticks=[], yticks=[], ylim=(-1.4, 1.5))
    axis.spines[:].set_visible(False)
