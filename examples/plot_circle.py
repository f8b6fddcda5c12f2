"""
A circle: two outputs and the law between them
==============================================

Two sensors measure the cosine and the sine of one hidden angle. Each is noisy, and every third
reading of the first one is missing. Alone, neither output is learned well; but together they lie
on a circle, and that is known before any data.
"""

# %%
# The data: 60 rows with noise 0.05. `NaN` means "not observed".
import matplotlib.pyplot as plt
import numpy as np

from lawful import ConstrainedRegressor, Equations, Reals
from lawful.metrics import constraint_violation, mean_squared_error
from lawful.plots import LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (60, 1))
Y = np.c_[np.cos(X), np.sin(X)] + 0.05 * rng.standard_normal((60, 2))
Y[::3, 0] = np.nan
X_test = np.linspace(-3, 3, 400)[:, None]
truth = np.c_[np.cos(X_test), np.sin(X_test)]

# %%
# The law is written as one would write it on paper. `Reals()` is no law: each output is learned
# alone.
law = Equations("y1**2 + y2**2 = 1")
models = {
    "alone": ConstrainedRegressor(Reals()).fit(X, Y),
    "on the circle": ConstrainedRegressor(law).fit(X, Y),
}
predictions = {name: model.predict(X_test) for name, model in models.items()}
errors = {name: mean_squared_error(truth, c) for name, c in predictions.items()}
violations = {name: constraint_violation(law.fit(Y), c) for name, c in predictions.items()}
for name in models:
    print(f"{name:<14} mean squared error {errors[name]:.1e}, violation {violations[name]:.0e}")

# %%
# Every row comes with a certificate: how far it is from the law, and whether the point was proven
# to be the best nearby.
decoding = models["on the circle"].decode(X_test)
print(decoding.to_frame().head(3).to_string(index=False))

# %%
# The error over the input: where one output bends, the other one knows.
figure, (plane, error) = plt.subplots(1, 2, figsize=(7.5, 3.9))
plane.plot(*truth.T, color="0.82", lw=7, label="truth")
plane.plot(*Y.T, ".", color="0.25", label="data")
for (name, c), colour in zip(predictions.items(), (LAWLESS, LAWFUL)):
    plane.plot(*c.T, color=colour, lw=1.6, label=name)
    error.plot(X_test[:, 0], np.linalg.norm(c - truth, axis=1), color=colour)
plane.set(xlabel="$y_1$", ylabel="$y_2$", aspect="equal", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
error.set(xlabel="$x$", ylabel="distance to the truth", ylim=(0, None))
figure.legend(*plane.get_legend_handles_labels(), loc="outside upper center", ncols=4)
