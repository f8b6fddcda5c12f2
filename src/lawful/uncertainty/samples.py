"""Draws with what is known about them: acceptance, effective sample size, R-hat."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._html import card, table

__all__ = ["Samples", "SamplingWarning", "diagnostics"]

MANY = 8  # rows and outputs that a notebook shows


class SamplingWarning(UserWarning):
    """The chains of some rows have not mixed: their draws are points of C, but may not stand for the whole distribution.

    >>> import warnings
    >>> from lawful import SamplingWarning
    >>> warnings.simplefilter("error", SamplingWarning)  # draws whose chains have not mixed are an error
    >>> warnings.simplefilter("default", SamplingWarning)
    """


class Samples(np.ndarray):
    """(m, n, T) draws, an array like any other that also knows, per row (m,):

    acceptance  the fraction of proposals that were taken; 1 for independent draws
    ess         effective sample size, the smallest over the outputs; n for independent draws
    rhat        split R-hat over the chains, the largest over the outputs; 1 for independent draws. Above 1.1 is suspicious
    exact       whether the draws are independent (closed form, list, or quadrature along a curve)

    Slices and results of arithmetic are plain arrays to all purposes: their diagnostics are None.

    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> Y = np.c_[np.cos(X), np.sin(X)]
    >>> from lawful import ConstrainedRegressor, KernelRidge, Sphere
    >>> model = ConstrainedRegressor(Sphere(), surrogate=KernelRidge(lam=1e-3)).fit(X, Y)
    >>> draws = model.sample(X[:2], 10, random_state=0)
    >>> draws.shape, bool(abs((np.asarray(draws) ** 2).sum(axis=2) - 1).max() < 1e-8)
    ((2, 10, 2), True)
    """

    acceptance: Any
    ess: Any
    rhat: Any
    exact: Any

    @classmethod
    def of(cls, draws: np.ndarray, acceptance: Any = None, ess: Any = None, rhat: Any = None) -> Samples:
        """Draws (m, n, T) of chains, or independent ones where no diagnostics are given."""
        self = np.ascontiguousarray(draws, dtype=float).view(cls)
        m, n = draws.shape[:2]
        self.exact = np.full(m, acceptance is None)
        self.acceptance = np.ones(m) if acceptance is None else acceptance
        self.ess = np.full(m, float(n)) if ess is None else ess
        self.rhat = np.ones(m) if rhat is None else rhat
        return self

    @classmethod
    def join(cls, parts: list[Samples]) -> Samples:
        """The draws of consecutive rows as one."""
        self = np.concatenate([np.asarray(part) for part in parts]).view(cls)
        for name in ("acceptance", "ess", "rhat", "exact"):
            setattr(self, name, np.concatenate([getattr(part, name) for part in parts]))
        return self

    def _repr_html_(self) -> str | None:
        """For notebooks: of the first rows the mean and standard deviation of each output, and the diagnostics."""
        if self.ess is None or self.ndim != 3 or 0 in self.shape:  # a slice, say: an array like any other
            return None
        (m, n, T), few = self.shape, np.asarray(self)[:MANY]
        shown = T if T <= MANY else MANY - 1
        cut, mean, std = ["…"] * (shown < T), few.mean(axis=1), few.std(axis=1)
        rows = [
            [*(f"{c:.4g} ± {s:.2g}" for c, s in zip(mean[i, :shown], std[i, :shown])), *cut, f"{ess:.0f}", f"{rhat:.3f}"]
            for i, (ess, rhat) in enumerate(zip(self.ess[:MANY], self.rhat[:MANY]))
        ]
        columns = [*(f"y{t + 1}" for t in range(shown)), *cut, "effective draws", "R-hat"]
        how = "independent" if self.exact.all() else f"of chains, R-hat at most {self.rhat.max():.3f}"
        more = f"<div>… and {m - MANY} more rows</div>" if m > MANY else ""
        return card(f"{n} draws for each of {m} rows, {how}", table(columns, rows) + more)

    def __array_finalize__(self, other: Any) -> None:
        for name in ("acceptance", "ess", "rhat", "exact"):
            setattr(self, name, None)


def diagnostics(chains: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Effective sample size per draw and split R-hat of chains (m, K, L, T): (m,) the worst output of each.

    R-hat after Gelman et al. (2013), on half chains; effective size by Geyer's initial positive sequence of the
    autocorrelations, averaged over the chains.
    """
    m, K, L, T = chains.shape
    half = L // 2
    halves = np.concatenate([chains[:, :, :half], chains[:, :, L - half :]], axis=1)  # (m, 2K, half, T)
    means, within = halves.mean(axis=2), halves.var(axis=2, ddof=1).mean(axis=1)
    between = means.var(axis=1, ddof=1)
    total = within * (half - 1) / half + between
    size = np.abs(chains).max(axis=(1, 2)) ** 2 * 1e-24  # an output that the law fixes varies by rounding alone
    still = total <= size
    rhat = np.sqrt(np.where(still, 1.0, total / np.where(within > size, within, 1e-300)))
    rhat = np.where(still, 1.0, np.minimum(rhat, 1e6))

    away = chains - chains.mean(axis=(1, 2), keepdims=True)
    spectrum = np.fft.rfft(away, 2 * L, axis=2)
    autocovariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=2)[:, :, :L].mean(axis=1) / L  # (m, L, T)
    rho = autocovariance / np.where(still, 1.0, np.maximum(autocovariance[:, 0], 1e-300))[:, None]
    even = L // 2 * 2
    pairs = rho[:, :even].reshape(m, even // 2, 2, T).sum(axis=2)
    positive = np.cumprod(pairs > 0, axis=1)
    tau = np.maximum(2 * (pairs * positive).sum(axis=1) - 1, 1.0 / (K * L))
    share = np.where(still, 1.0, np.minimum(1 / tau, 1.0))
    return share.min(axis=1), rhat.max(axis=1)
