"""Models in files that hold numbers and words, and nothing that could be run: `model.save(path)` and `lawful.load(path)`."""

from lawful._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
