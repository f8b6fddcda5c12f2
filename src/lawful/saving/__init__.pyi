"""What `lawful.saving` offers: read by type checkers, and at run time by `lawful._lazy`."""

from lawful.saving.archive import ModelFileError
from lawful.saving.models import Savable, describe, load

__all__ = ["ModelFileError", "Savable", "describe", "load"]
