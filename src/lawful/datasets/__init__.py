"""Data: generators whose law is known, and loaders that read a folder named by the user."""

from lawful.datasets.files import load_distillation, load_sarcos
from lawful.datasets.movielens import fetch_movielens_100k
from lawful.datasets.queries import movielens_protocol
from lawful.datasets.synthetic import make_curve

__all__ = ["fetch_movielens_100k", "load_distillation", "load_sarcos", "make_curve", "movielens_protocol"]
