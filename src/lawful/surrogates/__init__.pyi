"""What `lawful.surrogates` offers: read by type checkers, and at run time by `lawful._lazy`."""

from lawful.surrogates.base import HeldOut, Surrogate
from lawful.surrogates.exact import CholeskyFactor, Factor, SpectralFactor
from lawful.surrogates.nystrom import NystromRidge
from lawful.surrogates.pairs.pairwise import PairwiseRidge
from lawful.surrogates.portfolio import Portfolio
from lawful.surrogates.primal import PrimalFactor
from lawful.surrogates.regressor import RegressorSurrogate
from lawful.surrogates.ridge import KernelRidge
from lawful.surrogates.trees import Trees

__all__ = [
    "CholeskyFactor",
    "Factor",
    "HeldOut",
    "KernelRidge",
    "NystromRidge",
    "PairwiseRidge",
    "Portfolio",
    "PrimalFactor",
    "RegressorSurrogate",
    "SpectralFactor",
    "Surrogate",
    "Trees",
]
