"""What `lawful.cli.tools` offers: read by type checkers, and at run time by `lawful._lazy`."""

from lawful.cli.tools.fits import columns, estimator, learn
from lawful.cli.tools.ordering import orders, ratings
from lawful.cli.tools.rivals import RIVALS, draw, judge
from lawful.cli.tools.streams import certificate, numbers_of, stream
from lawful.cli.tools.tables import PICTURES, SUFFIXES, apart, choose, free, numbers, one_column, pandas, pieces, read, writing
from lawful.diagnosis import choose_law, doctor
from lawful.report.fits import page, summarise
from lawful.saving.models import describe, load
from lawful.sets import discover

__all__ = [
    "PICTURES",
    "RIVALS",
    "SUFFIXES",
    "apart",
    "certificate",
    "choose",
    "choose_law",
    "columns",
    "describe",
    "discover",
    "doctor",
    "draw",
    "estimator",
    "free",
    "judge",
    "learn",
    "load",
    "numbers",
    "numbers_of",
    "one_column",
    "orders",
    "page",
    "pandas",
    "pieces",
    "ratings",
    "read",
    "stream",
    "summarise",
    "writing",
]
