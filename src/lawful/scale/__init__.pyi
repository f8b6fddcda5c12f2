"""What `lawful.scale` offers: read by type checkers, and at run time by `lawful._lazy`."""

from lawful.scale.fitting import fit
from lawful.scale.predicting import decode, predict

__all__ = ["decode", "fit", "predict"]
