"""lawful: learn several outputs that must obey a law.

>>> from lawful import ConstrainedRegressor, Equations
>>> model = ConstrainedRegressor(Equations("y1**2 + y2**2 = 1"))
"""

from lawful._lazy import attach

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach(__name__, __file__)
