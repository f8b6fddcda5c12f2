"""
Quantiles that do not cross
===========================

The progression of diabetes at nine levels (scikit-learn's data, 60 patients to learn from). Nine
quantile regressions of their own cross for some patients, and sorting each row is the usual
repair. ``Monotone`` is the law of such outputs: here all levels are learned together, each with
its own pinball loss, and decoded in order.
"""

# %%
# Standardised inputs of 60 patients; the other 382 are to judge by.
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.datasets import load_diabetes
from sklearn.linear_model import QuantileRegressor
from sklearn.preprocessing import StandardScaler

from lawful import ConstrainedRegressor, KernelRidge, Mixed, Monotone, Pinball, project
from lawful.kernels import Linear
from lawful.plots import LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")
LEVELS = np.arange(1, 10) / 10


def patients(seed):
    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[:60], order[60:]
    scale = StandardScaler().fit(X[train])
    return scale.transform(X[train]), y[train], scale.transform(X[test]), y[test]


def one_by_one(X, y, new):
    each = [QuantileRegressor(quantile=t, alpha=0.0).fit(X, y).predict(new) for t in LEVELS]
    return np.stack(each, axis=1)


# %%
# Together: the label is given nine times, once for each level. One ridge learns the weights with
# which the labels speak at x, and the decoder finds the nine values of least pinball loss in
# order, exactly (``lawful.decoders.Chain``).


def together(X, y, new):
    loss = Mixed([Pinball(float(level)) for level in LEVELS])
    model = ConstrainedRegressor(Monotone(), loss=loss, surrogate=KernelRidge(Linear(), tune="loo"))
    return model.fit(X, np.repeat(y[:, None], len(LEVELS), axis=1)).predict(new)


# %%
# Pinball losses on the other patients, and the largest crossing. Sorting beats projecting what was
# learned apart: of two quantiles that cross, the pair in order has the smaller loss whatever the
# label, and pooling loses their spread. (The metric of a sample is that of the quantiles of a
# normal sample.) Learning together beats both.


def pinball(q, y):
    left = y[:, None] - q
    return np.mean(np.maximum(LEVELS * left, (LEVELS - 1) * left))


def compare(seed=0):
    X, labels, new, y = patients(seed)
    q = one_by_one(X, labels, new)
    density = norm.pdf(norm.ppf(LEVELS))
    covariance = np.minimum.outer(LEVELS, LEVELS) - np.outer(LEVELS, LEVELS)
    metric = np.linalg.inv(covariance / np.outer(density, density))
    ways = {
        "one by one (no law)": q,
        "sorted": np.sort(q, axis=1),
        "lawful: Monotone, equal weights": project(q, Monotone()),
        "lawful: Monotone, in the metric of a sample": project(q, Monotone(), metric=metric),
        "lawful: all levels together over Monotone": together(X, labels, new),
    }
    return {name: (pinball(c, y), max(0.0, -np.diff(c).min())) for name, c in ways.items()}


errors = compare()
for name, (error, violation) in errors.items():
    print(f"{name:<44} pinball loss {error:.3f}   crossing {violation:.0e}")

# %%
# Twelve patients, in the order of their medians. Quantiles in orange cross; black crosses are the
# labels.
X, y, new, labels = patients(0)
in_order, apart = together(X, y, new), one_by_one(X, y, new)
some = np.argsort(in_order[:, 4])[:: len(new) // 12][:12]
figure, axes = plt.subplots(1, 2, figsize=(7.5, 3.6), sharey=True)
for axis, q, title in zip(axes, (apart, in_order), ("one by one", "together, in order")):
    for place, row in enumerate(some):
        colour = LAWLESS if (np.diff(q[row]) < 0).any() else LAWFUL
        axis.plot(place + 0.7 * (LEVELS - 0.5), q[row], "-o", ms=2.5, lw=1.2, color=colour)
        axis.plot(place, labels[row], "kx", ms=5)
    axis.set(title=title, xlabel="patient", xticks=[])
axes[0].set_ylabel("progression of the disease")
