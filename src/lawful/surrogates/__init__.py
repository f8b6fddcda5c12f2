"""The regress step: encoded labels in, g_t(x) out."""

from lawful._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
