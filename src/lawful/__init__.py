"""lawful: learn several outputs that must obey a law."""

__version__ = "0.1.0"
