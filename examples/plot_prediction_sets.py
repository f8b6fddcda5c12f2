"""
Prediction sets inside the law
==============================

The heading of a boat, as its cosine and sine, is read off a compass that is good on some courses and poor on others
(simulated). A box around the two numbers is mostly water: no heading is there. ``ConformalRegressor`` gives arcs of headings
that hold the truth nine times in ten, all outputs together.
"""

import matplotlib.pyplot as plt
import numpy as np
from prediction_sets import draw, run  # examples/prediction_sets.py, beside this script

from lawful import ConformalRegressor, ConstrainedRegressor, Sphere

# %%
# 300 rows, 30 % of which are kept to calibrate on.

rng = np.random.default_rng(0)
X, Y = draw(rng, 300)
X_test, Y_test = draw(rng, 2000)
model = ConformalRegressor(ConstrainedRegressor(Sphere()), alpha=0.1, random_state=0).fit(X, Y)
sets = model.predict_set(X_test)
bounds = sets.intervals()
print(sets)
print(f"covered {sets.contains(X_test, Y_test).mean():.1%}, asked for 90 %")

# %%
# The usual tool is a box: each output has an interval at level 1 - alpha / 2 around the unconstrained prediction (Bonferroni).

cal = np.random.default_rng(1).permutation(300)
fit, kept = cal[:210], cal[210:]
plain = ConstrainedRegressor().fit(X[fit], Y[fit])
error = np.sort(np.abs(Y[kept] - plain.predict(X[kept])), axis=0)
half = error[int(np.ceil(0.95 * 91)) - 1]
inside = (np.abs(Y_test - plain.predict(X_test)) <= half).all(axis=1).mean()
width = (bounds[:, :, 1] - bounds[:, :, 0]).mean()
print(f"box: covered {inside:.1%}, mean width of an output {2 * half.mean():.3f}; arcs: {width:.3f}")
for name, value in run().items():
    print(f"{name:26}{value:8.3f}")

# %%
# Twelve headings. The cross is the truth, the dot the prediction.

some = np.argsort(X_test[:, 0])[:: len(X_test) // 12][:12]
angle = np.linspace(0, 2 * np.pi, 500)
figure, axis = plt.subplots(figsize=(5, 5), layout="constrained")
axis.plot(np.cos(angle), np.sin(angle), color="#b9c4cf", lw=1)
for row in some:
    for arc in sets.curve_points(row):
        axis.plot(*arc.T, color="#1f6f8b", lw=5, solid_capstyle="butt")
axis.add_patch(
    plt.Rectangle(plain.predict(X_test)[some[3]] - half, *(2 * half), fill=False, color="#d1603d", label="box, once")
)
axis.plot(*sets.center[some].T, "o", color="#444444", ms=4, label="prediction")
axis.plot(*Y_test[some].T, "x", color="black", ms=6, label="truth")
axis.set(xlabel="cosine", ylabel="sine", aspect="equal")
axis.legend(frameon=False, loc="center")
