"""
A distillation column: balances that depend on the inputs
=========================================================

A column takes a feed and a solvent and gives a distillate and a bottom product. Nine outputs are
measured: both flows, six mole fractions and the duty of the boiler. Six balances tie eight of them
to each other and to the *inputs*: what flows in flows out, component by component, and fractions
add up to one.

The equations are those of a public benchmark (`lawful.datasets.load_distillation` reads its
files). Here a column with smooth recoveries stands in for the simulator, so that nothing needs to
be downloaded.
"""

# %%
# Sixty rows with 5 % noise to learn from, 500 to judge by. The law has inputs (`x1`: feed, `x2`:
# solvent) and outputs in it.
import matplotlib.pyplot as plt
import numpy as np

from lawful import ConstrainedRegressor, Equations
from lawful.datasets import make_column
from lawful.metrics import constraint_violation, normalized_mse
from lawful.plots import LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")
data = make_column(60, noise=0.05, random_state=0)
print("\n".join(data.equations))

# %%
# The same regression before and after the law, with a certificate for every row.
model = ConstrainedRegressor(Equations(data.equations)).fit(data.X, data.Y)
decoding = model.decode(data.X_test)
predictions = {"without the law": model.objective(data.X_test).center, "with the law": decoding.c}
results = {}
for name, c in predictions.items():
    violation = constraint_violation(model.constraint_, c, data.X_test)
    results[name] = normalized_mse(data.Y_test, c), violation
    print("{:<16} mean nMSE {:.2e}   largest violation {:.1e}".format(name, *results[name]))
print(f"certified: {np.mean(decoding.status == 'ok'):.0%}")

# %%
# Which outputs gain: those that the balances tie to better known ones. The duty of the boiler,
# which no balance ties, stays.
names = ["top\nflow", "bottom\nflow", *(f"top\n$x_{k}$" for k in "123")]
names += [*(f"bottom\n$x_{k}$" for k in "123"), "duty"]
unit = data.Y_test.std(axis=0)
rmse = {
    name: np.sqrt(np.mean((c - data.Y_test) ** 2, axis=0)) / unit for name, c in predictions.items()
}
figure, axis = plt.subplots(figsize=(7.2, 3.6))
place = np.arange(9)
for shift, (name, error), colour in zip((-0.2, 0.2), rmse.items(), (LAWLESS, LAWFUL)):
    axis.bar(place + shift, error, 0.4, color=colour, label=name)
axis.set_xticks(place, names)
axis.set(ylabel="error / spread of the output")
figure.legend(loc="outside upper center", ncols=2)
