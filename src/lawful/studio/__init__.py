"""A page to play with: drop a table, write a law, see it drawn, fit, compare. One local process, no account, no network."""

from lawful._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
