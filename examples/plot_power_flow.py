"""
Power flow on the IEEE 14-bus grid
==================================

Voltages and powers at fourteen buses from noisy meters: 56 outputs that obey 31 nonlinear
equations (data are solutions of the published case). The usual tool, Newton's method, turns
predicted powers into voltages: it obeys the grid, but keeps the errors of the powers it is given
and ignores what was learned about voltages.
"""

# %%
# Three inputs that an operator knows: how much of their usual load two areas take (high and low
# voltage), and a factor on reactive loads. The law: active and reactive power at each bus, no
# power at bus 7, which is a junction, and the angle of bus 1, from which the others are measured.
import matplotlib.pyplot as plt
import numpy as np

from lawful import ConstrainedRegressor, Equations
from lawful.datasets import load_power_grid
from lawful.plots import LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")
grid = load_power_grid(14)
print(f"{len(grid.equations)} equations; the first begins\n{grid.equations[0][:80]} ...")

METERS = {"magnitude": 0.01, "angle": 0.01, "active": 0.03, "reactive": 0.03}  # noise
noise = np.repeat(list(METERS.values()), 14)
LOW, HIGH = [0.5, 0.5, 0.6], [1.3, 1.3, 1.4]


def states(X):
    level = X[:, [0] * 5 + [1] * 9]
    return grid.states(level * (grid.load.real + 1j * grid.load.imag * X[:, 2:]))


rng = np.random.default_rng(0)
X, X_test = (rng.uniform(LOW, HIGH, (rows, 3)) for rows in (60, 200))
Y, Y_test = states(X), states(X_test)
Y = Y + noise * rng.standard_normal(Y.shape)

# %%
# With the law, without it, and by Newton's method from the powers that were predicted.
model = ConstrainedRegressor(Equations(grid.equations)).fit(X, Y)
decoding = model.decode(X_test)
free = model.objective(X_test).center
newton = grid.states(grid.generation - (free[:, 28:42] + 1j * free[:, 42:]))
ways = {"without the law": free, "Newton": newton, "with the law": decoding.c}
certified = np.mean(decoding.status == "ok")
print(f"certified rows: {certified:.1%}, largest violation {decoding.residual.max():.1e}")

# %%
# Errors on 200 new rows in units of the meters' noise. (Newton obeys the grid, but not the
# junction, at which the prediction has power.)
errors, violations = {}, {}
print(f"{'':<16}" + "".join(f"{kind:>11}" for kind in METERS) + f"{'violation':>12}")
for name, c in ways.items():
    squares = (((c - Y_test) / noise) ** 2).reshape(-1, 4, 14)
    errors[name], violations[name] = (
        np.sqrt(squares.mean(axis=(0, 2))),
        model.constraint_.residual(c).max(),
    )
    numbers = "".join(f"{e:>11.3f}" for e in errors[name])
    print(f"{name:<16}{numbers}{violations[name]:>12.0e}")

# %%
# Error of the angle and of the active power, bus by bus.
figure, axes = plt.subplots(1, 2, figsize=(7.5, 3.5))
panels = (14, "angle", "error, radians"), (28, "active power", "error, 100 MVA")
for axis, (first, title, unit) in zip(axes, panels):
    for (name, c), colour in zip(ways.items(), (LAWLESS, "0.55", LAWFUL)):
        error = np.sqrt(np.mean((c - Y_test)[:, first : first + 14] ** 2, axis=0))
        axis.plot(np.arange(1, 15), error, "-o", ms=4, lw=1.4, color=colour, label=name)
    axis.set(xlabel="bus", ylabel=unit, title=title, xticks=range(2, 15, 2), ylim=(0, None))
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
