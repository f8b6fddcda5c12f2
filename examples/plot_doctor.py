"""
Is my law right? The doctor
===========================

Three flows meet in a mixer: `out = feed + back`, and the heat that leaves is in proportion to what
flows, `heat = 0.7*out`. Somebody typed 0.75, one reading was written down wrong, and one output is
in no equation. `lawful.doctor` tests every equation against noisy labels, says what would fit, and
names rows.
"""

# %%
# Measurements with row names, and a law with a wrong number in it.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lawful import Equations, doctor

plt.style.use("lawful.plots.clear")

rng = np.random.default_rng(3)
x = rng.uniform(-1, 1, (200, 2))
feed, back = 2 + np.sin(2 * x[:, 0]), 1.5 + 0.5 * x[:, 1] ** 2
clean = np.c_[feed, back, feed + back, 0.7 * (feed + back), 20 + 5 * x[:, 0]]
names = [f"run {i + 1}" for i in range(len(x))]
X = pd.DataFrame(x, columns=["speed", "load"], index=names)
Y = pd.DataFrame(clean, columns=["feed", "back", "out", "heat", "room"], index=names)
Y += 0.02 * rng.standard_normal(Y.shape)
Y.loc["run 18", "feed"] += 1.5

law = Equations(["out = feed + back", "heat = 0.75*out"])

# %%
# It never raises: what is wrong, what is worth knowing and what could not be tested is in the
# text. (`to_html()` is the same as a page, `to_frame()` the table of the equations.)
found = doctor(X, Y, law)
print(found)

# %%
# The remedy it suggests is a coefficient set free; estimated from the same labels, it comes with a
# standard error. Without the wrong number and the wrong row there is no alarm.
freed = Equations(["out = feed + back", "heat = a*out"], unknown=["a"]).fit(
    Y.to_numpy(), outputs=list(Y.columns)
)
print(f"a = {freed.unknown_['a']:.4f} +- {freed.unknown_std_['a']:.4f}")
right = doctor(
    X.drop("run 18"), Y.drop("run 18"), Equations(["out = feed + back", "heat = 0.7*out"])
)
print(right)

# %%
# Residuals of each equation at the labels in units of their noise; the line is what noise alone
# would give.
picture = found.plot(plt.figure())
