"""
A distillation column: balances that depend on the inputs
=========================================================

A column takes a feed and a solvent and gives a distillate and a bottom product. Nine outputs are measured: both flows,
six mole fractions and the duty of the boiler. Six balances tie eight of them to each other and to the *inputs*: what
flows in flows out, component by component, and fractions add up to one.

The equations are those of a public benchmark (`lawful.datasets.load_distillation` reads its files). Here a column with
smooth recoveries stands in for the simulator, so that nothing needs to be downloaded.
"""

# %%
# The law has inputs (`x1`: feed, `x2`: solvent) and outputs in it.
import matplotlib.pyplot as plt
import numpy as np
from distillation import column  # examples/distillation.py, beside this script: what leaves at the top, for each setting

from lawful import ConstrainedRegressor, Equations
from lawful.datasets.files import DISTILLATION_LAW
from lawful.metrics import constraint_violation, normalized_mse

print("\n".join(DISTILLATION_LAW))


# %%
# Sixty rows with 5 % noise to learn from, 500 rows to judge by.
rng = np.random.default_rng(0)
X, X_test = (rng.uniform([80, 60, 0.5], [120, 140, 3], (rows, 3)) for rows in (60, 500))
Y, Y_test = column(X), column(X_test)
Y = Y + 0.05 * Y.std(axis=0) * rng.standard_normal(Y.shape)

model = ConstrainedRegressor(Equations(DISTILLATION_LAW)).fit(X, Y)
decoding = model.decode(X_test)
free = model.objective(X_test).center  # the same regression before the law
results = {}
for name, c in (("without the law", free), ("with the law", decoding.c)):
    results[name] = normalized_mse(Y_test, c), constraint_violation(model.constraint_, c, X_test)
    print(f"{name:<16} mean nMSE {results[name][0]:.2e}   largest violation {results[name][1]:.1e}")
print(f"certified: {np.mean(decoding.status == 'ok'):.0%}")

# %%
# Which outputs gain: those that the balances tie to better known ones. The duty of the boiler, which no balance ties,
# stays.
names = ["D", "B", *(f"top {k}" for k in "123"), *(f"bottom {k}" for k in "123"), "duty"]
unit = Y_test.std(axis=0)
rmse = {name: np.sqrt(np.mean((c - Y_test) ** 2, axis=0)) / unit for name, c in (("free", free), ("lawful", decoding.c))}
figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
place = np.arange(9)
axis.bar(place - 0.2, rmse["free"], 0.4, color="#d1603d", label="without the law")
axis.bar(place + 0.2, rmse["lawful"], 0.4, color="#1f6f8b", label="with the law")
axis.set_xticks(place, names)
axis.set(ylabel="RMSE / standard deviation")
axis.legend(frameon=False)
