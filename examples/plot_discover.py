"""
Discovery: which laws do these data obey?
=========================================

A small plant: two feeds are known, two flows, a composition and a level are measured. Nobody says
how they hang together. `lawful.discover` returns a table of laws, those with inputs among them,
each with its evidence and a sentence; the table is a law for the regressor at once.
"""

# %%
# The balances are there to be found: flows add up, and the product of a flow and its composition
# is what comes in with the feed.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lawful import ConstrainedRegressor, Reals, discover
from lawful.plots import LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")


def draw(n, rng, noise=0.005):
    x = rng.uniform([1.0, 0.5], [2.0, 1.5], (n, 2))
    top = 1 + 0.35 * np.sin(3 * x[:, 0]) * x[:, 1]
    bottom = x.sum(axis=1) - top
    pure = 0.7 * x[:, 0] / top
    Y = np.c_[top, bottom, pure, 2 + np.sin(6 * x[:, 0] * x[:, 1])]
    return x, Y + noise * rng.standard_normal(Y.shape)


rng = np.random.default_rng(0)
X, Y = draw(300, rng)
X_test, Y_test = draw(1000, rng, noise=0.0)
inputs = pd.DataFrame(X, columns=["feed", "steam"])
outputs = pd.DataFrame(Y, columns=["top", "bottom", "pure", "level"])

# %%
# Every law with its evidence, as text and as a table. `level` is in none of them, and that is
# right.
table = discover(inputs, outputs, degree=2, noise=0.005)
print(table)
print(table.to_frame()[["simple", "misfit", "held_out", "shuffled", "z"]].to_string())

# %%
# What was found is a law for the regressor.
found = ConstrainedRegressor(table.constraint.to_equations()).fit(inputs, outputs)
free = ConstrainedRegressor(Reals()).fit(inputs, outputs)
test = pd.DataFrame(X_test, columns=inputs.columns)
errors = {
    name: np.mean((np.asarray(m.predict(test)) - Y_test) ** 2, axis=0)
    for name, m in (("laws", found), ("no law", free))
}
for name, error in errors.items():
    print(f"{name:<8}" + "".join(f"{e:>10.1e}" for e in error))

# %%
# How far the points are from each law in units of the noise: as measured, on rows not used for the
# coefficients, and after shuffling the columns, where there is no law.
figure, axis = plt.subplots(figsize=(7.2, 1.9 + 0.6 * len(table)))
marks = {"misfit": ("as fitted", "o", LAWFUL), "held_out": ("rows not used", "x", "black")}
marks["shuffled"] = ("columns shuffled", "s", LAWLESS)
for what, (label, mark, colour) in marks.items():
    distance = [np.sqrt(getattr(law, what)) for law in table]
    axis.plot(distance, -np.arange(len(table)), mark, color=colour, ms=8, label=label)
axis.axvline(1, color="0.5", lw=0.8, zorder=0)
axis.set(xscale="log", xlabel="distance in units of the noise", ylim=(0.5 - len(table), 0.5))
axis.set_yticks(-np.arange(len(table)), [law.simple for law in table])
figure.legend(loc="outside upper center", ncols=3)
