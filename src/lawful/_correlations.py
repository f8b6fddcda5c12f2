"""Correlations of residuals that may be missing for any (row, task), shrunk by as much as they are not known."""

from __future__ import annotations

from typing import Any

import numpy as np

LOWEST = 0.05  # the smallest eigenvalue that is left: an inverse amplifies what is least known


def shrunk_correlation(residuals: list[np.ndarray], rows: list[np.ndarray], n_rows: int, extra: Any = 0.0) -> np.ndarray:
    """(T, T) correlations of residuals r_t, which are those of the rows `rows[t]`.

    Correlations r_ts come from the n_ts rows on which both tasks are observed and are shrunk towards 0 as in
    Schaefer & Strimmer (2005): intensity = sum Var(r_ts) / sum r_ts^2 with Var(r_ts) = (1 - r_ts^2)^2 / n_ts. A pair
    never observed together has no correlation to offer. `extra`, a number or one for each pair, of what is left is shrunk
    away as well. A last blend with the identity keeps the smallest eigenvalue at `LOWEST` or above: pairwise estimates need
    not be positive definite.

    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.standard_normal((2, 500))
    >>> shrunk_correlation([a, a + b], [np.arange(500)] * 2, 500).round(1)
    array([[1. , 0.7],
           [0.7, 1. ]])
    """
    T = len(residuals)
    R = np.full((n_rows, T), np.nan)
    for t in range(T):
        size = float(np.max(np.abs(residuals[t]), initial=0.0))
        R[rows[t], t] = residuals[t] / size if size > 0 else residuals[t]
    seen = np.isfinite(R)
    R = np.where(seen, R, 0.0)
    both = seen.T.astype(float) @ seen
    norms = (R**2).T @ seen  # norms[t, s]: sum of r_t^2 over the rows where s is seen too
    scale = np.sqrt(norms * norms.T)
    correlation = np.where(scale > 0, R.T @ R / np.where(scale > 0, scale, 1.0), 0.0)
    np.fill_diagonal(correlation, 0.0)
    noise = np.where(both > 1, (1 - correlation**2) ** 2 / np.maximum(both, 1), 0.0)
    np.fill_diagonal(noise, 0.0)
    signal = float((correlation**2).sum())
    intensity = min(1.0, float(noise.sum()) / signal) if signal > 0 else 1.0
    shrunk = (1 - extra) * (1 - intensity) * correlation + np.eye(T)
    lowest = float(np.linalg.eigvalsh(shrunk).min())
    if lowest < LOWEST:
        blend = (LOWEST - lowest) / (1 - lowest)
        shrunk = (1 - blend) * shrunk + blend * np.eye(T)
    return shrunk
