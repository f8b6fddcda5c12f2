"""Decoders: argmin over the constraint set, with a certificate per row."""

from lawful._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
