"""Which factorisation suits a sample and a kernel."""

from __future__ import annotations

import numpy as np

from lawful._array import array_namespace
from lawful.kernels import Kernel
from lawful.surrogates.exact import CholeskyFactor, Factor, Sample, SpectralFactor
from lawful.surrogates.low_rank import low_rank
from lawful.surrogates.primal import PrimalFactor

HIGHEST = 1e-8  # a lambda above it is not made singular by rounding


def make_factor(
    kernel: Kernel,
    sample: Sample,
    intercept: bool,
    lam: float | None = None,
    smallest: float | None = None,
    highest: float = 0.0,
) -> Factor:
    """Primal when there are fewer features than inputs; Cholesky for one `lam`, else all lambdas from eigenvectors.

    `smallest`: no lambda will be below it, so that directions far below it may be left out of a smooth kernel (`low_rank`).
    `highest`: up to it, `lam` may be raised where rounding has made the matrix singular.
    """
    if hasattr(kernel, "features"):
        first = array_namespace(sample.X).take(sample.X, sample.rows[:1], axis=0)
        if kernel.features(first).shape[1] < sample.points.shape[0]:
            return PrimalFactor(kernel, sample, intercept)
    if lam is not None:
        return CholeskyFactor(kernel, sample, lam, intercept, highest)
    if smallest is not None and (smooth := low_rank(kernel, sample, smallest)) is not None:
        return PrimalFactor(smooth, sample, intercept)
    return SpectralFactor(kernel, sample, intercept)


def regular_factor(kernel: Kernel, sample: Sample, intercept: bool, lam: np.ndarray) -> tuple[np.ndarray, Factor]:
    """The factor of a tuned lambda (the same for all tasks), or of a larger one where rounding has made the matrix singular."""
    factor = make_factor(kernel, sample, intercept, float(lam[0]), highest=HIGHEST)
    return (np.full_like(lam, factor.lam) if isinstance(factor, CholeskyFactor) else lam), factor
