"""
A flow sheet: 200 streams, balances and bounds
==============================================

A plant has 200 streams. Every unit gives out what it takes in, and no flow is negative. Some streams are closed for
some settings of the plant, and what a meter says about a closed stream is often below zero. The law has a mass balance
for each unit and a bound for each stream.
"""

# %%
# Units are drawn at random, as a plant that grew: each takes one to three open streams (a mixer, or a vessel) and
# splits what it gets into two or three, some of which go back to earlier units.
import matplotlib.pyplot as plt
import numpy as np
from flow_sheet import flows, law, make_plant  # examples/flow_sheet.py, beside this script

from lawful import ConstrainedRegressor, Equations
from lawful.metrics import constraint_violation

plant = make_plant(200, 0)
print(f"{plant.units.shape[1]} streams, {len(plant.units)} units")

# %%
# Eighty noisy rows to learn from, 200 to judge by. The law is a list of sentences, as they would be written by hand.
rng = np.random.default_rng(0)
X, X_test = (rng.uniform(-1, 1, (rows, 3)) for rows in (80, 200))
Y, Y_test = flows(plant, X), flows(plant, X_test)
Y = Y + 0.2 * rng.standard_normal(Y.shape)
sentences = law(plant)
print(f"{len(plant.units)} units; {sentences[0]!r}, {sentences[1]!r}, ..., {sentences[-1]!r}")

model = ConstrainedRegressor(Equations(sentences)).fit(X, Y)
decoding = model.decode(X_test)
free = model.objective(X_test).center  # before the law
results = {}
for name, c in (("without the law", free), ("with the law", decoding.c)):
    rmse = float(np.sqrt(np.mean((c - Y_test) ** 2)))
    results[name] = rmse, constraint_violation(model.constraint_, c), float(np.mean(c < -1e-9))
    print("{:<16} RMSE {:.4f}   largest violation {:.0e}   negative flows {:.1%}".format(name, *results[name]))
print(f"closed streams: {np.mean(decoding.c < 1e-9):.1%}; certified: {np.mean(decoding.status == 'ok'):.0%}")

# %%
# A stream that is closed for some settings: the law keeps it at zero there.
stream = int(np.argmax(((Y_test == 0).mean(axis=0) > 0.3) & (Y_test.max(axis=0) > 0.5)))
order = np.argsort(Y_test[:, stream])
figure, axis = plt.subplots(figsize=(8, 3.4), layout="constrained")
axis.plot(Y_test[order, stream], color="#b9c4cf", lw=6, label="truth")
axis.plot(free[order, stream], ".", color="#d1603d", ms=4, label="without the law")
axis.plot(decoding.c[order, stream], ".", color="#1f6f8b", ms=4, label="with the law")
axis.axhline(0, color="#444444", lw=0.8)
axis.set(xlabel="test rows, by the true flow", ylabel=f"flow of stream {stream + 1}")
axis.legend(frameon=False)
