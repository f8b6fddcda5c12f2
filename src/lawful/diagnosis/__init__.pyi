"""What `lawful.diagnosis` offers."""

from lawful.diagnosis.examine import doctor
from lawful.diagnosis.report import Diagnosis, Finding

__all__ = ["Diagnosis", "Finding", "doctor"]
