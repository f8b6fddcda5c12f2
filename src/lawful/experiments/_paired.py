"""Differences on the same trials, and what they decide: one rule for all tables of means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

ENOUGH = 2.0  # standard errors
RULE = (
    "A claim holds if the mean of the paired differences is above two standard errors, does not hold if it is below "
    "minus two, and "
    "is undecided in between. Splits of one data set overlap, so these standard errors are rather too small."
)


@dataclass(frozen=True)
class Paired:
    """How much better one system is than another, trial by trial; above 0 the claim gains.

    >>> d = Paired(np.array([2.0, 1.0, 3.0]))
    >>> str(d), d.won, d.verdict
    ('+2.0 ± 0.6', 3, True)
    """

    differences: np.ndarray
    digits: int = 1

    @property
    def n(self) -> int:
        return len(self.differences)

    @property
    def mean(self) -> float:
        return float(self.differences.mean())

    @property
    def error(self) -> float | None:
        """Standard error of the mean; one trial has none."""
        return float(self.differences.std(ddof=1) / np.sqrt(self.n)) if self.n > 1 else None

    @property
    def won(self) -> int:
        return int((self.differences > 0).sum())

    @property
    def verdict(self) -> bool | None:
        """RULE, for one difference."""
        if self.error is None or abs(self.mean) <= ENOUGH * self.error:
            return None
        return self.mean > 0

    def __str__(self) -> str:
        error = "n/a" if self.error is None else f"{self.error:.{self.digits}f}"
        return f"{self.mean:+.{self.digits}f} ± {error}"


def all_of(verdicts: Iterable[bool | None]) -> bool | None:
    """True if all are, False if one is, else undecided.

    >>> all_of([True, None]), all_of([None, False]), all_of([True])
    (None, False, True)
    """
    found = list(verdicts)
    if False in found:
        return False
    return None if None in found else True


def spread(values: np.ndarray, digits: int = 1) -> str:
    """Mean ± standard deviation over trials, as the paper prints them.

    >>> spread(np.array([1.0, 2.0, 3.0]))
    '2.0 ± 1.0'
    """
    deviation = f"{values.std(ddof=1):.{digits}f}" if len(values) > 1 else "n/a"
    return f"{values.mean():.{digits}f} ± {deviation}"
