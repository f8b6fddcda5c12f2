"""Data: generators whose law is known, and loaders that read a folder named by the user."""

from lawful.datasets.files import load_distillation, load_sarcos
from lawful.datasets.synthetic import make_curve

__all__ = ["load_distillation", "load_sarcos", "make_curve"]
