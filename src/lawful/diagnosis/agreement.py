r"""Do the labels agree with g(x, y) = 0? A calibrated answer for each function of a law.

With J, B the derivatives of g at the smoothed labels and S the covariance of the noise, the label's g has, where the law holds,

    mean b_i = tr(B S) / 2,     variance v_i = J S J' + tr((B S)^2) / 2.

S is too large where the regression is biased, so the truth lies between no correction and all of it: for kappa from 0 to 1,
z_i = (g_i - kappa b_i) / sqrt(v_i) is tested for a mean and for a smooth trend in x, and the largest p over kappa counts. Both
tests compare with the same statistic after random changes of sign of the z_i: unequal or heavy-tailed noise is then no alarm.
The smaller of the two p counts twice (Bonferroni).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

KAPPAS = (0.0, 0.25, 0.5, 0.75, 1.0)
FLIPS = 799  # random changes of sign
FEW = 8  # rows below which nothing is tested
FLOOR = 1e-8  # of the size of the terms: tables are rounded too, and to this a law counts as obeyed everywhere in the library
OUTLYING = 6.0  # robust standard deviations, at least
TAILS = (2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 30.0, 300.0)  # degrees of freedom
LARGEST, RARE = 0.02, 0.035  # the share of sizes that may be outliers, and how many of them noise alone may make


@dataclass(frozen=True)
class Residuals:
    """A function of the law at the labels of some rows, and what noise makes of it."""

    rows: np.ndarray
    g: np.ndarray
    bias: np.ndarray
    variance: np.ndarray

    def z(self, kappa: float) -> np.ndarray:
        return (self.g - kappa * self.bias) / np.sqrt(self.variance)


@dataclass(frozen=True)
class Verdict:
    """p of both tests together, in sigmas, and the mean residual with its sign and standard error."""

    p: float
    sigma: float
    mean: float
    error: float
    trend: float  # p of the trend alone
    n: int


def agreement(found: Residuals, basis: np.ndarray, seed: int = 0) -> Verdict | None:
    """None where there are too few rows."""
    n = len(found.rows)
    if n < FEW:
        return None
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (FLIPS, n))
    Q, _ = np.linalg.qr(basis[found.rows])
    Q = Q[:, : max(2, min(Q.shape[1], n // 5))]
    worst_mean, worst_trend = 0.0, 0.0
    for kappa in KAPPAS if np.any(found.bias != 0) else KAPPAS[:1]:
        z = found.z(kappa)
        flipped = signs * z
        total = float(z @ z)
        if total == 0:
            return Verdict(1.0, 0.0, 0.0, 0.0, 1.0, n)
        mean = abs(z.mean())
        p = (1 + np.sum(np.abs(flipped.mean(axis=1)) >= mean)) / (1 + FLIPS)
        t = z.mean() / max(z.std(ddof=1) / np.sqrt(n), 1e-300)
        worst_mean = max(worst_mean, _sharper(p, 2 * stats.t.sf(abs(t), n - 1)))
        explained = float(np.sum((Q.T @ z) ** 2))
        p = (1 + np.sum(np.sum((flipped @ Q) ** 2, axis=1) >= explained)) / (1 + FLIPS)
        k = Q.shape[1]
        F = (explained / k) / max((total - explained) / (n - k), 1e-300)
        worst_trend = max(worst_trend, _sharper(p, float(stats.f.sf(F, k, n - k))))
    p = min(1.0, 2 * min(worst_mean, worst_trend))
    error = float(found.g.std(ddof=1) / np.sqrt(n))
    return Verdict(p, float(stats.norm.isf(max(p, 1e-300) / 2)), float(found.g.mean()), error, worst_trend, n)


def _sharper(p: float, parametric: float) -> float:
    """Signs resolve p to 1 / (FLIPS + 1); beyond that the usual distribution says how small it is."""
    return min(p, parametric) if p <= 1.5 / (1 + FLIPS) else p


def residuals(g: np.ndarray, J: np.ndarray, B: np.ndarray, S: np.ndarray, size: np.ndarray, rows: np.ndarray) -> Residuals:
    """Of one function: g (n,) at the labels, J (n, T) and B (n, T, T) at the smoothed labels, size (n,) of its terms."""
    BS = B @ S
    bias = np.trace(BS, axis1=1, axis2=2) / 2
    variance = np.einsum("nt,ts,ns->n", J, S, J) + np.einsum("nts,nst->n", BS, BS) / 2 + (FLOOR * size) ** 2
    positive = variance > 0
    tiny = float(variance[positive].min()) if positive.any() else 1.0
    good = np.isfinite(g) & np.isfinite(bias) & np.isfinite(variance)
    g = np.where(np.abs(g) <= FLOOR * size, 0.0, g)  # rounding has a sign too, but it means nothing
    return Residuals(rows[good], g[good], bias[good], np.where(positive, variance, tiny)[good])


def outlying(size: np.ndarray) -> float:
    """How many robust standard deviations make an outlier, of residuals of these sizes: noise may have heavy tails.

    The bulk tells how heavy. Each of several laws of Student is weighed by the likelihood of all sizes but the `LARGEST`, of
    which only the number counts, so that outliers have no say; beyond the limit these laws together expect `RARE` rows.

    >>> rng = np.random.default_rng(0)
    >>> outlying(np.abs(rng.standard_normal(1000))) < 10 < 15 < outlying(np.abs(rng.standard_t(3, 1000)))
    True
    """
    n, middle = len(size), float(np.median(size))
    if middle <= 0:
        return OUTLYING
    count = max(3, int(np.ceil(LARGEST * n)))
    kept = np.sort(size)[: n - count] / middle
    laws = [stats.t(nu, scale=1 / stats.t.ppf(0.75, nu)) for nu in TAILS]
    logs = np.array([law.logpdf(kept).sum() + count * law.logsf(kept[-1]) for law in laws])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    limits = np.geomspace(OUTLYING, 1e4, 400)
    beyond = 2 * n * sum(w * law.sf(1.4826 * limits) for w, law in zip(weights, laws))
    return float(limits[np.argmax(beyond <= RARE)])
