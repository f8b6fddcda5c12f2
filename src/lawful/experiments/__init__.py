"""The paper's experiments, one package each: configurations -> rows -> report. Nothing is loaded before something is run."""

from lawful._lazy import attach

NAMES = ("synthetic", "sarcos", "ranking", "theory")  # of EXPERIMENTS: the command line lists them without loading any

__getattr__, __dir__, __all__ = attach(__name__, __file__)
