r"""How noisy the labels are, without believing the law: residuals of a smooth regression that leaves each row out.

Outputs observed on the same rows share a Gaussian kernel ridge with a free constant. With U, e the eigenvectors and eigenvalues
of the centred kernel matrix its hat matrix is H = 1/n + U diag(e / (e + n lam)) U'; a row left out is off by

    r_i = (y_i - yhat_i) / (1 - h_i),     E r_i^2 = sigma^2 (1 + c_i),     c_i = (sum_j H_ij^2 - h_i^2) / (1 - h_i)^2

where the regression has no bias. Bandwidth and lambda minimise the sum over outputs of log mean r^2. The noise has covariance
S_ts = sum r_it r_is / sum sqrt((1 + c_it)(1 + c_is)) over the rows that have both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from lawful.tasks import Tasks

ROWS = 800  # to smooth on, for each output
BANDWIDTHS = np.geomspace(0.25, 8.0, 8)  # times the median distance of standardised inputs
LAMBDAS = np.geomspace(1e-10, 10.0, 34)


@dataclass(frozen=True)
class Noise:
    """What a smooth regression says about the labels."""

    smooth: np.ndarray  # (n, T) fitted values on all rows
    S: np.ndarray  # (T, T) covariance of the noise
    basis: np.ndarray  # (n, k) smooth functions of x, the constant first; as many as the data ask for


def noise_of(tasks: Tasks, seed: int = 0) -> Noise:
    """The noise of all outputs; rows beyond `ROWS` are left out of the regression, not of the answer."""
    rng = np.random.default_rng(seed)
    X = np.asarray(tasks.X, float)
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    n, T = len(X), len(tasks)
    smooth, residual, extra = (np.full((n, T), np.nan) for _ in range(3))
    freedom = [1.0]
    for group in tasks.groups():
        rows = np.asarray(tasks.rows[group[0]])
        if len(rows) > ROWS:
            rows = np.sort(rng.choice(rows, ROWS, replace=False))
        Y = np.stack([tasks.Y[rows, t] for t in group], axis=1)
        fit, r, c, trace = _smoothed(X[rows], Y, X)
        smooth[:, group], freedom = fit, [*freedom, trace]
        at = np.ix_(rows, np.array(group))
        residual[at], extra[at] = r, c[:, None]
    seen = np.isfinite(residual)
    r, c = np.where(seen, residual, 0.0), np.where(seen, np.sqrt(1 + np.where(seen, extra, 0.0)), 0.0)
    weight = c.T @ c
    S = (r.T @ r) / np.where(weight > 0, weight, 1.0)
    values, V = np.linalg.eigh(S)
    S = (V * np.clip(values, 0, None)) @ V.T
    return Noise(smooth, S, _basis(X, round(max(freedom))))


def _smoothed(X: np.ndarray, Y: np.ndarray, everywhere: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Fitted values everywhere, left-out residuals, c, and the trace of the hat matrix."""
    n = len(X)
    if n < 4:
        mean = Y.mean(axis=0)
        return np.tile(mean, (len(everywhere), 1)), (Y - mean) * n / max(n - 1, 1), np.full(n, 1 / max(n - 1, 1)), 1.0
    D = cdist(X, X)
    middle = float(np.median(D[D > 0])) if (D > 0).any() else 1.0
    mean = Y.mean(axis=0)
    best: tuple[float, Any] = (np.inf, None)
    for width in middle * BANDWIDTHS:
        K = np.exp(-0.5 * (D / width) ** 2)
        column = K.mean(axis=0)
        centred = K - column - column[:, None] + column.mean()
        e, U = np.linalg.eigh(centred)
        e = np.clip(e, 0, None)
        projected, squares = U.T @ (Y - mean), U**2
        for lam in LAMBDAS:
            share = e / (e + n * lam)
            h = 1 / n + squares @ share
            left = np.maximum(1 - h, 1e-9)
            r = (Y - mean - U @ (share[:, None] * projected)) / left[:, None]
            score = float(np.log(np.mean(r**2, axis=0) + 1e-300).sum())
            if score < best[0]:
                spread = 1 / n + squares @ share**2  # sum_j H_ij^2
                best = (score, (width, lam, r, (spread - h**2) / left**2, float(h.sum()), e, U, projected, column))
    width, lam, r, c, trace, e, U, projected, column = best[1]
    alpha = U @ (projected / (e + n * lam)[:, None])
    K = np.exp(-0.5 * (cdist(everywhere, X) / width) ** 2)
    fit = mean + (K - K.mean(axis=1, keepdims=True) - column + column.mean()) @ alpha
    return fit, r, np.clip(c, 0, None), trace


def _basis(X: np.ndarray, count: int) -> np.ndarray:
    """Orthonormal smooth functions on the rows: the constant and the leading eigenvectors of a wide kernel."""
    n = len(X)
    k = int(np.clip(count, 2, max(n // 10, 2)))
    rows = np.arange(n) if n <= ROWS else np.linspace(0, n - 1, ROWS).round().astype(int)
    D = cdist(X[rows], X[rows])
    width = float(np.median(D[D > 0])) if (D > 0).any() else 1.0
    e, U = np.linalg.eigh(np.exp(-0.5 * (D / width) ** 2))
    top = U[:, -k:][:, ::-1]
    if n > ROWS:  # Nystrom's extension
        top = np.exp(-0.5 * (cdist(X, X[rows]) / width) ** 2) @ top / e[-k:][::-1]
    Q, _ = np.linalg.qr(np.column_stack([np.ones(n), top]))
    return Q[:, :k]
