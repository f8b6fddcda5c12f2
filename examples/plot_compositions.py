"""
Shares that add up to 1
=======================

Where is the ink of a handwritten digit? From the upper half of an image (scikit-learn's digits) we
predict the shares of the eight columns in the ink of its lower half. A third of the shares is 0,
which log-ratios, the usual tool, cannot say: zeros must be replaced by a small share first, and
the answer depends on which. ``Simplex`` needs nothing of the kind.
"""

# %%
# The law is one word. The regression below it is the same for all ways to predict.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from lawful import ConstrainedRegressor, KernelRidge, Reals, Simplex
from lawful.kernels import Gaussian
from lawful.plots import LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")
images = load_digits().images
columns = images[:, 4:].sum(axis=1)
X, shares = images[:, :4].reshape(-1, 32), columns / columns.sum(axis=1, keepdims=True)
ridge = KernelRidge(Gaussian(30.0), tune="loo")


def by_log_ratios(X, Y, new, least):
    """Centred log-ratios, with a small share in the place of zeros, and back."""
    filled = np.where(least > Y, least, Y)
    logs = np.log(filled / filled.sum(axis=1, keepdims=True))
    logs -= logs.mean(axis=1, keepdims=True)
    found = np.exp(ConstrainedRegressor(Reals(), surrogate=ridge).fit(X, logs).predict(new))
    return found / found.sum(axis=1, keepdims=True)


def predictions(seed):
    """150 images to learn from, 600 others to judge by."""
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[:150], order[150:750]
    model = ConstrainedRegressor(Simplex(), surrogate=ridge).fit(X[train], shares[train])
    ways = {"one by one (no law)": model.objective(X[test]).center}
    for least in (0.1, 0.01, 0.001):
        name = f"log-ratios, {least:g} for 0"
        ways[name] = by_log_ratios(X[train], shares[train], X[test], least)
    ways["lawful: Simplex"] = model.predict(X[test])
    return ways, shares[test]


# %%
# Root mean squared error on the 600 images, and the largest violation of the law.


def compare(seed=0):
    ways, truth = predictions(seed)
    return {
        name: (np.sqrt(np.mean((c - truth) ** 2)), max(abs(c.sum(axis=1) - 1).max(), -c.min()))
        for name, c in ways.items()
    }


errors = compare()
for name, (error, violation) in errors.items():
    print(f"{name:<26} error {error:.4f}   violation {max(violation, 0):.0e}")

# %%
# Three images: what was there, what the law says, and what log-ratios say.
ways, truth = predictions(0)
figure, axes = plt.subplots(1, 3, figsize=(7.5, 3.2), sharey=True)
for axis, row in zip(axes, (0, 1, 3)):
    axis.bar(np.arange(8), truth[row], color="0.85", label="truth")
    axis.plot(ways["log-ratios, 0.01 for 0"][row], "x", color=LAWLESS, label="log-ratios")
    axis.plot(ways["lawful: Simplex"][row], "o", ms=5, color=LAWFUL, label="Simplex")
    axis.set(xlabel="column of the image", xticks=range(8))
axes[0].set_ylabel("share of the ink")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
