"""Pictures, in the manner of scikit-learn's displays: `XDisplay.from_estimator(...)`, `.from_predictions(...)`, `.plot(ax=)`.

Needs matplotlib (`pip install 'lawful[plot]'`), which is loaded when something is drawn.
"""

from lawful._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
