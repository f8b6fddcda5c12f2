"""
Error bars for anything
=======================

A distillation column (simulated): what share of the light component leaves at the top? It is a
function of two outputs that balances tie to seven others. ``decode(X, sample=n)`` draws from the
prediction restricted to the law: each draw is a column that balances, so each gives a share. Draws
that know no law, the usual Monte Carlo, give shares above 1.
"""

# %%
# 60 noisy rows, and 200 draws for each of 40 new ones, with and without the law.
import matplotlib.pyplot as plt
import numpy as np

from lawful import ConstrainedRegressor, Equations
from lawful.datasets import make_column
from lawful.plots import LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")
data = make_column(60, noise=0.05, n_test=40, random_state=0)
new = data.X_test
model = ConstrainedRegressor(Equations(data.equations)).fit(data.X, data.Y)
d = model.decode(new, sample=200, random_state=0)
noise = np.random.default_rng(0).standard_normal((40, 200, 9))
free = np.asarray(model.predictive(new).center)[:, None, :] + d.std[:, None, :] * noise
draws = {"no law": free, "with the law": np.asarray(d.samples)}

# %%
# How often 90 % bars of the recovery hold the truth, and how wide they are; how far draws are off
# the law, in its own scale, and whether the chains have mixed (R-hat near 1).


def recovery(y):
    """The share of the light component that leaves at the top, for draws (m, n, 9)."""
    return y[:, :, 0] * y[:, :, 2] / (0.697616946 * new[:, :1])


truth = recovery(data.Y_test[:, None, :])[:, 0]
bars, results = {}, {}
for name, y in draws.items():
    bars[name] = low, middle, high = np.quantile(recovery(y), [0.05, 0.5, 0.95], axis=1)
    results[name] = ((low <= truth) & (truth <= high)).mean(), (high - low).mean()
    print("{:<14}hold {:.0%} of the truth, mean width {:.4f}".format(name, *results[name]))
law = model.constraint_.at(np.repeat(new, 200, axis=0))
off_law = law.relative(draws["with the law"].reshape(-1, 9)).max()
print(f"draws off the law: {off_law:.0e}; largest R-hat {d.samples.rhat.max():.3f}")

# %%
# Bars of twelve rows.
figure, axis = plt.subplots(figsize=(7.2, 3.6))
rows = np.arange(12)
for shift, (name, (low, middle, high)), colour in zip(
    (-0.15, 0.15), bars.items(), (LAWLESS, LAWFUL)
):
    ends = np.array([middle - low, high - middle])[:, :12]
    axis.errorbar(rows + shift, middle[:12], ends, fmt="o", ms=4, color=colour, label=name)
axis.plot(rows, truth[:12], "kx", ms=6, label="truth")
axis.axhline(1, color="0.6", lw=1)
axis.text(11.6, 1.001, "all of it", ha="right", va="bottom", color="0.35", fontsize=9)
axis.set(xlabel="new row", ylabel="recovery at the top", xticks=rows, xticklabels=rows + 1)
figure.legend(loc="outside upper center", ncols=3)
