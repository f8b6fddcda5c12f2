"""
Unknown coefficients: the constants of a valve
==============================================

The flow through a valve follows from its opening and the pressure drop, `flow =
k*opening*sqrt(drop) + leak`, with two constants that nobody measured. Flow and pressure drop are
both noisy, so that a regression of one on the other would be biased. `Equations(..., unknown=...)`
estimates the constants from the labels, with standard errors and a profile, and is then a law like
any other.
"""

# %%
# The inputs are the opening and the speed of the pump; a tenth of the readings are missing.
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import curve_fit

from lawful import ConstrainedRegressor, Equations, Reals
from lawful.plots import LAW, LAWFUL

plt.style.use("lawful.plots.clear")

TRUTH = {"k": 1.4, "leak": 0.2}


def draw(n, rng, noise=1.0):
    x = rng.uniform([0.2, 0.5], [1.0, 1.5], (n, 2))
    drop = 1.2 + x[:, 1] ** 2 - 0.5 * x[:, 0]
    Y = np.c_[TRUTH["k"] * x[:, 0] * np.sqrt(drop) + TRUTH["leak"], drop]
    return x, Y + noise * np.array([0.03, 0.25]) * rng.standard_normal(Y.shape)


rng = np.random.default_rng(1)
X, Y = draw(250, rng)
X_test, Y_test = draw(1000, rng, noise=0.0)
Y[rng.random(Y.shape) < 0.1] = np.nan

# %%
# Both constants, their errors, and the 95 % intervals by profile. Beside them, least squares of
# the flow on the measured drop, as if that were exact.
law = Equations("y1 = k*x1*sqrt(y2) + leak", unknown=["k", "leak"])
models = {
    "law": ConstrainedRegressor(law).fit(X, Y),
    "no law": ConstrainedRegressor(Reals()).fit(X, Y),
}
C = models["law"].constraint_
whole = ~np.isnan(Y).any(axis=1)
naive, _ = curve_fit(
    lambda z, k, leak: k * z[0] * np.sqrt(z[1]) + leak,
    (X[whole, 0], Y[whole, 1]),
    Y[whole, 0],
    p0=[1, 0],
)
profiles = {name: C.profile(name) for name in TRUTH}
for (name, truth), other in zip(TRUTH.items(), naive):
    low, high = profiles[name].interval()
    print(
        f"{name:<5}{C.unknown_[name]:.3f} +- {C.unknown_std_[name]:.3f}, {low:.3f} to {high:.3f}"
        f"   (truth {truth}, curve_fit {other:.3f})"
    )

# %%
# The regressor obeys the law with these constants.
errors = {
    name: np.mean((model.predict(X_test) - Y_test) ** 2, axis=0) for name, model in models.items()
}
for name, error in errors.items():
    print(f"{name:<8} flow {error[0]:.1e}, pressure drop {error[1]:.1e}")

# %%
# The profile of each constant: values below the dashed line are in the 95 % interval.
figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.5), sharey=True)
for axis, (name, profile) in zip(axes, profiles.items()):
    axis.plot(profile.value, profile.statistic, color=LAWFUL, label="profile")
    axis.axhline(3.84, color="0.4", lw=1, ls="--", label="95 % of chi-square")
    axis.axvline(TRUTH[name], color=LAW, label="truth")
    axis.set(xlabel=name, ylim=(0, 12))
axes[0].set_ylabel("score statistic")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
