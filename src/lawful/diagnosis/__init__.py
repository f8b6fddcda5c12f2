"""Is this law right for these data? `doctor` looks, `Diagnosis` says."""

from lawful._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
