"""Multitask regression: a matrix of relations between the tasks, given or learned, and what it is compared with."""

from lawful.baselines.multitask.coupled import ClusteredMTL, LinearRelations, MeanRegularized, RelationshipLearning
from lawful.baselines.multitask.latent import LatentTaskStructure
from lawful.baselines.multitask.output_kernel import OutputKernelLearning
from lawful.baselines.multitask.parametrized import ParametrizedRegressor
from lawful.baselines.multitask.single import SingleTask
from lawful.baselines.multitask.tuning import tune
from lawful.baselines.multitask.wiener import WienerShrinkage

__all__ = [
    "ClusteredMTL",
    "LatentTaskStructure",
    "LinearRelations",
    "MeanRegularized",
    "OutputKernelLearning",
    "ParametrizedRegressor",
    "RelationshipLearning",
    "SingleTask",
    "WienerShrinkage",
    "tune",
]
