"""What of the law is likely: draws from the prediction on C(x), and sets that hold the truth as often as promised."""

from lawful._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
