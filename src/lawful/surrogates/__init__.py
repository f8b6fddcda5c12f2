"""The regress step: encoded labels in, g_t(x) out."""

from lawful.surrogates.base import HeldOut, Surrogate
from lawful.surrogates.exact import CholeskyFactor, Factor, SpectralFactor
from lawful.surrogates.pairs.pairwise import PairwiseRidge
from lawful.surrogates.primal import PrimalFactor
from lawful.surrogates.regressor import RegressorSurrogate
from lawful.surrogates.ridge import KernelRidge

__all__ = [
    "CholeskyFactor",
    "Factor",
    "HeldOut",
    "KernelRidge",
    "PairwiseRidge",
    "PrimalFactor",
    "RegressorSurrogate",
    "SpectralFactor",
    "Surrogate",
]
