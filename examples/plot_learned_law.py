"""
What is the law? Equations learned from the outputs
===================================================

Two sensors watch a pin on a cam. Nobody wrote down an equation, but the outputs obey one: the pin
moves on an ellipse. `LearnedEquations` finds it from the noisy outputs alone, with standard
errors, and is then a law like any other: the regressor that obeys it is as good as one that was
told.
"""

# %%
# The input is the angle of the shaft; 300 readings with noise 0.05, which is not given to anybody.
import matplotlib.pyplot as plt
import numpy as np

from lawful import ConstrainedRegressor, Equations, LearnedEquations, Reals
from lawful.plots import LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")


def draw(n, rng, noise=0.05):
    x = rng.uniform(-np.pi, np.pi, (n, 1))
    return x, np.c_[2 * np.cos(x), np.sin(x)] + noise * rng.standard_normal((n, 2))


rng = np.random.default_rng(0)
X, Y = draw(300, rng)
X_test, Y_test = draw(1000, rng, noise=0.0)

# %%
# The law, its coefficients with their errors, and what speaks for it.
C = LearnedEquations().fit(Y)
(law,) = C.laws_
print(law.sentence)
for term, value, error in zip(law.terms, law.coefficients, law.std):
    print(f"{term:<8}{value:>9.3f} +- {error:.3f}")
print(f"noise: {C.noise_.round(3)}")

# %%
# As a law of a regressor, beside the true one and none. Coefficients that are whole numbers to
# within their errors were taken as such (`tidy`); as they were fitted, each of them costs about
# s^2 / n more.
laws = {
    "true law": Equations("y1**2 + 4*y2**2 = 4"),
    "learned": LearnedEquations(),
    "learned, as fitted": LearnedEquations(tidy=False),
    "no law": Reals(),
}
models = {name: ConstrainedRegressor(C).fit(X, Y) for name, C in laws.items()}
errors = {
    name: float(np.mean((model.predict(X_test) - Y_test) ** 2)) for name, model in models.items()
}
for name, error in errors.items():
    print(f"{name:<20}{error:.2e}")

# %%
# Where there is no law, none is found: the set is then all of the plane, and says so.
nothing = LearnedEquations().fit(rng.uniform(-1, 1, (300, 2)))
print(nothing.equations_, nothing.remarks_[-1])

# %%
x = np.linspace(-np.pi, np.pi, 400)[:, None]
figure, axis = plt.subplots(figsize=(6.6, 4.2))
axis.plot(*Y.T, ".", color="0.25", ms=5, alpha=0.4, label="measured")
axis.plot(*models["no law"].predict(x).T, color=LAWLESS, lw=1.4, label="no law")
axis.plot(*models["learned"].predict(x).T, color=LAWFUL, label=law.equation)
axis.set(xlabel="$y_1$", ylabel="$y_2$", aspect="equal")
figure.legend(loc="outside upper center", ncols=3, markerscale=2)
