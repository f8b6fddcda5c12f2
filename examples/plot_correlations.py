"""
Correlations from incomplete data
=================================

Ten measurements of 45 tumours (scikit-learn's breast cancer data), two fifths of the numbers
missing. Correlations from the pairs that are there are no correlation matrix: some eigenvalues are
negative. The usual repairs clip eigenvalues, or take the nearest correlation matrix (Higham),
which is ``CorrelationMatrices``. A pair that was seen often should move less, and that is a
weight.
"""

# %%
# Correlations over the rows in which both numbers are there, and how many rows these are.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from lawful import CorrelationMatrices, project

plt.style.use("lawful.plots.clear")
N = 10  # measurements
full = load_breast_cancer().data[:, :N]
truth = np.corrcoef(full.T)
i, j = np.triu_indices(N, 1)


def pairwise(Z):
    R, count = np.eye(N), np.zeros((N, N))
    for p, q in zip(i, j):
        both = np.isfinite(Z[:, p]) & np.isfinite(Z[:, q])
        R[p, q] = R[q, p] = np.corrcoef(Z[both, p], Z[both, q])[0, 1]
        count[p, q] = count[q, p] = both.sum()
    return R, count


def clipped(R):
    """Negative eigenvalues cut off, the diagonal scaled back to 1."""
    values, V = np.linalg.eigh(R)
    S = (V * np.maximum(values, 0)) @ V.T
    return S / np.sqrt(np.outer(np.diag(S), np.diag(S)))


# %%
# The law takes the matrix as its upper triangle, row by row. Weights are 1 / variance of a sample
# correlation.


def repaired(seed):
    rng = np.random.default_rng(seed)
    Z = full[rng.permutation(len(full))[:45]]
    Z = np.where(rng.random(Z.shape) < 0.4, np.nan, Z)
    R, count = pairwise(Z)
    raw, law = R[i, j][None], CorrelationMatrices(N, packed=True)
    weights = count[i, j] / ((1 - raw**2) ** 2 + 0.01)
    return {
        "pair by pair (no law)": raw,
        "clipped and scaled": clipped(R)[i, j][None],
        "lawful: nearest (Higham's)": project(raw, law),
        "lawful: in the metric of the sample": project(raw, law, weights=weights),
    }


def compare(seed=0):
    """Root mean squared error against the correlations of all 569 patients, and the violation."""
    law = CorrelationMatrices(N, packed=True).fit(np.zeros((1, N * (N - 1) // 2)))
    return {
        name: (np.sqrt(np.mean((c - truth[i, j]) ** 2)), float(law.residual(c)[0]))
        for name, c in repaired(seed).items()
    }


errors = compare()
for name, (error, violation) in errors.items():
    print(f"{name:<36} error {error:.4f}   violation {violation:.0e}")

# %%
# How far each correlation is from that of all patients.
shown = {"pair by pair": "pair by pair (no law)", "the law": "lawful: in the metric of the sample"}
figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.5))
for axis, (title, name) in zip(axes, shown.items()):
    matrix = np.eye(N)
    matrix[i, j] = matrix[j, i] = repaired(0)[name][0]
    lowest = np.linalg.eigvalsh(matrix)[0]
    image = axis.imshow(np.abs(matrix - truth), vmin=0, vmax=0.5, cmap="cividis")
    title = f"{title}: lowest eigenvalue {lowest:.2f}"
    axis.set(title=title.replace("-0.00", "0.00"), xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
figure.colorbar(image, ax=axes, label="error of a correlation", shrink=0.85)
