"""
Vapour pressure: an equation of state with unknown coefficients
===============================================================

Antoine's equation ties the pressure of a vapour to its temperature, with three coefficients that
belong to the substance. Here nobody knows them, and both outputs are noisy functions of a heater's
setting, with gaps. The coefficients are estimated together with the regression, with standard
errors.
"""

# %%
# Pressure `y1` and temperature `y2` at 200 settings of the heater; 15 % of the readings are
# missing.
import matplotlib.pyplot as plt
import numpy as np

from lawful import ConstrainedRegressor, Equations, Reals, doctor
from lawful.plots import LAW, LAWFUL

plt.style.use("lawful.plots.clear")

TRUTH = {"a": 4.0, "b": 8.0, "c": 2.3}


def draw(n, rng, noise=1.0):
    x = rng.uniform(0, 1, (n, 1))
    y2 = 0.2 + 2.6 * x[:, 0] + 0.2 * np.sin(5 * x[:, 0])
    Y = np.c_[np.exp(TRUTH["a"] - TRUTH["b"] / (TRUTH["c"] + y2)), y2]
    return x, Y + noise * np.array([0.3, 0.05]) * rng.standard_normal(Y.shape)


rng = np.random.default_rng(0)
X, Y = draw(200, rng)
X_test, Y_test = draw(1000, rng, noise=0.0)
Y[rng.random(Y.shape) < 0.15] = np.nan

# %%
# The law names its unknown coefficients, with bounds where something is known about them.
law = Equations("y1 = exp(a - b/(c + y2))", unknown={"a": None, "b": (0, None), "c": (0.5, 10)})
models = {
    "law": ConstrainedRegressor(law).fit(X, Y),
    "free": ConstrainedRegressor(Reals()).fit(X, Y),
}
C = models["law"].constraint_
for name, value in TRUTH.items():
    print(f"{name} = {C.unknown_[name]:.3f} +- {C.unknown_std_[name]:.3f}   (truth {value})")
profile = C.profile("b")
low, high = profile.interval()
print(f"95 % interval of b by its profile: {low:.2f} to {high:.2f}")

# %%
# Does it help? In variances of each output:
unit = Y_test.std(axis=0)
errors = {
    name: float(np.mean(((m.predict(X_test) - Y_test) / unit) ** 2)) for name, m in models.items()
}
print(", ".join(f"{name} {error:.1e}" for name, error in errors.items()))

# %%
# Had one of the coefficients been taken from the wrong table, the doctor would have said so, and
# what to do:
wrong = doctor(X, Y, Equations("y1 = exp(4 - 8.4/(2.3 + y2))"))
print(wrong.alarms[0])

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3.5))
left.plot(Y[:, 1], Y[:, 0], ".", color="0.25", ms=5, alpha=0.5, label="measured")
c = models["law"].predict(np.linspace(0, 1, 200)[:, None])
left.plot(c[:, 1], c[:, 0], color=LAWFUL, label="predicted, on the law")
left.set(xlabel="temperature $y_2$", ylabel="pressure $y_1$")
left.legend()
right.plot(profile.value, profile.statistic, color=LAWFUL, label="profile")
right.axhline(3.84, color="0.4", lw=1, ls="--", label="95 % of chi-square")
right.axvline(TRUTH["b"], color=LAW, label="truth")
right.set(xlabel="coefficient b", ylabel="score statistic", ylim=(0, 12))
right.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
