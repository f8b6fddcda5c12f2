"""What the commands use, loaded when one of them runs: `--help` and `--version` load no numbers."""

from lawful._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
