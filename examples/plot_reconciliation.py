"""
Forecasts that add up
=====================

Ink of handwritten digits at three levels of detail: all of it, in two halves, in eight blocks
(scikit-learn's digits). Details are known for 60 images, sums for 500, as with figures of regions
and of a country. Each series has a forecast of its own, and these do not add up. MinT is the usual
way to reconcile them; ``Hierarchy`` with a full metric *is* MinT, with the covariance of
out-of-sample residuals.
"""

# %%
# The law is written as groups; labels that were not observed are NaN.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from lawful import ConstrainedRegressor, Hierarchy, KernelRidge, Square
from lawful.kernels import Gaussian
from lawful.plots import LAWFUL

plt.style.use("lawful.plots.clear")
BLOCKS = [f"{side} {k}" for side in ("left", "right") for k in range(1, 5)]
GROUPS = {"all": ["left", "right"], "left": BLOCKS[:4], "right": BLOCKS[4:]}
SERIES = ["all", "left", "right", *BLOCKS]
law = Hierarchy.from_groups(GROUPS, SERIES)
S = law.S

images = load_digits().images
blocks = images[:, 4:].reshape(-1, 2, 2, 2, 2, 2).sum(axis=(2, 5))  # rows, side, column of the side
X = images[:, :4].reshape(-1, 32)
Y = blocks.transpose(0, 2, 1, 3).reshape(-1, 8) @ S.T
print(S)

# %%
# Base forecasts by the same regression for all; bottom-up adds the details; MinT reconciles with a
# covariance W of the residuals, estimated in one of several ways.


def mint(W, base):
    Q = np.linalg.inv(W)
    return base @ (S @ np.linalg.solve(S.T @ Q @ S, S.T @ Q)).T


def forecasts(seed):
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[:500], order[500:1100]
    labels = Y[train].copy()
    labels[60:, 3:] = np.nan
    ridge = KernelRidge(Gaussian(30.0), tune="loo")
    full, auto = (
        ConstrainedRegressor(law, loss=Square(metric), surrogate=ridge).fit(X[train], labels)
        for metric in ("residual_full", "auto")
    )
    base = full.objective(X[test]).center
    residuals = np.full(labels.shape, np.nan)
    for t, found in enumerate(full.surrogate_.residuals()):
        residuals[np.isfinite(labels[:, t]), t] = found
    ways = {"base forecasts (no law)": base, "bottom-up": base[:, 3:] @ S.T}
    for method in ("ols", "wls_struct", "wls_var", "shrink"):
        ways[f"MinT, {method}"] = mint(law.covariance(residuals, method), base)
    ways["MinT, the covariance that lawful found"] = mint(np.linalg.inv(full.loss_.metric_), base)
    ways["lawful: Hierarchy, residual_full"] = full.predict(X[test])
    ways["lawful: Hierarchy, auto (the default)"] = auto.predict(X[test])
    return ways, Y[test]


# %%
# Errors in units of each series, averaged over series, and how far the largest sum is off. MinT
# with the covariance that the regressor found is the same answer as its own;
# ``benchmarks/fields.py --peers`` asks hierarchicalforecast itself.


def compare(seed=0):
    ways, truth = forecasts(seed)
    rmse = {name: np.sqrt(np.mean((c - truth) ** 2, axis=0)) for name, c in ways.items()}
    return {
        name: (np.mean(rmse[name] / truth.std(axis=0)), abs(c - c[:, 3:] @ S.T).max())
        for name, c in ways.items()
    }


errors = compare()
for name, (error, violation) in errors.items():
    print(f"{name:<40} error {error:.4f}   violation {violation:.0e}")

# %%
# Error of each series before and after: most of the details, of which few labels were seen, gain;
# the two halves pay for it.
ways, truth = forecasts(0)
figure, axis = plt.subplots(figsize=(7.2, 3.4))
place = np.arange(len(SERIES))
for shift, name, colour, label in (
    (-0.2, "base forecasts (no law)", "0.75", "base forecasts"),
    (0.2, "lawful: Hierarchy, residual_full", LAWFUL, "Hierarchy"),
):
    error = np.sqrt(np.mean((ways[name] - truth) ** 2, axis=0)) / truth.std(axis=0)
    axis.bar(place + shift, error, 0.4, color=colour, label=label)
axis.set(xticks=place, ylabel="error / spread of the series", ylim=(0, 1.2))
axis.set_xticklabels(SERIES, rotation=40, ha="right")
axis.legend(ncols=2, loc="upper left")
