"""
A surface without an equation
=============================

A sheet rolled up was scanned: many points, for which nobody wrote down the inputs. Labels with
inputs are few. `LocalTangent` learns the surface from the scan, its dimension too, and predictions
are brought back to it: better than no law, and better than the nearest point of the scan.
"""

# %%
# Inputs say where on the sheet a point is. 30 labels have them; the 500 points of the scan do not.
import matplotlib.pyplot as plt
import numpy as np

from lawful import (
    ConstrainedRegressor,
    LearnedEquations,
    LocalTangent,
    PointCloud,
    Reals,
    choose_law,
)
from lawful.plots import LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")

NOISE = 0.05


def draw(n, rng):
    x = rng.uniform(size=(n, 2))
    angle = 1.5 * np.pi * (0.6 + x[:, 0])
    return x, np.c_[angle * np.cos(angle), 6 * x[:, 1], angle * np.sin(angle)] / 3


rng = np.random.default_rng(0)
X, Y = draw(30, rng)
Y = Y + NOISE * rng.standard_normal(Y.shape)
scan = draw(500, rng)[1]
scan = scan + NOISE / 2 * rng.standard_normal(scan.shape)
X_test, Y_test = draw(400, rng)

# %%
# `extra` are outputs without inputs; every learned law takes them.
laws = {
    "no law": Reals(),
    "nearest point": PointCloud(scan),
    "surface": LocalTangent(extra=scan),
}
models = {name: ConstrainedRegressor(C).fit(X, Y) for name, C in laws.items()}
predicted = {name: model.predict(X_test) for name, model in models.items()}
errors = {name: float(np.mean((c - Y_test) ** 2)) for name, c in predicted.items()}
surface = models["surface"].constraint_
print(f"dimension {surface.dimension_}, discs fitted to {surface.neighbours_} points each")
for name, error in errors.items():
    print(f"{name:<16}{error:.2e}")

# %%
# Which kind of law to learn, if any, is decided on points left out: noise is added to them, and a
# law that holds takes away what lies across it. Here there is no polynomial of low degree, so that
# "equations" find nothing and do as well as no law.
candidates = {"equations": LearnedEquations(degree=2), "surface": LocalTangent()}
choice = choose_law(scan[:300], candidates=candidates, folds=3)
print(choice)

# %%
figure, axes = plt.subplots(1, 2, figsize=(7.5, 4), sharex=True, sharey=True)
for axis, name, colour in zip(axes, ("no law", "surface"), (LAWLESS, LAWFUL)):
    c = predicted[name]
    axis.plot(scan[:, 0], scan[:, 2], ".", color="0.8", ms=5, label="scan")
    axis.plot(c[:, 0], c[:, 2], ".", color=colour, ms=3, label="predictions")
    axis.set(title=f"{name}: error {errors[name]:.1e}", xlabel="$y_1$", aspect="equal")
    axis.legend(loc="center", markerscale=2)
axes[0].set_ylabel("$y_3$")
