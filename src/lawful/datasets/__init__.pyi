"""What `lawful.datasets` offers: read by type checkers, and at run time by `lawful._lazy`."""

from lawful.datasets.arm import arm_torques, make_arm
from lawful.datasets.files import load_distillation
from lawful.datasets.movielens import fetch_movielens_100k
from lawful.datasets.queries import movielens_protocol
from lawful.datasets.ratings import make_ratings
from lawful.datasets.sarcos import load_sarcos
from lawful.datasets.synthetic import make_curve

__all__ = [
    "arm_torques",
    "fetch_movielens_100k",
    "load_distillation",
    "load_sarcos",
    "make_arm",
    "make_curve",
    "make_ratings",
    "movielens_protocol",
]
