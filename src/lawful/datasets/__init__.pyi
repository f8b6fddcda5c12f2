"""What `lawful.datasets` offers: read by type checkers, and at run time by `lawful._lazy`."""

from lawful.datasets.arm import arm_torques, make_arm
from lawful.datasets.column import column_outputs, make_column
from lawful.datasets.files import load_distillation
from lawful.datasets.grids import PowerGrid, load_power_grid
from lawful.datasets.movielens import fetch_movielens_100k
from lawful.datasets.queries import movielens_protocol
from lawful.datasets.ratings import make_ratings
from lawful.datasets.sarcos import load_sarcos
from lawful.datasets.sheets import FlowSheet, make_flow_sheet
from lawful.datasets.synthetic import make_curve

__all__ = [
    "FlowSheet",
    "PowerGrid",
    "arm_torques",
    "column_outputs",
    "fetch_movielens_100k",
    "load_distillation",
    "load_power_grid",
    "load_sarcos",
    "make_arm",
    "make_column",
    "make_curve",
    "make_flow_sheet",
    "make_ratings",
    "movielens_protocol",
]
