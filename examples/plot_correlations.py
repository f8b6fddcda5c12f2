"""
Correlations from incomplete data
=================================

Ten measurements of 45 tumours (scikit-learn's breast cancer data), two fifths of the numbers missing. Correlations from the
pairs that are there are no correlation matrix: some eigenvalues are negative. The usual repairs clip eigenvalues, or take the
nearest correlation matrix (Higham), which is ``CorrelationMatrices``. A pair that was seen often should move less, and that
is a weight.
"""

import matplotlib.pyplot as plt
import numpy as np
from columns import show  # examples/columns.py, beside this script
from correlations import FIRST, pairwise, run
from sklearn.datasets import load_breast_cancer

from lawful import CorrelationMatrices, project

# %%
# Pairwise correlations, then the nearest correlation matrix in the metric of their sampling errors.

full = load_breast_cancer().data[:, :FIRST]
rng = np.random.default_rng(0)
Z = full[rng.permutation(len(full))[:45]]
Z = np.where(rng.random(Z.shape) < 0.4, np.nan, Z)
R, count = pairwise(Z)
i, j = np.triu_indices(FIRST, 1)
weights = count[i, j] / ((1 - R[i, j] ** 2) ** 2 + 0.01)
packed = project(R[i, j][None], CorrelationMatrices(FIRST, packed=True), weights=weights[None])[0]
lawful = np.eye(FIRST)
lawful[i, j] = lawful[j, i] = packed
print(f"smallest eigenvalue: {np.linalg.eigvalsh(R)[0]:.3f} pair by pair, {np.linalg.eigvalsh(lawful)[0]:.1e} with the law")

# %%
# Root mean squared error against the correlations of all 569 patients.

show("45 correlations of 45 patients, 40 % missing", run(seed=0))

# %%
# How far each correlation is from that of all patients.

truth = np.corrcoef(full.T)
figure, axes = plt.subplots(1, 2, figsize=(7.5, 3.4), layout="constrained")
for axis, matrix, title in zip(axes, (R, lawful), ("pair by pair", "CorrelationMatrices, with weights")):
    shown = axis.imshow(np.abs(matrix - truth), vmin=0, vmax=0.5, cmap="Oranges")
    axis.set(title=title, xticks=[], yticks=[])
figure.colorbar(shown, ax=axes, label="error of a correlation")
