"""What `lawful.baselines.multitask` offers: read by type checkers, and at run time by `lawful._lazy`."""

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
