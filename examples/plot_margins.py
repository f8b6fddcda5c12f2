"""
A table with known margins
==========================

Cultivar and alcohol of 178 wines (scikit-learn's data), of which 40 are looked at; how many wines there are of each cultivar,
and of each level of alcohol, is known for all. Raking (iterative proportional fitting) is the usual tool, and keeps every 0
of the sample. ``Margins`` finds the nearest table in the metric of the sample's errors.
"""

import matplotlib.pyplot as plt
import numpy as np
from columns import show  # examples/columns.py, beside this script
from margins import raked, run
from sklearn.datasets import load_wine

from lawful import Margins, project

# %%
# One sample of 40 wines. Weights are 1 / variance: the variance of a share is about the share itself, guessed from the sample
# and the margins.

wine = load_wine()
level = np.searchsorted(np.quantile(wine.data[:, 0], [0.2, 0.4, 0.6, 0.8]), wine.data[:, 0])
cell = wine.target * 5 + level
truth = np.bincount(cell, minlength=15) / len(cell)
rows, columns = truth.reshape(3, 5).sum(axis=1), truth.reshape(3, 5).sum(axis=0)
sample = np.bincount(np.random.default_rng(0).permutation(cell)[:40], minlength=15) / 40
guess = (40 * sample + 15 * np.outer(rows, columns).reshape(-1)) / 55
found = project(sample[None], Margins((3, 5), rows, columns), weights=1 / guess[None])[0]

# %%
# Root mean squared error of the shares over 100 samples, and the largest violation of the margins or of 0 <= share.

show("shares of 15 kinds of wine", run(seed=0))

# %%
# The fifteen shares of this sample.

figure, axis = plt.subplots(figsize=(8, 3), layout="constrained")
axis.bar(np.arange(15), truth, color="#b9c4cf", label="truth")
axis.plot(sample, "_", color="#444444", ms=10, label="sample of 40")
axis.plot(raked(sample.reshape(3, 5), rows, columns).reshape(-1), "x", color="#d1603d", label="raking")
axis.plot(found, "o", color="#1f6f8b", label="Margins")
axis.set(xlabel="cultivar 1, 2, 3, each with five levels of alcohol", ylabel="share", xticks=[])
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, ncols=4, fontsize=8)
