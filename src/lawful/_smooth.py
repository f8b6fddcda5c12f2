r"""How noisy the labels are, without believing the law: residuals of a smooth regression that leaves each row out.

Outputs observed on the same rows share a Gaussian kernel ridge with a free constant. With U, e the eigenvectors and eigenvalues
of the centred kernel matrix its hat matrix is H = 1/n + U diag(e / (e + n lam)) U'; a row left out is off by

    r_i = (y_i - yhat_i) / (1 - h_i),     E r_i^2 = sigma^2 (1 + c_i),     c_i = (sum_j H_ij^2 - h_i^2) / (1 - h_i)^2

where the regression has no bias. Bandwidth and lambda minimise the sum over outputs of log mean r^2. The noise has covariance
S_ts = sum r_it r_is / sum sqrt((1 + c_it)(1 + c_is)) over the rows that have both.

Fitted values are linear in the labels: a `Smoother` gives those of an output on any rows from its labels, so that the
error of a value that stands in for a missing label can be followed to the labels that it came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist

ROWS = 800  # to smooth on, for each output
BANDWIDTHS = np.geomspace(0.25, 8.0, 8)  # times the median distance of standardised inputs
LAMBDAS = np.geomspace(1e-10, 10.0, 34)
SEARCHED = 300  # rows of the search for a bandwidth


@dataclass(frozen=True)
class Noise:
    """What a smooth regression says about the labels."""

    smooth: np.ndarray  # (n, T) fitted values on all rows
    S: np.ndarray  # (T, T) covariance of the noise
    error: np.ndarray  # (n, T) what is left of each label, as large as its noise; NaN where there is none
    smoothers: list[Smoother]  # for each output, how its fitted values come from its labels
    inputs: np.ndarray  # (n, d) standardised
    freedom: float  # the largest trace of a hat matrix

    @cached_property
    def basis(self) -> np.ndarray:
        """(n, k) smooth functions of x, the constant first; as many as the data ask for."""
        return _basis(self.inputs, round(self.freedom))


@dataclass(frozen=True)
class Smoother:
    """Fitted values of some outputs: mean + A' (labels - mean), labels on `rows`."""

    rows: np.ndarray
    kernel: np.ndarray  # (n, k) centred kernel between all rows and `rows`
    solve: np.ndarray  # (k, k)

    def weights(self, where: np.ndarray) -> np.ndarray:
        """(m, k) weights of the labels in the fitted values at some rows."""
        A = self.kernel[where] @ self.solve
        return A + (1 - A.sum(axis=1, keepdims=True)) / len(self.rows)


def noise_of(X: np.ndarray, Y: np.ndarray, seed: int = 0, most: int = ROWS) -> Noise:
    """The noise of outputs Y (n, T), NaN = missing; rows beyond `most` are left out of the regression, not of the answer."""
    rng = np.random.default_rng(seed)
    X = np.asarray(X, float)
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    n, T = Y.shape
    smooth, residual, extra = (np.full((n, T), np.nan) for _ in range(3))
    freedom = [1.0]
    smoothers: dict[int, Smoother] = {}
    for rows, group in _observed_together(Y):
        if len(rows) > most:
            rows = np.sort(rng.choice(rows, most, replace=False))
        fit, r, c, trace, smoother = _smoothed(X[rows], Y[np.ix_(rows, group)], X, rows)
        smooth[:, group], freedom = fit, [*freedom, trace]
        at = np.ix_(rows, group)
        residual[at], extra[at] = r, c[:, None]
        smoothers |= dict.fromkeys(group.tolist(), smoother)
    seen = np.isfinite(residual)
    r, c = np.where(seen, residual, 0.0), np.where(seen, np.sqrt(1 + np.where(seen, extra, 0.0)), 0.0)
    weight = c.T @ c
    S = (r.T @ r) / np.where(weight > 0, weight, 1.0)
    values, V = np.linalg.eigh(S)
    S = (V * np.clip(values, 0, None)) @ V.T
    error = np.where(seen, r / np.where(seen, c, 1.0), np.nan)
    return Noise(smooth, S, error, [smoothers[t] for t in range(T)], X, max(freedom))


def _observed_together(Y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """(rows, outputs) of outputs that have labels on the same rows."""
    seen = ~np.isnan(Y)
    groups: dict[bytes, list[int]] = {}
    for t in range(Y.shape[1]):
        groups.setdefault(seen[:, t].tobytes(), []).append(t)
    return [(np.flatnonzero(seen[:, group[0]]), np.array(group)) for group in groups.values()]


def _smoothed(
    X: np.ndarray, Y: np.ndarray, everywhere: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, Smoother]:
    """Fitted values everywhere, left-out residuals, c, the trace of the hat matrix, and the smoother."""
    n = len(X)
    if n < 4:
        mean = Y.mean(axis=0) if n else np.zeros(Y.shape[1])
        flat = Smoother(rows, np.zeros((len(everywhere), n)), np.zeros((n, n)))
        return np.tile(mean, (len(everywhere), 1)), (Y - mean) * n / max(n - 1, 1), np.full(n, 1 / max(n - 1, 1)), 1.0, flat
    D, mean = cdist(X, X), Y.mean(axis=0)
    middle = float(np.median(D[D > 0])) if (D > 0).any() else 1.0
    widths = middle * BANDWIDTHS
    if n > SEARCHED:  # a few rows tell about which bandwidth
        some = np.linspace(0, n - 1, SEARCHED).round().astype(int)
        scores = [_ridge(D[np.ix_(some, some)], w, Y[some] - Y[some].mean(axis=0)).score for w in widths]
        best = int(np.argmin(scores))
        widths = widths[max(best - 1, 0) : best + 2]
    found = min((_ridge(D, width, Y - mean) for width in widths), key=lambda ridge: ridge.score)
    width, lam, e, U, column = found.width, found.lam, found.e, found.U, found.column
    share = e / (e + n * lam)
    h = 1 / n + U**2 @ share
    left = np.maximum(1 - h, 1e-9)
    r = (Y - mean - U @ (share[:, None] * (U.T @ (Y - mean)))) / left[:, None]
    c = (1 / n + U**2 @ share**2 - h**2) / left**2  # the first part is sum_j H_ij^2
    solve = (U / (e + n * lam)) @ U.T
    K = np.exp(-0.5 * (cdist(everywhere, X) / width) ** 2)
    K = K - K.mean(axis=1, keepdims=True) - column + column.mean()
    fit = mean + K @ (solve @ (Y - mean))
    return fit, r, np.clip(c, 0, None), float(h.sum()), Smoother(rows, K, solve)


@dataclass(frozen=True)
class _Ridge:
    """The best penalty of one bandwidth, and what it was computed with."""

    score: float
    lam: float
    width: float
    e: np.ndarray
    U: np.ndarray
    column: np.ndarray


def _ridge(D: np.ndarray, width: float, Y: np.ndarray) -> _Ridge:
    """Distances D (n, n) and centred labels Y (n, T): the penalty of least left-out error, over all at once."""
    n = len(D)
    K = np.exp(-0.5 * (D / width) ** 2)
    column = K.mean(axis=0)
    e, U = np.linalg.eigh(K - column - column[:, None] + column.mean())
    e = np.clip(e, 0, None)
    share = e[:, None] / (e[:, None] + n * LAMBDAS)
    left = np.maximum(1 - 1 / n - U**2 @ share, 1e-9)
    score = np.zeros(len(LAMBDAS))
    for y, projected in zip(Y.T, Y.T @ U):
        r = (y[:, None] - U @ (share * projected[:, None])) / left
        score += np.log(np.mean(r**2, axis=0) + 1e-300)
    best = int(np.argmin(score))
    return _Ridge(float(score[best]), float(LAMBDAS[best]), width, e, U, column)


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
