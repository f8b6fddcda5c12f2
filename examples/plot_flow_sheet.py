"""
A flow sheet: 200 streams, balances and bounds
==============================================

A plant has 200 streams. Every unit gives out what it takes in, and no flow is negative. Some
streams are closed for some settings of the plant, and what a meter says about a closed stream is
often below zero. The law has a mass balance for each unit and a bound for each stream.
"""

# %%
# Units are drawn at random, as a plant that grew: each takes one to three open streams (a mixer,
# or a vessel) and splits what it gets into two or three, some of which go back to earlier units.
import matplotlib.pyplot as plt
import numpy as np

from lawful import ConstrainedRegressor, Equations
from lawful.datasets import make_flow_sheet
from lawful.metrics import constraint_violation
from lawful.plots import LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")
plant = make_flow_sheet(200, random_state=0)
print(f"{plant.units.shape[1]} streams, {len(plant.units)} units")
print(plant.equations[0], plant.equations[1], "...", plant.equations[-1], sep="\n")

# %%
# Eighty noisy rows to learn from, 200 to judge by.
rng = np.random.default_rng(0)
X, X_test = (rng.uniform(-1, 1, (rows, 3)) for rows in (80, 200))
Y, Y_test = plant.flows(X), plant.flows(X_test)
Y = Y + 0.2 * rng.standard_normal(Y.shape)

model = ConstrainedRegressor(Equations(plant.equations)).fit(X, Y)
decoding = model.decode(X_test)
free = model.objective(X_test).center  # before the law
results = {}
for name, c in (("without the law", free), ("with the law", decoding.c)):
    rmse = np.sqrt(np.mean((c - Y_test) ** 2))
    results[name] = rmse, constraint_violation(model.constraint_, c), np.mean(c < -1e-9)
    line = "{:<16} RMSE {:.4f}   largest violation {:.0e}   negative flows {:.1%}"
    print(line.format(name, *results[name]))
certified = np.mean(decoding.status == "ok")
print(f"closed streams: {np.mean(decoding.c < 1e-9):.1%}; certified: {certified:.0%}")

# %%
# A stream that is closed for some settings: the law keeps it at zero or above.
often = ((Y_test == 0).mean(axis=0) > 0.3) & (Y_test.max(axis=0) > 0.5)
stream = int(np.argmax(often))
order = np.argsort(Y_test[:, stream])
figure, axis = plt.subplots(figsize=(7.2, 3.6))
axis.plot(Y_test[order, stream], color="0.8", lw=7, label="truth")
axis.plot(free[order, stream], ".", color=LAWLESS, ms=5, label="without the law")
axis.plot(decoding.c[order, stream], ".", color=LAWFUL, ms=5, label="with the law")
axis.axhline(0, color="0.3", lw=0.8)
axis.set(xlabel="test rows, by the true flow", ylabel=f"flow of stream {stream + 1}")
axis.legend()
