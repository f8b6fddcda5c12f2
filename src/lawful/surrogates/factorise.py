"""Which factorisation suits a sample and a kernel."""

from __future__ import annotations

import numpy as np

from lawful._array import array_namespace
from lawful._memory import available_memory
from lawful.kernels import Kernel, Precomputed
from lawful.surrogates.exact import LARGE, CholeskyFactor, Factor, Sample, SpectralFactor
from lawful.surrogates.large import LargeFactor, solvable
from lawful.surrogates.low_rank import low_rank
from lawful.surrogates.primal import PrimalFactor
from lawful.surrogates.samples import COPIES
from lawful.surrogates.sparse import SparseFactor

HIGHEST = 1e-8  # a lambda above it is not made singular by rounding
WORK, DEVICE_WORK = 2.3e13, 1e15  # operations that exact solutions may take: four outputs of 25,600 rows; benchmarks/sizes.py


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


def regular_factor(
    kernel: Kernel, sample: Sample, intercept: bool, lam: np.ndarray, exact: bool = True
) -> tuple[np.ndarray, Factor]:
    """The factor of a tuned lambda (the same for all tasks), or of a larger one where rounding has made the matrix singular.

    `exact`: whether that of all inputs is affordable, however many there are.
    """
    factor: Factor
    if len(sample.points) <= LARGE or isinstance(kernel, Precomputed) or hasattr(kernel, "features"):
        factor = make_factor(kernel, sample, intercept, float(lam[0]), highest=HIGHEST)
    elif exact and solvable(len(sample.points), float(lam[0]) * len(sample.points)):
        factor = LargeFactor(kernel, sample, float(lam[0]), intercept, HIGHEST)
    else:
        factor = SparseFactor(kernel, sample, float(lam[0]), intercept)
    return (np.full_like(lam, factor.lam) if isinstance(factor, CholeskyFactor | LargeFactor) else lam), factor


def affordable(sizes: list[int], host: bool) -> bool:
    """Whether kernel matrices of so many inputs each may be factored: in time, and in memory one after the other."""
    work, room = sum(float(p) ** 3 / 3 for p in sizes), 8.0 * COPIES * float(max(sizes)) ** 2
    return work <= (WORK if host else DEVICE_WORK) and (not host or room <= available_memory())
