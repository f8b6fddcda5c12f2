"""What `lawful.diagnosis` offers."""

from lawful.diagnosis.choice import LawChoice, choose_law
from lawful.diagnosis.examine import doctor
from lawful.diagnosis.report import Diagnosis, Finding

__all__ = ["Diagnosis", "Finding", "LawChoice", "choose_law", "doctor"]
