"""
Flows in a network
==================

Twelve pipes between a source, five junctions and a sink, read by noisy meters (simulated). Nothing
is lost at a junction, no flow is negative and no pipe carries more than it can. The usual tool,
data reconciliation by least squares, knows the balances but not the bounds; clipping to the bounds
breaks the balances again. ``Flow`` has both.
"""

# %%
# Flows are near what each pipe would like, for demand and two valves; many pipes are shut or full.
import matplotlib.pyplot as plt
import numpy as np

from lawful import Affine, ConstrainedRegressor, Flow, KernelRidge, project
from lawful.kernels import Gaussian
from lawful.plots import LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")
EDGES = [
    (0, 1),
    (0, 2),
    (0, 3),
    (1, 2),
    (1, 4),
    (2, 4),
    (2, 5),
    (3, 2),
    (3, 5),
    (4, 6),
    (5, 4),
    (5, 6),
]
CAPACITY = np.array([3.0, 3.0, 3.0, 1.0, 2.5, 2.0, 2.0, 1.0, 2.5, 5.0, 1.0, 5.0])
LAW = Flow(EDGES, supply={0: None, 6: None}, capacity=CAPACITY)


def flows(X):
    wish = [np.sin(k + X @ [2.0, 1.0 + k / 6, -1.0]) * 2.2 for k in range(12)]
    return project(1.5 + np.stack(wish, axis=1), LAW)


def predictions(seed):
    """60 noisy rows to learn from, 300 to judge by."""
    rng = np.random.default_rng(seed)
    X, new = rng.uniform(-1, 1, (60, 3)), rng.uniform(-1, 1, (300, 3))
    truth = flows(new)
    Y = flows(X) + 0.3 * rng.standard_normal((60, 12))
    model = ConstrainedRegressor(LAW, surrogate=KernelRidge(Gaussian(1.0), tune="loo")).fit(X, Y)
    base, law, Q = model.objective(new).center, model.constraint_, model.loss_.metric_
    metric = {"weights": Q} if Q.ndim == 1 else {"metric": Q}
    reconciled = project(base, Affine(law.A_, law.b_), **metric)
    ways = {
        "meter by meter (no law)": base,
        "reconciled by least squares": reconciled,
        "reconciled and clipped": np.clip(reconciled, 0, CAPACITY),
        "lawful: Flow": model.predict(new),
    }
    return ways, truth, law


# %%
# Root mean squared error on the new rows, and the largest violation of a balance or a bound.


def compare(seed=0):
    ways, truth, law = predictions(seed)
    return {
        name: (np.sqrt(np.mean((c - truth) ** 2)), float(law.residual(c).max()))
        for name, c in ways.items()
    }


errors = compare()
for name, (error, violation) in errors.items():
    print(f"{name:<28} error {error:.4f}   violation {violation:.0e}")

# %%
# One row: the width of a pipe is its flow, and the number at a junction what is lost there.
ways, truth, _ = predictions(0)
free, found = ways["meter by meter (no law)"], ways["lawful: Flow"]
PLACE = np.array([[0, 0], [1, 1], [1, 0], [1, -1], [2, 0.6], [2, -0.6], [3, 0]])
row = int(np.argmax(np.abs(free - truth).sum(axis=1)))
figure, axes = plt.subplots(1, 2, figsize=(7.5, 3.3))
shown = (free[row], "meter by meter", LAWLESS), (found[row], "Flow", LAWFUL)
for axis, (c, title, colour) in zip(axes, shown):
    net = np.zeros(7)
    for (a, b), f in zip(EDGES, c):
        net[a] -= f
        net[b] += f
        axis.plot(*PLACE[[a, b]].T, lw=0.5 + 2.5 * abs(f), color=colour, alpha=0.6, zorder=1)
    axis.scatter(*PLACE.T, s=900, color="white", edgecolor="0.4", zorder=2)
    for k, (x, y) in enumerate(PLACE):
        text = {0: "in", 6: "out"}.get(k, f"{net[k]:+.2f}".replace("-0.00", "+0.00"))
        axis.annotate(text.replace("+0.00", "0"), (x, y), ha="center", va="center", fontsize=8.5)
    axis.set(title=title, xticks=[], yticks=[], ylim=(-1.4, 1.4), xlim=(-0.35, 3.35))
    axis.spines[:].set_visible(False)
