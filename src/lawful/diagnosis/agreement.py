r"""Do the labels agree with g(x, y) = 0? A calibrated answer for each function of a law.

With J, B the derivatives of g at the smoothed labels and S the covariance of the noise, the label's g has, where the law holds,

    mean b_i = tr(B S) / 2,     variance v_i = J S J' + tr((B S)^2) / 2.

S is too large where the regression is biased, so the truth lies between no correction and all of it: kappa from 0 to 1 in
z_i = (g_i - kappa b_i) / sqrt(v_i), and the largest p over kappa counts.

z is tested for its share |Q' z|^2 in three spaces with orthonormal bases Q: the mean; the changes that an offset of g or a
wrong factor of an output would make, (1, J_t y_t) / sqrt(v), in which wrong coefficients show most; and smooth trends in x.
Each compares with the same statistic after random changes of sign of the z_i, so that unequal or heavy-tailed noise is no
alarm, and the smallest of the three p with the smallest of the three for these same signs: what the tests share is not paid
for twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

KAPPAS = (0.0, 0.25, 0.5, 0.75, 1.0)
FLIPS = 799  # random changes of sign
ALIKE = 0.1  # of a singular value of unit directions: they say the same
FEW = 8  # rows below which nothing is tested
FLOOR = 1e-8  # of the size of the terms: tables are rounded too, and to this a law counts as obeyed everywhere in the library
OUTLYING = 6.0  # robust standard deviations, at least
TAILS = (2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 30.0, 300.0)  # degrees of freedom
LARGEST, RARE = 0.02, 0.035  # the share of sizes that may be outliers, and how many of them noise alone may make


@dataclass(frozen=True)
class Residuals:
    """A function of the law at the labels of some rows, what noise makes of it, and what factors of the outputs would."""

    rows: np.ndarray
    g: np.ndarray
    bias: np.ndarray
    variance: np.ndarray
    slopes: np.ndarray  # (n, T) J_t y_t

    def z(self, kappa: float) -> np.ndarray:
        return (self.g - kappa * self.bias) / np.sqrt(self.variance)

    def on(self, some: np.ndarray) -> Residuals:
        """On some of the rows."""
        return Residuals(self.rows[some], self.g[some], self.bias[some], self.variance[some], self.slopes[some])

    def coefficients(self) -> np.ndarray:
        """(n, q) orthonormal: how z changes with an offset of the function and with a factor of each output."""
        D = np.column_stack([np.ones(len(self.g)), self.slopes]) / np.sqrt(self.variance)[:, None]
        length = np.linalg.norm(D, axis=0)
        D = D[:, (length > 0) & np.isfinite(length)]
        U, s, _ = np.linalg.svd(D / np.linalg.norm(D, axis=0), full_matrices=False)
        return U[:, s > ALIKE]


@dataclass(frozen=True)
class Verdict:
    """p of the tests together, in sigmas, and the mean residual with its sign and standard error."""

    p: float
    sigma: float
    mean: float
    error: float
    n: int


def agreement(found: Residuals, basis: np.ndarray, seed: int = 0) -> Verdict | None:
    """None where there are too few rows."""
    n = len(found.rows)
    if n < FEW:
        return None
    most = max(2, n // 5)
    trend, _ = np.linalg.qr(basis[found.rows])
    spaces = [np.full((n, 1), n**-0.5), found.coefficients()[:, :most], trend[:, :most]]
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (1 + FLIPS, n))
    signs[0] = 1.0
    p = 0.0
    for kappa in KAPPAS if np.any(found.bias != 0) else KAPPAS[:1]:
        z = found.z(kappa)
        if not z.any():
            return Verdict(1.0, 0.0, 0.0, 0.0, n)
        flipped = signs * z
        explained = np.stack([np.sum((flipped @ Q) ** 2, axis=1) for Q in spaces], axis=1)
        each = stats.rankdata(-explained, method="max", axis=0)  # of 1 + FLIPS: how many are at least as large
        smallest = each.min(axis=1)
        joint = float(np.mean(smallest <= smallest[0]))
        if smallest[0] == 1:  # more than signs can tell: the usual distributions say how much more
            F = [(e / Q.shape[1]) / max((z @ z - e) / (n - Q.shape[1]), 1e-300) for e, Q in zip(explained[0], spaces)]
            joint = min(joint, len(spaces) * min(stats.f.sf(f, Q.shape[1], n - Q.shape[1]) for f, Q in zip(F, spaces)))
        p = max(p, joint)
    error = float(found.g.std(ddof=1) / np.sqrt(n))
    return Verdict(p, float(stats.norm.isf(max(p, 1e-300) / 2)), float(found.g.mean()), error, n)


def residuals(
    g: np.ndarray, J: np.ndarray, B: np.ndarray, S: np.ndarray, smooth: np.ndarray, size: np.ndarray, rows: np.ndarray
) -> Residuals:
    """Of one function: g (n,) at the labels, J (n, T) and B (n, T, T) at the smoothed ones (n, T), size (n,) of its terms."""
    BS = B @ S
    bias = np.trace(BS, axis1=1, axis2=2) / 2
    variance = np.einsum("nt,ts,ns->n", J, S, J) + np.einsum("nts,nst->n", BS, BS) / 2 + (FLOOR * size) ** 2
    positive = variance > 0
    tiny = float(variance[positive].min()) if positive.any() else 1.0
    good = np.isfinite(g) & np.isfinite(bias) & np.isfinite(variance)
    g = np.where(np.abs(g) <= FLOOR * size, 0.0, g)  # rounding has a sign too, but it means nothing
    return Residuals(rows, g, bias, np.where(positive, variance, tiny), J * smooth).on(good)


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
