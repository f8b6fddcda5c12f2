"""
Prediction sets inside the law
==============================

The heading of a boat, as its cosine and sine, is read off a compass that is good on some courses
and poor on others (simulated). A box around the two numbers is mostly water: no heading is there.
``ConformalRegressor`` gives arcs of headings that hold the truth nine times in ten, all outputs
together.
"""

# %%
# 300 rows, 30 % of which are kept to calibrate on, and 2000 to judge by.
import matplotlib.pyplot as plt
import numpy as np

from lawful import ConformalRegressor, ConstrainedRegressor, Sphere
from lawful.plots import LAW, LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")


def draw(rng, n):
    x = rng.uniform(-np.pi, np.pi, n)
    heading = x + 0.3 * np.sin(2 * x) + 0.08 * rng.standard_normal(n)
    return x[:, None], np.c_[np.cos(heading), np.sin(heading)]


rng = np.random.default_rng(0)
X, Y = draw(rng, 300)
X_test, Y_test = draw(rng, 2000)
sets = {
    name: ConformalRegressor(ConstrainedRegressor(law), alpha=0.1, random_state=0)
    .fit(X, Y)
    .predict_set(X_test)
    for name, law in (("arcs on the circle", Sphere()), ("ellipses (no law)", None))
}
arcs = sets["arcs on the circle"]
print(arcs)

# %%
# Both hold the truth at least as often as asked for. The arcs are narrower, and every point in
# them is a heading.
results = {}
for name, found in sets.items():
    width = np.diff(found.intervals(), axis=2).mean()
    results[name] = found.contains(X_test, Y_test).mean(), width
    print(f"{name:<20} hold {results[name][0]:.1%} of the truth, mean width {width:.3f}")
print(f"mean length of an arc: {arcs.volume().mean():.3f} of 6.283")

# %%
# The usual tool is a box: each output has an interval at level 1 - alpha / 2 (Bonferroni). Here it
# is wider, and yet holds the truth too rarely.
kept = np.random.default_rng(1).permutation(300)
plain = ConstrainedRegressor().fit(X[kept[:210]], Y[kept[:210]])
error = np.sort(np.abs(Y[kept[210:]] - plain.predict(X[kept[210:]])), axis=0)
half = error[int(np.ceil(0.95 * 91)) - 1]
inside = (np.abs(Y_test - plain.predict(X_test)) <= half).all(axis=1).mean()
print(f"box: holds {inside:.1%} of the truth, mean width {2 * half.mean():.3f}")

# %%
# Eight headings, each with its arc; one of them with the box that the usual tool gives.
some = np.argsort(X_test[:, 0])[125::250]
angle = np.linspace(0, 2 * np.pi, 500)
figure, axis = plt.subplots(figsize=(5.4, 5.4))
axis.plot(np.cos(angle), np.sin(angle), color=LAW, lw=1, label="the law")
for k, row in enumerate(some):
    for arc in arcs.curve_points(row):
        label = "90 % prediction set" if k == 0 else None
        axis.plot(*arc.T, color=LAWFUL, lw=7, alpha=0.55, solid_capstyle="butt", label=label)
corner = plain.predict(X_test)[some[2]] - half
box = plt.Rectangle(corner, *(2 * half), fill=False, color=LAWLESS, lw=1.5, label="box")
axis.add_patch(box)
axis.plot(*arcs.center[some].T, "o", color=LAWFUL, ms=5, label="prediction")
axis.plot(*Y_test[some].T, "x", color="black", ms=7, label="truth")
axis.set(xlabel="cosine", ylabel="sine", aspect="equal")
axis.set(xticks=[-1, -0.5, 0, 0.5, 1], yticks=[-1, -0.5, 0, 0.5, 1])
axis.legend(loc="center")
