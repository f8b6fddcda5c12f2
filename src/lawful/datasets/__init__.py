"""Data: generators whose law is known, and loaders that read a folder named by the user."""

from lawful._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
