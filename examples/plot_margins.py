"""
A table with known margins
==========================

Cultivar and alcohol of 178 wines (scikit-learn's data), of which 40 are looked at; how many wines
there are of each cultivar, and of each level of alcohol, is known for all. Raking (iterative
proportional fitting) is the usual tool, and keeps every 0 of the sample. ``Margins`` finds the
nearest table in the metric of the sample's errors.
"""

# %%
# Three cultivars times five levels of alcohol: fifteen shares, and their true sums.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from lawful import Margins, project
from lawful.plots import LAWFUL, LAWLESS

plt.style.use("lawful.plots.clear")
wine = load_wine()
alcohol = wine.data[:, 0]
cell = wine.target * 5 + np.searchsorted(np.quantile(alcohol, [0.2, 0.4, 0.6, 0.8]), alcohol)
truth = np.bincount(cell, minlength=15) / len(cell)
rows, columns = truth.reshape(3, 5).sum(axis=1), truth.reshape(3, 5).sum(axis=0)
law = Margins((3, 5), rows, columns)
print("cultivars:", rows.round(3), "levels of alcohol:", columns.round(3))


def raked(P):
    P = P.reshape(3, 5)
    for _ in range(1000):
        P = P * (rows / np.maximum(P.sum(axis=1), 1e-300))[:, None]
        P = P * (columns / np.maximum(P.sum(axis=0), 1e-300))[None, :]
    return P.reshape(-1)


# %%
# Weights are 1 / variance: the variance of a share is about the share itself, guessed from the
# sample and the margins, so that no cell is surely 0.


def tables(seed, samples):
    rng = np.random.default_rng(seed)
    drawn = [np.bincount(rng.permutation(cell)[:40], minlength=15) / 40 for _ in range(samples)]
    drawn = np.stack(drawn)
    guess = (40 * drawn + 15 * np.outer(rows, columns).reshape(-1)) / 55
    return {
        "the sample (no law)": drawn,
        "raking": np.stack([raked(sample) for sample in drawn]),
        "lawful: Margins, equal weights": project(drawn, law),
        "lawful: Margins, in the metric of the sample": project(drawn, law, weights=1 / guess),
    }


# %%
# Root mean squared error of the shares over 100 samples, and the largest violation of the margins
# or of 0 <= share.


def compare(seed=0):
    fitted = law.fit(np.zeros((1, 15)))
    return {
        name: (np.sqrt(np.mean((c - truth) ** 2)), float(fitted.residual(c).max()))
        for name, c in tables(seed, 100).items()
    }


errors = compare()
for name, (error, violation) in errors.items():
    print(f"{name:<46} error {error:.4f}   violation {violation:.0e}")

# %%
# The fifteen shares of one sample of 40 wines.
sample, by_raking, _, found = (c[0] for c in tables(0, 1).values())
figure, axes = plt.subplots(1, 3, figsize=(7.5, 3.3), sharey=True)
for k, axis in enumerate(axes):
    part, place = slice(5 * k, 5 * k + 5), np.arange(1, 6)
    axis.bar(place, truth[part], color="0.85", label="truth")
    axis.plot(place, sample[part], "_", color="0.2", ms=13, label="sample of 40")
    axis.plot(place, by_raking[part], "x", color=LAWLESS, label="raking")
    axis.plot(place, found[part], "o", ms=5, color=LAWFUL, label="Margins")
    axis.set(title=f"cultivar {k + 1}", xlabel="level of alcohol", xticks=place)
axes[0].set_ylabel("share of all wines")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
