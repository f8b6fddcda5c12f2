"""
Power flow on the IEEE 14-bus grid
==================================

Voltages and powers at fourteen buses from noisy meters: 56 outputs that obey 31 nonlinear equations (data are solutions of
the published case). The usual tool, Newton's method, turns predicted powers into voltages: it obeys the grid, but keeps the
errors of the powers it is given and ignores what was learned about voltages.
"""

import matplotlib.pyplot as plt
import numpy as np
from grids import grid  # examples/grids.py, beside this script
from power_flow import METERS, from_powers, law, make_data

from lawful import ConstrainedRegressor, Equations

# %%
# Three inputs: how much of their usual load two areas take, and their power factor.

case = grid(14)
data = make_data(case, 60, seed=0)
model = ConstrainedRegressor(Equations(law(case))).fit(data.X, data.Y)
d = model.decode(data.X_test)
free = model.objective(data.X_test).center
newton = from_powers(case, free)
print(f"certified rows: {np.mean(d.status == 'ok'):.1%}, largest violation {d.residual.max():.1e}")

# %%
# Errors on 200 new rows in units of the meters' noise.

noise = np.repeat(list(METERS.values()), case.size)
ways = {"without the law": free, "Newton": newton, "with the law": d.c}
print(f"{'':<16}" + "".join(f"{kind:>11}" for kind in METERS) + f"{'max violation':>16}")
for name, c in ways.items():
    error = np.sqrt((((c - data.Y_test) / noise) ** 2).reshape(-1, 4, case.size).mean(axis=(0, 2)))
    off = model.constraint_.residual(c).max()
    print(f"{name:<16}" + "".join(f"{e:>11.3f}" for e in error) + f"{off:>16.1e}")

# %%
# Error of the angle and of the active power, bus by bus.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for axis, first, kind, unit in ((axes[0], 14, "angle", "radians"), (axes[1], 28, "active power", "100 MVA")):
    columns = slice(first, first + 14)
    for (name, c), color in zip(ways.items(), ("#d1603d", "#8a8a8a", "#1f6f8b")):
        error = np.sqrt(np.mean((c - data.Y_test)[:, columns] ** 2, axis=0))
        axis.plot(np.arange(1, 15), error, "-o", ms=3, color=color, label=name)
    axis.set(xlabel="bus", ylabel=f"error, {unit}", title=kind, xticks=range(1, 15))
    axis.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False)
