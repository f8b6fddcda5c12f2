"""Correlations from incomplete data that are a correlation matrix: thirty measurements of tumours.

    python examples/correlations.py

Of 45 patients (scikit-learn's breast cancer data) two fifths of the numbers are missing. Correlations from pairs that are there
do not make a positive semidefinite matrix. Usual repairs are to clip eigenvalues and scale the diagonal back, and Higham's
nearest correlation matrix, which is `CorrelationMatrices`. A pair that was seen often should move less: weights 1 / variance.
"""

from __future__ import annotations

import numpy as np
from columns import show  # examples/columns.py, beside this script
from sklearn.datasets import load_breast_cancer

from lawful import CorrelationMatrices, project

FIRST = 10  # measurements


def pairwise(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Correlations over the rows in which both are there, and how many these are."""
    n = Z.shape[1]
    R, count = np.eye(n), np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            both = np.isfinite(Z[:, i]) & np.isfinite(Z[:, j])
            R[i, j] = R[j, i] = np.corrcoef(Z[both, i], Z[both, j])[0, 1]
            count[i, j] = count[j, i] = both.sum()
    return R, count


def clipped(R: np.ndarray) -> np.ndarray:
    values, V = np.linalg.eigh(R)
    S = (V * np.maximum(values, 0)) @ V.T
    return S / np.sqrt(np.outer(np.diag(S), np.diag(S)))


def run(seed: int = 0, patients: int = 45) -> dict[str, tuple[float, float]]:
    """Root mean squared error of the correlations, against those of all 569 patients."""
    full = load_breast_cancer().data[:, :FIRST]
    rng = np.random.default_rng(seed)
    Z = full[rng.permutation(len(full))[:patients]]
    Z = np.where(rng.random(Z.shape) < 0.4, np.nan, Z)
    R, count = pairwise(Z)
    i, j = np.triu_indices(FIRST, 1)
    truth, law = np.corrcoef(full.T)[i, j], CorrelationMatrices(FIRST, packed=True)
    raw = R[i, j][None]
    variance = ((1 - raw**2) ** 2 + 0.01) / count[i, j]
    ways = {
        "pair by pair (no law)": raw,
        "clipped and scaled": clipped(R)[i, j][None],
        "lawful: nearest (Higham's)": project(raw, law),
        "lawful: in the metric of the sample": project(raw, law, weights=1 / variance),
    }
    fitted = law.fit(raw)
    return {name: (float(np.sqrt(np.mean((c - truth) ** 2))), float(fitted.residual(c)[0])) for name, c in ways.items()}


if __name__ == "__main__":
    show("45 correlations of 45 patients, 40 % missing", run())
