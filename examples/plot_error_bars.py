"""
Error bars for anything
=======================

A distillation column (simulated): what share of the light component leaves at the top? It is a function of two outputs that
balances tie to seven others. ``decode(X, sample=n)`` draws from the prediction restricted to the law: each draw is a column
that balances, so each gives a share. Draws that know no law, the usual Monte Carlo, give shares above 1.
"""

import matplotlib.pyplot as plt
import numpy as np
from distillation import column  # examples/distillation.py, beside this script
from error_bars import recovery, run

from lawful import ConstrainedRegressor, Equations
from lawful.datasets.files import DISTILLATION_LAW

# %%
# 60 noisy rows, and 200 draws for each of 12 new ones.

rng = np.random.default_rng(0)
X, new = (rng.uniform([80, 60, 0.5], [120, 140, 3], (rows, 3)) for rows in (60, 12))
Y = column(X)
Y = Y + 0.05 * Y.std(axis=0) * rng.standard_normal(Y.shape)
model = ConstrainedRegressor(Equations(DISTILLATION_LAW)).fit(X, Y)
d = model.decode(new, sample=200, random_state=0)
free = np.asarray(model.predictive(new).center)[:, None, :] + d.std[:, None, :] * rng.standard_normal((12, 200, 9))

# %%
# How often 90 % bars hold the truth, and how wide they are, on 40 rows; how far draws are off the law, and whether chains
# have mixed.

for name, value in run().items():
    print(f"{name:18}{value:12.3g}")

# %%
# Bars of the recovery, with and without the law.

truth = recovery(column(new)[:, None, :], new)[:, 0]
figure, axis = plt.subplots(figsize=(7, 3.2), layout="constrained")
for shift, draws, color, label in (
    (-0.15, free, "#d1603d", "no law"),
    (0.15, np.asarray(d.samples), "#1f6f8b", "with the law"),
):
    low, middle, high = np.quantile(recovery(draws, new), [0.05, 0.5, 0.95], axis=1)
    axis.errorbar(np.arange(12) + shift, middle, [middle - low, high - middle], fmt="o", ms=3, color=color, label=label)
axis.plot(np.arange(12), truth, "kx", label="truth")
axis.axhline(1, color="#b9c4cf")
axis.set(xlabel="new row", ylabel="recovery of the light component", xticks=[])
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, ncols=3)
