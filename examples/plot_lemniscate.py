"""
A lemniscate: a law with a crossing
===================================

The curve of the paper's experiments crosses itself. At the crossing there is no normal direction,
and a projection that starts on the wrong branch ends there. The decoder keeps a map of the
branches, starts on each that could be the answer, and says by how much the best one won.
"""

# %%
# A hundred noisy points of :math:`y_1^4 = y_1^2 - y_2^2`.
import matplotlib.pyplot as plt
import numpy as np

from lawful import ConstrainedRegressor, ConstrainedRegressorCV, Equations, Reals
from lawful.datasets import make_curve
from lawful.metrics import mean_squared_error
from lawful.plots import LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")

data = make_curve("lemniscate", 100, noise=0.05, random_state=0)
print("the law:", data.equation)
model = ConstrainedRegressor(Equations(data.equation)).fit(data.X, data.Y)
alone = ConstrainedRegressor(Reals()).fit(data.X, data.Y)
lawful_error = mean_squared_error(data.Y_test, model.predict(data.X_test))
alone_error = mean_squared_error(data.Y_test, alone.predict(data.X_test))
print(f"error without the law {alone_error:.1e}, with it {lawful_error:.1e}")

# %%
# The margin of a row is the gap to the second-best branch. It is small where the branches meet:
# there, and only there, the data could not have told them apart.
decoding = model.decode(data.X_test)
branch = np.isfinite(decoding.margin)
smallest = decoding.margin.min()
print(
    f"{branch.mean():.0%} of the rows had a second candidate; the smallest margin is {smallest:.1e}"
)

# %%
# What if the law is wrong? The paper prints an equation that its own curve does not satisfy (see
# the errata). The search is given soft versions of it and finds out that the data speak against
# it.
wrong = make_curve("lemniscate_printed", 100, noise=0.05, random_state=0)
strict = ConstrainedRegressor(Equations(wrong.equation)).fit(wrong.X, wrong.Y)
search = ConstrainedRegressorCV(Equations(wrong.equation), mus=[0.1, 1, 10, 100, 1000])
search.fit(wrong.X, wrong.Y)
wrong_errors = {
    "believed": mean_squared_error(wrong.Y_test, strict.predict(wrong.X_test)),
    "softened by the search": mean_squared_error(wrong.Y_test, search.predict(wrong.X_test)),
}
for name, error in wrong_errors.items():
    print(f"a wrong law, {name}: error {error:.1e}")
print("chosen: mu =", search.best_params_["mu"])

# %%
# The predictions, coloured by their margin.
figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3.9))
left.plot(*data.Y.T, ".", color="0.45", ms=4, zorder=0)
shade = np.log10(np.minimum(decoding.margin, 10))
points = left.scatter(*decoding.c.T, c=shade, s=9, cmap="cividis")
figure.colorbar(points, ax=left, label="$\\log_{10}$ margin", location="bottom", shrink=0.8)
left.set(xlabel="$y_1$", ylabel="$y_2$", title="the right law")
order = np.argsort(wrong.X_test[:, 0])
right.plot(*wrong.Y_test[order].T, color="0.82", lw=7, label="truth")
right.plot(*strict.predict(wrong.X_test)[order].T, color=LAWLESS, lw=1.4, label="believed")
right.plot(*search.predict(wrong.X_test)[order].T, color=LAWFUL, label="softened")
right.set(xlabel="$y_1$", title="a wrong law")
right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=3)
